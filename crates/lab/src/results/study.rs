//! The tables of a study: one row for each run that has ended, and one for each evaluation of each run.

use std::path::Path;

use serde_json::Value;

use super::table::{Cells, Table};
use super::write_table;
use crate::config::Configuration;
use crate::error::Result;
use crate::study::{Study, StudyRun};

/// Writes `results.csv` and `results.parquet` (runs), `curves.csv` and `curves.parquet` (evaluations) into `folder`.
pub fn write_study_results(folder: &Path, study: &Study) -> Result<()> {
    write_table(folder, "results", &runs(study))?;
    write_table(folder, "curves", &curves(study))
}

/// Settings, outcome and last measures.
fn runs(study: &Study) -> Table {
    let ended: Vec<_> =
        study.runs.iter().filter_map(|run| run.summary.as_ref().map(|summary| (run, summary))).collect();
    let mut table = Table::default();
    name_runs(&mut table, &ended.iter().map(|(run, _)| *run).collect::<Vec<_>>());
    let keys = ended.first().map(|(run, _)| run.config.settings().keys()).unwrap_or_default();
    for key in keys {
        let values = ended.iter().map(|(run, _)| run.config.settings().get(&key).cloned().unwrap_or_default());
        table.add(&key, cells(values.collect()));
    }
    let outcomes = ended.iter().map(|(_, summary)| serde_json::to_value(summary.outcome).unwrap_or_default());
    table.add("outcome", cells(outcomes.collect()));
    let mut names: Vec<&str> = Vec::new();
    for name in ended.iter().flat_map(|(_, summary)| summary.measures.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        table.add(name, Cells::Real(ended.iter().map(|(_, summary)| summary.measure(name)).collect()));
    }
    table.add("seconds", Cells::Real(ended.iter().map(|(_, summary)| Some(summary.seconds)).collect()));
    table.add("device", Cells::Text(ended.iter().map(|(_, summary)| Some(summary.device.clone())).collect()));
    table.add("problem", Cells::Text(ended.iter().map(|(_, summary)| summary.problem.clone()).collect()));
    table
}

/// What was found at each evaluation.
fn curves(study: &Study) -> Table {
    let rows: Vec<_> = study.runs.iter().flat_map(|run| run.points.iter().map(move |point| (run, point))).collect();
    let mut table = Table::default();
    name_runs(&mut table, &rows.iter().map(|(run, _)| *run).collect::<Vec<_>>());
    let mut whole = |name: &str, of: &dyn Fn(&crate::study::Point) -> u64| {
        table.add(name, Cells::Whole(rows.iter().map(|(_, point)| Some(of(point) as i64)).collect()));
    };
    whole("epoch", &|point| point.epoch);
    whole("step", &|point| point.step);
    let mut real = |name: &str, of: &dyn Fn(&crate::study::Point) -> Option<f64>| {
        table.add(name, Cells::Real(rows.iter().map(|(_, point)| of(point)).collect()));
    };
    real("train_loss", &|point| Some(point.train_loss));
    real("train_accuracy", &|point| Some(point.train_accuracy));
    real("test_loss", &|point| Some(point.test_loss));
    real("test_accuracy", &|point| Some(point.test_accuracy));
    real("test_accuracy_std_error", &|point| Some(point.test_accuracy_std_error));
    real("sensitivity", &|point| point.sensitivity);
    real("sensitivity_std_error", &|point| point.sensitivity_std_error);
    let names: std::collections::BTreeSet<&String> =
        rows.iter().flat_map(|(_, point)| point.corruptions.keys()).collect();
    for name in names {
        real(&format!("accuracy_{name}"), &|point| point.corruptions.get(name).map(|accuracy| accuracy.mean));
    }
    table
}

/// What tells a run from the others.
fn name_runs(table: &mut Table, runs: &[&StudyRun]) {
    table.add("run_id", Cells::Text(runs.iter().map(|run| Some(run.id.clone())).collect()));
    table.add("sweep", Cells::Text(runs.iter().map(|run| Some(run.sweep.clone())).collect()));
    table.add("label", Cells::Text(runs.iter().map(|run| Some(run.config.label())).collect()));
}

/// Values of one setting, which are all of one kind.
fn cells(values: Vec<Value>) -> Cells {
    match values.first() {
        Some(Value::Bool(_)) => Cells::Flag(values.iter().map(Value::as_bool).collect()),
        Some(Value::Number(number)) if number.is_f64() => Cells::Real(values.iter().map(Value::as_f64).collect()),
        Some(Value::Number(_)) => Cells::Whole(values.iter().map(Value::as_i64).collect()),
        _ => Cells::Text(values.iter().map(|value| value.as_str().map(String::from)).collect()),
    }
}
