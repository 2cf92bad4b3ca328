//! The catalogue of named functions.

mod circuits;
mod parities;
mod random;
mod thresholds;

use crate::bits::Bits;
use crate::error::{did_you_mean, shortened};
use crate::function::{BooleanFunction, RealFunction, real};
use crate::{Error, Result, formula, memory};
use std::fmt;
use std::str::FromStr;

/// A function that has a name, for any number of variables it is defined for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The sum of all bits, modulo 2.
    Parity,
    /// The sum of the first K bits, modulo 2.
    KParity(usize),
    /// 1 if more than half of the bits are 1; a tie gives 0.
    Majority,
    /// The bit x_I.
    Dictator(usize),
    /// The mean of the bits, a real number.
    Mean,
    /// 1 if all bits are 1.
    And,
    /// 1 if any bit is 1.
    Or,
    /// 1 if at least T bits are 1.
    Threshold(usize),
    /// A truth table drawn uniformly at random.
    Random(u64),
    /// OR of ANDs over consecutive blocks of W bits.
    Tribes(usize),
    /// The data bit that the K address bits point at.
    Address(usize),
    /// The inner product modulo 2 of the first half of the bits with the second.
    InnerProduct,
    /// Parity, computed by the two nested majorities of Lemma 8 of Hahn & Rofin.
    TwoMajority,
    /// The sum of the products of K consecutive signs, cyclically; a real number.
    Cyclic(usize),
    /// x1 x2 - 1.25 x2 x3 + 1.5 x3 x1 of signs, a real number.
    Triangle,
}

/// Each function as it is typed, and what it is.
pub const CATALOGUE: &[(&str, &str)] = &[
    ("parity", "the sum of all bits modulo 2"),
    ("kparity:K", "the sum of the first K bits modulo 2"),
    ("majority", "1 if more bits are 1 than 0 (a tie gives 0)"),
    ("first", "the bit x1, the same as dictator:1"),
    ("dictator:I", "the bit xI"),
    ("mean", "the mean of the bits (real-valued)"),
    ("and", "1 if all bits are 1"),
    ("or", "1 if any bit is 1"),
    ("threshold:T", "1 if at least T bits are 1"),
    ("random:SEED", "a uniformly random truth table, the same for the same SEED and n"),
    ("tribes:W", "1 if all W bits of any block are 1 (n a multiple of W)"),
    ("address:K", "x1..xK point at one of the 2^K bits that follow (n = K + 2^K)"),
    ("inner-product", "x1 x_{n/2+1} + ... + x_{n/2} x_n modulo 2 (n even)"),
    ("two-majority", "parity as the two nested majorities of Lemma 8 (Hahn & Rofin)"),
    ("cyclic:K", "(1 - g) / 2 for g = the sum of all products of K consecutive signs, cyclically (real-valued)"),
    ("triangle", "(1 - g) / 2 for g = s1 s2 - 1.25 s2 s3 + 1.5 s3 s1 of the signs (real-valued; Abbe et al.)"),
];

/// A named function at a given n.
pub enum Function {
    /// Values in {0,1}.
    Boolean(Box<dyn BooleanFunction>),
    /// Values in R.
    Real(Box<dyn RealFunction>),
}

impl Named {
    /// The number of variables, where the name alone decides it (`address:K`).
    pub fn natural_variables(&self) -> Option<usize> {
        match self {
            Self::Address(k) => 1usize.checked_shl(*k as u32).and_then(|data| data.checked_add(*k)),
            _ => None,
        }
    }

    /// The function of `n` variables, or why there is none.
    pub fn at(self, n: usize) -> Result<Function> {
        let refuse = |why: String| Err(Error::Variables(format!("{self} is not defined for n={n}: {why}")));
        Ok(Function::Real(match self {
            Self::Mean => Box::new(real(n, move |x: &Bits| x.ones() as f64 / n as f64)?),
            Self::Cyclic(k) if k > n => return refuse(format!("K={k} is more than n")),
            Self::Cyclic(k) => Box::new(real(n, move |x: &Bits| of_signs(cyclic(x, k)))?),
            Self::Triangle if n < 3 => return refuse("it has three variables".into()),
            Self::Triangle => Box::new(real(n, move |x: &Bits| of_signs(triangle(x)))?),
            _ => return self.boolean_at(n).map(Function::Boolean),
        }))
    }

