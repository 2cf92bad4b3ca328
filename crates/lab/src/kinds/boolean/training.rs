//! Runs in lock-step on one engine.

use pudica_data::Task;
use pudica_ensemble::{Engine, Member, Strings};
use pudica_nn::TrainingState;
use serde_json::Map;

use super::engine::BooleanExperiment;
use super::unseen::References;
use super::{RunConfig, adamw, architecture, measure, target, work};
use crate::compute::Compute;
use crate::error::Result;
use crate::experiment::{Line, Lost, Measured, RunStart, Teacher, Training};
use crate::stop::Progress;

/// A run without tracking logs its loss this many times.
const LOGGED_LOSSES: u64 = 100;

/// Networks in training.
pub(super) struct BooleanTraining {
    pub(super) runs: Vec<NetworkRun>,
    pub(super) engine: Box<dyn Engine>,
    /// What further engines are made by, and on what.
    pub(super) experiment: BooleanExperiment,
    pub(super) compute: Compute,
    /// The step of the last line of tracked measures.
    tracked: Option<u64>,
}

/// One of them.
pub(super) struct NetworkRun {
    pub(super) config: RunConfig,
    pub(super) task: Task,
    /// What it is compared with, where it saw a part of all strings and that is asked for.
    pub(super) references: Option<References>,
    /// Its latest training loss.
    loss: f64,
    pub(super) lost: Option<Lost>,
    /// Lines of metrics not handed out yet.
    lines: Vec<Line>,
}

/// A run's settings, whose labels it learns, and its checkpoint.
type Begun<'a> = (RunConfig, Option<&'a Teacher>, Option<&'a [u8]>);

impl BooleanTraining {
    /// Runs in lock-step, from the start or their checkpoints.
    pub(super) fn begin(experiment: &BooleanExperiment, starts: &[RunStart]) -> Result<BooleanTraining> {
        let mut members = Vec::new();
        for start in starts {
            members.push((start.settings.read()?, start.teacher, start.checkpoint.as_deref()));
        }
        let mut training = Self::of(experiment, &experiment.compute_of(starts[0].settings), members)?;
        for (run, start) in training.runs.iter_mut().zip(starts) {
            let number = |key: &str| start.lines.last().and_then(|line| line.get(key)?.as_f64());
            run.loss = number("train_loss").unwrap_or(f64::NAN);
        }
        let logged = |start: &RunStart| start.lines.last().and_then(|line| line.get("step")?.as_u64());
        // A line of measures is taken again unless all runs have it: a stop while tracking loses neither step nor line.
        training.tracked = starts.iter().map(logged).min().flatten();
        Ok(training)
    }

    /// Runs for timing, on what the experiment computes on.
    pub(super) fn trial(experiment: &BooleanExperiment, configs: Vec<RunConfig>) -> Result<BooleanTraining> {
        let members = configs.into_iter().map(|config| (config, None, None)).collect();
        Self::of(experiment, experiment.own_compute(), members)
    }

    fn of(experiment: &BooleanExperiment, compute: &Compute, configs: Vec<Begun>) -> Result<BooleanTraining> {
        let mut runs = Vec::new();
        let mut members = Vec::new();
        for (config, teacher, checkpoint) in configs {
            let task = target::task(&config, teacher)?;
            let architecture = architecture(&config);
            let state = match checkpoint {
                None => TrainingState::new(config.initial_weights(&architecture)?),
                Some(bytes) => TrainingState::from_bytes(&architecture, bytes)?,
            };
            members.push(Member { task: task.clone(), seed: config.seed, adamw: adamw(&config), state });
            let references = References::of(&config, &task)?;
            runs.push(NetworkRun { config, task, references, loss: f64::NAN, lost: None, lines: Vec::new() });
        }
        let engine = experiment.engine(&runs[0].config, compute, members)?;
        Ok(BooleanTraining { runs, engine, experiment: experiment.clone(), compute: compute.clone(), tracked: None })
    }

    /// One forward pass of every network on a batch as large as in training.
    pub(super) fn forward_pass(&mut self) -> Result<()> {
        let rows = self.runs[0].config.train.batch;
        self.engine.predict(Strings::Fresh { rows, purpose: "pass", index: 0 })?;
        Ok(())
    }
}

impl Training for BooleanTraining {
    fn step(&self) -> u64 {
        self.engine.steps()
    }

    fn device(&self) -> String {
        self.engine.device()
    }

    fn loss(&self, run: usize) -> f64 {
        self.runs[run].loss
    }

    fn lost(&self, run: usize) -> Option<Lost> {
        self.runs[run].lost
    }

    fn advance(&mut self, at_most: u64) -> Result<()> {
        let before = self.engine.steps();
        let every = self.runs[0].config.track.every; // the same for all runs in lock-step
        let count = if every > 0 { at_most.min(every - before % every) } else { at_most };
        let losses = self.engine.advance(count as usize)?;
        for (index, run) in self.runs.iter_mut().enumerate().filter(|(_, run)| run.lost.is_none()) {
            run.take_in(before, losses.iter().map(|losses| losses[index]));
        }
        Ok(())
    }

    fn lines(&mut self, progress: &Progress) -> Result<Vec<Vec<Line>>> {
        let (step, every) = (self.engine.steps(), self.runs[0].config.track.every);
        if every > 0 && step.is_multiple_of(every) && self.tracked != Some(step) {
            let lines = measure::track(self, progress)?;
            self.tracked = Some(step);
            for (run, values) in self.runs.iter_mut().zip(lines) {
                run.lines.push(Line { step, values });
            }
        }
        Ok(self.runs.iter_mut().map(|run| std::mem::take(&mut run.lines)).collect())
    }

    fn measure(&mut self, progress: &Progress) -> Result<Vec<Option<Measured>>> {
        measure::after_training(self, progress)
    }

    fn checkpoint(&self, run: usize) -> Result<Vec<u8>> {
        Ok(self.engine.state(run)?.to_bytes()?)
    }

    fn weights(&self, run: usize) -> Result<Option<Vec<u8>>> {
        Ok(Some(self.engine.weights(run)?.to_bytes()?))
    }

    fn pass(&mut self) -> Result<f64> {
        self.forward_pass()?;
        Ok(work::of_pass(&self.runs[0].config))
    }
}

impl NetworkRun {
    /// Takes in the losses of the steps after `before`.
    fn take_in(&mut self, before: u64, losses: impl Iterator<Item = f64>) {
        let log_every = (self.config.train.steps / LOGGED_LOSSES).max(1);
        for (step, loss) in (before + 1..).zip(losses) {
            self.loss = loss;
            if !loss.is_finite() {
                self.lost = Some(Lost { step, loss });
                return;
            }
            if self.config.track.every == 0 && (step.is_multiple_of(log_every) || step == self.config.train.steps) {
                self.lines.push(Line { step, values: Map::from_iter([("train_loss".into(), loss.into())]) });
            }
        }
    }
}
