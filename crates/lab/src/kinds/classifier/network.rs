//! From the flat settings of a network to the network itself.

use pudica_nn::classifier::Classifier;
use pudica_nn::vision::{
    Activation, Attention, CnnConfig, ConvMixerConfig, DenseNetConfig, ImageShape, MlpConfig, ResNetConfig,
    VisionConfig, VitSimpleConfig, VitSmallConfig,
};
use serde::Serialize;
use serde_json::Value;

use super::config::{ModelConfig, ModelKind};
use crate::error::{Error, Result};

impl ModelConfig {
    /// States every size of the network, and sets to 0 or nothing what its kind does not have.
    pub(super) fn fill_defaults(&mut self) -> Result<()> {
        if self.kind.reads_text() {
            return self.fill_text_defaults();
        }
        // What is shown plays no part in the sizes; these images suit every kind.
        let network = self.image_network(ImageShape::CIFAR)?;
        let mut stated = ModelConfig::empty(self.kind);
        match network {
            VisionConfig::Mlp(own) => {
                (stated.hidden, stated.activation) = (joined(&own.hidden), name_of(&own.activation));
            }
            VisionConfig::Cnn(own) => {
                (stated.width, stated.hidden) = (own.width, own.hidden.to_string());
                stated.activation = name_of(&own.activation);
            }
            VisionConfig::VitSmall(own) => {
                (stated.depth, stated.heads, stated.dim_head) = (own.depth, own.heads, own.dim_head);
                (stated.dim, stated.mlp, stated.patch) = (own.dim, own.mlp, own.patch);
                (stated.dropout, stated.attention) = (own.dropout, name_of(&own.attention));
            }
            VisionConfig::VitSimple(own) => {
                (stated.depth, stated.heads, stated.dim_head) = (own.depth, own.heads, own.dim_head);
                (stated.dim, stated.mlp, stated.patch) = (own.dim, own.mlp, own.patch);
            }
            VisionConfig::ResNet18(own) => (stated.width, stated.blocks) = (own.width, joined(&own.blocks)),
            VisionConfig::DenseNet121(own) => (stated.width, stated.blocks) = (own.growth, joined(&own.blocks)),
            VisionConfig::ConvMixer(own) => {
                (stated.depth, stated.dim, stated.patch, stated.kernel) = (own.depth, own.dim, own.patch, own.kernel);
            }
            // Networks of other people's checkpoints: no kind here is one of them.
            VisionConfig::CifarResNet(_) | VisionConfig::TorchvisionResNet(_) | VisionConfig::Vit(_) => {}
        }
        *self = stated;
        Ok(())
    }

    /// No size of any kind.
    pub(super) fn empty(kind: ModelKind) -> ModelConfig {
        ModelConfig {
            kind,
            depth: 0,
            heads: 0,
            dim: 0,
            dim_head: 0,
            mlp: 0,
            dropout: 0.0,
            attention: String::new(),
            patch: 0,
            kernel: 0,
            hidden: String::new(),
            activation: String::new(),
            width: 0,
            blocks: String::new(),
            length: 0,
        }
    }

