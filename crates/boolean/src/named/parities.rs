//! Parities of consecutive variables; a dictator is the parity of one.

use crate::bits::LOW_VARIABLES;
use crate::function::BooleanFunction;
use std::ops::Range;

/// The sum modulo 2 of the variables in `range` (0-based).
pub struct RangeParity {
    n: usize,
    range: Range<usize>,
}

impl RangeParity {
    pub fn new(n: usize, range: Range<usize>) -> Self {
        Self { n, range }
    }
}

impl BooleanFunction for RangeParity {
    fn variables(&self) -> usize {
        self.n
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        x[self.range.clone()].iter().fold(0, |sum, bit| sum ^ bit)
    }

    fn flips(&self, _: &mut [u64], changed: &mut [u64]) {
        changed.fill(0);
        changed[self.range.clone()].fill(!0);
    }

    fn table_word(&self, word: usize, _: &mut [u64]) -> u64 {
        // Variable i is bit n-1-i of the row: the lowest six bits vary inside the word, the others are the word's index.
        let mask = ((1u64 << self.range.len()) - 1) << (self.n - self.range.end);
        let outside = (word as u64 & mask >> 6).count_ones() % 2;
        let inside = (0..6).filter(|k| mask >> k & 1 == 1).fold(0, |sum, k| sum ^ LOW_VARIABLES[k]);
        inside ^ 0u64.wrapping_sub(u64::from(outside))
    }
}
