//! What the laboratory needs of a kind of experiment: how its runs begin, advance and are measured. Everything else (plans, folders,
//! checkpoints, failures, progress) is the same for all kinds and is done by [`execute`](crate::execute()).

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::settings::Settings;
use crate::stop::Progress;
use crate::store::RunSummary;

/// The runs of one plan on one machine: data and device are at hand.
pub trait Experiment: Sync {
    /// What the user should know beforehand, such as data that is incomplete.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    /// Groups of runs that train side by side where nobody says how many.
    fn default_jobs(&self) -> usize {
        1
    }

    /// With which runs this one may train in lock-step.
    fn lockstep(&self, settings: &Settings) -> Result<Lockstep>;

    /// Seconds per unit of work, where work is counted by what was measured beforehand.
    fn seconds_per_work(&self) -> Option<f64> {
        None
    }

    /// How much computing the run needs.
    fn work(&self, settings: &Settings) -> Result<Work>;

    /// What a run's data are; going on with a run on other data is refused.
    fn data(&self, _: &Settings) -> Option<Map<String, Value>> {
        None
    }

    /// The step a checkpoint was made at.
    fn step_of(&self, settings: &Settings, checkpoint: &[u8]) -> Result<u64>;

    /// Why a finished run cannot be the teacher of others, if it cannot.
    fn refuse_teacher(&self, _: &Teacher) -> Option<String> {
        None
    }

    /// One or more runs of one [`Lockstep::key`], all at their beginning or all at the same step of their checkpoints.
    fn begin(&self, runs: &[RunStart]) -> Result<Box<dyn Training + '_>>;

    /// So many runs that cost what this one costs, for timing; what they learn does not matter.
    fn trial(&self, settings: &Settings, replicas: usize) -> Result<Box<dyn Training + '_>> {
        let start = RunStart { settings, teacher: None, checkpoint: None, lines: Vec::new() };
        self.begin(&vec![start; replicas])
    }
}

/// Which runs may train together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockstep {
    /// What runs that train in lock-step have in common, as one comparable text.
    pub key: String,
    /// How many of them, at most.
    pub most: usize,
}

/// The work of one run, in a unit of the kind's own that is the same for all runs of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Training steps.
    pub steps: u64,
    /// Work of one step.
    pub step: f64,
    /// Work of one line of metrics.
    pub line: f64,
    /// Steps between lines; 0: none.
    pub line_every: u64,
    /// Whether there is a line before the first step.
    pub line_at_start: bool,
    /// Work of measuring the trained network.
    pub measure: f64,
}

impl Work {
    /// Work of a run that has come to this step and has its line there.
    pub fn until(&self, step: u64) -> f64 {
        let lines = step.checked_div(self.line_every).unwrap_or(0) + u64::from(self.line_at_start);
        self.step * step as f64 + self.line * lines as f64
    }

    /// All of it.
    pub fn total(&self) -> f64 {
        self.until(self.steps) + self.measure
    }
}

/// A run at its beginning, or where its checkpoint left it.
#[derive(Clone, Debug)]
pub struct RunStart<'a> {
    /// Its settings.
    pub settings: &'a Settings,
    /// Whose labels it learns, if another run's.
    pub teacher: Option<&'a Teacher>,
    /// What [`Training::checkpoint`] gave.
    pub checkpoint: Option<Vec<u8>>,
    /// The lines logged up to that checkpoint.
    pub lines: Vec<Map<String, Value>>,
}

/// The finished run whose labels another one learns.
#[derive(Clone, Debug)]
pub struct Teacher {
    /// Its settings.
    pub settings: Settings,
    /// Its outcome.
    pub summary: RunSummary,
    /// Its trained network.
    pub weights: PathBuf,
}

/// Runs in progress, in lock-step, numbered as they were begun. Equal settings and equal step mean equal numbers, in whatever group and
/// however often interrupted.
pub trait Training {
    /// Steps made.
    fn step(&self) -> u64;

    /// What it computes on, for the record.
    fn device(&self) -> String;

    /// The latest training loss of a run; NaN before the first step.
    fn loss(&self, run: usize) -> f64;

    /// Where and with which loss a run was lost, if it was: its later numbers mean nothing, and the others go on undisturbed.
    fn lost(&self, run: usize) -> Option<Lost>;

    /// Makes at least one and at most `at_most` steps, not past the next line of metrics that must be measured.
    fn advance(&mut self, at_most: u64) -> Result<()>;

    /// The lines of metrics due since the last call, up to the present step, for each run; called before the first step, too. Lines that
    /// were gathered on the way are handed out even when stopping is requested; one that must be measured now may be refused then.
    fn lines(&mut self, progress: &Progress) -> Result<Vec<Vec<Line>>>;

    /// The measures taken after training; a run that is lost gets none.
    fn measure(&mut self, progress: &Progress) -> Result<Vec<Option<Measured>>>;

    /// What [`Experiment::begin`] needs to continue the run.
    fn checkpoint(&self, run: usize) -> Result<Vec<u8>>;

    /// The run's network as a file; `None` where there is nothing to keep.
    fn weights(&self, run: usize) -> Result<Option<Vec<u8>>>;

    /// One forward pass of every run, for timing: returns its work for each run. 0: there is no pass by itself.
    fn pass(&mut self) -> Result<f64> {
        Ok(0.0)
    }
}

/// How a run was lost: its loss is infinite or not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lost {
    /// The step after which it was noticed.
    pub step: u64,
    /// The loss.
    pub loss: f64,
}

/// A line of metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Steps made.
    pub step: u64,
    /// Numbers by name.
    pub values: Map<String, Value>,
}

/// The result of measuring a trained network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Whether the run counts in figures: its loss is below the threshold, where there is one.
    pub converged: bool,
    /// Measures by name.
    pub measures: Map<String, Value>,
    /// Larger results.
    pub detail: Map<String, Value>,
}
