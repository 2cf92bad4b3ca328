//! The functions a network is asked to learn.

use std::sync::Arc;

use crate::bits::{check_n, cube_row};
use crate::{Bits, DataError, Stream, TrainingSet};

/// The longest strings for which a truth table is stored: 2^24 values.
const LARGEST_TABLE: usize = 24;

const KNOWN: &str = "parity, majority, first, mean, random:SEED, kparity:K";

/// A function of `n` bits with values in {0, 1} (`mean`: in [0, 1]), as the paper's code trains against them.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    name: String,
    n: usize,
    rule: Rule,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Parity,
    Majority,
    First,
    Mean,
    KParity(usize),
    /// The value in each row of the cube.
    Table(Arc<[bool]>),
}

impl Target {
    /// The target of this name on strings of `n` bits:
    ///
    /// | name | value |
    /// |---|---|
    /// | `parity` | sum(x) mod 2 |
    /// | `majority` | 1 if there are more 1s than 0s; a tie gives 0 |
    /// | `first` | x_1 |
    /// | `mean` | mean(x), a real number |
    /// | `kparity:K` | parity of x_1 .. x_K |
    /// | `random:SEED` | a uniformly random truth table, named by its seed (n up to 24) |
    pub fn parse(name: &str, n: usize) -> Result<Self, DataError> {
        check_n("a target", n, usize::MAX)?;
        let (kind, argument) = match name.split_once(':') {
            Some((kind, argument)) => (kind, Some(argument)),
            None => (name, None),
        };
        let bad = |problem: String| DataError::BadTarget {
            name: name.to_string(),
            problem,
        };
        let rule = match (kind, argument) {
            ("parity", None) => Rule::Parity,
            ("majority", None) => Rule::Majority,
            ("first", None) => Rule::First,
            ("mean", None) => Rule::Mean,
            ("kparity", Some(text)) => match text.parse() {
                Ok(k) if (1..=n).contains(&k) => Rule::KParity(k),
                _ => {
                    return Err(bad(format!(
                        "K must be a whole number between 1 and n = {n}"
                    )));
                }
            },
            ("random", Some(text)) => match text.parse() {
                Ok(seed) => Rule::Table(random_table(n, seed)?),
                Err(_) => {
                    return Err(bad("SEED must be a whole number, as in \"random:7\"".into()));
                }
            },
            ("kparity", None) => {
                return Err(bad("say of how many bits, as in \"kparity:3\"".into()));
            }
            ("random", None) => return Err(bad("say which one, as in \"random:7\"".into())),
            ("parity" | "majority" | "first" | "mean", Some(_)) => {
                return Err(bad(format!("\"{kind}\" takes nothing after a colon")));
            }
            _ => return Err(unknown(name, kind)),
        };
        Ok(Self {
            name: name.to_string(),
            n,
            rule,
        })
    }

    /// A target given by its truth table: `values[r]` is the value on row r of [`Bits::cube`]. The number of values must be 2^n.
    pub fn from_table(name: &str, values: Vec<bool>) -> Result<Self, DataError> {
        let n = values.len().checked_ilog2().unwrap_or(0) as usize;
        if n == 0 || values.len() != 1 << n {
            let problem = format!(
                "a truth table needs 2^n values with n >= 1, but this one has {}",
                values.len()
            );
            return Err(DataError::BadTarget {
                name: name.to_string(),
                problem,
            });
        }
        Ok(Self {
            name: name.to_string(),
            n,
            rule: Rule::Table(values.into()),
        })
    }

    /// A function that agrees with `self` on the training set and is uniformly random elsewhere; `seed` names it.
    pub fn completion(&self, set: &TrainingSet, seed: u64) -> Result<Self, DataError> {
        self.check_length(set.strings())?;
        let name = format!("completion:{seed}:{}", self.name);
        let mut values = random_table(self.n, seed)?.to_vec();
        for string in set.strings().iter() {
            values[cube_row(string)] = self.value(string) > 0.5;
        }
        Self::from_table(&name, values)
    }

    /// The name it was asked for under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bits in its strings.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Whether all its values are 0 or 1.
    pub fn is_boolean(&self) -> bool {
        self.rule != Rule::Mean
    }

    /// The labels of a batch, one for each string.
    pub fn labels(&self, strings: &Bits) -> Result<Vec<f32>, DataError> {
        self.check_length(strings)?;
        Ok(strings.iter().map(|string| self.value(string)).collect())
    }

    /// The value in every row of the cube [2^n] (n up to 24).
    pub fn table(&self) -> Result<Vec<f32>, DataError> {
        self.labels(&Bits::cube(self.n)?)
    }

    fn value(&self, string: &[u8]) -> f32 {
        let ones = |bits: &[u8]| bits.iter().map(|bit| u32::from(*bit)).sum::<u32>();
        match &self.rule {
            Rule::Parity => (ones(string) % 2) as f32,
            Rule::Majority => f32::from(2 * ones(string) as usize > string.len()),
            Rule::First => f32::from(string[0]),
            Rule::Mean => ones(string) as f32 / string.len() as f32,
            Rule::KParity(k) => (ones(&string[..*k]) % 2) as f32,
            Rule::Table(values) => f32::from(values[cube_row(string)]),
        }
    }