    /// The Boolean function of `n` variables, or why there is none.
    pub fn boolean_at(self, n: usize) -> Result<Box<dyn BooleanFunction>> {
        memory::check_variables(n)?;
        let refuse = |why: String| Err(Error::Variables(format!("{self} is not defined for n={n}: {why}")));
        Ok(match self {
            Self::Parity => Box::new(parities::RangeParity::new(n, 0..n)),
            Self::KParity(k) if k > n => return refuse(format!("K={k} is more than n")),
            Self::KParity(k) => Box::new(parities::RangeParity::new(n, 0..k)),
            Self::Dictator(i) if i > n => return refuse(format!("there is no x{i}")),
            Self::Dictator(i) => Box::new(parities::RangeParity::new(n, i - 1..i)),
            Self::Majority => Box::new(thresholds::Threshold::new(n, n / 2 + 1)),
            Self::And => Box::new(thresholds::Threshold::new(n, n)),
            Self::Or => Box::new(thresholds::Threshold::new(n, 1)),
            Self::Threshold(t) if t > n + 1 => return refuse(format!("T={t} is more than n+1")),
            Self::Threshold(t) => Box::new(thresholds::Threshold::new(n, t)),
            Self::TwoMajority => Box::new(thresholds::TwoMajority { n }),
            Self::Random(seed) => Box::new(random::RandomTable::new(n, seed)),
            Self::Tribes(w) if !n.is_multiple_of(w) => return refuse(format!("n must be a multiple of W={w}")),
            Self::Tribes(width) => Box::new(circuits::Tribes { n, width }),
            Self::Address(k) if self.natural_variables() != Some(n) => {
                let natural = self.natural_variables().map_or("too many".into(), |m| m.to_string());
                return refuse(format!("K={k} address bits and their data make {natural} variables"));
            }
            Self::Address(address_bits) => Box::new(circuits::Address { address_bits }),
            Self::InnerProduct if n % 2 == 1 => return refuse("n must be even".into()),
            Self::InnerProduct => Box::new(circuits::InnerProduct { n }),
            Self::Mean | Self::Cyclic(_) | Self::Triangle => return refuse("its values are real, not Boolean".into()),
        })
    }
}

/// A value on the scale of signs, where bit 0 is +1 and bit 1 is -1, on the scale of bits.
fn of_signs(value: f64) -> f64 {
    (1.0 - value) / 2.0
}

/// The sign of x_{i+1}.
fn sign(x: &Bits, i: usize) -> f64 {
    if x.get(i) { -1.0 } else { 1.0 }
}

fn cyclic(x: &Bits, k: usize) -> f64 {
    let n = x.len();
    (0..n).map(|start| (start..start + k).map(|i| sign(x, i % n)).product::<f64>()).sum()
}

fn triangle(x: &Bits) -> f64 {
    let [a, b, c] = [0, 1, 2].map(|i| sign(x, i));
    a * b - 1.25 * b * c + 1.5 * c * a
}

/// The name without its parameter: `kparity` of `kparity:3` and of `kparity:K`.
fn base(text: &str) -> &str {
    text.split(':').next().unwrap_or(text).trim_end()
}

/// Whether this is the name of a function of the catalogue, with whatever parameter.
pub(crate) fn is_named(text: &str) -> bool {
    CATALOGUE.iter().any(|(entry, _)| base(entry) == base(text))
}

impl FromStr for Named {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text, None)
    }
}

