//! Whether f is a linear threshold function (LTF): f(x) = 1 exactly where w1 x1 + ... + wn xn >= t. Decided exactly, in whole numbers.
//!
//! Put a(x) = ±(1, x), + where f(x) = 1. Then f is an LTF if and only if some w has w . a(x) > 0 for all x; by Farkas' lemma, if and only if 0 is
//! not a convex combination of the a(x). The simplex method looks for such a combination: it finds one, or it stops with the weights. (Few x are
//! needed where f rises or falls along each variable, and no other f is an LTF.) Its tableau is kept in whole numbers (Bareiss): all of them are determinants of at most 14 rows of -1, 0 and 1, so by Hadamard's
//! inequality below 14^7, and products of two fit 64 bits.

use crate::table::TruthTable;
use crate::{Error, Result, stop};
use serde::Serialize;

/// The most variables taken on.
pub const MAX_VARIABLES: usize = 12;

/// Weights that make a linear threshold function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Weights {
    /// w1, ..., wn.
    pub weights: Vec<i64>,
    /// f(x) = 1 exactly where the weights of the ones of x sum to at least this.
    pub threshold: i64,
}

/// Weights of f, or `None` if f is no linear threshold function; n <= [`MAX_VARIABLES`].
pub fn threshold_weights(table: &TruthTable) -> Result<Option<Weights>> {
    let n = table.variables();
    if n > MAX_VARIABLES {
        return Err(Error::Measure(format!(
            "whether a function is a linear threshold function is decided exactly up to n={MAX_VARIABLES}; n={n} is too large"
        )));
    }
    let Some(slopes) = slopes(table) else { return Ok(None) };
    let inputs = deciding_rows(table, &slopes).into_iter().map(|row| signed(row, table));
    // Weights have the signs of the slopes.
    let signs = slopes.iter().enumerate().filter(|(_, slope)| **slope != 0).map(|(i, slope)| {
        let mut column = vec![0; n + 1];
        column[i + 1] = *slope;
        column
    });
    let columns: Vec<Vec<i64>> = inputs.chain(signs).collect();
    let Some(mut separator) = separator(&columns, n + 1) else { return Ok(None) };
    // All columns are 0 where a variable does not matter, so that its weight is arbitrary.
    separator[1..].iter_mut().zip(&slopes).for_each(|(weight, slope)| *weight *= slope.abs());
    // separator . (1, x) > 0 where f = 1 and < 0 where f = 0. What divides all weights can be left out.
    let divisor = separator[1..].iter().fold(0, |divisor, weight| gcd(divisor, *weight)).max(1);
    let weights = separator[1..].iter().map(|weight| weight / divisor).collect();
    Ok(Some(Weights { weights, threshold: -(separator[0] - 1).div_euclid(divisor) }))
}

/// For each variable, x1 first: 1 if f rises along it, -1 if it falls, 0 if it does neither. `None` if it does both, as no LTF does.
fn slopes(table: &TruthTable) -> Option<Vec<i64>> {
    let slope = |place: usize| {
        let bit = 1u64 << place;
        let pairs = || (0..table.rows()).filter(|row| row & bit == 0).map(|row| (table.get(row), table.get(row | bit)));
        match (pairs().any(|pair| pair == (false, true)), pairs().any(|pair| pair == (true, false))) {
            (true, true) => None,
            (rises, falls) => Some(i64::from(rises) - i64::from(falls)),
        }
    };
    (0..table.variables()).rev().map(slope).collect()
}

/// The inputs that decide: the lowest with f = 1 and the highest with f = 0, in the order in which f rises. Variables that do not matter
/// are 0 in them.
fn deciding_rows(table: &TruthTable, slopes: &[i64]) -> Vec<u64> {
    let n = table.variables();
    let with = |slope: i64| -> u64 { (0..n).filter(|i| slopes[*i] == slope).map(|i| 1 << (n - 1 - i)).sum() };
    let (idle, falling) = (with(0), with(-1));
    let decides = |row: &u64| {
        let value = table.get(*row);
        // A step against the value along each variable that leaves one: all of them must change it.
        let mut steps = (0..n).map(|place| 1u64 << place).filter(|bit| idle & bit == 0);
        steps.all(|bit| ((row ^ falling) & bit != 0) != value || table.get(row ^ bit) != value)
    };
    (0..table.rows()).filter(|row| row & idle == 0).filter(decides).collect()
}

/// ±(1, x1, ..., xn): + where f = 1.
fn signed(row: u64, table: &TruthTable) -> Vec<i64> {
    let sign = if table.get(row) { 1 } else { -1 };
    let bits = (0..table.variables()).rev().map(|place| sign * (row >> place & 1) as i64);
    std::iter::once(sign).chain(bits).collect()
}