    /// The network for such images.
    pub(super) fn image_network(&self, images: ImageShape) -> Result<VisionConfig> {
        let dropout = self.dropout;
        let attention = if self.attention == "relu" { Attention::Relu } else { Attention::Softmax };
        let activation = if self.activation == "sigmoid" { Activation::Sigmoid } else { Activation::LeakyRelu };
        let vit_sizes = |own| stated_or([self.patch, self.dim, self.depth, self.heads, self.dim_head, self.mlp], own);
        Ok(match self.kind {
            ModelKind::Mlp => {
                let hidden = numbers("model.hidden", &self.hidden, MlpConfig::default().hidden)?;
                VisionConfig::Mlp(MlpConfig { images, hidden, activation })
            }
            ModelKind::Cnn => {
                let own = CnnConfig::default();
                let [hidden] = numbers("model.hidden", &self.hidden, vec![own.hidden])?[..] else {
                    let problem = format!("the CNN has one hidden layer, as in 128, not \"{}\"", self.hidden);
                    return Err(Error::setting("model.hidden", problem));
                };
                VisionConfig::Cnn(CnnConfig { images, width: or(self.width, own.width), hidden, activation })
            }
            ModelKind::VitSmall => {
                let own = VitSmallConfig::default();
                let own_sizes = [own.patch, own.dim, own.depth, own.heads, own.dim_head, own.mlp];
                let [patch, dim, depth, heads, dim_head, mlp] = vit_sizes(own_sizes);
                let own = VitSmallConfig { images, attention, dropout, emb_dropout: dropout, ..own };
                VisionConfig::VitSmall(VitSmallConfig { patch, dim, depth, heads, dim_head, mlp, ..own })
            }
            ModelKind::VitSimple => {
                let own = VitSimpleConfig::default();
                let own_sizes = [own.patch, own.dim, own.depth, own.heads, own.dim_head, own.mlp];
                let [patch, dim, depth, heads, dim_head, mlp] = vit_sizes(own_sizes);
                VisionConfig::VitSimple(VitSimpleConfig { images, patch, dim, depth, heads, dim_head, mlp })
            }
            ModelKind::Resnet18 => {
                let own = ResNetConfig::default();
                let blocks = numbers("model.blocks", &self.blocks, own.blocks)?;
                VisionConfig::ResNet18(ResNetConfig { images, width: or(self.width, own.width), blocks })
            }
            ModelKind::Densenet121 => {
                let own = DenseNetConfig::default();
                let blocks = numbers("model.blocks", &self.blocks, own.blocks)?;
                VisionConfig::DenseNet121(DenseNetConfig { images, growth: or(self.width, own.growth), blocks })
            }
            ModelKind::Convmixer => {
                let own = ConvMixerConfig::default();
                let stated = [self.patch, self.dim, self.depth, self.kernel];
                let [patch, dim, depth, kernel] = stated_or(stated, [own.patch, own.dim, own.depth, own.kernel]);
                VisionConfig::ConvMixer(ConvMixerConfig { images, patch, dim, depth, kernel })
            }
            ModelKind::Roberta | ModelKind::Gpt2 | ModelKind::Lstm => {
                let problem = format!("{} reads texts, not images", self.kind.name());
                return Err(Error::setting("model.kind", problem));
            }
        })
    }

    /// [`ModelConfig::image_network`], refused where it cannot be built for such images.
    pub(super) fn checked_image_network(&self, images: ImageShape) -> Result<VisionConfig> {
        let network = self.image_network(images)?;
        network.check()?;
        Ok(network)
    }
}

/// A size, or the network's own where it is 0.
fn or(size: usize, own: usize) -> usize {
    if size == 0 { own } else { size }
}

/// Sizes, or the network's own where they are 0.
pub(super) fn stated_or<const N: usize>(stated: [usize; N], own: [usize; N]) -> [usize; N] {
    std::array::from_fn(|at| or(stated[at], own[at]))
}

/// Sizes as in `512-128`, or the network's own where there are none.
fn numbers(key: &str, text: &str, own: Vec<usize>) -> Result<Vec<usize>> {
    if text.is_empty() {
        return Ok(own);
    }
    let size = |text: &str| text.trim().parse::<usize>().ok().filter(|size| *size > 0);
    text.split('-')
        .map(size)
        .collect::<Option<Vec<usize>>>()
        .ok_or_else(|| Error::setting(key, format!("must be sizes such as 512-128, not \"{text}\"")))
}

fn joined(sizes: &[usize]) -> String {
    sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("-")
}

/// The name of a choice, as it is written in a configuration.
pub(super) fn name_of(choice: &impl Serialize) -> String {
    match serde_json::to_value(choice) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}
