//! The Hessian of the loss as an operator: what it makes of a direction.

use std::marker::PhantomData;

use burn::tensor::Element;
use pudica_data::Stream;
use pudica_nn::classifier::{Classifier, Model};

use crate::ProbeError;

/// A symmetric matrix that is known by its products with vectors.
pub trait Operator {
    /// Rows and columns.
    fn size(&self) -> usize;
    /// The product with a vector of that many values.
    fn apply(&self, vector: &[f64]) -> Result<Vec<f64>, ProbeError>;
}

/// The Hessian of the mean cross-entropy over fixed batches with respect to all weights, as in prediction (no dropout, BatchNorm by its
/// running statistics).
///
/// Its product with v is (gradient(theta + h v) - gradient(theta - h v)) / 2h. The step is chosen by trial: of several lengths h |v|, the
/// one where the product changes least when the length is halved; that change is [`LossHessian::step_error`]. Where a network has kinks
/// (ReLU), this is the curvature at the scale of the step.
///
/// `E` is what the device computes in: f32, or f64 after [`pudica_nn::Device::double`].
pub struct LossHessian<'a, C: Classifier, E = f32> {
    model: &'a Model<C>,
    batches: &'a [(C::Input, Vec<usize>)],
    inputs: f64,
    size: usize,
    /// The length of h v.
    step: f64,
    step_error: f64,
    element: PhantomData<E>,
}

/// Lengths of the step that are tried, as parts of the length of the weights.
const STEPS: [f64; 6] = [3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4];

impl<'a, C: Classifier, E: Element + Into<f64>> LossHessian<'a, C, E> {
    /// The Hessian at the model's weights. `seed` names the direction the step is chosen with.
    pub fn new(model: &'a Model<C>, batches: &'a [(C::Input, Vec<usize>)], seed: u64) -> Result<Self, ProbeError> {
        let inputs: usize = batches.iter().map(|(input, _)| model.classifier().count(input)).sum();
        if inputs == 0 {
            return Err(ProbeError::NoBatches("a Hessian"));
        }
        let weights = model.weights()?;
        let size = weights.data().len();
        let mut hessian =
            Self { model, batches, inputs: inputs as f64, size, step: 0.0, step_error: 0.0, element: PhantomData };
        let mut stream = Stream::new(seed, "hessian/step", 0);
        let trial: Vec<f64> = (0..size).map(|_| stream.normal()).collect();
        let length = norm(weights.data().iter().map(|weight| f64::from(*weight)));
        // Weights that are all zero have no length of their own; initial ones have about 1/10 each.
        let length = if length > 0.0 { length } else { 0.1 * (size as f64).sqrt() };
        (hessian.step_error, hessian.step) = hessian.best_step(&trial, length)?;
        Ok(hessian)
    }

    /// How much a product may be off because of the step, as a part of its length: the change when the step was halved.
    pub fn step_error(&self) -> f64 {
        self.step_error
    }

    /// The relative change on halving, and the length of the step where it is least.
    fn best_step(&self, trial: &[f64], length: f64) -> Result<(f64, f64), ProbeError> {
        let mut best = (f64::INFINITY, STEPS[0] * length);
        for part in STEPS {
            let step = part * length;
            let (whole, half) = (self.difference(trial, step)?, self.difference(trial, step / 2.0)?);
            let change = norm(whole.iter().zip(&half).map(|(whole, half)| whole - half));
            let relative = change / norm(whole.iter().copied()).max(f64::MIN_POSITIVE);
            if relative < best.0 {
                best = (relative, step);
            }
        }
        Ok(best)
    }

    /// The product by a step of this length to both sides.
    fn difference(&self, vector: &[f64], step: f64) -> Result<Vec<f64>, ProbeError> {
        let length = norm(vector.iter().copied());
        if length == 0.0 {
            return Ok(vec![0.0; self.size]);
        }
        let h = step / length;
        let direction = |sign: f64| -> Vec<f32> { vector.iter().map(|v| (sign * h * v) as f32).collect() };
        let (mut product, below) = (self.gradient(&direction(1.0))?, self.gradient(&direction(-1.0))?);
        product.iter_mut().zip(below).for_each(|(above, below)| *above = (*above - below) / (2.0 * h));
        Ok(product)
    }

    /// The gradient of the mean loss over all batches, with the weights moved.
    fn gradient(&self, direction: &[f32]) -> Result<Vec<f64>, ProbeError> {
        let moved = self.model.moved(direction)?;
        let mut sum = vec![0.0; self.size];
        for (input, labels) in self.batches {
            let share = self.model.classifier().count(input) as f64 / self.inputs;
            let (_, gradient) = moved.loss_and_gradient::<E>(input, labels)?;
            sum.iter_mut().zip(gradient).for_each(|(sum, value)| *sum += share * value.into());
        }
        Ok(sum)
    }
}

impl<C: Classifier, E: Element + Into<f64>> Operator for LossHessian<'_, C, E> {
    fn size(&self) -> usize {
        self.size
    }

    fn apply(&self, vector: &[f64]) -> Result<Vec<f64>, ProbeError> {
        self.difference(vector, self.step)
    }
}

/// The Euclidean norm.
pub(super) fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}
