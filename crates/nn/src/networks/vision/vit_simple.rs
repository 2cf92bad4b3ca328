//! The plain ViT (Beyer et al. 2022).

use std::sync::OnceLock;

use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::transformer::{Kind, Transformer, TransformerConfig, patches};
use super::{ImageConfig, ImageNetwork, ImageShape};
use crate::classifier::Pass;
use crate::layers::{LayerNorm, Linear};
use crate::params::Scope;
use crate::{NnError, Parameters};

/// `vit_pytorch.simple_vit.SimpleViT`, under its names: fixed sine and cosine positions in two dimensions, no class token, the mean of all
/// tokens in the end, no dropout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VitSimpleConfig {
    /// What it is shown.
    pub images: ImageShape,
    /// Side of a patch; must divide the image's.
    pub patch: usize,
    /// Width of a token; a multiple of 4, at least 8.
    pub dim: usize,
    /// Layers.
    pub depth: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of a head's queries, keys and values.
    pub dim_head: usize,
    /// Width of the feed-forward layers.
    pub mlp: usize,
}

impl Default for VitSimpleConfig {
    /// The paper's, for CIFAR-10. It does not state `dim` and `dim_head`: 64 is what its released script sets and what vit-pytorch does.
    fn default() -> Self {
        Self { images: ImageShape::CIFAR, patch: 4, dim: 64, depth: 6, heads: 16, dim_head: 64, mlp: 512 }
    }
}

impl VitSimpleConfig {
    fn transformer(&self) -> TransformerConfig {
        let Self { dim, depth, heads, dim_head, mlp, .. } = *self;
        TransformerConfig { dim, depth, heads, dim_head, mlp, kind: Kind::Plain }
    }
}

impl ImageConfig for VitSimpleConfig {
    fn check(&self) -> Result<(), NnError> {
        self.images.check_patch(self.patch)?;
        if self.dim < 8 || !self.dim.is_multiple_of(4) {
            let problem = format!("sine and cosine positions need a multiple of 4 from 8 on, but dim = {}", self.dim);
            return Err(NnError::setting("model.dim", problem));
        }
        self.transformer().check()
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let width = self.images.channels * self.patch.pow(2);
        Box::new(VitSimple {
            config: self.clone(),
            positions: OnceLock::new(),
            patch_norm: LayerNorm::new(params.at("to_patch_embedding.1"), width),
            embedding: Linear::new(params.at("to_patch_embedding.2"), width, self.dim),
            embedding_norm: LayerNorm::new(params.at("to_patch_embedding.3"), self.dim),
            norm: LayerNorm::new(params.at("transformer.norm"), self.dim),
            transformer: Transformer::new(self.transformer(), &mut params),
            head: Linear::new(params.at("linear_head"), self.dim, self.images.classes),
        })
    }
}

struct VitSimple {
    config: VitSimpleConfig,
    /// On the model's device from the first pass on, so that later ones send nothing there: [1, patches, dim]
    positions: OnceLock<Tensor<3>>,
    patch_norm: LayerNorm,
    embedding: Linear,
    embedding_norm: LayerNorm,
    norm: LayerNorm,
    transformer: Transformer,
    head: Linear,
}

impl ImageNetwork for VitSimple {
    fn forward(&self, p: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let VitSimpleConfig { images, patch, dim, .. } = self.config;
        let count = batch.dims()[0];
        let x = patches(batch, patch);
        let x = self.patch_norm.forward(p, x);
        let x = self.embedding.forward(p, x);
        let x = self.embedding_norm.forward(p, x);
        let positions = self.positions.get_or_init(|| {
            let values = TensorData::new(positions(images.side / patch, dim), [1, images.patches(patch), dim]);
            Tensor::from_data(values, p.device().constant())
        });
        let x = x + positions.clone();
        let x = self.norm.forward(p, self.transformer.forward(p, x, pass));
        Ok(self.head.forward(p, x.mean_dim(1).reshape([count, dim])))
    }
}

/// Row-major [across * across, dim]: for each place, the sines of its column times dim/4 frequencies from 1 down to 1/10000, their cosines,
/// and the same of its row.
fn positions(across: usize, dim: usize) -> Vec<f64> {
    let quarter = dim / 4;
    let last = (quarter - 1) as f64;
    let frequencies: Vec<f64> = (0..quarter).map(|i| 1e4f64.powf(-(i as f64) / last)).collect();
    let waves = |place: usize| {
        let angles = frequencies.iter().map(move |frequency| place as f64 * frequency);
        angles.clone().map(f64::sin).chain(angles.map(f64::cos))
    };
    let places = (0..across).flat_map(|row| (0..across).map(move |column| (row, column)));
    places.flat_map(|(row, column)| waves(column).chain(waves(row)).collect::<Vec<f64>>()).collect()
}
