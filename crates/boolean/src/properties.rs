//! What kind of function it is (balanced, monotone, symmetric, affine, a junta), and its polynomial over GF(2). All exact, from the table.

use crate::bits::LOW_VARIABLES;
use crate::table::TruthTable;
use crate::{Result, memory, stop};
use rayon::prelude::*;
use serde::Serialize;

/// Questions with a yes or no for an answer, and which variables matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// As many inputs have f = 0 as f = 1.
    pub balanced: bool,
    /// Changing a 0 of the input into a 1 never changes f from 1 to 0.
    pub monotone: bool,
    /// For each variable, changing it from 0 to 1 never raises f, or never lowers it.
    pub unate: bool,
    /// f depends only on how many bits are 1.
    pub symmetric: bool,
    /// f is the sum of some of the variables modulo 2: f(x + y) = f(x) + f(y).
    pub linear: bool,
    /// f or its negation is linear.
    pub affine: bool,
    /// The variables with an influence, counted from 1: f is a junta of these.
    pub relevant_variables: Vec<usize>,
}

impl Properties {
    /// Of a table whose [`flip_counts`](crate::flip_counts) are given.
    pub fn of(table: &TruthTable, flips: &[u64]) -> Self {
        let (rows, ones) = (table.rows(), table.ones());
        // Pairs of neighbours along a variable that rise, less those that fall; their sum is half of its flips.
        let net: Vec<i64> = ones_by_variable(table).iter().map(|&at_one| 2 * at_one as i64 - ones as i64).collect();
        let pairs = || net.iter().zip(flips.iter().map(|&flips| flips as i64 / 2));
        let affine = flips.iter().all(|&flips| flips == 0 || flips == rows);
        Self {
            balanced: 2 * ones == rows,
            monotone: pairs().all(|(&net, pairs)| net == pairs),
            unate: pairs().all(|(net, pairs)| net.abs() == pairs),
            symmetric: is_symmetric(table),
            linear: affine && !table.get(0),
            affine,
            relevant_variables: (1..).zip(flips).filter(|(_, flips)| **flips > 0).map(|(i, _)| i).collect(),
        }
    }
}

/// The coefficients of the constant and of x1, x2, ... (values ±1): no other linear threshold function has the same.
pub fn chow_parameters(table: &TruthTable) -> Vec<f64> {
    let (rows, ones) = (table.rows() as f64, table.ones() as f64);
    let single = |at_one: u64| (4.0 * at_one as f64 - 2.0 * ones) / rows;
    std::iter::once(1.0 - 2.0 * ones / rows).chain(ones_by_variable(table).into_iter().map(single)).collect()
}

/// Words of the table counted together.
const PART: usize = 1 << 10;

/// For each variable, x1 first: inputs where it is 1 and f = 1.
fn ones_by_variable(table: &TruthTable) -> Vec<u64> {
    let n = table.variables();
    let inside = n.min(6 + PART.ilog2() as usize);
    let count = |(part, words): (usize, &[u64])| {
        let (mut ones, mut total) = (vec![0; n], 0);
        for (index, word) in words.iter().enumerate() {
            let count = u64::from(word.count_ones());
            total += count;
            for (bit, ones) in ones[..inside].iter_mut().enumerate() {
                *ones += match bit {
                    0..6 => u64::from((word & LOW_VARIABLES[bit]).count_ones()),
                    _ => count * (index >> (bit - 6) & 1) as u64,
                };
            }
        }
        for (bit, ones) in ones[inside..].iter_mut().enumerate() {
            *ones = total * (part >> bit & 1) as u64;
        }
        ones
    };
    let add = |a: Vec<u64>, b: Vec<u64>| a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let mut ones = used_words(table).par_chunks(PART).enumerate().map(count).reduce(|| vec![0; n], add);
    ones.reverse();
    ones
}

fn is_symmetric(table: &TruthTable) -> bool {
    let n = table.variables();
    let layers = layers();
    // f on inputs with so many ones, if it depends on nothing else.
    let values: Vec<bool> = (0..=n).map(|ones| table.get((1 << ones) - 1)).collect();
    let expected = |ones_above: usize| {
        let inside = values[ones_above..].iter().zip(&layers);
        inside.filter(|(value, _)| **value).fold(0, |word, (_, layer)| word | layer)
    };
    let expected: Vec<u64> = (0..=n.saturating_sub(6)).map(expected).collect();
    let used = if n < 6 { (1 << table.rows()) - 1 } else { u64::MAX };
    let words = used_words(table).par_iter().enumerate();
    words.all(|(index, &word)| word == expected[index.count_ones() as usize] & used)
}

/// `layers[k]`: the bits l < 64 that have k ones.
pub(crate) fn layers() -> [u64; 7] {
    let mut layers = [0; 7];
    (0..64u32).for_each(|l| layers[l.count_ones() as usize] |= 1 << l);
    layers
}

/// The words that hold rows; the last may hold padding, which is 0.
pub(crate) fn used_words(table: &TruthTable) -> &[u64] {
    &table.words()[..(table.rows() as usize).div_ceil(64)]
}

