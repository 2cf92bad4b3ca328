//! What the laboratory needs from whatever trains networks. The real one is [`crate::networks`]; tests use a cheap one.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pudica_ensemble::StepWork;
use serde_json::{Map, Value};

use crate::config::RunConfig;
use crate::error::{Error, Result};

/// Begins and continues runs, alone or in company.
pub trait Trainer: Sync {
    /// How many runs like this one may train in lock-step, at most; 1: it trains alone. Only runs that [`may train
    /// together`](crate::company) are put together.
    fn company(&self, config: &RunConfig) -> Result<usize>;

    /// The step a checkpoint was made at.
    fn step_of(&self, config: &RunConfig, checkpoint: &[u8]) -> Result<u64>;

    /// One or more runs, all at their beginning or all at the same step of their checkpoints.
    fn begin(&self, runs: &[Start]) -> Result<Box<dyn Training>>;
}

/// A run at its beginning, or where its checkpoint left it.
#[derive(Clone, Debug)]
pub struct Start<'a> {
    /// Its settings.
    pub config: &'a RunConfig,
    /// Whose labels it learns, if another run's.
    pub teacher: Option<&'a Teacher>,
    /// What [`Training::checkpoint`] gave.
    pub checkpoint: Option<Vec<u8>>,
}

/// The finished run whose labels a target `run:ID` means.
#[derive(Clone, Debug)]
pub struct Teacher {
    /// Its settings.
    pub config: RunConfig,
    /// Its trained network.
    pub weights: PathBuf,
}

/// Runs in progress, in lock-step, numbered as they were begun. Equal settings and equal step mean equal numbers, in whatever company and
/// however often interrupted.
pub trait Training {
    /// Steps made.
    fn step(&self) -> u64;

    /// What it computes on, for the record.
    fn device(&self) -> String;

    /// What one step of all runs asks of the device, where that is counted; known once a step was made.
    fn step_work(&self) -> Option<StepWork> {
        None
    }

    /// Makes `count` steps and returns their training losses, by step and then by run. A loss may be infinite or NaN: that run is lost, its later
    /// losses mean nothing, and the others go on undisturbed.
    fn advance(&mut self, count: usize) -> Result<Vec<Vec<f64>>>;

    /// One forward pass of every run on a batch as large as in training; only its time counts.
    fn pass(&mut self) -> Result<()>;

    /// The measures followed during training, on one fixed batch for each run.
    fn track(&mut self, stop: &Stop) -> Result<Vec<Map<String, Value>>>;

    /// The measures taken after training; a run that is lost gets none. `progress` hears how much of the measuring is done, 0 to 1.
    fn measure(&mut self, stop: &Stop, progress: &mut (dyn FnMut(f64) + Send)) -> Result<Vec<Option<Measured>>>;

    /// What [`Trainer::begin`] needs to continue the run.
    fn checkpoint(&self, run: usize) -> Result<Vec<u8>>;

    /// The run's network, as a file.
    fn weights(&self, run: usize) -> Result<Vec<u8>>;
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
