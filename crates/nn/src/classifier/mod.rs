//! Classifiers: whatever maps a batch of inputs to one score for each class.
//!
//! - [`Classifier`]: what an architecture must say of itself: its layers, which have its parameters, and its forward pass.
//! - [`Model`]: a classifier with its weights on a device, for prediction and gradients.
//! - [`Learner`]: one in training, with an [`Optimiser`], resumable.
//!
//! The weights lie on the device as one long vector, which the optimiser and weight noise treat as one; the layers see slices of it.

mod learner;
mod model;
mod optimiser;
#[cfg(feature = "torch")]
mod recorded;

use burn::tensor::{Distribution, Tensor};

use crate::params::{Buffer, ParamList, Scope};
use crate::weights::Stored;
use crate::{Device, NnError, Parameters, Weights};

pub use learner::{ConsistencyTerm, Learner};
pub use model::{Model, accuracy, cross_entropy, predicted};
pub use optimiser::Optimiser;
pub(crate) use optimiser::Rates;

/// An architecture that maps inputs to class scores.
pub trait Classifier: Clone {
    /// A batch as it lies in the host's memory.
    type Input: Send + Sync;
    /// A batch on a device.
    type Batch: Clone;
    /// Its layers.
    type Network;

    /// Whether LibTorch's own autograd may record the network where it computes there, instead of burn's: that is faster. burn lets LibTorch
    /// reuse buffers without other references in place, so what autograd saved must be referenced until the backward pass; golden tests of
    /// gradients on the device `torch` show whether it is.
    const NATIVE_GRADIENTS: bool = false;

    /// Whether such a network can be built.
    fn check(&self) -> Result<(), NnError>;

    /// How many classes it tells apart.
    fn classes(&self) -> usize;

    /// Its layers, which declare their parameters in `params`: names, which are PyTorch's, shapes and initial values; and buffers, such as
    /// running statistics of BatchNorm, into which no gradient flows and on which no noise is put.
    fn network(&self, params: Scope) -> Self::Network;

    /// How many inputs a batch has.
    fn count(&self, input: &Self::Input) -> usize;

    /// Puts a batch on a device; refuses one that does not fit the network.
    fn upload(&self, input: &Self::Input, device: &Device) -> Result<Self::Batch, NnError>;

    /// LibTorch's tensors of a batch, if they alone tell it from others whose tensors have the same shapes: the same operations then compute
    /// both.
    #[cfg(feature = "torch")]
    fn tensors(batch: &Self::Batch) -> Option<Vec<tch::Tensor>>;

    /// The scores \[batch, classes\] of a batch.
    fn forward(
        network: &Self::Network,
        parameters: &Parameters,
        batch: Self::Batch,
        pass: &mut Pass,
    ) -> Result<Tensor<2>, NnError>;

    /// The weights a run of this seed starts from.
    fn initial_weights(&self, seed: u64) -> Result<Weights, NnError> {
        self.check()?;
        Ok(self.params().draw(seed))
    }

    /// Names and shapes of the weights, all zero: what [`Weights::load`] needs.
    fn empty_weights(&self) -> Result<Weights, NnError> {
        self.check()?;
        Ok(self.params().empty())
    }

    /// Weights and buffers from the bytes of [`Learner::to_bytes`]. All must be there, in their shapes, and nothing else.
    fn read_weights(&self, bytes: &[u8]) -> Result<(Weights, Weights), NnError> {
        self.check()?;
        let params = self.params();
        params.check_fits(bytes)?;
        let (weights, buffers) = (params.empty(), params.initial_buffers());
        let stored = Stored::parse(bytes)?;
        stored.check_only(&[("", &weights), ("", &buffers)])?;
        Ok((stored.read("", &weights)?, stored.read("", &buffers)?))
    }

    /// The buffers as they are before training.
    fn initial_buffers(&self) -> Weights {
        self.params().initial_buffers()
    }

    /// The parameters and buffers of its layers.
    fn params(&self) -> ParamList {
        ParamList::of(|params| self.network(params)).1
    }
}

/// One pass through a network: for prediction, or for training with dropout and statistics of the batch.
pub enum Pass {
    /// Prediction: no dropout, BatchNorm by its running statistics.
    Evaluate,
    /// Training. Dropout draws from the device's generator, which the [`Learner`] seeds for every step.
    Train {
        /// Whether BatchNorm's running statistics take in the batch's.
        update_running_stats: bool,
        /// What BatchNorms found in the batch, to be taken in; empty where they did so themselves.
        statistics: Vec<Statistics>,
    },
}

/// How much of a batch's statistics BatchNorm's running ones take in, PyTorch's default.
const NEW_SHARE: f64 = 0.1;

/// What a BatchNorm found in a batch, and the running statistics that take it in.
pub struct Statistics {
    /// \[channels\]
    pub mean: (Buffer, Tensor<1>),
    /// \[channels\], unbiased: what PyTorch's running variance takes in.
    pub variance: (Buffer, Tensor<1>),
}

impl Pass {
    /// A pass for training.
    pub fn train() -> Self {
        Self::Train { update_running_stats: true, statistics: Vec::new() }
    }

    /// A pass for training that leaves BatchNorm's running statistics alone.
    pub fn train_without_stats() -> Self {
        Self::Train { update_running_stats: false, statistics: Vec::new() }
    }

    /// Whether dropout and batch statistics are at work.
    pub fn is_training(&self) -> bool {
        matches!(self, Self::Train { .. })
    }

    /// In training, zeroes each value with probability `rate` and scales up the others; in prediction, x as it is.
    pub fn dropout<const D: usize>(&self, x: Tensor<D>, rate: f64) -> Tensor<D> {
        #[cfg(feature = "torch")]
        if self.is_training()
            && rate > 0.0
            && let Some(x) = crate::native::dropout(&x, rate)
        {
            return x;
        }
        match self.kept(&x, x.dims(), rate) {
            Some(kept) => x * kept,
            None => x,
        }
    }

    /// What dropout multiplies values of this shape with, on the device of `like`: 0 with probability `rate`, or 1/(1 - rate). `None` where
    /// nothing is dropped.
    pub fn kept<const D: usize, const E: usize>(
        &self,
        like: &Tensor<E>,
        shape: [usize; D],
        rate: f64,
    ) -> Option<Tensor<D>> {
        if !self.is_training() || rate == 0.0 {
            return None;
        }
        let like = like.clone().without_autodiff();
        let kept = Tensor::random(shape, Distribution::Bernoulli(1.0 - rate), (&like.device(), like.dtype()));
        Some(kept.mul_scalar(1.0 / (1.0 - rate)))
    }

    /// How much of the batch's statistics BatchNorm's running ones take in.
    pub fn share(&self) -> f64 {
        match self {
            Self::Train { update_running_stats: true, .. } => NEW_SHARE,
            _ => 0.0,
        }
    }

    /// Records what a BatchNorm found, where running statistics are updated.
    pub fn record(&mut self, found: Statistics) {
        if let Self::Train { update_running_stats: true, statistics } = self {
            statistics.push(found);
        }
    }
}
