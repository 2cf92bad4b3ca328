//! ShOp and ShPred (Section 7.2 of Vasudeva et al. 2024): what noise on the weights does to outputs and labels.

use std::borrow::Cow;
use std::sync::Arc;

use pudica_nn::NnError;
use pudica_nn::classifier::{Classifier, Model, predicted};
use pudica_statistics::Estimate;
use serde::{Deserialize, Serialize};

use super::positive;
use crate::{Budget, ProbeError, Response, WeightLaw, WeightNames, WeightNoise, Weighted, respond};

/// The noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightNoiseConfig {
    /// Standard deviation on each weight (the paper: 0.005).
    pub deviation: f64,
    /// Directions for each batch, fresh for every batch (the paper: 5 repeats).
    pub draws: usize,
}

impl Default for WeightNoiseConfig {
    /// The paper's.
    fn default() -> Self {
        Self { deviation: 0.005, draws: 5 }
    }
}

/// How outputs Phi and labels answer. The paper writes |Phi(theta) - Phi(theta + xi)| and does not say which norm that is for ten class
/// scores; both usual ones are given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightNoiseResponse {
    /// ShOp: the mean over inputs and noise of the sum over classes of |shift of the score|.
    pub output_shift_l1: Estimate,
    /// ShOp with the Euclidean norm over classes.
    pub output_shift_l2: Estimate,
    /// ShPred: how often the predicted class changes.
    pub label_changes: Estimate,
}

/// Measure it over batches of inputs (their classes play no part). Noise goes on everything that is trained, but not on positional
/// embeddings ([`pudica_nn::is_positional`]) and not on BatchNorm's running statistics, which are no parameters; the network computes as in
/// prediction. Standard errors are over batches, each of which has its own directions, and over directions when there is only one batch.
pub fn weight_noise<C: Classifier>(
    model: &Model<C>,
    batches: impl IntoIterator<Item = C::Input>,
    noise: &WeightNoiseConfig,
    seed: u64,
) -> Result<WeightNoiseResponse, ProbeError> {
    ProbeError::at_least_one("measure.weight_noise.draws", noise.draws)?;
    positive("measure.weight_noise.deviation", noise.deviation)?;
    let (weights, classes, mut rows) = (model.weights()?, model.classifier().classes(), Vec::new());
    let inputs = batches.into_iter().map(|batch| {
        rows.push(model.classifier().count(&batch));
        Weighted { weights: Cow::Borrowed(&weights), batch: Arc::new(batch) }
    });
    let mut scores = |some: &[Weighted<Arc<C::Input>>]| -> Result<Vec<Vec<f32>>, ProbeError> {
        let scores = |input: &Weighted<Arc<C::Input>>| match &input.weights {
            Cow::Borrowed(_) => model.predict(&input.batch),
            Cow::Owned(touched) => model.with_weights(touched)?.predict(&input.batch),
        };
        Ok(some.iter().map(scores).collect::<Result<Vec<_>, NnError>>()?)
    };
    let nudge = WeightNoise { rho: noise.deviation, law: WeightLaw::Normal, names: WeightNames::Draw };
    let responses =
        [shift_l1, shift_l2, label_changes].map(|of_row: fn(&[f32], &[f32]) -> f64| SumOverRows { classes, of_row });
    let responses = responses.each_ref().map(|response| response as &dyn Response<_>);
    let budget = Budget::new(noise.draws, noise.draws, seed, "weight-noise");
    let found = respond(&mut scores, inputs, &nudge, &responses, &budget)?;
    let [output_shift_l1, output_shift_l2, label_changes] =
        [0, 1, 2].map(|which: usize| found[which].mean_over_rows(&rows));
    Ok(WeightNoiseResponse { output_shift_l1, output_shift_l2, label_changes })
}

/// The sum over the rows of scores [count, classes] of what is compared in each.
struct SumOverRows {
    classes: usize,
    of_row: fn(&[f32], &[f32]) -> f64,
}

impl Response<Vec<f32>> for SumOverRows {
    fn compare(&self, before: &Vec<f32>, after: &Vec<f32>) -> f64 {
        let rows = before.chunks_exact(self.classes).zip(after.chunks_exact(self.classes));
        rows.map(|(before, after)| (self.of_row)(before, after)).sum()
    }
}

fn shifts(before: &[f32], after: &[f32]) -> impl Iterator<Item = f64> {
    before.iter().zip(after).map(|(before, after)| f64::from(*after) - f64::from(*before))
}

fn shift_l1(before: &[f32], after: &[f32]) -> f64 {
    shifts(before, after).map(f64::abs).sum()
}

fn shift_l2(before: &[f32], after: &[f32]) -> f64 {
    shifts(before, after).map(|shift| shift * shift).sum::<f64>().sqrt()
}

