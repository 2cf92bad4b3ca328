//! Sharpness: how much a network minds noise on its weights.

use std::rc::Rc;

use pudica_data::{Batch, Stream};
use pudica_nn::{Weights, is_positional};
use serde::{Deserialize, Serialize};

use crate::{Estimate, Model, Nudge, Plan, ProbeError, Response, respond};

/// How sharpness is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SharpnessConfig {
    /// Standard deviation of the noise on each weight (the paper: 0.02).
    pub rho: f64,
    /// Noise directions for each batch, fresh for every batch (the paper: 10).
    pub draws: usize,
    /// Report on the theory's ±1 scale: 4 times what {0, 1} labels give. The paper's figures do.
    pub plus_minus: bool,
}

impl Default for SharpnessConfig {
    /// The paper's: rho = 0.02, 10 draws, on the ±1 scale.
    fn default() -> Self {
        Self { rho: 0.02, draws: 10, plus_minus: true }
    }
}

/// Both readings of sharpness; at a perfect fit they agree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sharpness {
    /// E [ MSE(f with noise, y) - MSE(f, y) ]: what the paper's code computes.
    pub loss_rise: Estimate,
    /// E (f with noise - f)^2: what the paper defines.
    pub output_shift: Estimate,
}

/// Measure sharpness over batches; the standard errors are over batches, or over draws when there is only one batch.
pub fn sharpness<M: Model>(
    model: &M,
    batches: impl IntoIterator<Item = Result<Batch, ProbeError>>,
    config: &SharpnessConfig,
    seed: u64,
    purpose: &str,
) -> Result<Sharpness, ProbeError> {
    ProbeError::at_least_one("measure.sharpness.draws", config.draws)?;
    if !(config.rho.is_finite() && config.rho >= 0.0) {
        let problem = format!("the noise must have a standard deviation of 0 or more, but rho = {}", config.rho);
        return Err(ProbeError::Setting { setting: "measure.sharpness.rho", problem });
    }
    let weights = Rc::new(model.weights().clone());
    let cases =
        batches.into_iter().map(|batch| batch.map(|batch| Case { weights: weights.clone(), batch: Rc::new(batch) }));
    // Networks are large and batches too: one case at a time.
    let plan = Plan { draws: config.draws, pack: 1, seed, purpose };
    let predict = |cases: &[Case]| {
        let outcome = |case: &Case| {
            let outputs = model.with_weights(case.weights.as_ref().clone())?.predict(&case.batch.strings)?;
            Ok(Outcome { outputs, batch: case.batch.clone() })
        };
        cases.iter().map(outcome).collect()
    };
    let profiles = respond(cases, predict, &WeightNoise { rho: config.rho }, &[&LossRise, &OutputShift], &plan)?;
    if profiles[0].by_input.is_empty() {
        return Err(ProbeError::NoBatches("sharpness"));
    }
    let scale = if config.plus_minus { 4.0 } else { 1.0 };
    let [loss_rise, output_shift] = [&profiles[0], &profiles[1]].map(|profile| profile.total.times(scale));
    Ok(Sharpness { loss_rise, output_shift })
}

/// Weights, and the batch they are tried on.
#[derive(Debug, Clone)]
pub struct Case {
    weights: Rc<Weights>,
    batch: Rc<Batch>,
}

/// What weights make of a batch.
#[derive(Debug, Clone)]
pub struct Outcome {
    outputs: Vec<f32>,
    batch: Rc<Batch>,
}

/// N(0, rho^2) added to every weight but the positional embeddings, all at once: there is one site.
#[derive(Debug, Clone, Copy)]
pub struct WeightNoise {
    /// Standard deviation of the noise.
    pub rho: f64,
}

impl Nudge<Case> for WeightNoise {
    fn sites(&self, _: &Case) -> usize {
        1
    }

    fn touch(&self, case: &Case, _: usize, noise: &mut Stream) -> Case {
        let mut weights = case.weights.as_ref().clone();
        let noisy: Vec<_> = weights
            .layout()
            .iter()
            .filter(|parameter| !is_positional(&parameter.name))
            .map(|parameter| parameter.range.clone())
            .collect();
        for range in noisy {
            for weight in &mut weights.data_mut()[range] {
                *weight += (self.rho * noise.normal()) as f32;
            }
        }
        Case { weights: Rc::new(weights), batch: case.batch.clone() }
    }
}

/// By how much the mean squared error against the labels rises.
#[derive(Debug, Clone, Copy)]
pub struct LossRise;

impl Response<Outcome> for LossRise {
    fn compare(&self, before: &Outcome, after: &Outcome) -> f64 {
        let loss = |outcome: &Outcome| mean_square(&outcome.outputs, &outcome.batch.labels);
        loss(after) - loss(before)
    }
}

/// The mean squared shift of the outputs.
#[derive(Debug, Clone, Copy)]
pub struct OutputShift;

impl Response<Outcome> for OutputShift {
    fn compare(&self, before: &Outcome, after: &Outcome) -> f64 {
        mean_square(&before.outputs, &after.outputs)
    }
}

/// The mean of the squared differences.
pub(crate) fn mean_square(a: &[f32], b: &[f32]) -> f64 {
    let sum: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    sum / a.len() as f64
}

#[cfg(test)]
mod tests {
    use pudica_data::{Bits, Target, Task};
    use pudica_nn::{Architecture, Device, EncoderConfig, Network, NnError};

