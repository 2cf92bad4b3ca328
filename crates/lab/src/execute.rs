//! Makes the runs of a plan, together where they can be and on several threads; running again continues where the last time ended.

mod sharing;

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::compute::Machine;
use crate::cores::side_by_side;
use crate::error::{Error, Result};
use crate::events::{Event, Observer, Tally};
use crate::experiment::{Experiment, Lockstep, Teacher, Work};
use crate::group::{Assignment, Listener, run_group};
use crate::plan::{Plan, PlannedRun};
use crate::size;
use crate::stop::Stop;
use crate::store::{
    AtWork, BEAT, Claim, Claims, Damage, DamagedRun, Outcome, Presence, RunFolder, RunRecord, RunSummary, STALE_AFTER,
    State as OnDisk, SweepFolder, Weights,
};

/// A pace is told after this time.
const PACE_AFTER: Duration = Duration::from_secs(2);

/// How far a process is can be read from its folder after this time.
const FIRST_BEAT: Duration = Duration::from_secs(1);

/// Makes all runs of `plan` in `folder`, of whatever kind: runs that may train in lock-step do, and several such groups at a time. Runs that
/// have ended are not repeated and interrupted ones continue. A run whose loss diverges is marked failed, and one that meets an error is
/// left for the next time; the sweep goes on. When `stop` is requested, every run in progress saves its state and the tally says what
/// remains; the same happens before an error of the folder (such as a full disk) is returned. Where the machine has a part of the plan
/// only ([`Machine::unit`]), the folder's record is that of the whole plan, and everything told and counted is about the part.
pub fn execute(plan: &Plan, folder: &Path, machine: &Machine, observer: &dyn Observer, stop: &Stop) -> Result<Tally> {
    let experiment = open(plan, machine)?;
    execute_with(experiment.as_ref(), plan, folder, machine, observer, stop)
}

/// Data and device of a plan, and the refusal of what its kind does not have: before anything is written.
pub fn open(plan: &Plan, machine: &Machine) -> Result<Box<dyn Experiment>> {
    machine.check(plan.kind().name, &plan.kind().abilities)?;
    let experiment = (plan.kind().open)(plan, machine)?;
    size::check_time(plan, experiment.as_ref())?;
    for run in &plan.runs {
        if let Some(most) = machine.together.filter(|most| *most > 1) {
            let Lockstep { most: can, .. } = experiment.lockstep(&run.settings)?;
            if can == 1 {
                let problem = format!("--together {most}: run {} ({}) trains alone; leave it out", run.id, run.label);
                return Err(Error::Other(problem));
            }
        }
    }
    Ok(experiment)
}

/// How many groups train side by side.
pub(crate) fn jobs(plan: &Plan, machine: &Machine, experiment: &dyn Experiment) -> usize {
    machine.jobs.unwrap_or_else(|| experiment.default_jobs()).clamp(1, plan.runs.len().max(1))
}

