//! One run as its numbers: settings, what was logged and what was measured at the end, each by its name.

use std::collections::BTreeMap;

use pudica_lab::{Outcome, Result, RunSummary};
use pudica_statistics::Mean;
use serde_json::{Map, Value};

use pudica_lab::store::{RunRecord, SweepRun};

use crate::figure::Point;

/// A run that has at least begun.
pub struct Run {
    /// Its place in the sweep.
    pub record: RunRecord,
    /// Its settings by their dotted names.
    pub settings: Map<String, Value>,
    /// Its outcome, if it has ended.
    pub summary: Option<RunSummary>,
    lines: Numbers,
}

impl Run {
    /// Reads what the run has logged so far.
    pub fn read(run: &SweepRun) -> Result<Run> {
        let setting = |key: &String| run.settings.get(key).map(|value| (key.clone(), value.clone()));
        let settings = run.settings.keys().iter().map(setting).collect::<Result<_, _>>()?;
        let mut lines = Numbers::default();
        run.lines()?.iter().for_each(|line| lines.add(line));
        Ok(Run { record: run.record.clone(), settings, summary: run.summary.clone(), lines })
    }

    /// Its name for people, with its id.
    pub fn name(&self) -> String {
        format!("{} ({})", self.record.label, self.record.id)
    }

    /// What differs from the other runs of its sweep.
    pub fn label(&self) -> &str {
        &self.record.label
    }

    /// A point of a figure that is this run.
    pub fn point(&self, x: f64, y: f64) -> Point {
        Point::new(x, y, self.label()).of_run(&self.record.id)
    }

    /// A setting as text; empty where there is no such setting.
    pub fn text(&self, key: &str) -> String {
        self.settings.get(key).map(text).unwrap_or_default()
    }

    /// A setting as a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.settings.get(key).and_then(Value::as_f64)
    }

    /// A setting or else a measure as a number.
    pub fn quantity(&self, name: &str) -> Option<f64> {
        match self.settings.get(name) {
            Some(Value::String(text)) => text.parse().ok(),
            Some(setting) => setting.as_f64(),
            None => self.value(name),
        }
    }

    /// Some of its settings for people: `d 16, embed add`.
    pub fn words(&self, keys: &[String]) -> String {
        let word = |key: &String| format!("{} {}", key.rsplit('.').next().unwrap_or(key), self.text(key));
        keys.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// How it ended, in a word or two.
    pub fn outcome(&self) -> &'static str {
        match &self.summary {
            None => "not finished yet",
            Some(summary) => match (summary.outcome, summary.converged) {
                (Outcome::Finished, true) if self.is_constant() => "finished, constant",
                (Outcome::Finished, true) => "finished",
                (Outcome::Finished, false) => "not converged",
                (Outcome::Failed, _) => "failed",
                (Outcome::Skipped, _) => "skipped",
            },
        }
    }

    /// Whether it was trained and measured to its end.
    pub fn is_finished(&self) -> bool {
        self.summary.as_ref().is_some_and(|summary| summary.outcome == Outcome::Finished)
    }

    /// Whether it has converged; an unfinished run has not.
    pub fn is_converged(&self) -> bool {
        self.is_finished() && self.summary.as_ref().is_some_and(|summary| summary.converged)
    }

    /// Whether it has numbers to show: something was logged or measured, and it did not fail.
    pub fn has_numbers(&self) -> bool {
        match &self.summary {
            Some(_) => self.is_finished(),
            None => self.lines.rows > 0,
        }
    }

    /// A number as it stands now: a measure of the trained network, or else what was logged last, or else a part of the detail.
    pub fn value(&self, name: &str) -> Option<f64> {
        match self.summary.as_ref().and_then(|summary| summary.measures.get(name)) {
            Some(measured) => measured.as_f64(), // null where it is not a finite number
            None => self.lines.last(name).or_else(|| self.detail(name)),
        }
    }

    /// A number in the summary's detail, by its dotted name.
    fn detail(&self, name: &str) -> Option<f64> {
        let mut parts = name.split('.');
        let first = self.summary.as_ref()?.detail.get(parts.next()?)?;
        let found = parts.try_fold(first, |node, part| match node {
            Value::Array(list) => list.get(part.parse::<usize>().ok()?),
            node => node.get(part),
        });
        found?.as_f64()
    }

    /// The same with its own standard error, where it has one.
    pub fn estimate(&self, name: &str) -> Option<Mean> {
        Some(estimate(self.value(name)?, self.value(&std_error(name))))
    }

    /// The numbers `name.0`, `name.1`, ...
    pub fn profile(&self, name: &str) -> Vec<Mean> {
        (0..).map_while(|place| self.estimate(&format!("{name}.{place}"))).collect()
    }

    /// What was logged last and begins so, without standard errors.
    pub fn logged<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let names = self.lines.columns.keys().map(String::as_str).filter(move |name| name.starts_with(prefix));
        names.filter(move |name| !name.ends_with(STD_ERROR) && self.lines.last(name).is_some())
    }

    /// How often inputs were touched to measure its sensitivity. Texts differ in their number of tokens: of those, one touch per draw counts.
    pub fn touches(&self) -> Option<u64> {
        let is_text = self.number("model.length").is_some_and(|length| length > 0.0);
        let sites = if is_text { 1 } else { self.profile("sites").len().max(1) };
        let (inputs, draws) =
            (self.value("sensitivity_inputs")? as u64, self.number("measure.draws").unwrap_or(1.0) as u64);
        Some(inputs.saturating_mul(draws).saturating_mul(sites as u64))
    }

    /// The logged curve of a quantity over another, such as `epoch`.
    pub fn curve(&self, x: &str, name: &str) -> impl Iterator<Item = (f64, Mean)> {
        let error = std_error(name);
        (0..self.lines.rows).filter_map(move |row| {
            let at = |name: &str| self.lines.at(name, row);
            Some((at(x)?, estimate(at(name)?, at(&error))))
        })
    }
}

