//! Texts, by their words or by their tokens.

use std::collections::BTreeSet;

use pudica_data::Stream;
use pudica_model::Input;
use pudica_probe::{EmbeddingNoise, Nudge, Sequence};

use super::{Material, Setting, Touch, Touching, boxed};
use crate::MeasureResult;
use crate::results::Sites;

/// Texts whose words make the vocabulary of replacements, at most.
const TEXTS_OF_WORDS: usize = 10_000;

/// The nudge of words a setting means.
pub fn touching(setting: &Setting, material: &Material) -> MeasureResult<Touching> {
    let change = match setting.kind.name {
        "word-replace" => {
            let mut words = BTreeSet::new();
            for index in 0..material.inputs.about().count.min(TEXTS_OF_WORDS) {
                let input = material.inputs.read(index)?.input;
                words.extend(split(&input).into_iter().map(|word| word.text.to_string()));
            }
            match words.len() {
                0 | 1 => return Err(setting.refuse("the inputs have fewer than two different words to replace one by")),
                _ => Change::Replace(words.into_iter().collect()),
            }
        }
        "word-delete" => Change::Delete,
        "word-mask" => Change::Mask(setting.value("mask").to_string()),
        "word-swap" => Change::Swap,
        _ => Change::Misspell,
    };
    Ok(boxed(Words { change }, Sites::Positions { from_end: false }, setting.draws()?))
}

/// The nudge of tokens a setting means.
pub fn tokens(setting: &Setting, material: &Material) -> MeasureResult<Touching> {
    let draws = setting.draws()?;
    if setting.kind.name == "embedding-noise" {
        let Some(width) = material.embedding_width else {
            return Err(setting.refuse("no model here has embeddings that can be reached"));
        };
        let noise = EmbeddingNoise { variance: setting.positive("variance")?, width };
        return Ok(boxed(Embedded(noise), Sites::Positions { from_end: true }, draws));
    }
    let vocabulary = match (setting.value("vocabulary"), material.vocabulary) {
        ("", Some(known)) => known,
        ("", None) => return Err(setting.refuse("say how many tokens there are: token-replace:vocabulary=257")),
        _ => setting.whole("vocabulary", u32::MAX as usize)?,
    };
    Ok(boxed(TokenReplace { vocabulary: vocabulary as u64 }, Sites::Positions { from_end: false }, draws))
}

/// The words of a text, or of both of a pair, in order.
pub fn words(input: &Input) -> Vec<String> {
    match input {
        Input::Tokens(sequence) => sequence.ids.iter().map(u32::to_string).collect(),
        _ => split(input).into_iter().map(|word| word.text.to_string()).collect(),
    }
}

/// A word and where it stands.
struct Word<'a> {
    /// Whether it is of the second text of a pair.
    second: bool,
    /// Where it begins, in bytes.
    start: usize,
    text: &'a str,
}

fn split(input: &Input) -> Vec<Word<'_>> {
    let Input::Text(first, second) = input else { return Vec::new() };
    let mut found = Vec::new();
    for (text, second) in [(Some(first), false), (second.as_ref(), true)] {
        let Some(text) = text else { continue };
        for word in text.split_whitespace() {
            // A part of a text lies at a known place in it.
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            found.push(Word { second, start, text: word });
        }
    }
    found
}

enum Change {
    Replace(Vec<String>),
    Delete,
    Mask(String),
    Swap,
    Misspell,
}

struct Words {
    change: Change,
}

impl Touch for Words {
    fn sites(&self, input: &Input) -> usize {
        let words = split(input);
        match self.change {
            Change::Swap => words.windows(2).filter(|pair| pair[0].second == pair[1].second).count(),
            _ => words.len(),
        }
    }

    fn apply(&self, input: &Input, site: usize, noise: &mut Stream) -> Input {
        let words = split(input);
        if let Change::Swap = self.change {
            let mut pairs = words.windows(2).filter(|pair| pair[0].second == pair[1].second);
            let Some([one, next]) = pairs.nth(site) else { return input.clone() };
            // The later one first, so that the place of the earlier one stays.
            let swapped = replaced(input, next.second, next.start, next.text.len(), one.text);
            return replaced(&swapped, one.second, one.start, one.text.len(), next.text);
        }
        let Some(word) = words.get(site) else { return input.clone() };
        let new = match &self.change {
            Change::Replace(known) => known[noise.below(known.len() as u64) as usize].clone(),
            Change::Mask(mask) => mask.clone(),
            Change::Misspell => misspelt(word.text, noise),
            Change::Delete | Change::Swap => String::new(),
        };
        replaced(input, word.second, word.start, word.text.len(), &new)
    }
}

