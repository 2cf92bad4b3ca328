//! One face for all networks: strings in, numbers out.

use burn::tensor::Tensor;
use pudica_data::Bits;
use serde::{Deserialize, Serialize};

use crate::autodiff::Autodiff;
use crate::layers::{Recorder, to_vec};
use crate::networks::{
    Encoder, EncoderConfig, EncoderDecoder, EncoderDecoderConfig, Mlp, MlpConfig, Normalisation, Position, Recurrent,
    RecurrentConfig, StateSpaceConfig, TransformerConfig,
};
use crate::params::{ParamList, Scope};
use crate::{Device, NnError, NormFactors, Parameters, Weights};

/// What a network is, before it has weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Architecture {
    /// The paper's encoder: n bits to one number.
    Encoder(EncoderConfig),
    /// n bits to n numbers, one after the other: the scratchpad.
    EncoderDecoder(EncoderDecoderConfig),
    /// An encoder with other norms, positions, attention, activation or reading.
    Transformer(TransformerConfig),
    /// A perceptron.
    Mlp(MlpConfig),
    /// LSTM or GRU.
    Recurrent(RecurrentConfig),
    /// A diagonal state-space model.
    StateSpace(StateSpaceConfig),
}

/// A batch of strings, and the position at which they begin: a network with more learned positions than bits can be asked about strings that
/// stand anywhere among them. `(&strings).into()` begins at the first.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// The strings.
    pub strings: &'a Bits,
    /// The position of their first bit, counted from 0.
    pub offset: usize,
}

impl<'a> From<&'a Bits> for Placed<'a> {
    fn from(strings: &'a Bits) -> Self {
        Self { strings, offset: 0 }
    }
}

impl Architecture {
    /// Whether such a network can be built.
    pub fn check(&self) -> Result<(), NnError> {
        match self {
            Self::Encoder(config) => config.check(),
            Self::EncoderDecoder(config) => config.check(),
            Self::Transformer(config) => config.check(),
            Self::Mlp(config) => config.check(),
            Self::Recurrent(config) => config.check(),
            Self::StateSpace(config) => config.check(),
        }
    }

    /// Bits in the strings it is made for.
    pub fn n(&self) -> usize {
        match self {
            Self::Encoder(config) => config.n,
            Self::EncoderDecoder(config) => config.n,
            Self::Transformer(config) => config.encoder.n,
            Self::Mlp(config) => config.n,
            Self::Recurrent(config) => config.n,
            Self::StateSpace(config) => config.n,
        }
    }

    /// Numbers it gives for each string.
    pub fn outputs(&self) -> usize {
        match self {
            Self::EncoderDecoder(config) => config.n,
            _ => 1,
        }
    }

    /// The positions it knows: a string must end at or before the last. `None` where strings may be as long as they like.
    pub fn positions(&self) -> Option<usize> {
        match self {
            Self::Transformer(config) => (config.position == Position::Learned).then_some(config.positions),
            Self::Recurrent(_) | Self::StateSpace(_) => None,
            _ => Some(self.n()),
        }
    }

    /// Whether it reads strings of `length` bits that begin at position `offset`; the error says which it reads.
    pub fn check_length(&self, length: usize, offset: usize) -> Result<(), NnError> {
        let problem = match (self, self.positions()) {
            (Self::Mlp(_) | Self::EncoderDecoder(_), Some(n)) if length != n || offset != 0 => {
                format!("the network reads strings of {n} bits, these have {length}")
            }
            (_, Some(positions)) if length.saturating_add(offset) > positions => match offset {
                0 => format!("the network reads strings of up to {positions} bits, these have {length}"),
                _ => format!(
                    "the network has {positions} positions, and strings of {length} bits from position {offset} on need more"
                ),
            },
            _ => return Ok(()),
        };
        Err(NnError::Batch(problem))
    }

    /// Whether it has norms, so that there is a blowup.
    pub fn has_norms(&self) -> bool {
        match self {
            Self::Encoder(_) | Self::EncoderDecoder(_) => true,
            Self::Transformer(config) => config.variant.norm != Normalisation::None,
            Self::StateSpace(config) => config.variant.norm != Normalisation::None,
            Self::Mlp(_) | Self::Recurrent(_) => false,
        }
    }

    /// The weights a run of this seed starts from.
    pub fn initial_weights(&self, seed: u64) -> Result<Weights, NnError> {
        Ok(self.build()?.1.draw(seed))
    }

    /// Names and shapes of the weights, all zero: what [`Weights::load`] needs.
    pub fn empty_weights(&self) -> Result<Weights, NnError> {
        Ok(self.build()?.1.empty())
    }

    /// The weights in the bytes of a safetensors file; a network that the file is too short for is refused before memory is asked for.
    pub fn read_weights(&self, bytes: &[u8]) -> Result<Weights, NnError> {
        self.build()?.1.read(bytes)
    }

    /// The network's layers, and the list of their parameters.
    pub(crate) fn build(&self) -> Result<(Body, ParamList), NnError> {
        self.check()?;
        Ok(ParamList::of(|params| Body::new(self, params)))
    }
}

