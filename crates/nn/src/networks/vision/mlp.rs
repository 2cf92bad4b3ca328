//! The multi-layer perceptron: every pixel an input.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::layers::Activation;
use super::{ImageConfig, ImageNetwork, ImageShape};
use crate::classifier::Pass;
use crate::layers::{Linear, at_least_one};
use crate::params::Scope;
use crate::{NnError, Parameters};

/// Linear layers with an activation between them. Its parameters have the names of this PyTorch module:
///
/// ```python
/// self.layers = nn.ModuleList([nn.Linear(pixels, hidden[0]), ..., nn.Linear(hidden[-1], classes)])
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MlpConfig {
    /// What it is shown.
    pub images: ImageShape,
    /// Widths of the hidden layers, the first one first. The paper: 100 for MNIST, 512 and 128 for Fashion-MNIST.
    pub hidden: Vec<usize>,
    /// After each hidden layer.
    pub activation: Activation,
}

impl Default for MlpConfig {
    fn default() -> Self {
        Self { images: ImageShape::MNIST, hidden: vec![512, 128], activation: Activation::LeakyRelu }
    }
}

impl ImageConfig for MlpConfig {
    fn check(&self) -> Result<(), NnError> {
        self.hidden.iter().try_for_each(|width| at_least_one("model.hidden", *width))
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let mut inputs = self.images.pixels();
        let widths = self.hidden.iter().chain([&self.images.classes]).enumerate();
        let layer = |(layer, outputs): (usize, &usize)| {
            let linear = Linear::new(params.at(format_args!("layers.{layer}")), inputs, *outputs);
            inputs = *outputs;
            linear
        };
        Box::new(Mlp { layers: widths.map(layer).collect(), activation: self.activation })
    }
}

struct Mlp {
    layers: Vec<Linear>,
    activation: Activation,
}

impl ImageNetwork for Mlp {
    fn forward(&self, p: &Parameters, batch: Tensor<4>, _: &mut Pass) -> Result<Tensor<2>, NnError> {
        let mut x: Tensor<2> = batch.flatten(1, 3);
        for (index, layer) in self.layers.iter().enumerate() {
            x = layer.forward(p, x);
            if index + 1 < self.layers.len() {
                x = self.activation.apply(x);
            }
        }
        Ok(x)
    }
}
