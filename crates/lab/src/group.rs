//! Runs in lock-step from their beginning, or their checkpoints, to their summaries. One run alone is a group of one.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde_json::{Map, Value};

use crate::compute::{Machine, instruction_set};
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Line, Lost, Measured, RunStart, Teacher, Training, Work};
use crate::plan::PlannedRun;
use crate::stop::{Progress, Stop};
use crate::store::{FORMAT, MadeBy, Outcome, RunFolder, RunSummary};

/// An interruption loses at most this much training.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// Where saving takes long, an interruption loses at most this many times as much as that takes.
const CHECKPOINT_COST: u32 = 20;

/// Time between two looks at whether to stop.
const BREATH: Duration = Duration::from_millis(250);

/// Progress is told at most this often.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// A run about to be made.
pub(crate) struct Assignment<'a> {
    pub run: &'a PlannedRun,
    pub teacher: Option<Teacher>,
    pub folder: RunFolder,
    pub work: Work,
}

/// Hears what becomes of the runs of a group, by their places in it.
pub(crate) trait Listener: Sync {
    fn started(&self, run: usize, from_step: u64, work_before: f64);
    /// Steps made, work done, and the latest loss.
    fn progress(&self, run: usize, step: u64, work: f64, loss: f64);
    fn ended(&self, run: usize, summary: RunSummary);
}

/// Trains and measures the runs, saving their states whenever asked to stop and before an error is returned.
pub(crate) fn run_group(
    runs: &[Assignment],
    experiment: &dyn Experiment,
    machine: &Machine,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<()> {
    let mut starts = Vec::new();
    for Assignment { run, teacher, folder, .. } in runs {
        folder.create(&run.settings)?;
        if let Some(data) = experiment.data(&run.settings) {
            folder.check_data(&data)?;
        }
        let checkpoint = folder.checkpoint()?;
        let step = match &checkpoint {
            Some(checkpoint) => experiment
                .step_of(&run.settings, checkpoint)
                .map_err(|error| Error::damaged(&folder.checkpoint_path(), error))?,
            None => 0,
        };
        let lines = folder.rewind_metrics(step)?;
        starts.push(RunStart { settings: &run.settings, teacher: teacher.as_ref(), checkpoint, lines });
    }
    let training = experiment.begin(&starts)?;
    let mut under_way = Vec::new();
    for (place, (assignment, start)) in runs.iter().zip(&starts).enumerate() {
        listener.started(place, training.step(), assignment.work.until(training.step()));
        let seconds = |line: &Map<String, Value>| line.get("seconds").and_then(Value::as_f64);
        under_way.push(UnderWay {
            place,
            assignment,
            start: Instant::now(),
            replicas: runs.len(),
            seconds_before: start.lines.iter().rev().find_map(seconds).unwrap_or(0.0),
            logged: start.lines.last().and_then(|line| line.get("step")).and_then(Value::as_u64),
            is_behind: false,
        });
    }
    drop(starts);
    let mut group = Group { runs: under_way, training, machine, listener, stop, told: Mutex::new(Instant::now()) };
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
    training: Box<dyn Training + 'a>,
    machine: &'a Machine,
    listener: &'a dyn Listener,
    stop: &'a Stop,
    /// When progress was told last.
    told: Mutex<Instant>,
}

/// A run of a group.
struct UnderWay<'a> {
    /// Its number in the training.
    place: usize,
    assignment: &'a Assignment<'a>,
    start: Instant,
    /// Runs that began with it: each is counted an equal part of the time, so that the seconds of all runs add up.
    replicas: usize,
    /// Seconds it took before an interruption.
    seconds_before: f64,
    /// The last step it logged.
    logged: Option<u64>,
    /// Whether it has trained on since, or could not log all that it had: a checkpoint now would leave a gap in its metrics.
    is_behind: bool,
}

