//! How long a run's training is, and how many forward passes its parts take.

use pudica_data::{Split, Stream};
use pudica_probe::NudgeName;

use super::config::ClassifierConfig;
use super::curvature;
use super::dataset::Dataset;

/// A backward pass costs about two forward passes.
const STEP_IN_PASSES: f64 = 3.0;

/// How long a run's training is: epochs of batches.
#[derive(Clone, Copy)]
pub(super) struct Schedule {
    /// Rows of an epoch: training inputs, and copies of them.
    pub rows: usize,
    pub batch: usize,
    pub steps_per_epoch: u64,
    pub steps: u64,
}

impl Schedule {
    pub(super) fn of<M: Dataset>(config: &ClassifierConfig, dataset: &M) -> Schedule {
        let rows = dataset.count(Split::Train) * dataset.copies(config);
        let batch = config.train.batch;
        let steps_per_epoch = rows.div_ceil(batch) as u64;
        Schedule { rows, batch, steps_per_epoch, steps: steps_per_epoch.saturating_mul(config.train.epochs) }
    }

    /// The rows of every batch of an epoch, shuffled.
    pub(super) fn order(&self, seed: u64, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows).collect();
        Stream::new(seed, "epoch", epoch).shuffle(&mut order);
        order
    }

    /// The first epoch after this one after which the network is evaluated.
    pub(super) fn next_evaluation(&self, config: &ClassifierConfig, epoch: u64) -> u64 {
        (epoch / config.measure.every + 1).saturating_mul(config.measure.every).min(config.train.epochs)
    }

    /// Whether the network is evaluated after so many epochs.
    pub(super) fn evaluates_after(&self, config: &ClassifierConfig, epoch: u64) -> bool {
        match epoch {
            0 => config.measure.start,
            epoch => epoch.is_multiple_of(config.measure.every) || epoch == config.train.epochs,
        }
    }
}

/// Passes of the parts of a run, as far as they can be told beforehand.
pub(super) struct Passes {
    /// Of one training step.
    pub step: f64,
    /// Of one evaluation.
    pub evaluation: f64,
    /// Of the measures at the end.
    pub end: f64,
}

impl Passes {
    pub(super) fn of<M: Dataset>(config: &ClassifierConfig, dataset: &M) -> Passes {
        let (schedule, measure) = (Schedule::of(config, dataset), &config.measure);
        let sides = if config.intervene.regularise > 0.0 { 2.0 } else { 1.0 };
        let step = STEP_IN_PASSES * sides * schedule.rows as f64 / schedule.steps_per_epoch as f64;
        let some = |asked: usize, split: Split| {
            let all = dataset.count(split);
            if asked == 0 { all as f64 } else { asked.min(all) as f64 }
        };
        let set = if measure.set == "train" { Split::Train } else { Split::Test };
        let touches = match measure.nudge {
            NudgeName::None => 0.0,
            _ => some(measure.inputs, set) * (1.0 + dataset.touches(config)),
        };
        let corruptions = measure.corruptions().map_or(0, |all| all.len()) as f64;
        let evaluation =
            some(0, Split::Train) + some(0, Split::Test) + touches + corruptions * some(measure.corrupted, Split::Test);
        let sharpness = match measure.sharpness > 0.0 {
            true => some(measure.sharpness_inputs, Split::Train) * (1 + measure.sharpness_draws) as f64,
            false => 0.0,
        };
        let attacks = some(measure.adversarial_images, Split::Test) * dataset.attack_passes(config);
        let hessian = match measure.hessian {
            true => curvature::passes(some(measure.hessian_inputs, Split::Train)),
            false => 0.0,
        };
        Passes { step, evaluation, end: sharpness + attacks + hessian }
    }
}