impl Named {
    /// The function of this name. Its parameter may be a formula over n (`threshold:n/3`), which needs `n`.
    pub fn parse(text: &str, n: Option<usize>) -> Result<Self> {
        let (name, parameter) = (base(text), text.split_once(':').map(|(_, parameter)| parameter.trim()));
        let Some(&(usage, _)) = CATALOGUE.iter().find(|(entry, _)| base(entry) == name) else {
            let known = CATALOGUE.iter().map(|(entry, _)| base(entry)).chain(["expr", "table"]);
            return Err(Error::UnknownFunction { given: text.into(), hint: did_you_mean(name, known) });
        };
        let letter = usage.split_once(':').map(|(_, letter)| letter);
        let number: u64 = match (letter, parameter) {
            (None, None) => 0,
            (None, Some(_)) => return Err(Error::Parameter(format!("'{name}' takes no parameter: write '{usage}'"))),
            (Some(letter), None) => {
                return Err(Error::Parameter(format!(
                    "'{name}' needs its {letter}: write '{usage}', as in '{name}:3'"
                )));
            }
            (Some(letter), Some(given)) => formula::whole(given, n).map_err(|why| {
                let given = shortened(given, 40);
                let problem = format!("'{given}' is not a whole number {letter} ({why})");
                Error::Parameter(format!("{problem}: write '{usage}', as in '{name}:3' or '{name}:n/2'"))
            })?,
        };
        let size = usize::try_from(number).unwrap_or(usize::MAX);
        let positive = |make: fn(usize) -> Self| match size {
            0 => Err(Error::Parameter(format!("'{text}': {} must be at least 1", letter.unwrap_or("it")))),
            _ => Ok(make(size)),
        };
        match name {
            "parity" => Ok(Self::Parity),
            "kparity" => Ok(Self::KParity(size)),
            "majority" => Ok(Self::Majority),
            "first" => Ok(Self::Dictator(1)),
            "dictator" => positive(Self::Dictator),
            "mean" => Ok(Self::Mean),
            "and" => Ok(Self::And),
            "or" => Ok(Self::Or),
            "threshold" => Ok(Self::Threshold(size)),
            "random" => Ok(Self::Random(number)),
            "tribes" => positive(Self::Tribes),
            "address" => positive(Self::Address),
            "inner-product" => Ok(Self::InnerProduct),
            "two-majority" => Ok(Self::TwoMajority),
            "cyclic" => positive(Self::Cyclic),
            "triangle" => Ok(Self::Triangle),
            _ => unreachable!("every name of the catalogue is matched above"),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Parity => write!(f, "parity"),
            Self::KParity(k) => write!(f, "kparity:{k}"),
            Self::Majority => write!(f, "majority"),
            Self::Dictator(1) => write!(f, "first"),
            Self::Dictator(i) => write!(f, "dictator:{i}"),
            Self::Mean => write!(f, "mean"),
            Self::And => write!(f, "and"),
            Self::Or => write!(f, "or"),
            Self::Threshold(t) => write!(f, "threshold:{t}"),
            Self::Random(seed) => write!(f, "random:{seed}"),
            Self::Tribes(w) => write!(f, "tribes:{w}"),
            Self::Address(k) => write!(f, "address:{k}"),
            Self::InnerProduct => write!(f, "inner-product"),
            Self::TwoMajority => write!(f, "two-majority"),
            Self::Cyclic(k) => write!(f, "cyclic:{k}"),
            Self::Triangle => write!(f, "triangle"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TruthTable;

    /// What each function is, said once more, one input at a time.
    fn plain(name: Named, x: &Bits) -> bool {
        let n = x.len();
        let bit = |i: usize| x.get(i - 1);
        match name {
            Named::Parity | Named::TwoMajority => x.ones() % 2 == 1,
            Named::KParity(k) => (1..=k).filter(|&i| bit(i)).count() % 2 == 1,
            Named::Majority => 2 * x.ones() > n,
            Named::Dictator(i) => bit(i),
            Named::And => (1..=n).all(bit),
            Named::Or => (1..=n).any(bit),
            Named::Threshold(t) => x.ones() >= t,
            Named::Tribes(w) => (0..n / w).any(|tribe| (1..=w).all(|i| bit(tribe * w + i))),
            Named::Address(k) => bit(k + 1 + (1..=k).fold(0, |a, i| 2 * a + usize::from(bit(i)))),
            Named::InnerProduct => (1..=n / 2).filter(|&i| bit(i) & bit(n / 2 + i)).count() % 2 == 1,
            Named::Mean | Named::Cyclic(_) | Named::Triangle | Named::Random(_) => {
                unreachable!("not Boolean, or without another definition")
            }
        }
    }

    #[test]
    fn every_function_is_what_its_description_says() {
        for (name, n) in [
            ("parity", 1),
            ("parity", 10),
            ("kparity:0", 4),
            ("kparity:3", 8),
            ("kparity:9", 9),
            ("majority", 7),
            ("majority", 10),
            ("first", 9),
            ("dictator:8", 8),
            ("and", 4),
            ("or", 10),
            ("threshold:0", 3),
            ("threshold:4", 9),
            ("tribes:3", 9),
            ("tribes:2", 10),
            ("address:1", 3),
            ("address:2", 6),
            ("address:3", 11),
            ("inner-product", 8),
            ("two-majority", 1),
            ("two-majority", 12),
        ] {
            let named: Named = name.parse().unwrap();
            let table = named.boolean_at(n).unwrap().table().unwrap();
            assert_eq!(table, TruthTable::from_fn(n, |x| plain(named, x)).unwrap(), "{name} n={n}");
            assert_eq!(named.to_string(), name);
        }
    }

    #[test]
    fn lemma_8_the_two_majority_program_is_parity_to_n_20() {
        for n in 1..=20 {
            let program = Named::TwoMajority.boolean_at(n).unwrap().table().unwrap();
            assert_eq!(program, Named::Parity.boolean_at(n).unwrap().table().unwrap(), "n={n}");
        }
    }

    /// Their coefficients on the scale of signs are those of their descriptions, and there are no others.
    #[test]
    fn real_functions_of_signs_have_the_coefficients_they_say() {
        let coefficients = |name: &str, n: usize| {
            let Function::Real(f) = name.parse::<Named>().unwrap().at(n).unwrap() else { panic!("{name} is real") };
            let values: Vec<f64> =
                crate::RealTable::of(f.as_ref()).unwrap().values().iter().map(|v| 1.0 - 2.0 * v).collect();
            let table = crate::RealTable::new(n, values[..].into(), f64::EPSILON).unwrap();
            let mut found = crate::Spectrum::of_real(table).unwrap().largest(100);
            found.sort_by_key(|(set, _)| *set);
            found
        };
        assert_eq!(coefficients("triangle", 4), [(0b0110, -1.25), (0b1010, 1.5), (0b1100, 1.0)]);
        let cyclic = [0b00111, 0b01110, 0b10011, 0b11001, 0b11100].map(|set| (set, 1.0));
        assert_eq!(coefficients("cyclic:3", 5), cyclic);
        assert!("cyclic:6".parse::<Named>().unwrap().at(5).is_err() && Named::Triangle.at(2).is_err());
    }

    #[test]
    fn structured_flips_equal_flipping_and_looking() {
        struct Plain<'a>(&'a dyn BooleanFunction);
        impl BooleanFunction for Plain<'_> {
            fn variables(&self) -> usize {
                self.0.variables()
            }
            fn lanes(&self, x: &[u64]) -> u64 {
                self.0.lanes(x)
            }
        }
        for name in
            ["parity", "kparity:5", "dictator:2", "majority", "threshold:7", "and", "or", "random:3", "tribes:5"]
        {
            let f = name.parse::<Named>().unwrap().boolean_at(20).unwrap();
            let mut x: Vec<u64> =
                (1..=20u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(i as u32)).collect();
            let (mut fast, mut slow) = (vec![0; 20], vec![0; 20]);
            f.flips(&mut x, &mut fast);
            Plain(f.as_ref()).flips(&mut x, &mut slow);
            assert_eq!(fast, slow, "{name}");
        }
    }

    #[test]
    fn tables_agree_with_lanes() {
        for name in ["random:1", "random:2", "majority", "parity", "two-majority"] {
            for n in [1, 2, 5, 6, 7, 12] {
                let f = name.parse::<Named>().unwrap().boolean_at(n).unwrap();
                let table = f.table().unwrap();
                let mut x = vec![0; n];
                for word in 0..(1usize << n).div_ceil(64) {
                    crate::bits::variables_of_word(word, &mut x);
                    let rows = (1u64 << n).min(64);
                    let kept = if rows == 64 { !0 } else { (1 << rows) - 1 };
                    assert_eq!(f.lanes(&x) & kept, table.words()[word], "{name} n={n}");
                }
            }
        }
    }

    #[test]
    fn random_tables_are_balanced_and_differ_by_seed() {
        let table = |seed| Named::Random(seed).boolean_at(16).unwrap().table().unwrap();
        let (a, b) = (table(1), table(2));
        let differing: u64 = a.words().iter().zip(b.words()).map(|(x, y)| u64::from((x ^ y).count_ones())).sum();
        for count in [a.ones(), b.ones(), differing] {
            assert!((count as f64 - 32768.0).abs() < 5.0 * 128.0, "{count} of 65536 is more than 5 sigma off");
        }
        assert_eq!(a, table(1));
    }

    #[test]
    fn bad_names_get_a_suggestion() {
        let message = |text: &str| text.parse::<Named>().unwrap_err().to_string();
        assert!(message("majorty").contains("did you mean 'majority'?"), "{}", message("majorty"));
        assert!(message("kparity").contains("kparity:K"));
        assert!(message("parity:3").contains("takes no parameter"));
        assert!(message("tribes:x").contains("'x' is not a whole number"));
        assert!(message("tribes:0").contains("at least 1"));
        assert!(message("zzzzzzzz").starts_with("unknown function 'zzzzzzzz';"));
    }

    #[test]
    fn parameters_may_be_formulas_over_n() {
        assert_eq!(Named::parse("threshold:n/3", Some(10)).unwrap(), Named::Threshold(3));
        assert_eq!(Named::parse("kparity: (n + 1) / 2", Some(7)).unwrap(), Named::KParity(4));
        assert_eq!(Named::parse("random:7", None).unwrap(), Named::Random(7));
        let message = |text: &str, n| Named::parse(text, n).unwrap_err().to_string();
        assert!(message("threshold:n/3", None).contains("it depends on n"));
        assert!(message("dictator:n-4", Some(4)).contains("at least 1"));
        assert!(message("dictator:n-5", Some(4)).contains("is -1, below 0"));
    }

    #[test]
    fn impossible_sizes_say_why() {
        let message = |name: &str, n| match name.parse::<Named>().unwrap().at(n) {
            Ok(_) => panic!("{name} at n={n} should be refused"),
            Err(error) => error.to_string(),
        };
        assert!(message("address:3", 10).contains("make 11 variables"));
        assert!(message("tribes:3", 10).contains("multiple of W=3"));
        assert!(message("inner-product", 5).contains("even"));
        assert!(message("dictator:6", 5).contains("no x6"));
        assert!(message("parity", 0).contains("at least one variable"));
        assert!(message("parity", 10_001).contains("10000"));
        assert!(message("address:63", 5).contains("address"));
    }
}
