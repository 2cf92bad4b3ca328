//! What a sweep tells while it runs. The laboratory never prints.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::store::{Outcome, RunSummary};

/// Something that happened in a sweep. With `--json` each is one line of output.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The sweep begins or continues.
    SweepStarted {
        /// Its folder.
        folder: PathBuf,
        /// Runs in all.
        runs: usize,
        /// Runs that had already ended before.
        finished: usize,
        /// Training steps of all runs together.
        total_steps: u64,
    },
    /// Something worth knowing that changes nothing.
    Notice {
        /// In words.
        text: String,
    },
    /// A run begins or continues.
    RunStarted {
        /// The run's id.
        id: String,
        /// How a person names it.
        label: String,
        /// The step it continues from; 0 for a fresh run.
        from_step: u64,
    },
    /// A run has come this far; sent a few times a second.
    Progress {
        /// The run's id.
        id: String,
        /// How a person names it.
        label: String,
        /// Steps made.
        step: u64,
        /// Steps to make.
        steps: u64,
        /// Its latest training loss.
        loss: f64,
        /// How much of the sweep's work is done, 0 to 1.
        done: f64,
        /// Seconds until the sweep ends, as far as one can tell yet.
        seconds_left: Option<f64>,
    },
    /// A run has ended.
    RunEnded {
        /// The run's id.
        id: String,
        /// How a person names it.
        label: String,
        /// How it ended.
        outcome: Outcome,
        /// Whether it converged.
        converged: bool,
        /// Why it failed or was skipped.
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
        /// The measures that tell most about it, by name.
        #[serde(flatten)]
        measures: Map<String, Value>,
        /// Wall-clock seconds it took.
        seconds: f64,
        /// Runs ended so far, with those from earlier.
        ended: usize,
        /// Runs in all.
        runs: usize,
        /// How much of the sweep's work is done, 0 to 1.
        done: f64,
        /// Seconds until the sweep ends, as far as one can tell yet.
        seconds_left: Option<f64>,
    },
    /// The sweep has ended or was stopped.
    SweepEnded(Tally),
    /// The report is written.
    ReportWritten {
        /// The page to open.
        page: PathBuf,
        /// The figures, as SVG; a PNG lies beside each.
        figures: Vec<PathBuf>,
        /// How the runs stand.
        tally: Tally,
        /// What was published, and what the runs say about it; nothing where nothing was.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        verdicts: Vec<Value>,
    },
}

/// How the runs of a sweep stand.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Runs in all.
    pub runs: usize,
    /// Finished and converged.
    pub converged: usize,
    /// Finished, but not converged: discarded from figures.
    pub discarded: usize,
    /// Stopped by a loss that is not a finite number.
    pub failed: usize,
    /// Not run, because the run they learn from is of no use.
    pub skipped: usize,
    /// Not ended yet.
    pub remaining: usize,
    /// Those whose files are damaged: left as they are, and not counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub damaged: usize,
    /// Those of them that other processes are making in the same folder.
    #[serde(skip_serializing_if = "is_zero")]
    pub elsewhere: usize,
    /// Whether the sweep was stopped on request.
    pub stopped: bool,
    /// What runs met that are left for the next time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// What is wrong with damaged ones, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
    /// Wall-clock seconds of this call; in a report, those of all runs.
    pub seconds: f64,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Tally {
    /// How planned runs stand, by the summaries of those that have ended. Seconds are those the runs took.
    pub fn of<'a>(planned: usize, ended: impl IntoIterator<Item = &'a RunSummary>) -> Tally {
        let mut tally = Tally { runs: planned, ..Tally::default() };
        for summary in ended {
            *match (summary.outcome, summary.converged) {
                (Outcome::Finished, true) => &mut tally.converged,
                (Outcome::Finished, false) => &mut tally.discarded,
                (Outcome::Failed, _) => &mut tally.failed,
                (Outcome::Skipped, _) => &mut tally.skipped,
            } += 1;
            tally.seconds += summary.seconds;
        }
        let ended = tally.converged + tally.discarded + tally.failed + tally.skipped;
        tally.remaining = planned.saturating_sub(ended);
        tally
    }

    /// The same where some of those that have not ended are damaged, each said in a sentence.
    pub fn with_damaged(self, damage: Vec<String>) -> Tally {
        Tally { remaining: self.remaining.saturating_sub(damage.len()), damaged: damage.len(), damage, ..self }
    }
}

/// Hears the events of a sweep; called from several threads.
pub trait Observer: Sync {
    /// Something happened.
    fn notice(&self, event: &Event);
}

/// Any closure can listen.
impl<F: Fn(&Event) + Sync> Observer for F {
    fn notice(&self, event: &Event) {
        self(event)
    }
}
