//! Theorem 7: simulating an automaton in one go may be sensitive to every symbol; with a scratchpad no step is.
//!
//! - [`Automaton`]: states and transitions; parity, modular counters, or a user's own as TOML.
//! - [`sensitivities`]: how sensitive each step is, with and without a scratchpad, exactly, for any length.

mod sensitivity;
mod table;

pub use sensitivity::{StepSensitivity, sensitivities};

use crate::{Result, TheoryError};

/// The most states a modular counter may have; pairs of states are followed.
const LARGEST_MODULUS: usize = 1000;

/// A finite automaton.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Automaton {
    /// What it is called.
    pub name: String,
    /// The symbols it reads; at least two.
    pub alphabet: Vec<String>,
    /// Its states.
    pub states: Vec<String>,
    /// The state it begins in.
    pub start: usize,
    /// For each state, whether a string ending there is accepted.
    pub accepting: Vec<bool>,
    /// The next state for each state and symbol: `[states][symbols]`.
    pub next: Vec<Vec<usize>>,
}

impl Automaton {
    /// Counts ones modulo `modulus`; accepts the count 0. Parity is the count modulo 2, accepting the count 1.
    pub fn counter(modulus: usize) -> Result<Self> {
        if !(2..=LARGEST_MODULUS).contains(&modulus) {
            let problem = format!("a counter counts modulo 2 to {LARGEST_MODULUS}, not modulo {modulus}");
            return Err(TheoryError::Argument(problem));
        }
        Ok(Self {
            name: format!("mod:{modulus}"),
            alphabet: vec!["0".into(), "1".into()],
            states: (0..modulus).map(|count| count.to_string()).collect(),
            start: 0,
            accepting: (0..modulus).map(|count| count == 0).collect(),
            next: (0..modulus).map(|count| vec![count, (count + 1) % modulus]).collect(),
        })
    }

    /// The parity of the bits.
    pub fn parity() -> Self {
        Self {
            name: "parity".into(),
            alphabet: vec!["0".into(), "1".into()],
            states: vec!["even".into(), "odd".into()],
            start: 0,
            accepting: vec![false, true],
            next: vec![vec![0, 1], vec![1, 0]],
        }
    }

    /// The automaton a user asks for: `parity`, `mod:K`, or the path of a TOML file.
    pub fn find(text: &str) -> Result<Self> {
        if text == "parity" {
            return Ok(Self::parity());
        }
        if let Some(modulus) = text.strip_prefix("mod:") {
            let problem =
                || TheoryError::Argument(format!("mod:K needs a whole number K, as in mod:3, not '{modulus}'"));
            return Self::counter(modulus.parse().map_err(|_| problem())?);
        }
        if text.ends_with(".toml") {
            let path = std::path::Path::new(text);
            let source = pudica_boolean::plain::written_text(path).map_err(TheoryError::io("read", path))?;
            return Self::from_toml(&source).map_err(|problem| TheoryError::BadFile { path: path.into(), problem });
        }
        let hint = pudica_boolean::did_you_mean(text, ["parity", "mod:2", "mod:3"]);
        Err(TheoryError::Argument(format!(
            "unknown automaton '{text}'{hint}; parity, mod:K or the path of a .toml file"
        )))
    }

    /// The state after reading symbols (as indices into the alphabet).
    pub fn run(&self, symbols: &[usize]) -> usize {
        symbols.iter().fold(self.start, |state, symbol| self.next[state][*symbol])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count() {
        assert_eq!(Automaton::counter(3).unwrap().run(&[1, 0, 1, 1, 1]), 1);
        assert_eq!(Automaton::parity().run(&[1, 1, 0, 1]), 1);
        assert!(Automaton::counter(1).is_err() && Automaton::counter(1001).is_err());
    }

    #[test]
    fn unknown_automata_are_explained() {
        let refusal = |text: &str| Automaton::find(text).unwrap_err().to_string();
        assert!(refusal("partiy").contains("did you mean 'parity'?"));
        assert!(refusal("mod:x").contains("mod:K needs a whole number"));
        assert!(refusal("mod:0").contains("modulo 2 to 1000, not modulo 0"));
        assert!(refusal("nowhere.toml").contains("cannot read nowhere.toml"));
    }
}
