//! The ViT for small datasets (Lee et al. 2021).

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::transformer::{Kind, Transformer, TransformerConfig, patches};
use super::{ImageConfig, ImageNetwork, ImageShape};
use crate::attention::Attention;
use crate::classifier::Pass;
use crate::layers::{LayerNorm, Linear, check_dropout};
use crate::params::{Init, Param, Scope};
use crate::{NnError, Parameters};

/// `vit_pytorch.vit_for_small_dataset.ViT`, under its names: patches of the image and of four copies of it moved by one pixel (up, down,
/// left, right), attention with a learned temperature that leaves out the token itself, a class token, learned positions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VitSmallConfig {
    /// What it is shown.
    pub images: ImageShape,
    /// Side of a patch; must divide the image's. The paper: 4, for MNIST 7.
    pub patch: usize,
    /// Width of a token.
    pub dim: usize,
    /// Layers.
    pub depth: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of a head's queries, keys and values.
    pub dim_head: usize,
    /// Width of the feed-forward layers.
    pub mlp: usize,
    /// How attention turns scores into weights.
    pub attention: Attention,
    /// Share of values dropped in the layers: of attention's weights, its output, and after both linear layers.
    pub dropout: f64,
    /// Share of the embedded tokens' values dropped.
    pub emb_dropout: f64,
}

impl Default for VitSmallConfig {
    /// The paper's, for CIFAR-10.
    fn default() -> Self {
        Self {
            images: ImageShape::CIFAR,
            patch: 4,
            dim: 64,
            depth: 8,
            heads: 32,
            dim_head: 64,
            mlp: 256,
            attention: Attention::Softmax,
            dropout: 0.1,
            emb_dropout: 0.1,
        }
    }
}

impl VitSmallConfig {
    fn transformer(&self) -> TransformerConfig {
        let Self { dim, depth, heads, dim_head, mlp, attention, dropout, .. } = *self;
        TransformerConfig { dim, depth, heads, dim_head, mlp, kind: Kind::Local { attention, dropout } }
    }
}

impl ImageConfig for VitSmallConfig {
    fn check(&self) -> Result<(), NnError> {
        self.images.check_patch(self.patch)?;
        check_dropout("model.emb_dropout", self.emb_dropout)?;
        self.transformer().check()
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let dim = self.dim;
        let width = 5 * self.images.channels * self.patch.pow(2);
        Box::new(VitSmall {
            config: self.clone(),
            position: params.add("pos_embedding", [1, self.images.patches(self.patch) + 1, dim], Init::Normal),
            class: params.add("cls_token", [1, 1, dim], Init::Normal),
            patch_norm: LayerNorm::new(params.at("to_patch_embedding.to_patch_tokens.1"), width),
            embedding: Linear::new(params.at("to_patch_embedding.to_patch_tokens.2"), width, dim),
            transformer: Transformer::new(self.transformer(), &mut params),
            norm: LayerNorm::new(params.at("mlp_head.0"), dim),
            head: Linear::new(params.at("mlp_head.1"), dim, self.images.classes),
        })
    }
}

struct VitSmall {
    config: VitSmallConfig,
    /// [1, patches + 1, dim]
    position: Param<3>,
    /// [1, 1, dim]
    class: Param<3>,
    patch_norm: LayerNorm,
    embedding: Linear,
    transformer: Transformer,
    norm: LayerNorm,
    head: Linear,
}

impl ImageNetwork for VitSmall {
    fn forward(&self, p: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let VitSmallConfig { patch, dim, emb_dropout, .. } = self.config;
        let count = batch.dims()[0];
        let x = patches(with_shifts(batch), patch);
        let x = self.patch_norm.forward(p, x);
        let x = self.embedding.forward(p, x);
        let class = p.get(self.class).expand([count, 1, dim]);
        let x = Tensor::cat(vec![class, x], 1) + p.get(self.position);
        let x = self.transformer.forward(p, pass.dropout(x, emb_dropout), pass);
        // Only the class token is read.
        let x = self.norm.forward(p, x.narrow(1, 0, 1));
        Ok(self.head.forward(p, x.reshape([count, dim])))
    }
}

/// The image and four copies moved by one pixel, as more channels: [batch, 5 channels, side, side]. What moves in is 0.
fn with_shifts(x: Tensor<4>) -> Tensor<4> {
    let [batch, channels, height, width] = x.dims();
    // burn's `pad` would take its zeros from the host, where a GPU has to wait for them.
    let zeros = |height, width| Tensor::zeros([batch, channels, height, width], (&x.device(), x.dtype()));
    let taller = Tensor::cat(vec![zeros(1, width), x.clone(), zeros(1, width)], 2);
    let padded = Tensor::cat(vec![zeros(height + 2, 1), taller, zeros(height + 2, 1)], 3);
    let window = |row: usize, column: usize| padded.clone().narrow(2, row, height).narrow(3, column, width);
    Tensor::cat(vec![x, window(1, 0), window(1, 2), window(0, 1), window(2, 1)], 1)
}
