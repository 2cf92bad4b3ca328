//! What classifiers are trained on and measured with: a data set as some family of networks takes it.

use std::collections::BTreeMap;

use pudica_data::{Split, Stream};
use pudica_nn::Device;
use pudica_nn::classifier::{Classifier, Model};
use pudica_probe::{Estimate, Profile};
use serde_json::{Map, Value, json};

use super::config::ClassifierConfig;
use crate::error::Result;
use crate::stop::Progress;

/// Under which [`Dataset::describe`] names the classes of a user's own data.
pub(super) const CLASSES: &str = "own_classes";

/// Inputs and their classes.
pub(super) type Batch<I> = (I, Vec<usize>);

/// Accuracies by what was done to the inputs.
pub(super) type Accuracies = BTreeMap<String, Estimate>;

/// A batch to train on.
pub(super) struct TrainingBatch<I> {
    pub input: I,
    pub labels: Vec<usize>,
    /// Inputs whose outputs should be near the batch's, where the regulariser is on.
    pub beside: Option<I>,
}

/// A data set as some kind of network takes it.
pub(super) trait Dataset {
    type Network: Classifier;

    /// The network of a run, for this data.
    fn network(&self, config: &ClassifierConfig) -> Result<Self::Network>;

    /// Whether a run can be made with this data, to its last measure.
    fn check(&self, config: &ClassifierConfig) -> Result<()> {
        self.network(config).map(|_| ())
    }

    /// Pixels in height and width, of images; 0 for texts.
    fn side(&self) -> usize {
        0
    }

    /// The class of each input of a split.
    fn labels(&self, split: Split) -> &[usize];

    /// Inputs of a split.
    fn count(&self, split: Split) -> usize {
        self.labels(split).len()
    }

    /// The inputs of these indices; all must be below [`Dataset::count`].
    fn batch(&self, split: Split, rows: &[usize]) -> Batch<<Self::Network as Classifier>::Input>;

    /// How often an epoch sees each training input: rows beyond their number are further copies.
    fn copies(&self, _: &ClassifierConfig) -> usize {
        1
    }

    /// The training inputs of these rows in an epoch, with what the run's interventions do to them.
    fn training_batch(
        &self,
        config: &ClassifierConfig,
        rows: &[usize],
        epoch: u64,
        step: u64,
    ) -> Result<TrainingBatch<<Self::Network as Classifier>::Input>>;

    /// Touches of one input in a measurement of sensitivity, on average.
    fn touches(&self, config: &ClassifierConfig) -> f64;

    /// How the predicted classes respond to the run's nudge.
    fn sensitivity(
        &self,
        model: &Model<Self::Network>,
        config: &ClassifierConfig,
        progress: &Progress,
    ) -> Result<Profile>;

    /// Accuracy on corrupted test inputs, by corruption.
    fn corrupted(&self, _: &Model<Self::Network>, _: &ClassifierConfig, _: &Progress) -> Result<Accuracies> {
        Ok(Accuracies::new())
    }

    /// Accuracy under attack, by the attack's name.
    fn attacked(&self, _: &Model<Self::Network>, _: &ClassifierConfig, _: &Progress) -> Result<Accuracies> {
        Ok(Accuracies::new())
    }

    /// Passes of one input in all attacks on it.
    fn attack_passes(&self, _: &ClassifierConfig) -> f64 {
        0.0
    }

    /// How many inputs of a split were found, and how many are published, where that is known.
    fn found(&self, split: Split) -> (usize, Option<usize>);

    /// The names of the classes of a user's own data; none of a known data set.
    fn own_classes(&self) -> Option<&[String]>;

    /// What is to be known about the data: how much was found, what was cut.
    fn describe(&self) -> Map<String, Value>;

    /// How many inputs each class has in a split.
    fn class_counts(&self, split: Split) -> Vec<usize> {
        let mut counts = vec![0; self.own_classes().map_or(0, <[String]>::len)];
        for label in self.labels(split) {
            counts.resize(counts.len().max(label + 1), 0);
            counts[*label] += 1;
        }
        counts
    }

    /// The classes of a user's own data, by name and count, for [`Dataset::describe`].
    fn describe_classes(&self) -> Option<Value> {
        let counts = Split::ALL.map(|split| self.class_counts(split));
        let class = |(at, name): (usize, &String)| json!({"name": name, "train": counts[0][at], "test": counts[1][at]});
        Some(self.own_classes()?.iter().enumerate().map(class).collect())
    }
}

/// Inputs given to a network at once in a measurement: more keep a GPU busy, fewer stay in a processor's caches.
pub(super) fn pack(device: &Device) -> usize {
    if device.name() == "cuda" { 1000 } else { 100 }
}

/// So many of `count` inputs, in order: all of them where `asked` is 0 or more than there are. Named by the data's seed, so that all runs
/// of a sweep share them.
pub(super) fn sample(count: usize, asked: usize, seed: u64, purpose: &str) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..count).collect();
    if asked > 0 && asked < count {
        Stream::new(seed, purpose, 0).shuffle(&mut rows);
        rows.truncate(asked);
        rows.sort_unstable();
    }
    rows
}
