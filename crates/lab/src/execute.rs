//! Makes the runs of a plan, together where they can be and on several threads; running again continues where the last time ended.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::company::{company, group_size};
use crate::config::Configuration;
use crate::cores::side_by_side;
use crate::error::{Error, Result};
use crate::events::{Event, Observer, Tally};
use crate::group::{Assignment, Listener, run_group};
use crate::plan::{Plan, PlannedRun};
use crate::store::{FORMAT, Outcome, RunSummary, SweepFolder};
use crate::trainer::{Stop, Teacher, Trainer};
use crate::work::Work;

/// Makes all runs of `plan` in `folder`: runs that may train together do (see [`Trainer::company`]), and `jobs` such groups at a time. Runs that have ended are not repeated and interrupted ones continue.
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
    // A device that is not there is told before anything is written.
    if let Some(run) = plan.runs.first() {
        trainer.company(&run.config)?;
    }
    let folder = SweepFolder::claim(folder, plan)?;
    let jobs = jobs.clamp(1, plan.runs.len().max(1));
    let sweep = Running::new(plan, &folder, trainer, observer, stop, jobs)?;
    observer.notice(&Event::SweepStarted {
        folder: folder.path().into(),
        runs: plan.runs.len(),
        finished: sweep.state().summaries.len(),
        total_steps: plan.total_steps(),
    });
    side_by_side(jobs, || sweep.work());
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
    /// Threads, each making a group.
    jobs: usize,
    start: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Runs not begun, in order.
    pending: Vec<Pending>,
    summaries: HashMap<String, RunSummary>,
    /// Work of this call: done by ended runs, done by runs in progress, and in all.
    done: f64,
    in_progress: HashMap<usize, f64>,
    /// Work that resumed runs had behind them; it is not work of this call.
    before: HashMap<usize, f64>,
    total: f64,
    error: Option<Error>,
}

/// A run not begun.
struct Pending {
    /// Its place in the plan.
    index: usize,
    /// What it has in common with the runs that may train in lock-step with it: its settings, and the step it is at.
    company: (String, u64),
}

impl<'a> Running<'a> {
    fn new(
        plan: &'a Plan,
        folder: &'a SweepFolder,
        trainer: &'a dyn Trainer,
        observer: &'a dyn Observer,
        user_stop: &Stop,
        jobs: usize,
    ) -> Result<Running<'a>> {
        let mut summaries = HashMap::new();
        for run in &plan.runs {
            if let Some(summary) = folder.run(&run.id).summary()? {
                summaries.insert(run.id.clone(), summary);
            }
        }
        let mut pending = Vec::new();
        for (index, run) in plan.runs.iter().enumerate().filter(|(_, run)| !summaries.contains_key(&run.id)) {
            let folder = folder.run(&run.id);
            let step = match folder.checkpoint()? {
                None => 0,
                Some(checkpoint) => trainer
                    .step_of(&run.config, &checkpoint)
                    .map_err(|error| Error::damaged(&folder.checkpoint_path(), error))?,
            };
            pending.push(Pending { index, company: (company(&run.config), step) });
        }
        let total = pending.iter().map(|run| Work::of(&plan.runs[run.index].config).total()).sum();
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
            jobs,
            start: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked holding the lock has left plain data behind, valid at every point.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What each thread does: take runs that can begin together, make them, until none is left.
    fn work(&self) {
        loop {
            let made = match self.take() {
                Ok(group) if group.is_empty() => return,
                Ok(group) => {
                    // A bug in one group must not leave the other threads waiting for it.
                    let made = catch_unwind(AssertUnwindSafe(|| self.make(&group)));
                    self.state().in_progress.retain(|index, _| !group.contains(index));
                    made.unwrap_or_else(|panic| Err(self.bug(&group, panic.as_ref())))
                }
                Err(error) => Err(error),
            };
            if let Err(error) = made
                && !matches!(error, Error::Stopped)
            {
                self.state().error.get_or_insert(error);
                self.stop.request();
            }
            self.changed.notify_all();
        }
    }

