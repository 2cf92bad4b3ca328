//! Training steps that a GPU recorded: it does them again at one order from the host, instead of one for each of hundreds of small kernels.
//!
//! The first step on batches of some shapes is computed as usual, in which libraries prepare themselves; the second is recorded; all later ones
//! copy their batch to where the recorded one's lay.

use burn::tensor::Tensor;

use super::Classifier;
use super::learner::{Learner, StepInput};
use crate::NnError;
use crate::libtorch::Recording;
use crate::native;

/// What a recorded step holds for: the sizes of all tensors of its input, and constants.
type Shapes = Vec<Vec<i64>>;

/// The steps recorded so far, one for each shape of batch.
pub(super) struct RecordedSteps {
    steps: Vec<RecordedStep>,
    /// Shapes that were computed once.
    seen: Vec<Shapes>,
    /// Whether to record: not any more, where it did not work once.
    wanted: bool,
}

impl Default for RecordedSteps {
    fn default() -> Self {
        Self { steps: Vec::new(), seen: Vec::new(), wanted: true }
    }
}

struct RecordedStep {
    shapes: Shapes,
    /// Where it reads its input.
    inputs: Vec<tch::Tensor>,
    /// Where it writes its loss.
    loss: Tensor<1>,
    recording: Recording,
}

impl<C: Classifier> Learner<C> {
    /// The same learner, which records no steps.
    pub fn unrecorded(mut self) -> Self {
        self.recorded.wanted = false;
        self
    }

    /// How many steps of different shapes are recorded.
    pub fn recorded_shapes(&self) -> usize {
        self.recorded.steps.len()
    }

    /// Makes a step from a recorded one, and gives its loss \[1\]; `None`: it is to be computed as usual.
    pub(super) fn replay(&mut self, input: &StepInput<C::Batch>) -> Result<Option<Tensor<1>>, NnError> {
        if !self.recorded.wanted || self.model.device.name() != "cuda" || !C::NATIVE_GRADIENTS {
            return Ok(None);
        }
        let Some(tensors) = tensors::<C>(input) else { return Ok(None) };
        let mut shapes: Shapes = tensors.iter().map(tch::Tensor::size).collect();
        // What is recorded has this weight as a constant.
        shapes.extend(input.beside.iter().map(|(_, weight)| vec![weight.to_bits() as i64]));
        if let Some(step) = self.recorded.steps.iter_mut().find(|step| step.shapes == shapes) {
            step.inputs.iter_mut().zip(&tensors).for_each(|(own, new)| own.copy_(new));
            step.recording.replay()?;
            return Ok(Some(step.loss.clone()));
        }
        if !self.recorded.seen.contains(&shapes) {
            self.recorded.seen.push(shapes);
            return Ok(None);
        }
        // Taken out, as the learner computes meanwhile.
        let steps = std::mem::take(&mut self.recorded.steps);
        let beside = steps.first().map(|step| &step.recording);
        let made = Recording::of(beside, || self.compute(input.clone()));
        self.recorded.steps = steps;
        let Ok((recording, loss)) = made else {
            self.recorded.wanted = false;
            return Ok(None);
        };
        recording.replay()?;
        self.recorded.steps.push(RecordedStep { shapes, inputs: tensors, loss: loss.clone(), recording });
        Ok(Some(loss))
    }
}

/// All tensors of a step's input, where they alone tell it from others of the same shapes.
fn tensors<C: Classifier>(input: &StepInput<C::Batch>) -> Option<Vec<tch::Tensor>> {
    let mut all = C::tensors(&input.batch)?;
    all.push(native::integers(&input.labels)?);
    all.push(native::constant(input.rates.on_device.as_ref()?)?);
    if let Some((batch, _)) = &input.beside {
        all.extend(C::tensors(batch)?);
    }
    Some(all)
}
