//! What can be wrong with a target or a sample a user asks for.

use thiserror::Error;

/// A target or a sample that cannot be made, in one sentence a user can act on.
#[derive(Debug, Error)]
pub enum DataError {
    /// The target does not exist, or not for this many bits.
    #[error(transparent)]
    Function(#[from] pudica_boolean::Error),
    /// A truth table was asked of a real-valued target.
    #[error("the target \"{0}\" has real values, so it has no truth table")]
    NotBoolean(String),
    /// A scratchpad was asked for a target that has none.
    #[error("the target \"{0}\" has no scratchpad; only \"parity\" does")]
    NoScratchpad(String),
    /// The target needs another number of bits than the strings have.
    #[error("this target is defined on strings of {expected} bits, but the strings have {found}")]
    WrongLength {
        /// Bits the target is defined on.
        expected: usize,
        /// Bits the strings have.
        found: usize,
    },
    /// Strings of no bits, or of too many for the operation.
    #[error("{what} needs between 1 and {max} bits, but n = {n}")]
    BadN {
        /// The operation.
        what: &'static str,
        /// What was asked for.
        n: usize,
        /// The most it can do.
        max: usize,
    },
    /// A training set that is empty or larger than the cube.
    #[error("a training set of {size} distinct strings of {n} bits is impossible: choose a size between 1 and 2^{n}")]
    BadSetSize {
        /// Strings asked for.
        size: usize,
        /// Bits in each.
        n: usize,
    },
    /// Modular arithmetic that cannot be done.
    #[error("modular arithmetic: {0}")]
    Modular(String),
    /// Synthetic tokens that cannot be drawn.
    #[error("synthetic tokens: {0}")]
    Tokens(String),
}
