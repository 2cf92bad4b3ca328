//! A kernel's spectrum by degree: what it says about a bias to simple functions.

use serde::{Deserialize, Serialize};

/// Whether eigenvalues fall along even and along odd degrees (Proposition 3.1's two chains).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monotone {
    /// mu_0 >= mu_2 >= mu_4 ...
    pub even: bool,
    /// mu_1 >= mu_3 >= mu_5 ...
    pub odd: bool,
    /// Degrees k with mu_k > mu_(k-2).
    pub violations: Vec<usize>,
}

impl Monotone {
    /// The chains from their violations.
    pub fn from_violations(violations: Vec<usize>) -> Monotone {
        Monotone {
            even: violations.iter().all(|degree| degree % 2 == 1),
            odd: violations.iter().all(|degree| degree % 2 == 0),
            violations,
        }
    }

    /// The chains of these eigenvalues, each known to within `error`.
    pub fn of(mu: &[f64], error: f64) -> Monotone {
        Monotone::from_violations((2..mu.len()).filter(|k| mu[*k] > mu[*k - 2] + 2.0 * error).collect())
    }
}

/// Binomial coefficients C(d, 0) ... C(d, d) in f64: exact while they are below 2^53 (d <= 56).
pub fn multiplicities(dimension: usize) -> Vec<f64> {
    let next = |row: &f64, k: usize| (row * (dimension - k) as f64 / (k + 1) as f64).round();
    std::iter::successors(Some((0, 1.0)), |(k, row)| (*k < dimension).then(|| (k + 1, next(row, *k))))
        .map(|(_, number)| number)
        .collect()
}

/// The mean degree of a fractional variance.
pub fn mean_degree(fractional_variance: &[f64]) -> f64 {
    fractional_variance.iter().enumerate().map(|(degree, share)| degree as f64 * share).sum()
}

/// The share of the non-constant variance at degrees 1 ... `degree`; NaN where all of it is constant.
pub fn share_up_to(fractional_variance: &[f64], degree: usize) -> f64 {
    let beyond_constant = |last: usize| fractional_variance.iter().take(last + 1).skip(1).sum::<f64>();
    beyond_constant(degree) / beyond_constant(fractional_variance.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_judged_apart() {
        assert_eq!(Monotone::of(&[4.0, 1.0, 3.0, 2.0, 2.0], 0.0).violations, [3]);
        let chains = Monotone::of(&[4.0, 1.0, 3.0, 2.0, 2.0], 0.0);
        assert!(chains.even && !chains.odd);
        assert!(Monotone::of(&[1.0, 1.0, 1.0 + 1e-9, 0.5], 1e-9).even);
        assert!(!Monotone::of(&[1.0, 1.0, 1.0 + 3e-9, 0.5], 1e-9).even);
    }

    #[test]
    fn small_sums() {
        assert_eq!(multiplicities(4), [1.0, 4.0, 6.0, 4.0, 1.0]);
        assert_eq!(multiplicities(14).iter().sum::<f64>(), 16384.0);
        assert_eq!(mean_degree(&[0.5, 0.25, 0.25]), 0.75);
        assert_eq!(share_up_to(&[0.5, 0.25, 0.25], 1), 0.5);
    }
}
