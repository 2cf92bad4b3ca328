//! Networks on sequences of tokens.

use std::collections::BTreeMap;

use pudica_data::text::FileTokeniser;
use pudica_nn::classifier::Model as Network;
use pudica_nn::text::{Sequences, TextConfig, Touch};
use pudica_nn::{Device, Weights};
use pudica_probe::{Sequence, TokenTouch};

use super::{Door, Label, Native, Refusal};
use crate::{Input, ModelError, ModelResult, Takes};

/// Texts and tokens on their way to a network.
#[derive(Clone, Default)]
pub struct TextDoor {
    /// What makes tokens of texts; without it, the network takes tokens only.
    pub tokeniser: Option<FileTokeniser>,
    /// A token that is no part of a sequence where it stands at its end: GPT-2's classifiers read the last token before padding.
    pub padding: Option<u32>,
}

/// A network on tokens, and on texts where there is a tokeniser.
pub fn texts(
    network: &TextConfig,
    weights: &Weights,
    buffers: &Weights,
    door: TextDoor,
    device: &Device,
    label: Label,
) -> ModelResult<Native<TextDoor>> {
    Native::new(network, weights, buffers, device, door, label)
}

impl TextDoor {
    /// An input as tokens, some of which may be touched.
    fn sequence(&self, input: &Input) -> Result<Sequence, Refusal> {
        let mut sequence = match (input, &self.tokeniser) {
            (Input::Tokens(sequence), _) => sequence.clone(),
            (Input::Text(first, second), Some(tokeniser)) => {
                let ids = tokeniser.encode(first, second.as_deref()).map_err(ModelError::Other)?;
                Sequence { ids, touch: None }
            }
            _ => return Err(Refusal::kind(input)),
        };
        if let Some(padding) = self.padding {
            let end = sequence.ids.iter().rposition(|id| *id != padding).map_or(1, |last| last + 1);
            sequence.ids.truncate(end);
            // What the network does not read cannot be touched.
            sequence.touch = sequence.touch.filter(|touch| touch.position < end);
        }
        Ok(sequence)
    }

    fn sequences(&self, inputs: &[Input]) -> Result<Vec<Sequence>, Refusal> {
        inputs.iter().map(|input| self.sequence(input)).collect()
    }
}

impl Door for TextDoor {
    type Network = TextConfig;

    fn takes(&self, network: &TextConfig) -> Takes {
        match self.tokeniser {
            Some(_) => Takes::Texts,
            None => Takes::Tokens { length: None, vocabulary: Some(network.vocabulary()) },
        }
    }

    fn batch(&self, _: &TextConfig, inputs: &[Input]) -> Result<Sequences, Refusal> {
        Ok(batch(self.sequences(inputs)?))
    }

    /// What causal networks compute before a touched token is computed once for all touches of a sequence.
    fn scores(&self, network: &Network<TextConfig>, inputs: &[Input]) -> Result<Vec<f32>, Refusal> {
        let sequences = self.sequences(inputs)?;
        let causal = !matches!(network.classifier(), TextConfig::Roberta(_));
        if causal && sequences.iter().all(|sequence| sequence.touch.is_some()) {
            let (mut base, mut places, mut touches) = (Vec::new(), BTreeMap::new(), Vec::new());
            for Sequence { ids, touch } in &sequences {
                let place = *places.entry(ids).or_insert_with(|| {
                    base.push(ids.clone());
                    base.len() - 1
                });
                touches.extend(touch.clone().map(|touch| (place, for_network(touch))));
            }
            return Ok(network.touched_scores(&Sequences::new(base), &touches).map_err(ModelError::from)?);
        }
        Ok(network.predict(&batch(sequences)).map_err(ModelError::from)?)
    }

    fn tokens(&self, input: &Input) -> Option<Result<Vec<u32>, Refusal>> {
        Some(self.sequence(input).map(|sequence| sequence.ids))
    }

    fn embedding_width(&self, network: &TextConfig) -> Option<usize> {
        Some(network.width())
    }
}

/// Sequences as networks take them.
fn batch(sequences: Vec<Sequence>) -> Sequences {
    let (ids, touches) = sequences.into_iter().map(|own| (own.ids, own.touch.map(for_network))).unzip();
    Sequences { ids, touches }
}

/// A touch as networks take it.
fn for_network(TokenTouch { position, noise }: TokenTouch) -> Touch {
    Touch { position, noise }
}
