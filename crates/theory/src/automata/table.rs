//! A user's automaton as TOML:
//!
//! ```toml
//! name = "ends in 01"
//! alphabet = ["0", "1"]
//! states = ["neither", "zero", "done"]
//! start = "neither"
//! accept = ["done"]              # optional
//!
//! [transitions]                  # every state needs every symbol
//! neither = { 0 = "zero", 1 = "neither" }
//! zero    = { 0 = "zero", 1 = "done" }
//! done    = { 0 = "zero", 1 = "neither" }
//! ```

use std::collections::BTreeMap;

use pudica_boolean::{at_place, did_you_mean};
use serde::Deserialize;

use super::{Automaton, LARGEST_MODULUS};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    name: String,
    alphabet: Vec<String>,
    states: Vec<String>,
    start: String,
    #[serde(default)]
    accept: Vec<String>,
    transitions: BTreeMap<String, BTreeMap<String, String>>,
}

impl Automaton {
    /// Reads a transition table; the error is a sentence.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let table: Table = toml::from_str(text)
            .map_err(|error| at_place(text, error.span().map(|span| span.start), error.message()))?;
        if table.alphabet.len() < 2 {
            return Err("alphabet needs at least two symbols; with one there is nothing to change".into());
        }
        if table.states.is_empty() || table.states.len() > LARGEST_MODULUS {
            return Err(format!("states needs 1 to {LARGEST_MODULUS} names, not {}", table.states.len()));
        }
        no_repetition("alphabet", &table.alphabet)?;
        no_repetition("states", &table.states)?;
        let state = |name: &str, place: &str| find(&table.states, name, place, "states");
        let mut accepting = vec![false; table.states.len()];
        for name in &table.accept {
            accepting[state(name, "accept")?] = true;
        }
        for (from, row) in &table.transitions {
            state(from, "[transitions]")?;
            for symbol in row.keys() {
                find(&table.alphabet, symbol, &line(from), "alphabet")?;
            }
        }
        let mut next = Vec::with_capacity(table.states.len());
        for from in &table.states {
            let row = table.transitions.get(from).ok_or(format!("[transitions] has no line for the state '{from}'"))?;
            let mut targets = Vec::with_capacity(table.alphabet.len());
            for symbol in &table.alphabet {
                let to = row.get(symbol).ok_or(format!("{} lacks the symbol '{symbol}'", line(from)))?;
                targets.push(state(to, &line(from))?);
            }
            next.push(targets);
        }
        let start = state(&table.start, "start")?;
        let name = if table.name.is_empty() { "automaton".into() } else { table.name };
        Ok(Self { name, alphabet: table.alphabet, states: table.states, start, accepting, next })
    }
}

/// How a state's row of the table is called.
fn line(state: &str) -> String {
    format!("the line '{state}' of [transitions]")
}

fn find(known: &[String], name: &str, place: &str, list: &str) -> Result<usize, String> {
    known.iter().position(|known| known == name).ok_or_else(|| {
        let hint = did_you_mean(name, known.iter().map(String::as_str));
        format!("{place} names '{name}', which is not in {list}{hint}")
    })
}

fn no_repetition(list: &str, names: &[String]) -> Result<(), String> {
    match names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        Some((_, name)) => Err(format!("{list} names '{name}' twice")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: &str = include_str!("../../tests/automata/ends-in-01.toml");

    #[test]
    fn a_table_becomes_an_automaton() {
        let automaton = Automaton::from_toml(ENDS).unwrap();
        assert_eq!(automaton.name, "ends in 01");
        let accepts = |string: &[usize]| automaton.accepting[automaton.run(string)];
        assert!(accepts(&[1, 1, 0, 1]) && !accepts(&[1, 1, 0]) && !accepts(&[0, 1, 1]));
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let refusal = |from: &str, to: &str| Automaton::from_toml(&ENDS.replace(from, to)).unwrap_err();
        assert!(
            refusal("start = \"neither\"", "start = \"niether\"")
                .contains("start names 'niether', which is not in states: did you mean 'neither'?")
        );
        assert!(
            refusal("0 = \"zero\", 1 = \"done\"", "0 = \"zero\"")
                .contains("the line 'zero' of [transitions] lacks the symbol '1'")
        );
        assert!(refusal("1 = \"done\"", "1 = \"dnoe\"").contains("did you mean 'done'"));
        assert!(refusal("done = {", "gone = {").contains("'gone', which is not in states"));
        assert!(refusal("1 = \"done\"", "1 = \"done\", 2 = \"done\"").contains("'2', which is not in alphabet"));
        assert!(refusal("[\"0\", \"1\"]", "[\"0\"]").contains("at least two symbols"));
        assert!(refusal("[\"0\", \"1\"]", "[\"0\", \"0\"]").contains("names '0' twice"));
        assert!(refusal("start =", "strat =").contains("strat"));
        assert!(refusal("done = { 0 = \"zero\", 1 = \"neither\" }", "").contains("no line for the state 'done'"));
        assert!(refusal("[transitions]", "[transitions").contains("expected"));
        let deep = format!("x = {}", "[".repeat(100_000));
        assert!(Automaton::from_toml(&deep).unwrap_err().len() < 1000, "a long line is not repeated");
    }
}
