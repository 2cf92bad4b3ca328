//! RoBERTa (Liu et al. 2019): a bidirectional post-norm transformer, read at its first token.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::TextBatch;
use super::layers::{Sizes, check_heads, dense, look_up, table, touch};
use crate::NnError;
use crate::attention::{Attention, AttentionSpec, Mask, attend};
use crate::classifier::{Parameters, Pass};
use crate::encoder::norm_params;
use crate::init::ParamSpec;
use crate::vision::layers::{gelu, layer_norm, linear, multiply};

/// Rows of the position embedding before that of the first token: RoBERTa counts positions from its padding token's number, 1.
const FIRST_POSITION: usize = 2;

/// RoBERTa's shape. Its parameters have the names of `RobertaForSequenceClassification` in Python's `transformers`; LayerNorms have
/// `roberta-base`'s epsilon, 1e-5. The paper does not give the feed-forward width: 4 times the width, as in `roberta-base`.
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
        }
    }
}

impl RobertaConfig {
    pub(super) fn check(&self) -> Result<(), NnError> {
        let Self { vocabulary, length, d, layers, heads, ff, classes, dropout, .. } = *self;
        Sizes { vocabulary, length, d, layers, classes, dropout }.check()?;
        check_heads(d, heads, ff)
    }

    pub(super) fn params(&self) -> Vec<ParamSpec> {
        let Self { vocabulary, length, d, ff, classes, .. } = *self;
        let mut params = vec![
            table("roberta.embeddings.word_embeddings", vocabulary, d),
            table("roberta.embeddings.token_type_embeddings", 1, d),
        ];
        params.extend(norm_params("roberta.embeddings.LayerNorm", d));
        params.push(table("roberta.embeddings.position_embeddings", length + FIRST_POSITION, d));
        for layer in (0..self.layers).map(layer_name) {
            for part in ["query", "key", "value"] {
                params.extend(dense(&format!("{layer}.attention.self.{part}"), [d, d], d));
            }
            params.extend(dense(&format!("{layer}.attention.output.dense"), [d, d], d));
            params.extend(norm_params(&format!("{layer}.attention.output.LayerNorm"), d));
            params.extend(dense(&format!("{layer}.intermediate.dense"), [ff, d], ff));
            params.extend(dense(&format!("{layer}.output.dense"), [d, ff], d));
            params.extend(norm_params(&format!("{layer}.output.LayerNorm"), d));
        }
        params.extend(dense("classifier.dense", [d, d], d));
        params.extend(dense("classifier.out_proj", [classes, d], classes));
        params
    }

    /// [sequences, classes]. The last layer is computed at the first token only: nothing else is read.
    pub(super) fn forward(
        &self,
        parameters: &Parameters,
        batch: TextBatch,
        pass: &mut Pass,
    ) -> Result<Tensor<2>, NnError> {
        let (sequences, _, padding) = batch.padded()?;
        let mut x = self.embed(parameters, &batch, pass)?;
        for layer in 0..self.layers {
            let read = layer + 1 == self.layers;
            x = self.layer(parameters, &layer_name(layer), x, padding.clone(), read, pass)?;
        }
        let x: Tensor<2> = x.reshape([sequences, self.d]);
        let x = linear(parameters, "classifier.dense", pass.dropout(x, self.dropout))?.tanh();
        linear(parameters, "classifier.out_proj", pass.dropout(x, self.dropout))
    }

    /// [sequences, length, d]
    fn embed(&self, parameters: &Parameters, batch: &TextBatch, pass: &Pass) -> Result<Tensor<3>, NnError> {
        let (sequences, length, _) = batch.padded()?;
        let get = |name: &str| parameters.get::<2>(&format!("roberta.embeddings.{name}.weight"));
        let positions = get("position_embeddings")?.narrow(0, FIRST_POSITION, length);
        let shared = positions + get("token_type_embeddings")?;
        let x = look_up(get("word_embeddings")?, batch).reshape([sequences, length, self.d]) + shared.unsqueeze();
        let x = touch(layer_norm(parameters, "roberta.embeddings.LayerNorm", x)?, batch);
        Ok(pass.dropout(x, self.dropout))
    }

    /// x [sequences, length, d] -> the same, or with `read` [sequences, 1, d].
    fn layer(
        &self,
        parameters: &Parameters,
        name: &str,
        x: Tensor<3>,
        padding: Option<Tensor<2>>,
        read: bool,
        pass: &Pass,
    ) -> Result<Tensor<3>, NnError> {
        let get = |part: &str| -> Result<(Tensor<2>, Tensor<1>), NnError> {
            let part = format!("{name}.attention.self.{part}");
            Ok((parameters.get(&format!("{part}.weight"))?, parameters.get(&format!("{part}.bias"))?))
        };
        let ((key, key_bias), (value, value_bias)) = (get("key")?, get("value")?);
        let keys_values =
            multiply(x.clone(), Tensor::cat(vec![key, value], 0), Some(Tensor::cat(vec![key_bias, value_bias], 0)));
        let x = if read { x.narrow(1, 0, 1) } else { x };
        // The scores' factor goes into the parameters of the queries, the smallest place it can go.
        let (query, bias) = get("query")?;
        let scale = (self.heads as f64 / self.d as f64).sqrt();
        let queries = multiply(x.clone(), query.mul_scalar(scale), Some(bias.mul_scalar(scale)));
        let Self { heads, attention, dropout, .. } = *self;
        let spec = AttentionSpec { heads, mask: Mask::None, attention, dropout };
        let mixed = attend(queries, keys_values, padding, spec, pass);
        let mixed = pass.dropout(linear(parameters, &format!("{name}.attention.output.dense"), mixed)?, self.dropout);
        let x = layer_norm(parameters, &format!("{name}.attention.output.LayerNorm"), mixed + x)?;
        let wide = gelu(linear(parameters, &format!("{name}.intermediate.dense"), x.clone())?);
        let narrow = pass.dropout(linear(parameters, &format!("{name}.output.dense"), wide)?, self.dropout);
        layer_norm(parameters, &format!("{name}.output.LayerNorm"), narrow + x)
    }
}

fn layer_name(layer: usize) -> String {
    format!("roberta.encoder.layer.{layer}")
}