impl Group<'_> {
    /// Trains to the last step those runs whose loss stays a finite number.
    fn train(&mut self) -> Result<()> {
        let Some(steps) = self.runs.first().map(|run| run.assignment.work.steps) else { return Ok(()) };
        let mut saved = Instant::now();
        let mut pause = self.machine.checkpoint_every.unwrap_or(CHECKPOINT_EVERY);
        let mut pace = Pace::default();
        while !self.runs.is_empty() {
            match self.with_progress(|training, progress| training.lines(progress)) {
                // Measuring a line is not resumed part-way: its noise is named by the run, so doing it again gives the same numbers.
                Err(Error::Stopped) => self.runs.iter_mut().for_each(|run| run.is_behind = false),
                lines => self.log(lines?)?,
            }
            self.end_lost()?;
            // Only now, as lines that were gathered up to this step must be on the disk before its checkpoint is.
            if self.stop.requested() || saved.elapsed() > pause {
                let saving = Instant::now();
                self.save()?;
                self.stop.check()?;
                saved = Instant::now();
                if self.machine.checkpoint_every.is_none() {
                    pause = CHECKPOINT_EVERY.max(CHECKPOINT_COST * saving.elapsed());
                }
            }
            let step = self.training.step();
            if step >= steps {
                return Ok(());
            }
            let count = pace.steps(steps - step);
            let begun = Instant::now();
            self.runs.iter_mut().for_each(|run| run.is_behind = true);
            self.training.advance(count)?;
            pace.took(self.training.step() - step, begun.elapsed());
            self.end_lost()?;
            self.tell(0.0);
        }
        Ok(())
    }

    /// Calls the training with a progress that tells how far each run is.
    fn with_progress<T>(&mut self, call: impl FnOnce(&mut dyn Training, &Progress) -> T) -> T {
        let Group { runs, training, listener, stop, told, .. } = self;
        let (step, told) = (training.step(), &*told);
        let states: Vec<(usize, Work, f64)> =
            runs.iter().map(|run| (run.place, run.assignment.work, training.loss(run.place))).collect();
        let hear = |ticked: f64| {
            if let Ok(mut told) = told.lock()
                && told.elapsed() > TELL_EVERY
            {
                *told = Instant::now();
                for (place, work, loss) in &states {
                    listener.progress(*place, step, (work.until(step) + ticked).min(work.total()), *loss);
                }
            }
        };
        call(training.as_mut(), &Progress::new(stop, &hear))
    }

    /// Tells how far all runs are, not too often.
    fn tell(&mut self, ticked: f64) {
        let due = self.told.lock().is_ok_and(|mut told| {
            let due = told.elapsed() > TELL_EVERY;
            if due {
                *told = Instant::now();
            }
            due
        });
        if due {
            let step = self.training.step();
            for run in &self.runs {
                let work = run.assignment.work.until(step) + ticked;
                self.listener.progress(run.place, step, work, self.training.loss(run.place));
            }
        }
    }

    /// Logs lines of metrics, those not logged before an interruption; a failure of one run does not keep the others from theirs.
    fn log(&mut self, mut lines: Vec<Vec<Line>>) -> Result<()> {
        let mut logged = Ok(());
        for run in &mut self.runs {
            let lines = lines.get_mut(run.place).map(std::mem::take).unwrap_or_default();
            let own = run.log(lines);
            run.is_behind = own.is_err();
            logged = logged.and(own);
        }
        logged
    }

    /// Ends the runs that are lost.
    fn end_lost(&mut self) -> Result<()> {
        let training = &self.training;
        let (lost, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.runs).into_iter().partition(|run| training.lost(run.place).is_some());
        self.runs = kept;
        for run in lost {
            let Some(Lost { step, loss }) = self.training.lost(run.place) else { continue };
            let lr = run.assignment.run.settings.text("train.lr");
            let problem =
                format!("the loss became {loss} at step {step} (lr = {lr}); a smaller train.lr usually helps");
            let summary = self.summary(&run, Outcome::Failed, Some(problem), step, Measured::default());
            run.assignment.folder.finish(&summary)?;
            self.listener.ended(run.place, summary);
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
        let mut measured = self.with_progress(|training, progress| training.measure(progress))?;
        for run in &self.runs {
            let Some(measured) = measured[run.place].take() else {
                let PlannedRun { id, label, .. } = run.assignment.run;
                return Err(Error::Other(format!("run {id} ({label}) was not measured")));
            };
            if let Some(weights) = self.training.weights(run.place)? {
                run.assignment.folder.save_weights(&weights)?;
            }
            let summary = self.summary(run, Outcome::Finished, None, self.training.step(), measured);
            run.assignment.folder.finish(&summary)?;
            self.listener.ended(run.place, summary);
        }
        Ok(())
    }

    /// Saves every run's state, where there is any and its metrics are logged; a failure to save one does not keep the others from being
    /// saved.
    fn save(&self) -> Result<()> {
        if self.training.step() == 0 {
            return Ok(());
        }
        let runs: Vec<&UnderWay> = self.runs.iter().filter(|run| !run.is_behind).collect();
        let states: Vec<Vec<u8>> = runs.iter().map(|run| self.training.checkpoint(run.place)).collect::<Result<_>>()?;
        let folders: Vec<&RunFolder> = runs.iter().map(|run| &run.assignment.folder).collect();
        let saved: Vec<Result<()>> =
            folders.par_iter().zip(&states).map(|(folder, state)| folder.save_checkpoint(state)).collect();
        saved.into_iter().collect()
    }

    fn summary(
        &self,
        run: &UnderWay,
        outcome: Outcome,
        problem: Option<String>,
        steps: u64,
        measured: Measured,
    ) -> RunSummary {
        let compute = run.assignment.run.settings.compute();
        RunSummary {
            format: FORMAT,
            id: run.assignment.run.id.clone(),
            outcome,
            problem,
            steps,
            converged: measured.converged,
            seconds: run.seconds(),
            device: self.training.device(),
            made_by: compute.map(|compute| MadeBy {
                program: self.machine.program.clone(),
                dtype: compute.dtype,
                engine: compute.engine,
                instruction_set: instruction_set().into(),
            }),
            measures: measured.measures,
            detail: measured.detail,
            files: None,
        }
    }
}

impl UnderWay<'_> {
    fn seconds(&self) -> f64 {
        self.seconds_before + self.start.elapsed().as_secs_f64() / self.replicas as f64
    }

    fn log(&mut self, lines: Vec<Line>) -> Result<()> {
        let new: Vec<Line> = lines.into_iter().filter(|line| self.logged.is_none_or(|step| line.step > step)).collect();
        let last = new.len().saturating_sub(1);
        for (place, Line { step, values }) in new.into_iter().enumerate() {
            let mut line = Map::from_iter([("step".into(), step.into())]);
            line.extend(values);
            if place == last {
                line.insert("seconds".into(), self.seconds().into());
            }
            self.assignment.folder.log(&line)?;
            self.logged = Some(step);
        }
        Ok(())
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
        self.steps = (fitting as u64).clamp(1, 2 * steps.max(self.steps / 2).max(1));
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
        // A short piece before a line of metrics does not slow the next ones down.
        pace.took(2, Duration::from_millis(10));
        assert_eq!(pace.steps(u64::MAX), 50);
        pace.took(50, Duration::from_secs(50));
        assert_eq!(pace.steps(u64::MAX), 1);
    }
}