    fn check_length(&self, strings: &Bits) -> Result<(), DataError> {
        if strings.n() != self.n {
            return Err(DataError::WrongLength {
                expected: self.n,
                found: strings.n(),
            });
        }
        Ok(())
    }
}

/// The scratchpad's labels for PARITY [rows, n]: in column i the parity of the string's first i bits (i from 1).
pub fn prefix_parities(strings: &Bits) -> Vec<f32> {
    let mut labels = Vec::with_capacity(strings.data().len());
    for string in strings.iter() {
        labels.extend(string.iter().scan(0, |parity, bit| {
            *parity ^= bit;
            Some(f32::from(*parity))
        }));
    }
    labels
}

fn random_table(n: usize, seed: u64) -> Result<Arc<[bool]>, DataError> {
    check_n("a random truth table", n, LARGEST_TABLE)?;
    let mut bits = vec![0; 1 << n];
    Stream::new(seed, "random-function", n as u64).fill_bits(&mut bits);
    Ok(bits.iter().map(|bit| *bit == 1).collect())
}

fn unknown(name: &str, kind: &str) -> DataError {
    let nearest = [
        "parity",
        "majority",
        "first",
        "mean",
        "random:SEED",
        "kparity:K",
    ]
    .into_iter()
    .map(|known| {
        (
            strsim::damerau_levenshtein(kind, known.split(':').next().unwrap_or(known)),
            known,
        )
    })
    .min_by_key(|(distance, _)| *distance);
    DataError::UnknownTarget {
        name: name.to_string(),
        suggestion: nearest
            .filter(|(distance, _)| *distance <= 3)
            .map(|(_, known)| known.to_string()),
        known: KNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, n: usize) -> Vec<f32> {
        Target::parse(name, n).unwrap().table().unwrap()
    }

    #[test]
    fn values_on_the_cube_of_two_and_three_bits() {
        assert_eq!(table("parity", 3), [0., 1., 1., 0., 1., 0., 0., 1.]);
        assert_eq!(table("majority", 3), [0., 0., 0., 1., 0., 1., 1., 1.]);
        assert_eq!(table("majority", 2), [0., 0., 0., 1.], "ties give 0");
        assert_eq!(table("first", 2), [0., 0., 1., 1.]);
        assert_eq!(table("mean", 2), [0., 0.5, 0.5, 1.]);
        assert_eq!(table("kparity:2", 3), [0., 0., 1., 1., 1., 1., 0., 0.]);
        assert_eq!(table("kparity:3", 3), table("parity", 3));
    }

    #[test]
    fn random_functions_are_named_by_their_seed_and_balanced() {
        assert_eq!(table("random:3", 10), table("random:3", 10));
        assert_ne!(table("random:3", 10), table("random:4", 10));
        let ones: f32 = table("random:3", 14).iter().sum();
        assert!((ones / 16384.0 - 0.5).abs() < 0.02);
    }

    #[test]
    fn a_table_gives_itself_back() {
        let values: Vec<bool> = table("random:1", 5).iter().map(|v| *v == 1.0).collect();
        let target = Target::from_table("mine", values).unwrap();
        assert_eq!(target.table().unwrap(), table("random:1", 5));
        assert!(Target::from_table("mine", vec![true; 6]).is_err());
        assert!(Target::from_table("mine", vec![]).is_err());
    }

    #[test]
    fn a_completion_agrees_on_the_set_and_is_random_elsewhere() {
        let parity = Target::parse("parity", 10).unwrap();
        let set = TrainingSet::draw(256, 10, 0).unwrap();
        let completion = parity.completion(&set, 5).unwrap();
        assert_eq!(
            completion.labels(set.strings()).unwrap(),
            parity.labels(set.strings()).unwrap()
        );
        let (a, b) = (completion.table().unwrap(), parity.table().unwrap());
        let agreement = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert!((256 + 330..256 + 440).contains(&agreement), "{agreement}");
    }

    #[test]
    fn prefix_parities_end_in_the_parity() {
        let strings = Bits::uniform(50, 9, &mut Stream::new(0, "test", 0)).unwrap();
        let prefixes = prefix_parities(&strings);
        let parity = Target::parse("parity", 9)
            .unwrap()
            .labels(&strings)
            .unwrap();
        for (row, prefix) in prefixes.chunks(9).enumerate() {
            assert_eq!(prefix[0], f32::from(strings.row(row)[0]));
            assert_eq!(prefix[8], parity[row]);
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let message = |name: &str, n| Target::parse(name, n).unwrap_err().to_string();
        assert!(
            message("pariti", 4).contains("did you mean \"parity\""),
            "{}",
            message("pariti", 4)
        );
        assert!(message("kparity:9", 4).contains("between 1 and n = 4"));
        assert!(message("random", 4).contains("random:7"));
        assert!(message("parity", 0).contains("n = 0"));
        assert!(message("random:1", 40).contains("between 1 and 24"));
        let strings = Bits::cube(3).unwrap();
        assert!(Target::parse("first", 4).unwrap().labels(&strings).is_err());
    }
}
