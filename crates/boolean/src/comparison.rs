//! Two functions side by side: how far apart they are, and how far Lemma 21 of Hahn & Rofin says they must be.

use crate::table::TruthTable;
use crate::{Error, Result, flip_counts};
use serde::Serialize;

/// A lower bound on the distance of two functions, from their average sensitivities alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LowerBound {
    /// The bound on sqrt(E (f - f')^2); 0 when the lemma says nothing.
    pub rmse: f64,
    /// The alpha > 1 that gives it. (Where smaller is always better it approaches 1, and where larger is, infinity.)
    pub alpha: f64,
}

/// Eq. 59 at one `alpha`: f has average sensitivity `as_f` and squared norm `norm2`, f' has `as_other`.
pub fn lemma21_at(n: usize, as_f: f64, norm2: f64, as_other: f64, alpha: f64) -> f64 {
    let u = 1.0 / alpha;
    let kept = (1.0 - u) * as_f / (n as f64 - u * as_f / norm2);
    kept.max(0.0).sqrt() - norm2.sqrt() * (alpha * as_other / as_f).sqrt()
}

/// Eq. 59 at its best alpha. In u = 1/alpha both terms are concave, so a ternary search finds the maximum.
pub fn lemma21(n: usize, as_f: f64, norm2: f64, as_other: f64) -> LowerBound {
    let nothing = LowerBound { rmse: 0.0, alpha: 2.0 };
    if as_f <= 0.0 || norm2 <= 0.0 {
        return nothing;
    }
    let bound = |u: f64| lemma21_at(n, as_f, norm2, as_other, 1.0 / u);
    let (mut low, mut high) = (1e-12, 1.0 - 1e-12);
    for _ in 0..200 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if bound(a) < bound(b) { low = a } else { high = b }
    }
    let alpha = 2.0 / (low + high);
    match lemma21_at(n, as_f, norm2, as_other, alpha) {
        rmse if rmse > 0.0 => LowerBound { rmse, alpha },
        _ => nothing,
    }
}

/// Two Boolean functions compared, values in ±1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The share of inputs where they differ.
    pub distance: f64,
    /// sqrt(E (f - g)^2), which is 2 sqrt(distance).
    pub rmse: f64,
    /// as_n of the first and the second function.
    pub average_sensitivities: [f64; 2],
    /// Lemma 21 with the first function as f, at the best alpha.
    pub lemma21: LowerBound,
    /// Lemma 21 with the second function as f.
    pub lemma21_reversed: LowerBound,
    /// Whether both bounds hold: they must.
    pub holds: bool,
}

/// Compares two functions of the same variables.
pub fn compare(f: &TruthTable, g: &TruthTable) -> Result<Comparison> {
    let n = f.variables();
    if g.variables() != n {
        let problem = format!("only functions of the same variables compare: n={n} and n={}", g.variables());
        return Err(Error::Variables(problem));
    }
    let differing: u64 = f.words().iter().zip(g.words()).map(|(a, b)| u64::from((a ^ b).count_ones())).sum();
    let distance = differing as f64 / f.rows() as f64;
    let rmse = 2.0 * distance.sqrt();
    let average = |table: &TruthTable| flip_counts(table).iter().sum::<u64>() as f64 / table.rows() as f64;
    let [a, b] = [average(f), average(g)];
    let (lemma21, lemma21_reversed) = (lemma21(n, a, 1.0, b), lemma21(n, b, 1.0, a));
    let holds = rmse >= lemma21.rmse.max(lemma21_reversed.rmse) - 1e-12;
    Ok(Comparison { distance, rmse, average_sensitivities: [a, b], lemma21, lemma21_reversed, holds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{random, table};

    #[test]
    fn equation_60_is_alpha_two() {
        let (n, a, norm2, b) = (20, 12.0, 1.0, 0.5);
        let eq60 = (a / (2.0 * n as f64 - a / norm2)).sqrt() - norm2.sqrt() * (2.0 * b / a).sqrt();
        assert!((lemma21_at(n, a, norm2, b, 2.0) - eq60).abs() < 1e-12);
    }

    #[test]
    fn the_best_alpha_beats_a_fine_grid() {
        for (n, a, norm2, b) in [(20, 12.0, 1.0, 0.5), (20, 20.0, 1.0, 0.1), (10, 3.0, 0.7, 0.01), (30, 15.0, 1.0, 0.0)]
        {
            let best = lemma21(n, a, norm2, b);
            let grid = (1..100_000).map(|i| lemma21_at(n, a, norm2, b, 1e5 / f64::from(i))).fold(0.0, f64::max);
            assert!(best.rmse >= grid - 1e-9, "{best:?} against {grid}");
            assert!(best.alpha > 1.0);
        }
    }

    #[test]
    fn the_bound_holds_for_all_pairs_of_functions_of_two_variables_and_many_larger() {
        for seed in 0..100 {
            assert!(compare(&random(seed, 6), &random(seed + 1, 6)).unwrap().holds);
        }
        for (f, g) in [("parity", "first"), ("parity", "majority"), ("majority", "or"), ("parity", "kparity:0")] {
            let comparison = compare(&table(f, 11), &table(g, 11)).unwrap();
            assert!(comparison.holds, "{f} {g} {comparison:?}");
        }
        let two = |truth: u64| {
            TruthTable::from_fn(2, |x| truth >> (2 * u8::from(x.get(0)) + u8::from(x.get(1))) & 1 == 1).unwrap()
        };
        for (f, g) in (0..16).flat_map(|f| (0..16).map(move |g| (f, g))) {
            assert!(compare(&two(f), &two(g)).unwrap().holds);
        }
    }

    #[test]
    fn parity_is_far_from_anything_insensitive() {
        let comparison = compare(&table("parity", 15), &table("dictator:1", 15)).unwrap();
        assert_eq!(comparison.distance, 0.5);
        assert!(comparison.lemma21.rmse > 0.7 && comparison.lemma21.rmse <= comparison.rmse);
        assert!(compare(&table("parity", 15), &table("or", 3)).is_err());
    }
}
