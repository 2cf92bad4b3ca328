//! ResNet-18 for small images.

use serde::{Deserialize, Serialize};

use super::residual::{Normed, ResNet, Shortcut, Stages};
use super::{ImageConfig, ImageNetwork, ImageShape, check_stages};
use crate::NnError;
use crate::convolution::Conv;
use crate::layers::{Linear, at_least_one};
use crate::params::Scope;

/// ResNet with basic blocks and the CIFAR stem: a 3x3 convolution of stride 1 and no pooling before the first stage. Its parameters have
/// the names of the CIFAR networks many use (`pytorch-cifar`): conv1, bn1, layer1.0.conv1, .., layer2.0.shortcut.0, .., linear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResNetConfig {
    /// What it is shown.
    pub images: ImageShape,
    /// Channels of the first stage; each later stage has twice those of the one before.
    pub width: usize,
    /// Blocks of two convolutions in each stage; from the second stage on, each halves the image.
    pub blocks: Vec<usize>,
}

impl Default for ResNetConfig {
    fn default() -> Self {
        Self { images: ImageShape::CIFAR, width: 64, blocks: vec![2, 2, 2, 2] }
    }
}

impl ImageConfig for ResNetConfig {
    fn check(&self) -> Result<(), NnError> {
        at_least_one("model.width", self.width)?;
        check_stages(&self.blocks)
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let Self { images, width, .. } = *self;
        let shortcut = Shortcut::Convolution("shortcut");
        let stages = Stages { width, blocks: &self.blocks, bottleneck: false, shortcut, folded: false };
        let stem = [width, images.channels, 3, 3];
        let stem = Normed::new(&mut params, "conv1", "bn1", stem, Conv::padded(1), false);
        let (blocks, channels) = stages.build(&mut params);
        Box::new(ResNet { stem, pool: false, blocks, head: Linear::new(params.at("linear"), channels, images.classes) })
    }
}