/// The algebraic normal form: f as a polynomial over GF(2), a sum (modulo 2) of products of variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NormalForm {
    /// The variables in its longest product: the algebraic degree. (0 for constants.)
    #[serde(skip)]
    pub degree: usize,
    /// How many products there are.
    pub terms: u64,
    /// All of them, as in `x1 x2 + x3 + 1`, if they are few.
    pub polynomial: Option<String>,
}

impl NormalForm {
    /// Polynomials of more terms are not spelled out.
    pub const MOST_TERMS: u64 = 16;

    /// Refuses, before allocating, what would not fit in memory. Variable i is called `names[i]` in the polynomial.
    pub fn of(table: &TruthTable, names: &[usize]) -> Result<Self> {
        let n = table.variables();
        let bytes = used_words(table).len() as u64 * 8;
        memory::check_fits(n, "the algebraic normal form", bytes, "ask for other --measures")?;
        let terms = transformed(table);
        let layers = layers();
        let degree_of = |(index, word): (usize, &u64)| {
            let inside = layers.iter().rposition(|layer| word & layer != 0);
            inside.map_or(0, |inside| index.count_ones() as usize + inside)
        };
        let count = terms.par_iter().map(|word| u64::from(word.count_ones())).sum();
        Ok(Self {
            degree: terms.par_iter().enumerate().map(degree_of).max().unwrap_or(0),
            terms: count,
            polynomial: (count <= Self::MOST_TERMS).then(|| spelled(&terms, names)),
        })
    }
}

/// The Möbius transform: bit S of the result tells whether the product of the variables in S (x1 most significant) is a term.
fn transformed(table: &TruthTable) -> Vec<u64> {
    let n = table.variables();
    let mut words = used_words(table).to_vec();
    let inside = n.min(6 + PART.ilog2() as usize);
    words.par_chunks_mut(PART).for_each(|part| {
        stop::check();
        for (bit, &upper) in LOW_VARIABLES.iter().enumerate().take(n) {
            part.iter_mut().for_each(|word| *word ^= (*word & !upper) << (1 << bit));
        }
        (6..inside).for_each(|bit| add_lower_to_upper(part, 1 << (bit - 6)));
    });
    for bit in inside..n {
        let step = 1 << (bit - 6);
        words.par_chunks_mut(2 * step).for_each(|pair| {
            let (lower, upper) = pair.split_at_mut(step);
            upper.par_chunks_mut(PART).zip(lower.par_chunks(PART)).for_each(|(upper, lower)| add(upper, lower));
        });
    }
    words
}

fn add_lower_to_upper(words: &mut [u64], step: usize) {
    for pair in words.chunks_exact_mut(2 * step) {
        let (lower, upper) = pair.split_at_mut(step);
        add(upper, lower);
    }
}

fn add(upper: &mut [u64], lower: &[u64]) {
    upper.iter_mut().zip(lower).for_each(|(upper, lower)| *upper ^= lower);
}

/// Short products first, and those of early variables before those of late ones.
fn spelled(words: &[u64], names: &[usize]) -> String {
    let mut sets: Vec<u64> = words
        .iter()
        .enumerate()
        .filter(|(_, word)| **word != 0)
        .flat_map(|(index, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * index as u64 + bit)
        })
        .collect();
    sets.sort_by_key(|set| (set.count_ones(), std::cmp::Reverse(*set)));
    let term = |set: &u64| match set {
        0 => "1".to_string(),
        set => variables_of(*set, names).map(|i| format!("x{i}")).collect::<Vec<_>>().join(" "),
    };
    match sets.is_empty() {
        true => "0".into(),
        false => sets.iter().map(term).collect::<Vec<_>>().join(" + "),
    }
}

