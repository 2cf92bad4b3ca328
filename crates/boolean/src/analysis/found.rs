//! What was found about a function.

use super::Method;
use crate::biased::Biased;
use crate::linear_threshold::Weights;
use crate::sampled::Sampled;
use crate::{Convention, NormalForm};
use serde::Serialize;

/// A number known exactly, or estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Quantity {
    /// Exact, up to rounding.
    Exact(f64),
    /// With a confidence interval.
    Sampled(Sampled),
}

impl Quantity {
    /// The number, without its error.
    pub fn value(&self) -> f64 {
        match self {
            Self::Exact(value) => *value,
            Self::Sampled(sampled) => sampled.estimate.mean,
        }
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Exact(value) => Self::Exact(value * factor),
            Self::Sampled(sampled) => Self::Sampled(sampled.scaled(factor)),
        }
    }
}

/// A relation that must hold, and how closely it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What is claimed.
    pub claim: &'static str,
    /// The claim's left side.
    pub left: f64,
    /// Its right side.
    pub right: f64,
    /// Whether it holds.
    pub holds: bool,
}

impl Check {
    pub(super) fn equal(claim: &'static str, left: f64, right: f64, tolerance: f64) -> Self {
        Self { claim, left, right, holds: (left - right).abs() <= tolerance * left.abs().max(right.abs()).max(1.0) }
    }
}

/// The relations checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checks {
    /// The squared coefficients sum to E[f^2].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parseval: Option<Check>,
    /// The average sensitivity is the sum of |S| lambda_S^2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eq17: Option<Check>,
    /// Huang 2019: degree <= S_max^2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huang: Option<Check>,
    /// Counted twice: the mean of the histogram is the sum of the influences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram_mean: Option<Check>,
}

impl Checks {
    /// Those that were made, each with its name.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Check)> {
        let named = [
            ("Parseval", &self.parseval),
            ("Eq. 17", &self.eq17),
            ("Huang", &self.huang),
            ("histogram", &self.histogram_mean),
        ];
        named.into_iter().filter_map(|(name, check)| check.as_ref().map(|check| (name, check)))
    }
}

/// Noise stability and the rho it is at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoiseStability {
    /// Correlation of each bit with its noisy copy.
    pub rho: f64,
    /// E[f(x) f(y)].
    pub value: f64,
}

/// One coefficient of the Fourier-Walsh expansion.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coefficient {
    /// The variables of its set S, counted from 1.
    pub variables: Vec<usize>,
    /// lambda_S.
    pub value: f64,
}

/// What is read off a spectrum, that of uniform bits or that of biased ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpectralMeasures {
    /// d_0, ..., d_n.
    pub degree_profile: Option<Vec<f64>>,
    /// Sum of |lambda_S|.
    pub spectral_norm: Option<f64>,
    /// Weight above degree 0, 1, ..., n.
    pub spectral_weight_above: Option<Vec<f64>>,
    /// Noise stability at each rho asked for.
    pub noise_stability: Option<Vec<NoiseStability>>,
    /// The coefficients largest in size, as many as asked for.
    pub top_coefficients: Option<Vec<Coefficient>>,
}

/// The average sensitivity in both conventions; squares of differences of 0 and 1 are a quarter of those of ±1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BothConventions {
    /// Values ±1.
    pub pm1: f64,
    /// Values 0 and 1.
    #[serde(rename = "01")]
    pub zero_one: f64,
}

/// The result. What was not asked for, or does not exist for this function, is `None` (`null` in JSON).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Analysis {
    /// The function's name, expression or file.
    pub function: String,
    /// Number of variables.
    pub n: usize,
    /// How values are read.
    pub convention: Convention,
    /// How the numbers were found.
    pub method: Method,
    /// The free variables, counted from 1, where others were fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_variables: Option<Vec<usize>>,
    /// `E[f]`, in this convention.
    pub mean: Option<Quantity>,
    /// `Var[f]`, in this convention.
    pub variance: Option<Quantity>,
    /// as_n(f).
    pub average_sensitivity: Option<Quantity>,
    /// as_n(f) in both conventions (Boolean functions only).
    pub average_sensitivity_by_convention: Option<BothConventions>,
    /// Influence of x1, x2, ...; they sum to as_n(f).
    pub influences: Option<Vec<Quantity>>,
    /// Largest s(f, x).
    pub max_sensitivity: Option<f64>,
    /// Largest s(f, x) among inputs with f = 0.
    pub max_sensitivity_at_0: Option<usize>,
    /// Largest s(f, x) among inputs with f = 1.
    pub max_sensitivity_at_1: Option<usize>,
    /// Inputs with 0, 1, ..., n sensitive bits.
    pub sensitivity_histogram: Option<Vec<u64>>,
    /// Degree of the multilinear polynomial.
    pub degree: Option<usize>,
    /// Weights, norm, stability and largest coefficients.
    #[serde(flatten)]
    pub spectral: SpectralMeasures,
    /// The entropy of the squared coefficients (values ±1), in bits.
    pub fourier_entropy: Option<f64>,
    /// Inputs on which f differs from the nearest affine function.
    pub nonlinearity: Option<u64>,
    /// The largest m such that m bits of the input tell nothing about f.
    pub correlation_immunity: Option<usize>,
    /// The same where f is balanced, -1 where it is not.
    pub resiliency: Option<i64>,
    /// The largest |r(a)| over a other than 0, r the autocorrelation.
    pub absolute_indicator: Option<u64>,
    /// The sum of r(a)^2 over all a.
    pub sum_of_square_indicator: Option<f64>,
    /// As many inputs have f = 0 as f = 1.
    pub balanced: Option<bool>,
    /// Changing a 0 of the input into a 1 never changes f from 1 to 0.
    pub monotone: Option<bool>,
    /// For each variable, changing it from 0 to 1 never raises f, or never lowers it.
    pub unate: Option<bool>,
    /// f depends only on how many bits are 1.
    pub symmetric: Option<bool>,
    /// f is the sum of some variables modulo 2.
    pub linear: Option<bool>,
    /// f or its negation is linear.
    pub affine: Option<bool>,
    /// The variables that matter, counted from 1.
    pub relevant_variables: Option<Vec<usize>>,
    /// The degree over GF(2).
    pub gf2_degree: Option<usize>,
    /// The polynomial over GF(2).
    pub algebraic_normal_form: Option<NormalForm>,
    /// lambda of the empty set and of x1, x2, ..., in this convention.
    pub chow_parameters: Option<Vec<f64>>,
    /// Whether f is 1 exactly where a weighted sum of the bits reaches a threshold.
    pub linear_threshold: Option<bool>,
    /// Such weights, and the threshold.
    pub threshold_weights: Option<Weights>,
    /// bs(f).
    pub block_sensitivity: Option<usize>,
    /// C(f).
    pub certificate_complexity: Option<usize>,
    /// D(f).
    pub decision_tree_depth: Option<usize>,
    /// Measures under the p-biased measure, where p was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub biased: Option<Biased>,
    /// as_n(f) once more, from the spectrum: one side of Eq. 17.
    #[serde(skip)]
    pub spectral_average_sensitivity: Option<f64>,
    /// Self-checks.
    pub checks: Checks,
    /// Whether a sampled result is as precise as was asked.
    pub precision_reached: Option<bool>,
    /// Wall-clock time.
    pub seconds: f64,
}

impl Analysis {
    /// What the variables are called: x1, x2, ..., or those that were left free.
    pub fn names(&self) -> Vec<usize> {
        self.free_variables.clone().unwrap_or_else(|| (1..=self.n).collect())
    }
}
