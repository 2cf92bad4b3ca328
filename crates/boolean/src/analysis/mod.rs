//! One function, everything asked about it: what the `pudica boolean` command prints.

mod found;
mod request;

pub use found::{Analysis, BothConventions, Check, Checks, Coefficient, NoiseStability, Quantity, SpectralMeasures};
pub use request::{Measure, Method, Request, Subject};

use crate::biased::Biased;
use crate::complexity::{self, complexity};
use crate::decision_tree;
use crate::files::Table;
use crate::function::{RealFunction, real};
use crate::linear_threshold;
use crate::properties::{chow_parameters, variables_of};
use crate::real_sensitivity::real_sensitivity;
use crate::sampled::{SampledSensitivity, sample, sample_real};
use crate::table::RealTable;
use crate::{
    BooleanFunction, Convention, Error, Function, MAX_TABLE_VARIABLES, NormalForm, Properties, Result, Spectrum,
    TruthTable, flip_counts, npy, sensitivity_profile, write_atomically,
};
use std::cell::LazyCell;
use std::time::Instant;

/// What is smaller than this, beside the largest of its kind, is the rounding error of sums in f64. (Coefficients of Boolean functions
/// are multiples of 2^-30.)
const ROUNDING: f64 = 1e-13;
const PARSEVAL: &str = "sum of squared coefficients = E[f^2] (Parseval)";

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
            self.read_spectrum(&spectrum, request, if is_01 { *ones } else { 1.0 })?;
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
        self.biased = request.p.map(|p| self.biased(table, p, request)).transpose()?;
        self.searched(table, request)
    }

    /// The same measures for bits that are 1 with probability `p`.
    fn biased(&self, table: &TruthTable, p: f64, request: &Request) -> Result<Biased> {
        let is_01 = self.convention == Convention::ZeroOne;
        let mut biased = Biased::of(table, p, is_01);
        if !request.wants(Measure::is_spectral) {
            return Ok(biased);
        }
        let spectrum = match Spectrum::biased(table, p) {
            Err(_) if request.measures.is_none() => return Ok(biased), // does not fit, and nobody asked for it
            spectrum => spectrum?.in_convention(self.convention),
        };
        biased.spectral = SpectralMeasures::of(&spectrum, request, &self.names());
        let mean_square = if is_01 { biased.mean } else { 1.0 };
        biased.checks.parseval = Some(Check::equal(PARSEVAL, spectrum.sum_of_squares(), mean_square, 1e-9));
        let claim = "4 p (1 - p) average sensitivity = sum of |S| lambda_S^2 (Eq. 17 for biased bits)";
        let total_influence = 4.0 * p * (1.0 - p) * biased.average_sensitivity;
        biased.checks.eq17 = Some(Check::equal(claim, total_influence, spectrum.average_sensitivity(), 1e-9));
        Ok(biased)
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
            self.read_spectrum(&Spectrum::of_real(table)?, request, mean_square)?;
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

    fn read_spectrum(&mut self, spectrum: &Spectrum, request: &Request, mean_square: f64) -> Result<()> {
        let wants = |measure| request.wants_one(measure);
        self.degree = wants(Measure::Degree).then(|| spectrum.degree());
        self.spectral = SpectralMeasures::of(spectrum, request, &self.names());
        self.nonlinearity = spectrum.nonlinearity().filter(|_| wants(Measure::Nonlinearity));
        self.correlation_immunity = spectrum.correlation_immunity().filter(|_| wants(Measure::CorrelationImmunity));
        if wants(Measure::FourierEntropy) {
            self.fourier_entropy = spectrum.fourier_entropy();
        }
        if wants(Measure::SumOfSquareIndicator) {
            self.sum_of_square_indicator = spectrum.sum_of_square_indicator();
        }
        if wants(Measure::AbsoluteIndicator) {
            self.absolute_indicator = match spectrum.absolute_indicator() {
                Err(_) if request.measures.is_none() => None, // does not fit, and nobody asked for it
                found => found?,
            };
        }
        self.checks.parseval = Some(Check::equal(PARSEVAL, spectrum.sum_of_squares(), mean_square, 1e-9));
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

impl SpectralMeasures {
    /// Those that are asked for; `names` are those of the variables.
    fn of(spectrum: &Spectrum, request: &Request, names: &[usize]) -> Self {
        let wants = |measure| request.wants_one(measure);
        let least = ROUNDING * ROUNDING * spectrum.sum_of_squares();
        let profile = || spectrum.degree_profile().iter().map(|&weight| if weight > least { weight } else { 0.0 });
        let above = |k: usize| profile().skip(k + 1).fold(0.0, |sum, weight| sum + weight);
        let stability = |&rho: &f64| NoiseStability { rho, value: spectrum.noise_stability(rho) };
        let coefficient = |(set, value)| Coefficient { variables: variables_of(set, names).collect(), value };
        let largest = || {
            let found = spectrum.largest(request.top);
            let least = ROUNDING * found.first().map_or(0.0, |(_, value)| value.abs());
            found.into_iter().filter(|(_, value)| value.abs() > least).map(coefficient).collect()
        };
        Self {
            degree_profile: wants(Measure::DegreeProfile).then(|| profile().collect()),
            spectral_norm: wants(Measure::SpectralNorm).then(|| spectrum.spectral_norm()),
            spectral_weight_above: wants(Measure::SpectralWeightAbove)
                .then(|| (0..=spectrum.variables()).map(above).collect()),
            noise_stability: wants(Measure::NoiseStability).then(|| request.rhos.iter().map(stability).collect()),
            top_coefficients: wants(Measure::TopCoefficients).then(largest),
        }
    }
}
