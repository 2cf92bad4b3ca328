//! Functions that are one attention and one threshold: MAJORITY and FIRST.

use pudica_nn::{EncoderConfig, Weights};

use super::channels::Channel::{Position, Token};
use super::channels::{Channel, Channels};
use crate::Result;

const BIT: Channel = Token(0);
/// What the attention brings: a weighted mean of the bits.
const MEAN: Channel = Token(1);
const ANSWER: Channel = Token(2);
const ONE: Channel = Position(0);
/// 1 at the first position.
const START: Channel = Position(1);

/// Attention to all positions equally: the mean of the bits is k/n. MAJORITY is a threshold between floor(n/2)/n and the next.
pub(super) fn majority(config: &EncoderConfig, gain: f64) -> Result<Weights> {
    let threshold = ((config.n / 2) as f64 + 0.5) / config.n as f64;
    Ok(above(Channels::new(config)?, config.n, threshold, gain).finish())
}

/// Attention with 8/9 or more of its weight on the first position: its score is ln(8n), which grows with n as Section 4 of Hahn &
/// Rofin says it may. FIRST is a threshold at 1/2.
pub(super) fn first(config: &EncoderConfig, gain: f64) -> Result<Weights> {
    let mut net = Channels::new(config)?;
    net.position(0, 1, 1.0);
    net.score(0, 0, ONE, START, (8.0 * config.n as f64).ln());
    Ok(above(net, config.n, 0.5, gain).finish())
}

/// The bits' mean by head 0, compared with a threshold.
fn above(mut net: Channels, n: usize, threshold: f64, gain: f64) -> Channels {
    net.token(1, 0, 1.0);
    (0..n).for_each(|i| net.position(i, 0, 1.0));
    net.value(0, 0, BIT, MEAN, 1.0);
    net.unit(0, &[(MEAN, 1.0), (ONE, -threshold)], &[(ANSWER, gain)]);
    net.unit(0, &[(MEAN, -1.0), (ONE, threshold)], &[(ANSWER, -gain)]);
    for used in [BIT, MEAN, ONE, START] {
        net.multiply(0, used, 0.0);
    }
    net.answer(ANSWER);
    net
}

#[cfg(test)]
mod tests {
    use crate::constructions::{Construction, check};

    #[test]
    fn every_string_up_to_ten_bits_is_right_in_both_precisions() {
        for construction in [Construction::Majority, Construction::First] {
            for n in 1..=10 {
                let found = check(construction, n, construction.default_gain(n), 0, 0).unwrap();
                assert_eq!((found.double.correct, found.single.correct), (1 << n, 1 << n), "{construction} n = {n}");
                assert!(found.double.worst_error < 1e-3 && found.single.worst_error < 1e-3, "{construction} {found:?}");
            }
        }
    }

    #[test]
    fn long_strings_are_right_too() {
        for construction in [Construction::Majority, Construction::First] {
            let found = check(construction, 501, construction.default_gain(501), 40, 0).unwrap();
            assert!(!found.exhaustive && found.strings >= 40);
            assert_eq!((found.double.correct, found.single.correct), (found.strings, found.strings));
        }
    }
}
