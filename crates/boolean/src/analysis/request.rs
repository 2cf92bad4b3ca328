//! What is asked about a function.

use crate::files::Table;
use crate::sampled::{Budget, Precision};
use crate::{Convention, Error, Function, Result, did_you_mean, shortened};
use serde::Serialize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Declares what can be asked for: each with its name in the JSON.
macro_rules! measures {
    ($($(#[$meaning:meta])* $measure:ident = $name:literal,)*) => {
        /// What can be asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Measure {
            $($(#[$meaning])* $measure,)*
        }

        impl Measure {
            /// All of them, in the order they are printed.
            pub const ALL: &[(Self, &'static str)] = &[$((Self::$measure, $name)),*];
        }
    };
}

measures! {
    /// `E[f]`.
    Mean = "mean",
    /// `Var[f]`.
    Variance = "variance",
    /// as_n(f).
    AverageSensitivity = "average_sensitivity",
    /// The influence of each variable.
    Influences = "influences",
    /// The most sensitive bits any input has, also among 0- and among 1-inputs.
    MaxSensitivity = "max_sensitivity",
    /// How many inputs have how many sensitive bits.
    SensitivityHistogram = "sensitivity_histogram",
    /// The degree as a polynomial.
    Degree = "degree",
    /// Spectral weight by degree.
    DegreeProfile = "degree_profile",
    /// Sum of |lambda_S|.
    SpectralNorm = "spectral_norm",
    /// Spectral weight above each k.
    SpectralWeightAbove = "spectral_weight_above",
    /// Noise stability at each rho.
    NoiseStability = "noise_stability",
    /// The entropy of the squared coefficients.
    FourierEntropy = "fourier_entropy",
    /// The coefficients largest in size.
    TopCoefficients = "top_coefficients",
    /// Distance to the nearest affine function.
    Nonlinearity = "nonlinearity",
    /// How many bits of the input can be known without knowing anything about f.
    CorrelationImmunity = "correlation_immunity",
    /// The same of balanced functions; -1 for others.
    Resiliency = "resiliency",
    /// The largest autocorrelation.
    AbsoluteIndicator = "absolute_indicator",
    /// The sum of all squared autocorrelations.
    SumOfSquareIndicator = "sum_of_square_indicator",
    /// As many 0s as 1s.
    Balanced = "balanced",
    /// More ones never lower f.
    Monotone = "monotone",
    /// Monotone up to the signs of variables.
    Unate = "unate",
    /// Only the number of ones matters.
    Symmetric = "symmetric",
    /// A sum of variables modulo 2.
    Linear = "linear",
    /// Linear up to a constant.
    Affine = "affine",
    /// The variables that matter.
    RelevantVariables = "relevant_variables",
    /// The degree over GF(2).
    Gf2Degree = "gf2_degree",
    /// The polynomial over GF(2): its terms, and itself where it is short.
    AlgebraicNormalForm = "algebraic_normal_form",
    /// The coefficients of degree 0 and 1.
    ChowParameters = "chow_parameters",
    /// Whether f is a linear threshold function, n <= 12.
    LinearThreshold = "linear_threshold",
    /// bs(f), n <= 12.
    BlockSensitivity = "block_sensitivity",
    /// C(f), n <= 12.
    CertificateComplexity = "certificate_complexity",
    /// D(f), n <= 12.
    DecisionTreeDepth = "decision_tree_depth",
}

impl Measure {
    pub(super) fn needs_spectrum(self) -> bool {
        use Measure::*;
        matches!(self, Degree | FourierEntropy | Nonlinearity | CorrelationImmunity | Resiliency)
            || self.needs_autocorrelation()
            || self.is_spectral()
    }

    /// Whether it is one of [`super::SpectralMeasures`], which biased bits have, too.
    pub(super) fn is_spectral(self) -> bool {
        use Measure::*;
        matches!(self, DegreeProfile | SpectralNorm | SpectralWeightAbove | NoiseStability | TopCoefficients)
    }

    pub(super) fn needs_autocorrelation(self) -> bool {
        matches!(self, Self::AbsoluteIndicator | Self::SumOfSquareIndicator)
    }

    pub(super) fn needs_histogram(self) -> bool {
        matches!(self, Self::MaxSensitivity | Self::SensitivityHistogram)
    }

    pub(super) fn needs_properties(self) -> bool {
        use Measure::*;
        matches!(self, Balanced | Monotone | Unate | Symmetric | Linear | Affine | RelevantVariables)
    }

    pub(super) fn needs_normal_form(self) -> bool {
        matches!(self, Self::Gf2Degree | Self::AlgebraicNormalForm)
    }

    /// Whether more than 2^n steps are made, so that n must be small.
    pub fn needs_search(self) -> bool {
        use Measure::*;
        matches!(self, BlockSensitivity | CertificateComplexity | DecisionTreeDepth | LinearThreshold)
    }

    pub(super) fn can_be_sampled(self) -> bool {
        matches!(self, Self::Mean | Self::Variance | Self::AverageSensitivity | Self::Influences)
    }

    pub(super) fn is_for_boolean_functions(self) -> bool {
        use Measure::*;
        let own = matches!(
            self,
            SensitivityHistogram | FourierEntropy | Nonlinearity | CorrelationImmunity | Resiliency | ChowParameters
        );
        let by = [Self::needs_autocorrelation, Self::needs_properties, Self::needs_normal_form, Self::needs_search];
        own || by.iter().any(|needs| needs(self))
    }
}

impl FromStr for Measure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wanted = text.trim().replace('-', "_").to_lowercase();
        let known = Self::ALL.iter().find(|(_, name)| *name == wanted);
        known.map(|(measure, _)| *measure).ok_or_else(|| {
            let names = || Self::ALL.iter().map(|(_, name)| *name);
            let right = match did_you_mean(&wanted, names()) {
                hint if hint.is_empty() => format!("; there are {}", names().collect::<Vec<_>>().join(", ")),
                hint => hint,
            };
            Error::Measure(format!("unknown measure '{}'{right}", shortened(text.trim(), 40)))
        })
    }
}

/// Exactly, from the truth table, or by random inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// From the truth table.
    #[default]
    Exact,
    /// From random inputs.
    Sampled,
}

/// A function to analyse.
pub enum Subject {
    /// Given by a rule.
    Function(Function),
    /// Given by its values.
    Table(Table),
}

impl Subject {
    /// n, the number of variables.
    pub fn variables(&self) -> usize {
        match self {
            Self::Function(Function::Boolean(f)) => f.variables(),
            Self::Function(Function::Real(f)) => f.variables(),
            Self::Table(table) => table.variables(),
        }
    }

    /// As something that can be evaluated, whatever it is given by.
    pub fn into_function(self) -> Function {
        match self {
            Self::Function(function) => function,
            Self::Table(Table::Boolean(table)) => Function::Boolean(Box::new(table)),
            Self::Table(Table::Real(table)) => Function::Real(Box::new(table)),
        }
    }
}

/// What to do with a function.
#[derive(Clone, Debug)]
pub struct Request {
    /// How the function is called in the result.
    pub name: String,
    /// Values as ±1 or as 0 and 1.
    pub convention: Convention,
    /// Exact, sampled, or (`None`) exact where a truth table fits, sampled beyond.
    pub method: Option<Method>,
    /// What to compute; `None` is everything the method and n allow.
    pub measures: Option<Vec<Measure>>,
    /// Correlations for the noise stability.
    pub rhos: Vec<f64>,
    /// How many of the largest coefficients are told.
    pub top: usize,
    /// The probability that a bit is 1, for measures beside those of uniform bits.
    pub p: Option<f64>,
    /// The names of the variables, counted from 1, where some of another function were fixed; `None`: 1, 2, ...
    pub names: Option<Vec<usize>>,
    /// How long to sample.
    pub budget: Budget,
    /// Where to write all coefficients.
    pub spectrum_file: Option<PathBuf>,
}

impl Default for Request {
    /// Everything, of values ±1.
    fn default() -> Self {
        let time_limit = Duration::from_secs(60);
        Self {
            name: String::new(),
            convention: Convention::PlusMinus,
            method: None,
            measures: None,
            rhos: vec![0.9],
            top: 8,
            p: None,
            names: None,
            budget: Budget { precision: Precision::Relative(0.01), time_limit, seed: 0 },
            spectrum_file: None,
        }
    }
}

impl Request {
    /// Whether any measure that `needs` something was asked for; with no list, all are.
    pub(super) fn wants(&self, needs: impl Fn(Measure) -> bool) -> bool {
        self.measures.as_ref().is_none_or(|measures| measures.iter().any(|&measure| needs(measure)))
    }

    pub(super) fn wants_spectrum(&self) -> bool {
        self.wants(Measure::needs_spectrum) || self.spectrum_file.is_some()
    }

    pub(super) fn wants_one(&self, measure: Measure) -> bool {
        self.wants(|asked| asked == measure)
    }

    pub(super) fn asks_for(&self, needs: impl Fn(Measure) -> bool) -> bool {
        self.measures.is_some() && self.wants(needs)
    }
}