/// The text of a setting.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

const STD_ERROR: &str = "_std_error";

/// The name of a number's standard error.
fn std_error(name: &str) -> String {
    format!("{name}{STD_ERROR}")
}

/// Half the width of a 95 % interval, in standard errors.
const Z95: f64 = 1.96;

/// A number of one run, with the interval of its own standard error.
pub fn estimate(mean: f64, std_error: Option<f64>) -> Mean {
    let std_error = std_error.unwrap_or(0.0);
    Mean { mean, std_error, low: mean - Z95 * std_error, high: mean + Z95 * std_error, count: 1 }
}

/// Objects as a table: a column for each number in them, a row for each object. What is inside tables and lists has dotted names, as
/// `sites.3`; `{mean, std_error}` is the two columns `NAME` and `NAME_std_error`.
#[derive(Default)]
struct Numbers {
    /// A missing cell is NaN, and columns end where all further cells are missing.
    columns: BTreeMap<String, Vec<f64>>,
    rows: usize,
}

impl Numbers {
    fn add(&mut self, object: &Map<String, Value>) {
        self.rows += 1;
        object.iter().for_each(|(name, value)| self.put(name, value));
    }

    fn put(&mut self, name: &str, value: &Value) {
        match value {
            Value::Number(number) => {
                if !self.columns.contains_key(name) {
                    self.columns.insert(name.into(), Vec::new());
                }
                if let (Some(column), Some(number)) = (self.columns.get_mut(name), number.as_f64()) {
                    column.resize(self.rows - 1, f64::NAN);
                    column.push(number);
                }
            }
            Value::Object(parts) => {
                for (part, value) in parts {
                    match part.as_str() {
                        "mean" => self.put(name, value),
                        "std_error" => self.put(&std_error(name), value),
                        part => self.put(&format!("{name}.{part}"), value),
                    }
                }
            }
            Value::Array(parts) => {
                parts.iter().enumerate().for_each(|(place, value)| self.put(&format!("{name}.{place}"), value));
            }
            _ => {}
        }
    }

    fn at(&self, name: &str, row: usize) -> Option<f64> {
        self.columns.get(name)?.get(row).copied().filter(|value| value.is_finite())
    }

    fn last(&self, name: &str) -> Option<f64> {
        self.at(name, self.rows.checked_sub(1)?)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    /// An unfinished run with these settings, by dotted names, and these lines.
    pub fn unfinished(settings: Value, lines: &[Value]) -> Run {
        let mut numbers = Numbers::default();
        lines.iter().for_each(|line| numbers.add(line.as_object().unwrap()));
        Run {
            record: RunRecord { id: "id".into(), sweep: "all".into(), parent: None, label: String::new() },
            settings: settings.as_object().unwrap().clone(),
            summary: None,
            lines: numbers,
        }
    }

    #[test]
    fn touches_are_counted_and_never_overflow() {
        let touches = |draws: f64| {
            let lines = [json!({"sensitivity_inputs": 1e15, "sites": [{"mean": 0.25}, {"mean": 0.75}]})];
            unfinished(json!({"measure.draws": draws}), &lines).touches()
        };
        assert_eq!(touches(3.0), Some(6_000_000_000_000_000));
        assert_eq!(touches(1e15), Some(u64::MAX), "as many as a damaged file says");
    }

    #[test]
    fn lines_become_columns() {
        let mut numbers = Numbers::default();
        for line in [
            json!({"step": 0, "loss": 0.5, "note": "begun"}),
            json!({"step": 10, "loss": null, "sites": [{"mean": 0.25, "std_error": 0.01}, {"mean": 0.75, "std_error": 0.02}]}),
            json!({"step": 20, "loss": 0.1, "corruptions": {"fog": {"mean": 0.5, "std_error": 0.1}}}),
        ] {
            numbers.add(line.as_object().unwrap());
        }
        assert_eq!((numbers.at("loss", 0), numbers.at("loss", 1), numbers.last("loss")), (Some(0.5), None, Some(0.1)));
        assert_eq!((numbers.at("sites.1", 1), numbers.at("sites.1_std_error", 1)), (Some(0.75), Some(0.02)));
        assert_eq!((numbers.last("sites.1"), numbers.at("sites.2", 1)), (None, None));
        assert_eq!(numbers.last("corruptions.fog"), Some(0.5));
        assert!(!numbers.columns.contains_key("note"));
    }
}
