//! The Hessian of the loss as an operator: what it makes of a direction.

use std::marker::PhantomData;

use burn::tensor::{DType, Element};
use pudica_data::Stream;
use pudica_nn::NnError;
use pudica_nn::classifier::{Classifier, Model};

use super::length;
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
/// Its product with v is (gradient(theta + h v) - gradient(theta - h v)) / 2h. The length h |v| of the step is chosen by trial, for a random
/// direction and for one that leans to the largest eigenvalues, where the loss is least quadratic: of several lengths, the one whose
/// products differ least from those of the next longer one. That difference is [`LossHessian::step_error`].
///
/// `E` is what the device computes in: f32, or f64 after [`pudica_nn::Device::double`]. In f32 small steps drown in rounding and large ones
/// cross ReLU boundaries, so a ReLU network's Hessian is taken in f64: there a step is short enough to stay in the linear piece the weights
/// lie in, and the result is what automatic differentiation would give. Whether any step was good enough, `step_error` says.
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

/// Lengths of the step that are tried, as parts of the length of the weights. Those of f64 end where they pass no kink any more; f32 has lost its
/// digits there.
const STEPS_F32: &[f64] = &[3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4];
const STEPS_F64: &[f64] = &[1e-2, 1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12];
/// One to begin with.
const MIDDLE: f64 = 3e-3;

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
        let random: Vec<f64> = (0..size).map(|_| stream.normal()).collect();
        let size_of_all = length(weights.data().iter().map(|weight| f64::from(*weight)));
        // Weights that are all zero have no length of their own; initial ones have about 1/10 each.
        let scale = if size_of_all > 0.0 { size_of_all } else { 0.1 * (size as f64).sqrt() };
        let sharp = hessian.difference(&random, MIDDLE * scale)?;
        (hessian.step_error, hessian.step) = hessian.best_step(&[random, sharp], scale)?;
        Ok(hessian)
    }

    /// How much a product may be off because of the step, as a part of its length: the change from the next
    /// longer step, three to a hundred times as long.
    pub fn step_error(&self) -> f64 {
        self.step_error
    }

    /// The relative change from the step before, and the length of the step where it is least: of two trial directions, the larger change.
    fn best_step(&self, trials: &[Vec<f64>; 2], scale: f64) -> Result<(f64, f64), ProbeError> {
        let products = |part: f64| -> Result<Vec<Vec<f64>>, ProbeError> {
            trials.iter().map(|trial| self.difference(trial, part * scale)).collect()
        };
        let steps = if E::dtype() == DType::F64 { STEPS_F64 } else { STEPS_F32 };
        let mut longer = products(steps[0])?;
        let mut best = (f64::INFINITY, steps[0] * scale);
        for part in &steps[1..] {
            let shorter = products(*part)?;
            let change = |(longer, shorter): (&Vec<f64>, &Vec<f64>)| {
                let change = length(longer.iter().zip(shorter).map(|(longer, shorter)| longer - shorter));
                change / length(shorter.iter().copied()).max(f64::MIN_POSITIVE)
            };
            let change = longer.iter().zip(&shorter).map(change).fold(0.0, f64::max);
            if change < best.0 {
                best = (change, part * scale);
            }
            longer = shorter;
        }
        Ok(best)
    }

    /// The product by a step of this length to both sides.
    fn difference(&self, vector: &[f64], step: f64) -> Result<Vec<f64>, ProbeError> {
        let long = length(vector.iter().copied());
        if long == 0.0 {
            return Ok(vec![0.0; self.size]);
        }
        let h = step / long;
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
        if sum.iter().any(|value| !value.is_finite()) {
            return Err(NnError::Computation("the gradient of the loss is not a number".to_string()).into());
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
