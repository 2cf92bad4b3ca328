//! The convolutional network of the Fashion-MNIST experiments.

use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Tensor, module};
use serde::{Deserialize, Serialize};

use super::layers::Activation;
use super::{ImageConfig, ImageNetwork, ImageShape};
use crate::classifier::Pass;
use crate::convolution::Conv;
use crate::layers::{Conv2d, Linear, at_least_one};
use crate::params::Scope;
use crate::{NnError, Parameters};

/// Two 3x3 convolutions without padding, a 2x2 maximum and two linear layers; an activation after each but the last. Its parameters
/// have the names of this PyTorch module:
///
/// ```python
/// self.conv1, self.conv2 = nn.Conv2d(channels, width, 3), nn.Conv2d(width, width, 3)
/// self.fc1, self.fc2 = nn.Linear(width * ((side - 4) // 2) ** 2, hidden), nn.Linear(hidden, classes)
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CnnConfig {
    /// What it is shown; images of at least 6 x 6.
    pub images: ImageShape,
    /// Channels of both convolutions.
    pub width: usize,
    /// Width of the first linear layer.
    pub hidden: usize,
    /// After each layer but the last.
    pub activation: Activation,
}

impl Default for CnnConfig {
    fn default() -> Self {
        Self { images: ImageShape::MNIST, width: 32, hidden: 128, activation: Activation::LeakyRelu }
    }
}

impl CnnConfig {
    /// Height and width of what the linear layers see.
    fn pooled(&self) -> usize {
        self.images.side.saturating_sub(4) / 2
    }
}

impl ImageConfig for CnnConfig {
    fn check(&self) -> Result<(), NnError> {
        at_least_one("model.width", self.width)?;
        at_least_one("model.hidden", self.hidden)?;
        match self.pooled() {
            0 => {
                let problem = format!("two 3x3 convolutions leave nothing of an image of side {}", self.images.side);
                Err(NnError::setting("model.images.side", problem))
            }
            _ => Ok(()),
        }
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let Self { images, width, hidden, activation } = *self;
        Box::new(Cnn {
            conv1: Conv2d::new(params.at("conv1"), [width, images.channels, 3, 3], Conv::PLAIN),
            conv2: Conv2d::new(params.at("conv2"), [width, width, 3, 3], Conv::PLAIN),
            fc1: Linear::new(params.at("fc1"), width * self.pooled().pow(2), hidden),
            fc2: Linear::new(params.at("fc2"), hidden, images.classes),
            activation,
        })
    }
}

struct Cnn {
    conv1: Conv2d,
    conv2: Conv2d,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

impl ImageNetwork for Cnn {
    fn forward(&self, p: &Parameters, batch: Tensor<4>, _: &mut Pass) -> Result<Tensor<2>, NnError> {
        let x = self.activation.apply(self.conv1.forward(p, batch));
        let x = self.activation.apply(self.conv2.forward(p, x));
        let x: Tensor<2> = module::max_pool2d(x, MaxPoolOptions::new([2, 2])).flatten(1, 3);
        let x = self.activation.apply(self.fc1.forward(p, x));
        Ok(self.fc2.forward(p, x))
    }
}
