//! The layers of PyTorch's `nn.Transformer` without dropout: what encoders and the encoder-decoder are made of.

use burn::tensor::Tensor;

use super::embedding::Embedded;
use super::recurrent_mixer::RecurrentMixer;
use super::rotary::rotate;
use super::variants::Variant;
use crate::attention::{Mask, attend_apart};
use crate::layers::{Linear, Norm, Recorder, multiply};
use crate::params::{Init, Param, ParamSpec, Scope};
use crate::{NnError, Nonlinearity, Parameters};

/// `nn.MultiheadAttention`.
pub(super) struct MultiheadAttention {
    heads: usize,
    /// Whether queries and keys are turned by their positions.
    rotary: bool,
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
            rotary: false,
            weights: params.add_parts("in_proj_weight", [3 * d, d], Init::xavier(3 * d, d)),
            biases: params.add_parts("in_proj_bias", [3 * d], Init::Zeros),
            out: Linear::with_init(params.at("out_proj"), [d, d], Init::linear(d), Init::Zeros),
        }
    }

    /// With queries and keys that are turned by their positions.
    fn rotary(self) -> Self {
        Self { rotary: true, ..self }
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
        // Turned by the key's position, it does not.
        let key_bias = if self.rotary { key_bias } else { key_bias.detach() };
        let keys = multiply(x.clone(), key, Some(key_bias));
        (keys, multiply(x, value, Some(value_bias)))
    }

    /// Attend from queries [batch, l, d] to keys and values [batch, m, d]: [batch, l, d]. The last query stands where the last key does.
    pub(super) fn attend(
        &self,
        p: &Parameters,
        queries: Tensor<3>,
        (keys, values): (Tensor<3>, Tensor<3>),
        mask: Mask,
    ) -> Tensor<3> {
        let (queries, keys) = match self.rotary {
            true => {
                let behind = keys.dims()[1] - queries.dims()[1];
                (rotate(queries, self.heads, behind, p.device()), rotate(keys, self.heads, 0, p.device()))
            }
            false => (queries, keys),
        };
        self.out.forward(p, attend_apart(queries, keys, values, self.heads, mask))
    }
}

/// The two linear layers of a transformer layer, with a nonlinearity between them.
pub(super) struct FeedForward {
    linear1: Linear,
    linear2: Linear,
    activation: Nonlinearity,
}

impl FeedForward {
    /// Declared in the layer's own scope.
    pub(super) fn new(params: &mut Scope, d: usize, ff: usize, activation: Nonlinearity) -> Self {
        let (linear1, linear2) = (Linear::new(params.at("linear1"), d, ff), Linear::new(params.at("linear2"), ff, d));
        Self { linear1, linear2, activation }
    }

    /// [.., d] -> [.., d]
    pub(super) fn forward<const D: usize>(&self, p: &Parameters, x: Tensor<D>) -> Tensor<D> {
        self.linear2.forward(p, self.activation.apply(self.linear1.forward(p, x)))
    }
}

/// What lets tokens see each other.
pub(super) enum Mixer {
    /// Of tokens that see all others, or those before them.
    Attention(MultiheadAttention, Mask),
    /// A state that goes from token to token.
    Recurrence(RecurrentMixer),
}

impl Mixer {
    pub(super) fn attention(params: Scope, d: usize, heads: usize, mask: Mask, rotary: bool) -> Self {
        let attention = MultiheadAttention::new(params, d, heads);
        Self::Attention(if rotary { attention.rotary() } else { attention }, mask)
    }

    /// Of embedded tokens whose table has these rows, each projected once: all positions [batch, n, d], or only the last [batch, 1, d].
    fn forward_embedded(&self, p: &Parameters, table: Tensor<2>, x: &Embedded, only_last: bool) -> Tensor<3> {
        match self {
            Self::Attention(attention, mask) => {
                let queries = x.look_up(attention.queries(p, table.clone()));
                let (keys, values) = attention.keys_values(p, table);
                let keys_values = (x.look_up(keys), x.look_up(values));
                attention.attend(p, if only_last { last(queries) } else { queries }, keys_values, *mask)
            }
            Self::Recurrence(mixer) => {
                let [gate, input] = mixer.project(p, table).map(|own| x.look_up(own));
                let states = mixer.states(gate, input);
                mixer.output(p, if only_last { last(states) } else { states })
            }
        }
    }

