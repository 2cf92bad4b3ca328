//! The nudges by name: what settings say, and what a command can list.

use std::fmt;
use std::str::FromStr;

use pudica_boolean::did_you_mean;
use serde::{Deserialize, Serialize};

/// What is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// Images: values [channels, height, width].
    Images,
    /// Texts: sequences of tokens with embeddings.
    Texts,
    /// Strings of zeros and ones.
    Bits,
    /// Sequences of tokens of a small vocabulary.
    Tokens,
    /// Pairs of numbers, each with an embedding.
    Numbers,
    /// Not the inputs: the weights.
    Weights,
}

impl InputKind {
    /// As in a sentence: "images".
    pub fn name(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::Texts => "texts",
            Self::Bits => "bits",
            Self::Tokens => "tokens",
            Self::Numbers => "numbers",
            Self::Weights => "weights",
        }
    }
}

/// A nudge as settings name it (`measure.nudge`). What it does depends on what is touched: [`NUDGES`] has a row for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NudgeName {
    /// Normal noise.
    Noise,
    /// Something random in its place.
    Replace,
    /// Normal noise on an embedding.
    Embedding,
    /// The other value.
    Flip,
    /// Nothing is touched, nothing measured.
    None,
}

/// All names, in the order they are listed.
const NAMES: [(NudgeName, &str); 5] = [
    (NudgeName::Noise, "noise"),
    (NudgeName::Replace, "replace"),
    (NudgeName::Embedding, "embedding"),
    (NudgeName::Flip, "flip"),
    (NudgeName::None, "none"),
];

/// One nudge of one kind of input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NudgeEntry {
    /// Its name in settings.
    pub name: NudgeName,
    /// What is touched.
    pub touches: InputKind,
    /// The places where it can be touched.
    pub sites: &'static str,
    /// Its settings: their names and what they mean.
    pub parameters: &'static [(&'static str, &'static str)],
    /// What it does, in a sentence.
    pub meaning: &'static str,
}

const DRAWS: (&str, &str) = ("draws", "times each site is touched");
const PATCH: (&str, &str) = ("patch", "side of a patch in pixels, a divisor of the images' side");
const VARIANCE: (&str, &str) = ("variance", "variance of the noise, in the units the network takes");

/// All nudges there are.
pub static NUDGES: [NudgeEntry; 8] = [
    NudgeEntry {
        name: NudgeName::Noise,
        touches: InputKind::Images,
        sites: "patches, row by row",
        parameters: &[VARIANCE, PATCH, DRAWS],
        meaning: "Adds normal noise to every value of one patch.",
    },
    NudgeEntry {
        name: NudgeName::Replace,
        touches: InputKind::Images,
        sites: "patches, row by row",
        parameters: &[PATCH, DRAWS],
        meaning: "Replaces one patch by uniformly random pixels.",
    },
    NudgeEntry {
        name: NudgeName::Embedding,
        touches: InputKind::Texts,
        sites: "tokens, from the last to the first",
        parameters: &[VARIANCE, DRAWS],
        meaning: "Adds normal noise to the embedding of one token.",
    },
    NudgeEntry {
        name: NudgeName::Replace,
        touches: InputKind::Texts,
        sites: "words, from the last to the first",
        parameters: &[DRAWS],
        meaning: "Replaces one word by a uniformly random one of the vocabulary.",
    },
    NudgeEntry {
        name: NudgeName::Flip,
        touches: InputKind::Bits,
        sites: "bits",
        parameters: &[],
        meaning: "Flips one bit.",
    },
    NudgeEntry {
        name: NudgeName::Replace,
        touches: InputKind::Tokens,
        sites: "tokens",
        parameters: &[DRAWS],
        meaning: "Replaces one token by a uniformly random one of the vocabulary, possibly by itself.",
    },
    NudgeEntry {
        name: NudgeName::Embedding,
        touches: InputKind::Numbers,
        sites: "one: both numbers at once",
        parameters: &[("noise", "standard deviation of the noise")],
        meaning: "Adds normal noise to the embeddings of both numbers of a pair.",
    },
    NudgeEntry {
        name: NudgeName::Noise,
        touches: InputKind::Weights,
        sites: "one: all weights at once, without positional embeddings",
        parameters: &[("rho", "standard deviation of the noise on each weight"), DRAWS],
        meaning: "Adds normal noise to the weights.",
    },
];

impl NudgeName {
    /// The word in settings.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(name, _)| *name == self).map_or("", |(_, word)| word)
    }

    /// The words a setting may have where such inputs are touched: those of their nudges, and "none".
    pub fn words(kinds: &[InputKind]) -> Vec<&'static str> {
        let has = |name: NudgeName| NUDGES.iter().any(|nudge| nudge.name == name && kinds.contains(&nudge.touches));
        NAMES.iter().filter(|(name, _)| *name == NudgeName::None || has(*name)).map(|(_, word)| *word).collect()
    }

    /// Whether such inputs can be touched so; if not, why, and what can be done instead.
    pub fn check(self, kind: InputKind) -> Result<(), String> {
        let words = Self::words(&[kind]);
        match words.contains(&self.name()) {
            true => Ok(()),
            false => Err(format!("\"{self}\" is not for {}; they have {}", kind.name(), listed(&words))),
        }
    }
}

/// "a", "b" or "c".
fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

impl fmt::Display for NudgeName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for NudgeName {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        NAMES.iter().find(|(_, known)| *known == word).map(|(name, _)| *name).ok_or_else(|| {
            let words = NAMES.map(|(_, word)| word);
            format!("\"{word}\" is no nudge{}; there are {}", did_you_mean(word, words), listed(&words))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_word_and_has_a_row() {
        for (name, word) in NAMES {
            assert_eq!((word.parse(), name.to_string().as_str()), (Ok(name), word));
            assert_eq!(name == NudgeName::None, NUDGES.iter().all(|nudge| nudge.name != name));
        }
        let unique = |at: usize| {
            NUDGES[..at].iter().all(|other| (other.name, other.touches) != (NUDGES[at].name, NUDGES[at].touches))
        };
        assert!((0..NUDGES.len()).all(unique));
        assert!(NUDGES.iter().all(|nudge| nudge.meaning.ends_with('.') && !nudge.sites.is_empty()));
    }

    #[test]
    fn wrong_words_are_explained() {
        assert_eq!(NudgeName::words(&[InputKind::Images, InputKind::Texts]), ["noise", "replace", "embedding", "none"]);
        let problem = "nosie".parse::<NudgeName>().unwrap_err();
        assert!(problem.contains("did you mean 'noise'") && problem.contains("\"flip\" or \"none\""), "{problem}");
        assert_eq!(NudgeName::Embedding.check(InputKind::Texts), Ok(()));
        assert_eq!(NudgeName::None.check(InputKind::Images), Ok(()));
        let problem = NudgeName::Embedding.check(InputKind::Images).unwrap_err();
        assert_eq!(problem, "\"embedding\" is not for images; they have \"noise\", \"replace\" or \"none\"");
    }
}
