//! Sharpness: how much a network minds noise on its weights.

use pudica_ensemble::{Engine, Noise, Strings};
use serde::{Deserialize, Serialize};

use crate::{Estimate, Moments, ProbeError};

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
    let mut gathered = vec![(Gathered::default(), Gathered::default()); engine.replicas()];
    for (index, strings) in (0..).zip(batches) {
        let noise = Noise { rho: config.rho, draws: config.draws, purpose, index };
        for ((loss_rise, output_shift), draws) in gathered.iter_mut().zip(engine.shake(strings, noise)?) {
            loss_rise.add(draws.iter().map(|draw| draw.loss_rise));
            output_shift.add(draws.iter().map(|draw| draw.output_shift));
        }
    }
    let scale = if config.plus_minus { 4.0 } else { 1.0 };
    let finish = |(loss_rise, output_shift): (Gathered, Gathered)| match loss_rise.by_batch.count() {
        0 => Err(ProbeError::NoBatches("sharpness")),
        _ => Ok(Sharpness { loss_rise: loss_rise.finish(scale), output_shift: output_shift.finish(scale) }),
    };
    gathered.into_iter().map(finish).collect()
}

/// One reading on the way.
#[derive(Default, Clone)]
struct Gathered {
    /// The batches' means over draws.
    by_batch: Moments,
    /// The draws of the first batch: what tells the error when there is no second.
    first: Moments,
}

impl Gathered {
    fn add(&mut self, draws: impl Iterator<Item = f64>) {
        let draws: Moments = draws.collect();
        if self.by_batch.count() == 0 {
            self.first = draws;
        }
        self.by_batch.add(draws.mean());
    }

    fn finish(self, scale: f64) -> Estimate {
        let units = if self.by_batch.count() == 1 { self.first } else { self.by_batch };
        Estimate::sampled(&units).times(scale)
    }
}

#[cfg(test)]
mod tests {
    use pudica_data::{Bits, Target, Task};
    use pudica_nn::{Architecture, Device, EncoderConfig, Network, NnError, Weights};

    use super::*;
    use crate::Model;
    use crate::plain::{Plain, Subject};

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

    fn measure<M: Model + Send>(model: M, target: &str, n: usize, count: u64, config: SharpnessConfig) -> Sharpness {
        let subject = Subject { model, task: Task::new(Target::parse(target, n).unwrap()), seed: 0 };
        // All batches are the whole cube.
        let batches = (0..count).map(|index| Strings::Fresh { rows: 1 << n, purpose: "test", index });
        sharpness(&mut Plain(vec![subject]), batches, &config, "sharpness").unwrap().remove(0)
    }

    /// Noise on w and b shifts f(x) by N(0, rho^2 (|x|^2 + 1)): in the mean over the cube, rho^2 (n/2 + 1).
    #[test]
    fn a_linear_models_sharpness_is_known() {
        let model = || LinearModel::new(&[1.0, 0.0, 0.0, 0.0], 0.0);
        let config = SharpnessConfig { rho: 0.1, draws: 20, plus_minus: false };
        // The model computes "first" exactly, so both readings agree.
        let found = measure(model(), "first", 4, 200, config);
        let expected = 0.01 * (4.0 / 2.0 + 1.0);
        for estimate in [found.loss_rise, found.output_shift] {
            let error = estimate.std_error.unwrap();
            assert!((estimate.mean - expected).abs() < 4.0 * error, "{estimate:?}");
            assert!(error < 0.03 * expected);
        }
        let scaled = measure(model(), "first", 4, 200, SharpnessConfig { plus_minus: true, ..config });
        assert!((scaled.loss_rise.mean / found.loss_rise.mean - 4.0).abs() < 1e-9);
    }

    /// Away from the fit, the cross term (f - y) * shift has mean zero: both readings still agree for a linear model, within
    /// their errors, though not draw by draw.
    #[test]
    fn away_from_a_fit_the_readings_differ_by_noise_only_for_a_linear_model() {
        let model = LinearModel::new(&[0.3, 0.2, 0.0, 0.0], 0.4);
        let config = SharpnessConfig { rho: 0.05, draws: 50, plus_minus: false };
        let found = measure(model, "parity", 4, 100, config);
        let expected = 0.0025 * 3.0;
        assert!((found.output_shift.mean - expected).abs() < 4.0 * found.output_shift.std_error.unwrap());
        assert!((found.loss_rise.mean - expected).abs() < 4.0 * found.loss_rise.std_error.unwrap());
        assert_ne!(found.loss_rise.mean, found.output_shift.mean);
    }

    #[test]
    fn a_network_without_noise_has_no_sharpness_and_directions_are_fresh() {
        let architecture = Architecture::Encoder(EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(4) });
        let measure = |rho, count| {
            let weights = architecture.initial_weights(0).unwrap();
            let network = Network::new(&architecture, weights, &Device::cpu()).unwrap();
            measure(network, "parity", 4, count, SharpnessConfig { rho, draws: 3, plus_minus: true })
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
        let task = Task::new(Target::parse("first", 1).unwrap());
        let mut engine = Plain(vec![Subject { model: LinearModel::new(&[1.0], 0.0), task, seed: 0 }]);
        let batch = Strings::Fresh { rows: 2, purpose: "test", index: 0 };
        let mut refused = |config| sharpness(&mut engine, [batch], &config, "sharpness").is_err();
        assert!(refused(SharpnessConfig { draws: 0, ..Default::default() }));
        assert!(refused(SharpnessConfig { rho: f64::NAN, ..Default::default() }));
        assert!(sharpness(&mut engine, [], &SharpnessConfig::default(), "sharpness").is_err());
    }
}
