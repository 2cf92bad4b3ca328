//! Tokens by the `tokenizer.json` that lies beside a Hugging Face model.

use std::path::Path;
use std::sync::Arc;

use tokenizers::utils::truncation::TruncationParams;
use tokenizers::{EncodeInput, Tokenizer};

use super::{PairEncoder, Pairs};
use crate::{FileError, FileResult};

/// Fewer tokens than this leave no room for the special ones.
const LEAST: usize = 5;

/// A tokeniser as its file describes it, special tokens included.
#[derive(Clone)]
pub struct FileTokeniser {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    /// A `tokenizer.json`.
    File(Box<Tokenizer>),
    /// That of our own networks, and how many tokens a text has at most.
    Own(Arc<PairEncoder>, usize),
}

impl FileTokeniser {
    /// Reads `tokenizer.json`; texts are cut to at most `longest` tokens, and never padded, whatever the file says.
    pub fn open(path: &Path, longest: usize) -> FileResult<Self> {
        let wrong = |problem: String| FileError::new(path, problem);
        if longest < LEAST {
            return Err(wrong(format!("a network of at most {longest} tokens has no room for texts")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let tokenizer: Result<Tokenizer, _> = text.parse();
        let mut tokenizer = tokenizer.map_err(|error| wrong(format!("is not a tokenizer.json: {error}")))?;
        let side = tokenizer.get_truncation().map(|own| own.direction).unwrap_or_default();
        let cut = TruncationParams { max_length: longest, direction: side, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(cut)).map_err(|error| wrong(error.to_string()))?;
        tokenizer.with_padding(None);
        Ok(Self { kind: Kind::File(Box::new(tokenizer)) })
    }

    /// The tokens of our own networks, each text cut to at most `longest`.
    pub fn of_encoder(encoder: PairEncoder, longest: usize) -> Self {
        Self { kind: Kind::Own(Arc::new(encoder), longest) }
    }

    /// How many different tokens there are, those added to the vocabulary included.
    pub fn vocabulary(&self) -> usize {
        match &self.kind {
            Kind::File(tokenizer) => tokenizer.get_vocab_size(true),
            Kind::Own(encoder, _) => encoder.vocabulary(),
        }
    }

    /// The tokens of a text, or of two.
    pub fn encode(&self, first: &str, second: Option<&str>) -> Result<Vec<u32>, String> {
        let input: EncodeInput = match second {
            Some(second) => (first, second).into(),
            None => first.into(),
        };
        let tokenizer = match &self.kind {
            Kind::File(tokenizer) => tokenizer,
            Kind::Own(encoder, longest) => {
                let texts = vec![(first.to_string(), second.map(String::from))];
                let encoded = encoder.encode(&Pairs { texts, labels: vec![0] }, *longest)?;
                return Ok(encoded.ids.concat());
            }
        };
        let encoded = tokenizer.encode(input, true).map_err(|error| error.to_string())?;
        Ok(encoded.get_ids().to_vec())
    }
}
