//! Kind `grokking`: sensitivity as a progress measure on modular arithmetic (final version of Vasudeva et al.). Every epoch is a
//! [`GrokkingPoint`], one line of a run's metrics; runs that differ in their seed alone train in lock-step.

mod config;
pub mod onset;
mod training;

use pudica_nn::grokking::Measures;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::compute::Abilities;
use crate::error::{Error, Result};
use crate::kinds::{Kind, SettingsOf};

pub use config::GrokkingConfig;
pub use onset::{Change, Onsets};

/// The kind.
pub static KIND: Kind = Kind {
    name: "grokking",
    about: "transformers that learn modular arithmetic from some of its pairs",
    abilities: Abilities {
        devices: &["cpu", "cuda", "torch"],
        dtypes: &["f32", "tf32"],
        engines: &["standard"],
        data: false,
        jobs: false,
        together: true,
    },
    figures: "grokking",
    naming: &["operation", "modulus", "seed"],
    headline: &["test_accuracy", "sensitivity", "test_rise_half"],
    measures: &[
        "train_loss",
        "train_accuracy",
        "test_loss",
        "test_accuracy",
        "sensitivity",
        "weight_norm",
        "memorised",
        "sensitivity_fall_start",
        "sensitivity_fall_half",
        "test_rise_start",
        "test_rise_half",
    ],
    settings: SettingsOf::of::<GrokkingConfig>(),
    teacher: |_| None,
    trained: |folder, _| training::trained(folder),
    open: training::open,
};

/// A run after some epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GrokkingPoint {
    /// Epochs trained; with one batch an epoch, steps made.
    #[serde(rename = "step")]
    pub epoch: u64,
    /// What is known of the network.
    #[serde(flatten)]
    pub measures: Measures,
    /// Seconds spent so far; on the last line of a piece of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl GrokkingPoint {
    fn new(epoch: u64, measures: &Measures) -> Self {
        // They were computed in f32: its shortest digits, not those of the nearest f64, keep the files small.
        let short = |value: f64| (value as f32).to_string().parse().unwrap_or(value);
        let measures = Measures {
            train_loss: short(measures.train_loss),
            train_accuracy: short(measures.train_accuracy),
            test_loss: short(measures.test_loss),
            test_accuracy: short(measures.test_accuracy),
            sensitivity: short(measures.sensitivity),
            weight_norm: short(measures.weight_norm),
        };
        GrokkingPoint { epoch, measures, seconds: None }
    }

    /// The standard error of its sensitivity over this many training pairs.
    pub fn sensitivity_std_error(&self, pairs: usize) -> f64 {
        let share = self.measures.sensitivity;
        (share * (1.0 - share) / (pairs.max(2) - 1) as f64).sqrt()
    }

    /// Its numbers by name, without the epoch.
    fn values(self) -> Result<Map<String, Value>> {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut line)) => {
                line.retain(|name, _| !["step", "seconds"].contains(&name.as_str()));
                Ok(line)
            }
            other => Err(Error::Other(format!("an epoch could not be written ({other:?})"))),
        }
    }

    fn from_line(line: Map<String, Value>) -> Result<Self> {
        serde_json::from_value(line.into())
            .map_err(|error| Error::Other(format!("a line of metrics.jsonl is not an epoch ({error})")))
    }
}