/// [`execute`] where data and device are at hand.
pub fn execute_with(
    experiment: &dyn Experiment,
    plan: &Plan,
    folder: &Path,
    machine: &Machine,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Tally> {
    let mut notices = experiment.notices();
    let own = match machine.unit {
        Some(unit) => unit.members(plan, experiment)?,
        None => vec![true; plan.runs.len()],
    };
    let folder = match machine.unit {
        Some(_) => SweepFolder::announce(folder, plan, machine, &mut notices)?,
        None => SweepFolder::claim(folder, plan, machine, &mut notices)?,
    };
    let report = AtWork {
        unit: machine.unit.map(|unit| unit.to_string()),
        program: machine.program.clone(),
        runs: own.iter().filter(|own| **own).count(),
        ..AtWork::default()
    };
    let presence = Presence::begin(folder.path(), report)?;
    let made = make_all(experiment, plan, &own, &folder, &presence, machine, observer, stop, notices);
    presence.end(match &made {
        Ok(tally) => tally.errors.clone(),
        Err(error) => vec![error.to_string()],
    });
    made
}

/// Makes the runs that `own` names, in a folder that is there, as a process that has told of itself.
#[allow(clippy::too_many_arguments)] // all of a sweep, once
fn make_all(
    experiment: &dyn Experiment,
    plan: &Plan,
    own: &[bool],
    folder: &SweepFolder,
    presence: &Presence,
    machine: &Machine,
    observer: &dyn Observer,
    stop: &Stop,
    mut notices: Vec<String>,
) -> Result<Tally> {
    let claims = Claims::new(folder.path(), &presence.owner(), machine.stale_after.unwrap_or(STALE_AFTER))?;
    let sweep = Running::new(plan, own, folder, &claims, experiment, machine, observer, stop, &mut notices)?;
    observer.notice(&Event::SweepStarted {
        folder: folder.path().into(),
        runs: sweep.runs,
        finished: sweep.state().summaries.len(),
        total_steps: sweep.works.iter().zip(own).filter(|(_, own)| **own).map(|(work, _)| work.steps).sum(),
    });
    notices.into_iter().for_each(|text| observer.notice(&Event::Notice { text }));
    let (end, ended) = mpsc::channel::<()>();
    let every = machine.stale_after.map_or(BEAT, |stale_after| BEAT.min(stale_after / 4));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ended = ended;
            let mut pause = every.min(FIRST_BEAT);
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(pause) {
                sweep.tell(presence);
                pause = every;
            }
        });
        side_by_side(sweep.jobs, || sweep.work());
        drop(end);
    });
    let state = sweep.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let _ = claims.clear(|run| state.summaries.contains_key(run)); // what processes left that have gone meanwhile; no number needs it
    if let Some(error) = state.fatal {
        return Err(error);
    }
    let mut tally = Tally::of(sweep.runs, state.summaries.values());
    (tally.stopped, tally.seconds) = (stop.requested(), sweep.start.elapsed().as_secs_f64());
    tally.elsewhere = state.left_to_others;
    tally.errors = state.errors;
    tally = tally.with_damaged(state.damaged);
    observer.notice(&Event::SweepEnded(tally.clone()));
    Ok(tally)
}

/// A sweep while its threads work.
struct Running<'a> {
    plan: &'a Plan,
    folder: &'a SweepFolder,
    claims: &'a Claims,
    experiment: &'a dyn Experiment,
    machine: &'a Machine,
    observer: &'a dyn Observer,
    /// What the runs heed: the user's request, or a fatal error in another run.
    stop: Stop,
    /// Threads, each making a group.
    jobs: usize,
    /// How many runs are to be made here.
    runs: usize,
    /// Of each run.
    works: Vec<Work>,
    start: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Runs not begun, in order.
    pending: Vec<Pending>,
    /// Runs that other processes have, of which it is not known yet whether they live.
    elsewhere: Vec<Pending>,
    /// How many runs are left to other processes that live.
    left_to_others: usize,
    /// The step that each run in progress is at, and the steps made in this call.
    steps: HashMap<usize, u64>,
    steps_made: u64,
    /// When that was told last, and how many there were.
    told: (Instant, u64),
    summaries: HashMap<String, RunSummary>,
    /// Work of this call: done by ended runs, done by runs in progress, and in all.
    done: f64,
    in_progress: HashMap<usize, f64>,
    /// Work that resumed runs had behind them; it is not work of this call.
    before: HashMap<usize, f64>,
    total: f64,
    /// When the first progress was told, and what was done by then: the pace counts from there, not from the compilation of kernels.
    begun: Option<(Instant, f64)>,
    /// What ends the sweep: the folder cannot be written.
    fatal: Option<Error>,
    /// What runs met that are left for the next time.
    errors: Vec<String>,
    /// What is wrong with runs that are left as they are.
    damaged: Vec<String>,
}

/// What a thread does next.
enum Next {
    /// Make these runs.
    Group(Vec<Pending>),
    /// See how it stands with runs that other processes have.
    Watch,
    /// Nothing is left to do.
    Nothing,
}

/// A run not begun.
struct Pending {
    /// Its place in the plan.
    index: usize,
    /// What it has in common with the runs that may train in lock-step with it: its settings, and the step it is at.
    lockstep: (String, u64),
    /// How many may, at most.
    most: usize,
}

