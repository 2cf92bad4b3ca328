//! The scratchpad: an encoder-decoder that writes the parity of every prefix, one after the other.

use burn::tensor::Tensor;
use pudica_data::{Bits, prefix_parities};
use serde::{Deserialize, Serialize};

use super::EncoderConfig;
use super::embedding::{Embed, Embedded, TokenEmbedding};
use super::transformer::{EncoderLayer, FeedForward, Mixer, MultiheadAttention, encode, stack};
use super::variants::Variant;
use crate::attention::Mask;
use crate::layers::{LayerNorm, Linear, Recorder, to_vec};
use crate::params::{Init, ParamSpec, Scope};
use crate::{NnError, Nonlinearity, Parameters};

/// The decoder's tokens are the bits 0 and 1, and this one before the first.
const START_TOKEN: u8 = 2;

/// The encoder-decoder's shape. Its parameters have the names of this PyTorch module:
///
/// ```python
/// class EncDec(nn.Module):
///     def __init__(s, n, d, heads, layers, ff):
///         s.tok, s.pos = nn.Embedding(2, d // 2), nn.Embedding(n, d // 2)           # embed = "add": width d each
///         s.dec_tok, s.dec_pos = nn.Embedding(3, d // 2), nn.Embedding(n, d // 2)   # 0, 1 and the start token 2
///         s.transformer = nn.Transformer(d, heads, layers, layers, ff, 0.0, "relu", batch_first=True)
///         s.head = nn.Linear(d, 1)                                                  # on every position
/// ```
///
/// `nn.Transformer` copies one layer into each stack, then starts every matrix anew Xavier-uniform; only vectors (biases) stay
/// equal across the layers of a stack. It also has a final LayerNorm on the encoder and on the decoder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncoderDecoderConfig {
    /// Bits in a string; also the number of outputs.
    pub n: usize,
    /// Width of the residual stream.
    pub d: usize,
    /// Encoder layers, and as many decoder layers.
    pub layers: usize,
    /// Attention heads; must divide `d`.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub ff: usize,
    /// How token and position embeddings are joined.
    pub embed: Embed,
}

impl EncoderDecoderConfig {
    /// The paper's scratchpad network: d = 32, 2 + 2 layers, 2 heads, ff = 32.
    pub fn paper(n: usize) -> Self {
        Self { n, d: 32, layers: 2, heads: 2, ff: 32, embed: Embed::Concat }
    }

    /// Whether such a network can be built.
    pub fn check(&self) -> Result<(), NnError> {
        let Self { n, d, layers, heads, ff, embed } = *self;
        EncoderConfig { n, d, layers, heads, ff, embed, same_init: false }.check()
    }
}

/// What `nn.Transformer` does to a layer after copying it: matrices start anew Xavier-uniform, vectors stay copies of the first's.
fn restart(own: &mut ParamSpec, first: &str) {
    match own.shape[..] {
        [fan_out, fan_in] => own.init = Init::xavier(fan_out, fan_in),
        _ => own.drawn_as = first.to_string(),
    }
}

/// `nn.TransformerDecoderLayer`, its parameters in the order of its `state_dict()`.
struct DecoderLayer {
    self_attention: MultiheadAttention,
    cross_attention: MultiheadAttention,
    feed_forward: FeedForward,
    norms: [LayerNorm; 3],
}

impl DecoderLayer {
    fn new(mut params: Scope, d: usize, heads: usize, ff: usize) -> Self {
        Self {
            self_attention: MultiheadAttention::new(params.at("self_attn"), d, heads),
            cross_attention: MultiheadAttention::new(params.at("multihead_attn"), d, heads),
            feed_forward: FeedForward::new(&mut params, d, ff, Nonlinearity::Relu),
            norms: ["norm1", "norm2", "norm3"].map(|name| LayerNorm::new(params.at(name), d)),
        }
    }

    /// x [batch, l, d] attends to `past`, the keys and values of itself and all before it, and to `memory`, those of the encoder.
    fn forward(
        &self,
        p: &Parameters,
        x: Tensor<3>,
        past: (Tensor<3>, Tensor<3>),
        memory: (Tensor<3>, Tensor<3>),
        mask: Mask,
        recorder: &mut Recorder,
    ) -> Result<Tensor<3>, NnError> {
        let queries = self.self_attention.queries(p, x.clone());
        let x = self.norms[0].recorded(p, x + self.self_attention.attend(p, queries, past, mask), recorder)?;
        let queries = self.cross_attention.queries(p, x.clone());
        let x = self.norms[1].recorded(p, x + self.cross_attention.attend(p, queries, memory, Mask::None), recorder)?;
        self.norms[2].recorded(p, x.clone() + self.feed_forward.forward(p, x), recorder)
    }
}

/// The encoder-decoder's layers.
pub(crate) struct EncoderDecoder {
    embedding: TokenEmbedding,
    decoder_embedding: TokenEmbedding,
    encoder: Vec<EncoderLayer>,
    encoder_norm: LayerNorm,
    decoder: Vec<DecoderLayer>,
    decoder_norm: LayerNorm,
    head: Linear,
}

