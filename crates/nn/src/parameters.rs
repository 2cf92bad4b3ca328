//! Weights on a device, as a network's layers see them.

use burn::tensor::Tensor;

use crate::autodiff::Autodiff;
use crate::params::{Buffer, Param};
use crate::{Device, NnError, Weights};

/// The tensors of a network's parameters, each a part of one long vector, and of its buffers.
pub struct Parameters {
    /// What gradients are taken with respect to; joined, they are the long vector.
    leaves: Vec<Tensor<1>>,
    /// One for each [`Param`], flat.
    parts: Vec<Tensor<1>>,
    buffers: Vec<Tensor<1>>,
    device: Device,
    autodiff: Autodiff,
}

impl Parameters {
    /// Cuts `flat` \[parameters\] into parts of these lengths. `autodiff` records what is computed from them.
    pub(crate) fn new(
        flat: &Tensor<1>,
        lengths: &[usize],
        buffers: &[Tensor<1>],
        device: &Device,
        autodiff: Autodiff,
    ) -> Self {
        let (leaves, parts) = autodiff.parts(flat, lengths);
        Self { leaves, parts, buffers: buffers.to_vec(), device: device.clone(), autodiff }
    }

    /// Puts weights on a device, cut into parts of these lengths.
    pub(crate) fn upload(weights: &Weights, lengths: &[usize], device: &Device, autodiff: Autodiff) -> Self {
        let values = weights.data().to_vec();
        let count = values.len();
        Self::new(&device.floats(values, [count]), lengths, &[], device, autodiff)
    }

    /// A parameter in its shape.
    pub fn get<const D: usize>(&self, param: Param<D>) -> Tensor<D> {
        let part = self.parts[param.leaf].clone();
        match D {
            // It has its shape: on a GPU every operation counts, even one that does nothing.
            1 => Tensor::from_dispatch(part.into_dispatch()),
            _ => part.reshape(param.shape),
        }
    }

    /// A parameter that is a single number, PyTorch's shape `[]`: \[1\].
    pub fn scalar(&self, param: Param<0>) -> Tensor<1> {
        self.parts[param.leaf].clone()
    }

    /// Where they are.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A buffer.
    pub fn buffer(&self, buffer: Buffer) -> Tensor<1> {
        self.buffers[buffer.index].clone()
    }

    /// The loss \[1\] without its history, and its gradient with respect to all parameters as one vector \[parameters\].
    pub(crate) fn gradient(&self, loss: Tensor<1>) -> Result<(Tensor<1>, Tensor<1>), NnError> {
        let (loss, mut gradients) = self.autodiff.gradients(loss, &self.leaves)?;
        // One is not copied: it may be all the network has.
        let gradient = if gradients.len() == 1 { gradients.swap_remove(0) } else { Tensor::cat(gradients, 0) };
        Ok((loss, gradient))
    }
}
