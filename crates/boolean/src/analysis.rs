//! One function, everything asked about it: what the `pudica boolean` command prints.

use crate::biased::Biased;
use crate::complexity::{self, complexity};
use crate::decision_tree;
use crate::files::Table;
use crate::function::{RealFunction, real};
use crate::linear_threshold::{self, Weights};
use crate::properties::{chow_parameters, variables_of};
use crate::real_sensitivity::real_sensitivity;
use crate::sampled::{Budget, Sampled, SampledSensitivity, sample, sample_real};
use crate::table::RealTable;
use crate::{
    BooleanFunction, Convention, Error, Function, MAX_TABLE_VARIABLES, NormalForm, Properties, Result, Spectrum,
    TruthTable, did_you_mean, flip_counts, npy, sensitivity_profile, shortened, write_atomically,
};
use serde::Serialize;
use std::cell::LazyCell;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

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
    fn needs_spectrum(self) -> bool {
        use Measure::*;
        matches!(
            self,
            Degree
                | DegreeProfile
                | SpectralNorm
                | SpectralWeightAbove
                | NoiseStability
                | FourierEntropy
                | TopCoefficients
                | Nonlinearity
                | CorrelationImmunity
                | Resiliency
        ) || self.needs_autocorrelation()
    }

    fn needs_autocorrelation(self) -> bool {
        matches!(self, Self::AbsoluteIndicator | Self::SumOfSquareIndicator)
    }

    fn needs_histogram(self) -> bool {
        matches!(self, Self::MaxSensitivity | Self::SensitivityHistogram)
    }

    fn needs_properties(self) -> bool {
        use Measure::*;
        matches!(self, Balanced | Monotone | Unate | Symmetric | Linear | Affine | RelevantVariables)
    }

    fn needs_normal_form(self) -> bool {
        matches!(self, Self::Gf2Degree | Self::AlgebraicNormalForm)
    }

    /// Whether more than 2^n steps are made, so that n must be small.
    fn needs_search(self) -> bool {
        use Measure::*;
        matches!(self, BlockSensitivity | CertificateComplexity | DecisionTreeDepth | LinearThreshold)
    }

    fn can_be_sampled(self) -> bool {
        matches!(self, Self::Mean | Self::Variance | Self::AverageSensitivity | Self::Influences)
    }

    fn is_for_boolean_functions(self) -> bool {
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
            let (hint, all) = (did_you_mean(&wanted, names()), names().collect::<Vec<_>>().join(", "));
            Error::Measure(format!("unknown measure '{}'{hint}; there are {all}", shortened(text.trim(), 40)))
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

    fn scaled(self, factor: f64) -> Self {
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
    fn equal(claim: &'static str, left: f64, right: f64, tolerance: f64) -> Self {
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

/// What is smaller than this, beside the largest of its kind, is the rounding error of sums in f64. (Coefficients of Boolean functions
/// are multiples of 2^-30.)
const ROUNDING: f64 = 1e-13;

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
    /// d_0, ..., d_n.
    pub degree_profile: Option<Vec<f64>>,
    /// Sum of |lambda_S|.
    pub spectral_norm: Option<f64>,
    /// Weight above degree 0, 1, ..., n.
    pub spectral_weight_above: Option<Vec<f64>>,
    /// Noise stability at each rho asked for.
    pub noise_stability: Option<Vec<NoiseStability>>,
    /// The entropy of the squared coefficients (values ±1), in bits.
    pub fourier_entropy: Option<f64>,
    /// The coefficients largest in size, as many as asked for.
    pub top_coefficients: Option<Vec<Coefficient>>,
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

/// Analyses `subject`. `progress` hears, while sampling, the inputs drawn so far and the half-width of the interval.
pub fn analyse(subject: Subject, request: &Request, progress: &mut dyn FnMut(u64, f64)) -> Result<Analysis> {
    let started = Instant::now();
    let n = subject.variables();
    let given = matches!(subject, Subject::Table(Table::Real(_)));
    let method = request.method.unwrap_or(if n <= MAX_TABLE_VARIABLES { Method::Exact } else { Method::Sampled });
    let mut analysis = Analysis {
        function: request.name.clone(),
        n,
        convention: if given { Convention::AsGiven } else { request.convention },
        method,
        free_variables: request.names.clone(),
        ..Analysis::default()
    };
    match method {
        Method::Sampled => analysis.sampled(subject, request, progress)?,
        Method::Exact => match subject {
            Subject::Table(Table::Boolean(table)) => analysis.exact(&table, request)?,
            Subject::Function(Function::Boolean(f)) => {
                if request.wants_spectrum() && n <= MAX_TABLE_VARIABLES {
                    Spectrum::check_fits(n)?; // before the table is built
                }
                analysis.exact(&f.table()?, request)?;
            }
            Subject::Table(Table::Real(table)) => analysis.exact_real(table, request)?,
            Subject::Function(Function::Real(f)) => {
                let f = in_convention(f, request.convention)?;
                analysis.exact_real(RealTable::of(&f)?, request)?;
            }
        },
    }
    if let (Some(counted), Some(spectral)) = (analysis.average_sensitivity, analysis.spectral_average_sensitivity) {
        let claim = "average sensitivity = sum of |S| lambda_S^2 (Eq. 17)";
        analysis.checks.eq17 = Some(Check::equal(claim, counted.value(), spectral, 1e-9));
    }
    analysis.seconds = started.elapsed().as_secs_f64();
    Ok(analysis)
}

/// A real function of bits, whose own values are on the {0,1} scale, in the asked convention.
fn in_convention(f: Box<dyn RealFunction>, convention: Convention) -> Result<impl RealFunction> {
    real(f.variables(), move |x| match convention {
        Convention::PlusMinus => 1.0 - 2.0 * f.value(x),
        _ => f.value(x),
    })
}

impl Request {
    /// Whether any measure that `needs` something was asked for; with no list, all are.
    fn wants(&self, needs: impl Fn(Measure) -> bool) -> bool {
        self.measures.as_ref().is_none_or(|measures| measures.iter().any(|&measure| needs(measure)))
    }

    fn wants_spectrum(&self) -> bool {
        self.wants(Measure::needs_spectrum) || self.spectrum_file.is_some()
    }

    fn wants_one(&self, measure: Measure) -> bool {
        self.wants(|asked| asked == measure)
    }

    fn asks_for(&self, needs: impl Fn(Measure) -> bool) -> bool {
        self.measures.is_some() && self.wants(needs)
    }
}

impl Analysis {
    fn exact(&mut self, table: &TruthTable, request: &Request) -> Result<()> {
        let factor = self.convention.square_factor();
        let rows = table.rows() as f64;
        // A pass over the table, made only where it is needed.
        let ones = LazyCell::new(|| table.ones() as f64 / rows);
        let is_01 = self.convention == Convention::ZeroOne;
        let wants = |measure| request.wants_one(measure);
        self.mean = wants(Measure::Mean).then(|| Quantity::Exact(if is_01 { *ones } else { 1.0 - 2.0 * *ones }));
        self.variance = wants(Measure::Variance).then(|| Quantity::Exact(factor * 4.0 * *ones * (1.0 - *ones)));
        if request.wants_spectrum() {
            let spectrum = Spectrum::of(table)?.in_convention(self.convention);
            self.spectral(&spectrum, request, if is_01 { *ones } else { 1.0 })?;
            let immunity = spectrum.correlation_immunity();
            let resiliency = if *ones == 0.5 { immunity.map(|order| order as i64) } else { Some(-1) };
            self.resiliency = resiliency.filter(|_| wants(Measure::Resiliency));
        }
        let flips = if request.wants(Measure::needs_histogram) {
            let profile = sensitivity_profile(table);
            let (histogram, max) = (profile.histogram(), profile.max());
            let mean = histogram.iter().enumerate().map(|(s, &count)| s as f64 * count as f64).sum::<f64>() / rows;
            let claim = "mean of the sensitivity histogram = sum of the influences";
            self.checks.histogram_mean = Some(Check::equal(claim, mean, profile.average_sensitivity(), 1e-12));
            if wants(Measure::MaxSensitivity) {
                self.max_sensitivity = Some(max as f64);
                self.max_sensitivity_at_0 = profile.max_at(false);
                self.max_sensitivity_at_1 = profile.max_at(true);
            }
            self.sensitivity_histogram = wants(Measure::SensitivityHistogram).then_some(histogram);
            if let Some(degree) = self.degree {
                let (left, right) = (degree as f64, (max * max) as f64);
                let claim = "degree <= max sensitivity squared (Huang 2019)";
                self.checks.huang = Some(Check { claim, left, right, holds: left <= right });
            }
            profile.flips
        } else {
            flip_counts(table)
        };
        self.kind_of_function(table, &flips, request)?;
        let influences: Vec<f64> = flips.iter().map(|&count| count as f64 / rows * factor).collect();
        self.sensitivity(influences, request);
        let pm1 = flips.iter().sum::<u64>() as f64 / rows;
        if wants(Measure::AverageSensitivity) {
            self.average_sensitivity_by_convention = Some(BothConventions { pm1, zero_one: pm1 / 4.0 });
        }
        self.biased = request.p.map(|p| Biased::of(table, p, is_01));
        self.searched(table, request)
    }

    /// What kind of function it is, and its polynomial over GF(2).
    fn kind_of_function(&mut self, table: &TruthTable, flips: &[u64], request: &Request) -> Result<()> {
        let wants = |measure| request.wants_one(measure);
        let names = self.names();
        if request.wants(Measure::needs_properties) {
            let found = Properties::of(table, flips);
            self.balanced = wants(Measure::Balanced).then_some(found.balanced);
            self.monotone = wants(Measure::Monotone).then_some(found.monotone);
            self.unate = wants(Measure::Unate).then_some(found.unate);
            self.symmetric = wants(Measure::Symmetric).then_some(found.symmetric);
            self.linear = wants(Measure::Linear).then_some(found.linear);
            self.affine = wants(Measure::Affine).then_some(found.affine);
            let relevant = || found.relevant_variables.iter().map(|i| names[i - 1]).collect();
            self.relevant_variables = wants(Measure::RelevantVariables).then(relevant);
        }
        if request.wants(Measure::needs_normal_form) {
            let found = NormalForm::of(table, &names)?;
            self.gf2_degree = wants(Measure::Gf2Degree).then_some(found.degree);
            self.algebraic_normal_form = wants(Measure::AlgebraicNormalForm).then_some(found);
        }
        if wants(Measure::ChowParameters) {
            let mut parameters = chow_parameters(table);
            if self.convention == Convention::ZeroOne {
                parameters.iter_mut().for_each(|lambda| *lambda = 0.0 - *lambda / 2.0);
                parameters[0] += 0.5;
            }
            self.chow_parameters = Some(parameters);
        }
        Ok(())
    }

    /// What takes more than 2^n steps: where n is small, or where it was asked for by name.
    fn searched(&mut self, table: &TruthTable, request: &Request) -> Result<()> {
        let wanted = |measure: Measure, most: usize| {
            request.asks_for(|asked| asked == measure) || request.measures.is_none() && table.variables() <= most
        };
        let [block, certificate] = [Measure::BlockSensitivity, Measure::CertificateComplexity]
            .map(|measure| wanted(measure, complexity::MAX_VARIABLES));
        if block || certificate {
            let found = complexity(table)?;
            self.block_sensitivity = block.then_some(found.block_sensitivity);
            self.certificate_complexity = certificate.then_some(found.certificate_complexity);
        }
        if wanted(Measure::DecisionTreeDepth, decision_tree::MAX_VARIABLES) {
            self.decision_tree_depth = Some(decision_tree::decision_tree_depth(table)?);
        }
        if wanted(Measure::LinearThreshold, linear_threshold::MAX_VARIABLES) {
            self.threshold_weights = linear_threshold::threshold_weights(table)?;
            self.linear_threshold = Some(self.threshold_weights.is_some());
        }
        Ok(())
    }

    /// What the variables are called: x1, x2, ..., or those that were left free.
    pub fn names(&self) -> Vec<usize> {
        self.free_variables.clone().unwrap_or_else(|| (1..=self.n).collect())
    }

    fn exact_real(&mut self, table: RealTable, request: &Request) -> Result<()> {
        if request.asks_for(Measure::is_for_boolean_functions) {
            let all = Measure::ALL.iter().filter(|(measure, _)| measure.is_for_boolean_functions());
            let names = all.map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
            return Err(Error::Measure(format!(
                "{names} are for Boolean functions; {} has real values",
                self.function
            )));
        }
        if request.p.is_some() {
            return Err(Error::Measure(format!("--p is for Boolean functions; {} has real values", self.function)));
        }
        let mean_square = table.values().iter().map(|v| v * v).sum::<f64>() / table.values().len() as f64;
        let mean = table.values().iter().sum::<f64>() / table.values().len() as f64;
        let mean = if mean.abs() > ROUNDING * mean_square.sqrt() { mean } else { 0.0 };
        self.mean = request.wants_one(Measure::Mean).then_some(Quantity::Exact(mean));
        // About the mean: squares of large values would cancel.
        let spread = || table.values().iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let variance = || Quantity::Exact(spread() / table.values().len() as f64);
        self.variance = request.wants_one(Measure::Variance).then(variance);
        let sensitivity = real_sensitivity(&table);
        self.max_sensitivity = request.wants_one(Measure::MaxSensitivity).then_some(sensitivity.max);
        self.sensitivity(sensitivity.influences, request);
        if request.wants_spectrum() {
            self.spectral(&Spectrum::of_real(table)?, request, mean_square)?;
        }
        Ok(())
    }

    /// Influences and their sum.
    fn sensitivity(&mut self, influences: Vec<f64>, request: &Request) {
        let average = influences.iter().sum();
        self.average_sensitivity = request.wants_one(Measure::AverageSensitivity).then_some(Quantity::Exact(average));
        let influences = influences.into_iter().map(Quantity::Exact).collect();
        self.influences = request.wants_one(Measure::Influences).then_some(influences);
    }

    fn spectral(&mut self, spectrum: &Spectrum, request: &Request, mean_square: f64) -> Result<()> {
        let wants = |measure| request.wants_one(measure);
        self.degree = wants(Measure::Degree).then(|| spectrum.degree());
        let least = ROUNDING * ROUNDING * spectrum.sum_of_squares();
        let profile = || spectrum.degree_profile().iter().map(|&weight| if weight > least { weight } else { 0.0 });
        self.degree_profile = wants(Measure::DegreeProfile).then(|| profile().collect());
        self.spectral_norm = wants(Measure::SpectralNorm).then(|| spectrum.spectral_norm());
        let above = || (0..=self.n).map(|k| profile().skip(k + 1).fold(0.0, |sum, weight| sum + weight)).collect();
        self.spectral_weight_above = wants(Measure::SpectralWeightAbove).then(above);
        let stability = |&rho: &f64| NoiseStability { rho, value: spectrum.noise_stability(rho) };
        self.noise_stability = wants(Measure::NoiseStability).then(|| request.rhos.iter().map(stability).collect());
        let names = self.names();
        let coefficient = |(set, value)| Coefficient { variables: variables_of(set, &names).collect(), value };
        let largest = || {
            let found = spectrum.largest(request.top);
            let least = ROUNDING * found.first().map_or(0.0, |(_, value)| value.abs());
            found.into_iter().filter(|(_, value)| value.abs() > least).map(coefficient).collect()
        };
        self.top_coefficients = wants(Measure::TopCoefficients).then(largest);
        self.nonlinearity = spectrum.nonlinearity().filter(|_| wants(Measure::Nonlinearity));
        self.correlation_immunity = spectrum.correlation_immunity().filter(|_| wants(Measure::CorrelationImmunity));
        if wants(Measure::FourierEntropy) {
            self.fourier_entropy = spectrum.fourier_entropy();
        }
        if request.wants(Measure::needs_autocorrelation) {
            let found = match spectrum.autocorrelation() {
                Err(_) if request.measures.is_none() => None, // does not fit, and nobody asked for it
                found => found?,
            };
            let sum = found.map(|found| found.sum_of_square_indicator);
            self.sum_of_square_indicator = sum.filter(|_| wants(Measure::SumOfSquareIndicator));
            let most = found.map(|found| found.absolute_indicator);
            self.absolute_indicator = most.filter(|_| wants(Measure::AbsoluteIndicator));
        }
        let claim = "sum of squared coefficients = E[f^2] (Parseval)";
        self.checks.parseval = Some(Check::equal(claim, spectrum.sum_of_squares(), mean_square, 1e-9));
        self.spectral_average_sensitivity = Some(spectrum.average_sensitivity());
        match &request.spectrum_file {
            Some(path) => write_atomically(path, |file| npy::write_f64(file, 1 << self.n, spectrum.coefficients()))
                .map_err(|source| Error::Io { action: "write", path: path.clone(), source }),
            None => Ok(()),
        }
    }

    fn sampled(&mut self, subject: Subject, request: &Request, progress: &mut dyn FnMut(u64, f64)) -> Result<()> {
        if request.asks_for(|measure| !measure.can_be_sampled()) || request.spectrum_file.is_some() {
            return Err(Error::Measure(format!(
                "only mean, variance, average_sensitivity and influences can be sampled; the others need the truth table (n={})",
                self.n
            )));
        }
        if request.p.is_some() {
            return Err(Error::Measure(format!(
                "the p-biased measure needs the truth table: leave out --p (n={})",
                self.n
            )));
        }
        let as_function = |table: TruthTable| Box::new(table) as Box<dyn BooleanFunction>;
        let found: SampledSensitivity = match subject {
            Subject::Function(Function::Boolean(f)) => sample(f.as_ref(), &request.budget, progress),
            Subject::Table(Table::Boolean(table)) => sample(as_function(table).as_ref(), &request.budget, progress),
            Subject::Function(Function::Real(f)) => {
                sample_real(&in_convention(f, request.convention)?, &request.budget, progress)
            }
            Subject::Table(Table::Real(_)) => {
                return Err(Error::Measure(
                    "a table of real values is analysed exactly: leave out the sampling options".into(),
                ));
            }
        };
        let factor = if matches!(self.convention, Convention::ZeroOne) && found.is_boolean { 0.25 } else { 1.0 };
        let wants = |measure| request.wants_one(measure);
        let quantity = |estimate| Quantity::Sampled(estimate).scaled(factor);
        self.average_sensitivity = wants(Measure::AverageSensitivity).then(|| quantity(found.average));
        self.influences = wants(Measure::Influences).then(|| found.influences.iter().map(|&i| quantity(i)).collect());
        if wants(Measure::AverageSensitivity) && found.is_boolean {
            let pm1 = found.average.estimate.mean;
            self.average_sensitivity_by_convention = Some(BothConventions { pm1, zero_one: pm1 / 4.0 });
        }
        let mean = match self.convention {
            Convention::PlusMinus if found.is_boolean => found.mean.as_signs(),
            _ => found.mean,
        };
        self.mean = wants(Measure::Mean).then_some(Quantity::Sampled(mean));
        if found.is_boolean && wants(Measure::Variance) {
            self.variance = Some(quantity(found.mean.variance_of_signs()));
        }
        self.precision_reached = Some(found.precise);
        Ok(())
    }
}
