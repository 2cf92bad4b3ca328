//! DenseNet-121 for small images.

use burn::tensor::ops::AvgPoolOptions;
use burn::tensor::{Tensor, module};
use serde::{Deserialize, Serialize};

use super::layers::mean_pixel;
use super::{ImageConfig, ImageNetwork, ImageShape, check_stages};
use crate::classifier::Pass;
use crate::convolution::Conv;
use crate::layers::{BatchNorm2d, Conv2d, Linear, at_least_one};
use crate::params::Scope;
use crate::{NnError, Parameters};

/// DenseNet with bottlenecks and the CIFAR stem: every layer is given what all layers of its stage before it computed. Its parameters
/// have the names of the CIFAR networks many use (`pytorch-cifar`): conv1, dense1.0.bn1, .., trans1.conv, .., bn, linear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DenseNetConfig {
    /// What it is shown; its side must be a multiple of 2^(stages - 1).
    pub images: ImageShape,
    /// Channels that each layer adds; the stem has twice as many, a bottleneck four times.
    pub growth: usize,
    /// Layers in each stage; between stages, channels and sides are halved.
    pub blocks: Vec<usize>,
}

impl Default for DenseNetConfig {
    fn default() -> Self {
        Self { images: ImageShape::CIFAR, growth: 32, blocks: vec![6, 12, 24, 16] }
    }
}

impl ImageConfig for DenseNetConfig {
    fn check(&self) -> Result<(), NnError> {
        at_least_one("model.growth", self.growth)?;
        check_stages(&self.blocks)?;
        let halvings = 1 << (self.blocks.len() - 1);
        if !self.images.side.is_multiple_of(halvings) {
            let problem = format!("must be a multiple of {halvings}, as it is halved between stages");
            return Err(NnError::setting("model.images.side", problem));
        }
        Ok(())
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let growth = self.growth;
        let mut channels = 2 * growth;
        let stem = [channels, self.images.channels, 3, 3];
        let conv1 = Conv2d::without_bias(params.at("conv1"), stem, Conv::padded(1));
        let mut stages = Vec::new();
        for (stage, layers) in self.blocks.iter().enumerate() {
            let mut dense = Vec::new();
            for layer in 0..*layers {
                dense.push(Layer::new(params.at(format_args!("dense{}.{layer}", stage + 1)), channels, growth));
                channels += growth;
            }
            let transition = (stage + 1 < self.blocks.len()).then(|| {
                let mut params = params.at(format_args!("trans{}", stage + 1));
                let (before, norm) = (channels, BatchNorm2d::new(params.at("bn"), channels));
                channels /= 2;
                (norm, Conv2d::without_bias(params.at("conv"), [channels, before, 1, 1], Conv::PLAIN))
            });
            stages.push(Stage { dense, transition });
        }
        let bn = BatchNorm2d::new(params.at("bn"), channels);
        let linear = Linear::new(params.at("linear"), channels, self.images.classes);
        Box::new(DenseNet { conv1, stages, bn, linear })
    }
}

struct DenseNet {
    conv1: Conv2d,
    stages: Vec<Stage>,
    bn: BatchNorm2d,
    linear: Linear,
}

struct Stage {
    dense: Vec<Layer>,
    /// After all stages but the last: channels and sides are halved.
    transition: Option<(BatchNorm2d, Conv2d)>,
}

/// Adds `growth` channels.
struct Layer {
    bn1: BatchNorm2d,
    conv1: Conv2d,
    bn2: BatchNorm2d,
    conv2: Conv2d,
}

impl Layer {
    fn new(mut params: Scope, inputs: usize, growth: usize) -> Self {
        Self {
            bn1: BatchNorm2d::new(params.at("bn1"), inputs),
            conv1: Conv2d::without_bias(params.at("conv1"), [4 * growth, inputs, 1, 1], Conv::PLAIN),
            bn2: BatchNorm2d::new(params.at("bn2"), 4 * growth),
            conv2: Conv2d::without_bias(params.at("conv2"), [growth, 4 * growth, 3, 3], Conv::padded(1)),
        }
    }

    /// x with the new channels before it.
    fn forward(&self, p: &Parameters, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        let y = self.bn1.forward_relu(p, x.clone(), pass)?;
        let y = self.conv1.forward(p, y);
        let y = self.bn2.forward_relu(p, y, pass)?;
        let y = self.conv2.forward(p, y);
        Ok(Tensor::cat(vec![y, x], 1))
    }
}

impl ImageNetwork for DenseNet {
    fn forward(&self, p: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let mut x = self.conv1.forward(p, batch);
        for Stage { dense, transition } in &self.stages {
            for layer in dense {
                x = layer.forward(p, x, pass)?;
            }
            if let Some((norm, conv)) = transition {
                x = conv.forward(p, norm.forward_relu(p, x, pass)?);
                x = module::avg_pool2d(x, AvgPoolOptions::new([2, 2]));
            }
        }
        let x = self.bn.forward_relu(p, x, pass)?;
        Ok(self.linear.forward(p, mean_pixel(x)))
    }
}
