//! The experiment `vasudeva/grokking`: sensitivity as a progress measure on modular arithmetic (final version of Vasudeva et al.).
//!
//! - [`GrokkingConfig`]: the settings of one run.
//! - [`execute_grokking`]: makes the runs of a plan; runs that differ in their seed alone train at once.
//! - [`Onsets`]: when a run memorises, when its sensitivity falls and when it generalises.
//! - [`read_grokking`]: what a folder holds.
//!
//! The folders are those of [`crate::store`]; every epoch is a [`GrokkingPoint`], one line of a run's metrics.

mod config;
mod execute;
pub mod onset;

use std::path::Path;

use pudica_nn::grokking::Measures;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use config::GrokkingConfig;
pub use execute::{Company, estimate_grokking, execute_grokking};
pub use onset::{Change, Onsets};

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::recipe::Kind;
use crate::store::{RunSummary, SweepFolder, SweepRecord};

/// The runs of the experiment, in order.
pub type GrokkingPlan = Plan<GrokkingConfig>;

/// A run after some epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GrokkingPoint {
    /// Epochs trained; with one batch an epoch, steps made.
    #[serde(rename = "step")]
    pub epoch: u64,
    /// Mean cross-entropy on the training pairs.
    pub train_loss: f64,
    /// Share of right results on the training pairs.
    pub train_accuracy: f64,
    /// Mean cross-entropy on the other pairs.
    pub test_loss: f64,
    /// Share of right results on the other pairs.
    pub test_accuracy: f64,
    /// Share of training pairs whose predicted result changes when noise is added to the embeddings of both numbers.
    pub sensitivity: f64,
    /// Euclidean norm of all parameters.
    pub weight_norm: f64,
    /// Seconds spent so far; on the last line of a piece of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl GrokkingPoint {
    fn new(epoch: u64, measures: &Measures) -> Self {
        // They were computed in f32: its shortest digits, not those of the nearest f64, keep the files small.
        let short = |value: f64| (value as f32).to_string().parse().unwrap_or(value);
        GrokkingPoint {
            epoch,
            train_loss: short(measures.train_loss),
            train_accuracy: short(measures.train_accuracy),
            test_loss: short(measures.test_loss),
            test_accuracy: short(measures.test_accuracy),
            sensitivity: short(measures.sensitivity),
            weight_norm: short(measures.weight_norm),
            seconds: None,
        }
    }

    /// The standard error of its sensitivity over this many training pairs.
    pub fn sensitivity_std_error(&self, pairs: usize) -> f64 {
        (self.sensitivity * (1.0 - self.sensitivity) / (pairs.max(2) - 1) as f64).sqrt()
    }

    fn to_line(self) -> Result<Map<String, Value>> {
        match serde_json::to_value(self) {
            Ok(Value::Object(line)) => Ok(line),
            other => Err(Error::Training(format!("an epoch could not be written ({other:?})"))),
        }
    }

    fn from_line(line: Map<String, Value>) -> Result<Self> {
        serde_json::from_value(line.into())
            .map_err(|error| Error::Training(format!("a line of metrics.jsonl is not an epoch ({error})")))
    }
}

/// One run as its folder holds it.
#[derive(Clone, Debug)]
pub struct GrokkingRun {
    /// Its id, which names its folder.
    pub id: String,
    /// Its settings.
    pub config: GrokkingConfig,
    /// Every epoch so far.
    pub points: Vec<GrokkingPoint>,
    /// Its outcome, if it has ended.
    pub summary: Option<RunSummary>,
}

/// Whether a folder holds this experiment.
pub fn is_grokking_folder(folder: &Path) -> bool {
    SweepFolder::open(folder).is_ok_and(|folder| folder.record().kind == Kind::Grokking)
}

/// What a folder holds: what was asked for, and the runs that have at least begun.
pub fn read_grokking(folder: &Path) -> Result<(SweepRecord, Vec<GrokkingRun>)> {
    let folder = SweepFolder::open(folder)?;
    let mut runs = Vec::new();
    for run in folder.runs_of::<GrokkingConfig>()? {
        let points = run.folder.metrics()?.into_iter().map(GrokkingPoint::from_line).collect::<Result<_>>()?;
        runs.push(GrokkingRun { id: run.record.id, config: run.config, points, summary: run.summary });
    }
    Ok((folder.record().clone(), runs))
}
