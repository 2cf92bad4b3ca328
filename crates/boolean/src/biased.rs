//! The p-biased measure: every bit is 1 with probability p, independently. All inputs with equally many ones weigh the same, so counts by
//! the number of ones are enough.

use crate::analysis::{Checks, SpectralMeasures};
use crate::bits::LOW_VARIABLES;
use crate::properties::{layers, used_words};
use crate::simd::{Isa, Kernel, dispatch};
use crate::table::TruthTable;
use rayon::prelude::*;
use serde::Serialize;

/// What becomes of some measures when bits are 1 with another probability than 1/2.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Biased {
    /// The probability that a bit is 1.
    pub p: f64,
    /// `E[f]`.
    pub mean: f64,
    /// `Var[f]`.
    pub variance: f64,
    /// The sum of the influences.
    pub average_sensitivity: f64,
    /// Influence of x1, x2, ...: the probability that flipping this bit of x changes f; a quarter of it for values 0 and 1.
    pub influences: Vec<f64>,
    /// Weights, norm, stability and largest coefficients of the spectrum in the basis that belongs to p, where they are asked for.
    #[serde(flatten)]
    pub spectral: SpectralMeasures,
    /// Self-checks of that spectrum.
    pub checks: Checks,
}

impl Biased {
    /// Of a Boolean function, values as ±1 or as 0 and 1; without its spectrum.
    pub fn of(table: &TruthTable, p: f64, zero_one: bool) -> Self {
        let n = table.variables();
        let counts = counts(table);
        // Of rows with so many ones among `bits` of them.
        let weighted = |counts: &[u64], bits: usize| -> f64 {
            let weight = |ones: usize| p.powi(ones as i32) * (1.0 - p).powi((bits - ones) as i32);
            counts.iter().take(bits + 1).enumerate().map(|(ones, &count)| count as f64 * weight(ones)).sum()
        };
        let ones = weighted(&counts.ones, n).clamp(0.0, 1.0);
        let factor = if zero_one { 0.25 } else { 1.0 };
        let influences: Vec<f64> = counts.changes.iter().rev().map(|pairs| factor * weighted(pairs, n - 1)).collect();
        Self {
            p,
            mean: if zero_one { ones } else { 1.0 - 2.0 * ones },
            variance: factor * 4.0 * ones * (1.0 - ones),
            average_sensitivity: influences.iter().sum(),
            influences,
            spectral: SpectralMeasures::default(),
            checks: Checks::default(),
        }
    }
}

/// Rows by their number of ones.
#[derive(Clone)]
struct Counts {
    /// Rows with f = 1.
    ones: Vec<u64>,
    /// For each bit of a row, the least significant first: pairs of rows that differ in it and in f, by the ones they share.
    changes: Vec<Vec<u64>>,
}

impl Counts {
    fn zero(n: usize) -> Self {
        Self { ones: vec![0; n + 1], changes: vec![vec![0; n + 1]; n] }
    }

    fn add(mut self, other: Self) -> Self {
        let all = |counts: &mut Vec<u64>, others: &[u64]| counts.iter_mut().zip(others).for_each(|(a, b)| *a += b);
        all(&mut self.ones, &other.ones);
        self.changes.iter_mut().zip(&other.changes).for_each(|(own, other)| all(own, other));
        self
    }
}

fn counts(table: &TruthTable) -> Counts {
    /// Words counted together.
    const PART: usize = 1 << 10;
    let (n, words) = (table.variables(), used_words(table));
    let part = |part: usize| {
        let own = part * PART..words.len().min((part + 1) * PART);
        dispatch(CountPart { n, words, own })
    };
    (0..words.len().div_ceil(PART)).into_par_iter().map(part).reduce(|| Counts::zero(n), Counts::add)
}

/// Counts in some of the words.
struct CountPart<'a> {
    n: usize,
    words: &'a [u64],
    own: std::ops::Range<usize>,
}

impl Kernel for CountPart<'_> {
    type Output = Counts;

    #[inline(always)]
    fn run(self, _: Isa) -> Counts {
        let Self { n, words, own } = self;
        let layers = layers();
        let mut counts = Counts::zero(n);
        for index in own {
            let (word, above) = (words[index], index.count_ones() as usize);
            let add = |to: &mut [u64], bits: u64| {
                if bits != 0 {
                    to[above..]
                        .iter_mut()
                        .zip(&layers)
                        .for_each(|(to, layer)| *to += u64::from((bits & layer).count_ones()));
                }
            };
            add(&mut counts.ones, word);
            for (bit, changes) in counts.changes.iter_mut().enumerate() {
                match bit {
                    0..6 => add(changes, (word ^ word >> (1 << bit)) & !LOW_VARIABLES[bit]),
                    _ if index >> (bit - 6) & 1 == 0 => add(changes, word ^ words[index | 1 << (bit - 6)]),
                    _ => {}
                }
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flip_counts;
    use crate::samples::{random, small, table};

    /// Sums over all inputs with their probabilities.
    fn by_definition(table: &TruthTable, p: f64) -> (f64, Vec<f64>) {
        let n = table.variables();
        let probability = |row: u64| (0..n).map(|bit| if row >> bit & 1 == 1 { p } else { 1.0 - p }).product::<f64>();
        let value = |row: u64| if table.get(row) { -1.0 } else { 1.0 };
        let mean = (0..table.rows()).map(|row| probability(row) * value(row)).sum();
        let influence = |i: usize| {
            let flip = 1u64 << (n - 1 - i);
            (0..table.rows()).filter(|row| value(*row) != value(row ^ flip)).map(probability).sum()
        };
        (mean, (0..n).map(influence).collect())
    }

    #[test]
    fn all_functions_of_at_most_3_variables_and_random_ones_of_4_to_12() {
        for table in small().chain((4..=12).map(|n| random(n as u64, n))) {
            for p in [0.0, 0.2, 0.5, 0.83, 1.0] {
                let (mean, influences) = by_definition(&table, p);
                let found = Biased::of(&table, p, false);
                let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "p={p} {found:?}");
                close(found.mean, mean);
                close(found.variance, 1.0 - mean * mean);
                found.influences.iter().zip(&influences).for_each(|(a, b)| close(*a, *b));
                close(found.average_sensitivity, influences.iter().sum());
                let in_01 = Biased::of(&table, p, true);
                close(in_01.mean, (1.0 - mean) / 2.0);
                close(in_01.variance, found.variance / 4.0);
                close(in_01.average_sensitivity, found.average_sensitivity / 4.0);
            }
        }
    }

    #[test]
    fn closed_forms_of_larger_ones() {
        let and = Biased::of(&table("and", 19), 0.9, true);
        assert!((and.mean - 0.9f64.powi(19)).abs() < 1e-15);
        let parity = Biased::of(&table("parity", 18), 0.3, false);
        assert!((parity.mean - 0.4f64.powi(18)).abs() < 1e-13, "{}", parity.mean);
        assert!((parity.average_sensitivity - 18.0).abs() < 1e-11, "{}", parity.average_sensitivity);
        // At p = 1/2 it is the uniform measure.
        let random = random(3, 18);
        let flips = flip_counts(&random);
        let found = Biased::of(&random, 0.5, false);
        flips.iter().zip(&found.influences).for_each(|(a, b)| assert!((*a as f64 / 262_144.0 - b).abs() < 1e-12));
    }
}
