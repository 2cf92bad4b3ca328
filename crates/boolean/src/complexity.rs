//! Block sensitivity and certificate complexity, by exhaustive search over sets of variables.

use crate::table::TruthTable;
use crate::{Error, Result, stop};
use rayon::prelude::*;

/// The most variables these searches take on: 2^n inputs, each with up to 3^n pairs of nested sets.
pub const MAX_VARIABLES: usize = 12;

/// Worst-case measures of a small function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complexity {
    /// bs(f): the most disjoint blocks of bits of one input such that flipping any one block changes f.
    pub block_sensitivity: usize,
    /// C(f): bits of an input that must be shown, in the worst case, to prove the value of f.
    pub certificate_complexity: usize,
}

/// Both measures, on all cores; n <= [`MAX_VARIABLES`].
pub fn complexity(table: &TruthTable) -> Result<Complexity> {
    let n = table.variables();
    if n > MAX_VARIABLES {
        return Err(Error::Measure(format!(
            "block sensitivity and certificate complexity are searched for exhaustively, to n={MAX_VARIABLES}; n={n} is too large"
        )));
    }
    let values: Vec<bool> = (0..table.rows()).map(|row| table.get(row)).collect();
    let (block_sensitivity, certificate_complexity) = (0..values.len())
        .into_par_iter()
        .map(|row| {
            stop::check();
            let changes: Vec<bool> = (0..values.len()).map(|block| values[row] != values[row ^ block]).collect();
            (block_sensitivity_at(&changes), certificate_at(&changes))
        })
        .reduce(|| (0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    Ok(Complexity { block_sensitivity, certificate_complexity })
}

/// The most disjoint sets B with `changes[B]`. Sensitive bits are blocks of their own in some best packing, so only the
/// other bits are packed, by a table over their subsets.
fn block_sensitivity_at(changes: &[bool]) -> usize {
    let all = changes.len() - 1;
    let single = (0..usize::BITS).map(|i| 1 << i).filter(|bit| bit & all != 0 && changes[*bit]).fold(0, |a, b| a | b);
    let others = all & !single;
    let mut best = vec![0u8; changes.len()];
    let mut set = 0usize;
    loop {
        // Next subset of `others`, in increasing order, so that all its subsets are done.
        set = (set | !others).wrapping_add(1) & others;
        if set == 0 {
            break;
        }
        let lowest = set & set.wrapping_neg();
        let rest = set ^ lowest;
        let mut most = best[rest]; // the lowest bit is in no block
        let mut part = rest;
        loop {
            // The lowest bit's block is itself with `part`.
            if changes[part | lowest] {
                most = most.max(1 + best[rest ^ part]);
            }
            if part == 0 {
                break;
            }
            part = (part - 1) & rest;
        }
        best[set] = most;
    }
    single.count_ones() as usize + usize::from(best[others])
}

/// The fewest bits to fix so that no set of the others has `changes`.
fn certificate_at(changes: &[bool]) -> usize {
    // free[B]: whether the value is constant when exactly the bits of B may change.
    let mut constant = changes.iter().map(|&c| !c).collect::<Vec<_>>();
    for bit in (0..changes.len().ilog2()).map(|i| 1usize << i) {
        for set in (0..changes.len()).filter(|set| set & bit != 0) {
            constant[set] &= constant[set ^ bit];
        }
    }
    let n = changes.len().ilog2();
    let most_free = (0..changes.len()).filter(|&set| constant[set]).map(|set| set.count_ones()).max().unwrap_or(0);
    (n - most_free) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{random, small, table};
    use crate::sensitivity_profile;

    fn of(name: &str, n: usize) -> Complexity {
        complexity(&table(name, n)).unwrap()
    }

    #[test]
    fn known_values() {
        // (function, n, bs, C): OR and parity are as hard as can be; address:k has C = k + 1.
        for (name, n, block, certificate) in [
            ("or", 6, 6, 6),
            ("parity", 8, 8, 8),
            ("first", 5, 1, 1),
            ("majority", 7, 4, 4),
            ("address:2", 6, 3, 3),
            ("kparity:0", 3, 0, 0),
            ("tribes:3", 9, 3, 3),
        ] {
            let found = of(name, n);
            assert_eq!((found.block_sensitivity, found.certificate_complexity), (block, certificate), "{name}");
        }
    }

    /// Straight from the definitions, with no shortcuts.
    fn by_definition(table: &TruthTable) -> Complexity {
        fn pack(blocks: &[usize], used: usize) -> usize {
            (0..blocks.len())
                .filter(|&i| blocks[i] & used == 0)
                .map(|i| 1 + pack(&blocks[i + 1..], used | blocks[i]))
                .max()
                .unwrap_or(0)
        }
        let rows = table.rows() as usize;
        let at = |row: usize| table.get(row as u64);
        let block = |x: usize| {
            let blocks: Vec<usize> = (1..rows).filter(|b| at(x) != at(x ^ b)).collect();
            pack(&blocks, 0)
        };
        let certificate = |x: usize| {
            let proves = |fixed: usize| (0..rows).filter(|y| (x ^ y) & fixed == 0).all(|y| at(x) == at(y));
            (0..rows).filter(|&fixed| proves(fixed)).map(|fixed| fixed.count_ones() as usize).min().unwrap()
        };
        Complexity {
            block_sensitivity: (0..rows).map(block).max().unwrap(),
            certificate_complexity: (0..rows).map(certificate).max().unwrap(),
        }
    }

    #[test]
    fn all_functions_of_at_most_3_variables_and_some_of_4() {
        let of_4 = |seed: u64| TruthTable::from_words(4, &[seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48]).unwrap();
        for table in small().chain((0..200).map(of_4)) {
            assert_eq!(complexity(&table).unwrap(), by_definition(&table), "{table:?}");
        }
    }

    #[test]
    fn sensitivity_at_most_block_sensitivity_at_most_certificate() {
        for seed in 0..10 {
            let table = random(seed, 8);
            let found = complexity(&table).unwrap();
            assert!(sensitivity_profile(&table).max() <= found.block_sensitivity);
            assert!(found.block_sensitivity <= found.certificate_complexity);
        }
    }

    #[test]
    fn thirteen_variables_are_refused() {
        let table = table("or", 13);
        assert!(complexity(&table).unwrap_err().to_string().contains("n=13 is too large"));
    }
}
