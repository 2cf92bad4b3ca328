//! The functions a network is asked to learn.

use std::fmt;
use std::sync::Arc;

use pudica_boolean::analysis::Subject;
use pudica_boolean::files::Table;
use pudica_boolean::table::RealTable;
use pudica_boolean::{BooleanFunction, Expression, Function, Given, Named, RealFunction, TruthTable};

use crate::bits::cube_row;
use crate::{Bits, DataError, TrainingSet, tables};

/// A function of n bits with values in {0, 1} (`mean`: in [0, 1]; own tables: any), as the paper's code trains against them.
#[derive(Clone)]
pub struct Target {
    name: String,
    function: Arc<Function>,
    rule: Rule,
}

/// What is known about a target beside its values.
#[derive(Clone)]
enum Rule {
    Named(Named),
    Expression(Expression),
    Table,
}

/// A target as settings keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Read again, it is the same target and no other: a table is named with the digest of its file.
    pub text: String,
    /// The bits of its strings, where it says so itself.
    pub n: Option<usize>,
}

impl Target {
    /// The target of this name on strings of `n` bits: whatever [`Given`] reads. That is any function of `pudica-boolean`'s catalogue
    /// (`parity`, `majority`, `first`, `mean`, `random:SEED`, `kparity:n/2`, ...), an expression (`expr:x1 & x2`) or the table of a file
    /// (`table:f.npy`). Unknown names are errors that suggest the nearest.
    pub fn parse(name: &str, n: usize) -> Result<Self, DataError> {
        let given: Given = name.parse()?;
        let (function, rule) = match &given {
            Given::Table(file) => (tables::read(file, Some(n))?.function, Rule::Table),
            Given::Expression(expression) => (at(&given, n)?, Rule::Expression(expression.clone())),
            Given::Named(text) => (at(&given, n)?, Rule::Named(Named::parse(text, Some(n))?)),
        };
        Ok(Self { name: name.to_string(), function, rule })
    }

    /// How a target is written into settings. The file of a table is read.
    pub fn written(name: &str) -> Result<Written, DataError> {
        let mut given: Given = name.parse()?;
        let n = match &mut given {
            Given::Named(text) => Named::parse(text, None).ok().and_then(|named| named.natural_variables()),
            Given::Expression(expression) => Some(expression.least_variables()),
            Given::Table(file) => {
                let table = tables::read(file, None)?;
                file.digest = Some(table.digest);
                Some(variables(&table.function))
            }
        };
        Ok(Written { text: given.to_string(), n })
    }

    /// A target given by its values on all strings.
    pub fn from_table(name: &str, table: impl Into<Table>) -> Self {
        let function = Arc::new(Subject::Table(table.into()).into_function());
        Self { name: name.to_string(), function, rule: Rule::Table }
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

    /// The function of the catalogue that it is, its parameter a number.
    pub fn named(&self) -> Option<Named> {
        if let Rule::Named(named) = self.rule { Some(named) } else { None }
    }

    /// The expression that it is given by.
    pub fn expression(&self) -> Option<&Expression> {
        if let Rule::Expression(expression) = &self.rule { Some(expression) } else { None }
    }

    /// Whether both have their values from one place in memory, as two runs that learn the table of one file do.
    pub fn shares_values_with(&self, other: &Target) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }

    /// Bits in its strings.
    pub fn n(&self) -> usize {
        variables(&self.function)
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

    /// The values on all strings, in the order of a truth table.
    pub fn values(&self) -> Result<Vec<f32>, DataError> {
        Ok(match &*self.function {
            Function::Boolean(f) => {
                let table = f.table()?;
                (0..table.rows()).map(|row| f32::from(u8::from(table.get(row)))).collect()
            }
            Function::Real(f) => RealTable::of(f.as_ref())?.values().iter().map(|value| *value as f32).collect(),
        })
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

fn at(given: &Given, n: usize) -> Result<Arc<Function>, DataError> {
    Ok(Arc::new(given.at(Some(n))?.into_function()))
}

fn variables(function: &Function) -> usize {
    match function {
        Function::Boolean(f) => f.variables(),
        Function::Real(f) => f.variables(),
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
    fn own_functions_are_targets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.npy");
        let file = format!("table:{}", path.display());
        let save = |values: &[f64]| {
            let mut bytes = Vec::new();
            pudica_boolean::npy::write_f64(&mut bytes, values.len() as u64, values.iter().copied()).unwrap();
            std::fs::write(&path, bytes).unwrap();
        };
        assert_eq!(values("expr:x1 & x2 | x3", 3), [0., 1., 0., 1., 0., 1., 1., 1.]);
        assert_eq!(values("threshold:n-1", 3), values("majority", 3));
        let real = [0.5, -2.0, 3.25, 0.0];
        save(&real);
        assert_eq!(values(&file, 2), real.map(|value| value as f32));
        let (one, other) = (Target::parse(&file, 2).unwrap(), Target::parse(&file, 2).unwrap());
        assert!(!one.is_boolean() && one.shares_values_with(&other), "a file is read once");
        assert_eq!(one.values().unwrap(), values(&file, 2));

        let written = Target::written(&file).unwrap();
        assert_eq!(written.n, Some(2));
        assert_eq!(values(&written.text, 2), values(&file, 2));
        save(&[0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
        assert_eq!(values(&file, 3), values("parity", 3));
        assert_ne!(Target::written(&file).unwrap().text, written.text);
        let refusal = Target::parse(&written.text, 2).unwrap_err().to_string();
        assert!(refusal.contains("it has changed since"), "{refusal}");
        let refusal = Target::parse(&file, 4).unwrap_err().to_string();
        assert!(refusal.contains("2^3 rows, but n=4"), "{refusal}");
        let folder = format!("table:{}", folder.path().display());
        assert!(Target::written(&folder).unwrap_err().to_string().contains("not a file"));
    }

    #[test]
    fn targets_are_written_as_they_are_read() {
        let written = |name| Target::written(name).unwrap();
        assert_eq!(written("dictator:1"), Written { text: "dictator:1".into(), n: None });
        assert_eq!(written("address:2"), Written { text: "address:2".into(), n: Some(6) });
        assert_eq!(written("kparity: n / 2"), Written { text: "kparity:n/2".into(), n: None });
        assert_eq!(written("x1 & x4"), Written { text: "expr:x1&x4".into(), n: Some(4) });
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
