//! Networks that classify sequences of tokens: one file for each.
//!
//! - [`Sequences`]: a batch of token sequences, each of its own length, some with noise on one embedding.
//! - [`TextConfig`]: RoBERTa (softmax or ReLU attention), GPT-2 or LSTM; a [`Classifier`].

mod gpt2;
mod layers;
mod lstm;
mod prefix;
mod recurrence;
mod roberta;
mod sequences;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::classifier::{Classifier, Pass};
use crate::layers::{at_least_one, check_heads};
use crate::params::Scope;
use crate::{Device, NnError, Parameters};

pub use crate::attention::Attention;
pub use gpt2::Gpt2Config;
pub use lstm::LstmConfig;
pub use roberta::RobertaConfig;
pub use sequences::{Sequences, TextBatch, Touch};

use gpt2::Gpt2;
use layers::Sizes;
use lstm::Lstm;
use roberta::Roberta;

/// A network on token sequences. In a recipe, `kind` names it and what is left out is the paper's: 4 layers, 8 heads, width 256,
/// sequences of at most 128 tokens, RoBERTa's vocabulary, two classes, dropout 0.1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TextConfig {
    /// A bidirectional transformer read at `<s>`.
    Roberta(RobertaConfig),
    /// A causal transformer read at the last token.
    Gpt2(Gpt2Config),
    /// A stack of LSTMs read at the last hidden state.
    Lstm(LstmConfig),
}

/// The layers of a [`TextConfig`].
pub enum TextNetwork {
    /// RoBERTa's.
    Roberta(Roberta),
    /// GPT-2's.
    Gpt2(Gpt2),
    /// The LSTM's.
    Lstm(Lstm),
}

impl TextConfig {
    /// Rows of the token embedding: ids must be below.
    pub fn vocabulary(&self) -> usize {
        self.sizes().vocabulary
    }

    /// Width of a token's embedding: how many values a [`Touch`] has.
    pub fn width(&self) -> usize {
        self.sizes().d
    }

    /// Tokens of the longest sequence it takes.
    pub fn longest(&self) -> usize {
        self.sizes().length
    }

    fn sizes(&self) -> Sizes {
        match *self {
            Self::Roberta(RobertaConfig { vocabulary, length, d, layers, classes, dropout, .. })
            | Self::Gpt2(Gpt2Config { vocabulary, length, d, layers, classes, dropout, .. })
            | Self::Lstm(LstmConfig { vocabulary, length, d, layers, classes, dropout }) => {
                Sizes { vocabulary, length, d, layers, classes, dropout }
            }
        }
    }

    /// Refuses tokens of another vocabulary than the one the network was made for.
    pub fn check_vocabulary(&self, tokens: usize) -> Result<(), NnError> {
        let rows = self.vocabulary();
        if tokens == rows {
            return Ok(());
        }
        let problem = format!(
            "the network has embeddings of {rows} tokens, the tokeniser's vocabulary has {tokens}: \
             use the vocabulary the network was made for, or set this to {tokens}"
        );
        Err(NnError::setting("model.vocabulary", problem))
    }
}

impl Classifier for TextConfig {
    type Input = Sequences;
    type Batch = TextBatch;
    type Network = TextNetwork;

    const NATIVE_GRADIENTS: bool = true;

    fn check(&self) -> Result<(), NnError> {
        self.sizes().check()?;
        match *self {
            Self::Roberta(RobertaConfig { d, heads, ff, .. }) | Self::Gpt2(Gpt2Config { d, heads, ff, .. }) => {
                check_heads(d, heads)?;
                at_least_one("model.ff", ff)
            }
            Self::Lstm(_) => Ok(()),
        }
    }

    fn classes(&self) -> usize {
        self.sizes().classes
    }

    fn network(&self, params: Scope) -> TextNetwork {
        match self {
            Self::Roberta(config) => TextNetwork::Roberta(Roberta::new(config, params)),
            Self::Gpt2(config) => TextNetwork::Gpt2(Gpt2::new(config, params)),
            Self::Lstm(config) => TextNetwork::Lstm(Lstm::new(config, params)),
        }
    }

    fn count(&self, input: &Sequences) -> usize {
        input.ids.len()
    }

    fn upload(&self, input: &Sequences, device: &Device) -> Result<TextBatch, NnError> {
        input.check(self.vocabulary(), self.longest(), self.width())?;
        Ok(match self {
            Self::Roberta(_) | Self::Gpt2(_) => input.padded(self.longest(), device),
            Self::Lstm(_) => input.packed(device),
        })
    }

    #[cfg(feature = "torch")]
    fn tensors(batch: &TextBatch) -> Option<Vec<tch::Tensor>> {
        batch.tensors()
    }

    fn forward(
        network: &TextNetwork,
        parameters: &Parameters,
        batch: TextBatch,
        pass: &mut Pass,
    ) -> Result<Tensor<2>, NnError> {
        match network {
            TextNetwork::Roberta(network) => network.forward(parameters, batch, pass),
            TextNetwork::Gpt2(network) => network.forward(parameters, batch, pass),
            TextNetwork::Lstm(network) => network.forward(parameters, batch, pass),
        }
    }
}
