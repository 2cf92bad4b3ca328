//! The functions that tests of this crate go through.

use crate::{Named, TruthTable};

/// The table of a function that has a name.
pub fn table(name: &str, n: usize) -> TruthTable {
    name.parse::<Named>().unwrap().boolean_at(n).unwrap().table().unwrap()
}

/// All functions of at most 3 variables.
pub fn small() -> impl Iterator<Item = TruthTable> {
    let truths = (1..=3).flat_map(|n| (0..1u64 << (1 << n)).map(move |truth| (n, truth)));
    truths.map(|(n, truth)| TruthTable::from_words(n, &[truth]).unwrap())
}

/// A random function of `n` variables.
pub fn random(seed: u64, n: usize) -> TruthTable {
    Named::Random(seed).boolean_at(n).unwrap().table().unwrap()
}
