//! Restrictions: some variables fixed, f as a function of the others.

use crate::analysis::Subject;
use crate::bits::Bits;
use crate::files::Table;
use crate::function::{BooleanFunction, RealFunction};
use crate::memory::Array;
use crate::table::{RealTable, TruthTable};
use crate::{Error, Function, Result, shortened};
use std::str::FromStr;

/// Rules of so many variables are turned into a table (of 8 MiB) before some are fixed: rows are picked faster than computed.
const TABLED: usize = 26;

/// Variables, counted from 1, and the values they are fixed at: `x3=1,x5=0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restriction {
    fixed: Vec<(usize, bool)>,
}

impl FromStr for Restriction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut fixed: Vec<(usize, bool)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let index = |name: &str| name.trim().strip_prefix(['x', 'X']).and_then(|index| index.parse::<usize>().ok());
            let parsed = part.split_once('=').and_then(|(name, value)| match (index(name), value.trim()) {
                (Some(index @ 1..), "0") => Some((index, false)),
                (Some(index @ 1..), "1") => Some((index, true)),
                _ => None,
            });
            let Some((index, value)) = parsed else {
                let part = shortened(part, 40);
                return Err(Error::Parameter(format!("'{part}' fixes no variable: write x3=1, or x3=1,x5=0")));
            };
            if fixed.iter().any(|(other, _)| *other == index) {
                return Err(Error::Parameter(format!("x{index} is fixed twice")));
            }
            fixed.push((index, value));
        }
        Ok(Self { fixed })
    }
}

impl Restriction {
    /// The variables that stay free, counted from 1.
    pub fn free(&self, n: usize) -> Result<Vec<usize>> {
        if let Some((index, _)) = self.fixed.iter().find(|(index, _)| *index > n) {
            return Err(Error::Variables(format!("there is no x{index} to fix: n={n}")));
        }
        if self.fixed.len() == n {
            return Err(Error::Variables(format!("all {n} variables are fixed: leave at least one free")));
        }
        Ok((1..=n).filter(|i| !self.fixed.iter().any(|(fixed, _)| fixed == i)).collect())
    }

    /// The function of the free variables, x1 being the first of them.
    pub fn of(&self, subject: Subject) -> Result<Subject> {
        let n = subject.variables();
        let free = self.free(n)?;
        Ok(match subject {
            Subject::Table(Table::Boolean(table)) => {
                let mut restricted = TruthTable::zeros(free.len())?;
                let ones = self.rows(n).enumerate().filter(|(_, row)| table.get(*row));
                ones.for_each(|(place, _)| restricted.set(place as u64, true));
                Subject::Table(Table::Boolean(restricted))
            }
            Subject::Table(Table::Real(table)) => {
                let values: Vec<f64> = self.rows(n).map(|row| table.values()[row as usize]).collect();
                Subject::Table(Table::Real(RealTable::new(free.len(), Array::from(&values[..]), table.epsilon())?))
            }
            Subject::Function(Function::Boolean(f)) if n <= TABLED => {
                return self.of(Subject::Table(Table::Boolean(f.table()?)));
            }
            Subject::Function(Function::Boolean(f)) => {
                Subject::Function(Function::Boolean(Box::new(Restricted { f, free, fixed: self.fixed.clone() })))
            }
            Subject::Function(Function::Real(f)) => {
                Subject::Function(Function::Real(Box::new(Restricted { f, free, fixed: self.fixed.clone() })))
            }
        })
    }

    /// The rows of a table of n variables that agree with it, in order.
    fn rows(&self, n: usize) -> impl Iterator<Item = u64> {
        let bit = |i: usize| 1u64 << (n - i);
        let fixed: u64 = self.fixed.iter().map(|(i, _)| bit(*i)).sum();
        let values: u64 = self.fixed.iter().filter(|(_, value)| *value).map(|(i, _)| bit(*i)).sum();
        let mut next = 0u64;
        (0..1u64 << (n - self.fixed.len())).map(move |_| {
            let row = next | values;
            next = (next | fixed).wrapping_add(1) & !fixed; // the carry runs through the fixed bits
            row
        })
    }
}

/// A function given by a rule, with some variables fixed.
struct Restricted<F> {
    f: F,
    free: Vec<usize>,
    fixed: Vec<(usize, bool)>,
}

impl<F> Restricted<F> {
    /// 64 inputs of the whole function.
    fn whole(&self, x: &[u64]) -> Vec<u64> {
        let mut all = vec![0; self.free.len() + self.fixed.len()];
        self.free.iter().zip(x).for_each(|(i, lanes)| all[i - 1] = *lanes);
        self.fixed.iter().for_each(|(i, value)| all[i - 1] = 0u64.wrapping_sub(u64::from(*value)));
        all
    }
}

