//! The layers of PyTorch's `nn.Transformer`, post-norm and without dropout: what the encoder and the encoder-decoder are made of.

use burn::tensor::{Tensor, activation};

use super::embedding::Embedded;
use crate::attention::{Mask, attend_apart};
use crate::layers::{LayerNorm, Linear, Recorder, multiply};
use crate::params::{Init, Param, ParamSpec, Scope};
use crate::{NnError, Parameters};

/// `nn.MultiheadAttention`.
pub(super) struct MultiheadAttention {
    heads: usize,
    /// Of queries, keys and values, each [d, d].
    weights: [Param<2>; 3],
    /// Of queries, keys and values, each [d].
    biases: [Param<1>; 3],
    out: Linear,
}

impl MultiheadAttention {
    pub(super) fn new(mut params: Scope, d: usize, heads: usize) -> Self {
        Self {
            heads,
            weights: params.add_parts("in_proj_weight", [3 * d, d], Init::xavier(3 * d, d)),
            biases: params.add_parts("in_proj_bias", [3 * d], Init::Zeros),
            out: Linear::with_init(params.at("out_proj"), [d, d], Init::linear(d), Init::Zeros),
        }
    }

    /// The scaled queries of x [.., d].
    pub(super) fn queries<const D: usize>(&self, p: &Parameters, x: Tensor<D>) -> Tensor<D> {
        let (weight, bias) = (p.get(self.weights[0]), p.get(self.biases[0]));
        // The scores' factor 1/sqrt(d/heads) goes into the query's parameters, the smallest place it can go.
        let scale = (self.heads as f64 / weight.dims()[1] as f64).sqrt();
        multiply(x, weight.mul_scalar(scale), Some(bias.mul_scalar(scale)))
    }

    /// The keys and values of x [.., d].
    pub(super) fn keys_values<const D: usize>(&self, p: &Parameters, x: Tensor<D>) -> (Tensor<D>, Tensor<D>) {
        let (key, key_bias) = (p.get(self.weights[1]), p.get(self.biases[1]));
        let (value, value_bias) = (p.get(self.weights[2]), p.get(self.biases[2]));
        // A key bias adds the same number to all scores of a query, which the softmax takes out again: its gradient is 0. Computed in
        // f32 it would be rounding noise, which AdamW scales up to full steps: 2e-4 of a loss after 80 of them at width 128.
        let keys = multiply(x.clone(), key, Some(key_bias.detach()));
        (keys, multiply(x, value, Some(value_bias)))
    }

    /// Attend from queries [batch, l, d] to keys and values [batch, m, d]: [batch, l, d].
    pub(super) fn attend(
        &self,
        p: &Parameters,
        queries: Tensor<3>,
        (keys, values): (Tensor<3>, Tensor<3>),
        mask: Mask,
    ) -> Tensor<3> {
        self.out.forward(p, attend_apart(queries, keys, values, self.heads, mask))
    }
}

/// The two linear layers of a transformer layer, with a ReLU between them.
pub(super) struct FeedForward {
    linear1: Linear,
    linear2: Linear,
}

impl FeedForward {
    /// Declared in the layer's own scope.
    pub(super) fn new(params: &mut Scope, d: usize, ff: usize) -> Self {
        Self { linear1: Linear::new(params.at("linear1"), d, ff), linear2: Linear::new(params.at("linear2"), ff, d) }
    }

    /// [.., d] -> [.., d]
    pub(super) fn forward<const D: usize>(&self, p: &Parameters, x: Tensor<D>) -> Tensor<D> {
        self.linear2.forward(p, activation::relu(self.linear1.forward(p, x)))
    }
}

/// `nn.TransformerEncoderLayer`, its parameters in the order of its `state_dict()`.
pub(super) struct EncoderLayer {
    attention: MultiheadAttention,
    feed_forward: FeedForward,
    norm1: LayerNorm,
    norm2: LayerNorm,
}

