//! A sweep as the figures see it: runs that count, and why others do not.

use pudica_lab::config::Configuration;
use pudica_lab::events::Tally;
use pudica_lab::store::{SweepRecord, SweepRun};
use pudica_lab::{Outcome, RunConfig, RunSummary, SweepFolder};
use serde_json::{Value, json};

/// All runs of a sweep folder.
pub struct Sweep {
    /// What was asked for.
    pub record: SweepRecord,
    /// Runs that have at least begun.
    pub runs: Vec<SweepRun>,
}

/// A finished run.
#[derive(Clone, Copy)]
pub struct Finished<'a> {
    /// The run.
    pub run: &'a SweepRun,
    /// Its settings.
    pub config: &'a RunConfig,
    /// Its outcome.
    pub summary: &'a RunSummary,
}

impl Finished<'_> {
    /// What hovering over its point shows.
    pub fn name(&self) -> String {
        format!("{} ({})", self.config.label(), self.run.record.id)
    }
}

impl Sweep {
    /// Reads a sweep folder.
    pub fn read(folder: &SweepFolder) -> pudica_lab::Result<Sweep> {
        Ok(Sweep { record: folder.record().clone(), runs: folder.runs()? })
    }

    /// Whether the recipe is one of ours, not a user's own.
    pub fn is_builtin(&self) -> bool {
        pudica_lab::recipe::builtin(&self.record.recipe).is_some()
    }

    /// Whether this is the published experiment, nothing changed.
    pub fn is_as_published(&self) -> bool {
        self.is_builtin() && self.record.scale == "paper" && self.record.overrides.is_empty()
    }

    /// The finished runs, converged or not.
    pub fn finished(&self) -> impl Iterator<Item = Finished<'_>> {
        self.runs.iter().filter_map(|run| {
            let summary = run.summary.as_ref().filter(|summary| summary.outcome == Outcome::Finished)?;
            Some(Finished { run, config: &run.config, summary })
        })
    }

    /// The converged runs, which figures show.
    pub fn kept(&self) -> impl Iterator<Item = Finished<'_>> {
        self.finished().filter(|run| run.summary.converged)
    }

    /// The different values of something among all runs, in the order of first appearance.
    pub fn different<T: PartialEq>(&self, of: impl Fn(&RunConfig) -> T) -> Vec<T> {
        let mut values = Vec::new();
        for run in &self.runs {
            let value = of(&run.config);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }

    /// How the runs stand.
    pub fn tally(&self) -> Tally {
        tally(self.record.runs.len(), self.runs.iter().filter_map(|run| run.summary.as_ref()))
    }

    /// The small print of every figure.
    pub fn note(&self) -> String {
        let tally = self.tally();
        let mut note = format!(
            "{} scale · {} of {} runs converged, {} discarded",
            self.record.scale, tally.converged, tally.runs, tally.discarded
        );
        for (count, what) in
            [(tally.failed, "failed"), (tally.skipped, "skipped"), (tally.remaining, "not finished yet")]
        {
            if count > 0 {
                note += &format!(", {count} {what}");
            }
        }
        note
    }

    /// The head of summary.json.
    pub fn heading(&self) -> Value {
        let tally = self.tally();
        json!({
            "recipe": self.record.recipe,
            "scale": self.record.scale,
            "overrides": self.record.overrides,
            "command": self.record.command,
            "runs": {
                "planned": tally.runs,
                "kept": tally.converged,
                "discarded": tally.discarded,
                "failed": tally.failed,
                "skipped": tally.skipped,
                "remaining": tally.remaining,
            },
            "seconds_of_computing": tally.seconds,
        })
    }
}

/// How planned runs stand, by the summaries of those that have ended.
pub fn tally<'a>(planned: usize, ended: impl Iterator<Item = &'a RunSummary>) -> Tally {
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
    tally.remaining = tally.runs - tally.converged - tally.discarded - tally.failed - tally.skipped;
    tally
}

/// A target's name as the paper writes it.
pub fn title_of(target: &str) -> String {
    match target {
        "parity" | "majority" | "first" | "mean" => target.to_uppercase(),
        other => other.to_string(),
    }
}
