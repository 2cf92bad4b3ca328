//! The post-norm transformer encoder of the Boolean experiments: n bits in, one number out.

use burn::tensor::Tensor;
use pudica_data::Bits;
use serde::{Deserialize, Serialize};

use crate::embedding::{Embed, Embedded};
use crate::init::{Init, ParamSpec};
use crate::layers::{Attention, FeedForward, LayerNorm, Linear, Recorder};
use crate::leaves::Leaves;
use crate::{Device, NnError};

/// The encoder's shape. Its parameters have the names of this PyTorch module:
///
/// ```python
/// class Enc(nn.Module):
///     def __init__(s, n, d, heads, layers, ff):
///         s.tok, s.pos = nn.Embedding(2, d // 2), nn.Embedding(n, d // 2)   # embed = "add": width d each
///         layer = nn.TransformerEncoderLayer(d, heads, ff, 0.0, "relu", batch_first=True)
///         s.enc = nn.TransformerEncoder(layer, layers)
///         s.head = nn.Linear(d, 1)                                          # on the last position
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncoderConfig {
    /// Bits in a string; each is a token.
    pub n: usize,
    /// Width of the residual stream.
    pub d: usize,
    /// Encoder layers.
    pub layers: usize,
    /// Attention heads; must divide `d`.
    pub heads: usize,
    /// Width of the feed-forward layer (the paper: `d`, not 4d).
    pub ff: usize,
    /// How token and position embeddings are joined.
    pub embed: Embed,
    /// Start every layer as a copy of the first, as `nn.TransformerEncoder` does.
    pub same_init: bool,
}

impl EncoderConfig {
    /// The paper's encoder: d = 128, 2 layers, 2 heads, ff = d, concatenated embeddings, layers starting equal.
    pub fn paper(n: usize) -> Self {
        Self { n, d: 128, layers: 2, heads: 2, ff: 128, embed: Embed::Concat, same_init: true }
    }

    /// Whether such an encoder can be built.
    pub fn check(&self) -> Result<(), NnError> {
        check_shape(self.n, self.d, self.heads, self.ff, self.embed)?;
        if self.layers == 0 {
            return Err(NnError::setting("model.layers", "an encoder needs at least 1 layer"));
        }
        Ok(())
    }

    pub(crate) fn params(&self) -> Vec<ParamSpec> {
        let Self { n, d, ff, .. } = *self;
        let width = self.embed.width(d);
        let mut params = vec![
            ParamSpec::new("tok.weight", &[2, width], Init::Normal),
            ParamSpec::new("pos.weight", &[n, width], Init::Normal),
        ];
        for layer in 0..self.layers {
            let mut own = layer_params(&format!("enc.layers.{layer}"), d, ff);
            if self.same_init {
                let first = layer_params("enc.layers.0", d, ff);
                own.iter_mut().zip(first).for_each(|(own, first)| own.drawn_as = first.name);
            }
            params.append(&mut own);
        }
        params.push(ParamSpec::new("head.weight", &[1, d], Init::linear(d)));
        params.push(ParamSpec::new("head.bias", &[1], Init::linear(d)));
        params
    }
}

/// What every transformer here demands of its shape.
pub(crate) fn check_shape(n: usize, d: usize, heads: usize, ff: usize, embed: Embed) -> Result<(), NnError> {
    if n == 0 {
        return Err(NnError::setting("n", "strings need at least 1 bit"));
    }
    if d < 2 {
        return Err(NnError::setting("model.d", format!("the width must be at least 2, but d = {d}")));
    }
    if heads == 0 || !d.is_multiple_of(heads) {
        return Err(NnError::setting("model.heads", format!("heads must divide d = {d}, but heads = {heads}")));
    }
    if ff == 0 {
        return Err(NnError::setting("model.ff", "the feed-forward width must be at least 1"));
    }
    if embed == Embed::Concat && !d.is_multiple_of(2) {
        let problem = format!("\"concat\" needs an even d (half for the token, half for the position), but d = {d}");
        return Err(NnError::setting("model.embed", problem));
    }
    Ok(())
}