    use super::*;

    /// f(x) = w . x + b with weights under two names, one of them positional.
    struct LinearModel(Weights);

    impl LinearModel {
        fn new(w: &[f32], bias: f32) -> Self {
            let mut weights = Weights::zeros([
                ("head.weight", &[1, w.len()][..]),
                ("head.bias", &[1][..]),
                ("pos.weight", &[1, 1][..]),
            ]);
            weights.get_mut("head.weight").unwrap().copy_from_slice(w);
            weights.get_mut("head.bias").unwrap()[0] = bias;
            Self(weights)
        }
    }

    impl Model for LinearModel {
        fn weights(&self) -> &Weights {
            &self.0
        }
        fn with_weights(&self, weights: Weights) -> Result<Self, NnError> {
            Ok(Self(weights))
        }
        fn predict(&self, strings: &Bits) -> Result<Vec<f32>, NnError> {
            let (w, bias) = (self.0.get("head.weight").unwrap().1, self.0.get("head.bias").unwrap().1[0]);
            // A positional weight that noise reached would show up here.
            let position = 1000.0 * self.0.get("pos.weight").unwrap().1[0];
            let dot = |x: &[u8]| w.iter().zip(x).map(|(w, x)| w * f32::from(*x)).sum::<f32>();
            Ok(strings.iter().map(|x| dot(x) + bias + position).collect())
        }
    }

    fn cube_batches(target: &str, n: usize, count: u64) -> Vec<Result<Batch, ProbeError>> {
        let task = Task::new(Target::parse(target, n).unwrap());
        (0..count).map(|i| Ok(task.measure_batch(1 << n, 0, "test", i)?)).collect()
    }

    /// Noise on w and b shifts f(x) by N(0, rho^2 (|x|^2 + 1)): in the mean over the cube, rho^2 (n/2 + 1).
    #[test]
    fn a_linear_models_sharpness_is_known() {
        let model = LinearModel::new(&[1.0, 0.0, 0.0, 0.0], 0.0);
        let config = SharpnessConfig { rho: 0.1, draws: 20, plus_minus: false };
        // The model computes "first" exactly, so both readings agree.
        let found = sharpness(&model, cube_batches("first", 4, 200), &config, 0, "sharpness").unwrap();
        let expected = 0.01 * (4.0 / 2.0 + 1.0);
        for estimate in [found.loss_rise, found.output_shift] {
            let error = estimate.std_error.unwrap();
            assert!((estimate.mean - expected).abs() < 4.0 * error, "{estimate:?}");
            assert!(error < 0.03 * expected);
        }
        let scaled = sharpness(
            &model,
            cube_batches("first", 4, 200),
            &SharpnessConfig { plus_minus: true, ..config },
            0,
            "sharpness",
        );
        assert!((scaled.unwrap().loss_rise.mean / found.loss_rise.mean - 4.0).abs() < 1e-9);
    }

    /// Away from the fit, the cross term (f - y) * shift has mean zero: both readings still agree for a linear model, within
    /// their errors, though not draw by draw.
    #[test]
    fn away_from_a_fit_the_readings_differ_by_noise_only_for_a_linear_model() {
        let model = LinearModel::new(&[0.3, 0.2, 0.0, 0.0], 0.4);
        let config = SharpnessConfig { rho: 0.05, draws: 50, plus_minus: false };
        let found = sharpness(&model, cube_batches("parity", 4, 100), &config, 0, "sharpness").unwrap();
        let expected = 0.0025 * 3.0;
        assert!((found.output_shift.mean - expected).abs() < 4.0 * found.output_shift.std_error.unwrap());
        assert!((found.loss_rise.mean - expected).abs() < 4.0 * found.loss_rise.std_error.unwrap());
        assert_ne!(found.loss_rise.mean, found.output_shift.mean);
    }

    #[test]
    fn a_network_without_noise_has_no_sharpness_and_directions_are_fresh() {
        let architecture = Architecture::Encoder(EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(4) });
        let network = Network::new(&architecture, architecture.initial_weights(0).unwrap(), &Device::cpu()).unwrap();
        let measure = |rho, count| {
            let config = SharpnessConfig { rho, draws: 3, plus_minus: true };
            sharpness(&network, cube_batches("parity", 4, count), &config, 0, "sharpness").unwrap()
        };
        assert_eq!(measure(0.0, 2).output_shift.mean, 0.0);
        // All batches are the same cube, so only fresh directions can make them differ.
        let noisy = measure(0.02, 5);
        assert!(noisy.output_shift.mean > 0.0 && noisy.output_shift.std_error.unwrap() > 0.0);
        assert_eq!(noisy, measure(0.02, 5));
        assert!(measure(0.02, 1).output_shift.std_error.is_some(), "one batch: the error is over draws");
    }

    #[test]
    fn senseless_settings_are_refused() {
        let model = LinearModel::new(&[1.0], 0.0);
        let refused = |config| sharpness(&model, cube_batches("first", 1, 1), &config, 0, "sharpness").is_err();
        assert!(refused(SharpnessConfig { draws: 0, ..Default::default() }));
        assert!(refused(SharpnessConfig { rho: f64::NAN, ..Default::default() }));
        assert!(sharpness(&model, [], &SharpnessConfig::default(), 0, "sharpness").is_err());
    }
}