/// The variables of a set by their names; the set is a number whose most significant bit is the first of them.
pub fn variables_of(set: u64, names: &[usize]) -> impl Iterator<Item = usize> {
    names.iter().rev().enumerate().filter(move |(place, _)| set >> place & 1 == 1).map(|(_, name)| *name).rev()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BooleanFunction;
    use crate::samples::{random, small, table};
    use crate::{Expression, flip_counts};

    fn names(table: &TruthTable) -> Vec<usize> {
        (1..=table.variables()).collect()
    }

    fn properties(table: &TruthTable) -> Properties {
        Properties::of(table, &flip_counts(table))
    }

    /// Straight from the definitions.
    fn by_definition(n: usize, f: &dyn Fn(usize) -> bool) -> Properties {
        let rows = 1usize << n;
        let bits = || (0..n).map(|i| 1usize << i);
        let rises = |bit: usize| (0..rows).any(|x| x & bit == 0 && !f(x) && f(x | bit));
        let falls = |bit: usize| (0..rows).any(|x| x & bit == 0 && f(x) && !f(x | bit));
        let below = |x: usize, y: usize| x & y == x;
        let pairs = || (0..rows).flat_map(|x| (0..rows).map(move |y| (x, y)));
        let linear = |f: &dyn Fn(usize) -> bool| pairs().all(|(x, y)| f(x ^ y) == f(x) ^ f(y));
        Properties {
            balanced: (0..rows).filter(|&x| f(x)).count() == rows / 2,
            monotone: pairs().all(|(x, y)| !below(x, y) || f(x) <= f(y)),
            unate: bits().all(|bit| !(rises(bit) && falls(bit))),
            symmetric: pairs().all(|(x, y)| x.count_ones() != y.count_ones() || f(x) == f(y)),
            linear: linear(f),
            affine: linear(f) || linear(&|x| !f(x)),
            relevant_variables: (1..=n).filter(|i| rises(1 << (n - i)) || falls(1 << (n - i))).collect(),
        }
    }

    #[test]
    fn all_functions_of_at_most_3_variables_and_random_ones_of_4_to_11() {
        for n in 1..=3 {
            for truth in 0..1u64 << (1 << n) {
                let table = TruthTable::from_words(n, &[truth]).unwrap();
                assert_eq!(properties(&table), by_definition(n, &|x| truth >> x & 1 == 1), "n={n} {truth:b}");
            }
        }
        for (name, n) in [("majority", 9), ("threshold:4", 8), ("kparity:3", 7), ("parity", 8), ("tribes:2", 8)]
            .into_iter()
            .chain((4..=11).map(|n| ("random:5", n)))
        {
            let table = table(name, n);
            assert_eq!(properties(&table), by_definition(n, &|x| table.get(x as u64)), "{name} n={n}");
        }
    }

    #[test]
    fn large_tables_are_counted_in_parts() {
        for (name, n, monotone, symmetric, linear, relevant) in [
            ("majority", 19, true, true, false, 19),
            ("parity", 18, false, true, true, 18),
            ("dictator:2", 18, true, false, true, 1),
            ("or", 20, true, true, false, 20),
        ] {
            let found = properties(&table(name, n));
            let expected = (monotone, symmetric, linear, relevant);
            assert_eq!(
                (found.monotone, found.symmetric, found.linear, found.relevant_variables.len()),
                expected,
                "{name}"
            );
        }
        let mut table = table("majority", 19);
        table.set(1 << 18, !table.get(1 << 18)); // one neighbour of the zeros
        let found = properties(&table);
        assert!(!found.monotone && !found.unate && !found.symmetric && !found.balanced);
    }

    #[test]
    fn the_normal_form_evaluates_to_the_function() {
        // All functions of at most 3 variables; larger ones cross words and parts.
        for table in small().chain([5, 6, 7, 12].map(|n| random(3, n))) {
            let terms = transformed(&table);
            let is_term = |set: u64| terms[(set / 64) as usize] >> (set % 64) & 1 == 1;
            for x in 0..table.rows() {
                let value = (0..table.rows()).filter(|&set| set & x == set && is_term(set)).count() % 2 == 1;
                assert_eq!(value, table.get(x));
            }
            let found = NormalForm::of(&table, &names(&table)).unwrap();
            let all: Vec<u64> = (0..table.rows()).filter(|&set| is_term(set)).collect();
            assert_eq!(found.terms, all.len() as u64);
            assert_eq!(found.degree, all.iter().map(|set| set.count_ones() as usize).max().unwrap_or(0));
        }
        // Between parts: a transform of a transform is the function again.
        let table = table("random:9", 19);
        let once = TruthTable::from_words(19, &transformed(&table)).unwrap();
        assert_eq!(transformed(&once), used_words(&table));
    }

    #[test]
    fn chow_parameters_are_the_lowest_coefficients() {
        for table in small().chain([6, 7, 13].map(|n| random(1, n))) {
            let (n, spectrum) = (table.variables(), crate::Spectrum::of(&table).unwrap());
            let sets = std::iter::once(0).chain((0..n).rev().map(|place| 1 << place));
            assert_eq!(chow_parameters(&table), sets.map(|set| spectrum.coefficient(set)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn polynomials_are_spelled() {
        let of = |text: &str| {
            let table = Expression::parse(text, None).unwrap().table().unwrap();
            NormalForm::of(&table, &names(&table)).unwrap()
        };
        assert_eq!(of("x1 & x2 ^ x3 ^ 1").polynomial.unwrap(), "1 + x3 + x1 x2");
        assert_eq!(of("x1 | x2").polynomial.unwrap(), "x1 + x2 + x1 x2");
        assert_eq!(of("x1 & !x1").polynomial.unwrap(), "0");
        let restricted = Expression::parse("x1 & x2 ^ x3", None).unwrap().table().unwrap();
        assert_eq!(NormalForm::of(&restricted, &[2, 5, 7]).unwrap().polynomial.unwrap(), "x7 + x2 x5");
        assert_eq!((of("x1 & x2 & x3").degree, of("x1 ^ x9").degree, of("1").degree), (3, 1, 0));
        let or = NormalForm::of(&table("or", 10), &[0; 10]).unwrap();
        assert_eq!((or.degree, or.terms, or.polynomial), (10, 1023, None));
    }
}
