//! PARITY by layer normalisation, after Chiang & Cholak, "Overcoming a Theoretical Limitation of Self-Attention" (ACL 2022).
//!
//! Let k be the number of ones. Positions count from 1 here.
//!
//! 1. Layer 1 attends everywhere equally, so every position learns k/n. Its feed-forward compares k/n with the position's own i/n:
//!    three ReLUs make the hat that is 1/n where i = k and 0 at every other position. (No position has i = 0, which is what a CLS
//!    token is for in the original; here every position tells k = 0 apart by one more ReLU.)
//! 2. Layer 2 has one head that prefers odd positions and one that prefers even ones. The difference of what they see of the hat
//!    is positive if k is odd and negative if k is even, but only of order 1/n. The feed-forward forgets everything else, so that
//!    the last LayerNorm, having nothing but this number, makes ±1 of it however small it is (its epsilon permitting).
//!
//! LayerNorm 2 of layer 1 amplifies too: it is given the hat (gain/n) beside a sign and a 1 that are reduced to the same size.

use pudica_nn::{EncoderConfig, Weights};

use super::channels::Channel::{Position, Token};
use super::channels::{Channel, Channels};
use crate::Result;

const BIT: Channel = Token(0);
/// k/n
const COUNT: Channel = Token(1);
/// positive where i = k
const HIT: Channel = Token(2);
/// positive where k = 0
const NONE: Channel = Token(3);
const ANSWER: Channel = Token(4);
/// i/n
const PLACE: Channel = Position(0);
/// +1 at odd positions, -1 at even ones
const SIGN: Channel = Position(1);
const ONE: Channel = Position(2);
/// 1/n
const STEP: Channel = Position(3);

/// Hidden units the larger of the two feed-forwards takes.
pub(super) const HIDDEN: usize = 16;

pub(super) fn build(config: &EncoderConfig, gain: f64) -> Result<Weights> {
    let mut net = Channels::new(config)?;
    let n = config.n as f64;

    net.token(1, 0, 1.0);
    for i in 0..config.n {
        net.position(i, 0, (i + 1) as f64 / n);
        net.position(i, 1, if i % 2 == 0 { 1.0 } else { -1.0 });
        net.position(i, 2, 1.0);
        net.position(i, 3, 1.0 / n);
    }

    net.value(0, 0, BIT, COUNT, 1.0);
    // relu(a + s) - 2 relu(a) + relu(a - s) of a = k/n - i/n and s = 1/n: 1/n if i = k, else 0.
    net.unit(0, &[(COUNT, 1.0), (PLACE, -1.0), (STEP, 1.0)], &[(HIT, gain)]);
    net.unit(0, &[(COUNT, 1.0), (PLACE, -1.0)], &[(HIT, -2.0 * gain)]);
    net.unit(0, &[(COUNT, 1.0), (PLACE, -1.0), (STEP, -1.0)], &[(HIT, gain)]);
    net.unit(0, &[(STEP, 1.0), (COUNT, -1.0)], &[(NONE, gain)]);
    for used in [BIT, COUNT, PLACE, STEP] {
        net.multiply(0, used, 0.0);
    }
    for kept in [SIGN, ONE] {
        net.multiply(0, kept, gain / n);
    }

    // After LayerNorm, SIGN and ONE are about sqrt(d / 4): the scores are about ±1.
    let unit = 4.0 / config.d as f64;
    for (head, prefers) in [(0, 1.0), (1, -1.0)] {
        net.score(1, head, ONE, SIGN, prefers * unit);
        net.value(1, head, HIT, ANSWER, prefers);
    }
    net.multiply(1, ANSWER, gain);
    net.unit(1, &[(NONE, 1.0)], &[(ANSWER, -1.0), (NONE, -1.0)]); // k = 0 is even; NONE is never negative
    for used in [HIT, SIGN, ONE] {
        net.multiply(1, used, 0.0);
    }
    net.answer(ANSWER);
    Ok(net.finish())
}

#[cfg(test)]
mod tests {
    use pudica_data::{Bits, Stream};
    use pudica_nn::Embed;

    use crate::constructions::{Construction, check};
    use crate::exact::ExactEncoder;

    #[test]
    fn every_string_up_to_ten_bits_is_right_in_both_precisions() {
        for n in 2..=10 {
            let found = check(Construction::Parity, n, n as f64, 0, 0).unwrap();
            assert_eq!((found.strings, found.exhaustive), (1 << n, true));
            assert_eq!((found.double.correct, found.single.correct), (1 << n, 1 << n), "n = {n}");
            assert!(found.double.worst_error < 1e-3 && found.single.worst_error < 1e-3, "n = {n}: {found:?}");
        }
    }

    #[test]
    fn wider_added_and_more_headed_shapes_compute_the_same() {
        let config = Construction::Parity.default_config(7);
        for (d, heads, embed) in [(20, 2, Embed::Concat), (40, 4, Embed::Add), (128, 2, Embed::Concat)] {
            let config = pudica_nn::EncoderConfig { d, heads, embed, ..config.clone() };
            let weights = Construction::Parity.build(&config, 7.0).unwrap();
            let cube = Bits::cube(7).unwrap();
            let outputs = ExactEncoder::new(&config, &weights).unwrap().outputs(&cube);
            for (string, output) in cube.iter().zip(outputs) {
                let parity = string.iter().map(|bit| f64::from(*bit)).sum::<f64>() % 2.0;
                assert!((output - parity).abs() < 1e-2, "d = {d}: {string:?} gives {output}");
            }
        }
    }

    /// With bounded weights LayerNorm does all the amplifying, and its epsilon limits how far that goes.
    #[test]
    fn with_gain_one_labels_stay_right_while_outputs_fade() {
        let short = check(Construction::Parity, 8, 1.0, 0, 0).unwrap();
        let long = check(Construction::Parity, 200, 1.0, 40, 0).unwrap();
        assert_eq!((short.double.correct, long.double.correct), (short.strings, long.strings));
        assert!(short.double.worst_error < 1e-2 && long.double.worst_error > 0.1, "{short:?} {long:?}");
    }

    #[test]
    fn the_order_of_the_bits_plays_no_part() {
        let config = Construction::Parity.default_config(30);
        let weights = Construction::Parity.build(&config, 30.0).unwrap();
        let encoder = ExactEncoder::new(&config, &weights).unwrap();
        let mut string = vec![0; 30];
        string[..13].fill(1);
        let first = encoder.trace(&string).output;
        let mut stream = Stream::new(0, "order", 0);
        for _ in 0..10 {
            stream.shuffle(&mut string);
            assert!((encoder.trace(&string).output - first).abs() < 1e-3);
        }
    }
}
