//! What can go wrong while a model is measured, each said in one sentence.

use thiserror::Error;

/// What functions here return.
pub type MeasureResult<T> = Result<T, MeasureError>;

/// Why a model could not be measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The model could not be opened or asked.
    #[error(transparent)]
    Model(#[from] pudica_model::ModelError),
    /// A measure could not be taken.
    #[error(transparent)]
    Probe(#[from] pudica_probe::ProbeError),
    /// The model could not answer to an input.
    #[error("{problem}")]
    AtInput {
        /// Its number.
        index: usize,
        /// What is wrong there, in a sentence.
        problem: String,
    },
    /// Inputs could not be read.
    #[error(transparent)]
    Data(#[from] pudica_data::FileError),
    /// Files could not be written, or stopping was requested.
    #[error(transparent)]
    Lab(#[from] pudica_lab::Error),
    /// Anything else, in a sentence.
    #[error("{0}")]
    Other(String),
}

impl MeasureError {
    /// The number of the input that it is about.
    pub fn input(&self) -> Option<usize> {
        if let Self::AtInput { index, .. } = self { Some(*index) } else { None }
    }
}
