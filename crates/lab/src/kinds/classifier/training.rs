//! One classifier in training.

use std::sync::{Mutex, MutexGuard};

use pudica_nn::Device;
use pudica_nn::classifier::{Classifier, ConsistencyTerm, Learner};
use serde_json::{Map, Value};

use super::config::ClassifierConfig;
use super::dataset::Dataset;
use super::evaluate::{evaluate, last_measures};
use super::point::Point;
use super::schedule::Schedule;
use crate::error::Result;
use crate::experiment::{Line, Lost, Measured, RunStart, Training};
use crate::stop::Progress;

/// Dropout draws from the device's one generator, so a process trains one network at a time, whatever its threads do.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Steps between two looks at the loss, each of which waits for the device.
const LOSS_EVERY: u64 = 20;

/// A classifier in training.
pub(super) struct ClassifierTraining<'a, D: Dataset> {
    config: ClassifierConfig,
    dataset: &'a D,
    device: &'a Device,
    schedule: Schedule,
    /// Seconds per forward pass of one input.
    pace: f64,
    learner: Learner<D::Network>,
    /// The order of the training inputs in an epoch.
    order: Option<(u64, Vec<usize>)>,
    loss: f64,
    lost: Option<Lost>,
    /// Its latest evaluation.
    evaluated: Option<Point>,
    _alone: MutexGuard<'static, ()>,
}

impl<'a, D: Dataset> ClassifierTraining<'a, D> {
    /// From its beginning, or its checkpoint.
    pub(super) fn begin(
        config: ClassifierConfig,
        dataset: &'a D,
        device: &'a Device,
        pace: f64,
        start: &RunStart,
    ) -> Result<Self> {
        // Whoever panicked with it has left nothing behind that the next run would see: every step seeds the generator anew.
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let network = dataset.network(&config)?;
        let optimiser = config.train.optimiser()?;
        let learner = match &start.checkpoint {
            Some(bytes) => Learner::resume(&network, bytes, optimiser, config.seed, device)?,
            None => Learner::new(&network, &network.initial_weights(config.seed)?, optimiser, config.seed, device)?,
        };
        let evaluated = start.lines.last().cloned().map(Point::from_line).transpose()?;
        let schedule = Schedule::of(&config, dataset);
        let (loss, lost, order) = (f64::NAN, None, None);
        Ok(Self { config, dataset, device, schedule, pace, learner, order, loss, lost, evaluated, _alone })
    }

    /// One training step.
    fn train_step(&mut self) -> Result<()> {
        let step = self.learner.steps();
        let per_epoch = self.schedule.steps_per_epoch;
        let (epoch, place) = (step / per_epoch, (step % per_epoch) as usize);
        let rows = match &self.order {
            Some((of, rows)) if *of == epoch => rows,
            _ => &self.order.insert((epoch, self.schedule.order(self.config.seed, epoch))).1,
        };
        let batch = self.schedule.batch;
        let end = (place + 1).saturating_mul(batch).min(rows.len());
        let batch = self.dataset.training_batch(&self.config, &rows[place * batch..end], epoch, step)?;
        let weight = self.config.intervene.regularise;
        let beside = batch.beside.as_ref().map(|input| ConsistencyTerm { input, weight });
        self.learner.step(&batch.input, &batch.labels, beside, self.config.train.lr_at(epoch))?;
        let step = step + 1;
        if step.is_multiple_of(LOSS_EVERY) || step.is_multiple_of(per_epoch) {
            self.loss = self.learner.loss()?.map_or(self.loss, f64::from);
            self.lose_unless_finite(&[self.loss]);
        }
        Ok(())
    }

    /// Notices a loss that is not a number any more; before the first look at it, it is not known.
    fn lose_unless_finite(&mut self, losses: &[f64]) {
        let step = self.learner.steps();
        if let Some(loss) = losses.iter().find(|loss| !loss.is_finite()) {
            self.lost = Some(Lost { step, loss: *loss });
        }
    }

    /// Steps until the next epoch after which the network is evaluated.
    fn steps_to_evaluation(&self) -> u64 {
        let per_epoch = self.schedule.steps_per_epoch;
        let next = self.schedule.next_evaluation(&self.config, self.learner.steps() / per_epoch);
        next * per_epoch - self.learner.steps()
    }
}

impl<D: Dataset> Training for ClassifierTraining<'_, D> {
    fn step(&self) -> u64 {
        self.learner.steps()
    }

    fn device(&self) -> String {
        self.device.name().into()
    }

    fn loss(&self, _: usize) -> f64 {
        self.loss
    }

    fn lost(&self, _: usize) -> Option<Lost> {
        self.lost
    }

    fn advance(&mut self, at_most: u64) -> Result<()> {
        for _ in 0..at_most.min(self.steps_to_evaluation()) {
            self.train_step()?;
            if self.lost.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn lines(&mut self, progress: &Progress) -> Result<Vec<Vec<Line>>> {
        let step = self.learner.steps();
        let epoch = step / self.schedule.steps_per_epoch;
        let due =
            step.is_multiple_of(self.schedule.steps_per_epoch) && self.schedule.evaluates_after(&self.config, epoch);
        if !due || self.evaluated.as_ref().is_some_and(|point| point.step == step) {
            return Ok(vec![Vec::new()]);
        }
        let progress = progress.in_units(self.pace);
        let mut point = evaluate(self.learner.model(), self.dataset, &self.config, &progress)?;
        self.lose_unless_finite(&[point.train_loss, point.test_loss]);
        if self.lost.is_some() {
            return Ok(vec![Vec::new()]);
        }
        (point.step, point.epoch) = (step, epoch);
        let mut values = point.to_line()?;
        values.shift_remove("step");
        values.shift_remove("seconds");
        self.evaluated = Some(point);
        Ok(vec![vec![Line { step, values }]])
    }

    fn measure(&mut self, progress: &Progress) -> Result<Vec<Option<Measured>>> {
        let mut measures = self.evaluated.as_ref().map(Point::measures).transpose()?.unwrap_or_default();
        let mut detail = Map::from_iter([("data".to_string(), Value::Object(self.dataset.describe()))]);
        let progress = progress.in_units(self.pace);
        let (last, larger) = last_measures(self.learner.model(), self.dataset, &self.config, &progress)?;
        measures.extend(last);
        detail.extend(larger);
        // Classifiers are compared at the end of their training, whatever their loss is then.
        Ok(vec![Some(Measured { converged: true, measures, detail })])
    }

    fn checkpoint(&self, _: usize) -> Result<Vec<u8>> {
        Ok(self.learner.checkpoint()?)
    }

    fn weights(&self, _: usize) -> Result<Option<Vec<u8>>> {
        Ok(Some(self.learner.to_bytes()?))
    }
}
