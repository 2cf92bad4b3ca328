//! RoBERTa (Liu et al. 2019): a bidirectional post-norm transformer, read at its first token.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::TextBatch;
use super::layers::{dense, look_up, table, touch};
use crate::attention::{Attention, AttentionSpec, Mask, attend};
use crate::classifier::Pass;
use crate::layers::{LAYER_NORM_EPS, LayerNorm, Linear, Nonlinearity, multiply};
use crate::params::{Param, Scope};
use crate::{NnError, Parameters};

/// Rows of the position embedding before that of the first token: RoBERTa counts positions from its padding token's number, 1.
const FIRST_POSITION: usize = 2;

/// RoBERTa's shape. Its parameters have the names of `RobertaForSequenceClassification` in Python's `transformers`; The paper does not give the feed-forward width: 4 times the width, as in `roberta-base`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RobertaConfig {
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
    /// Share of values dropped in training: of embeddings, attention weights, both parts of a layer, and in the head.
    pub dropout: f64,
    /// How scores become weights.
    pub attention: Attention,
    /// Between the linear layers of a layer.
    pub activation: Nonlinearity,
    /// LayerNorm's epsilon: `roberta-base`'s, 1e-5.
    pub norm_eps: f64,
}

impl Default for RobertaConfig {
    /// The paper's.
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
            attention: Attention::Softmax,
            activation: Nonlinearity::Gelu,
            norm_eps: LAYER_NORM_EPS,
        }
    }
}

/// RoBERTa's layers.
pub struct Roberta {
    dropout: f64,
    word: Param<2>,
    token_type: Param<2>,
    norm: LayerNorm,
    position: Param<2>,
    layers: Vec<Layer>,
    dense: Linear,
    out: Linear,
}

impl Roberta {
    pub(super) fn new(config: &RobertaConfig, mut params: Scope) -> Self {
        let RobertaConfig { vocabulary, length, d, layers, classes, dropout, .. } = *config;
        let mut embeddings = params.at("roberta.embeddings");
        let word = table(embeddings.at("word_embeddings"), vocabulary, d);
        let token_type = table(embeddings.at("token_type_embeddings"), 1, d);
        let norm = LayerNorm::with_eps(embeddings.at("LayerNorm"), d, config.norm_eps);
        let position = table(embeddings.at("position_embeddings"), length + FIRST_POSITION, d);
        let layer = |layer: usize| Layer::new(config, params.at(format_args!("roberta.encoder.layer.{layer}")));
        let layers = (0..layers).map(layer).collect();
        let (dense, out) =
            (dense(params.at("classifier.dense"), d, d), dense(params.at("classifier.out_proj"), d, classes));
        Self { dropout, word, token_type, norm, position, layers, dense, out }
    }

    /// [sequences, classes]. The last layer is computed at the first token only: nothing else is read.
    pub(super) fn forward(&self, p: &Parameters, batch: TextBatch, pass: &Pass) -> Result<Tensor<2>, NnError> {
        let (sequences, length, padding) = batch.padded()?;
        let mut x = self.embed(p, &batch, [sequences, length], pass);
        for (index, layer) in self.layers.iter().enumerate() {
            let read = index + 1 == self.layers.len();
            x = layer.forward(p, x, padding.clone(), read, pass);
        }
        let d = x.dims()[2];
        let x: Tensor<2> = x.reshape([sequences, d]);
        let x = self.dense.forward(p, pass.dropout(x, self.dropout)).tanh();
        Ok(self.out.forward(p, pass.dropout(x, self.dropout)))
    }

    /// [sequences, length, d]
    fn embed(&self, p: &Parameters, batch: &TextBatch, [sequences, length]: [usize; 2], pass: &Pass) -> Tensor<3> {
        let positions = p.get(self.position).narrow(0, FIRST_POSITION, length);
        let shared = positions + p.get(self.token_type);
        let words = look_up(p.get(self.word), batch);
        let d = words.dims()[2];
        let x = words.reshape([sequences, length, d]) + shared.unsqueeze();
        pass.dropout(touch(self.norm.forward(p, x), batch), self.dropout)
    }
}

struct Layer {
    spec: AttentionSpec,
    activation: Nonlinearity,
    query: Linear,
    key: Linear,
    value: Linear,
    attention_out: Linear,
    attention_norm: LayerNorm,
    intermediate: Linear,
    output: Linear,
    norm: LayerNorm,
}

impl Layer {
    fn new(config: &RobertaConfig, mut params: Scope) -> Self {
        let RobertaConfig { d, heads, ff, dropout, attention, activation, norm_eps, .. } = *config;
        Self {
            activation,
            spec: AttentionSpec { heads, mask: Mask::None, attention, dropout },
            query: dense(params.at("attention.self.query"), d, d),
            key: dense(params.at("attention.self.key"), d, d),
            value: dense(params.at("attention.self.value"), d, d),
            attention_out: dense(params.at("attention.output.dense"), d, d),
            attention_norm: LayerNorm::with_eps(params.at("attention.output.LayerNorm"), d, norm_eps),
            intermediate: dense(params.at("intermediate.dense"), d, ff),
            output: dense(params.at("output.dense"), ff, d),
            norm: LayerNorm::with_eps(params.at("output.LayerNorm"), d, norm_eps),
        }
    }

    /// x [sequences, length, d] -> the same, or with `read` [sequences, 1, d].
    fn forward(&self, p: &Parameters, x: Tensor<3>, padding: Option<Tensor<2>>, read: bool, pass: &Pass) -> Tensor<3> {
        let dropout = self.spec.dropout;
        let ((key, key_bias), (value, value_bias)) = (self.key.tensors(p), self.value.tensors(p));
        let weight = Tensor::cat(vec![key, value], 0);
        let bias = key_bias.zip(value_bias).map(|(key, value)| Tensor::cat(vec![key, value], 0));
        let keys_values = multiply(x.clone(), weight, bias);
        let x = if read { x.narrow(1, 0, 1) } else { x };
        // The scores' factor goes into the parameters of the queries, the smallest place it can go.
        let (query, bias) = self.query.tensors(p);
        let scale = (self.spec.heads as f64 / query.dims()[0] as f64).sqrt();
        let queries = multiply(x.clone(), query.mul_scalar(scale), bias.map(|bias| bias.mul_scalar(scale)));
        let mixed = attend(queries, keys_values, padding, self.spec, pass);
        let mixed = pass.dropout(self.attention_out.forward(p, mixed), dropout);
        let x = self.attention_norm.forward(p, mixed + x);
        let wide = self.activation.apply(self.intermediate.forward(p, x.clone()));
        let narrow = pass.dropout(self.output.forward(p, wide), dropout);
        self.norm.forward(p, narrow + x)
    }
}
