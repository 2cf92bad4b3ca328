//! Decision-tree depth, by dynamic programming over all subcubes.

use crate::table::TruthTable;
use crate::{Error, Result};

/// The most variables taken on: there are 3^n subcubes.
pub const MAX_VARIABLES: usize = 12;

/// D(f): the questions "what is x_i?" that the best strategy needs, on the worst input, to know f; n <= [`MAX_VARIABLES`].
pub fn decision_tree_depth(table: &TruthTable) -> Result<usize> {
    let n = table.variables();
    if n > MAX_VARIABLES {
        return Err(Error::Measure(format!(
            "the decision-tree depth is found by going through all 3^n subcubes, to n={MAX_VARIABLES}; n={n} is too large"
        )));
    }
    // A subcube is a number of n digits in base 3, x1 first: 0 and 1 are fixed bits, 2 a free one. Its halves along a free bit are smaller
    // numbers, so they are done before it.
    let powers: Vec<usize> = (0..n as u32).rev().map(|place| 3usize.pow(place)).collect();
    let mut depths = vec![0u8; 3usize.pow(n as u32)];
    let mut values = vec![None; depths.len()]; // the value of f, where it is constant
    let mut digits = vec![0u8; n];
    for cube in 0..depths.len() {
        match digits.iter().position(|digit| *digit == 2) {
            None => {
                let row = digits.iter().fold(0, |row, digit| row << 1 | u64::from(*digit));
                values[cube] = Some(table.get(row));
            }
            Some(first) => {
                let halves = |i: usize| [cube - powers[i], cube - 2 * powers[i]];
                let [upper, lower] = halves(first);
                values[cube] = values[upper].filter(|_| values[upper] == values[lower]);
                if values[cube].is_none() {
                    let free = (first..n).filter(|i| digits[*i] == 2);
                    let after = free.map(|i| halves(i).map(|half| depths[half]).into_iter().max().unwrap_or(0));
                    depths[cube] = 1 + after.min().unwrap_or(0);
                }
            }
        }
        count_up(&mut digits);
    }
    Ok(usize::from(depths[depths.len() - 1]))
}

/// The next number in base 3, the last digit the least.
fn count_up(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = (*digit + 1) % 3;
        if *digit != 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spectrum;
    use crate::complexity::complexity;
    use crate::samples::{random, small, table};

    #[test]
    fn known_values() {
        for (name, n, depth) in [
            ("parity", 9, 9),
            ("or", 12, 12),
            ("majority", 7, 7), // evasive
            ("first", 5, 1),
            ("kparity:0", 3, 0),
            ("kparity:4", 11, 4),
            ("address:2", 6, 3), // the address, then the bit
            ("address:3", 11, 4),
            ("tribes:3", 9, 9), // read-once functions are evasive
        ] {
            assert_eq!(decision_tree_depth(&table(name, n)).unwrap(), depth, "{name} n={n}");
        }
    }

    /// Straight from the definition: the best first question, on lists of inputs.
    fn by_definition(inputs: &[usize], table: &TruthTable, asked: usize) -> usize {
        let value = |row: usize| table.get(row as u64);
        if inputs.windows(2).all(|pair| value(pair[0]) == value(pair[1])) {
            return 0;
        }
        let open = (0..table.variables()).map(|i| 1 << i).filter(|bit| asked & bit == 0);
        let after = open.map(|bit| {
            let (one, zero): (Vec<usize>, Vec<usize>) = inputs.iter().partition(|row| **row & bit != 0);
            by_definition(&one, table, asked | bit).max(by_definition(&zero, table, asked | bit))
        });
        1 + after.min().unwrap()
    }

    #[test]
    fn all_functions_of_at_most_3_variables_and_random_ones_of_4_to_6() {
        for table in small().chain((0..60).map(|seed| random(seed, 4 + seed as usize % 3))) {
            let all: Vec<usize> = (0..table.rows() as usize).collect();
            let depth = decision_tree_depth(&table).unwrap();
            assert_eq!(depth, by_definition(&all, &table, 0));
            // deg(f) <= D(f) and C(f) <= D(f) <= C(f)^2.
            let certificate = complexity(&table).unwrap().certificate_complexity;
            assert!(Spectrum::of(&table).unwrap().degree() <= depth);
            assert!(certificate <= depth && depth <= certificate * certificate);
        }
    }

    #[test]
    fn thirteen_variables_are_refused() {
        let table = table("or", 13);
        assert!(decision_tree_depth(&table).unwrap_err().to_string().contains("n=13 is too large"));
    }
}
