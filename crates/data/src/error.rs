//! What can be wrong with a target or a sample a user asks for.

use thiserror::Error;

/// A target or a sample that cannot be made, in one sentence a user can act on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DataError {
    /// The target's name is not known.
    #[error("unknown target \"{name}\"{}; known targets: {known}", suggestion.as_ref().map(|s| format!(", did you mean \"{s}\"?")).unwrap_or_default())]
    UnknownTarget {
        /// What was asked for.
        name: String,
        /// The nearest known name, when one is near.
        suggestion: Option<String>,
        /// All known names, for the message.
        known: &'static str,
    },
    /// The target's name is known, but the part after the colon is not usable.
    #[error("target \"{name}\": {problem}")]
    BadTarget {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
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
    #[error(
        "a training set of {size} distinct strings of {n} bits is impossible: choose a size between 1 and 2^{n}"
    )]
    BadSetSize {
        /// Strings asked for.
        size: usize,
        /// Bits in each.
        n: usize,
    },
}