/// A text with a part of it replaced.
fn replaced(input: &Input, second: bool, start: usize, length: usize, by: &str) -> Input {
    let Input::Text(first, other) = input else { return input.clone() };
    let change = |text: &String| format!("{}{by}{}", &text[..start], &text[start + length..]);
    match (second, other) {
        (true, Some(other)) => Input::Text(first.clone(), Some(change(other))),
        _ => Input::Text(change(first), other.clone()),
    }
}

/// A word with one letter doubled, dropped, replaced or exchanged with the next. A word of one letter is replaced or doubled.
fn misspelt(word: &str, noise: &mut Stream) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = noise.below(letters.len() as u64) as usize;
    match (noise.below(4), letters.len()) {
        (0, 2..) => {
            letters.remove(at);
        }
        (1, 2..) => {
            let next = if at + 1 < letters.len() { at + 1 } else { at - 1 };
            letters.swap(at, next);
        }
        (2, _) => letters.insert(at, letters[at]),
        _ => letters[at] = char::from(b'a' + noise.below(26) as u8),
    }
    letters.into_iter().collect()
}

struct Embedded(EmbeddingNoise);

impl Touch for Embedded {
    fn sites(&self, input: &Input) -> usize {
        if let Input::Tokens(sequence) = input { self.0.sites(sequence) } else { 0 }
    }

    fn apply(&self, input: &Input, site: usize, noise: &mut Stream) -> Input {
        match input {
            Input::Tokens(sequence) => Input::Tokens(self.0.apply(sequence, site, noise)),
            other => other.clone(),
        }
    }
}

struct TokenReplace {
    vocabulary: u64,
}

impl Touch for TokenReplace {
    fn sites(&self, input: &Input) -> usize {
        if let Input::Tokens(sequence) = input { sequence.ids.len() } else { 0 }
    }

    fn apply(&self, input: &Input, site: usize, noise: &mut Stream) -> Input {
        let Input::Tokens(Sequence { ids, touch }) = input else { return input.clone() };
        let mut ids = ids.clone();
        ids[site] = noise.below(self.vocabulary) as u32;
        Input::Tokens(Sequence { ids, touch: touch.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(change: Change, site: usize) -> Input {
        let input = Input::Text("one  two".into(), Some("drei vier fünf".into()));
        Touch::apply(&Words { change }, &input, site, &mut Stream::new(0, "test", 0))
    }

    fn pair(first: &str, second: &str) -> Input {
        Input::Text(first.into(), Some(second.into()))
    }

    #[test]
    fn one_word_changes_and_the_rest_stays() {
        let input = pair("one  two", "drei vier fünf");
        assert_eq!(Touch::sites(&Words { change: Change::Delete }, &input), 5);
        assert_eq!(Touch::sites(&Words { change: Change::Swap }, &input), 3);
        assert_eq!(touched(Change::Delete, 0), pair("  two", "drei vier fünf"));
        assert_eq!(touched(Change::Mask("#".into()), 4), pair("one  two", "drei vier #"));
        assert_eq!(touched(Change::Swap, 0), pair("two  one", "drei vier fünf"));
        assert_eq!(touched(Change::Swap, 2), pair("one  two", "drei fünf vier"));
        assert_eq!(touched(Change::Replace(vec!["x".to_string()]), 2), pair("one  two", "x vier fünf"));
        assert_eq!(words(&input), ["one", "two", "drei", "vier", "fünf"]);
    }

    #[test]
    fn a_typo_is_one_letter_away() {
        let mut noise = Stream::new(1, "test", 0);
        for word in ["a", "fünf", "transformer"] {
            for _ in 0..50 {
                let found = misspelt(word, &mut noise);
                let (before, after) = (word.chars().count(), found.chars().count());
                assert!(before.abs_diff(after) <= 1 && after > 0, "{word} {found}");
            }
        }
    }
}
