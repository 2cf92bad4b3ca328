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

use crate::classifier::{Classifier, Parameters, Pass};
use crate::init::ParamSpec;
use crate::{Device, NnError};

pub use crate::attention::Attention;
pub use gpt2::Gpt2Config;
pub use lstm::LstmConfig;
pub use roberta::RobertaConfig;
pub use sequences::{Sequences, TextBatch, Touch};

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

impl TextConfig {
    /// Rows of the token embedding: ids must be below.
    pub fn vocabulary(&self) -> usize {
        match self {
            Self::Roberta(config) => config.vocabulary,
            Self::Gpt2(config) => config.vocabulary,
            Self::Lstm(config) => config.vocabulary,
        }
    }

    /// Width of a token's embedding: how many values a [`Touch`] has.
    pub fn width(&self) -> usize {
        match self {
            Self::Roberta(config) => config.d,
            Self::Gpt2(config) => config.d,
            Self::Lstm(config) => config.d,
        }
    }

    /// Tokens of the longest sequence it takes.
    pub fn longest(&self) -> usize {
        match self {
            Self::Roberta(config) => config.length,
            Self::Gpt2(config) => config.length,
            Self::Lstm(config) => config.length,
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

    const NATIVE_GRADIENTS: bool = true;

    fn check(&self) -> Result<(), NnError> {
        match self {
            Self::Roberta(config) => config.check(),
            Self::Gpt2(config) => config.check(),
            Self::Lstm(config) => config.check(),
        }
    }

    fn classes(&self) -> usize {
        match self {
            Self::Roberta(config) => config.classes,
            Self::Gpt2(config) => config.classes,
            Self::Lstm(config) => config.classes,
        }
    }

    fn params(&self) -> Vec<ParamSpec> {
        match self {
            Self::Roberta(config) => config.params(),
            Self::Gpt2(config) => config.params(),
            Self::Lstm(config) => config.params(),
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

    fn forward(&self, parameters: &Parameters, batch: TextBatch, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        match self {
            Self::Roberta(config) => config.forward(parameters, batch, pass),
            Self::Gpt2(config) => config.forward(parameters, batch, pass),
            Self::Lstm(config) => config.forward(parameters, batch, pass),
        }
    }
}
