//! Runs in lock-step on one engine.

use pudica_data::Task;
use pudica_ensemble::{Engine, Member, StepWork, Strings};
use pudica_nn::TrainingState;
use serde_json::{Map, Value};

use super::engine::NetworkTrainer;
use super::{adamw, architecture, measure, target};
use crate::config::RunConfig;
use crate::error::Result;
use crate::trainer::{Measured, Start, Stop, Training};

/// Networks in training.
pub(super) struct NetworkTraining {
    pub(super) runs: Vec<NetworkRun>,
    pub(super) engine: Box<dyn Engine>,
}

/// One of them.
pub(super) struct NetworkRun {
    pub(super) config: RunConfig,
    pub(super) task: Task,
    /// Whether its loss has ceased to be a finite number.
    pub(super) lost: bool,
}

impl NetworkTraining {
    /// Runs of one company, from the start or their checkpoints.
    pub(super) fn begin(trainer: &NetworkTrainer, starts: &[Start]) -> Result<NetworkTraining> {
        let mut runs = Vec::new();
        let mut members = Vec::new();
        for start in starts {
            let config = start.config.clone();
            let task = target::task(&config, start.teacher)?;
            let architecture = architecture(&config);
            let state = match &start.checkpoint {
                None => TrainingState::new(config.initial_weights(&architecture)?),
                Some(bytes) => TrainingState::from_bytes(&architecture, bytes)?,
            };
            members.push(Member { task: task.clone(), seed: config.seed, adamw: adamw(&config), state });
            runs.push(NetworkRun { config, task, lost: false });
        }
        let engine = trainer.engine(&runs[0].config, members)?;
        Ok(NetworkTraining { runs, engine })
    }
}

impl Training for NetworkTraining {
    fn step(&self) -> u64 {
        self.engine.steps()
    }

    fn device(&self) -> String {
        self.engine.device()
    }

    fn step_work(&self) -> Option<StepWork> {
        self.engine.step_work()
    }

    fn advance(&mut self, count: usize) -> Result<Vec<Vec<f64>>> {
        let losses = self.engine.advance(count)?;
        for (index, run) in self.runs.iter_mut().enumerate() {
            run.lost |= losses.iter().any(|losses| !losses[index].is_finite());
        }
        Ok(losses)
    }

    fn pass(&mut self) -> Result<()> {
        let rows = self.runs[0].config.train.batch;
        self.engine.predict(Strings::Fresh { rows, purpose: "pass", index: 0 })?;
        Ok(())
    }

    fn track(&mut self, stop: &Stop) -> Result<Vec<Map<String, Value>>> {
        measure::track(self, stop)
    }

    fn measure(&mut self, stop: &Stop, progress: &mut (dyn FnMut(f64) + Send)) -> Result<Vec<Option<Measured>>> {
        measure::after_training(self, stop, progress)
    }

    fn checkpoint(&self, run: usize) -> Result<Vec<u8>> {
        Ok(self.engine.state(run)?.to_bytes()?)
    }

    fn weights(&self, run: usize) -> Result<Vec<u8>> {
        Ok(self.engine.state(run)?.weights.to_bytes()?)
    }
}
