//! Vision transformers with a class token and learnt positions, as other people's checkpoints have them.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::transformer::patches;
use super::{ImageConfig, ImageNetwork, ImageShape};
use crate::attention::{Attention, AttentionSpec, Mask, attend};
use crate::classifier::Pass;
use crate::convolution::Conv;
use crate::layers::{
    Conv2d, LAYER_NORM_EPS, LayerNorm, Linear, Nonlinearity, at_least_one, check_heads, gelu, multiply,
};
use crate::params::{Init, Param, Scope};
use crate::{NnError, Parameters};

/// A ViT (Dosovitskiy et al. 2021): patches and a class token, layers of attention and two linear layers, read at the class token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VitConfig {
    /// What it is shown.
    pub images: ImageShape,
    /// Side of a patch; must divide the image's.
    pub patch: usize,
    /// Width of a token.
    pub dim: usize,
    /// Layers.
    pub depth: usize,
    /// Attention heads; must divide `dim`.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub mlp: usize,
    /// Whose module it is: the names of its parameters, and what else differs.
    pub style: VitStyle,
    /// Between the two linear layers.
    pub activation: Nonlinearity,
    /// LayerNorm's epsilon.
    pub norm_eps: f64,
}

/// What ViTs that share a name differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VitStyle {
    /// PyTorch's own `nn.TransformerEncoder` (LayerNorm behind each part of a layer) between `patch_embed.proj`, a convolution, and
    /// `mlp_head`, a LayerNorm and a linear layer.
    TorchEncoder,
    /// The first `vit_pytorch` (`Residual(PreNorm(..))`): a linear layer on patches, scores divided by the root of `dim`, no LayerNorm in the
    /// end, and a head of two linear layers, `head` wide.
    Residual {
        /// Width between the head's layers.
        head: usize,
    },
    /// `ViTForImageClassification` of Python's `transformers`.
    HuggingFace {
        /// Whether queries, keys and values have biases.
        qkv_bias: bool,
    },
}

impl Default for VitConfig {
    /// ViT-B/16 of `transformers`.
    fn default() -> Self {
        Self {
            images: ImageShape { channels: 3, side: 224, classes: 1000 },
            patch: 16,
            dim: 768,
            depth: 12,
            heads: 12,
            mlp: 3072,
            style: VitStyle::HuggingFace { qkv_bias: true },
            activation: Nonlinearity::Gelu,
            norm_eps: LAYER_NORM_EPS,
        }
    }
}

impl ImageConfig for VitConfig {
    fn check(&self) -> Result<(), NnError> {
        self.images.check_patch(self.patch)?;
        at_least_one("model.dim", self.dim)?;
        at_least_one("model.depth", self.depth)?;
        at_least_one("model.mlp", self.mlp)?;
        if let VitStyle::Residual { head } = self.style {
            at_least_one("model.head", head)?;
        }
        check_heads(self.dim, self.heads)
    }

    fn network(&self, mut params: Scope) -> Box<dyn ImageNetwork> {
        let Self { images, patch, dim, depth, style, norm_eps, .. } = *self;
        let tokens = [1, images.patches(patch) + 1, dim];
        let convolution = [dim, images.channels, patch, patch];
        let strided = Conv { stride: patch, ..Conv::PLAIN };
        let layers = |params: &mut Scope, name: &str| {
            (0..depth).map(|layer| Layer::new(self, params.at(format_args!("{name}.{layer}")))).collect()
        };
        Box::new(match style {
            VitStyle::TorchEncoder => Vit {
                class: params.add("cls_token", [1, 1, dim], Init::Zeros),
                position: params.add("pos_embed", tokens, Init::Gaussian(0.02)),
                embedding: Embedding::Convolution(Conv2d::new(params.at("patch_embed.proj"), convolution, strided)),
                layers: layers(&mut params, "transformer.layers"),
                norm: Some(LayerNorm::with_eps(params.at("mlp_head.0"), dim, norm_eps)),
                head: vec![Linear::new(params.at("mlp_head.1"), dim, images.classes)],
            },
            VitStyle::Residual { head } => Vit {
                position: params.add("pos_embedding", tokens, Init::Normal),
                class: params.add("cls_token", [1, 1, dim], Init::Normal),
                embedding: Embedding::Linear {
                    patch,
                    linear: Linear::new(params.at("patch_to_embedding"), images.channels * patch * patch, dim),
                },
                layers: layers(&mut params, "transformer.layers"),
                norm: None,
                head: vec![
                    Linear::new(params.at("mlp_head.0"), dim, head),
                    Linear::new(params.at("mlp_head.2"), head, images.classes),
                ],
            },
            VitStyle::HuggingFace { .. } => {
                let mut embeddings = params.at("vit.embeddings");
                Vit {
                    class: embeddings.add("cls_token", [1, 1, dim], Init::Gaussian(0.02)),
                    position: embeddings.add("position_embeddings", tokens, Init::Gaussian(0.02)),
                    embedding: Embedding::Convolution(Conv2d::new(
                        embeddings.at("patch_embeddings.projection"),
                        convolution,
                        strided,
                    )),
                    layers: layers(&mut params, "vit.encoder.layer"),
                    norm: Some(LayerNorm::with_eps(params.at("vit.layernorm"), dim, norm_eps)),
                    head: vec![Linear::new(params.at("classifier"), dim, images.classes)],
                }
            }
        })
    }
}

