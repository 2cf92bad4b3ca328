//! From outputs to measures, on the scale of the {0, 1} labels.

use pudica_data::Stream;
use pudica_nn::{Parameter, add_noise};

use crate::{Noise, NoisyResponse};

/// Mean squared error, and the part of outputs on the label's side of 1/2.
pub(crate) fn score(outputs: &[f32], labels: &[f32]) -> (f64, f64) {
    let right = outputs.iter().zip(labels).filter(|(output, label)| (**output > 0.5) == (**label > 0.5)).count();
    (mean_square(outputs, labels), right as f64 / outputs.len() as f64)
}

/// What noise that turned `before` into `after` did.
pub fn response(before: &[f32], after: &[f32], labels: &[f32]) -> NoisyResponse {
    NoisyResponse {
        loss_rise: mean_square(after, labels) - mean_square(before, labels),
        output_shift: mean_square(before, after),
    }
}

fn mean_square(a: &[f32], b: &[f32]) -> f64 {
    let sum: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    sum / a.len() as f64
}

/// Add draw `draw` of the noise of a replica of this seed to its weights.
pub(crate) fn shake(weights: &mut [f32], layout: &[Parameter], noise: &Noise, seed: u64, draw: usize) {
    let mut stream = Stream::new(seed, &format!("{}/0/{draw}", noise.purpose), noise.index);
    add_noise(weights, layout, noise.rho, &mut stream);
}
