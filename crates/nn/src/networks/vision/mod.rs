//! Networks on images, one file each: those of Vasudeva et al., Section 5, and those that checkpoints of other people are of.
//!
//! [`VisionConfig`] says which one and how large; it is a [`Classifier`] of [`ImageBatch`].

mod cnn;
mod convmixer;
mod densenet121;
mod images;
mod layers;
mod mlp;
mod residual;
mod resnet18;
mod resnet_cifar;
mod resnet_torchvision;
mod transformer;
mod vit;
mod vit_simple;
mod vit_small;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::classifier::{Classifier, Pass};
use crate::layers::at_least_one;
use crate::params::Scope;
use crate::{Device, NnError, Parameters};

pub use crate::attention::Attention;
pub use cnn::CnnConfig;
pub use convmixer::ConvMixerConfig;
pub use densenet121::DenseNetConfig;
pub use images::{ImageBatch, ImageShape};
pub use layers::Activation;
pub use mlp::MlpConfig;
pub use resnet_cifar::CifarResNetConfig;
pub use resnet_torchvision::TorchvisionResNetConfig;
pub use resnet18::ResNetConfig;
pub use vit::{VitConfig, VitStyle};
pub use vit_simple::VitSimpleConfig;
pub use vit_small::VitSmallConfig;

/// A network on images. In a configuration: `kind = "vit-small"` and the fields of that kind; those left out are the paper's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum VisionConfig {
    /// Multi-layer perceptron.
    Mlp(MlpConfig),
    /// Two convolutions and two linear layers.
    Cnn(CnnConfig),
    /// The ViT for small datasets.
    VitSmall(VitSmallConfig),
    /// The plain ViT.
    VitSimple(VitSimpleConfig),
    /// ResNet-18.
    #[serde(rename = "resnet18")]
    ResNet18(ResNetConfig),
    /// DenseNet-121.
    #[serde(rename = "densenet121")]
    DenseNet121(DenseNetConfig),
    /// ConvMixer.
    #[serde(rename = "convmixer")]
    ConvMixer(ConvMixerConfig),
    /// ResNet-20 and its deeper kin, of other people's checkpoints.
    #[serde(rename = "resnet-cifar")]
    CifarResNet(CifarResNetConfig),
    /// torchvision's ResNets, of other people's checkpoints.
    #[serde(rename = "resnet-torchvision")]
    TorchvisionResNet(TorchvisionResNetConfig),
    /// ViTs of other people's checkpoints.
    Vit(VitConfig),
}

/// What one kind of network says of itself; [`VisionConfig`] adds what is the same for all.
trait ImageConfig {
    /// Whether its own settings make sense, given that its images do.
    fn check(&self) -> Result<(), NnError>;

    /// Its layers.
    fn network(&self, params: Scope) -> Box<dyn ImageNetwork>;
}

/// The layers of one kind of network.
pub trait ImageNetwork: Send + Sync {
    /// [batch, channels, side, side] -> [batch, classes]
    fn forward(&self, p: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError>;
}

impl VisionConfig {
    /// What it is shown.
    pub fn images(&self) -> &ImageShape {
        self.parts().0
    }

    /// What it is shown, and what its kind says of itself.
    fn parts(&self) -> (&ImageShape, &dyn ImageConfig) {
        match self {
            Self::Mlp(config) => (&config.images, config),
            Self::Cnn(config) => (&config.images, config),
            Self::VitSmall(config) => (&config.images, config),
            Self::VitSimple(config) => (&config.images, config),
            Self::ResNet18(config) => (&config.images, config),
            Self::DenseNet121(config) => (&config.images, config),
            Self::ConvMixer(config) => (&config.images, config),
            Self::CifarResNet(config) => (&config.images, config),
            Self::TorchvisionResNet(config) => (&config.images, config),
            Self::Vit(config) => (&config.images, config),
        }
    }
}

impl Classifier for VisionConfig {
    type Input = ImageBatch;
    type Batch = Tensor<4>;
    type Network = Box<dyn ImageNetwork>;

    const NATIVE_GRADIENTS: bool = true;