impl BooleanFunction for Restricted<Box<dyn BooleanFunction>> {
    fn variables(&self) -> usize {
        self.free.len()
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        self.f.lanes(&self.whole(x))
    }

    fn flips(&self, x: &mut [u64], changed: &mut [u64]) {
        let mut all = self.whole(x);
        let mut changes = vec![0; all.len()];
        self.f.flips(&mut all, &mut changes);
        self.free.iter().zip(changed).for_each(|(i, changed)| *changed = changes[i - 1]);
    }
}

impl RealFunction for Restricted<Box<dyn RealFunction>> {
    fn variables(&self) -> usize {
        self.free.len()
    }

    fn value(&self, x: &Bits) -> f64 {
        let n = self.free.len() + self.fixed.len();
        let mut words = vec![0u64; n.div_ceil(64)];
        let ones = self.free.iter().zip(x.iter()).map(|(i, bit)| (*i, bit)).chain(self.fixed.iter().copied());
        ones.filter(|(_, bit)| *bit).for_each(|(i, _)| words[(i - 1) / 64] |= 1 << ((i - 1) % 64));
        self.f.value(&Bits::new(&words, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Given, Named};

    fn values(subject: Subject) -> Vec<f64> {
        match subject.into_function() {
            Function::Boolean(f) => {
                let table = f.table().unwrap();
                (0..table.rows()).map(|row| f64::from(u8::from(table.get(row)))).collect()
            }
            Function::Real(f) => RealTable::of(f.as_ref()).unwrap().values().to_vec(),
        }
    }

    /// The values of the whole function on the inputs that agree, one by one.
    #[test]
    fn by_rule_and_by_table_it_is_the_function_on_the_inputs_that_agree() {
        for (text, fix, kept) in [
            ("random:5", "x2=1", [None, Some(true), None, None, None, None, None]),
            ("random:6", "x1=0,x7=1, X4 = 0", [Some(false), None, None, Some(false), None, None, Some(true)]),
            ("mean", "x3=1,x2=0", [None, Some(false), Some(true), None, None, None, None]),
        ] {
            let subject = || text.parse::<Given>().unwrap().at(Some(7)).unwrap();
            let restriction: Restriction = fix.parse().unwrap();
            let whole = values(subject());
            let agrees = |row: &usize| (0..7).all(|i| kept[i].is_none_or(|bit| (row >> (6 - i) & 1 == 1) == bit));
            let expected: Vec<f64> = (0..128).filter(agrees).map(|row| whole[row]).collect();
            assert_eq!(values(restriction.of(subject()).unwrap()), expected, "{text} {fix}");
            let table = match subject() {
                Subject::Function(Function::Boolean(f)) => Table::Boolean(f.table().unwrap()),
                Subject::Function(Function::Real(f)) => Table::Real(RealTable::of(f.as_ref()).unwrap()),
                Subject::Table(table) => table,
            };
            assert_eq!(values(restriction.of(Subject::Table(table)).unwrap()), expected, "{text} {fix} as a table");
        }
    }

    #[test]
    fn flips_are_those_of_the_free_variables() {
        let n = TABLED + 2;
        let f = Named::Majority.at(n).unwrap();
        let restricted = "x2=1,x9=0".parse::<Restriction>().unwrap().of(Subject::Function(f)).unwrap();
        let Function::Boolean(f) = restricted.into_function() else { panic!("not Boolean") };
        let mut x: Vec<u64> = (1..=n as u64 - 2).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        // Majority of 28 with a one and a zero given: at least 14 ones among the 26 others.
        let expected = (0..64).fold(0, |lanes, l| {
            let ones = x.iter().filter(|variable| *variable >> l & 1 == 1).count();
            lanes | u64::from(ones >= 14) << l
        });
        let (before, mut changed) = (f.lanes(&x), vec![0; n - 2]);
        assert_eq!(before, expected);
        f.flips(&mut x, &mut changed);
        for i in 0..n - 2 {
            x[i] = !x[i];
            assert_eq!(changed[i], before ^ f.lanes(&x));
            x[i] = !x[i];
        }
    }

    #[test]
    fn mistakes() {
        let message = |text: &str| match text.parse::<Restriction>() {
            Ok(restriction) => restriction.free(3).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        for text in ["", "x3", "x0=1", "y3=1", "x3=2", "3=1", "x1=1,"] {
            assert!(message(text).contains("fixes no variable"), "{text}: {}", message(text));
        }
        assert!(message("x1=1,x1=0").contains("x1 is fixed twice"));
        assert!(message("x4=1").contains("there is no x4 to fix: n=3"));
        assert!(message("x1=1,x2=0,x3=0").contains("leave at least one free"));
        assert_eq!("x3=1,x1=0".parse::<Restriction>().unwrap().free(5).unwrap(), [2, 4, 5]);
    }
}
