//! A sweep that several processes may work at: which runs are this one's, and how far it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Found, Pending, Running, look};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::store::{Answer, Claim, Presence, RunAt, Standing};

/// Time between two looks at runs that other processes have.
const WATCH_EVERY: Duration = Duration::from_secs(2);

impl Running<'_> {
    /// Claims the runs of a group. What another process has is set aside, what one has made meanwhile is taken as made, what is
    /// damaged is moved aside where that was asked for, and what one has brought further goes back among the runs not begun, to find fellows at its step.
    pub(super) fn claim(&self, group: Vec<Pending>) -> Result<Vec<(usize, Arc<Claim>)>> {
        let ids: Vec<&str> = group.iter().map(|run| self.plan.runs[run.index].id.as_str()).collect();
        let answers = self.claims.ask(&ids)?;
        let mut ours = Vec::new();
        for (mut pending, answer) in group.into_iter().zip(answers) {
            let index = pending.index;
            let run = &self.plan.runs[index];
            let claim = match answer {
                Answer::Ours(claim) => claim,
                Answer::Theirs(standing) => {
                    let mut state = self.state();
                    state.in_progress.remove(&index);
                    match standing {
                        Standing::AtWork => state.left_to_others += 1,
                        Standing::Unknown | Standing::Gone => state.elsewhere.push(pending),
                    }
                    continue;
                }
            };
            let claim = Arc::new(claim);
            let folder = self.folder.run(&run.id).under(Arc::clone(&claim));
            let (summary, step) = match look(self.experiment, self.plan, run, &folder, self.machine.repair)? {
                Found::Ended(summary) => (Some(*summary), 0),
                Found::At(step) => (None, step),
                Found::Damaged(damaged) if self.machine.repair => {
                    let (aside, damage) = (folder.set_aside()?, damaged.damage);
                    let text = format!(
                        "run {} ({}): {damage}; it is made again, and what was there is in {}",
                        run.id,
                        run.label,
                        aside.display()
                    );
                    self.observer.notice(&Event::Notice { text });
                    (None, 0)
                }
                Found::Damaged(damaged) => return Err(Error::Other(damaged.to_string())),
            };
            let mut state = self.state();
            if let Some(summary) = summary {
                state.in_progress.remove(&index);
                state.total -= self.works[index].total();
                state.summaries.insert(run.id.clone(), summary);
            } else if step != pending.lockstep.1 {
                state.in_progress.remove(&index);
                pending.lockstep.1 = step;
                state.pending.push(pending);
            } else {
                ours.push((index, claim));
            }
        }
        Ok(ours)
    }

    /// Waits a little, then has another look at runs that other processes had.
    pub(super) fn watch(&self) {
        let pause = self.machine.stale_after.map_or(WATCH_EVERY, |stale_after| WATCH_EVERY.min(stale_after / 4));
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.stop.requested() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut state = self.state();
        let aside = std::mem::take(&mut state.elsewhere);
        state.pending.extend(aside);
    }

    /// Tells other processes and `pudica status` how far this one is.
    pub(super) fn tell(&self, presence: &Presence) {
        let mut state = self.state();
        // The pace counts from the first progress, not from the first time that somebody asks.
        let (done, seconds_left) = if state.begun.is_some() { self.how_far(&mut state) } else { (0.0, None) };
        let (then, before) = state.told;
        state.told = (Instant::now(), state.steps_made);
        let steps_per_second = (state.steps_made - before) as f64 / then.elapsed().as_secs_f64().max(1e-3);
        let mut at: Vec<usize> = state.in_progress.keys().copied().collect();
        at.sort_unstable();
        let run_at = |index: &usize| {
            let (run, work) = self.run(*index);
            let step = state.steps.get(index).copied().unwrap_or(0);
            RunAt { id: run.id.clone(), label: run.label.clone(), step, steps: work.steps }
        };
        let at: Vec<RunAt> = at.iter().map(run_at).collect();
        let ended = state.summaries.len();
        drop(state);
        presence.tell(|report| {
            report.seconds = self.start.elapsed().as_secs_f64();
            (report.ended, report.at) = (ended, at);
            (report.done, report.seconds_left, report.steps_per_second) = (done, seconds_left, steps_per_second);
        });
    }
}
