//! The transformer encoder of the Boolean experiments, its variants, and the state-space model: n bits in, one number out.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::embedding::{Embed, TokenEmbedding};
use super::recurrent_mixer::RecurrentMixer;
use super::transformer::{EncoderLayer, Mixer, encode, stack};
use super::variants::{Eigenvalues, Normalisation, Position, Read, Span, Variant};
use crate::attention::Mask;
use crate::layers::{Linear, Norm, Recorder, at_least_one, check_heads};
use crate::network::Placed;
use crate::params::Scope;
use crate::{NnError, Parameters};

/// The shape of the paper's encoder, post-norm. Its parameters have the names of this PyTorch module:
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

/// An encoder that differs from the paper's in more than its sizes. Its parameters have the names of the PyTorch module of
/// [`EncoderConfig`], as far as they are there, with `norm_first` and a final `enc.norm` where norms stand before their blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransformerConfig {
    /// Its sizes. Without a vector for each position there is nothing to join, and tokens are d wide.
    pub encoder: EncoderConfig,
    /// Norms, activation, and where the answer is read.
    pub variant: Variant,
    /// How it knows where a token stands.
    pub position: Position,
    /// Rows of the table of learned positions, `encoder.n` at least: strings may be as long, or stand anywhere in it.
    pub positions: usize,
    /// Which tokens a token attends to.
    pub span: Span,
}

impl TransformerConfig {
    /// Whether it is the paper's encoder after all.
    pub fn is_plain(&self) -> bool {
        let Self { encoder, variant, position, positions, span } = self;
        *variant == Variant::default()
            && (*position, *span) == (Position::Learned, Span::Full)
            && *positions == encoder.n
    }

    /// Whether such an encoder can be built.
    pub fn check(&self) -> Result<(), NnError> {
        let joined = matches!(self.position, Position::Learned | Position::Sinusoidal);
        let embed = if joined { self.encoder.embed } else { Embed::Add };
        EncoderConfig { embed, ..self.encoder.clone() }.check()?;
        let EncoderConfig { n, d, heads, .. } = self.encoder;
        if self.position == Position::Rotary && !(d / heads).is_multiple_of(2) {
            let problem =
                format!("\"rotary\" turns pairs of values, so d / heads must be even, but it is {}", d / heads);
            return Err(NnError::setting("model.position", problem));
        }
        if self.positions < n {
            let problem = format!("strings of {n} bits need a table of at least {n}, not {}", self.positions);
            return Err(NnError::setting("model.positions", problem));
        }
        Ok(())
    }
}

/// The shape of a diagonal state-space model: the encoder's layers with a recurrence in place of attention. Its eigenvalues depend on the
/// token, as in Mamba; with signed ones such models can count modulo 2 (Sarrof et al. 2024, Grazzi et al. 2025).
///
/// ```python
/// class Layer(nn.Module):
///     def __init__(s, d, ff):
///         s.recurrence = Recurrence(d)     # gate, input, output: nn.Linear(d, d) each
///         s.linear1, s.linear2 = nn.Linear(d, ff), nn.Linear(ff, d)
///         s.norm1, s.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
///     def forward(s, x):                   # norm = "post"
///         x = s.norm1(x + s.recurrence(x))
///         return s.norm2(x + s.linear2(relu(s.linear1(x))))
/// ```
///
/// Around them `tok = nn.Embedding(2, d)` and `head = nn.Linear(d, 1)`; the layers are called `ssm.layers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSpaceConfig {
    /// Bits in a string of training; it reads strings of any length.
    pub n: usize,
    /// Width of tokens and states.
    pub d: usize,
    /// Layers.
    pub layers: usize,
    /// Width of the feed-forward layer.
    pub ff: usize,
    /// The range of the eigenvalues.
    pub eigenvalues: Eigenvalues,
    /// Start every layer as a copy of the first.
    pub same_init: bool,
    /// Norms, activation, and where the answer is read.
    pub variant: Variant,
}

