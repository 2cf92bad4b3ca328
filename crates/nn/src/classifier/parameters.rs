//! Weights on a device, as a classifier's layers see them.

use std::collections::HashMap;

use burn::tensor::Tensor;

use super::autodiff::Autodiff;
use crate::{NnError, Weights};

/// The parameters of a network by name, each a slice of one long vector, and its buffers.
pub struct Parameters {
    /// What gradients are taken with respect to; joined, they are the long vector.
    leaves: Vec<Tensor<1>>,
    /// One for each parameter, flat, in the order of the layout.
    parts: Vec<Tensor<1>>,
    places: HashMap<String, (usize, Vec<usize>)>,
    buffers: HashMap<String, Tensor<1>>,
    autodiff: Autodiff,
}

impl Parameters {
    /// Cuts `flat` \[parameters\] into the parts of `layout`. `autodiff` records what is computed from them.
    pub(super) fn new(
        flat: &Tensor<1>,
        layout: &Weights,
        buffers: &HashMap<String, Tensor<1>>,
        autodiff: Autodiff,
    ) -> Self {
        let (leaves, parts) =
            autodiff.parts(flat, layout.layout().iter().map(|parameter| parameter.range.len()).collect());
        let places = layout.layout().iter().enumerate();
        let places = places.map(|(at, parameter)| (parameter.name.clone(), (at, parameter.shape.clone()))).collect();
        Self { leaves, parts, places, buffers: buffers.clone(), autodiff }
    }

    /// The parameter of this name, in its shape.
    pub fn get<const D: usize>(&self, name: &str) -> Result<Tensor<D>, NnError> {
        let (at, shape) = self.places.get(name).ok_or_else(|| missing(name))?;
        let shape: [usize; D] = shape.as_slice().try_into().map_err(|_| {
            NnError::Layout(format!("{name} has {} dimensions, the layer that asks for it {D}", shape.len()))
        })?;
        let part = self.parts[*at].clone();
        Ok(match D {
            // It has its shape: on a GPU every operation counts, even one that does nothing.
            1 => Tensor::from_dispatch(part.into_dispatch()),
            _ => part.reshape(shape),
        })
    }

    /// The parameter of this name that is a single number, PyTorch's shape `[]`: \[1\].
    pub fn scalar(&self, name: &str) -> Result<Tensor<1>, NnError> {
        let (at, shape) = self.places.get(name).ok_or_else(|| missing(name))?;
        match shape.is_empty() {
            true => Ok(self.parts[*at].clone()),
            false => Err(NnError::Layout(format!("{name} is not a single number: its shape is {shape:?}"))),
        }
    }

    /// The buffer of this name.
    pub fn buffer(&self, name: &str) -> Result<Tensor<1>, NnError> {
        self.buffers.get(name).cloned().ok_or_else(|| missing(name))
    }

    /// The loss \[1\] without its history, and its gradient with respect to all parameters as one vector \[parameters\].
    pub(super) fn gradient(&self, loss: Tensor<1>) -> Result<(Tensor<1>, Tensor<1>), NnError> {
        let (loss, gradients) = self.autodiff.gradients(loss, &self.leaves)?;
        Ok((loss, Tensor::cat(gradients, 0)))
    }
}

fn missing(name: &str) -> NnError {
    NnError::Layout(format!("there is no parameter {name}"))
}
