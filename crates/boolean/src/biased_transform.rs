//! The Fourier transform for bits that are 1 with probability p: f = sum over S of lambda_S phi_S, phi_S the product over i in S of phi(x_i),
//! where phi(0) = sqrt(p / (1 - p)) and phi(1) = -sqrt((1 - p) / p) have mean 0 and variance 1 (O'Donnell, Section 8.4).
//!
//! Level by level as [`crate::walsh`], with weights: entries a (bit 0) and b (bit 1) become their mean (1 - p) a + p b and
//! sqrt(p (1 - p)) (a - b), here both times two, so that p = 1/2 gives just what the Walsh transform does.

use crate::memory::Array;
use crate::simd::{Isa, Kernel, dispatch};
use crate::table::TruthTable;
use crate::walsh::block_len;
use rayon::prelude::*;

/// Entries worked on before moving on: half of a typical L1 data cache.
const L1_ENTRIES: usize = 2048;
/// Entries that a table of all bytes transforms at once.
const PER_BYTE: usize = 8;

/// 2^n lambda_S of (-1)^f, S = 0, 1, ..., 2^n - 1.
pub fn biased_transform(table: &TruthTable, p: f64) -> Array<f64> {
    let weights = Weights { zero: 2.0 * (1.0 - p), one: 2.0 * p, difference: 2.0 * (p * (1.0 - p)).sqrt() };
    let mut sums = Array::<f64>::zeros(table.rows() as usize);
    let by_byte: Vec<[f64; PER_BYTE]> = (0..=u8::MAX).map(|byte| weights.of_byte(byte)).collect();
    let block = block_len::<f64>().min(sums.len());
    sums.par_chunks_mut(block).enumerate().for_each(|(index, sums)| {
        let words = &table.words()[index * block / 64..];
        if sums.len() < PER_BYTE {
            sums.iter_mut().enumerate().for_each(|(row, sum)| *sum = sign(words[0] >> row & 1 == 1));
            return dispatch(Levels { sums, from: 1, weights });
        }
        for (byte, sums) in sums.as_chunks_mut::<PER_BYTE>().0.iter_mut().enumerate() {
            *sums = by_byte[(words[byte / 8] >> (byte % 8 * 8)) as usize & 0xFF];
        }
        dispatch(Levels { sums, from: PER_BYTE, weights });
    });
    let mut apart = block;
    while apart < sums.len() {
        apart = weights.levels_between(&mut sums, apart, |rows| {
            let [a, b, c, d] = rows.map(|row| row.par_chunks_mut(1 << 14));
            a.zip(b).zip(c).zip(d).for_each(|(((a, b), c), d)| dispatch(FourRows { rows: [a, b, c, d], weights }));
        });
    }
    sums
}

fn sign(one: bool) -> f64 {
    if one { -1.0 } else { 1.0 }
}

/// What entries are multiplied by.
#[derive(Clone, Copy)]
struct Weights {
    zero: f64,
    one: f64,
    difference: f64,
}

impl Weights {
    #[inline(always)]
    fn level(&self, a: f64, b: f64) -> (f64, f64) {
        (self.zero * a + self.one * b, self.difference * (a - b))
    }

    fn of_byte(self, byte: u8) -> [f64; PER_BYTE] {
        let mut sums = std::array::from_fn(|bit| sign(byte >> bit & 1 == 1));
        Levels { sums: &mut sums, from: 1, weights: self }.run(Isa::Baseline);
        sums
    }

    /// All levels between entries `apart` and more from each other.
    #[inline(always)]
    fn levels_from(self, sums: &mut [f64], mut apart: usize, isa: Isa) {
        while apart < sums.len() {
            apart = self.levels_between(sums, apart, |rows| FourRows { rows, weights: self }.run(isa));
        }
    }

    /// The two levels between entries `apart` and 2 * `apart` from each other, done by `four_rows`, or the one level that is left. Gives how
    /// far apart the entries of the next level are.
    #[inline(always)]
    fn levels_between(self, sums: &mut [f64], apart: usize, four_rows: impl Fn([&mut [f64]; 4])) -> usize {
        if 2 * apart == sums.len() {
            let (a, b) = sums.split_at_mut(apart);
            for (a, b) in a.iter_mut().zip(b) {
                (*a, *b) = self.level(*a, *b);
            }
            return 2 * apart;
        }
        for four in sums.chunks_exact_mut(4 * apart) {
            let (low, high) = four.split_at_mut(2 * apart);
            let ((a, b), (c, d)) = (low.split_at_mut(apart), high.split_at_mut(apart));
            four_rows([a, b, c, d]);
        }
        4 * apart
    }
}

/// All levels inside a block, from entries `from` apart.
struct Levels<'a> {
    sums: &'a mut [f64],
    from: usize,
    weights: Weights,
}

impl Kernel for Levels<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, isa: Isa) {
        for part in self.sums.chunks_mut(L1_ENTRIES) {
            self.weights.levels_from(part, self.from, isa);
        }
        self.weights.levels_from(self.sums, L1_ENTRIES, isa);
    }
}

/// Two levels between four rows of entries.
struct FourRows<'a> {
    rows: [&'a mut [f64]; 4],
    weights: Weights,
}

impl Kernel for FourRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: Isa) {
        let [a, b, c, d] = self.rows;
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            let ((e, f), (g, h)) = (self.weights.level(*a, *b), self.weights.level(*c, *d));
            (*a, *c) = self.weights.level(e, g);
            (*b, *d) = self.weights.level(f, h);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Named, Spectrum};

    /// Parity is the product of its signs 1 - 2p + 2 sqrt(p (1 - p)) phi, and AND is 1 - 2 times the product of its bits
    /// p - sqrt(p (1 - p)) phi: products of one factor per variable. Several blocks, in numbers of levels of both kinds.
    #[test]
    fn closed_forms_of_large_ones() {
        for (n, p) in [(15, 0.3f64), (16, 0.8), (17, 0.3), (18, 0.5), (19, 0.9)] {
            let deviation = (p * (1.0 - p)).sqrt();
            let scale = (0.5f64).powi(n as i32);
            let product = |set: usize, out: f64, inside: f64| {
                let size = set.count_ones() as i32;
                out.powi(n as i32 - size) * inside.powi(size)
            };
            let parity = |set| product(set, 1.0 - 2.0 * p, 2.0 * deviation);
            let and = |set| f64::from(u8::from(set == 0)) - 2.0 * product(set, p, -deviation);
            for (name, expected) in [(Named::Parity, &parity as &dyn Fn(usize) -> f64), (Named::And, &and)] {
                let found = biased_transform(&name.boolean_at(n).unwrap().table().unwrap(), p);
                for (set, sum) in found.iter().enumerate() {
                    assert!((sum * scale - expected(set)).abs() < 1e-14, "n={n} p={p} S={set}");
                }
            }
        }
    }

    #[test]
    fn p_of_one_half_is_the_walsh_transform() {
        for n in 1..=18 {
            let table = Named::Random(5).boolean_at(n).unwrap().table().unwrap();
            let scale = (0.5f64).powi(n as i32);
            let found = biased_transform(&table, 0.5);
            assert!(found.iter().map(|sum| sum * scale).eq(Spectrum::of(&table).unwrap().coefficients()), "n={n}");
        }
    }
}
