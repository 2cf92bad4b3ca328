//! The transformer of both ViTs: pre-norm layers of attention and two linear layers.

use burn::tensor::Tensor;

use crate::attention::{Attention, AttentionSpec, Mask, self_attend};
use crate::classifier::Pass;
use crate::layers::{LayerNorm, Linear, at_least_one, check_dropout, gelu};
use crate::params::{Init, Param, Scope};
use crate::{NnError, Parameters};

/// The shape of a ViT's layers.
#[derive(Clone, Copy)]
pub(super) struct TransformerConfig {
    /// Width of a token.
    pub(super) dim: usize,
    /// Layers.
    pub(super) depth: usize,
    /// Heads in each attention.
    pub(super) heads: usize,
    /// Width of a head's queries, keys and values.
    pub(super) dim_head: usize,
    /// Width of the feed-forward layer.
    pub(super) mlp: usize,
    /// Which of the two ViTs it belongs to.
    pub(super) kind: Kind,
}

/// What the two ViTs' layers differ in.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// A learned temperature, no token attends to itself, dropout.
    Local { attention: Attention, dropout: f64 },
    /// Scores divided by the root of `dim_head`, no bias after attention.
    Plain,
}

impl TransformerConfig {
    pub(super) fn check(&self) -> Result<(), NnError> {
        at_least_one("model.dim", self.dim)?;
        at_least_one("model.depth", self.depth)?;
        at_least_one("model.heads", self.heads)?;
        at_least_one("model.dim_head", self.dim_head)?;
        at_least_one("model.mlp", self.mlp)?;
        check_dropout("model.dropout", self.dropout())
    }

    /// Share of values dropped in training.
    fn dropout(&self) -> f64 {
        match self.kind {
            Kind::Local { dropout, .. } => dropout,
            Kind::Plain => 0.0,
        }
    }
}

/// The layers of a ViT.
pub(super) struct Transformer(Vec<Layer>);

struct Layer {
    config: TransformerConfig,
    /// The logarithm of the scores' factor, where it is learned.
    temperature: Option<Param<0>>,
    attention_norm: LayerNorm,
    /// Of queries, keys and values [3 heads dim_head, dim].
    to_qkv: Param<2>,
    to_out: Linear,
    norm: LayerNorm,
    linear1: Linear,
    linear2: Linear,
}

impl Transformer {
    /// Layers called `transformer.layers.0` and so on.
    pub(super) fn new(config: TransformerConfig, params: &mut Scope) -> Self {
        let mut params = params.at("transformer.layers");
        Self((0..config.depth).map(|layer| Layer::new(config, params.at(layer))).collect())
    }

    /// Tokens [batch, length, dim] -> [batch, length, dim]
    pub(super) fn forward(&self, p: &Parameters, mut x: Tensor<3>, pass: &Pass) -> Tensor<3> {
        for layer in &self.0 {
            x = layer.attend(p, x.clone(), pass) + x;
            x = layer.feed_forward(p, x.clone(), pass) + x;
        }
        x
    }
}

impl Layer {
    fn new(config: TransformerConfig, mut params: Scope) -> Self {
        let TransformerConfig { dim, heads, dim_head, mlp, kind, .. } = config;
        let inner = heads * dim_head;
        let local = matches!(kind, Kind::Local { .. });
        let mut attention = params.at(0);
        let start = Init::Constant(-0.5 * (dim_head as f64).ln());
        let temperature = local.then(|| attention.add("temperature", [], start));
        let attention_norm = LayerNorm::new(attention.at("norm"), dim);
        let to_qkv = attention.add("to_qkv.weight", [3 * inner, dim], Init::linear(dim));
        let to_out = match local {
            true => Linear::new(attention.at("to_out.0"), inner, dim),
            false => Linear::without_bias(attention.at("to_out"), inner, dim),
        };
        let mut feed_forward = params.at("1.net");
        // Dropout takes a place in the feed-forward `nn.Sequential` before the second linear layer.
        let second = if local { 4 } else { 3 };
        Self {
            config,
            temperature,
            attention_norm,
            to_qkv,
            to_out,
            norm: LayerNorm::new(feed_forward.at(0), dim),
            linear1: Linear::new(feed_forward.at(1), dim, mlp),
            linear2: Linear::new(feed_forward.at(second), mlp, dim),
        }
    }

    fn attend(&self, p: &Parameters, x: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let TransformerConfig { heads, dim_head, kind, .. } = self.config;
        let x = self.attention_norm.forward(p, x);
        let weight = p.get(self.to_qkv);
        let dropout = self.config.dropout();
        let (attention, mask) = match kind {
            Kind::Local { attention, .. } => (attention, Mask::NotSelf),
            Kind::Plain => (Attention::Softmax, Mask::None),
        };
        let spec = AttentionSpec { heads, mask, attention, dropout };
        let y = match self.temperature {
            Some(temperature) => {
                let factor = p.scalar(temperature).exp().unsqueeze::<2>();
                self_attend(x, weight, |queries| queries * factor.clone(), spec, pass)
            }
            None => {
                let factor = (dim_head as f64).sqrt().recip();
                self_attend(x, weight, |queries| queries.mul_scalar(factor), spec, pass)
            }
        };
        pass.dropout(self.to_out.forward(p, y), dropout)
    }

    fn feed_forward(&self, p: &Parameters, x: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let dropout = self.config.dropout();
        let x = self.norm.forward(p, x);
        let x = gelu(self.linear1.forward(p, x));
        let y = self.linear2.forward(p, pass.dropout(x, dropout));
        pass.dropout(y, dropout)
    }
}

/// Images [batch, channels, side, side] cut into patches, row by row: [batch, patches, patch * patch * channels]
pub(super) fn patches(x: Tensor<4>, patch: usize) -> Tensor<3> {
    let [batch, channels, side, _] = x.dims();
    let across = side / patch;
    let x: Tensor<6> = x.reshape([batch, channels, across, patch, across, patch]);
    x.permute([0, 2, 4, 3, 5, 1]).reshape([batch, across * across, patch * patch * channels])
}
