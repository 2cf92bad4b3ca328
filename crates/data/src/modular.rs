//! Modular arithmetic: a table of p x p results, of which a network sees a part.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{DataError, Stream};

/// The largest modulus that can be asked for: its table has 90,000 entries.
pub const LARGEST_MODULUS: usize = 300;

/// What is learnt: f(a, b) mod p for all a and b below p.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModularTask {
    /// p: how many numbers, and how many results, there are.
    pub modulus: usize,
    /// f.
    pub operation: Polynomial,
}

/// A polynomial in a and b with whole coefficients, such as `a+b`, `a-b`, `a*b` or `a^2+a*b+3`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Polynomial {
    /// As it was written, without blanks.
    text: String,
    terms: Vec<Term>,
}

/// coefficient * a^powers.0 * b^powers.1
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Term {
    coefficient: i64,
    powers: (u32, u32),
}

/// Some of the pairs (a, b), with their results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs {
    /// `[count]`
    pub a: Vec<usize>,
    /// `[count]`
    pub b: Vec<usize>,
    /// `[count]`: f(a, b) mod p.
    pub results: Vec<usize>,
}

impl ModularTask {
    /// Whether there is such a table.
    pub fn check(&self) -> Result<(), DataError> {
        match (2..=LARGEST_MODULUS).contains(&self.modulus) {
            true => Ok(()),
            false => Err(wrong(format!("the modulus must be from 2 to {LARGEST_MODULUS}, not {}", self.modulus))),
        }
    }

    /// How many of the p x p pairs a share of them is, rounded down.
    pub fn pairs_in(&self, share: f64) -> usize {
        (share * (self.modulus * self.modulus) as f64) as usize
    }

    /// All pairs in random order, cut in two: the first `share` of them to train on, the others to test on. Neither may be empty.
    pub fn split(&self, share: f64, stream: &mut Stream) -> Result<(Pairs, Pairs), DataError> {
        self.check()?;
        let (p, train) = (self.modulus, self.pairs_in(share));
        if train == 0 || train >= p * p {
            return Err(wrong(format!(
                "a share of {share} of {p} x {p} pairs leaves none to train on, or none to test on"
            )));
        }
        let mut order: Vec<usize> = (0..p * p).collect();
        stream.shuffle(&mut order);
        let pairs = |order: &[usize]| Pairs {
            a: order.iter().map(|pair| pair / p).collect(),
            b: order.iter().map(|pair| pair % p).collect(),
            results: order.iter().map(|pair| self.operation.at(pair / p, pair % p, p)).collect(),
        };
        Ok((pairs(&order[..train]), pairs(&order[train..])))
    }
}

impl Pairs {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.results.len()
    }
}

impl Polynomial {
    /// Its value at (a, b), from 0 to modulus - 1.
    pub fn at(&self, a: usize, b: usize, modulus: usize) -> usize {
        let modulus = modulus as i64; // at most 300: no product below overflows
        let power =
            |base: usize, exponent: u32| (0..exponent).fold(1 % modulus, |value, _| value * base as i64 % modulus);
        let term = |term: &Term| {
            let (in_a, in_b) = term.powers;
            (term.coefficient % modulus) * power(a, in_a) % modulus * power(b, in_b) % modulus
        };
        self.terms.iter().map(term).sum::<i64>().rem_euclid(modulus) as usize
    }
}

impl FromStr for Polynomial {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self, DataError> {
        let text: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        let mut terms = Vec::new();
        let mut rest = text.as_str();
        let mut sign = 1;
        loop {
            if let Some(after) = rest.strip_prefix('-') {
                (sign, rest) = (-sign, after);
            }
            let end = rest.find(['+', '-']).unwrap_or(rest.len());
            let term = read_term(&rest[..end], sign);
            terms.push(term.ok_or_else(|| {
                wrong(format!(
                    "\"{text}\" is not an operation: write a polynomial in a and b, such as a+b, a-b, a*b or a^2+a*b+3"
                ))
            })?);
            match rest[end..].chars().next() {
                None => return Ok(Polynomial { text, terms }),
                Some('-') => (sign, rest) = (-1, &rest[end + 1..]),
                Some(_) => (sign, rest) = (1, &rest[end + 1..]),
            }
        }
    }
}

