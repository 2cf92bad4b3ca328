//! A stack of LSTMs (Hochreiter & Schmidhuber 1997), read at its last hidden state.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::TextBatch;
use super::layers::{Sizes, look_up, touch};
use super::recurrence::{LayerState, LayerWeights, lstm_layer};
use crate::NnError;
use crate::classifier::{Parameters, Pass};
use crate::encoder::norm_params;
use crate::init::{Init, ParamSpec};
use crate::vision::layers::{layer_norm, linear};

/// The LSTM's shape. Its parameters have the names, and start from the distributions, of this PyTorch module:
///
/// ```python
/// class Lstm(nn.Module):
///     def __init__(s, vocabulary, d, layers, classes, dropout):
///         s.embedding, s.norm = nn.Embedding(vocabulary, d), nn.LayerNorm(d)
///         s.lstm = nn.LSTM(d, d, layers, dropout=dropout)      # dropout between layers
///         s.classifier = nn.Linear(d, classes)                 # on the last layer's last state
/// ```
///
/// There is dropout on the normalised embeddings and before the classifier too. No padding is ever computed: sequences are packed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LstmConfig {
    /// Tokens there are; ids are below.
    pub vocabulary: usize,
    /// Tokens of the longest sequence.
    pub length: usize,
    /// Width of an embedding and of the states.
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
        let Self { vocabulary, length, d, layers, classes, dropout } = *self;
        Sizes { vocabulary, length, d, layers, classes, dropout }.check()
    }

    pub(super) fn params(&self) -> Vec<ParamSpec> {
        let Self { vocabulary, d, classes, .. } = *self;
        let mut params = vec![ParamSpec::new("embedding.weight", &[vocabulary, d], Init::Normal)];
        params.extend(norm_params("norm", d));
        for layer in 0..self.layers {
            for (part, shape) in [
                ("weight_ih", vec![4 * d, d]),
                ("weight_hh", vec![4 * d, d]),
                ("bias_ih", vec![4 * d]),
                ("bias_hh", vec![4 * d]),
            ] {
                params.push(ParamSpec::new(format!("lstm.{part}_l{layer}"), &shape, Init::linear(d)));
            }
        }
        params.push(ParamSpec::new("classifier.weight", &[classes, d], Init::linear(d)));
        params.push(ParamSpec::new("classifier.bias", &[classes], Init::linear(d)));
        params
    }

    /// [sequences, classes]
    pub(super) fn forward(
        &self,
        parameters: &Parameters,
        batch: TextBatch,
        pass: &mut Pass,
    ) -> Result<Tensor<2>, NnError> {
        self.run(parameters, batch, None, pass)
    }

    /// The same of sequences of which `start` knows the beginning, one state for each layer.
    pub(super) fn run(
        &self,
        parameters: &Parameters,
        batch: TextBatch,
        start: Option<&[LayerState]>,
        pass: &Pass,
    ) -> Result<Tensor<2>, NnError> {
        let mut x = self.embed(parameters, &batch)?;
        for layer in 0..self.layers {
            let start = start.map(|states| states[layer].clone());
            x = lstm_layer(pass.dropout(x, self.dropout), weights(parameters, layer)?, start, batch.packed()?);
        }
        linear(parameters, "classifier", pass.dropout(x.select(0, batch.ends.clone()), self.dropout))
    }

    /// The normalised and touched embeddings of a packed batch: [tokens, d]
    pub(super) fn embed(&self, parameters: &Parameters, batch: &TextBatch) -> Result<Tensor<2>, NnError> {
        let x = look_up(parameters.get("embedding.weight")?, batch);
        Ok(touch(layer_norm(parameters, "norm", x)?, batch).squeeze_dim(0))
    }
}

/// The parameters of one layer.
pub(super) fn weights(parameters: &Parameters, layer: usize) -> Result<LayerWeights, NnError> {
    let bias = |part: &str| parameters.get::<1>(&format!("lstm.bias_{part}_l{layer}"));
    Ok(LayerWeights {
        input: parameters.get(&format!("lstm.weight_ih_l{layer}"))?,
        state: parameters.get(&format!("lstm.weight_hh_l{layer}"))?,
        bias: bias("ih")? + bias("hh")?,
    })
}