/// A w with w . a > 0 for all columns a of `size` numbers, or `None` if there is none.
fn separator(columns: &[Vec<i64>], size: usize) -> Option<Vec<i64>> {
    // Rows: sum of y_j a_j = 0, sum of y_j = 1. Columns: the y_j, then one artificial variable per row, then the right side.
    let rows = size + 1;
    let (artificial, right) = (columns.len(), columns.len() + rows);
    let mut tableau: Vec<Vec<i64>> = (0..rows)
        .map(|i| {
            let own = columns.iter().map(|column| column.get(i).copied().unwrap_or(1));
            own.chain((0..rows).map(|j| i64::from(i == j))).chain([i64::from(i == size)]).collect()
        })
        .collect();
    let mut basis: Vec<usize> = (artificial..right).collect();
    let mut denominator = 1; // of all numbers in the tableau; positive
    loop {
        stop::check();
        // What is still artificial must become 0: enter a column that lowers its sum, leave at the smallest ratio, the first of equals
        // (Bland's rule, which cannot cycle).
        let infeasible: Vec<usize> = (0..rows).filter(|i| basis[*i] >= artificial).collect();
        let entering = (0..artificial).find(|j| infeasible.iter().map(|i| tableau[*i][*j]).sum::<i64>() > 0);
        let Some(entering) = entering else {
            let rest: i64 = infeasible.iter().map(|i| tableau[*i][right]).sum();
            // Multipliers of the rows, read off the columns of the artificial variables.
            let multiplier = |k: usize| -> i64 { infeasible.iter().map(|i| tableau[*i][artificial + k]).sum() };
            return (rest > 0).then(|| (0..size).map(|k| -multiplier(k)).collect());
        };
        let candidates = (0..rows).filter(|i| tableau[*i][entering] > 0);
        let leaving = candidates.min_by(|&i, &k| {
            // Ratios right / entering, compared crosswise.
            let (a, b) = (tableau[i][right] * tableau[k][entering], tableau[k][right] * tableau[i][entering]);
            a.cmp(&b).then(basis[i].cmp(&basis[k]))
        })?;
        pivot(&mut tableau, leaving, entering, denominator);
        denominator = tableau[leaving][entering];
        basis[leaving] = entering;
    }
}

/// Makes column `entering` a unit column, times the new denominator, which is the pivot.
fn pivot(tableau: &mut [Vec<i64>], leaving: usize, entering: usize, denominator: i64) {
    let row = tableau[leaving].clone();
    let pivot = row[entering];
    for (_, other) in tableau.iter_mut().enumerate().filter(|(i, _)| *i != leaving) {
        let factor = other[entering];
        for (entry, own) in other.iter_mut().zip(&row) {
            *entry = (*entry * pivot - factor * own) / denominator; // without remainder
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Function, Given, Named};

    fn table(text: &str, n: usize) -> TruthTable {
        match text.parse::<Given>().unwrap().at(Some(n)).unwrap().into_function() {
            Function::Boolean(f) => crate::BooleanFunction::table(f.as_ref()).unwrap(),
            Function::Real(_) => panic!("{text} is real"),
        }
    }

    /// Whether the weights compute f on every input.
    fn computes(weights: &Weights, table: &TruthTable) -> bool {
        let n = table.variables();
        (0..table.rows()).all(|row| {
            let sum: i64 = (0..n).filter(|i| row >> (n - 1 - i) & 1 == 1).map(|i| weights.weights[i]).sum();
            (sum >= weights.threshold) == table.get(row)
        })
    }

    /// How many LTFs there are is known (OEIS A000609): 4, 14, 104, 1882 of 1, 2, 3, 4 variables.
    #[test]
    fn all_functions_of_at_most_4_variables() {
        for (n, known) in [(1usize, 4), (2, 14), (3, 104), (4, 1882)] {
            let mut found = 0;
            for truth in 0..1u64 << (1 << n) {
                let table = TruthTable::from_words(n, &[truth]).unwrap();
                if let Some(weights) = threshold_weights(&table).unwrap() {
                    assert!(computes(&weights, &table), "n={n} {truth:b} {weights:?}");
                    found += 1;
                }
            }
            assert_eq!(found, known, "n={n}");
        }
    }

    /// By definition: some weights of at most this size do it. For n <= 3 no more than 2 are needed.
    #[test]
    fn the_same_as_trying_all_small_weights() {
        for n in 1..=3usize {
            for truth in 0..1u64 << (1 << n) {
                let table = TruthTable::from_words(n, &[truth]).unwrap();
                let tried = (0..5i64.pow(n as u32)).any(|code| {
                    let weights: Vec<i64> = (0..n).map(|i| code / 5i64.pow(i as u32) % 5 - 2).collect();
                    (-7..=7).any(|threshold| computes(&Weights { weights: weights.clone(), threshold }, &table))
                });
                assert_eq!(threshold_weights(&table).unwrap().is_some(), tried, "n={n} {truth:b}");
            }
        }
    }

    #[test]
    fn larger_ones() {
        for (text, n, is) in [
            ("majority", 11, true),
            ("threshold:n/3", 12, true),
            ("or", 12, true),
            ("kparity:0", 6, true),
            ("parity", 12, false),
            ("tribes:3", 12, false), // monotone, but no LTF
            ("address:3", 11, false),
            ("x1 & (x2 | x3 & (x4 | x5 & (x6 | x7 & (x8 | x9 & (x10 | x11 & x12)))))", 12, true), // Fibonacci weights
        ] {
            let table = table(text, n);
            let found = threshold_weights(&table).unwrap();
            assert_eq!(found.is_some(), is, "{text}");
            assert!(found.is_none_or(|weights| computes(&weights, &table)), "{text}");
        }
        // Random weights, both signs, so that all of the search is needed.
        for seed in 0..12i64 {
            let n = 9 + seed as usize % 4;
            let weight = |i: usize| ((seed + 1) * (i as i64 + 3) * 7919 % 61) - 30;
            let sum = |row: u64| -> i64 { (0..n).filter(|i| row >> i & 1 == 1).map(weight).sum() };
            let mut table = TruthTable::zeros(n).unwrap();
            (0..table.rows()).for_each(|row| table.set(row, sum(row) >= seed - 6));
            let weights = threshold_weights(&table).unwrap().unwrap();
            assert!(computes(&weights, &table), "seed {seed}");
        }
        let thirteen = Named::Or.boolean_at(13).unwrap().table().unwrap();
        assert!(threshold_weights(&thirteen).unwrap_err().to_string().contains("n=13 is too large"));
    }
}
