//! Transformers built by hand, in exactly the form that is trained: post-norm encoder, ReLU feed-forward, LayerNorm with eps 1e-5,
//! a head on the last position.
//!
//! - PARITY after Chiang & Cholak (2022): two layers, LayerNorm does the amplifying.
//! - MAJORITY: one uniform attention, one threshold. FIRST: one attention to the first position, one threshold.
//! - The two-majority program of Lemma 8, which is no transformer.

mod channels;
mod check;
mod parity;
mod thresholds;
mod two_majority;

use std::fmt;
use std::str::FromStr;

use pudica_nn::{Architecture, Embed, EncoderConfig, Weights};

use crate::{Result, TheoryError};

pub use check::{Accuracy, Check, LARGEST_EXHAUSTIVE, check};
pub use two_majority::{PROGRAM, TwoMajority, Worked};

/// A function that a transformer is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Construction {
    /// The sum of the bits modulo 2.
    Parity,
    /// 1 if more bits are 1 than 0.
    Majority,
    /// The bit x1.
    First,
}

impl Construction {
    /// All of them.
    pub const ALL: [Construction; 3] = [Construction::Parity, Construction::Majority, Construction::First];

    /// The name it is asked for by, also the name of the function in `pudica-boolean`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parity => "parity",
            Self::Majority => "majority",
            Self::First => "first",
        }
    }

    /// as_n of its function, in closed form.
    pub fn average_sensitivity(self, n: usize) -> f64 {
        match self {
            Self::Parity => n as f64,
            Self::Majority => two_majority::majority_sensitivity(n),
            Self::First => 1.0,
        }
    }

    /// The shape it is built in when nobody asks for another: 32 wide, more than the 12 L of Theorem 6.
    pub fn default_config(self, n: usize) -> EncoderConfig {
        let (layers, heads) = match self {
            Self::Parity => (2, 2),
            Self::Majority | Self::First => (1, 1),
        };
        EncoderConfig { n, d: 32, layers, heads, ff: 32, embed: Embed::Concat, same_init: false }
    }

    /// The amplification by weights when nobody asks for another. PARITY and MAJORITY must tell numbers apart that differ by 1/n:
    /// with gain n the weights enlarge the difference to order 1 and LayerNorm need not.
    pub fn default_gain(self, n: usize) -> f64 {
        match self {
            Self::Parity | Self::Majority => n as f64,
            Self::First => 1.0,
        }
    }

    /// Its weights in the given shape. `gain` says who amplifies the difference of 1/n that one bit makes: with gain G the weights
    /// enlarge it G times, and the LayerNorms the rest, as far as their epsilon lets them.
    pub fn build(self, config: &EncoderConfig, gain: f64) -> Result<Weights> {
        self.check(config, gain)?;
        match self {
            Self::Parity => parity::build(config, gain),
            Self::Majority => thresholds::majority(config, gain),
            Self::First => thresholds::first(config, gain),
        }
    }

    /// Whether it can be built in the given shape, without building it.
    pub fn check(self, config: &EncoderConfig, gain: f64) -> Result<()> {
        Architecture::Encoder(config.clone()).check()?;
        if !(gain.is_finite() && gain > 0.0) {
            return Err(TheoryError::argument(format!("the gain must be a positive number, not {gain}")));
        }
        let (layers, heads, shortest) = match self {
            Self::Parity => (2, 2, 2),
            Self::Majority | Self::First => (1, 1, 1),
        };
        let EncoderConfig { n, d, ff, .. } = *config;
        let needs = |what: String| Err(TheoryError::argument(format!("the transformer for {self} {what}")));
        if n < shortest {
            return needs(format!("needs strings of at least {shortest} bits, but n = {n}"));
        }
        if config.layers != layers {
            return needs(format!("has {layers} layers, but {} are asked for", config.layers));
        }
        if config.heads < heads {
            return needs(format!("needs {heads} heads, but {} are asked for", config.heads));
        }
        if d < channels::SMALLEST_WIDTH || !d.is_multiple_of(4) {
            return needs(format!("needs a width of {} or more that 4 divides, but d = {d}", channels::SMALLEST_WIDTH));
        }
        if ff < parity::HIDDEN {
            return needs(format!("needs a feed-forward width of {} or more, but ff = {ff}", parity::HIDDEN));
        }
        Ok(())
    }
}

impl fmt::Display for Construction {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Construction {
    type Err = TheoryError;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|known| known.name() == text).ok_or_else(|| {
            let hint = pudica_boolean::did_you_mean(text, Self::ALL.map(Self::name));
            TheoryError::argument(format!(
                "there is no transformer built for '{text}'{hint} (parity, majority or first)"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(construction: Construction, change: fn(&mut EncoderConfig)) -> String {
        let mut config = construction.default_config(6);
        change(&mut config);
        construction.build(&config, 1.0).unwrap_err().to_string()
    }

    #[test]
    fn average_sensitivities_are_those_of_the_truth_tables() {
        for construction in Construction::ALL {
            for n in [2, 5, 8] {
                let table = pudica_boolean::Named::parse(construction.name(), Some(n)).unwrap().boolean_at(n).unwrap();
                let exact = pudica_boolean::sensitivity_profile(&table.table().unwrap()).average_sensitivity();
                assert!((construction.average_sensitivity(n) - exact).abs() < 1e-9, "{construction} {n}");
            }
        }
    }

    #[test]
    fn impossible_shapes_are_explained() {
        assert!(refusal(Construction::Parity, |c| c.n = 1).contains("at least 2 bits, but n = 1"));
        assert!(refusal(Construction::Parity, |c| c.layers = 3).contains("has 2 layers, but 3 are asked for"));
        assert!(refusal(Construction::Parity, |c| c.heads = 1).contains("needs 2 heads"));
        assert!(refusal(Construction::First, |c| c.d = 8).contains("width of 20 or more"));
        assert!(refusal(Construction::First, |c| c.ff = 3).contains("feed-forward width"));
        let gain = Construction::First.build(&Construction::First.default_config(3), -1.0);
        assert!(gain.unwrap_err().to_string().contains("positive number, not -1"));
        assert!("partiy".parse::<Construction>().unwrap_err().to_string().contains("did you mean 'parity'?"));
    }
}
