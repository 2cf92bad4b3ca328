//! What the engine asks of networks of one architecture.

use std::ops::Range;

use super::buffers::Floats;
use super::cuda::{Cuda, Memory};
use super::forward::Inputs;
use super::trained::Trained;
use crate::EnsembleError;

/// How many networks on how many strings each.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Size {
    pub(super) replicas: usize,
    pub(super) strings: usize,
}

/// What is known of networks before anything is computed.
pub(super) struct Sizes {
    /// Bits in a string.
    pub(super) n: usize,
    /// Outputs for a string.
    pub(super) outputs: usize,
    /// Parameters of a network.
    pub(super) count: usize,
    /// Floats from one replica's parameters to the next's.
    pub(super) total: usize,
    /// Which of them get no noise: the positional embeddings, of which there are one or two.
    pub(super) quiet: [Range<usize>; 2],
    /// PyTorch's names of the LayerNorms, in the order they are applied.
    pub(super) norms: Vec<String>,
}

/// Networks of one shape in training, all replicas at once.
pub(super) trait Networks: Send {
    /// What a forward pass computes.
    type Activations: Send;

    fn sizes(&self) -> &Sizes;

    /// Memory for forward passes of at most this size.
    fn room(&self, cuda: &Cuda, most: Size) -> Result<Self::Activations, EnsembleError>;

    /// Replicas that fill the GPU with this many strings each.
    fn enough_replicas(&self, strings: usize) -> usize;

    /// Labels [replicas, strings * outputs] of bits [sets, strings, n]; `room` learns what goes with them.
    fn label(
        &self,
        cuda: &Cuda,
        room: &Self::Activations,
        labels_and_bits: (&Memory<f32>, &Memory<u8>),
        size: Size,
        sets: usize,
    ) -> Result<(), EnsembleError>;

    /// A forward pass where only outputs and norms are wanted.
    fn forward(
        &self,
        cuda: &Cuda,
        inputs: &Inputs,
        room: &mut Self::Activations,
        size: Size,
    ) -> Result<(), EnsembleError>;

    /// Its outputs [replicas, strings * outputs].
    fn outputs<'a>(&self, room: &'a Self::Activations) -> &'a Floats;

    /// The variance of each norm's input [replicas, strings, positions], with the number of positions.
    fn variances<'a>(&self, room: &'a Self::Activations) -> Vec<(&'a Floats, usize)>;

    /// Strings, outputs, loss and gradients [R, total] of one step; changes no network. Gives where the gradients are.
    fn compute_gradients(&self, cuda: &Cuda, trained: &Trained) -> Result<u64, EnsembleError>;

    /// Whether what the networks wrote in the last pass is not what they read in it; they read it in the next. Nothing where networks
    /// do not read what they wrote.
    fn read_own_outputs(
        &self,
        _cuda: &Cuda,
        _room: &Self::Activations,
        _extent: Size,
    ) -> Result<Option<bool>, EnsembleError> {
        Ok(None)
    }
}
