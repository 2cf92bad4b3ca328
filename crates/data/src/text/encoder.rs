//! Byte-level BPE: from texts to the tokens of RoBERTa or GPT-2, through Hugging Face's `tokenizers`.

use super::Pairs;
use crate::{FileError, FileResult};
use ahash::AHashMap;
use std::collections::HashMap;
use std::path::Path;
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer};

/// Whose numbering of tokens; the pieces and merges are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// `roberta_vocab.json` (or `vocab.json`): 50,265 tokens. A pair is `<s> a </s></s> b </s>`, a sentence `<s> a </s>`.
    Roberta,
    /// `encoder.json` (or `vocab.json`): 50,257 tokens. A pair is `a <|endoftext|> b <|endoftext|>`, a sentence `a <|endoftext|>`.
    Gpt2,
}

impl Vocabulary {
    /// Names its file may have.
    fn files(self) -> [&'static str; 2] {
        match self {
            Self::Roberta => ["roberta_vocab.json", "vocab.json"],
            Self::Gpt2 => ["encoder.json", "vocab.json"],
        }
    }

    /// Tokens that a text may name.
    fn special(self) -> &'static [&'static str] {
        match self {
            Self::Roberta => &["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
            Self::Gpt2 => &["<|endoftext|>"],
        }
    }

    /// The tokens before the first text, between the two, and at the end.
    fn frame(self) -> [&'static [&'static str]; 3] {
        match self {
            Self::Roberta => [&["<s>"], &["</s>", "</s>"], &["</s>"]],
            Self::Gpt2 => [&[], &["<|endoftext|>"], &["<|endoftext|>"]],
        }
    }
}

/// Texts as tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The tokens of each row, without padding.
    pub ids: Vec<Vec<u32>>,
    /// How many rows were too long and lost tokens.
    pub truncated: usize,
}

/// Turns texts into tokens.
pub struct PairEncoder {
    tokenizer: Tokenizer,
    /// The tokens before the first text, between the two, and at the end.
    frame: [Vec<u32>; 3],
    size: usize,
}

impl PairEncoder {
    /// The encoder whose vocabulary and merges (`vocab.bpe` or `merges.txt`) lie in a folder.
    pub fn open(folder: &Path, vocabulary: Vocabulary) -> FileResult<Self> {
        let find = |names: [&str; 2]| {
            names.iter().map(|name| folder.join(name)).find(|path| path.is_file()).ok_or_else(|| {
                FileError::new(folder, format!("there is no {}, which tokens are made with", names.join(" or ")))
            })
        };
        Self::read(&find(vocabulary.files())?, &find(["vocab.bpe", "merges.txt"])?, vocabulary)
    }

    /// The encoder of a vocabulary (JSON: each piece and its number) and of its merges (one a line, the first learnt first).
    pub fn read(numbers: &Path, merges: &Path, vocabulary: Vocabulary) -> FileResult<Self> {
        let wrong = |problem: String| FileError::new(numbers, problem);
        let readable = |path: &Path| {
            let text = std::fs::read_to_string(path);
            text.map_err(|error| FileError::new(path, format!("cannot be read: {error}")))
        };
        let pieces: HashMap<String, u32> = serde_json::from_str(&readable(numbers)?).map_err(|error| {
            wrong(format!("is not a vocabulary, a JSON object of pieces and their numbers: {error}"))
        })?;
        let size = pieces.len();
        if let Some((piece, number)) = pieces.iter().find(|(_, number)| **number as usize >= size) {
            return Err(wrong(format!("'{piece}' has the number {number}, but there are {size} pieces")));
        }
        let number = |piece: &&str| pieces.get(*piece).copied().ok_or_else(|| wrong(format!("has no piece '{piece}'")));
        let part = |pieces: &[&str]| pieces.iter().map(number).collect::<FileResult<Vec<u32>>>();
        let [start, middle, end] = vocabulary.frame();
        let frame = [part(start)?, part(middle)?, part(end)?];
        let merges = read_merges(&readable(merges)?).map_err(|problem| FileError::new(merges, problem))?;
        let bpe = BPE::builder().vocab_and_merges(pieces.into_iter().collect::<Pieces>(), merges).build();
        let bpe = bpe.map_err(|error| wrong(format!("does not fit the merges: {error}")))?;
        let mut tokenizer = Tokenizer::new(bpe);
        tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        let special = vocabulary.special().iter().filter(|piece| tokenizer.token_to_id(piece).is_some());
        let special: Vec<AddedToken> = special.map(|piece| AddedToken::from(*piece, true)).collect();
        tokenizer.add_special_tokens(&special);
        Ok(Self { tokenizer, frame, size })
    }

    /// How many tokens there are: what a network's embedding must have rows for.
    pub fn vocabulary(&self) -> usize {
        self.size
    }

    /// What a token looks like; bytes that are not plain letters are shown by the letters byte-level BPE gives them.
    pub fn piece(&self, id: u32) -> Option<String> {
        self.tokenizer.id_to_token(id)
    }

    /// The tokens of texts, each row of at most `longest` tokens. Of a pair that is too long the longer text loses tokens at its end, then
    /// both, as in `tokenizers`.
    pub fn encode(&self, pairs: &Pairs, longest: usize) -> Result<Encoded, String> {
        let [start, middle, end] = &self.frame;
        let framing = start.len() + middle.len() + end.len();
        if longest < framing + 2 {
            return Err(format!(
                "a pair has {framing} tokens that frame it: at most {longest} in all leaves no room for texts"
            ));
        }
        let mut texts: Vec<&str> = Vec::new();
        for (first, second) in &pairs.texts {
            texts.push(first);
            texts.extend(second.as_deref());
        }
        let tokens = self.tokenizer.encode_batch_fast(texts, false).map_err(|error| error.to_string())?;
        let mut tokens = tokens.iter().map(|tokens| tokens.get_ids());
        let mut next = || tokens.next().unwrap_or_default();
        let mut encoded = Encoded::default();
        for (_, second) in &pairs.texts {
            let first = next();
            let row = match second {
                Some(_) => {
                    let second = next();
                    let (keep, keep_second) = fit(first.len(), second.len(), longest - framing);
                    encoded.truncated += usize::from(keep + keep_second < first.len() + second.len());
                    [start, &first[..keep], middle, &second[..keep_second], end].concat()
                }
                None => {
                    let keep = first.len().min(longest - start.len() - end.len());
                    encoded.truncated += usize::from(keep < first.len());
                    [start, &first[..keep], end].concat()
                }
            };
            encoded.ids.push(row);
        }
        Ok(encoded)
    }
}

type Pieces = AHashMap<String, u32>;

/// The merges of a file: two pieces a line, after a line that may tell the version.
fn read_merges(text: &str) -> Result<Vec<(String, String)>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with("#version"));
    let merge = |(index, line): (usize, &str)| match line.split(' ').collect::<Vec<_>>()[..] {
        [left, right] => Ok((left.to_string(), right.to_string())),
        _ => Err(format!("line {}: a merge is two pieces with a space between them", index + 1)),
    };
    lines.map(merge).collect()
}

/// How many tokens of a pair's texts stay when there is room for `room`: the shorter one whole if it takes less than half.
fn fit(first: usize, second: usize, room: usize) -> (usize, usize) {
    let (short, long) = (first.min(second), first.max(second));
    let (short, long) = match short + long <= room {
        true => (short, long),
        false if short <= room / 2 => (short, room - short),
        false => (room / 2, room - room / 2),
    };
    if first <= second { (short, long) } else { (long, short) }
}
