//! `vasudeva/synthetic` under `pudica list`, `show`, `run` and `report`: one attention layer on synthetic tokens.

use crate::Ending;
use crate::text::{grouped, seconds};
use pudica_lab::Stop;
use pudica_lab::synthetic::{NAME, SyntheticPlan, compute_synthetic, is_synthetic_folder};
use serde_json::{Value, json};
use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::Path;

type Outcome = Result<Ending, Box<dyn Error>>;

/// Whether a recipe's name means this experiment.
pub fn is_meant(recipe: &str) -> bool {
    recipe == NAME
}

/// Whether a folder holds this experiment.
pub fn is_folder(folder: &Path) -> bool {
    is_synthetic_folder(folder)
}

/// Name, title and source, for the list.
pub fn description() -> pudica_lab::Result<(&'static str, String, String)> {
    let plan = SyntheticPlan::new(None, &[])?;
    Ok((NAME, plan.title, plan.source))
}

/// The same for programs.
pub fn description_json() -> pudica_lab::Result<Value> {
    let SyntheticPlan { title, source, about, .. } = SyntheticPlan::new(None, &[])?;
    Ok(json!({"name": NAME, "title": title, "source": source, "about": about, "scales": SyntheticPlan::scales()}))
}

/// What it would do.
pub fn show(scale: Option<&str>, overrides: &[String], as_json: bool) -> Outcome {
    let plan = SyntheticPlan::new(scale, overrides)?;
    let runs = plan.settings.runs()?.len();
    let settings = &plan.settings;
    let steps = (settings.epochs * settings.train.div_ceil(settings.batch) * runs) as u64;
    if as_json {
        let object = json!({"recipe": NAME, "scale": plan.scale, "runs": runs, "steps": steps, "settings": settings,
            "command": plan.command(), "folder": plan.default_folder()});
        println!("{object}");
        return Ok(Ending::Done);
    }
    println!("{NAME}: {}\n  {}\n  {}\n", plan.title, plan.source, plan.about);
    let row = |name: &str, value: String| println!("  {name:<16} {value}");
    row("scale", format!("{} (of {})", plan.scale, SyntheticPlan::scales().join(", ")));
    row("runs", format!("{}, {} training steps in all", grouped(runs as u64), grouped(steps)));
    row("n_s:n_f:n_d:m:M", settings.data.join(", "));
    row("sequences", format!("{} of {} tokens, {} for tests", settings.train, settings.length, settings.test));
    row("SGD", format!("rate {}, batch {}, start N(0, {}²)", settings.rate, settings.batch, settings.start));
    row("epochs", format!("{}, measured every {}", settings.epochs, settings.every));
    row("results into", plan.default_folder().display().to_string());
    println!("\n  {}", plan.command());
    Ok(Ending::Done)
}

/// Trains what is missing and writes the report.
pub fn run(scale: Option<&str>, overrides: &[String], out: Option<&Path>, as_json: bool, stop: &Stop) -> Outcome {
    let plan = SyntheticPlan::new(scale, overrides)?;
    let folder = out.map_or_else(|| plan.default_folder(), Path::to_path_buf);
    let terminal = std::io::stderr().is_terminal() && !as_json;
    let progress = |done: usize, all: usize, spent: f64| {
        if as_json {
            println!("{}", json!({"event": "run_made", "done": done, "of": all, "seconds": spent}));
        } else if terminal {
            let left = seconds(spent / done as f64 * (all - done) as f64);
            let line = if done < all { format!("{done} of {all} runs, about {left} left") } else { String::new() };
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush(); // progress is a courtesy
        }
    };
    let missing = compute_synthetic(&plan, &folder, &progress, stop)?;
    if missing > 0 {
        eprintln!("stopped with {missing} runs to go, the others are saved; the same command continues");
        return Ok(Ending::Interrupted);
    }
    report(&folder, as_json)
}

/// Writes the report of a folder again.
pub fn report(folder: &Path, as_json: bool) -> Outcome {
    let report = pudica_report::write(folder)?;
    let (made, planned) = (report.tally.converged, report.tally.runs);
    if as_json {
        let (page, figures) = (report.page, report.figures);
        println!(
            "{}",
            json!({"event": "report_written", "page": page, "figures": figures, "made": made, "planned": planned})
        );
    } else {
        println!("{made} of {planned} runs made\nreport: {}", report.page.display());
    }
    Ok(Ending::Done)
}
