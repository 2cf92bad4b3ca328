//! The ResNets of He et al. 2016 for CIFAR: 20, 32, 44, 56, 110 layers.

use serde::{Deserialize, Serialize};

use super::residual::{Normed, ResNet, Shortcut, Stages};
use super::{ImageConfig, ImageNetwork, ImageShape, check_stages};
use crate::NnError;
use crate::convolution::Conv;
use crate::layers::{Linear, at_least_one};
use crate::params::Scope;

/// ResNet with three stages of basic blocks whose shortcuts have no parameters (option A: every second pixel, zeros for new channels). Its
/// parameters have the names of the checkpoints many use (`pytorch_resnet_cifar10`): conv1, bn1, layer1.0.conv1, .., linear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CifarResNetConfig {
    /// What it is shown.
    pub images: ImageShape,
    /// Channels of the first stage; each later stage has twice those of the one before.
    pub width: usize,
    /// Blocks of two convolutions in each stage; from the second stage on, each halves the image.
    pub blocks: Vec<usize>,
}

impl Default for CifarResNetConfig {
    /// ResNet-20.
    fn default() -> Self {
        Self { images: ImageShape::CIFAR, width: 16, blocks: vec![3, 3, 3] }
    }
}

impl ImageConfig for CifarResNetConfig {
    fn check(&self) -> Result<(), NnError> {
        at_least_one("model.width", self.width)?;
        check_stages(&self.blocks)
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let Self { images, width, .. } = *self;
        let stages = Stages { width, blocks: &self.blocks, bottleneck: false, shortcut: Shortcut::Zeros, folded: true };
        let stem = [width, images.channels, 3, 3];
        let stem = Normed::new(&mut params, "conv1", "bn1", stem, Conv::padded(1), true);
        let (blocks, channels) = stages.build(&mut params);
        Box::new(ResNet { stem, pool: false, blocks, head: Linear::new(params.at("linear"), channels, images.classes) })
    }
}
