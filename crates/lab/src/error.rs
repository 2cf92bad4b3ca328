//! Everything that can go wrong in the laboratory, each said in one sentence: what, where, and what to do.

use std::path::{Path, PathBuf};

use pudica_data::DataError;
use pudica_ensemble::EnsembleError;
use pudica_nn::NnError;
use pudica_probe::ProbeError;
use pudica_theory::TheoryError;

/// The error of every fallible function in this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting has a value that cannot be run.
    #[error("{key}: {problem}")]
    Setting {
        /// The dotted name of the setting, such as `model.heads`.
        key: String,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// A setting's name is not known.
    #[error("unknown setting `{key}`{}", nearest_or_list(.nearest))]
    UnknownSetting {
        /// What was written.
        key: String,
        /// The known name that looks most like it.
        nearest: Option<String>,
    },
    /// A recipe's name is not known.
    #[error("unknown recipe `{name}`{}; `pudica list` shows all, and a path to your own .toml file works too", did_you_mean(.nearest))]
    UnknownRecipe {
        /// What was written.
        name: String,
        /// The known recipe that looks most like it.
        nearest: Option<String>,
    },
    /// A recipe file does not say what to run.
    #[error("recipe {recipe}: {problem}")]
    Recipe {
        /// The recipe's name or path.
        recipe: String,
        /// What is wrong in it.
        problem: String,
    },
    /// An override on the command line cannot be read.
    #[error("`{text}` is not an override: {problem}")]
    Override {
        /// The argument as typed.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}: {}", .path.display(), io_sentence(.source))]
    Io {
        /// What was attempted, as a verb: "read", "write", "create".
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A stored file exists but does not hold what it should.
    #[error("{} is damaged ({problem}); move its folder away and run again to make it anew, or run its `pudica run` again with --repair", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        problem: String,
    },
    /// A sweep folder that this program cannot use.
    #[error("{}: {problem}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why it cannot be used and what to do.
        problem: String,
    },
    /// Data that is not there or cannot be read.
    #[error("{0}")]
    Data(String),
    /// Anything else, in one sentence.
    #[error("{0}")]
    Other(String),
    /// Another process has taken over a run, because this one was silent for long; it must write nothing more of it.
    #[error("run {run} was taken over by another process, which goes on with it")]
    TakenOver {
        /// The run's id.
        run: String,
    },
    /// The run was asked to stop; its state is saved.
    #[error("stopped on request; run the same command again to continue")]
    Stopped,
}

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn setting(key: &str, problem: impl Into<String>) -> Self {
        Error::Setting { key: key.into(), problem: problem.into() }
    }

    /// What the system said about a file: `map_err(Error::io("read", path))`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Error::Io { action, path, source }
    }

    pub(crate) fn damaged(path: &Path, problem: impl ToString) -> Self {
        Error::Damaged { path: path.into(), problem: problem.to_string() }
    }
}

impl From<NnError> for Error {
    fn from(error: NnError) -> Self {
        match error {
            NnError::Setting { setting, problem } => Error::setting(setting, problem),
            NnError::File { path, source } => Error::Io { action: "use", path, source },
            other => Error::Other(other.to_string()),
        }
    }
}

impl From<DataError> for Error {
    fn from(error: DataError) -> Self {
        Error::Other(error.to_string())
    }
}

impl From<EnsembleError> for Error {
    fn from(error: EnsembleError) -> Self {
        match error {
            EnsembleError::Nn(error) => error.into(),
            EnsembleError::Data(error) => error.into(),
            other => Error::Other(other.to_string()),
        }
    }
}

impl From<ProbeError> for Error {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Network(error) => error.into(),
            ProbeError::Ensemble(error) => error.into(),
            other => Error::Other(other.to_string()),
        }
    }
}

impl From<TheoryError> for Error {
    fn from(error: TheoryError) -> Self {
        Error::Other(error.to_string())
    }
}

fn nearest_or_list(nearest: &Option<String>) -> String {
    match nearest {
        Some(_) => did_you_mean(nearest),
        None => "; `pudica settings` lists them all".into(),
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn io_sentence(source: &std::io::Error) -> String {
    let sentence = pudica_boolean::atomic::sentence(source);
    match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            format!("{sentence}, finished runs and checkpoints are kept")
        }
        _ => sentence,
    }
}
