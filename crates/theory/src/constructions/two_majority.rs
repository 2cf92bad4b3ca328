//! PARITY as two nested majorities (Lemma 8, Fact 1): a string is odd iff for a strict majority of the positions holding a 1,
//! strictly more than half of the 1s stand no later than there.

use pudica_boolean::Named;
use pudica_data::{Bits, Stream, Target};
use serde::Serialize;

use crate::{Result, TheoryError};

/// The longest strings all of which are tried.
const LARGEST_EXHAUSTIVE: usize = 20;

/// The program, in the manner of RASP.
pub const PROGRAM: &str = "\
ones       = count(x = 1)
no_later   = count(j <= i and x_j = 1)          at every position i
inner      = 2 * no_later > ones                at every position i: a majority
odd        = 2 * count(x = 1 and inner) > ones  a majority of majorities";

/// How the program compares with parity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwoMajority {
    /// Bits in a string.
    pub n: usize,
    /// Strings tried.
    pub strings: u64,
    /// Whether they are all there are.
    pub exhaustive: bool,
    /// Strings on which both agree.
    pub agreeing: u64,
    /// as_n of one majority of n bits; two of them nested make n.
    pub majority_sensitivity: f64,
}

impl TwoMajority {
    /// Runs the program on all strings up to n = 20, on `samples` uniform ones beyond.
    pub fn check(n: usize, samples: usize, seed: u64) -> Result<Self> {
        let exhaustive = n <= LARGEST_EXHAUSTIVE;
        let (strings, agreeing) = if exhaustive {
            let (program, parity) = (Named::TwoMajority.boolean_at(n)?.table()?, Named::Parity.boolean_at(n)?.table()?);
            let differing: u64 =
                program.words().iter().zip(parity.words()).map(|(a, b)| u64::from((a ^ b).count_ones())).sum();
            (program.rows(), program.rows() - differing)
        } else {
            let strings = Bits::uniform(samples, n, &mut Stream::new(seed, "two-majority", 0))?;
            let [program, parity] = ["two-majority", "parity"].map(|name| Target::parse(name, n)?.labels(&strings));
            let agreeing = program?.iter().zip(parity?).filter(|(a, b)| **a == *b).count();
            (samples as u64, agreeing as u64)
        };
        Ok(Self { n, strings, exhaustive, agreeing, majority_sensitivity: majority_sensitivity(n) })
    }
}

/// as_n of MAJORITY: n C(n-1, floor(n/2)) / 2^(n-1), in logarithms.
pub(super) fn majority_sensitivity(n: usize) -> f64 {
    let ln_factorial = |n: usize| (1..=n).map(|k| (k as f64).ln()).sum::<f64>();
    let half = n / 2;
    let ln = ln_factorial(n - 1) - ln_factorial(half) - ln_factorial(n - 1 - half) - (n - 1) as f64 * 2f64.ln();
    n as f64 * ln.exp()
}

/// The program on one string, step by step: the table in the proof of Lemma 8.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worked {
    /// The positions holding a 1, from 1.
    pub positions: Vec<usize>,
    /// A: how many 1s stand no later.
    pub no_later: Vec<usize>,
    /// B: how many stand later.
    pub later: Vec<usize>,
    /// A > B.
    pub inner: Vec<bool>,
    /// Whether a strict majority of them says yes: the string is odd.
    pub odd: bool,
}

impl Worked {
    /// Works a string of 0 and 1 out.
    pub fn of(string: &str) -> Result<Self> {
        if let Some(other) = string.chars().find(|c| !"01".contains(*c)) {
            return Err(TheoryError::argument(format!(
                "a string of bits has 0 and 1 only, but this one has '{other}'"
            )));
        }
        let positions: Vec<usize> = string.chars().enumerate().filter(|(_, c)| *c == '1').map(|(i, _)| i + 1).collect();
        let ones = positions.len();
        let no_later: Vec<usize> = (1..=ones).collect();
        let later: Vec<usize> = no_later.iter().map(|a| ones - a).collect();
        let inner: Vec<bool> = no_later.iter().zip(&later).map(|(a, b)| a > b).collect();
        let odd = 2 * inner.iter().filter(|yes| **yes).count() > ones;
        Ok(Self { positions, no_later, later, inner, odd })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_parity_on_all_short_and_some_long_strings() {
        for n in [1, 2, 3, 12] {
            let found = TwoMajority::check(n, 0, 0).unwrap();
            assert_eq!((found.strings, found.agreeing, found.exhaustive), (1 << n, 1 << n, true));
        }
        let long = TwoMajority::check(333, 500, 0).unwrap();
        assert_eq!((long.strings, long.agreeing, long.exhaustive), (500, 500, false));
    }

    #[test]
    fn the_worked_table_is_the_proofs() {
        let even = Worked::of("0101").unwrap();
        assert_eq!((even.positions, even.inner, even.odd), (vec![2, 4], vec![false, true], false));
        let odd = Worked::of("111").unwrap();
        assert_eq!(
            (odd.no_later, odd.later, odd.inner, odd.odd),
            (vec![1, 2, 3], vec![2, 1, 0], vec![false, true, true], true)
        );
        assert!(!Worked::of("000").unwrap().odd);
        assert!(Worked::of("01x").unwrap_err().to_string().contains("has 'x'"));
    }

    #[test]
    fn the_majority_has_its_closed_form() {
        assert!((majority_sensitivity(5) - 5.0 * 6.0 / 16.0).abs() < 1e-12);
        assert!((majority_sensitivity(1) - 1.0).abs() < 1e-12);
        for n in [4, 7] {
            let table = Named::Majority.boolean_at(n).unwrap().table().unwrap();
            let exact = pudica_boolean::sensitivity_profile(&table).average_sensitivity();
            assert!((majority_sensitivity(n) - exact).abs() < 1e-9, "{n}");
        }
    }
}
