//! The convolutional network of the Fashion-MNIST experiments.

use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Tensor, module};
use serde::{Deserialize, Serialize};

use super::images::at_least_one;
use super::layers::{Activation, Conv, linear};
use super::param_list::ParamList;
use super::{ImageNetwork, ImageShape};
use crate::NnError;
use crate::classifier::{Parameters, Pass};

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

impl ImageNetwork for CnnConfig {
    fn images(&self) -> &ImageShape {
        &self.images
    }

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

    fn params(&self) -> ParamList {
        let Self { images, width, hidden, .. } = *self;
        let mut params = ParamList::default();
        params.conv("conv1", [width, images.channels, 3, 3]);
        params.conv("conv2", [width, width, 3, 3]);
        params.linear("fc1", width * self.pooled().pow(2), hidden);
        params.linear("fc2", hidden, images.classes);
        params
    }

    fn forward(&self, parameters: &Parameters, batch: Tensor<4>, _: &mut Pass) -> Result<Tensor<2>, NnError> {
        let x = self.activation.apply(Conv::PLAIN.apply_with_bias(parameters, "conv1", batch)?);
        let x = self.activation.apply(Conv::PLAIN.apply_with_bias(parameters, "conv2", x)?);
        let x: Tensor<2> = module::max_pool2d(x, MaxPoolOptions::new([2, 2])).flatten(1, 3);
        let x = self.activation.apply(linear(parameters, "fc1", x)?);
        linear(parameters, "fc2", x)
    }
}