impl<'a> Running<'a> {
    /// `own` says which runs of the plan are to be made here.
    #[allow(clippy::too_many_arguments)] // all of a sweep, once
    fn new(
        plan: &'a Plan,
        own: &[bool],
        folder: &'a SweepFolder,
        claims: &'a Claims,
        experiment: &'a dyn Experiment,
        machine: &'a Machine,
        observer: &'a dyn Observer,
        user_stop: &Stop,
        notices: &mut Vec<String>,
    ) -> Result<Running<'a>> {
        let mut summaries = HashMap::new();
        let (mut pending, mut damaged) = (Vec::new(), Vec::new());
        let mut works = Vec::new();
        for (index, run) in plan.runs.iter().enumerate() {
            works.push(experiment.work(&run.settings)?);
            if !own[index] {
                continue;
            }
            let folder = folder.run(&run.id);
            let step = match look(experiment, plan, run, &folder, machine.repair)? {
                Found::Ended(summary) => {
                    if let Some(data) = experiment.data(&run.settings) {
                        folder.check_data(&data)?;
                    }
                    folder.remove_checkpoint()?; // left behind by an interruption just after the summary
                    summaries.insert(run.id.clone(), *summary);
                    continue;
                }
                Found::Damaged(_) if machine.repair => 0,
                Found::Damaged(run) => {
                    notices.push(run.to_string());
                    damaged.push(run.to_string());
                    continue;
                }
                Found::At(step) => step,
            };
            let Lockstep { key, most } = experiment.lockstep(&run.settings)?;
            let most = machine.together.map_or(most, |asked| asked.min(most));
            pending.push(Pending { index, lockstep: (key, step), most });
        }
        claims.clear(|run| summaries.contains_key(run))?;
        let total = pending.iter().map(|run| works[run.index].total()).sum();
        let state = State {
            pending,
            elsewhere: Vec::new(),
            left_to_others: 0,
            steps: HashMap::new(),
            steps_made: 0,
            told: (Instant::now(), 0),
            summaries,
            done: 0.0,
            in_progress: HashMap::new(),
            before: HashMap::new(),
            total,
            begun: None,
            fatal: None,
            errors: Vec::new(),
            damaged,
        };
        Ok(Running {
            plan,
            folder,
            claims,
            experiment,
            machine,
            observer,
            stop: user_stop.child(),
            jobs: jobs(plan, machine, experiment),
            runs: own.iter().filter(|own| **own).count(),
            works,
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
            let group = match self.take() {
                Next::Group(group) => group,
                Next::Watch => {
                    self.watch();
                    continue;
                }
                Next::Nothing => return,
            };
            let places: Vec<usize> = group.iter().map(|run| run.index).collect();
            // A bug in one group must not leave the other threads waiting for it.
            let made = catch_unwind(AssertUnwindSafe(|| self.claim(group).and_then(|claimed| self.make(claimed))));
            let made = made.unwrap_or_else(|panic| Err(Error::Other(format!("met a bug: {}", words(panic.as_ref())))));
            let mut state = self.state();
            state.in_progress.retain(|index, _| !places.contains(index));
            state.steps.retain(|index, _| !places.contains(index));
            drop(state);
            match made {
                Ok(()) | Err(Error::Stopped) => {}
                Err(error @ (Error::Io { .. } | Error::Folder { .. } | Error::Damaged { .. })) => {
                    self.state().fatal.get_or_insert(error);
                    self.stop.request();
                }
                Err(error @ Error::TakenOver { .. }) => {
                    self.observer.notice(&Event::Notice { text: error.to_string() })
                }
                Err(error) => self.leave(&places, &error),
            }
            self.changed.notify_all();
        }
    }

    /// Leaves the runs of a group that met an error for the next time.
    fn leave(&self, group: &[usize], error: &Error) {
        let run = &self.plan.runs[group[0]];
        let others = if group.len() > 1 { format!(" and {} in its group", group.len() - 1) } else { String::new() };
        let text = format!("run {} ({}){others}: {error}", run.id, run.label);
        self.state().errors.push(text.clone());
        self.observer.notice(&Event::Notice { text });
    }

