//! Runs in lock-step from their beginning, or their checkpoints, to their summaries. One run alone is a group of one.

use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde_json::{Map, Value};

use crate::config::{Configuration, RunConfig};
use crate::error::{Error, Result};
use crate::store::{FORMAT, Outcome, RunFolder, RunSummary};
use crate::trainer::{Measured, Start, Stop, Teacher, Trainer, Training};

/// An interruption loses at most this much training,
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// or, where saving takes long, this many times as much as that takes.
const CHECKPOINT_COST: u32 = 20;

/// Between two looks at whether to stop.
const BREATH: Duration = Duration::from_millis(250);

/// Progress is told at most this often.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// A run without tracking logs its loss this many times.
const LOGGED_LOSSES: u64 = 100;

/// A run about to be made.
pub(crate) struct Assignment<'a> {
    pub id: &'a str,
    pub config: &'a RunConfig,
    pub teacher: Option<Teacher>,
    pub folder: RunFolder,
}

/// Hears what becomes of the runs of a group, by their places in it.
pub(crate) trait Listener: Sync {
    fn started(&self, run: usize, from_step: u64);
    /// Steps made, and the part of the measuring that is done.
    fn progress(&self, run: usize, step: u64, measured: f64, loss: f64);
    fn ended(&self, run: usize, summary: RunSummary);
}

/// Trains and measures the runs, saving their states whenever asked to stop and before an error is returned.
pub(crate) fn run_group(
    runs: &[Assignment],
    trainer: &dyn Trainer,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<()> {
    let mut starts = Vec::new();
    for run in runs {
        run.folder.create(run.config)?;
        let checkpoint = run.folder.checkpoint()?;
        starts.push(Start { config: run.config, teacher: run.teacher.as_ref(), checkpoint });
    }
    let training = trainer.begin(&starts)?;
    drop(starts);
    let mut under_way = Vec::new();
    for (place, assignment) in runs.iter().enumerate() {
        let last = assignment.folder.rewind_metrics(training.step())?.unwrap_or_default();
        listener.started(place, training.step());
        under_way.push(UnderWay {
            place,
            assignment,
            start: Instant::now(),
            company: runs.len(),
            seconds_before: last.get("seconds").and_then(Value::as_f64).unwrap_or(0.0),
            logged: last.get("step").and_then(Value::as_u64),
            loss: last.get("train_loss").and_then(Value::as_f64).unwrap_or(f64::NAN),
        });
    }
    let mut group = Group { runs: under_way, training, listener, stop, told: Instant::now() };
    match group.train().and_then(|()| group.measure()) {
        Err(error) if !matches!(error, Error::Stopped) => {
            let _ = group.save(); // what can still be saved is; the error to tell is the first one
            Err(error)
        }
        ended => ended,
    }
}

/// A group of runs in progress.
struct Group<'a> {
    /// Those that are not lost.
    runs: Vec<UnderWay<'a>>,
    training: Box<dyn Training>,
    listener: &'a dyn Listener,
    stop: &'a Stop,
    /// When progress was told last.
    told: Instant,
}

/// A run of a group.
struct UnderWay<'a> {
    /// Its number in the training.
    place: usize,
    assignment: &'a Assignment<'a>,
    start: Instant,
    /// Runs that began with it: each is counted an equal share of the time, so that the seconds of all runs add up.
    company: usize,
    /// Seconds it took before an interruption.
    seconds_before: f64,
    /// The last step it logged.
    logged: Option<u64>,
    /// Its latest training loss.
    loss: f64,
}

