//! Networks on images: those of Vasudeva et al., Section 5, one file each.
//!
//! [`VisionConfig`] says which one and how large; it is a [`Classifier`] of [`Pictures`].

mod layers;
mod mlp;
mod pictures;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::classifier::{Classifier, Parameters, Pass};
use crate::init::Blueprint;
use crate::{Device, NnError};

pub use layers::Activation;
pub use mlp::MlpConfig;
pub use pictures::{Images, Pictures};

/// A network on images. In a configuration: `kind = "vit-small"` and the fields of that kind; those left out are the paper's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum VisionConfig {
    /// Multi-layer perceptron.
    Mlp(MlpConfig),
}

/// What one kind of network says of itself; [`VisionConfig`] adds what is the same for all.
trait ImageNetwork {
    fn images(&self) -> &Images;

    /// Whether its own settings make sense, given that its images do.
    fn check(&self) -> Result<(), NnError>;

    fn blueprints(&self) -> Vec<Blueprint>;

    fn buffers(&self) -> Vec<Blueprint> {
        Vec::new()
    }

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
        } = images;
        self
    }

    fn network(&self) -> &dyn ImageNetwork {
        match self {
            Self::Mlp(config) => config,
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
        self.network().blueprints()
    }

    fn buffers(&self) -> Vec<Blueprint> {
        self.network().buffers()
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