    /// The next run whose teacher, if it has one, has ended, with as many as may train together with it; waits for one if need be.
    fn take(&self) -> Next {
        let mut state = self.state();
        loop {
            if self.stop.requested() || (state.pending.is_empty() && state.elsewhere.is_empty()) {
                return Next::Nothing;
            }
            let ready = |run: &&Pending| {
                let teacher = self.plan.runs[run.index].depends_on(self.plan.kind());
                teacher.is_none_or(|teacher| state.summaries.contains_key(&teacher))
            };
            if let Some(first) = state.pending.iter().find(ready) {
                let fellows = state.pending.iter().filter(ready).filter(|run| run.lockstep == first.lockstep);
                let mut group: Vec<usize> = fellows.map(|run| run.index).collect();
                group.truncate(group_size(group.len(), first.most, self.jobs));
                state.in_progress.extend(group.iter().map(|index| (*index, 0.0)));
                let taken = state.pending.extract_if(.., |run| group.contains(&run.index)).collect();
                return Next::Group(taken);
            }
            if !state.elsewhere.is_empty() {
                return Next::Watch;
            }
            if state.in_progress.is_empty() {
                return Next::Nothing; // their teachers met an error: they wait for the next time, too
            }
            state = self
                .changed
                .wait_timeout(state, Duration::from_millis(200))
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .0;
        }
    }

    /// Makes runs together.
    fn make(&self, group: Vec<(usize, Arc<Claim>)>) -> Result<()> {
        let mut assignments = Vec::new();
        let mut indices = Vec::new();
        for (index, claim) in group {
            let run = &self.plan.runs[index];
            let folder = self.folder.run(&run.id).under(claim);
            let teacher = run.depends_on(self.plan.kind());
            if let Some(id) = &teacher {
                self.check_weights(id)?;
            }
            let teacher = match teacher.map(|id| self.teacher(&id)).transpose() {
                Ok(teacher) => teacher,
                Err(problem) => {
                    let summary = RunSummary::skipped(&run.id, problem);
                    folder.create(&run.settings)?;
                    folder.finish(&summary)?;
                    self.ended(index, summary);
                    continue;
                }
            };
            assignments.push(Assignment { run, teacher, folder, work: self.works[index] });
            indices.push(index);
        }
        if assignments.is_empty() {
            return Ok(());
        }
        let telling = Telling { sweep: self, indices };
        run_group(&assignments, self.experiment, self.machine, &telling, &self.stop)
    }

    /// Refuses weights that other runs learn from and that are not those of the run that ended.
    fn check_weights(&self, id: &str) -> Result<()> {
        let summary = self.state().summaries.get(id).filter(|run| run.outcome == Outcome::Finished).cloned();
        let Some(files) = summary.and_then(|summary| summary.files) else { return Ok(()) };
        let folder = self.folder.run(id);
        match folder.weights_damage(&files, Weights::Needed)? {
            Some(damage) => Err(Error::damaged(&folder.weights_path(), damage.problem)),
            None => Ok(()),
        }
    }

    fn teacher(&self, id: &str) -> Result<Teacher, String> {
        let summary = self.state().summaries.get(id).cloned();
        let run = self.plan.runs.iter().find(|run| run.id == id);
        let (Some(summary), Some(run)) = (summary, run) else { return Err(format!("run {id} has not ended")) };
        if summary.outcome != Outcome::Finished {
            return Err(format!("run {id}, whose labels it learns, was not finished"));
        }
        let weights = self.folder.run(id).weights_path();
        let teacher = Teacher { settings: run.settings.clone(), summary, weights };
        match self.experiment.refuse_teacher(&teacher) {
            Some(why) => Err(format!("run {id}, whose labels it learns, {why}")),
            None => Ok(teacher),
        }
    }

    fn run(&self, index: usize) -> (&PlannedRun, &Work) {
        (&self.plan.runs[index], &self.works[index])
    }

    fn started(&self, index: usize, from_step: u64, before: f64) {
        let (run, _) = self.run(index);
        let before = if from_step == 0 { 0.0 } else { before };
        let mut state = self.state();
        state.total -= before;
        state.before.insert(index, before);
        state.steps.insert(index, from_step);
        drop(state);
        self.observer.notice(&Event::RunStarted { id: run.id.clone(), label: run.label.clone(), from_step });
    }

    fn progress(&self, index: usize, step: u64, work: f64, loss: f64) {
        let (run, all) = self.run(index);
        let mut state = self.state();
        let before = state.before.get(&index).copied().unwrap_or(0.0);
        state.in_progress.insert(index, work - before);
        let last = state.steps.insert(index, step).unwrap_or(step);
        state.steps_made += step.saturating_sub(last);
        let (done, seconds_left) = self.how_far(&mut state);
        drop(state);
        let (id, label, steps) = (run.id.clone(), run.label.clone(), all.steps);
        self.observer.notice(&Event::Progress { id, label, step, steps, loss, done, seconds_left });
    }

