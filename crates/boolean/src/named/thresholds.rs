//! Functions that count ones: thresholds (majority, AND, OR) and the two nested majorities of Lemma 8.

use crate::function::BooleanFunction;
use crate::vertical::LaneCounter;

/// 1 if at least `threshold` of the bits are 1.
pub struct Threshold {
    n: usize,
    threshold: usize,
    /// The table's word when its index holds w ones, for each w: the rows inside a word add 0 to 6 more.
    word_by_weight: Vec<u64>,
}

impl Threshold {
    pub fn new(n: usize, threshold: usize) -> Self {
        let word = |weight: usize| {
            (0..64u64)
                .filter(|row| weight + row.count_ones() as usize >= threshold)
                .fold(0, |word, row| word | 1 << row)
        };
        Self { n, threshold, word_by_weight: (0..=n.saturating_sub(6).min(64)).map(word).collect() }
    }
}

fn weight_of_lanes(x: &[u64]) -> LaneCounter {
    let mut weight = LaneCounter::default();
    x.iter().for_each(|&bit| weight.add(bit));
    weight
}

impl BooleanFunction for Threshold {
    fn variables(&self) -> usize {
        self.n
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        weight_of_lanes(x).at_least(self.threshold)
    }

    fn flips(&self, x: &mut [u64], changed: &mut [u64]) {
        // Only inputs right at the threshold can change: a one lost there, or a one gained just below.
        let weight = weight_of_lanes(x);
        let at = if self.threshold == 0 { 0 } else { weight.equals(self.threshold) };
        let below = if self.threshold == 0 { 0 } else { weight.equals(self.threshold - 1) };
        for (bit, changed) in x.iter().zip(changed) {
            *changed = (at & bit) | (below & !bit);
        }
    }

    fn table_word(&self, word: usize, _: &mut [u64]) -> u64 {
        self.word_by_weight[word.count_ones() as usize]
    }
}

/// Lemma 8: a string is odd iff, for a strict majority of the positions holding a 1, strictly more than half of the 1s
/// appear no later than there. Evaluated as that program, not as a parity.
pub struct TwoMajority {
    pub n: usize,
}

impl BooleanFunction for TwoMajority {
    fn variables(&self) -> usize {
        self.n
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        let ones = weight_of_lanes(x);
        let (mut no_later, mut late) = (LaneCounter::default(), LaneCounter::default());
        for &bit in x {
            no_later.add(bit);
            late.add(bit & no_later.exceeds_half_of(&ones));
        }
        late.exceeds_half_of(&ones)
    }
}
