//! GPT-2 (Radford et al. 2019): a causal pre-norm transformer, read at its last token.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use super::TextBatch;
use super::layers::{SPREAD, Sizes, check_heads, dense, look_up, table, touch};
use crate::NnError;
use crate::attention::{Attention, AttentionSpec, Mask, attend};
use crate::classifier::{Parameters, Pass};
use crate::encoder::norm_params;
use crate::init::{Init, ParamSpec};
use crate::vision::layers::{layer_norm, multiply};

/// GPT-2's shape. Its parameters have the names of `GPT2ForSequenceClassification` in Python's `transformers`, with one LayerNorm
/// more, `transformer.ln_e` on the embeddings: the measure of sensitivity puts its noise behind one in every model.
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
}

impl Default for Gpt2Config {
    /// The paper's, with the tokens of RoBERTa.
    fn default() -> Self {
        Self { vocabulary: 50_265, length: 128, d: 256, layers: 4, heads: 8, ff: 1024, classes: 2, dropout: 0.1 }
    }
}

impl Gpt2Config {
    pub(super) fn check(&self) -> Result<(), NnError> {
        let Self { vocabulary, length, d, layers, heads, ff, classes, dropout } = *self;
        Sizes { vocabulary, length, d, layers, classes, dropout }.check()?;
        check_heads(d, heads, ff)
    }

    pub(super) fn params(&self) -> Vec<ParamSpec> {
        let Self { vocabulary, length, d, ff, classes, .. } = *self;
        let mut params = vec![table("transformer.wte", vocabulary, d), table("transformer.wpe", length, d)];
        // What writes into the residual stream starts smaller the more layers there are.
        let writing = Init::Gaussian(SPREAD / (2.0 * self.layers as f64).sqrt());
        let project = |name: &str, inputs: usize| {
            let mut params = dense(name, [inputs, d], d);
            params[0].init = writing;
            params
        };
        for layer in (0..self.layers).map(|layer| format!("transformer.h.{layer}")) {
            params.extend(norm_params(&format!("{layer}.ln_1"), d));
            params.extend(dense(&format!("{layer}.attn.c_attn"), [d, 3 * d], 3 * d));
            params.extend(project(&format!("{layer}.attn.c_proj"), d));
            params.extend(norm_params(&format!("{layer}.ln_2"), d));
            params.extend(dense(&format!("{layer}.mlp.c_fc"), [d, ff], ff));
            params.extend(project(&format!("{layer}.mlp.c_proj"), ff));
        }
        params.extend(norm_params("transformer.ln_f", d));
        params.extend(norm_params("transformer.ln_e", d));
        params.push(table("score", classes, d));
        params
    }

    /// [sequences, classes]
    pub(super) fn forward(
        &self,
        parameters: &Parameters,
        batch: TextBatch,
        pass: &mut Pass,
    ) -> Result<Tensor<2>, NnError> {
        self.run(parameters, batch, None, &mut None, pass)
    }

    /// The same of sequences of which `before` knows the beginning: keys beside values [sequences, tokens, 2d] of each layer. What the
    /// layers compute of them for this batch's own tokens is added to `recorder`. The last layer is computed at the last tokens only:
    /// nothing else is read.
    pub(super) fn run(
        &self,
        parameters: &Parameters,
        batch: TextBatch,
        before: Option<&[Tensor<3>]>,
        recorder: &mut Option<Vec<Tensor<3>>>,
        pass: &Pass,
    ) -> Result<Tensor<2>, NnError> {
        let (sequences, length, padding) = batch.padded()?;
        let known = before.map_or(0, |before| before[0].dims()[1]);
        let embeddings = look_up(parameters.get("transformer.wte.weight")?, &batch);
        let positions = parameters.get::<2>("transformer.wpe.weight")?.narrow(0, known, length);
        let x = embeddings.reshape([sequences, length, self.d]) + positions.unsqueeze();
        let x = touch(layer_norm(parameters, "transformer.ln_e", x)?, &batch);
        let mut x = pass.dropout(x, self.dropout);
        for index in 0..self.layers {
            let layer = Layer { config: self, parameters, name: format!("transformer.h.{index}") };
            let normed = layer.norm(x.clone())?;
            let mut keys_values = layer.keys_values(normed.clone())?;
            if let Some(recorder) = recorder {
                recorder.push(keys_values.clone());
            }
            if let Some(before) = before {
                keys_values = Tensor::cat(vec![before[index].clone(), keys_values], 1);
            }
            x = if index + 1 < self.layers {
                layer.finish(x, layer.queries(normed)?, keys_values, None, true, pass)?
            } else {
                let rows: Tensor<2> = x.reshape([sequences * length, self.d]);
                let x: Tensor<3> = rows.select(0, batch.ends.clone()).unsqueeze_dim(1);
                let queries = layer.queries(layer.norm(x.clone())?)?;
                // So far a token saw no later one, so padding at the end played no part. Now one token sees all, and padding must be masked.
                let padding = padding.clone().map(|padding| match known {
                    0 => padding,
                    _ => Tensor::cat(
                        vec![padding.clone().narrow(1, 0, 1).zeros_like().expand([sequences, known]), padding],
                        1,
                    ),
                });
                layer.finish(x, queries, keys_values, padding, false, pass)?
            };
        }
        let x: Tensor<2> = layer_norm(parameters, "transformer.ln_f", x)?.reshape([sequences, self.d]);
        Ok(x.matmul(parameters.get::<2>("score.weight")?.transpose()))
    }
}

