//! What can go wrong in an ensemble.

use pudica_data::DataError;
use pudica_nn::NnError;

/// What can go wrong in an ensemble.
#[derive(Debug, thiserror::Error)]
pub enum EnsembleError {
    /// The members do not fit together, or not with their shape.
    #[error("these networks cannot be trained together: {0}")]
    Members(String),
    /// The device is missing or failed.
    #[error("{device}: {problem}")]
    Device {
        /// What was asked for.
        device: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// From the networks.
    #[error(transparent)]
    Nn(#[from] NnError),
    /// From the strings and labels.
    #[error(transparent)]
    Data(#[from] DataError),
}
