//! The functions a network is asked to learn.

use std::fmt;
use std::sync::Arc;

use pudica_boolean::{BooleanFunction, Function, Named, RealFunction, TruthTable};

use crate::bits::cube_row;
use crate::{Bits, DataError, TrainingSet};

/// A function of n bits with values in {0, 1} (`mean`: in [0, 1]), as the paper's code trains against them.
#[derive(Clone)]
pub struct Target {
    name: String,
    function: Arc<Function>,
}

impl Target {
    /// The target of this name on strings of `n` bits: any function of `pudica-boolean`'s catalogue (`parity`, `majority`,
    /// `first`, `mean`, `random:SEED`, `kparity:K`, ...). Unknown names are errors that suggest the nearest.
    pub fn parse(name: &str, n: usize) -> Result<Self, DataError> {
        let function = name.parse::<Named>()?.at(n)?;
        Ok(Self { name: name.to_string(), function: Arc::new(function) })
    }

    /// A target given by its truth table.
    pub fn from_table(name: &str, table: TruthTable) -> Self {
        Self { name: name.to_string(), function: Arc::new(Function::Boolean(Box::new(table))) }
    }

    /// A function that agrees with `self` on the training set and is uniformly random elsewhere; `seed` names it.
    pub fn completion(&self, set: &TrainingSet, seed: u64) -> Result<Self, DataError> {
        let labels = self.labels(set.strings())?;
        let mut table = Named::Random(seed).boolean_at(self.n())?.table()?;
        for (string, label) in set.strings().iter().zip(labels) {
            table.set(cube_row(string) as u64, label > 0.5);
        }
        Ok(Self::from_table(&format!("completion:{seed}:{}", self.name), table))
    }

    /// The name it was asked for under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bits in its strings.
    pub fn n(&self) -> usize {
        match &*self.function {
            Function::Boolean(f) => f.variables(),
            Function::Real(f) => f.variables(),
        }
    }

    /// Whether all its values are 0 or 1.
    pub fn is_boolean(&self) -> bool {
        matches!(*self.function, Function::Boolean(_))
    }

    /// The truth table; an error for a real-valued target, or one too large to store.
    pub fn table(&self) -> Result<TruthTable, DataError> {
        match &*self.function {
            Function::Boolean(f) => Ok(f.table()?),
            Function::Real(_) => Err(DataError::NotBoolean(self.name.clone())),
        }
    }

    /// The labels of a batch, one for each string.
    pub fn labels(&self, strings: &Bits) -> Result<Vec<f32>, DataError> {
        if strings.n() != self.n() {
            return Err(DataError::WrongLength { expected: self.n(), found: strings.n() });
        }
        Ok(match &*self.function {
            Function::Boolean(f) => boolean_labels(f.as_ref(), strings),
            Function::Real(f) => real_labels(f.as_ref(), strings),
        })
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Target({}, n = {})", self.name, self.n())
    }
}

/// 64 strings at a time: bit l of word i is bit i of string l.
fn boolean_labels(f: &dyn BooleanFunction, strings: &Bits) -> Vec<f32> {
    let n = strings.n();
    let mut labels = Vec::with_capacity(strings.rows());
    let mut words = vec![0u64; n];
    for group in strings.data().chunks(64 * n) {
        words.fill(0);
        for (lane, string) in group.chunks_exact(n).enumerate() {
            for (word, bit) in words.iter_mut().zip(string) {
                *word |= u64::from(*bit) << lane;
            }
        }
        let values = f.lanes(&words);
        labels.extend((0..group.len() / n).map(|lane| (values >> lane & 1) as f32));
    }
    labels
}