struct Vit {
    /// [1, 1, dim]
    class: Param<3>,
    /// [1, patches + 1, dim]
    position: Param<3>,
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: Option<LayerNorm>,
    /// With a GELU between them.
    head: Vec<Linear>,
}

/// How patches become tokens.
enum Embedding {
    Convolution(Conv2d),
    Linear { patch: usize, linear: Linear },
}

impl Embedding {
    /// [batch, channels, side, side] -> [batch, patches, dim]
    fn forward(&self, p: &Parameters, batch: Tensor<4>) -> Tensor<3> {
        match self {
            Self::Convolution(conv) => conv.forward(p, batch).flatten::<3>(2, 3).swap_dims(1, 2),
            Self::Linear { patch, linear } => linear.forward(p, patches(batch, *patch)),
        }
    }
}

impl ImageNetwork for Vit {
    fn forward(&self, p: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let x = self.embedding.forward(p, batch);
        let [count, _, dim] = x.dims();
        let class = p.get(self.class).expand([count, 1, dim]);
        let mut x = Tensor::cat(vec![class, x], 1) + p.get(self.position);
        for (at, layer) in self.layers.iter().enumerate() {
            x = layer.forward(p, x, at + 1 == self.layers.len(), pass);
        }
        let x = match &self.norm {
            Some(norm) => norm.forward(p, x),
            None => x,
        };
        let mut x: Tensor<2> = x.reshape([count, dim]);
        for (at, linear) in self.head.iter().enumerate() {
            x = linear.forward(p, if at > 0 { gelu(x) } else { x });
        }
        Ok(x)
    }
}

struct Layer {
    heads: usize,
    /// What scores are multiplied with.
    scale: f64,
    activation: Nonlinearity,
    /// Whether a LayerNorm stands before each part instead of behind it and the way around it.
    norm_first: bool,
    norm1: LayerNorm,
    projection: Projection,
    out: Linear,
    norm2: LayerNorm,
    linear1: Linear,
    linear2: Linear,
}

/// What makes queries, keys and values.
enum Projection {
    /// One matrix [3 dim, dim].
    Joined { weight: Param<2>, bias: Option<Param<1>> },
    /// One each.
    Apart([Linear; 3]),
}

impl Projection {
    /// The weight [dim, dim] and bias of queries, and the weight [2 dim, dim] and bias of keys beside values.
    fn tensors(&self, p: &Parameters) -> [(Tensor<2>, Option<Tensor<1>>); 2] {
        match self {
            Self::Joined { weight, bias } => {
                let (weight, bias) = (p.get(*weight), bias.map(|bias| p.get(bias)));
                let dim = weight.dims()[1];
                let part = |first: usize, rows: usize| {
                    (weight.clone().narrow(0, first, rows), bias.clone().map(|bias| bias.narrow(0, first, rows)))
                };
                [part(0, dim), part(dim, 2 * dim)]
            }
            Self::Apart([query, key, value]) => {
                let ((key, key_bias), (value, value_bias)) = (key.tensors(p), value.tensors(p));
                let bias = key_bias.zip(value_bias).map(|(key, value)| Tensor::cat(vec![key, value], 0));
                [query.tensors(p), (Tensor::cat(vec![key, value], 0), bias)]
            }
        }
    }
}

