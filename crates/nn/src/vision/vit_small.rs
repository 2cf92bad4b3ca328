//! The ViT for small datasets (Lee et al. 2021).

use burn::tensor::Tensor;
use burn::tensor::ops::PadMode;
use serde::{Deserialize, Serialize};

use super::layers::{layer_norm, linear};
use super::param_list::ParamList;
use super::transformer::{Kind, Transformer, check_dropout, patches};
use super::{ImageNetwork, ImageShape};
use crate::NnError;
use crate::attention::Attention;
use crate::classifier::{Parameters, Pass};
use crate::init::Init;

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
    fn transformer(&self) -> Transformer {
        let Self { dim, depth, heads, dim_head, mlp, attention, dropout, .. } = *self;
        Transformer { dim, depth, heads, dim_head, mlp, kind: Kind::Local { attention, dropout } }
    }
}

impl ImageNetwork for VitSmallConfig {
    fn images(&self) -> &ImageShape {
        &self.images
    }

    fn check(&self) -> Result<(), NnError> {
        self.images.check_patch(self.patch)?;
        check_dropout("model.emb_dropout", self.emb_dropout)?;
        self.transformer().check()
    }

    fn params(&self) -> ParamList {
        let dim = self.dim;
        let width = 5 * self.images.channels * self.patch.pow(2);
        let mut params = ParamList::default();
        params.add("pos_embedding", &[1, self.images.patches(self.patch) + 1, dim], Init::Normal);
        params.add("cls_token", &[1, 1, dim], Init::Normal);
        params.layer_norm("to_patch_embedding.to_patch_tokens.1", width);
        params.linear("to_patch_embedding.to_patch_tokens.2", width, dim);
        self.transformer().declare(&mut params);
        params.layer_norm("mlp_head.0", dim);
        params.linear("mlp_head.1", dim, self.images.classes);
        params
    }

    fn forward(&self, parameters: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let count = batch.dims()[0];
        let x = patches(with_shifts(batch), self.patch);
        let x = layer_norm(parameters, "to_patch_embedding.to_patch_tokens.1", x)?;
        let x = linear(parameters, "to_patch_embedding.to_patch_tokens.2", x)?;
        let class = parameters.get::<3>("cls_token")?.expand([count, 1, self.dim]);
        let x = Tensor::cat(vec![class, x], 1) + parameters.get::<3>("pos_embedding")?;
        let x = self.transformer().forward(parameters, pass.dropout(x, self.emb_dropout), pass)?;
        // Only the class token is read.
        let x = layer_norm(parameters, "mlp_head.0", x.narrow(1, 0, 1))?;
        linear(parameters, "mlp_head.1", x.reshape([count, self.dim]))
    }
}

/// The image and four copies moved by one pixel, as more channels: [batch, 5 channels, side, side]. What moves in is 0.
fn with_shifts(x: Tensor<4>) -> Tensor<4> {
    let [_, _, height, width] = x.dims();
    let padded = x.clone().pad([(1, 1), (1, 1)], PadMode::Constant(0.0));
    let window = |row: usize, column: usize| padded.clone().narrow(2, row, height).narrow(3, column, width);
    Tensor::cat(vec![x, window(1, 0), window(1, 2), window(0, 1), window(2, 1)], 1)
}