impl StateSpaceConfig {
    /// Whether such a network can be built.
    pub fn check(&self) -> Result<(), NnError> {
        let Self { n, d, layers, ff, same_init, .. } = *self;
        EncoderConfig { n, d, layers, heads: 1, ff, embed: Embed::Add, same_init }.check()
    }
}

/// Layers on embedded bits.
pub(crate) struct Encoder {
    embedding: TokenEmbedding,
    layers: Vec<EncoderLayer>,
    /// After the last layer, where norms stand before their blocks.
    norm: Option<Norm>,
    read: Read,
    head: Linear,
}

impl Encoder {
    pub(crate) fn new(config: &EncoderConfig, params: Scope) -> Self {
        let (variant, position, span) = (Variant::default(), Position::Learned, Span::Full);
        let (encoder, positions) = (config.clone(), config.n);
        Self::transformer(&TransformerConfig { encoder, variant, position, positions, span }, params)
    }

    pub(crate) fn transformer(config: &TransformerConfig, mut params: Scope) -> Self {
        let TransformerConfig { variant, position, positions, span, .. } = *config;
        let EncoderConfig { d, heads, embed, .. } = config.encoder;
        let mask = match span {
            Span::Full => Mask::None,
            Span::Causal => Mask::Causal,
        };
        let embedding = match position {
            Position::Learned => TokenEmbedding::new(&mut params, "", [2, positions], d, embed),
            Position::Sinusoidal => TokenEmbedding::sinusoidal(&mut params, d, embed),
            Position::Rotary | Position::None => TokenEmbedding::of_bits(&mut params, d),
        };
        let rotary = position == Position::Rotary;
        let mixer = |params: &mut Scope| Mixer::attention(params.at("self_attn"), d, heads, mask, rotary);
        Self::stacked(embedding, &config.encoder, variant, ("enc", mixer), params)
    }

    pub(crate) fn state_space(config: &StateSpaceConfig, mut params: Scope) -> Self {
        let StateSpaceConfig { n, d, layers, ff, eigenvalues, same_init, variant } = *config;
        let sizes = EncoderConfig { n, d, layers, heads: 1, ff, embed: Embed::Add, same_init };
        let embedding = TokenEmbedding::of_bits(&mut params, d);
        let mixer =
            |params: &mut Scope| Mixer::Recurrence(RecurrentMixer::new(params.at("recurrence"), d, eigenvalues));
        Self::stacked(embedding, &sizes, variant, ("ssm", mixer), params)
    }

    /// Layers called `name.layers`, each with a mixer of its own, and the head.
    fn stacked(
        embedding: TokenEmbedding,
        sizes: &EncoderConfig,
        variant: Variant,
        (name, mixer): (&str, impl Fn(&mut Scope) -> Mixer),
        mut params: Scope,
    ) -> Self {
        let EncoderConfig { d, layers, ff, same_init, .. } = *sizes;
        let layer = |params: Scope| EncoderLayer::new(params, [d, ff], variant, &mixer);
        let layers = stack(&mut params, &format!("{name}.layers"), layers, layer, |own, first| {
            if same_init {
                own.drawn_as = first.to_string();
            }
        });
        let last = if variant.norm.comes_first() { variant.norm } else { Normalisation::None };
        Self {
            embedding,
            layers,
            norm: Norm::new(params.at(format_args!("{name}.norm")), d, last),
            read: variant.read,
            head: Linear::new(params.at("head"), d, 1),
        }
    }

    /// strings [batch, n] -> [batch, 1]. Where only the last position is read, the last layer computes no other.
    pub(crate) fn forward(
        &self,
        p: &Parameters,
        Placed { strings, offset }: Placed,
        recorder: &mut Recorder,
    ) -> Result<Tensor<2>, NnError> {
        let embedded = self.embedding.forward(p, strings.data(), strings.n(), offset);
        let mut x = encode(&self.layers, p, &embedded, self.read == Read::Last, recorder)?;
        if let Some(norm) = &self.norm {
            x = norm.recorded(p, x, recorder)?;
        }
        let [batch, length, d] = x.dims();
        let read = if length == 1 { x.reshape([batch, d]) } else { self.read.of(x) };
        Ok(self.head.forward(p, read))
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
