//! `results.csv` and `results.parquet`: one row for each run that has ended.

mod study;
mod table;

use std::path::Path;

use serde_json::Value;

use crate::error::Result;
use crate::store::{Outcome, SweepRun, write_atomically};
use table::{Cells, Table};

pub use study::write_study_results;

/// Measures that get a column in any case, in this order; any others follow.
const MAIN_MEASURES: [&str; 9] = [
    "eval_loss",
    "eval_accuracy",
    "sharpness",
    "sharpness_std_error",
    "output_shift",
    "blowup",
    "param_norm",
    "average_sensitivity",
    "average_sensitivity_std_error",
];

/// Writes both tables into `folder`.
pub fn write_results(folder: &Path, runs: &[SweepRun]) -> Result<()> {
    write_table(folder, "results", &table_of(runs))
}

fn write_table(folder: &Path, name: &str, table: &Table) -> Result<()> {
    write_atomically(&folder.join(format!("{name}.csv")), |file| table.write_csv(file))?;
    write_atomically(&folder.join(format!("{name}.parquet")), |file| table.write_parquet(file))
}

fn table_of(runs: &[SweepRun]) -> Table {
    let ended: Vec<_> = runs.iter().filter_map(|run| run.summary.as_ref().map(|summary| (run, summary))).collect();
    let text = |of: &dyn Fn(&SweepRun) -> String| Cells::Text(ended.iter().map(|(run, _)| Some(of(run))).collect());
    let whole =
        |of: &dyn Fn(&SweepRun) -> u64| Cells::Whole(ended.iter().map(|(run, _)| Some(of(run) as i64)).collect());
    let real = |of: &dyn Fn(&SweepRun) -> f64| Cells::Real(ended.iter().map(|(run, _)| Some(of(run))).collect());
    let choice = |value: Value| value.as_str().unwrap_or_default().to_string();

    let mut table = Table::default();
    table.add("run_id", text(&|run| run.record.id.clone()));
    table.add("sweep", text(&|run| run.record.sweep.clone()));
    table.add("parent", Cells::Text(ended.iter().map(|(run, _)| run.record.parent.clone()).collect()));
    table.add("target", text(&|run| run.config.target.clone()));
    table.add("n", whole(&|run| run.config.n as u64));
    table.add("seed", whole(&|run| run.config.seed));
    table.add("lr", real(&|run| run.config.train.lr));
    table.add("weight_decay", real(&|run| run.config.train.weight_decay));
    table.add("batch", whole(&|run| run.config.train.batch as u64));
    table.add("steps", whole(&|run| run.config.train.steps));
    table.add("set_size", whole(&|run| run.config.train.set_size as u64));
    table.add("set_seed", whole(&|run| run.config.train.set_seed));
    table.add("model", text(&|run| choice(serde_json::json!(run.config.model.kind))));
    table.add("d", whole(&|run| run.config.model.d as u64));
    table.add("layers", whole(&|run| run.config.model.layers as u64));
    table.add("heads", whole(&|run| run.config.model.heads as u64));
    table.add("ff", whole(&|run| run.config.ff() as u64));
    let outcomes = ended.iter().map(|(_, summary)| Some(choice(serde_json::json!(summary.outcome))));
    table.add("outcome", Cells::Text(outcomes.collect()));
    let converged = |outcome, converged| (outcome == Outcome::Finished).then_some(converged);
    let converged = ended.iter().map(|(_, summary)| converged(summary.outcome, summary.converged));
    table.add("converged", Cells::Flag(converged.collect()));
    let mut names: Vec<&str> = MAIN_MEASURES.to_vec();
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
