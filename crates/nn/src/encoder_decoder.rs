//! The scratchpad: an encoder-decoder that writes the parity of every prefix, one after the other.

use burn::tensor::Tensor;
use pudica_data::{Bits, prefix_parities};
use serde::{Deserialize, Serialize};

use crate::embedding::{Embed, Embedded};
use crate::encoder::{EncoderLayer, attention_params, check_shape, feed_forward_params, layer_params, norm_params};
use crate::init::{Init, ParamSpec};
use crate::layers::{Attention, FeedForward, LayerNorm, Linear, Recorder, to_vec};
use crate::leaves::Leaves;
use crate::{Device, NnError};

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
        check_shape(self.n, self.d, self.heads, self.ff, self.embed)?;
        if self.layers == 0 {
            return Err(NnError::setting("model.layers", "an encoder-decoder needs at least 1 layer"));
        }
        Ok(())
    }

    pub(crate) fn params(&self) -> Vec<ParamSpec> {
        let Self { n, d, ff, .. } = *self;
        let width = self.embed.width(d);
        let mut params = vec![
            ParamSpec::new("tok.weight", &[2, width], Init::Normal),
            ParamSpec::new("pos.weight", &[n, width], Init::Normal),
            ParamSpec::new("dec_tok.weight", &[3, width], Init::Normal),
            ParamSpec::new("dec_pos.weight", &[n, width], Init::Normal),
        ];
        let encoder_layer = |layer: usize| layer_params(&encoder_name(layer), d, ff);
        let decoder_layer = |layer: usize| decoder_layer_params(&decoder_name(layer), d, ff);
        for layer in 0..self.layers {
            params.extend(restarted(encoder_layer(layer), encoder_layer(0)));
        }
        params.extend(norm_params("transformer.encoder.norm", d));
        for layer in 0..self.layers {
            params.extend(restarted(decoder_layer(layer), decoder_layer(0)));
        }
        params.extend(norm_params("transformer.decoder.norm", d));
        params.push(ParamSpec::new("head.weight", &[1, d], Init::linear(d)));
        params.push(ParamSpec::new("head.bias", &[1], Init::linear(d)));
        params
    }
}

fn encoder_name(layer: usize) -> String {
    format!("transformer.encoder.layers.{layer}")
}

fn decoder_name(layer: usize) -> String {
    format!("transformer.decoder.layers.{layer}")
}

/// PyTorch's `nn.TransformerDecoderLayer`, in the order of its `state_dict()`.
fn decoder_layer_params(name: &str, d: usize, ff: usize) -> Vec<ParamSpec> {
    let mut params = attention_params(&format!("{name}.self_attn"), d);
    params.extend(attention_params(&format!("{name}.multihead_attn"), d));
    params.extend(feed_forward_params(name, d, ff));
    for norm in ["norm1", "norm2", "norm3"] {
        params.extend(norm_params(&format!("{name}.{norm}"), d));
    }
    params
}

/// What `nn.Transformer` does to a layer after copying it: matrices start anew Xavier-uniform, vectors stay copies of the first's.
fn restarted(mut layer: Vec<ParamSpec>, first: Vec<ParamSpec>) -> Vec<ParamSpec> {
    for (own, first) in layer.iter_mut().zip(first) {
        match own.shape[..] {
            [fan_out, fan_in] => own.init = Init::xavier(fan_out, fan_in),
            _ => own.drawn_as = first.name,
        }
    }
    layer
}

/// One post-norm decoder layer.
struct DecoderLayer {
    self_attention: Attention,
    cross_attention: Attention,
    feed_forward: FeedForward,
    norms: [LayerNorm; 3],
}

impl DecoderLayer {
    fn new(leaves: &Leaves, name: &str, heads: usize) -> Result<Self, NnError> {
        let norm = |norm: &str| LayerNorm::new(leaves, &format!("{name}.{norm}"));
        Ok(Self {
            self_attention: Attention::new(leaves, &format!("{name}.self_attn"), heads)?,
            cross_attention: Attention::new(leaves, &format!("{name}.multihead_attn"), heads)?,
            feed_forward: FeedForward::new(leaves, name)?,
            norms: [norm("norm1")?, norm("norm2")?, norm("norm3")?],
        })
    }

    /// x [batch, l, d] attends to `past`, the keys and values of itself and all before it, and to `memory`, those of the encoder.
    fn forward(
        &self,
        x: Tensor<3>,
        past: (Tensor<3>, Tensor<3>),
        memory: (Tensor<3>, Tensor<3>),
        causal: bool,
        recorder: &mut Recorder,
    ) -> Result<Tensor<3>, NnError> {
        let queries = self.self_attention.queries(x.clone());
        let x = self.norms[0].forward(x + self.self_attention.attend(queries, past, causal), recorder)?;
        let queries = self.cross_attention.queries(x.clone());
        let x = self.norms[1].forward(x + self.cross_attention.attend(queries, memory, false), recorder)?;
        self.norms[2].forward(x.clone() + self.feed_forward.forward(x), recorder)
    }
}

