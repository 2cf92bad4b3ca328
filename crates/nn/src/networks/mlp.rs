//! A multilayer perceptron on bits.

use burn::tensor::{Tensor, TensorData};
use pudica_data::Bits;
use serde::{Deserialize, Serialize};

use crate::layers::{Linear, at_least_one};
use crate::params::Scope;
use crate::{NnError, Nonlinearity, Parameters};

/// The perceptron's shape. Its parameters have the names of this PyTorch module:
///
/// ```python
/// class Mlp(nn.Module):
///     def __init__(s, n, d, layers):
///         s.layers = nn.ModuleList(nn.Linear(d if k else n, d) for k in range(layers))   # each followed by the activation
///         s.head = nn.Linear(d, 1)
/// ```
///
/// It reads bits as -1 and +1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MlpConfig {
    /// Bits in a string.
    pub n: usize,
    /// Width of the hidden layers.
    pub d: usize,
    /// Hidden layers.
    pub layers: usize,
    /// After each of them.
    pub activation: Nonlinearity,
}

impl MlpConfig {
    /// Whether such a network can be built.
    pub fn check(&self) -> Result<(), NnError> {
        at_least_one("n", self.n)?;
        at_least_one("model.d", self.d)?;
        at_least_one("model.layers", self.layers)
    }
}

/// The perceptron's layers.
pub(crate) struct Mlp {
    layers: Vec<Linear>,
    activation: Nonlinearity,
    head: Linear,
}

impl Mlp {
    pub(crate) fn new(config: &MlpConfig, mut params: Scope) -> Self {
        let MlpConfig { n, d, layers, activation } = *config;
        let mut layer = |k: usize| Linear::new(params.at(format_args!("layers.{k}")), if k == 0 { n } else { d }, d);
        Self { layers: (0..layers).map(&mut layer).collect(), activation, head: Linear::new(params.at("head"), d, 1) }
    }

    /// strings [batch, n] -> [batch, 1]
    pub(crate) fn forward(&self, p: &Parameters, strings: &Bits) -> Tensor<2> {
        let signs: Vec<f32> = strings.data().iter().map(|bit| 2.0 * f32::from(*bit) - 1.0).collect();
        let data = TensorData::new(signs, [strings.rows(), strings.n()]);
        let x = Tensor::from_data(data, p.device().constant());
        let hidden = self.layers.iter().fold(x, |x, layer| self.activation.apply(layer.forward(p, x)));
        self.head.forward(p, hidden)
    }
}
