//! Sharpness: how much a network minds noise on its weights.

use pudica_data::Stream;
use pudica_ensemble::{Engine, Noise, NoisyResponse, Strings};
use pudica_statistics::Estimate;
use serde::{Deserialize, Serialize};

use crate::{Budget, Nudge, OfOne, ProbeError, Profile, Response, Subject, Touches, WeightNoise, respond};

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

/// Measure the sharpness of every network of an ensemble over batches, with fresh noise directions for every batch; the standard
/// errors are over batches, or over draws when there is only one batch. `purpose` names the noise.
pub fn sharpness<'a>(
    engine: &mut dyn Engine,
    batches: impl IntoIterator<Item = Strings<'a>>,
    config: &SharpnessConfig,
    purpose: &str,
) -> Result<Vec<Sharpness>, ProbeError> {
    ProbeError::at_least_one("measure.draws", config.draws)?;
    if !(config.rho.is_finite() && config.rho >= 0.0) {
        let problem = format!("the noise must have a standard deviation of 0 or more, but rho = {}", config.rho);
        return Err(ProbeError::Setting { setting: "measure.rho", problem });
    }
    let responses: Vec<(OfOne<LossRise>, OfOne<OutputShift>)> =
        (0..engine.replicas()).map(|replica| (OfOne(replica, LossRise), OfOne(replica, OutputShift))).collect();
    let responses: Vec<&dyn Response<Vec<NoisyResponse>>> =
        responses.iter().flat_map(|(rise, shift)| [rise as &dyn Response<_>, shift]).collect();
    // The draws of a batch go through the networks together. Each network's own seed names its noise.
    let budget = Budget::new(config.draws, config.draws, 0, purpose);
    let batches = batches.into_iter().map(Shared);
    let profiles = respond(&mut Replicas(engine), batches, &WeightNoise::normal(config.rho), &responses, &budget)?;
    let scale = if config.plus_minus { 4.0 } else { 1.0 };
    let of_one = |profiles: &[Profile]| {
        let [loss_rise, output_shift] = [0, 1].map(|which| profiles[which].mean_of_inputs.times(scale));
        Sharpness { loss_rise, output_shift }
    };
    Ok(profiles.chunks_exact(2).map(of_one).collect())
}

/// A batch of strings that several networks answer to, whose weights are with their engine.
struct Shared<'a>(Strings<'a>);

/// Noise on the weights of all networks leaves the strings as they are: the engine makes it, and nobody else is given these inputs.
impl<'a> Nudge<Shared<'a>> for WeightNoise {
    fn sites(&self, _: &Shared<'a>) -> usize {
        1
    }

    fn apply(&self, batch: &Shared<'a>, _: usize, _: &mut Stream) -> Shared<'a> {
        Shared(batch.0)
    }
}

/// The networks of an engine. It makes the noise and compares where the weights and the outputs lie, on a GPU or beside its cores, so that its
/// answers are differences from the untouched outputs: those of untouched batches are 0, and are not computed here.
struct Replicas<'e>(&'e mut dyn Engine);

impl<'a> Subject<Shared<'a>, WeightNoise> for Replicas<'_> {
    type Out = Vec<NoisyResponse>;
    type Error = ProbeError;

    fn answer(&mut self, batches: &[Shared<'a>]) -> Result<Vec<Vec<NoisyResponse>>, ProbeError> {
        let none = NoisyResponse { loss_rise: 0.0, output_shift: 0.0 };
        Ok(vec![vec![none; self.0.replicas()]; batches.len()])
    }

    fn answer_nudged(
        &mut self,
        touches: &Touches<Shared<'a>, WeightNoise>,
    ) -> Result<Vec<Vec<NoisyResponse>>, ProbeError> {
        let mut answers = Vec::with_capacity(touches.touches.len());
        for draws in touches.touches.chunk_by(|a, b| a.input == b.input) {
            let name = touches.name(&draws[0]);
            let noise = Noise { rho: touches.nudge.rho, draws: draws.len(), purpose: name.purpose, index: name.input };
            let found = self.0.shake(touches.inputs[draws[0].input].0, noise)?;
            answers.extend((0..draws.len()).map(|draw| found.iter().map(|draws| draws[draw]).collect()));
        }
        Ok(answers)
    }
}