impl EncoderDecoder {
    pub(crate) fn new(config: &EncoderDecoderConfig, mut params: Scope) -> Self {
        let EncoderDecoderConfig { n, d, layers, heads, ff, embed } = *config;
        let attention = |params: &mut Scope| Mixer::attention(params.at("self_attn"), d, heads, Mask::None, false);
        let encoder_layer = |params: Scope| EncoderLayer::new(params, [d, ff], Variant::default(), attention);
        let decoder_layer = |params: Scope| DecoderLayer::new(params, d, heads, ff);
        Self {
            embedding: TokenEmbedding::new(&mut params, "", [2, n], d, embed),
            decoder_embedding: TokenEmbedding::new(&mut params, "dec_", [3, n], d, embed),
            encoder: stack(&mut params, "transformer.encoder.layers", layers, encoder_layer, restart),
            encoder_norm: LayerNorm::new(params.at("transformer.encoder.norm"), d),
            decoder: stack(&mut params, "transformer.decoder.layers", layers, decoder_layer, restart),
            decoder_norm: LayerNorm::new(params.at("transformer.decoder.norm"), d),
            head: Linear::new(params.at("head"), d, 1),
        }
    }

    /// strings [batch, n] -> [batch, n], teacher-forced: output i is computed from x and the parities of the prefixes before i.
    pub(crate) fn forward(
        &self,
        p: &Parameters,
        strings: &Bits,
        recorder: &mut Recorder,
    ) -> Result<Tensor<2>, NnError> {
        let memory = self.encode(p, strings, recorder)?;
        let n = strings.n();
        let mut tokens = Vec::with_capacity(strings.data().len());
        for parities in prefix_parities(strings).chunks_exact(n) {
            tokens.push(START_TOKEN);
            tokens.extend(parities[..n - 1].iter().map(|parity| *parity as u8));
        }
        let mut x = looked_up(self.decoder_embedding.forward(p, &tokens, n, 0));
        for layer in &self.decoder {
            let past = layer.self_attention.keys_values(p, x.clone());
            let memory = layer.cross_attention.keys_values(p, memory.clone());
            x = layer.forward(p, x, past, memory, Mask::Causal, recorder)?;
        }
        let x = self.decoder_norm.recorded(p, x, recorder)?;
        Ok(self.head.forward(p, x).reshape([strings.rows(), n]))
    }

    /// strings [batch, n] -> row-major [batch, n], each output computed from the network's own outputs before it, cut at 1/2.
    /// Keys and values of the positions behind are kept, so a string costs n short steps.
    pub(crate) fn decode(&self, p: &Parameters, strings: &Bits) -> Result<Vec<f32>, NnError> {
        let (batch, n) = (strings.rows(), strings.n());
        let memory = self.encode(p, strings, &mut None)?;
        let memories: Vec<_> =
            self.decoder.iter().map(|layer| layer.cross_attention.keys_values(p, memory.clone())).collect();
        let mut pasts: Vec<Option<(Tensor<3>, Tensor<3>)>> = self.decoder.iter().map(|_| None).collect();
        // Column i holds the tokens before output i; later columns are not read yet.
        let mut tokens = vec![START_TOKEN; batch * n];
        let mut outputs = vec![0.0; batch * n];
        for i in 0..n {
            let mut x = looked_up(self.decoder_embedding.forward(p, &tokens, n, 0)).narrow(1, i, 1);
            for ((layer, past), memory) in self.decoder.iter().zip(&mut pasts).zip(&memories) {
                let (keys, values) = layer.self_attention.keys_values(p, x.clone());
                let extended = match past.take() {
                    None => (keys, values),
                    Some((k, v)) => (Tensor::cat(vec![k, keys], 1), Tensor::cat(vec![v, values], 1)),
                };
                *past = Some(extended.clone());
                x = layer.forward(p, x, extended, memory.clone(), Mask::None, &mut None)?;
            }
            let x = self.decoder_norm.forward(p, x);
            let column: Vec<f32> = to_vec(self.head.forward(p, x))?;
            for (row, output) in column.into_iter().enumerate() {
                outputs[row * n + i] = output;
                if i + 1 < n {
                    tokens[row * n + i + 1] = u8::from(output > 0.5);
                }
            }
        }
        Ok(outputs)
    }

    /// strings [batch, n] -> the encoder's memory [batch, n, d]
    fn encode(&self, p: &Parameters, strings: &Bits, recorder: &mut Recorder) -> Result<Tensor<3>, NnError> {
        let embedded = self.embedding.forward(p, strings.data(), strings.n(), 0);
        let x = encode(&self.encoder, p, &embedded, false, recorder)?;
        self.encoder_norm.recorded(p, x, recorder)
    }
}

/// The embedded tokens themselves: [batch, length, d]
fn looked_up(embedded: Embedded) -> Tensor<3> {
    embedded.look_up(embedded.table.clone())
}
