//! A sweep as layouts see it: runs that count, and why others do not.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use pudica_lab::events::Tally;
use pudica_lab::store::{SweepRecord, SweepRun};
use pudica_lab::{Kind, Result};
use pudica_statistics::{Mean, mean};
use serde_json::{Map, Value, json};

use crate::group::{Group, groups};
use crate::run::Run;

/// A sweep and its runs.
pub struct Sweep {
    /// What was asked for.
    pub record: SweepRecord,
    /// Runs that have at least begun, in the order of the plan.
    pub runs: Vec<Run>,
    /// What is wrong with runs that are left out because their files are damaged, a sentence each.
    pub damaged: Vec<String>,
}

impl Sweep {
    /// Reads what the runs have logged.
    pub fn read(record: SweepRecord, runs: &[SweepRun], damaged: Vec<String>) -> Result<Sweep> {
        Ok(Sweep { record, runs: runs.iter().map(Run::read).collect::<Result<_>>()?, damaged })
    }

    /// Whether the recipe is one of ours, not a user's own.
    pub fn is_builtin(&self) -> bool {
        pudica_lab::recipe::builtin(&self.record.recipe).is_some()
    }

    /// The title of a figure or table: as that of the published one for a built-in recipe, on its own for somebody's own.
    pub fn titled(&self, number: &str, title: &str) -> String {
        if number.is_empty() || !self.is_builtin() {
            return title.into();
        }
        let mut letters = title.chars();
        let title: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
        match self.record.has_own_settings() {
            true => format!("{number}: {title}"),
            false => format!("{number} with other settings: {title}"),
        }
    }

    /// The finished runs, converged or not.
    pub fn finished(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.is_finished())
    }

    /// The converged runs, which figures show.
    pub fn kept(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.is_converged())
    }

    /// The converged runs with this text of a setting.
    pub fn kept_with(&self, key: &str, text: &str) -> Vec<&Run> {
        self.kept().filter(|run| run.text(key) == text).collect()
    }

    /// How many runs with this text of a setting have finished and not converged.
    pub fn discarded_with(&self, key: &str, text: &str) -> usize {
        self.finished().filter(|run| !run.is_converged() && run.text(key) == text).count()
    }

    /// Groups of runs that differ in their seed alone, each called by the `title` of its runs.
    pub fn groups(&self, title: impl Fn(&Run) -> String) -> Vec<Group<'_>> {
        groups(&self.runs, title)
    }

    /// The different texts of a setting among all runs, in the order of first appearance.
    pub fn texts(&self, key: &str) -> Vec<String> {
        different(self.runs.iter().map(|run| run.text(key)))
    }

    /// The different numbers of a setting among all runs, in the order of first appearance.
    pub fn numbers(&self, key: &str) -> Vec<f64> {
        different_numbers(self.runs.iter().filter_map(|run| run.number(key)))
    }

    /// The settings that were swept, seeds aside: those that name runs first. One that another of them determines is left out, as the width of
    /// the only perceptron among other networks.
    pub fn axes(&self) -> Vec<String> {
        let naming = Kind::find(&self.record.kind).map_or(&[][..], |kind| kind.naming);
        let keys = self.runs.first().into_iter().flat_map(|run| run.settings.keys());
        let swept = |key: &&String| self.record.swept.is_empty() || self.record.swept.contains(key);
        let mut keys: Vec<&String> =
            keys.filter(|key| !is_seed(key)).filter(swept).filter(|key| self.texts(key).len() > 1).collect();
        keys.sort_by_key(|key| naming.iter().position(|name| name == *key).unwrap_or(naming.len())); // stable
        let mut axes: Vec<String> = Vec::new();
        for key in keys {
            if !axes.iter().any(|axis| self.determines(axis, key)) {
                axes.push(key.clone());
            }
        }
        axes
    }

    /// Whether all runs that are equal in one setting are equal in another.
    fn determines(&self, one: &str, other: &str) -> bool {
        let pairs = different(self.runs.iter().map(|run| (run.text(one), run.text(other))));
        pairs.len() == self.texts(one).len()
    }

    /// The axes beside those that a layout shows by itself.
    pub fn other_axes(&self, shown: &[&str]) -> Vec<String> {
        self.axes().into_iter().filter(|axis| !shown.contains(&axis.as_str())).collect()
    }

    /// The most runs that have begun in one cell of the axes: how many there should be in each.
    pub fn runs_per_cell(&self) -> usize {
        let axes = self.axes();
        let mut cells: HashMap<Vec<String>, usize> = HashMap::new();
        for run in &self.runs {
            *cells.entry(axes.iter().map(|axis| run.text(axis)).collect()).or_default() += 1;
        }
        cells.into_values().max().unwrap_or(0)
    }

    /// How the runs stand.
    pub fn tally(&self) -> Tally {
        Tally::of(self.record.runs.len(), self.runs.iter().filter_map(|run| run.summary.as_ref()))
            .with_damaged(self.damaged.clone())
    }

    /// The small print of every figure.
    pub fn note(&self) -> String {
        let tally = self.tally();
        let counts = match tally.discarded {
            0 => format!("{} of {} runs finished", tally.converged, tally.runs),
            discarded => format!("{} of {} runs converged, {discarded} discarded", tally.converged, tally.runs),
        };
        let mut note = format!("{} scale · {counts}", self.record.scale);
        for (count, what) in [
            (tally.failed, "failed"),
            (tally.skipped, "skipped"),
            (tally.damaged, "damaged"),
            (tally.remaining, "not finished yet"),
        ] {
            if count > 0 {
                note += &format!(", {count} {what}");
            }
        }
        note
    }

    /// The head of summary.json.
    pub fn heading(&self) -> Map<String, Value> {
        let (record, tally) = (&self.record, self.tally());
        let mut runs = json!({
            "planned": tally.runs, "kept": tally.converged, "discarded": tally.discarded,
            "failed": tally.failed, "skipped": tally.skipped, "remaining": tally.remaining,
        });
        if tally.damaged > 0 {
            runs["damaged"] = tally.damaged.into();
        }
        let heading = [
            ("recipe", json!(record.recipe)),
            ("scale", json!(record.scale)),
            ("overrides", json!(record.overrides)),
            ("command", json!(record.command)),
            ("runs", runs),
            ("seconds_of_computing", json!(tally.seconds)),
        ];
        heading.map(|(key, value)| (key.to_string(), value)).into_iter().collect()
    }
}

/// Whether a setting only names random choices.
fn is_seed(key: &str) -> bool {
    key.rsplit('.').next().is_some_and(|last| last == "seed" || last.ends_with("_seed"))
}

/// Values in the order of first appearance, each once.
pub fn different<T: Eq + Hash + Clone>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    all.filter(|value| seen.insert(value.clone())).collect()
}

/// Numbers in the order of first appearance, each once.
pub fn different_numbers(all: impl Iterator<Item = f64>) -> Vec<f64> {
    different(all.map(f64::to_bits)).into_iter().map(f64::from_bits).collect()
}

/// The mean of a measure over the runs at each number of a setting, in rising order.
pub fn means_by(runs: &[&Run], key: &str, measure: &str) -> Vec<(f64, Mean)> {
    let mut numbers = different_numbers(runs.iter().filter_map(|run| run.number(key)));
    numbers.sort_by(f64::total_cmp);
    let values = |number: f64| -> Vec<f64> {
        let own = runs.iter().filter(|run| run.number(key) == Some(number));
        own.filter_map(|run| run.value(measure)).collect()
    };
    numbers.into_iter().filter_map(|number| Some((number, mean(&values(number))?))).collect()
}
