//! What can go wrong with a model that somebody brings, each said in one sentence.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// What functions here return.
pub type ModelResult<T> = Result<T, ModelError>;

/// Why a model could not be opened or asked.
#[derive(Debug, Error)]
pub enum ModelError {
    /// A file that is not what it should be.
    #[error("{}: {problem}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong, where, and what to do.
        problem: String,
    },
    /// A model has not what a nudge needs.
    #[error("{model} ({runtime}) has no {what}")]
    Lacks {
        /// The model's name.
        model: String,
        /// What computes it.
        runtime: String,
        /// What is needed.
        what: &'static str,
    },
    /// A model that does not take such inputs.
    #[error("{model} takes {takes}, but the inputs are {given}")]
    Takes {
        /// The model's name.
        model: String,
        /// What it takes.
        takes: String,
        /// What it was given.
        given: String,
    },
    /// A model that failed at one of the inputs it was given.
    #[error("{problem}")]
    AtInput {
        /// Which of them, counted from 0.
        at: usize,
        /// How.
        problem: String,
    },
    /// Anything else, in a sentence.
    #[error("{0}")]
    Other(String),
    /// A network of ours could not be built or run.
    #[error(transparent)]
    Network(#[from] pudica_nn::NnError),
    /// A measure could not be taken.
    #[error(transparent)]
    Probe(#[from] pudica_probe::ProbeError),
    /// Data could not be read.
    #[error(transparent)]
    Data(#[from] pudica_data::FileError),
}

impl ModelError {
    /// What is wrong with a file.
    pub fn file(path: &Path, problem: impl Into<String>) -> Self {
        Self::File { path: path.into(), problem: problem.into() }
    }
}
