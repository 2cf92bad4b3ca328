//! Studies of classifiers (recipes of the kind `study`) under `pudica show`, `run` and `report`.

use crate::Ending;
use crate::plans::{self, interrupted, row, tell_beginning, tell_end};
use crate::progress::Progress;
use crate::text::{grouped, number, seconds};
use pudica_lab::study::{Place, Study, StudyPlan, estimate_study, execute_study, read_study};
use pudica_lab::{Configuration, Outcome as RunOutcome, RunSummary, Stop};
use serde_json::json;
use std::error::Error;
use std::path::Path;

type Outcome = Result<Ending, Box<dyn Error>>;
type Asked<'a> = plans::Asked<'a, Place<'a>>;

/// What a study would do, and, unless told otherwise, how long it would take here.
pub fn show(asked: &Asked, no_estimate: bool) -> Outcome {
    let plan: StudyPlan = asked.plan()?;
    let time = match no_estimate {
        true => None,
        false => Some(estimate_study(&plan, &asked.place)?),
    };
    let total = time.as_ref().map(|runs| runs.iter().map(|run| run.seconds).sum::<f64>());
    let steps = time.as_ref().map(|runs| runs.iter().map(|run| run.steps).sum::<u64>());
    if asked.json {
        println!("{}", plans::as_json(&plan, steps, total));
        return Ok(Ending::Done);
    }
    tell_beginning(&plan);
    let steps = steps.map_or(String::new(), |steps| format!(", {} training steps in all", grouped(steps)));
    row("runs", format!("{}{steps}", plan.runs.len()));
    for (index, run) in plan.runs.iter().enumerate() {
        let train = &run.config.train;
        let time = time.as_ref().map_or(String::new(), |runs| format!(", about {}", seconds(runs[index].seconds)));
        let how = format!("{} epochs, {} {}, batch {}", train.epochs, train.optimiser, train.lr, train.batch);
        row("", format!("{}: {how}{time}", run.config.label()));
    }
    if let Some(total) = total {
        row("time here", format!("about {}", seconds(total)));
    }
    tell_end(&plan);
    Ok(Ending::Done)
}

/// Makes a study, or what is left of it, and tells what was found.
pub fn run(asked: &Asked, out: Option<&Path>, stop: &Stop) -> Outcome {
    let plan: StudyPlan = asked.plan()?;
    let folder = out.map_or_else(|| plan.default_folder(), Path::to_path_buf);
    let tally = execute_study(&plan, &folder, &asked.place, &Progress::new(asked.json), stop)?;
    interrupted(&tally).map_or_else(|| report(&folder, asked.json), Ok)
}

/// Writes the report of a study's folder, and tells what it holds.
pub fn report(folder: &Path, as_json: bool) -> Outcome {
    let report = pudica_report::write(folder)?;
    let (page, figures, tally) = (report.page, report.figures, report.tally);
    if as_json {
        println!("{}", json!({"event": "report_written", "page": page, "figures": figures, "tally": tally}));
    } else {
        print_table(&read_study(folder)?);
        println!("report: {}", page.display());
    }
    Ok(Ending::Done)
}

/// The measures of the table: their names, headings and how many decimals they are worth.
const COLUMNS: [(&str, &str); 5] = [
    ("train_accuracy", "train"),
    ("test_accuracy", "test"),
    ("sensitivity", "sensitivity"),
    ("shop", "ShOp"),
    ("shpred", "ShPred"),
];

/// One line for each run, with the numbers at its end.
fn print_table(study: &Study) {
    let summaries = || study.runs.iter().filter_map(|run| run.summary.as_ref());
    let columns: Vec<(&str, &str)> =
        COLUMNS.into_iter().filter(|(name, _)| summaries().any(|summary| summary.measure(name).is_some())).collect();
    let labels: Vec<String> = study.runs.iter().map(|run| run.config.label()).collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let headings: String = columns.iter().map(|(_, heading)| format!("  {heading:<18}")).collect();
    println!("{:<width$}{}", "run", headings.trim_end());
    for (run, label) in study.runs.iter().zip(&labels) {
        let cells: String = match &run.summary {
            None => "  not finished".into(),
            Some(summary) if summary.outcome == RunOutcome::Failed => {
                format!("  {}", summary.problem.as_deref().unwrap_or("failed"))
            }
            Some(summary) => columns.iter().map(|(name, _)| format!("  {:<18}", cell(summary, name))).collect(),
        };
        println!("{label:<width$}{}", cells.trim_end());
    }
    let missing = study.record.runs.len() - study.runs.len();
    if missing > 0 {
        println!("{missing} runs not begun");
    }
}

/// A number and its standard error: `0.0559 ± 0.0012`.
fn cell(summary: &RunSummary, name: &str) -> String {
    let Some(value) = summary.measure(name) else { return "-".into() };
    match summary.measure(&format!("{name}_std_error")) {
        Some(error) => format!("{value:.4} ± {error:.4}"),
        None => number((value * 1e4).round() / 1e4),
    }
}
