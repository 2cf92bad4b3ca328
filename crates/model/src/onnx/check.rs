//! Two engines on the same inputs: do they agree?

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::OnnxModel;
use crate::{Choices, Input, Model, ModelError, ModelResult, Runtime};

/// How far two engines are apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// How many inputs both were asked about.
    pub inputs: usize,
    /// The embedded engine and its version.
    pub tract: String,
    /// ONNX Runtime and its version.
    pub ort: String,
    /// The largest difference of two outputs.
    pub largest_difference: f64,
    /// The largest output, to compare it with.
    pub largest_output: f64,
    /// For how many inputs the largest output is the same one; of models with one output, how many are on the same side.
    pub agreeing: usize,
}

/// Asks both engines about some inputs; where there are none, about a few made-up ones.
pub fn check(path: &Path, choices: &Choices, inputs: &[Input]) -> ModelResult<Check> {
    let open = |runtime| OnnxModel::open(path, &Choices { runtime: Some(runtime), ..choices.clone() });
    let (mut tract, mut ort) = (open(Runtime::Tract)?, open(Runtime::Ort)?);
    let made_up = if inputs.is_empty() { tract.source.feeder.examples(8, 64) } else { None };
    let inputs = made_up.as_deref().unwrap_or(inputs);
    if inputs.is_empty() {
        return Err(ModelError::file(path, "does not say how large its input is: give inputs to compare engines on"));
    }
    let (ours, theirs) = (tract.scores(inputs)?, ort.scores(inputs)?);
    let threshold = if tract.about.outputs == crate::Outputs::Probabilities { 0.5 } else { 0.0 };
    let label = |row: &[f32]| match row {
        [one] => usize::from(*one > threshold),
        row => (0..row.len()).fold(0, |best, class| if row[class] > row[best] { class } else { best }),
    };
    // Two that are not numbers agree; one that is not a number is as far off as can be.
    let apart = |(ours, theirs): (&f32, &f32)| match (ours.is_nan(), theirs.is_nan()) {
        (true, true) => 0.0,
        (false, false) if ours == theirs => 0.0,
        (false, false) => f64::from(ours - theirs).abs(),
        _ => f64::INFINITY,
    };
    Ok(Check {
        inputs: inputs.len(),
        tract: tract.about.runtime.clone(),
        ort: ort.about.runtime.clone(),
        largest_difference: ours.values.iter().zip(&theirs.values).map(apart).fold(0.0, f64::max),
        largest_output: theirs.values.iter().map(|value| f64::from(value.abs())).fold(0.0, f64::max),
        agreeing: ours.rows().zip(theirs.rows()).filter(|(ours, theirs)| label(ours) == label(theirs)).count(),
    })
}