/// Factors joined by `*`, each a, b or a whole number, perhaps with a `^` and an exponent.
fn read_term(text: &str, sign: i64) -> Option<Term> {
    let mut term = Term { coefficient: sign, powers: (0, 0) };
    for factor in text.split('*') {
        let (base, exponent) = match factor.split_once('^') {
            Some((base, exponent)) => (base, exponent.parse().ok().filter(|exponent: &u32| *exponent <= 1000)?),
            None => (factor, 1),
        };
        match base {
            "a" => term.powers.0 = term.powers.0.checked_add(exponent)?,
            "b" => term.powers.1 = term.powers.1.checked_add(exponent)?,
            number => {
                let number: i64 = number.parse::<u32>().ok()?.into();
                term.coefficient = term.coefficient.checked_mul(number.checked_pow(exponent)?)?;
            }
        }
    }
    Some(term)
}

impl fmt::Display for Polynomial {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Polynomial {
    type Error = DataError;

    fn try_from(text: String) -> Result<Self, DataError> {
        text.parse()
    }
}

impl From<Polynomial> for String {
    fn from(polynomial: Polynomial) -> String {
        polynomial.text
    }
}

fn wrong(problem: String) -> DataError {
    DataError::Modular(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polynomial(text: &str) -> Polynomial {
        text.parse().unwrap()
    }

    #[test]
    fn operations_are_what_they_say() {
        type Expected = fn(i64, i64) -> i64;
        let cases: [(&str, Expected); 7] = [
            ("a+b", |a, b| a + b),
            ("a - b", |a, b| a - b),
            ("a*b", |a, b| a * b),
            ("a^2+b^2", |a, b| a * a + b * b),
            ("-2*a^3+a*b-7", |a, b| -2 * a * a * a + a * b - 7),
            ("2^3*a--b", |a, b| 8 * a + b),
            ("a*b*a^0", |a, b| a * b),
        ];
        for (text, expected) in cases {
            for modulus in [2, 12, 113] {
                for (a, b) in [(0, 0), (1, 1), (5 % modulus, 11 % modulus), (modulus - 1, modulus - 2)] {
                    let found = polynomial(text).at(a, b, modulus) as i64;
                    assert_eq!(
                        found,
                        expected(a as i64, b as i64).rem_euclid(modulus as i64),
                        "{text} at {a}, {b} mod {modulus}"
                    );
                }
            }
        }
        assert_eq!(polynomial(" a + b ").to_string(), "a+b");
        assert_eq!(polynomial("a^1000").at(299, 0, 300), 1);
    }

    #[test]
    fn a_split_has_every_pair_once() {
        let task = ModularTask { modulus: 7, operation: polynomial("a*b+1") };
        let (train, test) = task.split(0.3, &mut Stream::new(0, "split", 0)).unwrap();
        assert_eq!((train.count(), test.count()), (14, 35));
        let mut all: Vec<(usize, usize)> =
            [&train, &test].iter().flat_map(|set| set.a.iter().copied().zip(set.b.iter().copied())).collect();
        all.sort_unstable();
        assert_eq!(all, (0..49).map(|pair| (pair / 7, pair % 7)).collect::<Vec<_>>());
        for set in [&train, &test] {
            assert!((0..set.count()).all(|at| set.results[at] == (set.a[at] * set.b[at] + 1) % 7));
        }
        assert_eq!(task.split(0.3, &mut Stream::new(0, "split", 0)).unwrap().0, train);
        assert_ne!(task.split(0.3, &mut Stream::new(1, "split", 0)).unwrap().0, train);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "a+", "c", "a**b", "a^", "a^b", "a^-1", "a/b", "1.5*a", "+a", "99999999999*a", "a^1001", "9^1000"]
        {
            let refusal = text.parse::<Polynomial>().unwrap_err().to_string();
            assert!(refusal.contains("such as a+b"), "{text}: {refusal}");
        }
        let task = |modulus| ModularTask { modulus, operation: polynomial("a+b") };
        assert!(task(1).check().unwrap_err().to_string().contains("from 2 to 300"));
        assert!(task(301).check().is_err());
        for share in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(task(5).split(share, &mut Stream::new(0, "split", 0)).is_err(), "{share}");
        }
    }
}
