//! ResNet-18 for small images.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use super::layers::mean_pixel;
use super::{ImageConfig, ImageNetwork, ImageShape, check_stages};
use crate::classifier::Pass;
use crate::convolution::Conv;
use crate::layers::{BatchNorm2d, Conv2d, Linear, at_least_one};
use crate::params::Scope;
use crate::{NnError, Parameters};

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
    fn images(&self) -> &ImageShape {
        &self.images
    }

    fn check(&self) -> Result<(), NnError> {
        at_least_one("model.width", self.width)?;
        check_stages(&self.blocks)
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let Self { images, width, .. } = *self;
        let conv1 = Conv2d::without_bias(params.at("conv1"), [width, images.channels, 3, 3], Conv::padded(1));
        let bn1 = BatchNorm2d::new(params.at("bn1"), width);
        let (mut blocks, mut inputs) = (Vec::new(), width);
        for (stage, count) in self.blocks.iter().enumerate() {
            let outputs = width << stage;
            for at in 0..*count {
                let stride = if stage > 0 && at == 0 { 2 } else { 1 };
                blocks.push(Block::new(params.at(format_args!("layer{}.{at}", stage + 1)), inputs, outputs, stride));
                inputs = outputs;
            }
        }
        Box::new(ResNet { conv1, bn1, blocks, linear: Linear::new(params.at("linear"), inputs, images.classes) })
    }
}

struct ResNet {
    conv1: Conv2d,
    bn1: BatchNorm2d,
    blocks: Vec<Block>,
    linear: Linear,
}

/// Two 3x3 convolutions and a way around them.
struct Block {
    conv1: Conv2d,
    bn1: BatchNorm2d,
    conv2: Conv2d,
    bn2: BatchNorm2d,
    /// Where the block changes the shape, the way around has a convolution of its own.
    shortcut: Option<(Conv2d, BatchNorm2d)>,
}

impl Block {
    fn new(mut params: Scope, inputs: usize, outputs: usize, stride: usize) -> Self {
        let first = Conv { stride, ..Conv::padded(1) };
        let narrow = Conv { stride, ..Conv::PLAIN };
        Self {
            conv1: Conv2d::without_bias(params.at("conv1"), [outputs, inputs, 3, 3], first),
            bn1: BatchNorm2d::new(params.at("bn1"), outputs),
            conv2: Conv2d::without_bias(params.at("conv2"), [outputs, outputs, 3, 3], Conv::padded(1)),
            bn2: BatchNorm2d::new(params.at("bn2"), outputs),
            shortcut: (stride != 1 || inputs != outputs).then(|| {
                let conv = Conv2d::without_bias(params.at("shortcut.0"), [outputs, inputs, 1, 1], narrow);
                (conv, BatchNorm2d::new(params.at("shortcut.1"), outputs))
            }),
        }
    }

    fn forward(&self, p: &Parameters, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        let y = self.conv1.forward(p, x.clone());
        let y = self.bn1.forward_relu(p, y, pass)?;
        let y = self.conv2.forward(p, y);
        let y = self.bn2.forward(p, y, pass)?;
        let around = match &self.shortcut {
            None => x,
            Some((conv, bn)) => bn.forward(p, conv.forward(p, x), pass)?,
        };
        Ok(activation::relu(y + around))
    }
}

impl ImageNetwork for ResNet {
    fn forward(&self, p: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let x = self.conv1.forward(p, batch);
        let mut x = self.bn1.forward_relu(p, x, pass)?;
        for block in &self.blocks {
            x = block.forward(p, x, pass)?;
        }
        Ok(self.linear.forward(p, mean_pixel(x)))
    }
}