fn label_changes(before: &[f32], after: &[f32]) -> f64 {
    f64::from(predicted(before, before.len()) != predicted(after, after.len()))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::super::testing::{linear, perceptron, random_pictures};
    use super::*;
    use pudica_nn::Device;
    use pudica_nn::vision::{ConvMixerConfig, ImageBatch, ImageShape, VisionConfig};

    fn pictures(count: usize) -> ImageBatch {
        ImageBatch::new([0.6, -0.8, 0.0, 0.0].repeat(count), [1, 2, 2]).unwrap()
    }

    /// On an image of squared norm q, each of c scores of a linear model with bias shifts by N(0, s^2 (q + 1)): E L1 = c sqrt(2/pi) s
    /// sqrt(q + 1), and E L2 is a chi mean. The margin between two equal scores shifts its sign... one in two; with a margin m,
    /// the label changes with probability Phi(-m / (s sqrt(2 (q + 1)))).
    #[test]
    fn a_linear_models_response_is_known() {
        let (deviation, norm) = (0.1, 2.0f64.sqrt());
        let margin = 0.5 * deviation * norm * 2.0f64.sqrt();
        let model = linear(1, 2, &[0.0; 8], &[0.0, margin as f32]);
        let noise = WeightNoiseConfig { deviation, draws: 50 };
        let found = weight_noise(&model, (0..200).map(|_| pictures(2)), &noise, 0).unwrap();
        let check = |estimate: Estimate, expected: f64| {
            let error = estimate.std_error.unwrap();
            assert!(
                (estimate.mean - expected).abs() < 4.0 * error && error < 0.02 * expected,
                "{estimate:?} {expected}"
            );
        };
        check(found.output_shift_l1, 2.0 * (2.0 / PI).sqrt() * deviation * norm);
        check(found.output_shift_l2, (PI / 2.0).sqrt() * deviation * norm);
        check(found.label_changes, 0.308538);
    }

    /// The two equal images of a batch answer alike: the error must be that of 40 directions, not of 80 images.
    #[test]
    fn errors_are_over_directions_however_many_images_share_them() {
        let model = linear(1, 2, &[0.0; 8], &[0.0, 0.0]);
        let noise = WeightNoiseConfig { deviation: 0.1, draws: 40 };
        let error = |images| weight_noise(&model, [pictures(images)], &noise, 0).unwrap().output_shift_l1.std_error;
        assert!((error(1).unwrap() - error(50).unwrap()).abs() < 1e-6);
    }

    #[test]
    fn it_is_repeatable_and_small_noise_is_linear() {
        let model = perceptron(ImageShape { channels: 1, side: 4, classes: 3 }, 8, 1);
        let measure = |deviation| {
            let batches = (0..3).map(|_| random_pictures(5, [1, 4, 4]));
            weight_noise(&model, batches, &WeightNoiseConfig { deviation, draws: 4 }, 7).unwrap()
        };
        assert_eq!(measure(1e-3), measure(1e-3));
        let ratio = measure(2e-3).output_shift_l2.mean / measure(1e-3).output_shift_l2.mean;
        assert!((ratio - 2.0).abs() < 0.02, "{ratio}");
    }

    /// BatchNorm computes by its running statistics: what an image answers does not depend on the images beside it.
    #[test]
    fn images_answer_alone_in_networks_with_batch_norm() {
        let images = ImageShape { channels: 1, side: 4, classes: 3 };
        let config = VisionConfig::ConvMixer(ConvMixerConfig { images, patch: 2, dim: 4, depth: 1, kernel: 3 });
        let mut buffers = config.initial_buffers();
        buffers.data_mut().iter_mut().enumerate().for_each(|(at, value)| *value += 0.1 * (at % 3) as f32);
        let model = Model::new(&config, &config.initial_weights(1).unwrap(), &buffers, &Device::cpu()).unwrap();
        let pictures = random_pictures(2, [1, 4, 4]);
        let noise = WeightNoiseConfig { deviation: 0.05, draws: 3 };
        let shift = |chosen: &[usize]| {
            let found = weight_noise(&model, [pictures.select(chosen).unwrap()], &noise, 0).unwrap();
            found.output_shift_l1.mean
        };
        let (alone, together) = ((shift(&[0]) + shift(&[1])) / 2.0, shift(&[0, 1]));
        assert!(alone > 1e-3 && (alone - together).abs() < 1e-5 * alone, "{alone} {together}");
        assert_eq!(model.moved(&vec![0.5; model.weights().unwrap().data().len()]).unwrap().buffers().unwrap(), buffers);
    }

    #[test]
    fn senseless_settings_are_refused() {
        let model = linear(1, 2, &[0.0; 8], &[0.0, 0.0]);
        let refused = |noise| weight_noise(&model, [pictures(1)], &noise, 0).is_err();
        assert!(refused(WeightNoiseConfig { draws: 0, ..Default::default() }));
        assert!(refused(WeightNoiseConfig { deviation: f64::NAN, ..Default::default() }));
        assert!(weight_noise(&model, [], &WeightNoiseConfig::default(), 0).is_err());
    }
}
