//! The Hessian of the loss in the weights: from gradients where there are, else from losses alone.

use pudica_data::Stream;
use pudica_model::{Model, ModelError};
use pudica_nn::Weights;
use pudica_statistics::Estimate;
use serde::{Deserialize, Serialize};

use crate::asked::{Asked, answers, cases};
use crate::nudged::Asking;
use crate::nudges::Case;
use crate::work::WorkFile;
use crate::{MeasureError, MeasureResult};

/// What was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Found {
    /// The trace.
    pub trace: Estimate,
    /// The largest eigenvalue, where there are gradients.
    pub top_eigenvalue: Option<f64>,
    /// How much a product may be off because derivatives are differences, as a fraction.
    pub step_error: f64,
    /// Inputs the loss was taken over.
    pub inputs: usize,
    /// How often the model was asked.
    pub evaluations: u64,
    /// How it was found, in words.
    pub how: String,
}

/// Measures it, if `file` has it not.
pub fn measure(asked: &mut Asked, asking: &Asking, file: &mut WorkFile<Found>) -> MeasureResult<()> {
    if !file.parts.is_empty() {
        return Ok(());
    }
    let draws = asking.setting.draws()?;
    let count = asking.setting.whole("inputs", 1 << 24)?.min(asking.inputs.about().count);
    let cases = cases(asking.inputs, 0..count)?;
    let labels: Option<Vec<usize>> = cases.iter().map(|case| case.label).collect();
    let Some(labels) = labels else {
        return Err(asking.setting.refuse("the loss needs labels, and the inputs have none"));
    };
    let inputs: Vec<_> = cases.iter().map(|case| case.input.clone()).collect();
    let found = match asked.model.curvature(&inputs, &labels, draws, asking.seed) {
        Ok(curvature) => Found {
            trace: curvature.trace,
            top_eigenvalue: curvature.top_eigenvalue,
            step_error: curvature.step_error,
            inputs: count,
            evaluations: 0,
            how: "from gradients".into(),
        },
        Err(ModelError::Lacks { .. }) => from_losses(asked, &cases, draws, asking.seed)?,
        Err(error) => return Err(error.into()),
    };
    if !found.trace.mean.is_finite() {
        return Err(asking.setting.refuse("the loss is not a finite number near these weights"));
    }
    file.push(found)
}

/// Steps that are tried, as parts of the weights' root mean square, the longest first.
const STEPS: [f64; 6] = [3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3];

/// Hutchinson's estimate from losses: the mean over random signs v of \[L(w + h v) + L(w - h v) - 2 L(w)\] / h^2. Of several steps h, the one whose
/// value differs least from that of the next longer one, in the mean over the first directions.
fn from_losses(asked: &mut Asked, cases: &[Case], draws: usize, seed: u64) -> MeasureResult<Found> {
    let weights = asked.model.weights()?;
    let size =
        weights.data().iter().map(|weight| f64::from(*weight).powi(2)).sum::<f64>() / weights.data().len() as f64;
    let unit = if size > 0.0 { size.sqrt() } else { 0.1 };
    let middle = asked.clean[..cases.len()].iter().filter_map(|answer| answer.loss()).sum::<f64>() / cases.len() as f64;
    let mut evaluations = 0;
    let mut second = |draw: usize, step: f64| -> MeasureResult<f64> {
        let mut signs = Stream::new(seed, "measure/hessian", draw as u64);
        let signs: Vec<f32> = (0..weights.data().len()).map(|_| if signs.below(2) == 0 { 1.0 } else { -1.0 }).collect();
        let mut sum = -2.0 * middle;
        for side in [1.0, -1.0] {
            asked.stop.check()?;
            let mut moved = asked.model.with_weights(&shifted(&weights, &signs, side * step)?)?;
            sum += loss(moved.as_mut(), cases)?;
            evaluations += cases.len() as u64;
            (asked.tick)(cases.len() as u64);
        }
        Ok(sum / (step * step))
    };
    let trials = draws.min(2);
    let mut best = (f64::INFINITY, STEPS[0] * unit);
    let mut longer: Option<f64> = None;
    for part in STEPS {
        let step = part * unit;
        let values = (0..trials).map(|draw| second(draw, step)).collect::<MeasureResult<Vec<f64>>>()?;
        let mean = values.iter().sum::<f64>() / trials as f64;
        if let Some(longer) = longer {
            let change = ((mean - longer) / mean).abs();
            if change < best.0 {
                best = (change, step);
            }
        }
        longer = Some(mean);
    }
    let (step_error, step) = best;
    let values = (0..draws).map(|draw| second(draw, step)).collect::<MeasureResult<Vec<f64>>>()?;
    asked.evaluations += evaluations;
    Ok(Found {
        trace: Estimate::of_values(&values),
        top_eigenvalue: None,
        step_error,
        inputs: cases.len(),
        evaluations,
        how: "from differences of losses, as there are no gradients".into(),
    })
}

fn shifted(weights: &Weights, signs: &[f32], step: f64) -> MeasureResult<Weights> {
    let moved =
        weights.data().iter().zip(signs).map(|(weight, sign)| (f64::from(*weight) + step * f64::from(*sign)) as f32);
    weights.with_data(moved.collect()).map_err(|error| MeasureError::Model(error.into()))
}

/// The mean loss over inputs.
fn loss(model: &mut dyn Model, cases: &[Case]) -> MeasureResult<f64> {
    let mut sum = 0.0;
    for some in cases.chunks(model.batch().max(1)) {
        sum += answers(model, some)?.iter().filter_map(|answer| answer.loss()).sum::<f64>();
    }
    Ok(sum / cases.len() as f64)
}
