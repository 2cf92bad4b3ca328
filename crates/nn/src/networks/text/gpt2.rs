//! GPT-2 (Radford et al. 2019): a causal pre-norm transformer, read at its last token.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::TextBatch;
use super::layers::{SPREAD, look_up, table, touch};
use crate::attention::{Attention, AttentionSpec, Mask, attend};
use crate::classifier::Pass;
use crate::layers::{LAYER_NORM_EPS, LayerNorm, Nonlinearity, multiply};
use crate::params::{Init, Param, Scope};
use crate::{NnError, Parameters};

/// GPT-2's shape. Its parameters have the names of `GPT2ForSequenceClassification` in Python's `transformers`, as a rule with
/// one LayerNorm more, `transformer.ln_e` on the embeddings: the measure of sensitivity puts its noise behind one in every model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpt2Config {
    /// Tokens there are; ids are below.
    pub vocabulary: usize,
    /// Tokens of the longest sequence.
    pub length: usize,
    /// Width of the residual stream.
    pub d: usize,
    /// Layers.
    pub layers: usize,
    /// Attention heads; must divide `d`.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub ff: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Share of values dropped in training: of embeddings, attention weights and both parts of a layer.
    pub dropout: f64,
    /// Whether there is `transformer.ln_e`; those of other people have none.
    pub embedding_norm: bool,
    /// Between the linear layers of a layer.
    pub activation: Nonlinearity,
    /// LayerNorm's epsilon.
    pub norm_eps: f64,
}

impl Default for Gpt2Config {
    /// The paper's, with the tokens of RoBERTa.
    fn default() -> Self {
        Self {
            vocabulary: 50_265,
            length: 128,
            d: 256,
            layers: 4,
            heads: 8,
            ff: 1024,
            classes: 2,
            dropout: 0.1,
            embedding_norm: true,
            activation: Nonlinearity::GeluByTanh,
            norm_eps: LAYER_NORM_EPS,
        }
    }
}

/// GPT-2's layers.
pub struct Gpt2 {
    dropout: f64,
    token: Param<2>,
    position: Param<2>,
    layers: Vec<Layer>,
    norm: LayerNorm,
    embedding_norm: Option<LayerNorm>,
    score: Param<2>,
}

impl Gpt2 {
    pub(super) fn new(config: &Gpt2Config, mut params: Scope) -> Self {
        let Gpt2Config { vocabulary, length, d, layers, classes, dropout, norm_eps, .. } = *config;
        Self {
            dropout,
            token: table(params.at("transformer.wte"), vocabulary, d),
            position: table(params.at("transformer.wpe"), length, d),
            layers: (0..layers)
                .map(|layer| Layer::new(config, params.at(format_args!("transformer.h.{layer}"))))
                .collect(),
            norm: LayerNorm::with_eps(params.at("transformer.ln_f"), d, norm_eps),
            embedding_norm: config
                .embedding_norm
                .then(|| LayerNorm::with_eps(params.at("transformer.ln_e"), d, norm_eps)),
            score: table(params.at("score"), classes, d),
        }
    }

    /// [sequences, classes]
    pub(super) fn forward(&self, p: &Parameters, batch: TextBatch, pass: &Pass) -> Result<Tensor<2>, NnError> {
        self.run(p, batch, None, &mut None, pass)
    }

    /// [`Gpt2::forward`] of sequences of which `before` knows the beginning: keys beside values [sequences, tokens, 2d] of each layer. What the
    /// layers compute of them for this batch's own tokens is added to `recorder`. The last layer is computed at the last tokens only:
    /// nothing else is read.
    pub(super) fn run(
        &self,
        p: &Parameters,
        batch: TextBatch,
        before: Option<&[Tensor<3>]>,
        recorder: &mut Option<Vec<Tensor<3>>>,
        pass: &Pass,
    ) -> Result<Tensor<2>, NnError> {
        let (sequences, length, padding) = batch.padded()?;
        let known = before.map_or(0, |before| before[0].dims()[1]);
        let embeddings = look_up(p.get(self.token), &batch);
        let d = embeddings.dims()[2];
        let positions = p.get(self.position).narrow(0, known, length);
        let x = embeddings.reshape([sequences, length, d]) + positions.unsqueeze();
        let x = match &self.embedding_norm {
            Some(norm) => norm.forward(p, x),
            None => x,
        };
        let x = touch(x, &batch);
        let mut x = pass.dropout(x, self.dropout);
        for (index, layer) in self.layers.iter().enumerate() {
            let normed = layer.ln_1.forward(p, x.clone());
            let mut keys_values = layer.keys_values(p, normed.clone());
            if let Some(recorder) = recorder {
                recorder.push(keys_values.clone());
            }
            if let Some(before) = before {
                keys_values = Tensor::cat(vec![before[index].clone(), keys_values], 1);
            }
            x = if index + 1 < self.layers.len() {
                layer.finish(p, x, layer.queries(p, normed), keys_values, None, Mask::Causal, pass)
            } else {
                let rows: Tensor<2> = x.reshape([sequences * length, d]);
                let x: Tensor<3> = rows.select(0, batch.ends.clone()).unsqueeze_dim(1);
                let queries = layer.queries(p, layer.ln_1.forward(p, x.clone()));
                // So far a token saw no later one, so padding at the end played no part. Now one token sees all, and padding must be masked.
                let padding = padding.clone().map(|own| match known {
                    0 => own,
                    _ => Tensor::cat(vec![own.clone().narrow(1, 0, 1).zeros_like().expand([sequences, known]), own], 1),
                });
                layer.finish(p, x, queries, keys_values, padding, Mask::None, pass)
            };
        }
        let x: Tensor<2> = self.norm.forward(p, x).reshape([sequences, d]);
        Ok(x.matmul(p.get(self.score).transpose()))
    }
}

