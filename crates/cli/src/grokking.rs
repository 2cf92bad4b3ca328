//! Recipes of the kind `grokking` under `pudica show`, `run` and `report`.

use crate::Ending;
use crate::progress::Progress;
use crate::text::{grouped, seconds};
use pudica_lab::grokking::{Company, GrokkingPlan, estimate_grokking, execute_grokking};
use pudica_lab::{Configuration, Recipe, Stop};
use pudica_report::write_grokking;
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;

type Outcome = Result<Ending, Box<dyn Error>>;

/// What was asked for on the command line.
pub struct Asked<'a> {
    pub recipe: &'a Recipe,
    pub scale: Option<&'a str>,
    pub overrides: &'a [String],
    pub company: Company<'a>,
    pub json: bool,
}

impl Asked<'_> {
    fn plan(&self) -> pudica_lab::Result<GrokkingPlan> {
        GrokkingPlan::new(self.recipe, self.scale, self.overrides)
    }
}

/// What it would do, and, unless told otherwise, how long it would take here.
pub fn show(asked: &Asked, no_estimate: bool) -> Outcome {
    let plan = asked.plan()?;
    let time = if no_estimate { None } else { Some(estimate_grokking(&plan, asked.company)?) };
    let steps: u64 = plan.runs.iter().map(|run| run.config.train.epochs).sum();
    if asked.json {
        let runs: Vec<Value> = plan.runs.iter().map(|run| json!({"id": run.id, "settings": run.config})).collect();
        let object = json!({"recipe": plan.recipe.name, "scale": plan.scale, "runs": runs, "steps": steps,
            "seconds": time, "command": plan.command(), "folder": plan.default_folder()});
        println!("{object}");
        return Ok(Ending::Done);
    }
    println!("{}: {}\n  {}\n  {}\n", plan.recipe.name, plan.recipe.title, plan.recipe.source, plan.recipe.about);
    let scales: Vec<&str> = plan.recipe.scales.iter().map(|scale| scale.name.as_str()).collect();
    let row = |name: &str, value: String| println!("  {name:<16} {value}");
    row("scale", format!("{} (of {})", plan.scale, scales.join(", ")));
    row("runs", format!("{}, {} epochs in all, each with its sensitivity", plan.runs.len(), grouped(steps)));
    for run in &plan.runs {
        let config = &run.config;
        let (pairs, all) = (config.train_pairs() as u64, (config.modulus * config.modulus) as u64);
        let (lr, decay) = (config.train.lr, config.train.weight_decay);
        let how = format!("{} of {} pairs, AdamW {lr}, weight decay {decay}", grouped(pairs), grouped(all));
        row("", format!("{}: {how}, {} epochs", config.label(), grouped(config.train.epochs)));
    }
    if let Some(time) = time {
        row("time here", format!("about {} with up to {} seeds at once", seconds(time), asked.company.together));
    }
    row("results into", plan.default_folder().display().to_string());
    println!("\n  {}", plan.command());
    Ok(Ending::Done)
}

/// Makes the runs, or what is left of them, and writes the report.
pub fn run(asked: &Asked, out: Option<&Path>, stop: &Stop) -> Outcome {
    let plan = asked.plan()?;
    let folder = out.map_or_else(|| plan.default_folder(), Path::to_path_buf);
    let tally = execute_grokking(&plan, &folder, asked.company, &Progress::new(asked.json), stop)?;
    if tally.stopped && tally.remaining > 0 {
        eprintln!("stopped with {} runs to go, all saved; the same command continues", tally.remaining);
        return Ok(Ending::Interrupted);
    }
    report(&folder, asked.json)
}

/// Writes the report of a folder again.
pub fn report(folder: &Path, as_json: bool) -> Outcome {
    let report = write_grokking(folder)?;
    let (page, figures, tally) = (report.page, report.figures, report.tally);
    if as_json {
        println!("{}", json!({"event": "report_written", "page": page, "figures": figures, "tally": tally}));
    } else {
        println!("{} of {} runs finished\nreport: {}", tally.converged, tally.runs, page.display());
    }
    Ok(Ending::Done)
}
