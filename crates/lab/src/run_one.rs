//! One run from its beginning, or its checkpoint, to its summary.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::config::RunConfig;
use crate::error::{Error, Result};
use crate::store::{FORMAT, Outcome, RunFolder, RunSummary};
use crate::trainer::{Measured, Stop, Teacher, Trainer, Training};

/// An interruption loses at most this much training.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// Progress is told at most this often.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// A run without tracking logs its loss this many times.
const LOGGED_LOSSES: u64 = 100;

/// A run about to be made.
pub(crate) struct Assignment<'a> {
    pub id: &'a str,
    pub config: &'a RunConfig,
    pub teacher: Option<&'a Teacher>,
    pub folder: &'a RunFolder,
    pub stop: &'a Stop,
}

impl Assignment<'_> {
    /// Trains and measures, saving the state whenever asked to stop. `started` hears the step it begins from and `progress`
    /// the step and loss every now and then.
    pub fn run(
        &self,
        trainer: &dyn Trainer,
        started: impl FnOnce(u64),
        mut progress: impl FnMut(u64, f64),
    ) -> Result<RunSummary> {
        self.folder.create(self.config)?;
        let mut training = trainer.begin(self.config, self.teacher, self.folder.checkpoint().as_deref())?;
        let last = self.folder.rewind_metrics(training.step())?.unwrap_or_default();
        started(training.step());
        let clock = Clock {
            start: Instant::now(),
            earlier: last.get("seconds").and_then(Value::as_f64).unwrap_or(0.0),
            logged: last.get("step").and_then(Value::as_u64),
        };
        let end = |outcome, problem, steps, measured: Measured| RunSummary {
            format: FORMAT,
            id: self.id.into(),
            outcome,
            problem,
            steps,
            converged: measured.converged,
            seconds: clock.seconds(),
            device: trainer.device(),
            measures: measured.measures,
            detail: measured.detail,
        };
        if let Some((step, loss)) = self.train(training.as_mut(), &clock, &mut progress)? {
            let problem = format!(
                "the loss became {loss} at step {step} (lr = {}); a smaller train.lr usually helps",
                self.config.train.lr
            );
            let summary = end(Outcome::Failed, Some(problem), step, Measured::default());
            self.folder.finish(&summary)?;
            return Ok(summary);
        }
        // Measuring is not resumed part-way: its noise is named by the run, so doing it again gives the same numbers.
        self.folder.save_checkpoint(|path| training.save_checkpoint(path))?;
        let measured = training.measure(self.stop)?;
        self.folder.save_weights(|path| training.save_weights(path))?;
        let summary = end(Outcome::Finished, None, training.step(), measured);
        self.folder.finish(&summary)?;
        Ok(summary)
    }

    /// Trains to the last step. If the loss stops being a finite number: that step and loss.
    fn train(
        &self,
        training: &mut dyn Training,
        clock: &Clock,
        progress: &mut impl FnMut(u64, f64),
    ) -> Result<Option<(u64, f64)>> {
        let steps = self.config.train.steps;
        let track_every = self.config.track.every;
        let log_every = (steps / LOGGED_LOSSES).max(1);
        let (mut saved, mut told) = (Instant::now(), Instant::now());
        let mut tracked = clock.logged;
        loop {
            let step = training.step();
            if self.stop.requested() || saved.elapsed() > CHECKPOINT_EVERY {
                self.folder.save_checkpoint(|path| training.save_checkpoint(path))?;
                self.stop.check()?;
                saved = Instant::now();
            }
            // Whether a step was tracked is read from the metrics, so a stop while tracking loses neither step nor line.
            if track_every > 0 && step.is_multiple_of(track_every) && tracked != Some(step) {
                match training.track(self.stop) {
                    Err(Error::Stopped) => continue,
                    line => self.log(step, line?, clock)?,
                }
                tracked = Some(step);
            }
            if step == steps {
                return Ok(None);
            }
            let loss = training.advance()?;
            let step = step + 1;
            if !loss.is_finite() {
                return Ok(Some((step, loss)));
            }
            if track_every == 0 && (step.is_multiple_of(log_every) || step == steps) {
                self.log(step, Map::from_iter([("train_loss".into(), loss.into())]), clock)?;
            }
            if told.elapsed() > TELL_EVERY {
                progress(step, loss);
                told = Instant::now();
            }
        }
    }

    fn log(&self, step: u64, measures: Map<String, Value>, clock: &Clock) -> Result<()> {
        let mut line = Map::from_iter([("step".into(), step.into())]);
        line.extend(measures);
        line.insert("seconds".into(), clock.seconds().into());
        self.folder.log(&line)
    }
}

/// Seconds a run has taken, with those before an interruption, and the last step logged before it.
struct Clock {
    start: Instant,
    earlier: f64,
    logged: Option<u64>,
}

impl Clock {
    fn seconds(&self) -> f64 {
        self.earlier + self.start.elapsed().as_secs_f64()
    }
}
