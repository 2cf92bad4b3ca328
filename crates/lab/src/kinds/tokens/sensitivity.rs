//! The exact token sensitivity (Definition 4.3) of the attention layer: every position of every sequence replaced by every token.
//!
//! Replacing one token changes each other position's two sums (see [`pudica_nn::token_attention`]) by one term, so a
//! replacement costs T divisions, not a forward pass.

use pudica_data::TokenSet;
use pudica_nn::token_attention::Tables;
use pudica_probe::{Estimate, Moments};

/// Below this share of a sum, what is left after taking a token off has lost too many digits: the outputs are computed anew.
const TOO_LITTLE: f64 = 1e-6;

/// The mean over sequences of the share of (position, token) pairs that change the sign of the output, with sign(0) = 0. Nothing is
/// sampled but the sequences: the standard error is over them.
pub fn token_sensitivity(tables: &Tables, set: &TokenSet) -> Estimate {
    let by_sequence: Moments = set.iter().map(|(tokens, _)| sensitivity_at(tables, tokens)).collect();
    Estimate::sampled(&by_sequence)
}

/// The share of (position, token) pairs whose replacement changes the sign of the output for this sequence.
pub fn sensitivity_at(tables: &Tables, tokens: &[u16]) -> f64 {
    let (length, vocabulary) = (tokens.len(), tables.vocabulary());
    let sums: Vec<(f64, f64)> = (0..length).map(|position| tables.sums(tokens, position)).collect();
    let before = sign(sums.iter().map(|(above, below)| above / below).sum());
    // For each token b and position i: what b in the sequence adds to Z_i and to N_i, [M, T].
    let mut adds_below = vec![0.0; vocabulary * length];
    let mut adds_above = vec![0.0; vocabulary * length];
    for (position, token) in tokens.iter().enumerate() {
        let (row, seen) = (tables.exponentials(*token), tables.seen(position));
        for other in 0..vocabulary {
            adds_below[other * length + position] = row[other];
            adds_above[other * length + position] = row[other] * seen[other];
        }
    }
    let mut changes = 0u64;
    let (mut above, mut below, mut quotients) = (vec![0.0; length], vec![0.0; length], vec![0.0; length]);
    for touched in 0..length {
        let removed = usize::from(tokens[touched]) * length;
        for position in 0..length {
            above[position] = sums[position].0 - adds_above[removed + position];
            below[position] = sums[position].1 - adds_below[removed + position];
        }
        if (0..length).any(|position| position != touched && below[position] < TOO_LITTLE * sums[position].1) {
            changes += changes_one_by_one(tables, tokens, touched, before);
            continue;
        }
        // The touched position itself looks with its new token's scores: counted apart.
        (above[touched], below[touched]) = (0.0, 0.0);
        for token in 0..vocabulary {
            let adds = token * length..(token + 1) * length;
            // At the touched position the quotient is G[touched, token], taken off again below.
            let (more_above, more_below) = (&adds_above[adds.clone()], &adds_below[adds]);
            for position in 0..length {
                quotients[position] =
                    (above[position] + more_above[position]) / (below[position] + more_below[position]);
            }
            let own = touched_position(tables, tokens, touched, token as u16) - tables.seen(touched)[token];
            changes += u64::from(sign(sum(&quotients) + own) != before);
        }
    }
    changes as f64 / (length * vocabulary) as f64
}

/// How many tokens at a position change the sign, by a forward pass for each.
fn changes_one_by_one(tables: &Tables, tokens: &[u16], touched: usize, before: i8) -> u64 {
    let mut tokens = tokens.to_vec();
    let changes = |token| {
        tokens[touched] = token;
        u64::from(sign(tables.output(&tokens)) != before)
    };
    (0..tables.vocabulary() as u16).map(changes).sum()
}

/// N / Z of a position after its own token has been replaced.
fn touched_position(tables: &Tables, tokens: &[u16], touched: usize, replacement: u16) -> f64 {
    let (row, seen) = (tables.exponentials(replacement), tables.seen(touched));
    let (mut above, mut below) = (0.0, 0.0);
    for (position, token) in tokens.iter().enumerate() {
        let token = usize::from(if position == touched { replacement } else { *token });
        above += row[token] * seen[token];
        below += row[token];
    }
    above / below
}

/// Four sums side by side, which a processor adds at once.
fn sum(values: &[f64]) -> f64 {
    let (fours, rest) = values.as_chunks::<4>();
    let mut lanes = [0.0; 4];
    for four in fours {
        lanes.iter_mut().zip(four).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().chain(rest).sum()
}

/// -1, 0 or 1.
pub fn sign(value: f64) -> i8 {
    i8::from(value > 0.0) - i8::from(value < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_data::{Stream, TokenTask};
    use pudica_nn::token_attention::TokenAttention;
    use pudica_probe::{Budget, ProbeError, ReplaceToken, SignDiffers, respond};

    const TASK: TokenTask = TokenTask { length: 9, vocabulary: 12, n_s: 1, n_f: 4, n_d: 2, m: 3 };

    fn layer_and_sequences(deviation: f64) -> (Tables, TokenSet) {
        let layer = TokenAttention::random(12, 9, 5, deviation, &mut Stream::new(3, "test", 0));
        (layer.tables(), TASK.draw(20, false, &mut Stream::new(3, "test", 1)).unwrap())
    }

    /// With a deviation of 4, scores reach hundreds and attention is all on one token.
    #[test]
    fn one_by_one_gives_the_same() {
        for deviation in [0.9, 4.0] {
            let (tables, set) = layer_and_sequences(deviation);
            let mut all = 0.0;
            for (tokens, _) in set.iter() {
                let before = sign(tables.output(tokens));
                let changes: u64 = (0..9).map(|touched| changes_one_by_one(&tables, tokens, touched, before)).sum();
                let share = changes as f64 / (9.0 * 12.0);
                assert!((sensitivity_at(&tables, tokens) - share).abs() < 1e-12, "{deviation}");
                all += share / 20.0;
            }
            assert!(all > 0.05 && (token_sensitivity(&tables, &set).mean - all).abs() < 1e-12);
        }
    }

    #[test]
    fn the_sampled_measure_agrees() {
        let (tables, set) = layer_and_sequences(0.9);
        let inputs = set.iter().map(|(tokens, _)| tokens.to_vec());
        let output = |tokens: &Vec<u16>| tables.output(tokens);
        let mut outputs = |inputs: &[Vec<u16>]| Ok::<_, ProbeError>(inputs.iter().map(output).collect());
        let nudge = ReplaceToken { vocabulary: 12 };
        let budget = Budget::new(60, 256, 0, "test");
        let profile = respond(&mut outputs, inputs, &nudge, &[&SignDiffers], &budget).unwrap().remove(0);
        for ((tokens, _), sampled) in set.iter().zip(&profile.by_input) {
            // 540 draws for each sequence: four standard errors are at most 4 sqrt(1 / (4 * 540)).
            assert!((sampled / 9.0 - sensitivity_at(&tables, tokens)).abs() < 0.087);
        }
        let exact = token_sensitivity(&tables, &set).mean;
        assert!((profile.total.mean / 9.0 - exact).abs() < 4.0 * (0.25f64 / 10_800.0).sqrt());
    }
}
