//! A stack of LSTMs.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::TextBatch;
use crate::NnError;
use crate::classifier::{Parameters, Pass};
use crate::init::Blueprint;

/// The network's shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LstmConfig {
    /// Tokens there are; ids are below.
    pub vocabulary: usize,
    /// Tokens of the longest sequence.
    pub length: usize,
    /// Width of an embedding and of the layers.
    pub d: usize,
    /// Layers.
    pub layers: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Share of values dropped in training.
    pub dropout: f64,
}

impl Default for LstmConfig {
    /// The paper's.
    fn default() -> Self {
        Self { vocabulary: 50_265, length: 128, d: 256, layers: 4, classes: 2, dropout: 0.1 }
    }
}

impl LstmConfig {
    pub(super) fn check(&self) -> Result<(), NnError> {
        Ok(())
    }

    pub(super) fn blueprints(&self) -> Vec<Blueprint> {
        Vec::new()
    }

    pub(super) fn forward(&self, _: &Parameters, _: TextBatch, _: &mut Pass) -> Result<Tensor<2>, NnError> {
        Err(NnError::Computation("in work".to_string()))
    }
}
