//! What can be wrong with what a user asks for: a target, a sample, a file.

use std::path::{Path, PathBuf};

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

/// A file or folder that cannot be read or written: which, where in it, and why.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong, and where in the file.
    pub problem: String,
}

impl FileError {
    /// The error of this file or folder.
    pub fn new(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: path.to_path_buf(), problem: problem.into() }
    }

    /// That the system refused to write it.
    pub(crate) fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::new(path, format!("cannot be written: {}", pudica_boolean::atomic::sentence(&error)))
    }
}

/// What reading or writing a file returns.
pub type FileResult<T> = Result<T, FileError>;
