//! A cheap stand-in for networks: a number that shrinks step by step, with noise named by the run and the step.

use std::path::Path;
use std::time::Duration;

use pudica_data::Stream;
use pudica_lab::trainer::{Measured, Teacher};
use pudica_lab::{Error, Result, RunConfig, Stop, Trainer, Training};
use serde_json::{Map, Value};

/// Trains fake networks; each step takes `step_time`.
#[derive(Default)]
pub struct FakeTrainer {
    pub step_time: Duration,
}

pub struct FakeTraining {
    config: RunConfig,
    step: u64,
    state: f64,
    step_time: Duration,
}

impl Trainer for FakeTrainer {
    fn begin(
        &self,
        config: &RunConfig,
        teacher: Option<&Teacher>,
        checkpoint: Option<&Path>,
    ) -> Result<Box<dyn Training>> {
        if let Some(teacher) = teacher {
            assert!(teacher.weights.exists(), "a teacher's weights are stored before its student begins");
        }
        let (step, state) = match checkpoint {
            None => (0, 1.0),
            Some(path) => {
                let text = std::fs::read_to_string(path).unwrap();
                let (step, bits) = text.split_once(' ').unwrap();
                (step.parse().unwrap(), f64::from_bits(bits.parse().unwrap()))
            }
        };
        Ok(Box::new(FakeTraining { config: config.clone(), step, state, step_time: self.step_time }))
    }

    fn device(&self) -> String {
        "fake".into()
    }
}

impl Training for FakeTraining {
    fn step(&self) -> u64 {
        self.step
    }

    fn advance(&mut self) -> Result<f64> {
        std::thread::sleep(self.step_time);
        let noise = Stream::new(self.config.seed, "fake", self.step).uniform();
        self.state *= 1.0 - 0.1 * noise;
        self.step += 1;
        // A learning rate of 100 diverges at step 7.
        Ok(if self.config.train.lr > 99.0 && self.step == 7 { f64::NAN } else { self.state })
    }

    fn track(&mut self, stop: &Stop) -> Result<Map<String, Value>> {
        stop.check()?;
        Ok(Map::from_iter([("loss".into(), self.state.into())]))
    }

    fn measure(&mut self, stop: &Stop) -> Result<Measured> {
        stop.check()?;
        let accuracy = if self.config.target == "random:1" { 0.5 } else { 1.0 };
        let measures = [("eval_loss", self.state), ("train_accuracy", accuracy)];
        Ok(Measured {
            converged: self.state < self.config.eval.converged_below,
            measures: measures.map(|(name, value)| (name.to_string(), value.into())).into_iter().collect(),
            detail: Map::new(),
        })
    }

    fn save_checkpoint(&self, path: &Path) -> Result<()> {
        std::fs::write(path, format!("{} {}", self.step, self.state.to_bits())).map_err(|source| Error::Io {
            action: "write",
            path: path.into(),
            source,
        })
    }

    fn save_weights(&self, path: &Path) -> Result<()> {
        self.save_checkpoint(path)
    }
}
