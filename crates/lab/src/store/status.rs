//! How a sweep stands, from its files alone: no process is asked.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use super::at_work::AtWork;
use super::check::{State, Weights};
use super::owner::Owner;
use super::run::Outcome;
use super::sweep::SweepFolder;
use crate::error::Result;
use crate::kinds::Kind;

/// A process that has told nothing for so many seconds is called silent.
const SILENT_AFTER: f64 = 60.0;

/// How a sweep stands.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// Runs in all.
    pub runs: usize,
    /// Those that were finished.
    pub finished: usize,
    /// Those that are being made.
    pub at_work: usize,
    /// Those that were begun and that nobody is at.
    pub interrupted: usize,
    /// Those that nobody has begun.
    pub waiting: usize,
    /// Those that were not made because the run they learn from is of no use.
    pub skipped: usize,
    /// Those that have failed, and why.
    pub failed: Vec<Failure>,
    /// Those whose files are damaged, and how: they do not count, and `--repair` makes them again.
    pub damaged: Vec<Failure>,
    /// The processes that are at work.
    pub processes: Vec<AtWork>,
    /// Processes that are gone without having said so, or have told nothing for long: killed, or their machine is.
    pub silent: Vec<AtWork>,
    /// Processes that have ended with an error.
    pub ended: Vec<AtWork>,
}

/// A run that has failed or is damaged.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Its id.
    pub id: String,
    /// How a person names it.
    pub label: String,
    /// Why.
    pub problem: String,
}

impl Status {
    /// How the sweep in this folder stands now.
    pub fn of(path: &Path) -> Result<Status> {
        let sweep = SweepFolder::open(path)?;
        let mut status = Status { runs: sweep.record().runs.len(), ..Status::default() };
        let kind = Kind::find(&sweep.record().kind)?;
        let own = Owner::this();
        for one in AtWork::all(path)? {
            let list = match own.sees_gone(&one.owner) {
                _ if one.has_ended => &mut status.ended,
                Some(true) => &mut status.silent,
                None if one.age() > SILENT_AFTER => &mut status.silent,
                _ => &mut status.processes,
            };
            list.push(one);
        }
        let at: HashSet<&str> = status.processes.iter().flat_map(|one| &one.at).map(|run| run.id.as_str()).collect();
        for record in &sweep.record().runs {
            let folder = sweep.run(&record.id);
            let failure = |problem| Failure { id: record.id.clone(), label: record.label.clone(), problem };
            match folder.state(kind, Weights::Size)? {
                State::Ended(_, summary) => match summary.outcome {
                    Outcome::Finished => status.finished += 1,
                    Outcome::Skipped => status.skipped += 1,
                    Outcome::Failed => status.failed.push(failure(summary.problem.unwrap_or_default())),
                },
                State::Damaged(damage) => status.damaged.push(failure(damage.to_string())),
                _ if at.contains(record.id.as_str()) => status.at_work += 1,
                _ if folder.checkpoint_path().exists() => status.interrupted += 1,
                _ => status.waiting += 1,
            }
        }
        Ok(status)
    }

    /// Whether nothing is left to be made.
    pub fn is_complete(&self) -> bool {
        self.at_work + self.interrupted + self.waiting == 0
    }
}
