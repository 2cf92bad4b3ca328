//! What the networks on token sequences share: their embedding, the shapes they can have, and how their parameters begin.

use burn::tensor::{IndexingUpdateOp, Tensor, module};

use super::TextBatch;
use crate::NnError;
use crate::layers::{Linear, check_dropout};
use crate::params::{Init, Param, Scope};

/// The standard deviation RoBERTa's and GPT-2's weights start with.
pub(super) const SPREAD: f64 = 0.02;

/// The rows of a table [vocabulary, d] that a batch's tokens name: [1, rows, d]
pub(super) fn look_up(table: Tensor<2>, batch: &TextBatch) -> Tensor<3> {
    module::embedding(table, batch.ids.clone().unsqueeze())
}

/// Embeddings [.., d], all rows of a batch, with what its touches add to some of them.
pub(super) fn touch(x: Tensor<3>, batch: &TextBatch) -> Tensor<3> {
    let Some((rows, noise)) = batch.touches.clone() else { return x };
    let shape = x.dims();
    let x: Tensor<2> = x.reshape([-1, shape[2] as i64]);
    x.select_assign(0, rows, noise, IndexingUpdateOp::Add).reshape(shape)
}

/// The sizes every network here has.
pub(super) struct Sizes {
    pub(super) vocabulary: usize,
    pub(super) length: usize,
    pub(super) d: usize,
    pub(super) layers: usize,
    pub(super) classes: usize,
    pub(super) dropout: f64,
}

impl Sizes {
    /// Whether such a network can be built.
    pub(super) fn check(&self) -> Result<(), NnError> {
        let least = [
            ("model.vocabulary", self.vocabulary, 1),
            ("model.length", self.length, 1),
            ("model.d", self.d, 2),
            ("model.layers", self.layers, 1),
            ("model.classes", self.classes, 2),
        ];
        for (setting, value, least) in least {
            if value < least {
                return Err(NnError::setting(setting, format!("must be at least {least}, but is {value}")));
            }
        }
        check_dropout("model.dropout", self.dropout)
    }
}

/// A linear layer that starts from N(0, 0.02^2), its bias at 0.
pub(super) fn dense(params: Scope, inputs: usize, outputs: usize) -> Linear {
    Linear::with_init(params, [outputs, inputs], Init::Gaussian(SPREAD), Init::Zeros)
}

/// An embedding [rows, d] that starts from N(0, 0.02^2).
pub(super) fn table(mut params: Scope, rows: usize, d: usize) -> Param<2> {
    params.add("weight", [rows, d], Init::Gaussian(SPREAD))
}