struct Layer {
    heads: usize,
    dropout: f64,
    activation: Nonlinearity,
    ln_1: LayerNorm,
    /// Of queries, keys and values, beside each other.
    c_attn: Conv1d,
    attn_proj: Conv1d,
    ln_2: LayerNorm,
    c_fc: Conv1d,
    mlp_proj: Conv1d,
}

impl Layer {
    fn new(config: &Gpt2Config, mut params: Scope) -> Self {
        let Gpt2Config { d, layers, heads, ff, dropout, activation, norm_eps, .. } = *config;
        // What writes into the residual stream starts smaller the more layers there are.
        let writing = SPREAD / (2.0 * layers as f64).sqrt();
        Self {
            heads,
            dropout,
            activation,
            ln_1: LayerNorm::with_eps(params.at("ln_1"), d, norm_eps),
            c_attn: Conv1d::new(params.at("attn.c_attn"), d, 3 * d, SPREAD),
            attn_proj: Conv1d::new(params.at("attn.c_proj"), d, d, writing),
            ln_2: LayerNorm::with_eps(params.at("ln_2"), d, norm_eps),
            c_fc: Conv1d::new(params.at("mlp.c_fc"), d, ff, SPREAD),
            mlp_proj: Conv1d::new(params.at("mlp.c_proj"), ff, d, writing),
        }
    }

    /// The scaled queries [.., d] of normalised x [.., d].
    fn queries(&self, p: &Parameters, x: Tensor<3>) -> Tensor<3> {
        let d = x.dims()[2];
        let (weight, bias) = self.c_attn.tensors(p);
        // The scores' factor goes into the parameters, the smallest place it can go.
        let scale = (self.heads as f64 / d as f64).sqrt();
        let (weight, bias) = (weight.narrow(1, 0, d).mul_scalar(scale), bias.narrow(0, 0, d).mul_scalar(scale));
        multiply(x, weight.transpose(), Some(bias))
    }

    /// The keys beside the values [.., 2d] of normalised x [.., d].
    fn keys_values(&self, p: &Parameters, x: Tensor<3>) -> Tensor<3> {
        let d = x.dims()[2];
        let (weight, bias) = self.c_attn.tensors(p);
        multiply(x, weight.narrow(1, d, 2 * d).transpose(), Some(bias.narrow(0, d, 2 * d)))
    }

    /// The layer's output [sequences, l, d] at the tokens x [sequences, l, d] is of.
    #[allow(clippy::too_many_arguments)]
    fn finish(
        &self,
        p: &Parameters,
        x: Tensor<3>,
        queries: Tensor<3>,
        keys_values: Tensor<3>,
        padding: Option<Tensor<2>>,
        mask: Mask,
        pass: &Pass,
    ) -> Tensor<3> {
        let Self { heads, dropout, .. } = *self;
        let spec = AttentionSpec { heads, mask, attention: Attention::Softmax, dropout };
        let mixed = attend(queries, keys_values, padding, spec, pass);
        let x = x + pass.dropout(self.attn_proj.forward(p, mixed), dropout);
        let normed = self.ln_2.forward(p, x.clone());
        let wide = self.activation.apply(self.c_fc.forward(p, normed));
        x + pass.dropout(self.mlp_proj.forward(p, wide), dropout)
    }
}

/// A linear layer as GPT-2 has it, with its weight as [inputs, outputs]; `transformers` calls it `Conv1D`.
struct Conv1d {
    weight: Param<2>,
    bias: Param<1>,
}

impl Conv1d {
    /// The weight starts from N(0, spread^2), the bias at 0.
    fn new(mut params: Scope, inputs: usize, outputs: usize, spread: f64) -> Self {
        Self {
            weight: params.add("weight", [inputs, outputs], Init::Gaussian(spread)),
            bias: params.add("bias", [outputs], Init::Zeros),
        }
    }

    fn tensors(&self, p: &Parameters) -> (Tensor<2>, Tensor<1>) {
        (p.get(self.weight), p.get(self.bias))
    }

    fn forward(&self, p: &Parameters, x: Tensor<3>) -> Tensor<3> {
        let (weight, bias) = self.tensors(p);
        multiply(x, weight.transpose(), Some(bias))
    }
}