    /// The next run whose teacher, if it has one, has ended, with as many as may train together with it; waits for one if need be.
    /// Empty: nothing is left to do.
    fn take(&self) -> Result<Vec<usize>> {
        let mut state = self.state();
        loop {
            if self.stop.requested() || state.pending.is_empty() {
                return Ok(Vec::new());
            }
            let ready = |run: &&Pending| {
                self.plan.runs[run.index].depends_on().is_none_or(|teacher| state.summaries.contains_key(&teacher))
            };
            if let Some(first) = state.pending.iter().find(ready) {
                let fellows = state.pending.iter().filter(ready).filter(|run| run.company == first.company);
                let mut group: Vec<usize> = fellows.map(|run| run.index).collect();
                let most = self.trainer.company(&self.plan.runs[first.index].config)?;
                group.truncate(group_size(group.len(), most, self.jobs));
                state.pending.retain(|run| !group.contains(&run.index));
                state.in_progress.extend(group.iter().map(|index| (*index, 0.0)));
                return Ok(group);
            }
            if state.in_progress.is_empty() {
                // Nothing under way can make a pending run ready: a teacher is missing from the plan.
                let run = &self.plan.runs[state.pending[0].index];
                return Err(Error::setting("target", format!("{} is not a run of this sweep", run.config.target)));
            }
            state = self
                .changed
                .wait_timeout(state, std::time::Duration::from_millis(200))
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .0;
        }
    }

    /// Makes runs together.
    fn make(&self, group: &[usize]) -> Result<()> {
        let mut assignments = Vec::new();
        let mut indices = Vec::new();
        for index in group {
            let run = &self.plan.runs[*index];
            let folder = self.folder.run(&run.id);
            let teacher = match run.depends_on().map(|id| self.teacher(&id)).transpose() {
                Ok(teacher) => teacher,
                Err(problem) => {
                    let summary = skipped(run, problem);
                    folder.create(&run.config)?;
                    folder.finish(&summary)?;
                    self.ended(*index, summary);
                    continue;
                }
            };
            assignments.push(Assignment { id: &run.id, config: &run.config, teacher, folder });
            indices.push(*index);
        }
        if assignments.is_empty() {
            return Ok(());
        }
        run_group(&assignments, self.trainer, &Telling { sweep: self, indices }, &self.stop)
    }

    fn bug(&self, group: &[usize], panic: &(dyn Any + Send)) -> Error {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let run = &self.plan.runs[group[0]];
        let others = if group.len() > 1 { format!(" and {} in its company", group.len() - 1) } else { String::new() };
        Error::Training(format!("run {} ({}){others} met a bug: {message}", run.id, run.config.label()))
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

    fn started(&self, index: usize, from_step: u64) {
        let run = &self.plan.runs[index];
        let before = Work::of(&run.config).train * from_step as f64 / run.config.train.steps.max(1) as f64;
        let mut state = self.state();
        state.total -= before;
        state.before.insert(index, before);
        drop(state);
        self.observer.notice(&Event::RunStarted { id: run.id.clone(), label: run.config.label(), from_step });
    }

    fn progress(&self, index: usize, step: u64, measured: f64, loss: f64) {
        let run = &self.plan.runs[index];
        let fraction = step as f64 / run.config.train.steps.max(1) as f64;
        let mut state = self.state();
        let before = state.before.get(&index).copied().unwrap_or(0.0);
        let work = Work::of(&run.config);
        state.in_progress.insert(index, work.train * fraction + work.measure * measured - before);
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

    fn ended(&self, index: usize, summary: RunSummary) {
        let run = &self.plan.runs[index];
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
            measures: summary.headline(&["eval_loss", "sharpness"]),
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

/// Passes on what a group tells.
struct Telling<'a> {
    sweep: &'a Running<'a>,
    /// The places in the plan of the group's runs.
    indices: Vec<usize>,
}

impl Listener for Telling<'_> {
    fn started(&self, run: usize, from_step: u64) {
        self.sweep.started(self.indices[run], from_step);
    }

    fn progress(&self, run: usize, step: u64, measured: f64, loss: f64) {
        self.sweep.progress(self.indices[run], step, measured, loss);
    }

    fn ended(&self, run: usize, summary: RunSummary) {
        self.sweep.ended(self.indices[run], summary);
    }
}

fn skipped(run: &PlannedRun, problem: String) -> RunSummary {
    RunSummary {
        format: FORMAT,
        id: run.id.clone(),
        outcome: Outcome::Skipped,
        problem: Some(problem),
        steps: 0,
        converged: false,
        seconds: 0.0,
        device: "none".into(),
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
