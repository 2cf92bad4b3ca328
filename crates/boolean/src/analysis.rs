//! One function, everything asked about it: what the `pudica boolean` command prints.

use crate::complexity::{self, complexity};
use crate::files::Table;
use crate::function::{RealFunction, real};
use crate::properties::variables_of;
use crate::real_sensitivity::real_sensitivity;
use crate::sampled::{Budget, Sampled, SampledSensitivity, sample, sample_real};
use crate::table::RealTable;
use crate::{
    BooleanFunction, Convention, Error, Function, MAX_TABLE_VARIABLES, NormalForm, Properties, Result, Spectrum,
    TruthTable, did_you_mean, flip_counts, npy, sensitivity_profile, shortened, write_atomically,
};
use serde::Serialize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// `E[f]`.
    Mean,
    /// as_n(f).
    AverageSensitivity,
    /// The influence of each variable.
    Influences,
    /// The most sensitive bits any input has, also among 0- and among 1-inputs.
    MaxSensitivity,
    /// How many inputs have how many sensitive bits.
    SensitivityHistogram,
    /// The degree as a polynomial.
    Degree,
    /// Spectral weight by degree.
    DegreeProfile,
    /// Sum of |lambda_S|.
    SpectralNorm,
    /// Spectral weight above each k.
    SpectralWeightAbove,
    /// Noise stability at each rho.
    NoiseStability,
    /// The coefficients largest in size.
    LargestCoefficients,
    /// Distance to the nearest affine function.
    Nonlinearity,
    /// Balanced, monotone, symmetric, linear, and how many variables matter.
    Properties,
    /// The polynomial over GF(2): degree, terms, and itself where it is short.
    AlgebraicNormalForm,
    /// bs(f), n <= 12.
    BlockSensitivity,
    /// C(f), n <= 12.
    CertificateComplexity,
}

impl Measure {
    /// All of them, in the order they are printed.
    pub const ALL: [(Self, &'static str); 16] = [
        (Self::Mean, "mean"),
        (Self::AverageSensitivity, "average_sensitivity"),
        (Self::Influences, "influences"),
        (Self::MaxSensitivity, "max_sensitivity"),
        (Self::SensitivityHistogram, "sensitivity_histogram"),
        (Self::Degree, "degree"),
        (Self::DegreeProfile, "degree_profile"),
        (Self::SpectralNorm, "spectral_norm"),
        (Self::SpectralWeightAbove, "spectral_weight_above"),
        (Self::NoiseStability, "noise_stability"),
        (Self::LargestCoefficients, "largest_coefficients"),
        (Self::Nonlinearity, "nonlinearity"),
        (Self::Properties, "properties"),
        (Self::AlgebraicNormalForm, "algebraic_normal_form"),
        (Self::BlockSensitivity, "block_sensitivity"),
        (Self::CertificateComplexity, "certificate_complexity"),
    ];

    fn needs_spectrum(self) -> bool {
        use Measure::*;
        matches!(
            self,
            Degree
                | DegreeProfile
                | SpectralNorm
                | SpectralWeightAbove
                | NoiseStability
                | LargestCoefficients
                | Nonlinearity
        )
    }

    fn needs_histogram(self) -> bool {
        matches!(self, Self::MaxSensitivity | Self::SensitivityHistogram)
    }

    fn needs_search(self) -> bool {
        matches!(self, Self::BlockSensitivity | Self::CertificateComplexity)
    }

    fn can_be_sampled(self) -> bool {
        matches!(self, Self::Mean | Self::AverageSensitivity | Self::Influences)
    }

    fn is_for_boolean_functions(self) -> bool {
        use Measure::*;
        self.needs_search() || matches!(self, SensitivityHistogram | Nonlinearity | Properties | AlgebraicNormalForm)
    }
}

impl FromStr for Measure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wanted = text.trim().replace('-', "_").to_lowercase();
        let known = Self::ALL.iter().find(|(_, name)| *name == wanted);
        known.map(|(measure, _)| *measure).ok_or_else(|| {
            let hint = did_you_mean(&wanted, Self::ALL.map(|(_, name)| name));
            let all = Self::ALL.map(|(_, name)| name).join(", ");
            Error::Measure(format!("unknown measure '{}'{hint}; there are {all}", shortened(text.trim(), 40)))
        })
    }
}

/// Exactly, from the truth table, or by random inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// From the truth table.
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
            Self::Table(Table::Boolean(table)) => table.variables(),
            Self::Table(Table::Real(table)) => table.variables(),
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

