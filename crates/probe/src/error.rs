//! What can go wrong while measuring.

use thiserror::Error;

/// Why a measure could not be taken.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// A setting of the measure makes no sense.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting, as a user writes it.
        setting: &'static str,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// An average over nothing was asked for.
    #[error("{0} needs at least one batch, but there was none")]
    NoBatches(&'static str),
    /// The blowup of a network without norms was asked for.
    #[error("these networks have no norms, so there is no blowup to measure")]
    NoNorms,
    /// Nothing was to be touched.
    #[error("there is nothing to touch: at least one input is needed")]
    NoInputs,
    /// A subject gave too few or too many answers.
    #[error("the model gave {found} answers to {asked} {to}; it must give one for each, in their order")]
    Answers {
        /// What it was asked.
        to: &'static str,
        /// How many of them.
        asked: usize,
        /// How many answers came.
        found: usize,
    },
    /// The inputs could not be drawn.
    #[error(transparent)]
    Data(#[from] pudica_data::DataError),
    /// The learnt function could not be analysed.
    #[error(transparent)]
    Boolean(#[from] pudica_boolean::Error),
    /// The network could not be run.
    #[cfg(feature = "networks")]
    #[error(transparent)]
    Network(#[from] pudica_nn::NnError),
    /// The ensemble could not be run.
    #[cfg(feature = "networks")]
    #[error(transparent)]
    Ensemble(#[from] pudica_ensemble::EnsembleError),
}

impl ProbeError {
    /// A count that must not be zero.
    pub(crate) fn at_least_one(setting: &'static str, value: usize) -> Result<(), Self> {
        match value {
            0 => Err(Self::Setting { setting, problem: "must be at least 1, but is 0".into() }),
            _ => Ok(()),
        }
    }

    /// There must be an answer to each.
    pub(crate) fn as_many(to: &'static str, asked: usize, found: usize) -> Result<(), Self> {
        match asked == found {
            true => Ok(()),
            false => Err(Self::Answers { to, asked, found }),
        }
    }
}