impl EncoderLayer {
    pub(super) fn new(mut params: Scope, d: usize, heads: usize, ff: usize) -> Self {
        Self {
            attention: MultiheadAttention::new(params.at("self_attn"), d, heads),
            feed_forward: FeedForward::new(&mut params, d, ff),
            norm1: LayerNorm::new(params.at("norm1"), d),
            norm2: LayerNorm::new(params.at("norm2"), d),
        }
    }

    /// The layer on embedded tokens [batch, n, d], its projections taken once for each row of the table.
    fn forward_embedded(
        &self,
        p: &Parameters,
        x: &Embedded,
        only_last: bool,
        recorder: &mut Recorder,
    ) -> Result<Tensor<3>, NnError> {
        let queries = x.look_up(self.attention.queries(p, x.table.clone()));
        let (keys, values) = self.attention.keys_values(p, x.table.clone());
        let keys_values = (x.look_up(keys), x.look_up(values));
        let inputs = x.look_up(x.table.clone());
        match only_last {
            true => self.finish(p, last(inputs), last(queries), keys_values, recorder),
            false => self.finish(p, inputs, queries, keys_values, recorder),
        }
    }

    /// The layer on x [batch, n, d]: all positions [batch, n, d], or only the last [batch, 1, d].
    fn forward(
        &self,
        p: &Parameters,
        x: Tensor<3>,
        only_last: bool,
        recorder: &mut Recorder,
    ) -> Result<Tensor<3>, NnError> {
        let keys_values = self.attention.keys_values(p, x.clone());
        let x = if only_last { last(x) } else { x };
        let queries = self.attention.queries(p, x.clone());
        self.finish(p, x, queries, keys_values, recorder)
    }

    fn finish(
        &self,
        p: &Parameters,
        x: Tensor<3>,
        queries: Tensor<3>,
        keys_values: (Tensor<3>, Tensor<3>),
        recorder: &mut Recorder,
    ) -> Result<Tensor<3>, NnError> {
        let x = self.norm1.recorded(p, x + self.attention.attend(p, queries, keys_values, Mask::None), recorder)?;
        self.norm2.recorded(p, x.clone() + self.feed_forward.forward(p, x), recorder)
    }
}

/// The last position of x [batch, n, d]: [batch, 1, d].
fn last(x: Tensor<3>) -> Tensor<3> {
    let n = x.dims()[1];
    x.narrow(1, n - 1, 1)
}

/// Encoder layers, one after the other, on embedded tokens: all positions [batch, n, d], or only the last [batch, 1, d], for which the last
/// layer computes no other.
pub(super) fn encode(
    layers: &[EncoderLayer],
    p: &Parameters,
    embedded: &Embedded,
    only_last: bool,
    recorder: &mut Recorder,
) -> Result<Tensor<3>, NnError> {
    let is_last = |index: usize| only_last && index + 1 == layers.len();
    let mut x = layers[0].forward_embedded(p, embedded, is_last(0), recorder)?;
    for (index, layer) in layers.iter().enumerate().skip(1) {
        x = layer.forward(p, x, is_last(index), recorder)?;
    }
    Ok(x)
}

/// Layers called `name.0`, `name.1` and so on. `restart` may change how a parameter starts, given the name of the same one in the first layer.
pub(super) fn stack<L>(
    params: &mut Scope,
    name: &str,
    count: usize,
    layer: impl Fn(Scope) -> L,
    restart: impl Fn(&mut ParamSpec, &str),
) -> Vec<L> {
    let first = params.count();
    let build = |index: usize| {
        let before = params.count() - first;
        let built = layer(params.at(format_args!("{name}.{index}")));
        let specs = params.since(first);
        for at in before..specs.len() {
            let first = specs[at - before].name.clone();
            restart(&mut specs[at], &first);
        }
        built
    };
    (0..count).map(build).collect()
}
