//! Makes the runs of a plan on several threads; running again continues where the last time ended.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::error::{Error, Result};
use crate::events::{Event, Observer, Tally};
use crate::plan::{Plan, PlannedRun};
use crate::run_one::Assignment;
use crate::store::{FORMAT, Outcome, RunSummary, SweepFolder};
use crate::trainer::{Stop, Teacher, Trainer};
use crate::work::Work;

/// Makes all runs of `plan` in `folder`, `jobs` at a time. Runs that have ended are not repeated and interrupted ones continue.
/// A run whose loss diverges is marked failed and the sweep goes on. When `stop` is requested, every run in progress saves its
/// state and the tally says what remains; the same happens before an error (such as a full disk) is returned.
pub fn execute(
    plan: &Plan,
    folder: &Path,
    jobs: usize,
    trainer: &dyn Trainer,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Tally> {
    let folder = SweepFolder::claim(folder, plan)?;
    let sweep = Running::new(plan, &folder, trainer, observer, stop)?;
    observer.notice(&Event::SweepStarted {
        folder: folder.path().into(),
        runs: plan.runs.len(),
        finished: sweep.state().summaries.len(),
        total_steps: plan.total_steps(),
    });
    let jobs = jobs.clamp(1, plan.runs.len().max(1));
    // Each run computes on its own share of the cores: runs that share one pool of threads wait for each other.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| match rayon::ThreadPoolBuilder::new().num_threads((cores / jobs).max(1)).build() {
                Ok(share) => share.install(|| sweep.work()),
                Err(_) => sweep.work(), // no more threads to be had: the common pool serves
            });
        }
    });
    let state = sweep.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(error) = state.error {
        return Err(error);
    }
    let tally = tally(plan, &state.summaries, stop.requested(), sweep.start.elapsed().as_secs_f64());
    observer.notice(&Event::SweepEnded(tally.clone()));
    Ok(tally)
}

/// A sweep while its threads work.
struct Running<'a> {
    plan: &'a Plan,
    folder: &'a SweepFolder,
    trainer: &'a dyn Trainer,
    observer: &'a dyn Observer,
    /// What the runs heed: the user's request, or an error in another run.
    stop: Stop,
    start: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Runs not begun, in order.
    pending: Vec<usize>,
    summaries: HashMap<String, RunSummary>,
    /// Work of this call: done by ended runs, done by runs in progress, and in all.
    done: f64,
    in_progress: HashMap<usize, f64>,
    /// Work that resumed runs had behind them; it is not work of this call.
    before: HashMap<usize, f64>,
    total: f64,
    error: Option<Error>,
}

