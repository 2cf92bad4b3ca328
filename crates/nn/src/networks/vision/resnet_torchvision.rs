//! The ResNets of torchvision, for photographs.

use serde::{Deserialize, Serialize};

use super::residual::{Normed, ResNet, Shortcut, Stages};
use super::{ImageConfig, ImageNetwork, ImageShape, check_stages};
use crate::NnError;
use crate::convolution::Conv;
use crate::layers::{Linear, at_least_one};
use crate::params::Scope;

/// `torchvision.models.resnet18`, 34 and 50, under their names: a 7x7 convolution and a maximum that each halve the image, then four stages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TorchvisionResNetConfig {
    /// What it is shown; each side is halved five times.
    pub images: ImageShape,
    /// Channels of the first stage; each later stage has twice those of the one before.
    pub width: usize,
    /// Blocks in each stage.
    pub blocks: Vec<usize>,
    /// Whether blocks are three convolutions (from ResNet-50 on) instead of two.
    pub bottleneck: bool,
}

impl Default for TorchvisionResNetConfig {
    /// ResNet-18.
    fn default() -> Self {
        let images = ImageShape { channels: 3, side: 224, classes: 1000 };
        Self { images, width: 64, blocks: vec![2, 2, 2, 2], bottleneck: false }
    }
}

impl ImageConfig for TorchvisionResNetConfig {
    fn check(&self) -> Result<(), NnError> {
        at_least_one("model.width", self.width)?;
        check_stages(&self.blocks)
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let Self { images, width, bottleneck, .. } = *self;
        let shortcut = Shortcut::Convolution("downsample");
        let stages = Stages { width, blocks: &self.blocks, bottleneck, shortcut, folded: true };
        let stem = Conv { stride: 2, ..Conv::padded(3) };
        let stem = Normed::new(&mut params, "conv1", "bn1", [width, images.channels, 7, 7], stem, true);
        let (blocks, channels) = stages.build(&mut params);
        Box::new(ResNet { stem, pool: true, blocks, head: Linear::new(params.at("fc"), channels, images.classes) })
    }
}