fn real_labels(f: &dyn RealFunction, strings: &Bits) -> Vec<f32> {
    let n = strings.n();
    let mut words = vec![0u64; n.div_ceil(64)];
    let mut value = |string: &[u8]| {
        words.fill(0);
        for (i, bit) in string.iter().enumerate() {
            words[i / 64] |= u64::from(*bit) << (i % 64);
        }
        f.value(&pudica_boolean::Bits::new(&words, n)) as f32
    };
    strings.iter().map(&mut value).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    fn values(name: &str, n: usize) -> Vec<f32> {
        Target::parse(name, n).unwrap().labels(&Bits::cube(n).unwrap()).unwrap()
    }

    #[test]
    fn values_on_the_cube_of_two_and_three_bits() {
        assert_eq!(values("parity", 3), [0., 1., 1., 0., 1., 0., 0., 1.]);
        assert_eq!(values("majority", 3), [0., 0., 0., 1., 0., 1., 1., 1.]);
        assert_eq!(values("majority", 2), [0., 0., 0., 1.], "ties give 0");
        assert_eq!(values("first", 2), [0., 0., 1., 1.]);
        assert_eq!(values("mean", 2), [0., 0.5, 0.5, 1.]);
        assert_eq!(values("kparity:2", 3), [0., 0., 1., 1., 1., 1., 0., 0.]);
    }

    /// Batches whose size is not a multiple of 64, and strings longer than a word.
    #[test]
    fn labels_are_the_function_string_by_string() {
        let strings = Bits::uniform(150, 70, &mut Stream::new(0, "test", 0)).unwrap();
        let labels = |name| Target::parse(name, 70).unwrap().labels(&strings).unwrap();
        let (parity, majority, mean) = (labels("parity"), labels("majority"), labels("mean"));
        for (row, string) in strings.iter().enumerate() {
            let ones: u32 = string.iter().map(|bit| u32::from(*bit)).sum();
            assert_eq!(parity[row], (ones % 2) as f32);
            assert_eq!(majority[row], f32::from(ones > 35));
            assert_eq!(mean[row], ones as f32 / 70.0);
        }
    }

    #[test]
    fn a_table_gives_itself_back() {
        let table = Target::parse("random:1", 9).unwrap().table().unwrap();
        let target = Target::from_table("mine", table.clone());
        assert_eq!(target.table().unwrap(), table);
        assert_eq!(target.labels(&Bits::cube(9).unwrap()).unwrap(), values("random:1", 9));
        assert!(Target::parse("mean", 4).unwrap().table().unwrap_err().to_string().contains("mean"));
    }

    #[test]
    fn a_completion_agrees_on_the_set_and_is_random_elsewhere() {
        let parity = Target::parse("parity", 10).unwrap();
        let set = TrainingSet::draw(256, 10, 0).unwrap();
        let completion = parity.completion(&set, 5).unwrap();
        assert_eq!(completion.labels(set.strings()).unwrap(), parity.labels(set.strings()).unwrap());
        let cube = Bits::cube(10).unwrap();
        let (a, b) = (completion.labels(&cube).unwrap(), parity.labels(&cube).unwrap());
        let agreement = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert!((256 + 330..256 + 440).contains(&agreement), "{agreement}");
    }

    #[test]
    fn prefix_parities_end_in_the_parity() {
        let strings = Bits::uniform(50, 9, &mut Stream::new(0, "test", 0)).unwrap();
        let prefixes = prefix_parities(&strings);
        let parity = Target::parse("parity", 9).unwrap().labels(&strings).unwrap();
        for (row, prefix) in prefixes.chunks(9).enumerate() {
            assert_eq!(prefix[0], f32::from(strings.row(row)[0]));
            assert_eq!(prefix[8], parity[row]);
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let message = |name: &str, n| Target::parse(name, n).unwrap_err().to_string();
        assert!(message("pariti", 4).contains("did you mean 'parity'?"), "{}", message("pariti", 4));
        assert!(message("kparity:9", 4).contains("K=9"));
        assert!(message("parity", 0).contains("at least one variable"));
        let strings = Bits::cube(3).unwrap();
        assert!(Target::parse("first", 4).unwrap().labels(&strings).unwrap_err().to_string().contains("4 bits"));
    }
}