/// PyTorch's `nn.TransformerEncoderLayer`, in the order of its `state_dict()`, with PyTorch's default starts.
pub(crate) fn layer_params(name: &str, d: usize, ff: usize) -> Vec<ParamSpec> {
    let mut params = attention_params(&format!("{name}.self_attn"), d);
    params.extend(feed_forward_params(name, d, ff));
    params.extend(norm_params(&format!("{name}.norm1"), d));
    params.extend(norm_params(&format!("{name}.norm2"), d));
    params
}

pub(crate) fn attention_params(name: &str, d: usize) -> Vec<ParamSpec> {
    vec![
        ParamSpec::new(format!("{name}.in_proj_weight"), &[3 * d, d], Init::xavier(3 * d, d)),
        ParamSpec::new(format!("{name}.in_proj_bias"), &[3 * d], Init::Zeros),
        ParamSpec::new(format!("{name}.out_proj.weight"), &[d, d], Init::linear(d)),
        ParamSpec::new(format!("{name}.out_proj.bias"), &[d], Init::Zeros),
    ]
}

pub(crate) fn feed_forward_params(name: &str, d: usize, ff: usize) -> Vec<ParamSpec> {
    vec![
        ParamSpec::new(format!("{name}.linear1.weight"), &[ff, d], Init::linear(d)),
        ParamSpec::new(format!("{name}.linear1.bias"), &[ff], Init::linear(d)),
        ParamSpec::new(format!("{name}.linear2.weight"), &[d, ff], Init::linear(ff)),
        ParamSpec::new(format!("{name}.linear2.bias"), &[d], Init::linear(ff)),
    ]
}

pub(crate) fn norm_params(name: &str, d: usize) -> Vec<ParamSpec> {
    vec![
        ParamSpec::new(format!("{name}.weight"), &[d], Init::Ones),
        ParamSpec::new(format!("{name}.bias"), &[d], Init::Zeros),
    ]
}

/// One post-norm encoder layer.
pub(crate) struct EncoderLayer {
    pub(crate) attention: Attention,
    norm1: LayerNorm,
    feed_forward: FeedForward,
    norm2: LayerNorm,
}

impl EncoderLayer {
    pub(crate) fn new(leaves: &Leaves, name: &str, heads: usize) -> Result<Self, NnError> {
        Ok(Self {
            attention: Attention::new(leaves, &format!("{name}.self_attn"), heads)?,
            norm1: LayerNorm::new(leaves, &format!("{name}.norm1"))?,
            feed_forward: FeedForward::new(leaves, name)?,
            norm2: LayerNorm::new(leaves, &format!("{name}.norm2"))?,
        })
    }

    /// The layer on embedded tokens [batch, n, d], its projections taken once for each row of the table.
    pub(crate) fn forward_embedded(
        &self,
        x: &Embedded,
        only_last: bool,
        recorder: &mut Recorder,
    ) -> Result<Tensor<3>, NnError> {
        let queries = x.look_up(self.attention.queries(x.table.clone()));
        let (keys, values) = self.attention.keys_values(x.table.clone());
        let keys_values = (x.look_up(keys), x.look_up(values));
        let inputs = x.look_up(x.table.clone());
        match only_last {
            true => self.finish(last(inputs), last(queries), keys_values, recorder),
            false => self.finish(inputs, queries, keys_values, recorder),
        }
    }

    /// The layer on x [batch, n, d]: all positions [batch, n, d], or only the last [batch, 1, d].
    pub(crate) fn forward(&self, x: Tensor<3>, only_last: bool, recorder: &mut Recorder) -> Result<Tensor<3>, NnError> {
        let keys_values = self.attention.keys_values(x.clone());
        let x = if only_last { last(x) } else { x };
        let queries = self.attention.queries(x.clone());
        self.finish(x, queries, keys_values, recorder)
    }