/// Whether a parameter is a positional embedding, which weight noise and norms leave out: `pos` and `..._pos` of our encoders,
/// `pos_embedding` and `pos_embed` of vision transformers, `position_embeddings` of RoBERTa and `wpe` of GPT-2, at any depth of a network.
pub fn is_positional(name: &str) -> bool {
    let last = name.strip_suffix(".weight").unwrap_or(name).rsplit('.').next().unwrap_or(name);
    matches!(last, "pos" | "pos_embedding" | "pos_embed" | "position_embeddings" | "wpe") || last.ends_with("_pos")
}

/// A network with its weights on a device, for prediction.
pub struct Network {
    architecture: Architecture,
    weights: Weights,
    body: Body,
    parameters: Parameters,
}

impl Network {
    /// Put a network on a device.
    pub fn new(architecture: &Architecture, weights: Weights, device: &Device) -> Result<Self, NnError> {
        let (body, list) = architecture.build()?;
        list.check(&weights)?;
        let parameters = Parameters::upload(&weights, list.leaves(), device, Autodiff::Off);
        Ok(Self { architecture: architecture.clone(), weights, body, parameters })
    }

    /// The same network with other weights.
    pub fn with_weights(&self, weights: Weights) -> Result<Self, NnError> {
        Self::new(&self.architecture, weights, self.parameters.device())
    }

    /// What the network is.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Its weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The outputs on a batch, row-major [rows, outputs]. The encoder-decoder is teacher-forced: each output is computed from the
    /// true outputs before it.
    pub fn predict<'a>(&self, strings: impl Into<Placed<'a>>) -> Result<Vec<f32>, NnError> {
        let strings = check_strings(&self.architecture, strings.into())?;
        to_vec(self.body.forward(&self.parameters, strings, &mut None)?)
    }

    /// [`Network::predict`] in f64, for devices that compute in f64.
    pub fn predict_f64<'a>(&self, strings: impl Into<Placed<'a>>) -> Result<Vec<f64>, NnError> {
        let strings = check_strings(&self.architecture, strings.into())?;
        to_vec(self.body.forward(&self.parameters, strings, &mut None)?)
    }

    /// The outputs, and the normalisation factors of every LayerNorm in the order they are applied.
    pub fn predict_with_norms<'a>(
        &self,
        strings: impl Into<Placed<'a>>,
    ) -> Result<(Vec<f32>, Vec<NormFactors>), NnError> {
        let strings = check_strings(&self.architecture, strings.into())?;
        let mut norms = Vec::new();
        let outputs = self.body.forward(&self.parameters, strings, &mut Some(&mut norms))?;
        Ok((to_vec(outputs)?, norms))
    }

    /// The outputs when the network writes the scratchpad itself, row-major [rows, outputs]: each output, cut at 1/2, is the
    /// decoder's next token. Other networks have no scratchpad; their outputs are those of [`Network::predict`].
    pub fn decode(&self, strings: &Bits) -> Result<Vec<f32>, NnError> {
        check_strings(&self.architecture, strings.into())?;
        match &self.body {
            Body::EncoderDecoder(body) => body.decode(&self.parameters, strings),
            _ => self.predict(strings),
        }
    }
}

/// The layers of any network.
pub(crate) enum Body {
    Encoder(Box<Encoder>),
    EncoderDecoder(Box<EncoderDecoder>),
    Mlp(Mlp),
    Recurrent(Recurrent),
}

impl Body {
    fn new(architecture: &Architecture, params: Scope) -> Self {
        match architecture {
            Architecture::Encoder(config) => Self::Encoder(Box::new(Encoder::new(config, params))),
            Architecture::EncoderDecoder(config) => Self::EncoderDecoder(Box::new(EncoderDecoder::new(config, params))),
            Architecture::Transformer(config) => Self::Encoder(Box::new(Encoder::transformer(config, params))),
            Architecture::StateSpace(config) => Self::Encoder(Box::new(Encoder::state_space(config, params))),
            Architecture::Mlp(config) => Self::Mlp(Mlp::new(config, params)),
            Architecture::Recurrent(config) => Self::Recurrent(Recurrent::new(config, params)),
        }
    }

    /// strings [batch, n] -> [batch, outputs]
    pub(crate) fn forward(
        &self,
        p: &Parameters,
        strings: Placed,
        recorder: &mut Recorder,
    ) -> Result<Tensor<2>, NnError> {
        match self {
            Self::Encoder(body) => body.forward(p, strings, recorder),
            Self::EncoderDecoder(body) => body.forward(p, strings.strings, recorder),
            Self::Mlp(body) => Ok(body.forward(p, strings.strings)),
            Self::Recurrent(body) => Ok(body.forward(p, strings.strings)),
        }
    }
}

/// These strings, if the network reads them.
pub(crate) fn check_strings<'a>(architecture: &Architecture, strings: Placed<'a>) -> Result<Placed<'a>, NnError> {
    architecture.check_length(strings.strings.n(), strings.offset)?;
    match strings.strings.rows() {
        0 => Err(NnError::Batch("it has no strings".into())),
        _ => Ok(strings),
    }
}

#[cfg(test)]
mod tests {
    use super::is_positional;

    #[test]
    fn positional_embeddings_are_known_by_name() {
        let positional = [
            "pos.weight",
            "dec_pos.weight",
            "pos_embedding",
            "pos_embed",
            "embeddings.position_embeddings.weight",
            "wpe.weight",
        ];
        assert!(positional.into_iter().all(is_positional));
        let others = ["tok.weight", "head.bias", "position", "layers.0.weight", "positions.weight", "cls_token"];
        assert!(!others.into_iter().any(is_positional));
    }
}