/// How many of the largest coefficients are told.
const LARGEST_TOLD: usize = 8;

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// The function's name, expression or file.
    pub function: String,
    /// Number of variables.
    pub n: usize,
    /// How values are read.
    pub convention: Convention,
    /// How the numbers were found.
    pub method: Method,
    /// `E[f]`, in this convention.
    pub mean: Option<Quantity>,
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
    /// The coefficients largest in size, at most eight.
    pub largest_coefficients: Option<Vec<Coefficient>>,
    /// Inputs on which f differs from the nearest affine function.
    pub nonlinearity: Option<u64>,
    /// Balanced, monotone, ...
    pub properties: Option<Properties>,
    /// The polynomial over GF(2).
    pub algebraic_normal_form: Option<NormalForm>,
    /// bs(f).
    pub block_sensitivity: Option<usize>,
    /// C(f).
    pub certificate_complexity: Option<usize>,
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
        mean: None,
        average_sensitivity: None,
        average_sensitivity_by_convention: None,
        influences: None,
        max_sensitivity: None,
        max_sensitivity_at_0: None,
        max_sensitivity_at_1: None,
        sensitivity_histogram: None,
        degree: None,
        degree_profile: None,
        spectral_norm: None,
        spectral_weight_above: None,
        noise_stability: None,
        largest_coefficients: None,
        nonlinearity: None,
        properties: None,
        algebraic_normal_form: None,
        block_sensitivity: None,
        certificate_complexity: None,
        spectral_average_sensitivity: None,
        checks: Checks::default(),
        precision_reached: None,
        seconds: 0.0,
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
        let ones = table.ones() as f64 / rows;
        let is_01 = self.convention == Convention::ZeroOne;
        let mean = if is_01 { ones } else { 1.0 - 2.0 * ones };
        self.mean = request.wants_one(Measure::Mean).then_some(Quantity::Exact(mean));
        if request.wants_spectrum() {
            let spectrum = Spectrum::of(table)?.in_convention(self.convention);
            self.spectral(&spectrum, request, if is_01 { ones } else { 1.0 })?;
        }
        let flips = if request.wants(Measure::needs_histogram) {
            let profile = sensitivity_profile(table);
            let (histogram, max) = (profile.histogram(), profile.max());
            let mean = histogram.iter().enumerate().map(|(s, &count)| s as f64 * count as f64).sum::<f64>() / rows;
            let claim = "mean of the sensitivity histogram = sum of the influences";
            self.checks.histogram_mean = Some(Check::equal(claim, mean, profile.average_sensitivity(), 1e-12));
            if request.wants_one(Measure::MaxSensitivity) {
                self.max_sensitivity = Some(max as f64);
                self.max_sensitivity_at_0 = profile.max_at(false);
                self.max_sensitivity_at_1 = profile.max_at(true);
            }
            self.sensitivity_histogram = request.wants_one(Measure::SensitivityHistogram).then_some(histogram);
            if let Some(degree) = self.degree {
                let (left, right) = (degree as f64, (max * max) as f64);
                let claim = "degree <= max sensitivity squared (Huang 2019)";
                self.checks.huang = Some(Check { claim, left, right, holds: left <= right });
            }
            profile.flips
        } else {
            flip_counts(table)
        };
        self.properties = request.wants_one(Measure::Properties).then(|| Properties::of(table, &flips));
        if request.wants_one(Measure::AlgebraicNormalForm) {
            self.algebraic_normal_form = Some(NormalForm::of(table)?);
        }
        let influences: Vec<f64> = flips.iter().map(|&count| count as f64 / rows * factor).collect();
        self.sensitivity(influences, request);
        let pm1 = flips.iter().sum::<u64>() as f64 / rows;
        if request.wants_one(Measure::AverageSensitivity) {
            self.average_sensitivity_by_convention = Some(BothConventions { pm1, zero_one: pm1 / 4.0 });
        }
        let searchable = self.n <= complexity::MAX_VARIABLES && request.measures.is_none();
        if searchable || request.asks_for(Measure::needs_search) {
            let found = complexity(table)?;
            let wanted = |measure, value| request.wants_one(measure).then_some(value);
            self.block_sensitivity = wanted(Measure::BlockSensitivity, found.block_sensitivity);
            self.certificate_complexity = wanted(Measure::CertificateComplexity, found.certificate_complexity);
        }
        Ok(())
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
        let mean_square = table.values().iter().map(|v| v * v).sum::<f64>() / table.values().len() as f64;
        let mean = table.values().iter().sum::<f64>() / table.values().len() as f64;
        let mean = if mean.abs() > ROUNDING * mean_square.sqrt() { mean } else { 0.0 };
        self.mean = request.wants_one(Measure::Mean).then_some(Quantity::Exact(mean));
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
        let coefficient = |(set, value)| Coefficient { variables: variables_of(set, self.n).collect(), value };
        let largest = || {
            let found = spectrum.largest(LARGEST_TOLD);
            let least = ROUNDING * found.first().map_or(0.0, |(_, value)| value.abs());
            found.into_iter().filter(|(_, value)| value.abs() > least).map(coefficient).collect()
        };
        self.largest_coefficients = wants(Measure::LargestCoefficients).then(largest);
        self.nonlinearity = spectrum.nonlinearity().filter(|_| wants(Measure::Nonlinearity));
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
                "only mean, average_sensitivity and influences can be sampled; the others need the truth table (n={})",
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
        self.precision_reached = Some(found.precise);
        Ok(())
    }
}
