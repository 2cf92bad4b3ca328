//! The report of a recipe that names no layout.

use super::lengths;
use crate::findings::{Cell, Findings, Table, head, with_error};
use crate::group::measure_names;
use crate::run::Run;
use crate::sweep::Sweep;

/// Measures that get a column, at most; all are in results.csv.
const COLUMNS: usize = 8;

/// Measures against the input length where runs have one, and a table of all runs otherwise.
pub fn findings(sweep: &Sweep) -> Findings {
    if sweep.runs.iter().any(|run| run.number("n").is_some() && !run.text("target").is_empty()) {
        return lengths::own(sweep);
    }
    Findings { tables: vec![table(sweep)], ..Findings::default() }
}

fn table(sweep: &Sweep) -> Table {
    let mut names = measure_names(sweep.runs.iter(), "");
    names.truncate(COLUMNS);
    let outcome = |run: &Run| match &run.summary {
        Some(summary) => format!("{:?}", summary.outcome).to_lowercase(),
        None => "not finished yet".into(),
    };
    let row = |run: &Run| {
        let measures = names.iter().map(|name| with_error(run.estimate(name)));
        [Cell::run(run.label(), &run.record.id), outcome(run).into()].into_iter().chain(measures).collect()
    };
    let columns = names.iter().map(|name| name.replace('_', " "));
    Table {
        title: "All runs".into(),
        head: head(["run", "outcome"]).into_iter().chain(columns).collect(),
        rows: sweep.runs.iter().map(row).collect(),
        note: "Measures at the end of each run, ± one standard error where it is known; results.csv has all of them."
            .into(),
    }
}