    fn finish(
        &self,
        x: Tensor<3>,
        queries: Tensor<3>,
        keys_values: (Tensor<3>, Tensor<3>),
        recorder: &mut Recorder,
    ) -> Result<Tensor<3>, NnError> {
        let x = self.norm1.forward(x + self.attention.attend(queries, keys_values, false), recorder)?;
        self.norm2.forward(x.clone() + self.feed_forward.forward(x), recorder)
    }
}

/// The last position of x [batch, n, d]: [batch, 1, d].
fn last(x: Tensor<3>) -> Tensor<3> {
    let n = x.dims()[1];
    x.narrow(1, n - 1, 1)
}

/// The encoder with its weights on a device.
pub(crate) struct Encoder {
    embed: Embed,
    token: Tensor<2>,
    position: Tensor<2>,
    layers: Vec<EncoderLayer>,
    head: Linear,
}

impl Encoder {
    pub(crate) fn new(config: &EncoderConfig, leaves: &Leaves) -> Result<Self, NnError> {
        let [token] = leaves.matrices("tok.weight")?;
        let [position] = leaves.matrices("pos.weight")?;
        let layers = (0..config.layers)
            .map(|layer| EncoderLayer::new(leaves, &format!("enc.layers.{layer}"), config.heads))
            .collect::<Result<_, _>>()?;
        Ok(Self { embed: config.embed, token, position, layers, head: Linear::new(leaves, "head")? })
    }

    /// strings [batch, n] -> [batch, 1]. The last layer is computed at the last position only: nothing else is read.
    pub(crate) fn forward(
        &self,
        strings: &Bits,
        device: &Device,
        recorder: &mut Recorder,
    ) -> Result<Tensor<2>, NnError> {
        let embedded =
            Embedded::new(strings.data(), strings.n(), self.embed, self.token.clone(), self.position.clone(), device);
        let depth = self.layers.len();
        let mut x = self.layers[0].forward_embedded(&embedded, depth == 1, recorder)?;
        for (index, layer) in self.layers.iter().enumerate().skip(1) {
            x = layer.forward(x, index + 1 == depth, recorder)?;
        }
        let [batch, _, d] = x.dims();
        Ok(self.head.forward(x.reshape([batch, d])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Architecture;

    #[test]
    fn impossible_shapes_are_explained() {
        let message = |change: fn(&mut EncoderConfig)| {
            let mut config = EncoderConfig::paper(5);
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(message(|c| c.heads = 3).contains("heads must divide d = 128, but heads = 3"));
        assert!(message(|c| c.heads = 0).contains("model.heads"));
        assert!(message(|c| c.n = 0).contains("at least 1 bit"));
        assert!(message(|c| c.layers = 0).contains("model.layers"));
        assert!(message(|c| c.ff = 0).contains("model.ff"));
        assert!(message(|c| (c.d, c.heads) = (7, 7)).contains("even d"));
        assert!(EncoderConfig { d: 7, heads: 7, embed: Embed::Add, ..EncoderConfig::paper(5) }.check().is_ok());
    }

    #[test]
    fn layers_start_equal_only_when_asked() {
        let start = |same_init| {
            let config = EncoderConfig { same_init, ..EncoderConfig::paper(4) };
            Architecture::Encoder(config).initial_weights(0).unwrap()
        };
        let of = |weights: &crate::Weights, layer: usize| {
            weights.get(&format!("enc.layers.{layer}.linear1.weight")).unwrap().1.to_vec()
        };
        let (same, different) = (start(true), start(false));
        assert_eq!(of(&same, 0), of(&same, 1));
        assert_ne!(of(&different, 0), of(&different, 1));
        assert_eq!(of(&same, 0), of(&different, 0));
    }
}
