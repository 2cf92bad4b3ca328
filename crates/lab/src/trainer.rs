//! What the laboratory needs from whatever trains networks. The real one is [`crate::networks`]; tests use a cheap one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};

use crate::config::RunConfig;
use crate::error::{Error, Result};

/// Begins and continues runs.
pub trait Trainer: Sync {
    /// A run at its beginning, or where its checkpoint left it.
    fn begin(
        &self,
        config: &RunConfig,
        teacher: Option<&Teacher>,
        checkpoint: Option<&Path>,
    ) -> Result<Box<dyn Training>>;

    /// What it computes on, for the record.
    fn device(&self) -> String;
}

/// The finished run whose labels a target `run:ID` means.
#[derive(Clone, Debug)]
pub struct Teacher {
    /// Its settings.
    pub config: RunConfig,
    /// Its trained network.
    pub weights: PathBuf,
}

/// A run in progress. Equal settings and equal step mean equal numbers, however often it was interrupted.
pub trait Training {
    /// Steps made.
    fn step(&self) -> u64;

    /// Makes one step and returns its training loss, which may be infinite or NaN.
    fn advance(&mut self) -> Result<f64>;

    /// The measures followed during training, on one fixed batch.
    fn track(&mut self, stop: &Stop) -> Result<Map<String, Value>>;

    /// The measures taken after training.
    fn measure(&mut self, stop: &Stop) -> Result<Measured>;

    /// Writes what [`Trainer::begin`] needs to continue.
    fn save_checkpoint(&self, path: &Path) -> Result<()>;

    /// Writes the network.
    fn save_weights(&self, path: &Path) -> Result<()>;
}

/// The result of measuring a trained network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Whether the evaluation loss is below the threshold.
    pub converged: bool,
    /// Measures by name.
    pub measures: Map<String, Value>,
    /// Larger results.
    pub detail: Map<String, Value>,
}

/// A request to stop, shared by all that hold a clone of it; Ctrl-C requests it.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Its own flag, then those of the requests it heeds as well.
    flags: Vec<Arc<AtomicBool>>,
}

impl Default for Stop {
    fn default() -> Self {
        Stop { flags: vec![Arc::default()] }
    }
}

impl Stop {
    /// Not requested yet.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// A new request that is also made whenever this one is, but not the other way round.
    pub fn heeded_by_new(&self) -> Stop {
        let mut new = Stop::new();
        new.flags.extend(self.flags.iter().cloned());
        new
    }

    /// Asks everyone to stop.
    pub fn request(&self) {
        self.flags[0].store(true, Ordering::SeqCst);
    }

    /// Whether stopping was requested.
    pub fn requested(&self) -> bool {
        self.flags.iter().any(|flag| flag.load(Ordering::SeqCst))
    }

    /// An error if stopping was requested; long computations call this every now and then.
    pub fn check(&self) -> Result<()> {
        if self.requested() { Err(Error::Stopped) } else { Ok(()) }
    }
}
