//! Which numbers stand for the two values of a Boolean function. Squared measures differ by a factor of 4.

use serde::Serialize;
use std::fmt;

/// How values are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Convention {
    /// Value 0 is +1, value 1 is -1 (so f becomes 1 - 2f): the theory's convention.
    #[default]
    #[serde(rename = "pm1")]
    PlusMinus,
    /// Values are 0 and 1: what networks are trained on.
    #[serde(rename = "01")]
    ZeroOne,
    /// A real function's values, untouched.
    #[serde(rename = "as-given")]
    AsGiven,
}

impl Convention {
    /// What a squared measure of (-1)^f is multiplied with in this convention.
    pub fn square_factor(self) -> f64 {
        if self == Self::ZeroOne { 0.25 } else { 1.0 }
    }
}

impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::PlusMinus => "±1 (0 is +1, 1 is -1)",
            Self::ZeroOne => "{0,1}",
            Self::AsGiven => "real values as given",
        })
    }
}
