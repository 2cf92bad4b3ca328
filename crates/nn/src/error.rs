//! What can go wrong with a network, in sentences a user can act on.

use std::path::PathBuf;

use thiserror::Error;

/// Why a network could not be built, run, trained, saved or loaded.
#[derive(Debug, Error)]
pub enum NnError {
    /// A setting of the architecture or the optimiser makes no sense.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting, as a user writes it (`model.heads`, `train.lr`, ...).
        setting: &'static str,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// The device is unknown, not in this binary, or not in this machine.
    #[error("device \"{name}\": {problem}")]
    Device {
        /// The device asked for.
        name: String,
        /// Why it cannot be used.
        problem: String,
    },
    /// The weights are not those of this architecture.
    #[error("these weights do not fit the network: {0}")]
    Layout(String),
    /// A batch does not fit the network.
    #[error("this batch does not fit the network: {0}")]
    Batch(String),
    /// Training left the range of numbers.
    #[error("the loss became {loss} at step {step}; a smaller learning rate than {lr} usually helps")]
    Diverged {
        /// The step (counted from 1) whose loss it was.
        step: u64,
        /// NaN, an infinity, or beyond what f32 holds.
        loss: f64,
        /// The learning rate in use.
        lr: f64,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
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
    /// Stored tensors are not what they should be.
    #[error("{0}")]
    Stored(String),
    /// The backend could not finish a computation.
    #[error("the device could not finish a computation: {0}")]
    Computation(String),
}

impl NnError {
    pub(crate) fn setting(setting: &'static str, problem: impl Into<String>) -> Self {
        Self::Setting { setting, problem: problem.into() }
    }
}
