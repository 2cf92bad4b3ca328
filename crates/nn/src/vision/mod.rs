//! Networks on images: those of Vasudeva et al., Section 5, one file each.
//!
//! [`VisionConfig`] says which one and how large; it is a [`Classifier`] of [`Pictures`].

mod cnn;
mod convmixer;
mod densenet121;
pub(crate) mod layers;
mod mlp;
mod pictures;
mod plan;
mod resnet18;
mod transformer;
mod vit_simple;
mod vit_small;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::classifier::{Classifier, Parameters, Pass};
use crate::init::Blueprint;
use crate::{Device, NnError};

pub use cnn::CnnConfig;
pub use convmixer::ConvMixerConfig;
pub use densenet121::DenseNetConfig;
pub use layers::Activation;
pub use mlp::MlpConfig;
pub use pictures::{Images, Pictures};
pub use resnet18::ResNetConfig;
pub use transformer::Attention;
pub use vit_simple::VitSimpleConfig;
pub use vit_small::VitSmallConfig;

use plan::Plan;

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
}

/// What one kind of network says of itself; [`VisionConfig`] adds what is the same for all.
trait ImageNetwork {
    /// What it is shown.
    fn images(&self) -> &Images;

    /// Whether its own settings make sense, given that its images do.
    fn check(&self) -> Result<(), NnError>;

    /// Its parameters and buffers.
    fn plan(&self) -> Plan;

    /// [batch, channels, side, side] -> [batch, classes]
    fn forward(&self, parameters: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError>;
}

impl VisionConfig {
    /// What it is shown.
    pub fn images(&self) -> &Images {
        self.network().images()
    }

    /// The same network for other images.
    pub fn with_images(mut self, images: Images) -> Self {
        *match &mut self {
            Self::Mlp(config) => &mut config.images,
            Self::Cnn(config) => &mut config.images,
            Self::VitSmall(config) => &mut config.images,
            Self::VitSimple(config) => &mut config.images,
            Self::ResNet18(config) => &mut config.images,
            Self::DenseNet121(config) => &mut config.images,
            Self::ConvMixer(config) => &mut config.images,
        } = images;
        self
    }

    fn network(&self) -> &dyn ImageNetwork {
        match self {
            Self::Mlp(config) => config,
            Self::Cnn(config) => config,
            Self::VitSmall(config) => config,
            Self::VitSimple(config) => config,
            Self::ResNet18(config) => config,
            Self::DenseNet121(config) => config,
            Self::ConvMixer(config) => config,
        }
    }
}

impl Classifier for VisionConfig {
    type Input = Pictures;
    type Batch = Tensor<4>;

    fn check(&self) -> Result<(), NnError> {
        self.images().check()?;
        self.network().check()
    }

    fn classes(&self) -> usize {
        self.images().classes
    }

    fn blueprints(&self) -> Vec<Blueprint> {
        self.network().plan().parameters
    }

    fn buffers(&self) -> Vec<Blueprint> {
        self.network().plan().buffers
    }

    fn count(&self, input: &Pictures) -> usize {
        input.count
    }

    fn upload(&self, input: &Pictures, device: &Device) -> Result<Tensor<4>, NnError> {
        self.images().check_batch(input)?;
        Ok(input.upload(device))
    }

    fn forward(&self, parameters: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        self.network().forward(parameters, batch, pass)
    }
}
