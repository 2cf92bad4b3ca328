//! What several image networks share.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use crate::convolution::Conv;

/// What stands between linear layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// x, or x/100 where x is negative.
    #[default]
    LeakyRelu,
    /// 1 / (1 + exp(-x)).
    Sigmoid,
}

impl Activation {
    /// Of each value.
    pub(super) fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::LeakyRelu => activation::leaky_relu(x, 0.01),
            Self::Sigmoid => activation::sigmoid(x),
        }
    }
}

impl Conv {
    /// Every pixel, no zeros around.
    pub(super) const PLAIN: Self = Self { stride: 1, padding: 0, groups: 1 };

    /// Every pixel of the image with this many zeros around.
    pub(super) fn padded(padding: usize) -> Self {
        Self { padding, ..Self::PLAIN }
    }
}

/// The mean over all pixels: [batch, channels, height, width] -> [batch, channels]
pub(super) fn mean_pixel(x: Tensor<4>) -> Tensor<2> {
    let [batch, channels, height, width] = x.dims();
    let flat: Tensor<3> = x.reshape([batch, channels, height * width]);
    flat.mean_dim(2).reshape([batch, channels])
}
