//! One face for all networks: strings in, numbers out.

use burn::tensor::Tensor;
use pudica_data::Bits;
use serde::{Deserialize, Serialize};

use crate::autodiff::Autodiff;
use crate::layers::{Recorder, to_vec};
use crate::networks::{Encoder, EncoderConfig, EncoderDecoder, EncoderDecoderConfig};
use crate::params::{ParamList, Scope};
use crate::{Device, NnError, NormFactors, Parameters, Weights};

/// What a network is, before it has weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Architecture {
    /// n bits to one number.
    Encoder(EncoderConfig),
    /// n bits to n numbers, one after the other: the scratchpad.
    EncoderDecoder(EncoderDecoderConfig),
}

impl Architecture {
    /// Whether such a network can be built.
    pub fn check(&self) -> Result<(), NnError> {
        match self {
            Self::Encoder(config) => config.check(),
            Self::EncoderDecoder(config) => config.check(),
        }
    }

    /// Bits in its strings.
    pub fn n(&self) -> usize {
        match self {
            Self::Encoder(config) => config.n,
            Self::EncoderDecoder(config) => config.n,
        }
    }

    /// Numbers it gives for each string.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Encoder(_) => 1,
            Self::EncoderDecoder(config) => config.n,
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
    pub fn predict(&self, strings: &Bits) -> Result<Vec<f32>, NnError> {
        check_strings(&self.architecture, strings)?;
        to_vec(self.body.forward(&self.parameters, strings, &mut None)?)
    }

    /// [`Network::predict`] in f64, for devices that compute in f64.
    pub fn predict_f64(&self, strings: &Bits) -> Result<Vec<f64>, NnError> {
        check_strings(&self.architecture, strings)?;
        to_vec(self.body.forward(&self.parameters, strings, &mut None)?)
    }

    /// The outputs, and the normalisation factors of every LayerNorm in the order they are applied.
    pub fn predict_with_norms(&self, strings: &Bits) -> Result<(Vec<f32>, Vec<NormFactors>), NnError> {
        check_strings(&self.architecture, strings)?;
        let mut norms = Vec::new();
        let outputs = self.body.forward(&self.parameters, strings, &mut Some(&mut norms))?;
        Ok((to_vec(outputs)?, norms))
    }

    /// The outputs when the network writes the scratchpad itself, row-major [rows, outputs]: each output, cut at 1/2, is the
    /// decoder's next token. An encoder has no scratchpad; its outputs are those of [`Network::predict`].
    pub fn decode(&self, strings: &Bits) -> Result<Vec<f32>, NnError> {
        check_strings(&self.architecture, strings)?;
        match &self.body {
            Body::Encoder(_) => self.predict(strings),
            Body::EncoderDecoder(body) => body.decode(&self.parameters, strings),
        }
    }
}

/// The layers of any network.
pub(crate) enum Body {
    Encoder(Box<Encoder>),
    EncoderDecoder(Box<EncoderDecoder>),
}

impl Body {
    fn new(architecture: &Architecture, params: Scope) -> Self {
        match architecture {
            Architecture::Encoder(config) => Self::Encoder(Box::new(Encoder::new(config, params))),
            Architecture::EncoderDecoder(config) => Self::EncoderDecoder(Box::new(EncoderDecoder::new(config, params))),
        }
    }

    /// strings [batch, n] -> [batch, outputs]
    pub(crate) fn forward(
        &self,
        p: &Parameters,
        strings: &Bits,
        recorder: &mut Recorder,
    ) -> Result<Tensor<2>, NnError> {
        match self {
            Self::Encoder(body) => body.forward(p, strings, recorder),
            Self::EncoderDecoder(body) => body.forward(p, strings, recorder),
        }
    }
}

pub(crate) fn check_strings(architecture: &Architecture, strings: &Bits) -> Result<(), NnError> {
    let (expected, found) = (architecture.n(), strings.n());
    if expected != found {
        return Err(NnError::Batch(format!("the network reads strings of {expected} bits, these have {found}")));
    }
    if strings.rows() == 0 {
        return Err(NnError::Batch("it has no strings".into()));
    }
    Ok(())
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
