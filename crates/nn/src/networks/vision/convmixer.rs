//! ConvMixer: a convolution for each channel, then one across channels, again and again.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::layers::mean_pixel;
use super::{ImageConfig, ImageNetwork, ImageShape};
use crate::classifier::Pass;
use crate::convolution::Conv;
use crate::layers::{BatchNorm2d, Conv2d, Linear, at_least_one, gelu};
use crate::params::Scope;
use crate::{NnError, Parameters};

/// ConvMixer (Trockman and Kolter 2022). Its parameters have the names of its authors' `nn.Sequential`: 0 the patches' convolution, 2
/// its BatchNorm, 3 to `depth` + 2 the blocks, `depth` + 5 the classifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConvMixerConfig {
    /// What it is shown.
    pub images: ImageShape,
    /// Side of a patch; must divide the image's.
    pub patch: usize,
    /// Channels.
    pub dim: usize,
    /// Blocks.
    pub depth: usize,
    /// Side of the depthwise convolutions' kernels; odd.
    pub kernel: usize,
}

impl Default for ConvMixerConfig {
    fn default() -> Self {
        Self { images: ImageShape::CIFAR, patch: 4, dim: 64, depth: 8, kernel: 3 }
    }
}

impl ImageConfig for ConvMixerConfig {
    fn check(&self) -> Result<(), NnError> {
        self.images.check_patch(self.patch)?;
        at_least_one("model.dim", self.dim)?;
        if self.kernel.is_multiple_of(2) {
            let problem = format!("must be odd, so that the image keeps its size, but is {}", self.kernel);
            return Err(NnError::setting("model.kernel", problem));
        }
        Ok(())
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let Self { images, patch, dim, depth, kernel } = *self;
        let patches = Conv { stride: patch, ..Conv::PLAIN };
        Box::new(ConvMixer {
            patches: Conv2d::new(params.at(0), [dim, images.channels, patch, patch], patches),
            norm: BatchNorm2d::new(params.at(2), dim),
            blocks: (3..depth + 3).map(|block| Block::new(params.at(block), dim, kernel)).collect(),
            head: Linear::new(params.at(depth + 5), dim, images.classes),
        })
    }
}

struct ConvMixer {
    patches: Conv2d,
    norm: BatchNorm2d,
    blocks: Vec<Block>,
    head: Linear,
}

struct Block {
    depthwise: Conv2d,
    norm1: BatchNorm2d,
    pointwise: Conv2d,
    norm2: BatchNorm2d,
}

impl Block {
    fn new(mut params: Scope, dim: usize, kernel: usize) -> Self {
        let each_channel = Conv { groups: dim, ..Conv::padded(kernel / 2) };
        Self {
            depthwise: Conv2d::new(params.at("0.fn.0"), [dim, 1, kernel, kernel], each_channel),
            norm1: BatchNorm2d::new(params.at("0.fn.2"), dim),
            pointwise: Conv2d::new(params.at(1), [dim, dim, 1, 1], Conv::PLAIN),
            norm2: BatchNorm2d::new(params.at(3), dim),
        }
    }

    fn forward(&self, p: &Parameters, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        let y = self.depthwise.forward(p, x.clone());
        // x second: LibTorch writes sums over their first part, and the convolution's gradient needs x.
        let x = self.norm1.forward(p, gelu(y), pass)? + x;
        let x = self.pointwise.forward(p, x);
        self.norm2.forward(p, gelu(x), pass)
    }
}

impl ImageNetwork for ConvMixer {
    fn forward(&self, p: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let x = self.patches.forward(p, batch);
        let mut x = self.norm.forward(p, gelu(x), pass)?;
        for block in &self.blocks {
            x = block.forward(p, x, pass)?;
        }
        Ok(self.head.forward(p, mean_pixel(x)))
    }
}
