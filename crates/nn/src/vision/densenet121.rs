//! DenseNet-121 for small images.

use burn::tensor::ops::AvgPoolOptions;
use burn::tensor::{Tensor, module};
use serde::{Deserialize, Serialize};

use super::images::at_least_one;
use super::layers::{Conv, batch_norm_relu, linear, mean_pixel};
use super::param_list::ParamList;
use super::{ImageNetwork, ImageShape};
use crate::NnError;
use crate::classifier::{Parameters, Pass};

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

impl DenseNetConfig {
    /// Channels before and after each stage.
    fn channels(&self) -> Vec<(usize, usize)> {
        let mut before = 2 * self.growth;
        let stage = |layers: &usize| {
            let after = before + layers * self.growth;
            let channels = (before, after);
            before = after / 2;
            channels
        };
        self.blocks.iter().map(stage).collect()
    }

    /// x with the `growth` channels of one more layer before it.
    fn grow(&self, parameters: &Parameters, name: &str, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        let y = batch_norm_relu(parameters, &format!("{name}.bn1"), x.clone(), pass)?;
        let y = Conv::PLAIN.apply(parameters, &format!("{name}.conv1"), y)?;
        let y = batch_norm_relu(parameters, &format!("{name}.bn2"), y, pass)?;
        let y = Conv::padded(1).apply(parameters, &format!("{name}.conv2"), y)?;
        Ok(Tensor::cat(vec![y, x], 1))
    }
}

impl ImageNetwork for DenseNetConfig {
    fn images(&self) -> &ImageShape {
        &self.images
    }

    fn check(&self) -> Result<(), NnError> {
        at_least_one("model.growth", self.growth)?;
        if self.blocks.is_empty() || self.blocks.len() > 8 {
            let problem = format!("there must be 1 to 8 stages, but there are {}", self.blocks.len());
            return Err(NnError::setting("model.blocks", problem));
        }
        self.blocks.iter().try_for_each(|count| at_least_one("model.blocks", *count))?;
        let halvings = 1 << (self.blocks.len() - 1);
        if !self.images.side.is_multiple_of(halvings) {
            let problem = format!("must be a multiple of {halvings}, as it is halved between stages");
            return Err(NnError::setting("model.images.side", problem));
        }
        Ok(())
    }

    fn params(&self) -> ParamList {
        let growth = self.growth;
        let mut params = ParamList::default();
        params.conv_without_bias("conv1", [2 * growth, self.images.channels, 3, 3]);
        let mut last = 0;
        for (stage, (before, after)) in self.channels().into_iter().enumerate() {
            for layer in 0..self.blocks[stage] {
                let (name, inputs) = (format!("dense{}.{layer}", stage + 1), before + layer * growth);
                params.batch_norm(&format!("{name}.bn1"), inputs);
                params.conv_without_bias(&format!("{name}.conv1"), [4 * growth, inputs, 1, 1]);
                params.batch_norm(&format!("{name}.bn2"), 4 * growth);
                params.conv_without_bias(&format!("{name}.conv2"), [growth, 4 * growth, 3, 3]);
            }
            if stage + 1 < self.blocks.len() {
                params.batch_norm(&format!("trans{}.bn", stage + 1), after);
                params.conv_without_bias(&format!("trans{}.conv", stage + 1), [after / 2, after, 1, 1]);
            }
            last = after;
        }
        params.batch_norm("bn", last);
        params.linear("linear", last, self.images.classes);
        params
    }

    fn forward(&self, parameters: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let mut x = Conv::padded(1).apply(parameters, "conv1", batch)?;
        for (stage, layers) in self.blocks.iter().enumerate() {
            for layer in 0..*layers {
                x = self.grow(parameters, &format!("dense{}.{layer}", stage + 1), x, pass)?;
            }
            if stage + 1 < self.blocks.len() {
                let name = format!("trans{}", stage + 1);
                x = batch_norm_relu(parameters, &format!("{name}.bn"), x, pass)?;
                x = Conv::PLAIN.apply(parameters, &format!("{name}.conv"), x)?;
                x = module::avg_pool2d(x, AvgPoolOptions::new([2, 2]));
            }
        }
        let x = batch_norm_relu(parameters, "bn", x, pass)?;
        linear(parameters, "linear", mean_pixel(x))
    }
}