impl<'a> Running<'a> {
    fn new(
        plan: &'a Plan,
        folder: &'a SweepFolder,
        trainer: &'a dyn Trainer,
        observer: &'a dyn Observer,
        user_stop: &Stop,
    ) -> Result<Running<'a>> {
        let mut summaries = HashMap::new();
        for run in &plan.runs {
            if let Some(summary) = folder.run(&run.id).summary()? {
                summaries.insert(run.id.clone(), summary);
            }
        }
        let pending: Vec<usize> =
            (0..plan.runs.len()).filter(|index| !summaries.contains_key(&plan.runs[*index].id)).collect();
        let total = pending.iter().map(|index| Work::of(&plan.runs[*index].config).total()).sum();
        let state = State {
            pending,
            summaries,
            done: 0.0,
            in_progress: HashMap::new(),
            before: HashMap::new(),
            total,
            error: None,
        };
        Ok(Running {
            plan,
            folder,
            trainer,
            observer,
            stop: user_stop.heeded_by_new(),
            start: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked holding the lock has left plain data behind, valid at every point.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What each thread does: take the next run that can begin, make it, until none is left.
    fn work(&self) {
        while let Some(index) = self.take() {
            let run = &self.plan.runs[index];
            // A bug in one run must not leave the other threads waiting for it.
            let made = catch_unwind(AssertUnwindSafe(|| self.make(index, run))).unwrap_or_else(|panic| {
                let message = panic.downcast_ref::<String>().map(String::as_str);
                let message = message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                Err(Error::Training(format!("run {} ({}) met a bug: {message}", run.id, run.config.label())))
            });
            match made {
                Ok(summary) => self.ended(index, run, summary),
                Err(error) => {
                    let mut state = self.state();
                    state.in_progress.remove(&index);
                    if !matches!(error, Error::Stopped) {
                        state.error.get_or_insert(error);
                        self.stop.request();
                    }
                }
            }
            self.changed.notify_all();
        }
    }

    /// The next run whose teacher, if it has one, has ended; waits for one if need be.
    fn take(&self) -> Option<usize> {
        let mut state = self.state();
        loop {
            if self.stop.requested() || state.pending.is_empty() {
                return None;
            }
            let ready = |index: &usize| {
                self.plan.runs[*index].depends_on().is_none_or(|teacher| state.summaries.contains_key(&teacher))
            };
            if let Some(place) = state.pending.iter().position(ready) {
                let index = state.pending.remove(place);
                state.in_progress.insert(index, 0.0);
                return Some(index);
            }
            if state.in_progress.is_empty() {
                // Nothing under way can make a pending run ready: a teacher is missing from the plan.
                let run = &self.plan.runs[state.pending[0]];
                let problem = format!("{} is not a run of this sweep", run.config.target);
                state.error.get_or_insert(Error::Setting { key: "target".into(), problem });
                self.stop.request();
                return None;
            }
            state = self
                .changed
                .wait_timeout(state, std::time::Duration::from_millis(200))
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .0;
        }
    }

    fn make(&self, index: usize, run: &PlannedRun) -> Result<RunSummary> {
        let folder = self.folder.run(&run.id);
        let teacher = match run.depends_on() {
            None => None,
            Some(id) => match self.teacher(&id) {
                Ok(teacher) => Some(teacher),
                Err(problem) => {
                    let summary = skipped(run, problem, self.trainer.device());
                    folder.create(&run.config)?;
                    folder.finish(&summary)?;
                    return Ok(summary);
                }
            },
        };
        let assignment = Assignment {
            id: &run.id,
            config: &run.config,
            teacher: teacher.as_ref(),
            folder: &folder,
            stop: &self.stop,
        };
        let label = run.config.label();
        let started = |from_step| {
            let before = Work::of(&run.config).train * from_step as f64 / run.config.train.steps as f64;
            let mut state = self.state();
            state.total -= before;
            state.before.insert(index, before);
            drop(state);
            self.observer.notice(&Event::RunStarted { id: run.id.clone(), label: label.clone(), from_step });
        };
        assignment.run(self.trainer, started, |step, loss| self.progress(index, run, step, loss))
    }

    fn teacher(&self, id: &str) -> Result<Teacher, String> {
        let summary = self.state().summaries.get(id).cloned();
        let run = self.plan.runs.iter().find(|run| run.id == id);
        let (Some(summary), Some(run)) = (summary, run) else { return Err(format!("run {id} has not ended")) };
        if summary.outcome != Outcome::Finished {
            return Err(format!("run {id}, whose labels it learns, was not finished"));
        }
        if run.config.train.set_size > 0 && summary.measure("train_accuracy") != Some(1.0) {
            return Err(format!("run {id}, whose labels it learns, does not fit its training set exactly"));
        }
        Ok(Teacher { config: run.config.clone(), weights: self.folder.run(id).weights_path() })
    }

    fn progress(&self, index: usize, run: &PlannedRun, step: u64, loss: f64) {
        let fraction = step as f64 / run.config.train.steps as f64;
        let mut state = self.state();
        let before = state.before.get(&index).copied().unwrap_or(0.0);
        state.in_progress.insert(index, Work::of(&run.config).train * fraction - before);
        let (done, seconds_left) = self.how_far(&state);
        drop(state);
        self.observer.notice(&Event::Progress {
            id: run.id.clone(),
            label: run.config.label(),
            step,
            steps: run.config.train.steps,
            loss,
            done,
            seconds_left,
        });
    }

    fn ended(&self, index: usize, run: &PlannedRun, summary: RunSummary) {
        let mut state = self.state();
        state.in_progress.remove(&index);
        state.done += Work::of(&run.config).total() - state.before.remove(&index).unwrap_or(0.0);
        state.summaries.insert(run.id.clone(), summary.clone());
        let ended = state.summaries.len();
        let (done, seconds_left) = self.how_far(&state);
        drop(state);
        self.observer.notice(&Event::RunEnded {
            id: run.id.clone(),
            label: run.config.label(),
            outcome: summary.outcome,
            converged: summary.converged,
            eval_loss: summary.measure("eval_loss"),
            sharpness: summary.measure("sharpness"),
            problem: summary.problem,
            seconds: summary.seconds,
            ended,
            runs: self.plan.runs.len(),
            done,
            seconds_left,
        });
    }

    /// The fraction of this call's work that is done, and the seconds left at the pace so far.
    fn how_far(&self, state: &State) -> (f64, Option<f64>) {
        let done = state.done + state.in_progress.values().sum::<f64>();
        let fraction = (done / state.total.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let elapsed = self.start.elapsed().as_secs_f64();
        (fraction, (fraction > 0.0).then(|| elapsed * (1.0 - fraction) / fraction))
    }
}

fn skipped(run: &PlannedRun, problem: String, device: String) -> RunSummary {
    RunSummary {
        format: FORMAT,
        id: run.id.clone(),
        outcome: Outcome::Skipped,
        problem: Some(problem),
        steps: 0,
        converged: false,
        seconds: 0.0,
        device,
        measures: Default::default(),
        detail: Default::default(),
    }
}

fn tally(plan: &Plan, summaries: &HashMap<String, RunSummary>, stopped: bool, seconds: f64) -> Tally {
    let mut tally = Tally { runs: plan.runs.len(), stopped, seconds, ..Tally::default() };
    for run in &plan.runs {
        *match summaries.get(&run.id).map(|summary| (summary.outcome, summary.converged)) {
            Some((Outcome::Finished, true)) => &mut tally.converged,
            Some((Outcome::Finished, false)) => &mut tally.discarded,
            Some((Outcome::Failed, _)) => &mut tally.failed,
            Some((Outcome::Skipped, _)) => &mut tally.skipped,
            None => &mut tally.remaining,
        } += 1;
    }
    tally
}
