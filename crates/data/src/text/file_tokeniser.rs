//! Tokens by the `tokenizer.json` that lies beside a Hugging Face model.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use pudica_boolean::{caught, shortened};
use serde_json::Value;
use tokenizers::utils::truncation::TruncationParams;
use tokenizers::{EncodeInput, PostProcessor, PostProcessorWrapper, Tokenizer};

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
        let tokenizer = careful(|| -> tokenizers::Result<Tokenizer> {
            let mut tokenizer: Tokenizer = text.parse()?;
            if repeats_a_text(&serde_json::to_value(tokenizer.get_post_processor())?) {
                return Err("its template has the same text more than once".into());
            }
            let added =
                |processor: &PostProcessorWrapper| processor.added_tokens(true).max(processor.added_tokens(false));
            let added = tokenizer.get_post_processor().map_or(0, added);
            if added >= longest {
                return Err(format!("it adds {added} tokens to every text, and the network takes {longest}").into());
            }
            let side = tokenizer.get_truncation().map(|own| own.direction).unwrap_or_default();
            let cut = TruncationParams { max_length: longest, direction: side, ..TruncationParams::default() };
            tokenizer.with_truncation(Some(cut))?;
            tokenizer.with_padding(None);
            Ok(tokenizer)
        });
        let tokenizer =
            tokenizer.map_err(|error| wrong(format!("is not a tokenizer.json that can be used: {error}")))?;
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
        let encoded = careful(|| tokenizer.encode(input, true))?;
        Ok(encoded.get_ids().to_vec())
    }
}

/// Whether a list of pieces, in a post-processor as JSON, has a text more than once. The library would put together every combination of the parts
/// that texts are cut into, which takes all memory.
fn repeats_a_text(processor: &Value) -> bool {
    match processor {
        Value::Array(pieces) => {
            let texts: Vec<_> = pieces.iter().filter_map(|piece| piece.get("Sequence")?.get("id")).collect();
            let repeats = texts.iter().enumerate().any(|(place, text)| texts[..place].contains(text));
            repeats || pieces.iter().any(repeats_a_text)
        }
        Value::Object(parts) => parts.values().any(repeats_a_text),
        _ => false,
    }
}

/// Calls `tokenizers`, which panics at some files that it should refuse.
fn careful<T, E: Display>(work: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    let sentence = |text: String| shortened(text.lines().next().unwrap_or_default(), 300);
    caught(work).map_err(sentence)?.map_err(|error| sentence(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files at which `tokenizers` panics.
    #[test]
    fn what_the_library_should_refuse_is_refused() {
        let with = |part: &str| {
            format!(
                r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
                "post_processor": null, "decoder": null, {part}
                "model": {{"type": "WordLevel", "vocab": {{"a": 0, "b": 1}}, "unk_token": "a"}}}}"#
            )
        };
        // A text thirty times: the combinations of its parts took gigabytes.
        let again = r#"{"Sequence": {"id": "A", "type_id": 0}}, "#.repeat(29);
        let repeated = with(&format!(
            r#""post_processor": {{"type": "TemplateProcessing", "single": [{{"Sequence": {{"id": "A", "type_id": 0}}}}],
            "pair": [{again}{{"Sequence": {{"id": "A", "type_id": 0}}}}, {{"Sequence": {{"id": "B", "type_id": 1}}}}], "special_tokens": {{}}}},"#
        ));
        let added = r#"{"SpecialToken": {"id": "b", "type_id": 0}}, "#.repeat(9);
        let template = |special: &str| {
            with(&format!(
                r#""post_processor": {{"type": "TemplateProcessing", "single": [{added}{{"Sequence": {{"id": "A", "type_id": 0}}}}],
                "pair": [{{"Sequence": {{"id": "A", "type_id": 0}}}}, {{"Sequence": {{"id": "B", "type_id": 1}}}}], "special_tokens": {{{special}}}}},"#
            ))
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        let open = |text: String| {
            std::fs::write(&path, text).unwrap();
            FileTokeniser::open(&path, 8)
        };
        assert_eq!(open(with("")).unwrap().encode("b", None).unwrap(), [1]);
        // A template of tokens that it does not have: read, and refused when it is to be filled.
        let refusal = open(template("")).unwrap().encode("b", None).unwrap_err();
        assert!(refusal.contains("no entry found"), "{refusal}");
        for (text, part) in [
            (repeated, "its template has the same text more than once"),
            (with(r#""decoder": {"type" "#), "tokenizer.json"),
            (with(r#""normalizer": {"type": "Precompiled"},"#), "precompiled_charsmap"),
            (
                template(r#""b": {"id": "b", "ids": [1], "tokens": ["b"]}"#),
                "it adds 9 tokens to every text, and the network takes 8",
            ),
        ] {
            let refusal = open(text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refusal.contains(part) && !refusal.contains('\n'), "{part}: {refusal}");
        }
    }
}
