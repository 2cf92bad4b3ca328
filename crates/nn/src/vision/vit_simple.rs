//! The plain ViT (Beyer et al. 2022).

use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::layers::{layer_norm, linear};
use super::param_list::ParamList;
use super::transformer::{Kind, Transformer, patches};
use super::{ImageNetwork, ImageShape};
use crate::NnError;
use crate::classifier::{Parameters, Pass};

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
    /// The paper's, for CIFAR-10; it does not state `dim` and `dim_head`, which are ViT-small's here.
    fn default() -> Self {
        Self { images: ImageShape::CIFAR, patch: 4, dim: 64, depth: 6, heads: 16, dim_head: 64, mlp: 512 }
    }
}

impl VitSimpleConfig {
    fn transformer(&self) -> Transformer {
        let Self { dim, depth, heads, dim_head, mlp, .. } = *self;
        Transformer { dim, depth, heads, dim_head, mlp, kind: Kind::Plain }
    }
}

impl ImageNetwork for VitSimpleConfig {
    fn images(&self) -> &ImageShape {
        &self.images
    }

    fn check(&self) -> Result<(), NnError> {
        self.images.check_patch(self.patch)?;
        if self.dim < 8 || !self.dim.is_multiple_of(4) {
            let problem = format!("sine and cosine positions need a multiple of 4 from 8 on, but dim = {}", self.dim);
            return Err(NnError::setting("model.dim", problem));
        }
        self.transformer().check()
    }

    fn params(&self) -> ParamList {
        let width = self.images.channels * self.patch.pow(2);
        let mut params = ParamList::default();
        params.layer_norm("to_patch_embedding.1", width);
        params.linear("to_patch_embedding.2", width, self.dim);
        params.layer_norm("to_patch_embedding.3", self.dim);
        params.layer_norm("transformer.norm", self.dim);
        self.transformer().declare(&mut params);
        params.linear("linear_head", self.dim, self.images.classes);
        params
    }

    fn forward(&self, parameters: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let count = batch.dims()[0];
        let x = patches(batch, self.patch);
        let x = layer_norm(parameters, "to_patch_embedding.1", x)?;
        let x = linear(parameters, "to_patch_embedding.2", x)?;
        let x = layer_norm(parameters, "to_patch_embedding.3", x)?;
        let places = positions(self.images.side / self.patch, self.dim);
        let x = x.clone() + constant(places, [1, self.images.patches(self.patch), self.dim], &x);
        let x = self.transformer().forward(parameters, x, pass)?;
        let x = layer_norm(parameters, "transformer.norm", x)?;
        linear(parameters, "linear_head", x.mean_dim(1).reshape([count, self.dim]))
    }
}

/// A constant on the device and in the precision of `like`.
fn constant<const D: usize>(values: Vec<f64>, shape: [usize; D], like: &Tensor<D>) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (&like.device(), like.dtype()))
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
