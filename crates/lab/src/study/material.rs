//! What a study trains on and measures with: a data set as some kind of network takes it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pudica_data::{Split, Stream};
use pudica_nn::Device;
use pudica_nn::classifier::{Classifier, Model};
use pudica_probe::Profile;
use serde_json::{Map, Value};

use super::config::StudyConfig;
use super::point::Site;
use crate::error::Result;
use crate::trainer::Stop;

/// Inputs and their classes.
pub(super) type Batch<I> = (I, Vec<usize>);

/// A batch to train on.
pub(super) struct TrainingBatch<I> {
    pub input: I,
    pub labels: Vec<usize>,
    /// Inputs whose outputs should be near the batch's, where the regulariser is on.
    pub beside: Option<I>,
}

/// A data set as some kind of network takes it.
pub(super) trait Material {
    type Network: Classifier;

    /// The network of a run, for this data.
    fn network(&self, config: &StudyConfig) -> Result<Self::Network>;

    /// Whether a run can be made with this data, to its last measure.
    fn check(&self, config: &StudyConfig) -> Result<()> {
        self.network(config).map(|_| ())
    }

    /// Inputs of a split.
    fn count(&self, split: Split) -> usize;

    /// The inputs of these indices; all must be below [`Material::count`].
    fn batch(&self, split: Split, rows: &[usize]) -> Batch<<Self::Network as Classifier>::Input>;

    /// How often an epoch sees each training input: rows beyond their number are further copies.
    fn copies(&self, _: &StudyConfig) -> usize {
        1
    }

    /// The training inputs of these rows in an epoch, with what the run's interventions do to them.
    fn training_batch(
        &self,
        config: &StudyConfig,
        rows: &[usize],
        epoch: u64,
        step: u64,
    ) -> Result<TrainingBatch<<Self::Network as Classifier>::Input>>;

    /// Touches of one input in a measurement of sensitivity, on average.
    fn touches(&self, config: &StudyConfig) -> f64;

    /// How the predicted classes answer to the run's nudge on the inputs of these rows.
    fn sensitivity(&self, model: &Model<Self::Network>, config: &StudyConfig, watch: &Watch) -> Result<Profile>;

    /// Accuracy on corrupted test inputs, by corruption.
    fn corrupted(&self, _: &Model<Self::Network>, _: &StudyConfig, _: &Watch) -> Result<BTreeMap<String, Site>> {
        Ok(BTreeMap::new())
    }

    /// Accuracy under attack, by the attack's name.
    fn attacked(&self, _: &Model<Self::Network>, _: &StudyConfig, _: &Watch) -> Result<BTreeMap<String, Site>> {
        Ok(BTreeMap::new())
    }

    /// Passes of one input in all attacks on it.
    fn attack_passes(&self, _: &StudyConfig) -> f64 {
        0.0
    }

    /// Splits of which not all that is published was found: their names, and how many inputs were found of how many.
    fn incomplete(&self) -> Vec<(&'static str, usize, usize)>;

    /// What is to be known about the data: how much was found, what was cut.
    fn describe(&self) -> Map<String, Value>;
}

/// Inputs given to a network at once in a measurement: more keep a GPU busy, fewer stay in a processor's caches.
pub(super) fn pack(device: &Device) -> usize {
    if device.name() == "cuda" { 1000 } else { 100 }
}

/// So many of `count` inputs, in order: all of them where `asked` is 0 or more than there are. Named by the data's seed, so that all runs
/// of a study share them.
pub(super) fn sample(count: usize, asked: usize, seed: u64, purpose: &str) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..count).collect();
    if asked > 0 && asked < count {
        Stream::new(seed, purpose, 0).shuffle(&mut rows);
        rows.truncate(asked);
        rows.sort_unstable();
    }
    rows
}

/// Counts the work of a run, tells how far it is, and knows when to stop. The unit is one forward pass of one input.
pub(super) struct Watch<'a> {
    stop: &'a Stop,
    passes: Cell<f64>,
    step: Cell<u64>,
    loss: Cell<f64>,
    told: Cell<Instant>,
    /// Hears passes made, steps made, and the latest training loss.
    tell: &'a dyn Fn(f64, u64, f64),
}

/// Progress is told at most this often.
const TELL_EVERY: Duration = Duration::from_millis(100);

impl<'a> Watch<'a> {
    pub(super) fn new(stop: &'a Stop, tell: &'a dyn Fn(f64, u64, f64)) -> Self {
        let (passes, step, loss) = (Cell::new(0.0), Cell::new(0), Cell::new(f64::NAN));
        Watch { stop, passes, step, loss, told: Cell::new(Instant::now()), tell }
    }

    /// The training has come this far.
    pub(super) fn at(&self, step: u64, loss: Option<f64>) {
        self.step.set(step);
        if let Some(loss) = loss {
            self.loss.set(loss);
        }
    }

    /// So many passes are made; an error if stopping was requested.
    pub(super) fn made(&self, passes: f64) -> Result<()> {
        self.passes.set(self.passes.get() + passes);
        if self.told.get().elapsed() > TELL_EVERY {
            (self.tell)(self.passes.get(), self.step.get(), self.loss.get());
            self.told.set(Instant::now());
        }
        self.stop.check()
    }

    /// Whether stopping was requested.
    pub(super) fn stopped(&self) -> bool {
        self.stop.requested()
    }
}
