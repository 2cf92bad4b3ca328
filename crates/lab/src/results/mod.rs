//! What a sweep found, as tables for other programs: `results.csv` and `.parquet` with one row for each run that has ended, `curves.csv`
//! and `.parquet` with one row for each line of metrics.

mod table;

use std::path::Path;

use serde_json::Value;

use crate::error::Result;
use crate::kinds::Kind;
use crate::plan::varying;
use crate::settings::Settings;
use crate::store::{Outcome, RunSummary, SweepRecord, SweepRun, write_atomically};
pub use table::{Cells, Table};

/// Writes all tables into `folder`.
pub fn write_results(folder: &Path, record: &SweepRecord, runs: &[SweepRun]) -> Result<()> {
    let columns = setting_columns(record, runs)?;
    write_table(folder, "results", &runs_table(runs, &columns))?;
    let curves = curves_table(runs, &columns)?;
    if curves.rows() > 0 {
        write_table(folder, "curves", &curves)?;
    }
    Ok(())
}

/// Writes a table as `NAME.csv` and `NAME.parquet` into `folder`.
pub fn write_table(folder: &Path, name: &str, table: &Table) -> Result<()> {
    write_atomically(&folder.join(format!("{name}.csv")), |file| table.write_csv(file))?;
    write_atomically(&folder.join(format!("{name}.parquet")), |file| table.write_parquet(file))
}

/// The settings that get a column: those that name a run, and all that differ between runs, in the order of definition.
fn setting_columns(record: &SweepRecord, runs: &[SweepRun]) -> Result<Vec<String>> {
    let all: Vec<&Settings> = runs.iter().map(|run| &run.settings).collect();
    let (naming, differing) = (Kind::find(&record.kind)?.naming, varying(&all));
    let keys = all.first().map(|settings| settings.keys()).unwrap_or_default();
    let shown = |key: &String| naming.contains(&key.as_str()) || differing.contains(key) || record.swept.contains(key);
    Ok(keys.iter().filter(|key| shown(key)).cloned().collect())
}

/// What tells the runs of some rows from each other.
fn name_runs(table: &mut Table, runs: &[&SweepRun], columns: &[String]) {
    let text = |of: &dyn Fn(&SweepRun) -> Option<String>| Cells::Text(runs.iter().map(|run| of(run)).collect());
    table.add("run_id", text(&|run| Some(run.record.id.clone())));
    table.add("sweep", text(&|run| Some(run.record.sweep.clone())));
    if runs.iter().any(|run| run.record.parent.is_some()) {
        table.add("parent", text(&|run| run.record.parent.clone()));
    }
    table.add("label", text(&|run| Some(run.record.label.clone())));
    for key in columns {
        let values = runs.iter().map(|run| run.settings.get(key).cloned().unwrap_or_default());
        table.add(key, cells(values.collect()));
    }
}

/// Settings, outcome and measures.
fn runs_table(runs: &[SweepRun], columns: &[String]) -> Table {
    let ended: Vec<(&SweepRun, &RunSummary)> =
        runs.iter().filter_map(|run| run.summary.as_ref().map(|summary| (run, summary))).collect();
    let mut table = Table::default();
    name_runs(&mut table, &ended.iter().map(|(run, _)| *run).collect::<Vec<_>>(), columns);
    let summaries = || ended.iter().map(|(_, summary)| *summary);
    let outcomes = summaries().map(|summary| serde_json::to_value(summary.outcome).unwrap_or_default());
    table.add("outcome", cells(outcomes.collect()));
    let converged = |summary: &RunSummary| (summary.outcome == Outcome::Finished).then_some(summary.converged);
    table.add("converged", Cells::Flag(summaries().map(converged).collect()));
    for name in in_order(summaries().flat_map(|summary| summary.measures.keys())) {
        table.add(name, Cells::Real(summaries().map(|summary| summary.measure(name)).collect()));
    }
    table.add("seconds", Cells::Real(summaries().map(|summary| Some(summary.seconds)).collect()));
    table.add("device", Cells::Text(summaries().map(|summary| Some(summary.device.clone())).collect()));
    table.add("problem", Cells::Text(summaries().map(|summary| summary.problem.clone()).collect()));
    table
}

/// Every line of metrics: its numbers, and those of tables in it under dotted names.
fn curves_table(runs: &[SweepRun], columns: &[String]) -> Result<Table> {
    let mut rows = Vec::new();
    for run in runs {
        rows.extend(run.lines()?.into_iter().map(|line| (run, crate::settings::flatten(&Value::Object(line)))));
    }
    let mut table = Table::default();
    name_runs(&mut table, &rows.iter().map(|(run, _)| *run).collect::<Vec<_>>(), columns);
    let numbers = rows.iter().flat_map(|(_, line)| line).filter(|(_, value)| value.is_number());
    let names: Vec<String> = in_order(numbers.map(|(name, _)| name)).into_iter().map(String::from).collect();
    let lines: Vec<std::collections::HashMap<&str, &Value>> =
        rows.iter().map(|(_, line)| line.iter().map(|(name, value)| (name.as_str(), value)).collect()).collect();
    for name in &names {
        let values = lines.iter().map(|line| line.get(name.as_str()).copied());
        let cells = match name.as_str() {
            "step" | "epoch" => Cells::Whole(values.map(|value| value.and_then(Value::as_i64)).collect()),
            _ => Cells::Real(values.map(|value| value.and_then(Value::as_f64)).collect()),
        };
        table.add(name, cells);
    }
    Ok(table)
}

/// Names in the order of first appearance, each once.
fn in_order<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.map(String::as_str).filter(|name| seen.insert(*name)).collect()
}

/// Values of one setting, which are all of one type.
fn cells(values: Vec<Value>) -> Cells {
    match values.first() {
        Some(Value::Bool(_)) => Cells::Flag(values.iter().map(Value::as_bool).collect()),
        Some(Value::Number(number)) if number.is_f64() => Cells::Real(values.iter().map(Value::as_f64).collect()),
        Some(Value::Number(_)) => Cells::Whole(values.iter().map(Value::as_i64).collect()),
        _ => Cells::Text(values.iter().map(|value| value.as_str().map(String::from)).collect()),
    }
}
