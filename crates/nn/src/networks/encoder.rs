//! The post-norm transformer encoder of the Boolean experiments: n bits in, one number out.

use burn::tensor::Tensor;
use pudica_data::Bits;
use serde::{Deserialize, Serialize};

use super::embedding::{Embed, TokenEmbedding};
use super::transformer::{EncoderLayer, encode, stack};
use crate::layers::{Linear, Recorder, at_least_one, check_heads};
use crate::params::Scope;
use crate::{NnError, Parameters};

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
        let Self { n, d, layers, heads, ff, embed, .. } = *self;
        if n == 0 {
            return Err(NnError::setting("n", "strings need at least 1 bit"));
        }
        if d < 2 {
            return Err(NnError::setting("model.d", format!("the width must be at least 2, but d = {d}")));
        }
        check_heads(d, heads)?;
        at_least_one("model.ff", ff)?;
        if embed == Embed::Concat && !d.is_multiple_of(2) {
            let problem =
                format!("\"concat\" needs an even d (half for the token, half for the position), but d = {d}");
            return Err(NnError::setting("model.embed", problem));
        }
        at_least_one("model.layers", layers)
    }
}

/// The encoder's layers.
pub(crate) struct Encoder {
    embedding: TokenEmbedding,
    layers: Vec<EncoderLayer>,
    head: Linear,
}

impl Encoder {
    pub(crate) fn new(config: &EncoderConfig, mut params: Scope) -> Self {
        let EncoderConfig { n, d, layers, heads, ff, embed, same_init } = *config;
        let layer = |params: Scope| EncoderLayer::new(params, d, heads, ff);
        Self {
            embedding: TokenEmbedding::new(&mut params, "", [2, n], d, embed),
            layers: stack(&mut params, "enc.layers", layers, layer, |own, first| {
                if same_init {
                    own.drawn_as = first.to_string();
                }
            }),
            head: Linear::new(params.at("head"), d, 1),
        }
    }

    /// strings [batch, n] -> [batch, 1]. The last layer is computed at the last position only: nothing else is read.
    pub(crate) fn forward(
        &self,
        p: &Parameters,
        strings: &Bits,
        recorder: &mut Recorder,
    ) -> Result<Tensor<2>, NnError> {
        let embedded = self.embedding.forward(p, strings.data(), strings.n());
        let x = encode(&self.layers, p, &embedded, true, recorder)?;
        let [batch, _, d] = x.dims();
        Ok(self.head.forward(p, x.reshape([batch, d])))
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
