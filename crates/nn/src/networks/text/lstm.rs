//! A stack of LSTMs (Hochreiter & Schmidhuber 1997), read at its last hidden state.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::TextBatch;
use super::layers::{look_up, touch};
use super::recurrence::{LayerState, LayerWeights, lstm_layer};
use crate::classifier::Pass;
use crate::layers::{LayerNorm, Linear};
use crate::params::{Init, Param, Scope};
use crate::{NnError, Parameters};

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

/// The LSTM's layers.
pub struct Lstm {
    dropout: f64,
    embedding: Param<2>,
    norm: LayerNorm,
    layers: Vec<LstmLayer>,
    classifier: Linear,
}

impl Lstm {
    pub(super) fn new(config: &LstmConfig, mut params: Scope) -> Self {
        let LstmConfig { vocabulary, d, layers, classes, dropout, .. } = *config;
        Self {
            dropout,
            embedding: params.add("embedding.weight", [vocabulary, d], Init::Normal),
            norm: LayerNorm::new(params.at("norm"), d),
            layers: (0..layers).map(|layer| LstmLayer::new(params.at("lstm"), layer, d)).collect(),
            classifier: Linear::new(params.at("classifier"), d, classes),
        }
    }

    /// [sequences, classes]
    pub(super) fn forward(&self, p: &Parameters, batch: TextBatch, pass: &Pass) -> Result<Tensor<2>, NnError> {
        self.run(p, batch, None, pass)
    }

    /// [`Lstm::forward`] of sequences of which `start` knows the beginning, one state for each layer.
    pub(super) fn run(
        &self,
        p: &Parameters,
        batch: TextBatch,
        start: Option<&[LayerState]>,
        pass: &Pass,
    ) -> Result<Tensor<2>, NnError> {
        let mut x = self.embed(p, &batch);
        for (index, layer) in self.layers.iter().enumerate() {
            let start = start.map(|states| states[index].clone());
            x = lstm_layer(pass.dropout(x, self.dropout), layer.weights(p), start, batch.packed()?);
        }
        Ok(self.classifier.forward(p, pass.dropout(x.select(0, batch.ends.clone()), self.dropout)))
    }

    /// The normalised and touched embeddings of a packed batch: [tokens, d]
    pub(super) fn embed(&self, p: &Parameters, batch: &TextBatch) -> Tensor<2> {
        let x = look_up(p.get(self.embedding), batch);
        touch(self.norm.forward(p, x), batch).squeeze_dim(0)
    }

    /// The parameters of each layer.
    pub(super) fn weights(&self, p: &Parameters) -> Vec<LayerWeights> {
        self.layers.iter().map(|layer| layer.weights(p)).collect()
    }
}

struct LstmLayer {
    weight_ih: Param<2>,
    weight_hh: Param<2>,
    bias_ih: Param<1>,
    bias_hh: Param<1>,
}

impl LstmLayer {
    fn new(mut params: Scope, layer: usize, d: usize) -> Self {
        let init = Init::linear(d);
        Self {
            weight_ih: params.add(format_args!("weight_ih_l{layer}"), [4 * d, d], init),
            weight_hh: params.add(format_args!("weight_hh_l{layer}"), [4 * d, d], init),
            bias_ih: params.add(format_args!("bias_ih_l{layer}"), [4 * d], init),
            bias_hh: params.add(format_args!("bias_hh_l{layer}"), [4 * d], init),
        }
    }

    fn weights(&self, p: &Parameters) -> LayerWeights {
        LayerWeights {
            input: p.get(self.weight_ih),
            state: p.get(self.weight_hh),
            bias: p.get(self.bias_ih) + p.get(self.bias_hh),
        }
    }
}
