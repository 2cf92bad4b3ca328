//! How sensitive the steps of a simulation are.
//!
//! The sensitivity of a function of tokens is the sum over its tokens of the probability that replacing the token by another one,
//! chosen uniformly among the others, changes the value. For bits it is the number of flips that do: as_n.

use serde::Serialize;

use super::Automaton;

/// The step that reads symbol i, on uniform strings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepSensitivity {
    /// The step, from 1.
    pub step: usize,
    /// Without a scratchpad: of the state after i symbols, as a function of the i symbols.
    pub without: f64,
    /// The same of whether that state accepts.
    pub without_accept: f64,
    /// With a scratchpad: of the state after i symbols, as a function of all symbols and all states written before. It depends on
    /// two tokens only, the state before and the symbol read, so it is at most 2.
    pub with: f64,
    /// Its part that comes from the symbol read; the rest comes from the state before.
    pub with_from_symbol: f64,
}

/// The sensitivity of each of `n` steps, exactly: instead of strings, the probabilities of states and of pairs of states are
/// followed, a pair being the states of a string and of the same string with one symbol replaced.
pub fn sensitivities(automaton: &Automaton, n: usize) -> Vec<StepSensitivity> {
    let (states, symbols) = (automaton.states.len(), automaton.alphabet.len());
    let next = |state: usize, symbol: usize| automaton.next[state][symbol];
    let each = 1.0 / symbols as f64;
    let mut here = vec![0.0; states];
    here[automaton.start] = 1.0;
    // Summed over replaced positions so far: the probability of each pair of states.
    let mut pairs = vec![0.0; states * states];
    let mut steps = Vec::with_capacity(n);
    for step in 1..=n {
        let (mut moved, mut arrived) = (vec![0.0; states * states], vec![0.0; states]);
        for (index, mass) in pairs.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
            for symbol in 0..symbols {
                moved[next(index / states, symbol) * states + next(index % states, symbol)] += mass * each;
            }
        }
        let (mut from_symbol, mut from_state) = (0.0, 0.0);
        for (state, mass) in here.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
            for symbol in 0..symbols {
                let to = next(state, symbol);
                arrived[to] += mass * each;
                for other in (0..symbols).filter(|other| *other != symbol) {
                    let share = mass * each / (symbols - 1) as f64;
                    let replaced = next(state, other);
                    moved[to * states + replaced] += share;
                    from_symbol += if replaced != to { share } else { 0.0 };
                }
                for other in (0..states).filter(|other| *other != state) {
                    from_state += if next(other, symbol) != to { mass * each / (states - 1) as f64 } else { 0.0 };
                }
            }
        }
        (pairs, here) = (moved, arrived);
        let apart = |differ: &dyn Fn(usize, usize) -> bool| -> f64 {
            pairs
                .iter()
                .enumerate()
                .filter(|(index, _)| differ(index / states, index % states))
                .map(|(_, mass)| mass)
                .sum()
        };
        steps.push(StepSensitivity {
            step,
            without: apart(&|a, b| a != b),
            without_accept: apart(&|a, b| automaton.accepting[a] != automaton.accepting[b]),
            with: from_symbol + from_state,
            with_from_symbol: from_symbol,
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every string, every position, every replacement.
    fn by_enumeration(automaton: &Automaton, n: usize) -> StepSensitivity {
        let (states, symbols) = (automaton.states.len(), automaton.alphabet.len());
        let count = symbols.pow(n as u32);
        let mut found =
            StepSensitivity { step: n, without: 0.0, without_accept: 0.0, with: 0.0, with_from_symbol: 0.0 };
        for index in 0..count {
            let string: Vec<usize> = (0..n).map(|i| index / symbols.pow(i as u32) % symbols).collect();
            let end = automaton.run(&string);
            let share = 1.0 / (count * (symbols - 1)) as f64;
            for (i, other) in (0..n).flat_map(|i| (0..symbols).map(move |other| (i, other))) {
                let mut replaced = string.clone();
                replaced[i] = other;
                let to = automaton.run(&replaced);
                found.without += if to != end { share } else { 0.0 };
                found.without_accept += if automaton.accepting[to] != automaton.accepting[end] { share } else { 0.0 };
            }
            let before = automaton.run(&string[..n - 1]);
            for other in 0..symbols {
                let changed = automaton.next[before][other] != end;
                found.with_from_symbol += if changed { share } else { 0.0 };
            }
            for other in (0..states).filter(|other| *other != before) {
                let changed = automaton.next[other][string[n - 1]] != end;
                found.with += if changed { 1.0 / (count * (states - 1)) as f64 } else { 0.0 };
            }
        }
        found.with += found.with_from_symbol;
        found
    }

    fn three_letters() -> Automaton {
        Automaton {
            name: "three".into(),
            alphabet: ["a", "b", "c"].map(String::from).into(),
            states: ["s", "t", "u", "v"].map(String::from).into(),
            start: 1,
            accepting: vec![true, false, false, true],
            next: vec![vec![0, 1, 2], vec![1, 1, 3], vec![3, 0, 0], vec![2, 3, 1]],
        }
    }

    #[test]
    fn following_pairs_equals_enumerating_strings() {
        for automaton in [Automaton::parity(), Automaton::counter(3).unwrap(), three_letters()] {
            let steps = sensitivities(&automaton, 6);
            for n in 1..=6 {
                let (found, expected) = (steps[n - 1], by_enumeration(&automaton, n));
                let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
                assert!(close(found.without, expected.without), "{} {n} {found:?} {expected:?}", automaton.name);
                assert!(close(found.without_accept, expected.without_accept) && close(found.with, expected.with));
                assert!(close(found.with_from_symbol, expected.with_from_symbol));
            }
        }
    }

    #[test]
    fn parity_has_n_without_and_two_with_a_scratchpad() {
        let steps = sensitivities(&Automaton::parity(), 1000);
        assert!((steps[999].without - 1000.0).abs() < 1e-6 && steps.iter().all(|step| step.with == 2.0));
    }

    /// A flip moves a count modulo K by one, always; the accepted count is left or reached with probability 2/K.
    #[test]
    fn counters_are_as_sensitive_as_parity_but_accept_less_often() {
        let steps = sensitivities(&Automaton::counter(5).unwrap(), 200);
        assert!((steps[199].without - 200.0).abs() < 1e-6);
        assert!((steps[199].without_accept - 80.0).abs() < 0.1, "{}", steps[199].without_accept);
        assert!(steps.iter().all(|step| step.with <= 2.0 + 1e-12));
    }

    #[test]
    fn an_automaton_of_one_state_is_insensitive() {
        let one = Automaton {
            states: vec!["only".into()],
            accepting: vec![true],
            next: vec![vec![0, 0]],
            ..Automaton::parity()
        };
        assert!(sensitivities(&one, 3).iter().all(|step| step.without == 0.0 && step.with == 0.0));
    }
}