/// The encoder-decoder with its weights on a device.
pub(crate) struct EncoderDecoder {
    embed: Embed,
    token: Tensor<2>,
    position: Tensor<2>,
    decoder_token: Tensor<2>,
    decoder_position: Tensor<2>,
    encoder: Vec<EncoderLayer>,
    encoder_norm: LayerNorm,
    decoder: Vec<DecoderLayer>,
    decoder_norm: LayerNorm,
    head: Linear,
}

impl EncoderDecoder {
    pub(crate) fn new(config: &EncoderDecoderConfig, leaves: &Leaves) -> Result<Self, NnError> {
        let [token] = leaves.matrices("tok.weight")?;
        let [position] = leaves.matrices("pos.weight")?;
        let [decoder_token] = leaves.matrices("dec_tok.weight")?;
        let [decoder_position] = leaves.matrices("dec_pos.weight")?;
        let layers = 0..config.layers;
        Ok(Self {
            embed: config.embed,
            token,
            position,
            decoder_token,
            decoder_position,
            encoder: layers
                .clone()
                .map(|layer| EncoderLayer::new(leaves, &encoder_name(layer), config.heads))
                .collect::<Result<_, _>>()?,
            encoder_norm: LayerNorm::new(leaves, "transformer.encoder.norm")?,
            decoder: layers
                .map(|layer| DecoderLayer::new(leaves, &decoder_name(layer), config.heads))
                .collect::<Result<_, _>>()?,
            decoder_norm: LayerNorm::new(leaves, "transformer.decoder.norm")?,
            head: Linear::new(leaves, "head")?,
        })
    }

    /// strings [batch, n] -> [batch, n], teacher-forced: output i is computed from x and the parities of the prefixes before i.
    pub(crate) fn forward(
        &self,
        strings: &Bits,
        device: &Device,
        recorder: &mut Recorder,
    ) -> Result<Tensor<2>, NnError> {
        let memory = self.encode(strings, device, recorder)?;
        let n = strings.n();
        let mut tokens = Vec::with_capacity(strings.data().len());
        for parities in prefix_parities(strings).chunks_exact(n) {
            tokens.push(START_TOKEN);
            tokens.extend(parities[..n - 1].iter().map(|parity| *parity as u8));
        }
        let embedded = self.embed_decoder(&tokens, n, device);
        let mut x = embedded.look_up(embedded.table.clone());
        for layer in &self.decoder {
            let past = layer.self_attention.keys_values(x.clone());
            let memory = layer.cross_attention.keys_values(memory.clone());
            x = layer.forward(x, past, memory, true, recorder)?;
        }
        let x = self.decoder_norm.forward(x, recorder)?;
        Ok(self.head.forward(x).reshape([strings.rows(), n]))
    }

    /// strings [batch, n] -> row-major [batch, n], each output computed from the network's own outputs before it, cut at 1/2.
    /// Keys and values of the positions behind are kept, so a string costs n short steps.
    pub(crate) fn decode(&self, strings: &Bits, device: &Device) -> Result<Vec<f32>, NnError> {
        let (batch, n) = (strings.rows(), strings.n());
        let memory = self.encode(strings, device, &mut None)?;
        let memories: Vec<_> =
            self.decoder.iter().map(|layer| layer.cross_attention.keys_values(memory.clone())).collect();
        let mut pasts: Vec<Option<(Tensor<3>, Tensor<3>)>> = self.decoder.iter().map(|_| None).collect();
        // Column i holds the tokens before output i; later columns are not read yet.
        let mut tokens = vec![START_TOKEN; batch * n];
        let mut outputs = vec![0.0; batch * n];
        for i in 0..n {
            let embedded = self.embed_decoder(&tokens, n, device);
            let mut x = embedded.look_up(embedded.table.clone()).narrow(1, i, 1);
            for ((layer, past), memory) in self.decoder.iter().zip(&mut pasts).zip(&memories) {
                let (keys, values) = layer.self_attention.keys_values(x.clone());
                let extended = match past.take() {
                    None => (keys, values),
                    Some((k, v)) => (Tensor::cat(vec![k, keys], 1), Tensor::cat(vec![v, values], 1)),
                };
                *past = Some(extended.clone());
                x = layer.forward(x, extended, memory.clone(), false, &mut None)?;
            }
            let x = self.decoder_norm.forward(x, &mut None)?;
            let column: Vec<f32> = to_vec(self.head.forward(x))?;
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
    fn encode(&self, strings: &Bits, device: &Device, recorder: &mut Recorder) -> Result<Tensor<3>, NnError> {
        let embedded =
            Embedded::new(strings.data(), strings.n(), self.embed, self.token.clone(), self.position.clone(), device);
        let mut x = self.encoder[0].forward_embedded(&embedded, false, recorder)?;
        for layer in &self.encoder[1..] {
            x = layer.forward(x, false, recorder)?;
        }
        self.encoder_norm.forward(x, recorder)
    }

    fn embed_decoder(&self, tokens: &[u8], length: usize, device: &Device) -> Embedded {
        let (token, position) = (self.decoder_token.clone(), self.decoder_position.clone());
        Embedded::new(tokens, length, self.embed, token, position, device)
    }
}