    fn check(&self) -> Result<(), NnError> {
        let (images, config) = self.parts();
        images.check()?;
        config.check()
    }

    fn classes(&self) -> usize {
        self.images().classes
    }

    fn network(&self, params: Scope) -> Self::Network {
        self.parts().1.network(params)
    }

    fn count(&self, input: &ImageBatch) -> usize {
        input.count
    }

    fn upload(&self, input: &ImageBatch, device: &Device) -> Result<Tensor<4>, NnError> {
        self.images().check_batch(input)?;
        Ok(input.upload(device))
    }

    #[cfg(feature = "torch")]
    fn tensors(batch: &Tensor<4>) -> Option<Vec<tch::Tensor>> {
        Some(vec![crate::native::constant(batch)?])
    }

    fn forward(
        network: &Self::Network,
        parameters: &Parameters,
        batch: Tensor<4>,
        pass: &mut Pass,
    ) -> Result<Tensor<2>, NnError> {
        network.forward(parameters, batch, pass)
    }
}

/// Whether a network can have so many layers in each of its stages.
fn check_stages(blocks: &[usize]) -> Result<(), NnError> {
    if blocks.is_empty() || blocks.len() > 8 {
        let problem = format!("there must be 1 to 8 stages, but there are {}", blocks.len());
        return Err(NnError::setting("model.blocks", problem));
    }
    blocks.iter().try_for_each(|count| at_least_one("model.blocks", *count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [VisionConfig; 7] {
        [
            VisionConfig::Mlp(MlpConfig::default()),
            VisionConfig::Cnn(CnnConfig::default()),
            VisionConfig::VitSmall(VitSmallConfig::default()),
            VisionConfig::VitSimple(VitSimpleConfig::default()),
            VisionConfig::ResNet18(ResNetConfig::default()),
            VisionConfig::DenseNet121(DenseNetConfig::default()),
            VisionConfig::ConvMixer(ConvMixerConfig::default()),
        ]
    }

    /// Counted by PyTorch in the modules of `tests/golden/vision.py`.
    #[test]
    fn the_papers_networks_have_as_many_parameters_as_pytorchs() {
        let counts = all().map(|config| config.empty_weights().unwrap().data().len());
        assert_eq!(counts, [468_874, 600_810, 4_482_482, 1_975_210, 11_173_962, 6_956_298, 44_362]);
    }

    #[test]
    fn impossible_settings_are_explained() {
        let problem = |config: VisionConfig| config.check().unwrap_err().to_string();
        let vit = VitSmallConfig::default();
        assert!(
            problem(VisionConfig::VitSmall(VitSmallConfig { patch: 5, ..vit.clone() }))
                .contains("divide the image's side 32")
        );
        assert!(problem(VisionConfig::VitSmall(VitSmallConfig { heads: 0, ..vit.clone() })).contains("model.heads"));
        assert!(problem(VisionConfig::VitSmall(VitSmallConfig { dropout: 1.0, ..vit })).contains("model.dropout"));
        let simple = VitSimpleConfig { dim: 10, ..VitSimpleConfig::default() };
        assert!(problem(VisionConfig::VitSimple(simple)).contains("multiple of 4"));
        let tiny = CnnConfig { images: ImageShape { side: 5, ..ImageShape::MNIST }, ..CnnConfig::default() };
        assert!(problem(VisionConfig::Cnn(tiny)).contains("side 5"));
        let even = ConvMixerConfig { kernel: 4, ..ConvMixerConfig::default() };
        assert!(problem(VisionConfig::ConvMixer(even)).contains("must be odd"));
        let odd = DenseNetConfig { images: ImageShape { side: 28, ..ImageShape::MNIST }, ..DenseNetConfig::default() };
        assert!(problem(VisionConfig::DenseNet121(odd)).contains("multiple of 8"));
        let none = ResNetConfig { blocks: Vec::new(), ..ResNetConfig::default() };
        assert!(problem(VisionConfig::ResNet18(none)).contains("1 to 8 stages"));
        assert!(
            problem(VisionConfig::Mlp(MlpConfig { hidden: vec![0], ..MlpConfig::default() })).contains("model.hidden")
        );
    }
}
