//! The stages of residual networks: blocks of convolutions, each with a way around it.

use burn::tensor::ops::{MaxPoolOptions, PadMode};
use burn::tensor::{Tensor, activation, module};

use super::ImageNetwork;
use super::layers::mean_pixel;
use crate::classifier::Pass;
use crate::convolution::Conv;
use crate::layers::{BatchNorm2d, Conv2d, Linear, channels_last};
use crate::params::Scope;
use crate::{NnError, Parameters};

/// Stages `layer1.0` and so on; from the second on, each halves the image and doubles the channels.
pub(super) struct Stages<'a> {
    /// Channels of the first stage.
    pub(super) width: usize,
    /// Blocks in each stage.
    pub(super) blocks: &'a [usize],
    /// Whether blocks are three convolutions with four times the channels behind them, instead of two.
    pub(super) bottleneck: bool,
    /// The way around where a block changes the shape.
    pub(super) shortcut: Shortcut,
    /// Whether prediction puts BatchNorm into the weights of the convolution before it: the same up to rounding, and faster.
    pub(super) folded: bool,
}

/// The way around a block that changes the shape.
#[derive(Clone, Copy)]
pub(super) enum Shortcut {
    /// A convolution and its BatchNorm, under this name.
    Convolution(&'static str),
    /// Every second pixel, with channels of zeros before and after (option A of He et al. 2016).
    Zeros,
}

impl Stages<'_> {
    /// The blocks in order, and the channels behind the last.
    pub(super) fn build(&self, params: &mut Scope) -> (Vec<Block>, usize) {
        let (mut blocks, mut inputs) = (Vec::new(), self.width);
        for (stage, count) in self.blocks.iter().enumerate() {
            for at in 0..*count {
                let stride = if stage > 0 && at == 0 { 2 } else { 1 };
                let params = params.at(format_args!("layer{}.{at}", stage + 1));
                let (block, outputs) = self.block(params, inputs, self.width << stage, stride);
                blocks.push(block);
                inputs = outputs;
            }
        }
        (blocks, inputs)
    }

    /// A block of this width, and how many channels come out of it.
    fn block(&self, mut params: Scope, inputs: usize, width: usize, stride: usize) -> (Block, usize) {
        let strided = Conv { stride, ..Conv::padded(1) };
        let (shapes, outputs) = match self.bottleneck {
            false => (vec![([width, inputs, 3, 3], strided), ([width, width, 3, 3], Conv::padded(1))], width),
            true => {
                let narrow = ([width, inputs, 1, 1], Conv::PLAIN);
                let wide = ([4 * width, width, 1, 1], Conv::PLAIN);
                (vec![narrow, ([width, width, 3, 3], strided), wide], 4 * width)
            }
        };
        let steps = (1..).zip(shapes).map(|(at, (shape, conv))| {
            let [conv_name, norm_name] = ["conv", "bn"].map(|kind| format!("{kind}{at}"));
            Normed::new(&mut params, &conv_name, &norm_name, shape, conv, self.folded)
        });
        let steps = steps.collect();
        let around = match self.shortcut {
            _ if stride == 1 && inputs == outputs => Around::Same,
            Shortcut::Zeros => Around::Zeros,
            Shortcut::Convolution(name) => {
                let conv = Conv { stride, ..Conv::PLAIN };
                let (shape, mut params) = ([outputs, inputs, 1, 1], params.at(name));
                Around::Convolved(Normed::new(&mut params, "0", "1", shape, conv, self.folded))
            }
        };
        (Block { steps, around }, outputs)
    }
}

/// A convolution without bias and the BatchNorm behind it.
pub(super) struct Normed {
    conv: Conv2d,
    norm: BatchNorm2d,
    folded: bool,
}

impl Normed {
    pub(super) fn new(
        params: &mut Scope,
        conv_name: &str,
        norm_name: &str,
        shape: [usize; 4],
        conv: Conv,
        folded: bool,
    ) -> Self {
        let layer = Conv2d::without_bias(params.at(conv_name), shape, conv);
        Self { conv: layer, norm: BatchNorm2d::new(params.at(norm_name), shape[0]), folded }
    }

    fn forward(&self, p: &Parameters, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        match self.is_folded(p, pass) {
            true => Ok(self.conv.forward_scaled(p, x, self.norm.factor_and_shift(p))),
            false => self.norm.forward(p, self.conv.forward(p, x), pass),
        }
    }

    fn forward_relu(&self, p: &Parameters, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        match self.is_folded(p, pass) {
            true => Ok(activation::relu(self.forward(p, x, pass)?)),
            false => self.norm.forward_relu(p, self.conv.forward(p, x), pass),
        }
    }

    /// Whether BatchNorm goes into the weights now; LibTorch has a BatchNorm of its own.
    fn is_folded(&self, p: &Parameters, pass: &Pass) -> bool {
        self.folded && !pass.is_training() && p.device().name() == "cpu"
    }
}

/// Convolutions and a way around them.
pub(super) struct Block {
    steps: Vec<Normed>,
    around: Around,
}

enum Around {
    Same,
    Convolved(Normed),
    Zeros,
}

impl Block {
    pub(super) fn forward(&self, p: &Parameters, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        let mut y = x.clone();
        for (at, step) in self.steps.iter().enumerate() {
            y = match at + 1 < self.steps.len() {
                true => step.forward_relu(p, y, pass)?,
                false => step.forward(p, y, pass)?,
            };
        }
        let around = match &self.around {
            Around::Same => x,
            Around::Convolved(step) => step.forward(p, x, pass)?,
            Around::Zeros => every_second_pixel(x, y.dims()[1]),
        };
        Ok(activation::relu(y + around))
    }
}

/// Every second pixel of x [batch, inputs, height, width], with zeros around its channels: [batch, channels, height / 2, width / 2].
fn every_second_pixel(x: Tensor<4>, channels: usize) -> Tensor<4> {
    let [batch, inputs, height, width] = x.dims();
    // Pairs of rows and of columns, of which the first is kept.
    let x = match (height % 2, width % 2) {
        (0, 0) => x,
        (odd, also) => x.pad([(0, odd), (0, also)], PadMode::Constant(0.0)),
    };
    let (rows, columns) = (height.div_ceil(2), width.div_ceil(2));
    let pairs: Tensor<6> = x.reshape([batch, inputs, rows, 2, columns, 2]);
    let kept: Tensor<4> = pairs.narrow(3, 0, 1).narrow(5, 0, 1).reshape([batch, inputs, rows, columns]);
    let before = (channels - inputs) / 2;
    let zeros = |count: usize| Tensor::zeros([batch, count, rows, columns], (&kept.device(), kept.dtype()));
    Tensor::cat(vec![zeros(before), kept.clone(), zeros(channels - inputs - before)], 1)
}

/// A residual network: a convolution, its blocks, and a linear layer on the mean pixel.
pub(super) struct ResNet {
    pub(super) stem: Normed,
    /// Whether a maximum over 3 x 3 pixels, every second one, follows the first convolution.
    pub(super) pool: bool,
    pub(super) blocks: Vec<Block>,
    pub(super) head: Linear,
}

impl ImageNetwork for ResNet {
    fn forward(&self, p: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let mut x = self.stem.forward_relu(p, channels_last(batch), pass)?;
        if self.pool {
            x = module::max_pool2d(x, MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_padding([1, 1]));
        }
        for block in &self.blocks {
            x = block.forward(p, x, pass)?;
        }
        Ok(self.head.forward(p, mean_pixel(x)))
    }
}
