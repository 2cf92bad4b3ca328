//! What can be analysed: Boolean functions that are evaluated 64 inputs at a time, and real-valued ones.

use crate::bits::{Bits, variables_of_word};
use crate::table::{LINE_WORDS, Line, TruthTable};
use crate::{Result, memory, stop};
use rayon::prelude::*;

/// A function {0,1}^n -> {0,1}, evaluated on 64 inputs at once.
pub trait BooleanFunction: Send + Sync {
    /// n, the number of variables.
    fn variables(&self) -> usize;

    /// The values on 64 inputs: bit l of `x[i]` is x_{i+1} of input l; bit l of the result is f of input l.
    fn lanes(&self, x: &[u64]) -> u64;

    /// Where single flips change the value: bit l of `changed[i]` tells whether flipping x_{i+1} of input l changes f.
    /// `x` comes back as it was. Functions whose structure gives the answer without n evaluations override this.
    fn flips(&self, x: &mut [u64], changed: &mut [u64]) {
        let before = self.lanes(x);
        for i in 0..x.len() {
            x[i] = !x[i];
            changed[i] = self.lanes(x) ^ before;
            x[i] = !x[i];
        }
    }

    /// The word of the truth table that holds rows 64w..64w+64; `scratch` has one word a variable.
    fn table_word(&self, word: usize, scratch: &mut [u64]) -> u64 {
        variables_of_word(word, scratch);
        self.lanes(scratch)
    }

    /// The whole truth table, built on all cores.
    fn table(&self) -> Result<TruthTable> {
        let n = self.variables();
        let mut table = TruthTable::zeros(n)?;
        let words = (1usize << n).div_ceil(64);
        let fill = |(index, line): (usize, &mut Line)| {
            stop::check();
            let mut scratch = [0; 64];
            for (word, index) in line.0.iter_mut().zip(index * LINE_WORDS..words) {
                *word = self.table_word(index, &mut scratch[..n]);
            }
        };
        table.lines_mut().par_iter_mut().enumerate().with_min_len(256).for_each(fill);
        table.clear_padding();
        Ok(table)
    }
}

/// A function {0,1}^n -> R.
pub trait RealFunction: Send + Sync {
    /// n, the number of variables.
    fn variables(&self) -> usize;

    /// The value on one input.
    fn value(&self, x: &Bits) -> f64;
}

/// Any closure over bits is a function, once its number of variables is said.
pub struct Closure<F> {
    n: usize,
    f: F,
}

/// Makes a Boolean function of `n` variables from a closure: `boolean(3, |x| x.get(0) ^ x.get(2))`.
pub fn boolean<F: Fn(&Bits) -> bool + Send + Sync>(n: usize, f: F) -> Result<Closure<F>> {
    memory::check_variables(n)?;
    Ok(Closure { n, f })
}

/// Makes a real function of `n` variables from a closure: `real(5, |x| x.ones() as f64 / 5.0)`.
pub fn real<F: Fn(&Bits) -> f64 + Send + Sync>(n: usize, f: F) -> Result<Closure<F>> {
    memory::check_variables(n)?;
    Ok(Closure { n, f })
}

impl<F: Fn(&Bits) -> bool + Send + Sync> BooleanFunction for Closure<F> {
    fn variables(&self) -> usize {
        self.n
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        let mut words = vec![0u64; self.n.div_ceil(64)];
        let mut values = 0;
        for lane in 0..64 {
            gather_lane(x, lane, &mut words);
            values |= u64::from((self.f)(&Bits::new(&words, self.n))) << lane;
        }
        values
    }
}

impl<F: Fn(&Bits) -> f64 + Send + Sync> RealFunction for Closure<F> {
    fn variables(&self) -> usize {
        self.n
    }

    fn value(&self, x: &Bits) -> f64 {
        (self.f)(x)
    }
}

/// Packs input `lane` of the 64 inputs `x` (one word a variable) into `words`, as [`Bits`] wants it.
pub(crate) fn gather_lane(x: &[u64], lane: usize, words: &mut [u64]) {
    words.fill(0);
    for (i, variable) in x.iter().enumerate() {
        words[i / 64] |= (variable >> lane & 1) << (i % 64);
    }
}
