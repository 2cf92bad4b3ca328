//! ResNet-18 for small images.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use super::images::at_least_one;
use super::layers::{Conv, batch_norm, batch_norm_relu, linear, mean_pixel};
use super::param_list::ParamList;
use super::{ImageNetwork, ImageShape};
use crate::NnError;
use crate::classifier::{Parameters, Pass};

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

/// Two 3x3 convolutions and a way around them.
struct Block {
    name: String,
    inputs: usize,
    outputs: usize,
    stride: usize,
}

impl Block {
    /// Whether the way around has a convolution of its own.
    fn changes_shape(&self) -> bool {
        self.stride != 1 || self.inputs != self.outputs
    }

    fn forward(&self, parameters: &Parameters, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        let part = |part: &str| format!("{}.{part}", self.name);
        let first = Conv { stride: self.stride, ..Conv::padded(1) };
        let y = first.apply(parameters, &part("conv1"), x.clone())?;
        let y = batch_norm_relu(parameters, &part("bn1"), y, pass)?;
        let y = Conv::padded(1).apply(parameters, &part("conv2"), y)?;
        let y = batch_norm(parameters, &part("bn2"), y, pass)?;
        let around = match self.changes_shape() {
            false => x,
            true => {
                let narrow = Conv { stride: self.stride, ..Conv::PLAIN };
                let x = narrow.apply(parameters, &part("shortcut.0"), x)?;
                batch_norm(parameters, &part("shortcut.1"), x, pass)?
            }
        };
        Ok(activation::relu(y + around))
    }
}

impl ResNetConfig {
    fn all_blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut inputs = self.width;
        for (stage, count) in self.blocks.iter().enumerate() {
            let outputs = self.width << stage;
            for at in 0..*count {
                let stride = if stage > 0 && at == 0 { 2 } else { 1 };
                blocks.push(Block { name: format!("layer{}.{at}", stage + 1), inputs, outputs, stride });
                inputs = outputs;
            }
        }
        blocks
    }
}

impl ImageNetwork for ResNetConfig {
    fn images(&self) -> &ImageShape {
        &self.images
    }

    fn check(&self) -> Result<(), NnError> {
        at_least_one("model.width", self.width)?;
        if self.blocks.is_empty() || self.blocks.len() > 8 {
            let problem = format!("there must be 1 to 8 stages, but there are {}", self.blocks.len());
            return Err(NnError::setting("model.blocks", problem));
        }
        self.blocks.iter().try_for_each(|count| at_least_one("model.blocks", *count))
    }

    fn params(&self) -> ParamList {
        let mut params = ParamList::default();
        params.conv_without_bias("conv1", [self.width, self.images.channels, 3, 3]);
        params.batch_norm("bn1", self.width);
        let blocks = self.all_blocks();
        for block in &blocks {
            let Block { name, inputs, outputs, .. } = block;
            params.conv_without_bias(&format!("{name}.conv1"), [*outputs, *inputs, 3, 3]);
            params.batch_norm(&format!("{name}.bn1"), *outputs);
            params.conv_without_bias(&format!("{name}.conv2"), [*outputs, *outputs, 3, 3]);
            params.batch_norm(&format!("{name}.bn2"), *outputs);
            if block.changes_shape() {
                params.conv_without_bias(&format!("{name}.shortcut.0"), [*outputs, *inputs, 1, 1]);
                params.batch_norm(&format!("{name}.shortcut.1"), *outputs);
            }
        }
        params.linear("linear", blocks.last().map_or(self.width, |block| block.outputs), self.images.classes);
        params
    }

    fn forward(&self, parameters: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let x = Conv::padded(1).apply(parameters, "conv1", batch)?;
        let mut x = batch_norm_relu(parameters, "bn1", x, pass)?;
        for block in self.all_blocks() {
            x = block.forward(parameters, x, pass)?;
        }
        linear(parameters, "linear", mean_pixel(x))
    }
}
