//! A cheap stand-in for networks: a number that shrinks step by step, with noise named by the run and the step.

use std::time::Duration;

use pudica_data::Stream;
use pudica_lab::trainer::{Measured, Start};
use pudica_lab::{Result, RunConfig, Stop, Trainer, Training};
use serde_json::{Map, Value};

/// Trains fake networks, up to `together` of them in lock-step; each step takes `step_time`.
pub struct FakeTrainer {
    pub step_time: Duration,
    pub together: usize,
}

impl Default for FakeTrainer {
    fn default() -> Self {
        FakeTrainer { step_time: Duration::ZERO, together: 1 }
    }
}

pub struct FakeTraining {
    runs: Vec<(RunConfig, f64)>,
    step: u64,
    step_time: Duration,
}

fn parse(checkpoint: &[u8]) -> (u64, f64) {
    let text = std::str::from_utf8(checkpoint).unwrap();
    let (step, bits) = text.split_once(' ').unwrap();
    (step.parse().unwrap(), f64::from_bits(bits.parse().unwrap()))
}

impl Trainer for FakeTrainer {
    fn company(&self, _: &RunConfig) -> Result<usize> {
        Ok(self.together)
    }

    fn step_of(&self, _: &RunConfig, checkpoint: &[u8]) -> Result<u64> {
        Ok(parse(checkpoint).0)
    }

    fn begin(&self, runs: &[Start]) -> Result<Box<dyn Training>> {
        let mut begun = Vec::new();
        let mut steps = Vec::new();
        for run in runs {
            if let Some(teacher) = run.teacher {
                assert!(teacher.weights.exists(), "a teacher's weights are stored before its student begins");
            }
            let (step, state) = run.checkpoint.as_deref().map_or((0, 1.0), parse);
            begun.push((run.config.clone(), state));
            steps.push(step);
        }
        assert!(runs.len() <= self.together && steps.iter().all(|step| *step == steps[0]), "{steps:?}");
        Ok(Box::new(FakeTraining { runs: begun, step: steps[0], step_time: self.step_time }))
    }
}

impl Training for FakeTraining {
    fn step(&self) -> u64 {
        self.step
    }

    fn device(&self) -> String {
        "fake".into()
    }

    fn advance(&mut self, count: usize) -> Result<Vec<Vec<f64>>> {
        let mut losses = Vec::new();
        for _ in 0..count {
            std::thread::sleep(self.step_time);
            let step = self.step;
            self.step += 1;
            let advance = |(config, state): &mut (RunConfig, f64)| {
                *state *= 1.0 - 0.1 * Stream::new(config.seed, "fake", step).uniform();
                // A learning rate of 100 diverges at step 7.
                if config.train.lr > 99.0 && step == 6 {
                    *state = f64::NAN;
                }
                *state
            };
            losses.push(self.runs.iter_mut().map(advance).collect());
        }
        Ok(losses)
    }

    fn pass(&mut self) -> Result<()> {
        std::thread::sleep(self.step_time / 3);
        Ok(())
    }

    fn track(&mut self, stop: &Stop) -> Result<Vec<Map<String, Value>>> {
        stop.check()?;
        Ok(self.runs.iter().map(|(_, state)| Map::from_iter([("loss".into(), (*state).into())])).collect())
    }

    fn measure(&mut self, stop: &Stop, progress: &mut (dyn FnMut(f64) + Send)) -> Result<Vec<Option<Measured>>> {
        stop.check()?;
        progress(0.5);
        let measure = |(config, state): &(RunConfig, f64)| {
            let accuracy = if config.target == "random:1" { 0.5 } else { 1.0 };
            let measures = [("eval_loss", *state), ("train_accuracy", accuracy)];
            state.is_finite().then(|| Measured {
                converged: *state < config.eval.converged_below,
                measures: measures.map(|(name, value)| (name.to_string(), value.into())).into_iter().collect(),
                detail: Map::new(),
            })
        };
        Ok(self.runs.iter().map(measure).collect())
    }

    fn checkpoint(&self, run: usize) -> Result<Vec<u8>> {
        Ok(format!("{} {}", self.step, self.runs[run].1.to_bits()).into_bytes())
    }

    fn weights(&self, run: usize) -> Result<Vec<u8>> {
        self.checkpoint(run)
    }
}