impl Group<'_> {
    /// Trains to the last step those runs whose loss stays a finite number.
    fn train(&mut self) -> Result<()> {
        let Some(first) = self.runs.first() else { return Ok(()) };
        // These are the same for all runs in company.
        let (steps, track_every) = (first.assignment.config.train.steps, first.assignment.config.track.every);
        let mut saved = Instant::now();
        let mut pause = CHECKPOINT_EVERY;
        let mut pace = Pace::default();
        while !self.runs.is_empty() {
            let step = self.training.step();
            if self.stop.requested() || saved.elapsed() > pause {
                let saving = Instant::now();
                self.save()?;
                self.stop.check()?;
                saved = Instant::now();
                pause = CHECKPOINT_EVERY.max(CHECKPOINT_COST * saving.elapsed());
            }
            let tracked = track_every > 0 && step.is_multiple_of(track_every);
            // Whether a step was tracked is read from the metrics, so a stop while tracking loses neither step nor line.
            if tracked && self.runs.iter().any(|run| run.logged != Some(step)) {
                match self.training.track(self.stop) {
                    Err(Error::Stopped) => continue,
                    lines => self.log_tracked(step, lines?)?,
                }
            }
            if step == steps {
                return Ok(());
            }
            let next_tracked = if track_every > 0 { step - step % track_every + track_every } else { steps };
            let count = pace.steps(steps.min(next_tracked) - step);
            let begun = Instant::now();
            let losses = self.training.advance(count as usize)?;
            pace.took(count, begun.elapsed());
            self.take_in(step, &losses)?;
        }
        Ok(())
    }

    /// Logs and tells the losses [step][run] of the steps after `before`, and ends the runs that are lost.
    fn take_in(&mut self, before: u64, losses: &[Vec<f64>]) -> Result<()> {
        let mut lost = Vec::new();
        let tell = self.told.elapsed() > TELL_EVERY;
        for (index, run) in self.runs.iter_mut().enumerate() {
            let config = run.assignment.config;
            let log_every = (config.train.steps / LOGGED_LOSSES).max(1);
            for (step, losses) in (before + 1..).zip(losses) {
                run.loss = losses[run.place];
                if !run.loss.is_finite() {
                    lost.push((index, step));
                    break;
                }
                if config.track.every == 0 && (step.is_multiple_of(log_every) || step == config.train.steps) {
                    run.log(step, Map::from_iter([("train_loss".into(), run.loss.into())]))?;
                }
            }
            if tell && run.loss.is_finite() {
                self.listener.progress(run.place, before + losses.len() as u64, 0.0, run.loss);
            }
        }
        if tell {
            self.told = Instant::now();
        }
        let device = self.training.device();
        for (index, step) in lost.into_iter().rev() {
            let run = self.runs.remove(index);
            let (loss, lr) = (run.loss, run.assignment.config.train.lr);
            let problem =
                format!("the loss became {loss} at step {step} (lr = {lr}); a smaller train.lr usually helps");
            let summary = run.summary(Outcome::Failed, Some(problem), step, device.clone(), Measured::default());
            run.assignment.folder.finish(&summary)?;
            self.listener.ended(run.place, summary);
        }
        Ok(())
    }

    fn log_tracked(&mut self, step: u64, mut lines: Vec<Map<String, Value>>) -> Result<()> {
        for run in self.runs.iter_mut().filter(|run| run.logged != Some(step)) {
            run.log(step, std::mem::take(&mut lines[run.place]))?;
        }
        Ok(())
    }

    /// Measures the trained networks and ends their runs.
    fn measure(&mut self) -> Result<()> {
        if self.runs.is_empty() {
            return Ok(());
        }
        // Measuring is not resumed part-way: its noise is named by the run, so doing it again gives the same numbers.
        self.save()?;
        let (runs, listener, step) = (&self.runs, self.listener, self.training.step());
        let mut told = Instant::now();
        let mut progress = |part| {
            if told.elapsed() > TELL_EVERY {
                runs.iter().for_each(|run| listener.progress(run.place, step, part, run.loss));
                told = Instant::now();
            }
        };
        let mut measured = self.training.measure(self.stop, &mut progress)?;
        let device = self.training.device();
        for run in &self.runs {
            let Some(measured) = measured[run.place].take() else {
                let label = run.assignment.config.label();
                return Err(Error::Training(format!("run {} ({label}) was not measured", run.assignment.id)));
            };
            run.assignment.folder.save_weights(&self.training.weights(run.place)?)?;
            let summary = run.summary(Outcome::Finished, None, self.training.step(), device.clone(), measured);
            run.assignment.folder.finish(&summary)?;
            self.listener.ended(run.place, summary);
        }
        Ok(())
    }

    /// Saves every run's state; a failure to save one does not keep the others from being saved.
    fn save(&self) -> Result<()> {
        let states: Vec<Vec<u8>> =
            self.runs.iter().map(|run| self.training.checkpoint(run.place)).collect::<Result<_>>()?;
        let folders: Vec<&RunFolder> = self.runs.iter().map(|run| &run.assignment.folder).collect();
        let saved: Vec<Result<()>> =
            folders.par_iter().zip(&states).map(|(folder, state)| folder.save_checkpoint(state)).collect();
        saved.into_iter().collect()
    }
}

impl UnderWay<'_> {
    fn seconds(&self) -> f64 {
        self.seconds_before + self.start.elapsed().as_secs_f64() / self.company as f64
    }

    fn log(&mut self, step: u64, measures: Map<String, Value>) -> Result<()> {
        let mut line = Map::from_iter([("step".into(), step.into())]);
        line.extend(measures);
        line.insert("seconds".into(), self.seconds().into());
        self.assignment.folder.log(&line)?;
        self.logged = Some(step);
        Ok(())
    }

    fn summary(
        &self,
        outcome: Outcome,
        problem: Option<String>,
        steps: u64,
        device: String,
        measured: Measured,
    ) -> RunSummary {
        RunSummary {
            format: FORMAT,
            id: self.assignment.id.into(),
            outcome,
            problem,
            steps,
            converged: measured.converged,
            seconds: self.seconds(),
            device,
            measures: measured.measures,
            detail: measured.detail,
        }
    }
}

/// How many steps to make at once, so that they take about a [`BREATH`]: a GPU must not be drained after every step.
struct Pace {
    steps: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { steps: 1 }
    }
}

impl Pace {
    /// Steps to make now, of those that may be made.
    fn steps(&self, at_most: u64) -> u64 {
        self.steps.min(at_most)
    }

    /// Learns from how long some steps took; the number at most doubles, as first steps may be slow or fast for reasons of their own.
    fn took(&mut self, steps: u64, time: Duration) {
        let fitting = steps as f64 * BREATH.as_secs_f64() / time.as_secs_f64().max(1e-9);
        self.steps = (fitting as u64).clamp(1, 2 * steps.max(self.steps / 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_settles_at_a_breath() {
        let mut pace = Pace::default();
        for _ in 0..20 {
            let steps = pace.steps(u64::MAX);
            pace.took(steps, Duration::from_millis(5) * steps as u32);
        }
        assert_eq!(pace.steps(u64::MAX), 50);
        assert_eq!(pace.steps(10), 10);
        // A short piece before a tracked step does not slow the next ones down.
        pace.took(2, Duration::from_millis(10));
        assert_eq!(pace.steps(u64::MAX), 50);
        pace.took(50, Duration::from_secs(50));
        assert_eq!(pace.steps(u64::MAX), 1);
    }
}