/// One layer and its parameters. A linear layer of GPT-2 has its weight as [inputs, outputs].
struct Layer<'a> {
    config: &'a Gpt2Config,
    parameters: &'a Parameters,
    name: String,
}

impl Layer<'_> {
    /// What attention is computed from: x [.., d] normalised.
    fn norm(&self, x: Tensor<3>) -> Result<Tensor<3>, NnError> {
        layer_norm(self.parameters, &format!("{}.ln_1", self.name), x)
    }

    /// The scaled queries [.., d] of normalised x [.., d].
    fn queries(&self, x: Tensor<3>) -> Result<Tensor<3>, NnError> {
        let d = self.config.d;
        let (weight, bias) = self.get("attn.c_attn")?;
        // The scores' factor goes into the parameters, the smallest place it can go.
        let scale = (self.config.heads as f64 / d as f64).sqrt();
        let (weight, bias) = (weight.narrow(1, 0, d).mul_scalar(scale), bias.narrow(0, 0, d).mul_scalar(scale));
        Ok(multiply(x, weight.transpose(), Some(bias)))
    }

    /// The keys beside the values [.., 2d] of normalised x [.., d].
    fn keys_values(&self, x: Tensor<3>) -> Result<Tensor<3>, NnError> {
        let d = self.config.d;
        let (weight, bias) = self.get("attn.c_attn")?;
        Ok(multiply(x, weight.narrow(1, d, 2 * d).transpose(), Some(bias.narrow(0, d, 2 * d))))
    }

    /// The layer's output [sequences, l, d] at the tokens x [sequences, l, d] is of.
    fn finish(
        &self,
        x: Tensor<3>,
        queries: Tensor<3>,
        keys_values: Tensor<3>,
        padding: Option<Tensor<2>>,
        causal: bool,
        pass: &Pass,
    ) -> Result<Tensor<3>, NnError> {
        let Gpt2Config { heads, dropout, .. } = *self.config;
        let mask = if causal { Mask::Causal } else { Mask::None };
        let spec = AttentionSpec { heads, mask, attention: Attention::Softmax, dropout };
        let mixed = attend(queries, keys_values, padding, spec, pass);
        let x = x + pass.dropout(self.linear("attn.c_proj", mixed)?, dropout);
        let normed = layer_norm(self.parameters, &format!("{}.ln_2", self.name), x.clone())?;
        let wide = gelu_by_tanh(self.linear("mlp.c_fc", normed)?);
        Ok(x + pass.dropout(self.linear("mlp.c_proj", wide)?, dropout))
    }

    fn linear(&self, part: &str, x: Tensor<3>) -> Result<Tensor<3>, NnError> {
        let (weight, bias) = self.get(part)?;
        Ok(multiply(x, weight.transpose(), Some(bias)))
    }

    fn get(&self, part: &str) -> Result<(Tensor<2>, Tensor<1>), NnError> {
        let name = format!("{}.{part}", self.name);
        Ok((self.parameters.get(&format!("{name}.weight"))?, self.parameters.get(&format!("{name}.bias"))?))
    }
}

/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
fn gelu_by_tanh(x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "torch")]
    if let Some(y) = crate::native::gelu_by_tanh(&x) {
        return y;
    }
    activation::gelu_approximate(x)
}
