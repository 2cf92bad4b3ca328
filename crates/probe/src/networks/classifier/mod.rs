//! Measures of classifiers on images and texts ([`pudica_nn::classifier`]), one model at a time.
//!
//! - [`evaluate`]: loss and accuracy; of corrupted images, the robustness to that corruption.
//! - [`image_sensitivity`]: a patch gets noise ([`crate::PatchNoise`]) or is replaced ([`crate::PatchReplacement`]); the label changes.
//! - [`text_sensitivity`]: an embedding gets noise ([`crate::EmbeddingNoise`]) or a word is replaced ([`crate::WordReplacement`]).
//! - [`accuracy_under_attack`]: accuracy when the pixels are moved against the network (FGSM, PGD).
//! - [`weight_noise`]: ShOp and ShPred, the shift of outputs and labels under noise on the weights.
//! - [`LossHessian`], [`trace`], [`top_eigenvalue`]: the curvature of the loss in the weights.
//!
//! A batch is a pair of inputs and their classes; [`image_batches`] and [`sequence_batches`] cut them from a set.

mod attack;
mod evaluate;
mod hessian;
mod images;
mod sequences;
mod spectrum;
#[cfg(test)]
mod testing;
mod weight_noise;

pub use attack::{Attack, Attacked, Norm, accuracy_under_attack, attacked};
pub use evaluate::{Classified, evaluate, image_batches, largest_fraction};
pub use hessian::{LossHessian, Operator};
pub use images::image_sensitivity;
pub use sequences::{sequence_batches, text_sensitivity};
pub use spectrum::{TopEigenvalue, top_eigenvalue, trace};
pub use weight_noise::{WeightNoiseConfig, WeightNoiseResponse, weight_noise};

use pudica_nn::NnError;

use crate::ProbeError;

/// A batch has as many labels as inputs, each one of the classes.
fn check_labels(labels: &[usize], count: usize, classes: usize) -> Result<(), ProbeError> {
    if labels.len() != count {
        return Err(NnError::Batch(format!("it has {} labels for {count} inputs", labels.len())).into());
    }
    match labels.iter().find(|label| **label >= classes) {
        Some(label) => {
            Err(NnError::Batch(format!("label {label} is not one of the network's {classes} classes")).into())
        }
        None => Ok(()),
    }
}

/// A number that must be finite and more than 0.
fn positive(setting: &'static str, value: f64) -> Result<(), ProbeError> {
    match value.is_finite() && value > 0.0 {
        true => Ok(()),
        false => Err(ProbeError::Setting { setting, problem: format!("must be more than 0, but is {value}") }),
    }
}

/// The Euclidean norm.
fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}