    fn ended(&self, index: usize, summary: RunSummary) {
        let (run, work) = self.run(index);
        let mut state = self.state();
        state.in_progress.remove(&index);
        state.done += work.total() - state.before.remove(&index).unwrap_or(0.0);
        state.summaries.insert(run.id.clone(), summary.clone());
        let ended = state.summaries.len();
        let (done, seconds_left) = self.how_far(&mut state);
        drop(state);
        self.observer.notice(&Event::RunEnded {
            id: run.id.clone(),
            label: run.label.clone(),
            outcome: summary.outcome,
            converged: summary.converged,
            measures: summary.headline(self.plan.kind().headline),
            problem: summary.problem,
            seconds: summary.seconds,
            ended,
            runs: self.runs,
            done,
            seconds_left,
        });
    }

    /// The fraction of this call's work that is done, and the seconds left at the pace so far, once there is one.
    fn how_far(&self, state: &mut State) -> (f64, Option<f64>) {
        let done = state.done + state.in_progress.values().sum::<f64>();
        let fraction = (done / state.total.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let (begun, before) = *state.begun.get_or_insert((Instant::now(), done));
        let pace = (done - before) / begun.elapsed().as_secs_f64();
        let seconds_left = (state.total - done).max(0.0) / pace;
        (fraction, (begun.elapsed() >= PACE_AFTER && seconds_left.is_finite()).then_some(seconds_left))
    }
}

/// How a run stands.
enum Found {
    Ended(Box<RunSummary>),
    /// It is at this step.
    At(u64),
    Damaged(DamagedRun),
}

/// Looks at the files of a run; `repair`: what is missing is damage, too.
fn look(experiment: &dyn Experiment, plan: &Plan, run: &PlannedRun, folder: &RunFolder, repair: bool) -> Result<Found> {
    let damaged = |damage| Ok(Found::Damaged(DamagedRun { record: RunRecord::of(run), damage }));
    match folder.state(plan.kind(), if repair { Weights::Needed } else { Weights::Bytes })? {
        OnDisk::Ended(_, summary) => return Ok(Found::Ended(summary)),
        OnDisk::Damaged(damage) => return damaged(damage),
        OnDisk::None | OnDisk::Begun(_) => {}
    }
    let checkpoint = match folder.checkpoint() {
        Err(Error::Damaged { problem, .. }) => {
            return damaged(Damage { file: "checkpoint.safetensors", problem: format!("cannot be read ({problem})") });
        }
        checkpoint => checkpoint?,
    };
    let Some(checkpoint) = checkpoint else { return Ok(Found::At(0)) };
    match experiment.step_of(&run.settings, &checkpoint) {
        Ok(step) => Ok(Found::At(step)),
        Err(error) => damaged(Damage { file: "checkpoint.safetensors", problem: format!("cannot be read ({error})") }),
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// How many of `fellows` runs that may train together are put into one group, when at most `most` fit and `jobs` groups train side by
/// side: groups of one size, and enough of them for all.
pub(crate) fn group_size(fellows: usize, most: usize, jobs: usize) -> usize {
    let groups = fellows.div_ceil(most.max(1)).max(jobs.min(fellows)).max(1);
    fellows.div_ceil(groups)
}

/// Passes on what a group tells.
struct Telling<'a> {
    sweep: &'a Running<'a>,
    /// The places in the plan of the group's runs.
    indices: Vec<usize>,
}

impl Listener for Telling<'_> {
    fn started(&self, run: usize, from_step: u64, work_before: f64) {
        self.sweep.started(self.indices[run], from_step, work_before);
    }

    fn progress(&self, run: usize, step: u64, work: f64, loss: f64) {
        self.sweep.progress(self.indices[run], step, work, loss);
    }

    fn ended(&self, run: usize, summary: RunSummary) {
        self.sweep.ended(self.indices[run], summary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_even_and_enough() {
        assert_eq!(group_size(40, 256, 1), 40);
        assert_eq!(group_size(300, 256, 1), 150);
        assert_eq!(group_size(10, 256, 4), 3);
        assert_eq!(group_size(10, 1, 2), 1);
        assert_eq!(group_size(1, 8, 2), 1);
    }
}
