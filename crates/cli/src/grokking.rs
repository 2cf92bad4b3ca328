//! Recipes of the kind `grokking` under `pudica show`, `run` and `report`.

use crate::Ending;
use crate::plans::{self, as_json, interrupted, row, tell_beginning, tell_end};
use crate::progress::Progress;
use crate::text::{grouped, seconds};
use pudica_lab::grokking::{Company, GrokkingPlan, estimate_grokking, execute_grokking};
use pudica_lab::{Configuration, Stop};
use serde_json::json;
use std::error::Error;
use std::path::Path;

type Outcome = Result<Ending, Box<dyn Error>>;
type Asked<'a> = plans::Asked<'a, Company<'a>>;

/// What it would do, and, unless told otherwise, how long it would take here.
pub fn show(asked: &Asked, no_estimate: bool) -> Outcome {
    let plan: GrokkingPlan = asked.plan()?;
    let time = if no_estimate { None } else { Some(estimate_grokking(&plan, asked.place)?) };
    let steps: u64 = plan.runs.iter().map(|run| run.config.train.epochs).sum();
    if asked.json {
        println!("{}", as_json(&plan, Some(steps), time));
        return Ok(Ending::Done);
    }
    tell_beginning(&plan);
    row("runs", format!("{}, {} epochs in all, each with its sensitivity", plan.runs.len(), grouped(steps)));
    for run in &plan.runs {
        let config = &run.config;
        let (pairs, all) = (config.train_pairs() as u64, (config.modulus * config.modulus) as u64);
        let (lr, decay) = (config.train.lr, config.train.weight_decay);
        let how = format!("{} of {} pairs, AdamW {lr}, weight decay {decay}", grouped(pairs), grouped(all));
        row("", format!("{}: {how}, {} epochs", config.label(), grouped(config.train.epochs)));
    }
    if let Some(time) = time {
        row("time here", format!("about {} with up to {} seeds at once", seconds(time), asked.place.together));
    }
    tell_end(&plan);
    Ok(Ending::Done)
}

/// Makes the runs, or what is left of them, and writes the report.
pub fn run(asked: &Asked, out: Option<&Path>, stop: &Stop) -> Outcome {
    let plan: GrokkingPlan = asked.plan()?;
    let folder = out.map_or_else(|| plan.default_folder(), Path::to_path_buf);
    let tally = execute_grokking(&plan, &folder, asked.place, &Progress::new(asked.json), stop)?;
    interrupted(&tally).map_or_else(|| report(&folder, asked.json), Ok)
}

/// Writes the report of a folder again.
pub fn report(folder: &Path, as_json: bool) -> Outcome {
    let report = pudica_report::write(folder)?;
    let (page, figures, tally) = (report.page, report.figures, report.tally);
    if as_json {
        println!("{}", json!({"event": "report_written", "page": page, "figures": figures, "tally": tally}));
    } else {
        println!("{} of {} runs finished\nreport: {}", tally.converged, tally.runs, page.display());
    }
    Ok(Ending::Done)
}
