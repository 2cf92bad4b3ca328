//! Weights on a device, as a classifier's layers see them.

use std::collections::HashMap;

use burn::tensor::{Gradients, Tensor};

use crate::{NnError, Weights};

/// The parameters of a network by name, each a slice of one long vector, and its buffers.
pub struct Parameters {
    /// One leaf for each parameter, flat, in the order of the layout.
    leaves: Vec<Tensor<1>>,
    places: HashMap<String, (usize, Vec<usize>)>,
    buffers: HashMap<String, Tensor<1>>,
}

impl Parameters {
    /// Cuts `flat` \[parameters\] into the parts of `layout`. With `recording`, gradients of what is computed from them are kept.
    pub(super) fn new(
        flat: &Tensor<1>,
        layout: &Weights,
        buffers: &HashMap<String, Tensor<1>>,
        recording: bool,
    ) -> Self {
        let part = |range: std::ops::Range<usize>| {
            let leaf = flat.clone().slice([range]);
            if recording { leaf.autodiff().require_grad() } else { leaf }
        };
        let leaves = layout.layout().iter().map(|parameter| part(parameter.range.clone())).collect();
        let places = layout.layout().iter().enumerate();
        let places = places.map(|(at, parameter)| (parameter.name.clone(), (at, parameter.shape.clone()))).collect();
        Self { leaves, places, buffers: buffers.clone() }
    }

    /// The parameter of this name, in its shape.
    pub fn get<const D: usize>(&self, name: &str) -> Result<Tensor<D>, NnError> {
        let (at, shape) = self.places.get(name).ok_or_else(|| missing(name))?;
        let shape: [usize; D] = shape.as_slice().try_into().map_err(|_| {
            NnError::Layout(format!("{name} has {} dimensions, the layer that asks for it {D}", shape.len()))
        })?;
        Ok(self.leaves[*at].clone().reshape(shape))
    }

    /// The parameter of this name that is a single number, PyTorch's shape `[]`: \[1\].
    pub fn scalar(&self, name: &str) -> Result<Tensor<1>, NnError> {
        let (at, shape) = self.places.get(name).ok_or_else(|| missing(name))?;
        match shape.is_empty() {
            true => Ok(self.leaves[*at].clone()),
            false => Err(NnError::Layout(format!("{name} is not a single number: its shape is {shape:?}"))),
        }
    }

    /// The buffer of this name.
    pub fn buffer(&self, name: &str) -> Result<Tensor<1>, NnError> {
        self.buffers.get(name).cloned().ok_or_else(|| missing(name))
    }

    /// The gradients of all parameters as one vector \[parameters\], zero where one played no part.
    pub(super) fn gradient(&self, mut gradients: Gradients) -> Tensor<1> {
        let of = |leaf: &Tensor<1>| {
            leaf.grad_remove(&mut gradients).unwrap_or_else(|| leaf.clone().without_autodiff().zeros_like())
        };
        Tensor::cat(self.leaves.iter().map(of).collect(), 0)
    }
}

fn missing(name: &str) -> NnError {
    NnError::Layout(format!("there is no parameter {name}"))
}