/// How much the loss rises.
struct LossRise;

impl Response<NoisyResponse> for LossRise {
    fn compare(&self, before: &NoisyResponse, after: &NoisyResponse) -> f64 {
        after.loss_rise - before.loss_rise
    }
}

/// How far the outputs shift, in the mean square.
struct OutputShift;

impl Response<NoisyResponse> for OutputShift {
    fn compare(&self, before: &NoisyResponse, after: &NoisyResponse) -> f64 {
        after.output_shift - before.output_shift
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use pudica_data::{Batch, Target, Task};
    use pudica_ensemble::response;
    use pudica_nn::{Architecture, Device, Network, Weights};

    use super::super::testing::{constant, engine, random, small};
    use super::*;
    use crate::Weighted;

    /// Outputs and what they should be.
    struct Answered(Vec<f32>, Vec<f32>);

    struct Compared(fn(NoisyResponse) -> f64);

    impl Response<Answered> for Compared {
        fn compare(&self, before: &Answered, after: &Answered) -> f64 {
            (self.0)(response(&before.0, &after.0, &before.1))
        }
    }

    /// Sharpness by the plain loop, of anything that predicts from weights.
    fn by_the_loop(
        weights: &Weights,
        predict: impl Fn(&Weights, &Batch) -> Vec<f32>,
        batches: Vec<Batch>,
        config: SharpnessConfig,
        seed: u64,
    ) -> Sharpness {
        let mut model = |inputs: &[Weighted<&Batch>]| {
            let answer =
                |input: &Weighted<&Batch>| Answered(predict(&input.weights, input.batch), input.batch.labels.clone());
            Ok::<_, ProbeError>(inputs.iter().map(answer).collect())
        };
        let inputs = batches.iter().map(|batch| Weighted { weights: Cow::Borrowed(weights), batch });
        let readings: [Compared; 2] = [Compared(|found| found.loss_rise), Compared(|found| found.output_shift)];
        let readings = readings.each_ref().map(|reading| reading as &dyn Response<_>);
        let budget = Budget::new(config.draws, 7, seed, "sharpness");
        let found = respond(&mut model, inputs, &WeightNoise::normal(config.rho), &readings, &budget).unwrap();
        let scale = if config.plus_minus { 4.0 } else { 1.0 };
        let [loss_rise, output_shift] = [0, 1].map(|which: usize| found[which].mean_of_inputs.times(scale));
        Sharpness { loss_rise, output_shift }
    }

    /// Sharpness of f(x) = w . x + b, on `count` times the whole cube.
    fn linear(w: &[f32], bias: f32, target: &str, count: u64, config: SharpnessConfig) -> Sharpness {
        let n = w.len();
        let mut weights =
            Weights::zeros([("head.weight", &[1, n][..]), ("head.bias", &[1][..]), ("pos.weight", &[1, 1][..])]);
        weights.get_mut("head.weight").unwrap().copy_from_slice(w);
        weights.get_mut("head.bias").unwrap()[0] = bias;
        let predict = |weights: &Weights, batch: &Batch| {
            let (w, bias) = (weights.get("head.weight").unwrap().1, weights.get("head.bias").unwrap().1[0]);
            // A positional weight that noise reached would show up here.
            let position = 1000.0 * weights.get("pos.weight").unwrap().1[0];
            let dot = |x: &[u8]| w.iter().zip(x).map(|(w, x)| w * f32::from(*x)).sum::<f32>();
            batch.strings.iter().map(|x| dot(x) + bias + position).collect()
        };
        let task = Task::new(Target::parse(target, n).unwrap());
        let batches = (0..count).map(|index| task.measure_batch(1 << n, 0, "test", index).unwrap()).collect();
        by_the_loop(&weights, predict, batches, config, 0)
    }

    /// Noise on w and b shifts f(x) by N(0, rho^2 (|x|^2 + 1)): in the mean over the cube, rho^2 (n/2 + 1).
    #[test]
    fn a_linear_models_sharpness_is_known() {
        let measure = |config| linear(&[1.0, 0.0, 0.0, 0.0], 0.0, "first", 200, config);
        let config = SharpnessConfig { rho: 0.1, draws: 20, plus_minus: false };
        // The model computes "first" exactly, so both readings agree.
        let found = measure(config);
        let expected = 0.01 * (4.0 / 2.0 + 1.0);
        for estimate in [found.loss_rise, found.output_shift] {
            let error = estimate.std_error.unwrap();
            assert!((estimate.mean - expected).abs() < 4.0 * error, "{estimate:?}");
            assert!(error < 0.03 * expected);
        }
        let scaled = measure(SharpnessConfig { plus_minus: true, ..config });
        assert!((scaled.loss_rise.mean / found.loss_rise.mean - 4.0).abs() < 1e-9);
    }

    /// Away from the fit, the cross term (f - y) * shift has mean zero: both readings still agree for a linear model, within
    /// their errors, though not draw by draw.
    #[test]
    fn away_from_a_fit_the_readings_differ_by_noise_only_for_a_linear_model() {
        let config = SharpnessConfig { rho: 0.05, draws: 50, plus_minus: false };
        let found = linear(&[0.3, 0.2, 0.0, 0.0], 0.4, "parity", 100, config);
        let expected = 0.0025 * 3.0;
        assert!((found.output_shift.mean - expected).abs() < 4.0 * found.output_shift.std_error.unwrap());
        assert!((found.loss_rise.mean - expected).abs() < 4.0 * found.loss_rise.std_error.unwrap());
        assert_ne!(found.loss_rise.mean, found.output_shift.mean);
    }

    /// Batch `index` of every network.
    fn batch<'a>(index: u64) -> Strings<'a> {
        Strings::Fresh { rows: 12, purpose: "test", index }
    }

    /// What the engine makes of its noise is what the loop makes of it, to the bit.
    #[test]
    fn the_engines_shortcut_gives_the_loops_numbers() {
        let config = small(5);
        let networks = [random(&config, 3), random(&config, 5)];
        let settings = SharpnessConfig { rho: 0.05, draws: 3, plus_minus: true };
        for count in [1, 4] {
            let found =
                sharpness(engine(&config, networks.to_vec()).as_mut(), (0..count).map(batch), &settings, "sharpness")
                    .unwrap();
            for ((seed, weights), found) in networks.iter().zip(found) {
                let task = Task::new(Target::parse("parity", 5).unwrap());
                let batches = (0..count).map(|index| task.measure_batch(12, *seed, "test", index).unwrap()).collect();
                let predict = |weights: &Weights, batch: &Batch| {
                    let architecture = Architecture::Encoder(config.clone());
                    Network::new(&architecture, weights.clone(), &Device::cpu())
                        .unwrap()
                        .predict(&batch.strings)
                        .unwrap()
                };
                assert_eq!(found, by_the_loop(weights, predict, batches, settings, *seed));
                assert!(found.output_shift.mean > 0.0 && found.output_shift.std_error.unwrap() > 0.0);
                assert_eq!(found.output_shift.samples, if count == 1 { 3 } else { count });
            }
        }
    }

    #[test]
    fn a_network_without_noise_has_no_sharpness_and_directions_are_fresh() {
        let config = small(4);
        let mut engine = engine(&config, vec![random(&config, 0)]);
        let mut measure = |rho, count| {
            // All batches are the whole cube.
            let batches = (0..count).map(|index| Strings::Fresh { rows: 16, purpose: "test", index });
            let settings = SharpnessConfig { rho, draws: 3, plus_minus: true };
            sharpness(engine.as_mut(), batches, &settings, "sharpness").unwrap().remove(0)
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
        let config = small(2);
        let mut engine = engine(&config, vec![constant(&config, 0.0)]);
        let mut refused = |config| sharpness(engine.as_mut(), [batch(0)], &config, "sharpness").is_err();
        assert!(refused(SharpnessConfig { draws: 0, ..Default::default() }));
        assert!(refused(SharpnessConfig { rho: f64::NAN, ..Default::default() }));
        assert!(sharpness(engine.as_mut(), [], &SharpnessConfig::default(), "sharpness").is_err());
    }
}
