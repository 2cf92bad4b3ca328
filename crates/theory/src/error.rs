//! What can go wrong with theory, in sentences a user can act on.

use std::path::PathBuf;

use pudica_data::DataError;
use pudica_nn::NnError;
use pudica_probe::ProbeError;
use thiserror::Error;

/// Why something could not be built, checked or computed.
#[derive(Debug, Error)]
pub enum TheoryError {
    /// An argument makes no sense; the sentence says which and what would.
    #[error("{0}")]
    Argument(String),
    /// A file could not be read or written.
    #[error("cannot {action} {}: {}", path.display(), pudica_boolean::atomic::sentence(source))]
    Io {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A file was read but is not what it should be.
    #[error("{}: {problem}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A network could not be built or run.
    #[error(transparent)]
    Network(#[from] NnError),
    /// Strings or targets could not be made.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A measurement failed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A Boolean function could not be analysed.
    #[error(transparent)]
    Boolean(#[from] pudica_boolean::Error),
}

impl TheoryError {
    pub(crate) fn argument(problem: impl Into<String>) -> Self {
        Self::Argument(problem.into())
    }

    /// Wraps the operating system's reason for refusing `path`.
    pub(crate) fn io(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// `Result` with this crate's [`TheoryError`].
pub type Result<T, E = TheoryError> = std::result::Result<T, E>;
