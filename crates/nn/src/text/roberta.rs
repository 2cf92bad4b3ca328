//! RoBERTa: a bidirectional transformer.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::TextBatch;
use crate::NnError;
use crate::classifier::{Parameters, Pass};
use crate::init::Blueprint;

/// How attention turns scores into weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attention {
    /// exp of each score over their sum.
    #[default]
    Softmax,
    /// max(score, 0), not normalised.
    Relu,
}

/// The network's shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RobertaConfig {
    /// Tokens there are; ids are below.
    pub vocabulary: usize,
    /// Tokens of the longest sequence.
    pub length: usize,
    /// Width of an embedding and of the layers.
    pub d: usize,
    /// Layers.
    pub layers: usize,
    /// Attention heads; must divide `d`.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub ff: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Share of values dropped in training.
    pub dropout: f64,
    /// How scores become weights.
    pub attention: Attention,
}

impl Default for RobertaConfig {
    /// The paper's.
    fn default() -> Self {
        Self { vocabulary: 50_265, length: 128, d: 256, layers: 4, heads: 8, ff: 1024, classes: 2, dropout: 0.1, attention: Attention::Softmax }
    }
}

impl RobertaConfig {
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