    /// Of x [batch, n, d], for the tokens `own` of it: all [batch, n, d], or the last [batch, 1, d].
    fn forward(&self, p: &Parameters, x: Tensor<3>, own: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Attention(attention, mask) => {
                let keys_values = attention.keys_values(p, x);
                attention.attend(p, attention.queries(p, own), keys_values, *mask)
            }
            Self::Recurrence(mixer) => {
                let only_last = own.dims()[1] < x.dims()[1];
                let [gate, input] = mixer.project(p, x);
                let states = mixer.states(gate, input);
                mixer.output(p, if only_last { last(states) } else { states })
            }
        }
    }
}

/// `nn.TransformerEncoderLayer`, its parameters in the order of its `state_dict()`; a [`Mixer`] may stand for the attention.
pub(super) struct EncoderLayer {
    mixer: Mixer,
    feed_forward: FeedForward,
    /// Of the mixer and of the feed-forward block.
    norms: Option<[Norm; 2]>,
    /// Whether norms stand before their blocks.
    norm_first: bool,
}

impl EncoderLayer {
    pub(super) fn new(
        mut params: Scope,
        [d, ff]: [usize; 2],
        variant: Variant,
        mixer: impl FnOnce(&mut Scope) -> Mixer,
    ) -> Self {
        Self {
            mixer: mixer(&mut params),
            feed_forward: FeedForward::new(&mut params, d, ff, variant.activation),
            norms: Norm::pair(&mut params, d, variant.norm),
            norm_first: variant.norm.comes_first(),
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
        let table = match self.first_norm() {
            Some(norm) => {
                if let Some(records) = recorder {
                    records.push(norm.factors(x.look_up(x.table.clone()))?);
                }
                norm.forward(p, x.table.clone().unsqueeze_dim::<3>(0)).squeeze_dim(0)
            }
            None => x.table.clone(),
        };
        let mixed = self.mixer.forward_embedded(p, table, x, only_last);
        let inputs = x.look_up(x.table.clone());
        self.finish(p, if only_last { last(inputs) } else { inputs }, mixed, recorder)
    }

    /// The layer on x [batch, n, d]: all positions [batch, n, d], or only the last [batch, 1, d].
    fn forward(
        &self,
        p: &Parameters,
        x: Tensor<3>,
        only_last: bool,
        recorder: &mut Recorder,
    ) -> Result<Tensor<3>, NnError> {
        let own = |x: &Tensor<3>| if only_last { last(x.clone()) } else { x.clone() };
        let (x, mixed) = match self.first_norm() {
            Some(norm) => {
                let inner = norm.recorded(p, x.clone(), recorder)?;
                let inner_own = own(&inner);
                (own(&x), self.mixer.forward(p, inner, inner_own))
            }
            None => {
                let x_own = own(&x);
                (x_own.clone(), self.mixer.forward(p, x, x_own))
            }
        };
        self.finish(p, x, mixed, recorder)
    }

    fn finish(
        &self,
        p: &Parameters,
        x: Tensor<3>,
        mixed: Tensor<3>,
        recorder: &mut Recorder,
    ) -> Result<Tensor<3>, NnError> {
        let x = x + mixed;
        match &self.norms {
            Some([_, second]) if self.norm_first => {
                let inner = second.recorded(p, x.clone(), recorder)?;
                Ok(x + self.feed_forward.forward(p, inner))
            }
            Some([first, second]) => {
                let x = first.recorded(p, x, recorder)?;
                second.recorded(p, x.clone() + self.feed_forward.forward(p, x), recorder)
            }
            None => Ok(x.clone() + self.feed_forward.forward(p, x)),
        }
    }

    /// The norm before the mixer, where there is one.
    fn first_norm(&self) -> Option<&Norm> {
        self.norms.as_ref().filter(|_| self.norm_first).map(|[first, _]| first)
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
