//! LSTM (Hochreiter & Schmidhuber 1997) and GRU (Cho et al. 2014) on bits.

use burn::tensor::Tensor;
use pudica_data::Bits;
use serde::{Deserialize, Serialize};

use super::embedding::TokenEmbedding;
use super::variants::Read;
use crate::layers::{Linear, at_least_one, multiply};
use crate::params::{Init, Param, Scope};
use crate::recurrence::{Cell, recur};
use crate::{NnError, Parameters};

/// A recurrent network's shape. Its parameters have the names of this PyTorch module:
///
/// ```python
/// class Recurrent(nn.Module):
///     def __init__(s, d, layers):
///         s.tok = nn.Embedding(2, d)
///         s.lstm = nn.LSTM(d, d, layers, batch_first=True)     # or s.gru = nn.GRU(...)
///         s.head = nn.Linear(d, 1)                             # on the last layer's last state, or the mean of its states
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecurrentConfig {
    /// Which.
    pub cell: Cell,
    /// Bits in a string of training; it reads strings of any length.
    pub n: usize,
    /// Width of the token's embedding and of the states.
    pub d: usize,
    /// Layers.
    pub layers: usize,
    /// Where the answer is read.
    pub read: Read,
}

impl RecurrentConfig {
    /// Whether such a network can be built.
    pub fn check(&self) -> Result<(), NnError> {
        at_least_one("n", self.n)?;
        at_least_one("model.d", self.d)?;
        at_least_one("model.layers", self.layers)
    }
}

/// Its layers.
pub(crate) struct Recurrent {
    cell: Cell,
    embedding: TokenEmbedding,
    layers: Vec<Layer>,
    read: Read,
    head: Linear,
}

/// The parameters of one layer, gates in PyTorch's order.
struct Layer {
    /// [gates d, d]
    weight_ih: Param<2>,
    /// [gates d, d]
    weight_hh: Param<2>,
    /// [gates d]
    bias_ih: Param<1>,
    /// [gates d]
    bias_hh: Param<1>,
}

impl Recurrent {
    pub(crate) fn new(config: &RecurrentConfig, mut params: Scope) -> Self {
        let RecurrentConfig { cell, d, layers, read, .. } = *config;
        let name = match cell {
            Cell::Lstm => "lstm",
            Cell::Gru => "gru",
        };
        Self {
            cell,
            embedding: TokenEmbedding::of_bits(&mut params, d),
            layers: (0..layers).map(|layer| Layer::new(params.at(name), layer, cell.gates(), d)).collect(),
            read,
            head: Linear::new(params.at("head"), d, 1),
        }
    }

    /// strings [batch, n] -> [batch, 1]
    pub(crate) fn forward(&self, p: &Parameters, strings: &Bits) -> Tensor<2> {
        let embedded = self.embedding.forward(p, strings.data(), strings.n(), 0);
        // Of the first layer's inputs there are two: one for each bit.
        let mut states = self.layers[0].states(p, self.cell, |weight, bias| {
            embedded.look_up(multiply(embedded.table.clone(), weight, Some(bias)))
        });
        for layer in &self.layers[1..] {
            states = layer.states(p, self.cell, |weight, bias| multiply(states, weight, Some(bias)));
        }
        self.head.forward(p, self.read.of(states))
    }
}

impl Layer {
    fn new(mut params: Scope, layer: usize, gates: usize, d: usize) -> Self {
        let init = Init::linear(d);
        Self {
            weight_ih: params.add(format_args!("weight_ih_l{layer}"), [gates * d, d], init),
            weight_hh: params.add(format_args!("weight_hh_l{layer}"), [gates * d, d], init),
            bias_ih: params.add(format_args!("bias_ih_l{layer}"), [gates * d], init),
            bias_hh: params.add(format_args!("bias_hh_l{layer}"), [gates * d], init),
        }
    }

    /// The states [batch, n, d], given the projection of the layer's inputs by a weight [gates d, d] and a bias: [batch, n, gates d].
    fn states(&self, p: &Parameters, cell: Cell, project: impl FnOnce(Tensor<2>, Tensor<1>) -> Tensor<3>) -> Tensor<3> {
        let projected = project(p.get(self.weight_ih), p.get(self.bias_ih));
        recur(cell, projected, p.get(self.weight_hh), p.get(self.bias_hh))
    }
}
