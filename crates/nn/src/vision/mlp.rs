//! The multi-layer perceptron: every pixel an input.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::images::at_least_one;
use super::layers::{Activation, linear};
use super::param_list::ParamList;
use super::{ImageNetwork, ImageShape};
use crate::NnError;
use crate::classifier::{Parameters, Pass};

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

impl ImageNetwork for MlpConfig {
    fn images(&self) -> &ImageShape {
        &self.images
    }

    fn check(&self) -> Result<(), NnError> {
        self.hidden.iter().try_for_each(|width| at_least_one("model.hidden", *width))
    }

    fn params(&self) -> ParamList {
        let mut params = ParamList::default();
        let mut inputs = self.images.pixels();
        for (layer, outputs) in self.hidden.iter().chain([&self.images.classes]).enumerate() {
            params.linear(&name(layer), inputs, *outputs);
            inputs = *outputs;
        }
        params
    }

    fn forward(&self, parameters: &Parameters, batch: Tensor<4>, _: &mut Pass) -> Result<Tensor<2>, NnError> {
        let mut x: Tensor<2> = batch.flatten(1, 3);
        for layer in 0..self.hidden.len() {
            x = self.activation.apply(linear(parameters, &name(layer), x)?);
        }
        linear(parameters, &name(self.hidden.len()), x)
    }
}

fn name(layer: usize) -> String {
    format!("layers.{layer}")
}