impl Layer {
    fn new(config: &VitConfig, mut params: Scope) -> Self {
        let VitConfig { dim, heads, mlp, style, activation, norm_eps, .. } = *config;
        let scale = match style {
            VitStyle::Residual { .. } => (dim as f64).sqrt().recip(),
            _ => (heads as f64 / dim as f64).sqrt(),
        };
        let norm = |params: Scope| LayerNorm::with_eps(params, dim, norm_eps);
        let weight = |params: &mut Scope, name: &str| params.add(name, [3 * dim, dim], Init::linear(dim));
        match style {
            VitStyle::TorchEncoder => {
                let mut attention = params.at("self_attn");
                let projection = Projection::Joined {
                    weight: weight(&mut attention, "in_proj_weight"),
                    bias: Some(attention.add("in_proj_bias", [3 * dim], Init::Zeros)),
                };
                Self {
                    heads,
                    scale,
                    activation,
                    norm_first: false,
                    projection,
                    out: Linear::new(attention.at("out_proj"), dim, dim),
                    linear1: Linear::new(params.at("linear1"), dim, mlp),
                    linear2: Linear::new(params.at("linear2"), mlp, dim),
                    norm1: norm(params.at("norm1")),
                    norm2: norm(params.at("norm2")),
                }
            }
            VitStyle::Residual { .. } => Self {
                heads,
                scale,
                activation,
                norm_first: true,
                norm1: norm(params.at("0.fn.norm")),
                projection: Projection::Joined { weight: weight(&mut params, "0.fn.fn.to_qkv.weight"), bias: None },
                out: Linear::new(params.at("0.fn.fn.to_out"), dim, dim),
                norm2: norm(params.at("1.fn.norm")),
                linear1: Linear::new(params.at("1.fn.fn.net.0"), dim, mlp),
                linear2: Linear::new(params.at("1.fn.fn.net.2"), mlp, dim),
            },
            VitStyle::HuggingFace { qkv_bias } => {
                let projection = ["query", "key", "value"].map(|name| {
                    let params = params.at(format_args!("attention.attention.{name}"));
                    if qkv_bias { Linear::new(params, dim, dim) } else { Linear::without_bias(params, dim, dim) }
                });
                Self {
                    heads,
                    scale,
                    activation,
                    norm_first: true,
                    projection: Projection::Apart(projection),
                    out: Linear::new(params.at("attention.output.dense"), dim, dim),
                    linear1: Linear::new(params.at("intermediate.dense"), dim, mlp),
                    linear2: Linear::new(params.at("output.dense"), mlp, dim),
                    norm1: norm(params.at("layernorm_before")),
                    norm2: norm(params.at("layernorm_after")),
                }
            }
        }
    }

    /// x [batch, tokens, dim] -> the same, or of the last layer, of which nothing else is read, the class token [batch, 1, dim].
    fn forward(&self, p: &Parameters, x: Tensor<3>, last: bool, pass: &Pass) -> Tensor<3> {
        let first = |x: Tensor<3>| if last { x.narrow(1, 0, 1) } else { x };
        if self.norm_first {
            let seen = self.norm1.forward(p, x.clone());
            let x = self.attend(p, first(seen.clone()), seen, pass) + first(x);
            self.feed_forward(p, self.norm2.forward(p, x.clone())) + x
        } else {
            let mixed = self.attend(p, first(x.clone()), x.clone(), pass) + first(x);
            let x = self.norm1.forward(p, mixed);
            self.norm2.forward(p, self.feed_forward(p, x.clone()) + x)
        }
    }

    /// What tokens x [batch, l, dim] take from those they see [batch, m, dim].
    fn attend(&self, p: &Parameters, x: Tensor<3>, seen: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let spec = AttentionSpec { heads: self.heads, mask: Mask::None, attention: Attention::Softmax, dropout: 0.0 };
        let [(query, query_bias), (keys_values, bias)] = self.projection.tensors(p);
        // The scores' factor goes into the parameters of the queries, the smallest place it can go.
        let query_bias = query_bias.map(|bias| bias.mul_scalar(self.scale));
        let queries = multiply(x, query.mul_scalar(self.scale), query_bias);
        self.out.forward(p, attend(queries, multiply(seen, keys_values, bias), None, spec, pass))
    }

    fn feed_forward(&self, p: &Parameters, x: Tensor<3>) -> Tensor<3> {
        let wide = self.linear1.forward(p, x);
        self.linear2.forward(p, self.activation.apply(wide))
    }
}
