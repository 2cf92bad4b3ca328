//! One evaluation of a network in training: one line of its metrics.

use std::collections::BTreeMap;

use pudica_probe::Profile;
use pudica_statistics::{Estimate, brief};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// What was found at one evaluation. On the line of `metrics.jsonl`, and in a summary's measures, the numbers stand under these names.
///
/// At its end a run's summary has in addition `train_majority_fraction` and `test_majority_fraction`, the accuracy of whoever always gives the
/// most frequent class of that set; and, where asked for, each with its `_std_error`: `accuracy_CORRUPTION`; `shop` (the sum over
/// classes), `shop_l2` (the Euclidean length) and `shpred`; `adversarial_METHOD_NORM_DISTANCE`, the accuracy under attack; `hessian_trace`.
/// Further, `hessian_top` (the largest eigenvalue) with `hessian_top_residual` (it is within so much of an eigenvalue) and
/// `hessian_step_error` (how far products change when their finite difference is halved).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Training steps made.
    pub step: u64,
    /// Epochs completed.
    pub epoch: u64,
    /// Mean cross-entropy on the training set, as in prediction (no dropout).
    pub train_loss: f64,
    /// Share of the training set classified right.
    pub train_accuracy: f64,
    /// Mean cross-entropy on the test set.
    pub test_loss: f64,
    /// Its standard error over test inputs.
    pub test_loss_std_error: f64,
    /// Share of the test set classified right.
    pub test_accuracy: f64,
    /// Its standard error over test inputs.
    pub test_accuracy_std_error: f64,
    /// Fraction of the training set that is given the most predicted class: 1 if the network gives all inputs the same; absent in lines of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_largest_class_fraction: Option<f64>,
    /// The same of the test set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_largest_class_fraction: Option<f64>,
    /// Sensitivity: the share of touches that change the predicted class, averaged over inputs, sites and draws; absent where it was not
    /// asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<f64>,
    /// Its standard error over inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity_std_error: Option<f64>,
    /// Inputs touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity_inputs: Option<u64>,
    /// Sensitivity at each site: patches row by row; tokens counted from the RIGHT end of their text.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "brief")]
    pub sites: Vec<Estimate>,
    /// Share of corrupted test images classified right, by corruption.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "brief")]
    pub corruptions: BTreeMap<String, Estimate>,
    /// Wall-clock seconds spent on the run so far.
    #[serde(default)]
    pub seconds: f64,
}

/// An estimate as the lines of `metrics.jsonl` have it: a standard error of 0 where there is only one value.
pub(super) fn with_error(estimate: Estimate) -> Estimate {
    Estimate { std_error: Some(estimate.error_or_zero()), ..estimate }
}

impl Point {
    /// The line of the metrics.
    pub(super) fn to_line(&self) -> Result<Map<String, Value>> {
        match serde_json::to_value(self) {
            Ok(Value::Object(line)) => Ok(line),
            other => Err(Error::Other(format!("an evaluation could not be written ({other:?})"))),
        }
    }

    /// Reads a line of the metrics.
    pub(super) fn from_line(line: Map<String, Value>) -> Result<Point> {
        serde_json::from_value(line.into())
            .map_err(|error| Error::Other(format!("a line of metrics.jsonl is not an evaluation ({error})")))
    }

    /// The numbers for a summary: everything but where it stands and the profiles.
    pub(super) fn measures(&self) -> Result<Map<String, Value>> {
        let mut line = self.to_line()?;
        line.retain(|name, value| !["step", "seconds"].contains(&name.as_str()) && value.is_number());
        for (name, accuracy) in &self.corruptions {
            line.insert(format!("accuracy_{name}"), accuracy.mean.into());
            line.insert(format!("accuracy_{name}_std_error"), accuracy.error_or_zero().into());
        }
        Ok(line)
    }

    /// Takes in the answers to a nudge.
    pub(super) fn take_in(&mut self, profile: &Profile) {
        self.sensitivity = Some(profile.mean.mean);
        self.sensitivity_std_error = profile.mean.std_error;
        self.sensitivity_inputs = Some(profile.by_input.len() as u64);
        self.sites = profile.by_site.iter().map(|site| with_error(Estimate::sampled(site))).collect();
    }
}
