//! `vasudeva/spectra` under `pudica list`, `show`, `run` and `report`: the experiment that trains nothing.

use crate::Ending;
use crate::text::{grouped, seconds};
use pudica_lab::Stop;
use pudica_lab::spectra::{NAME, SpectraPlan, compute_spectra, is_spectra_folder};
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
    is_spectra_folder(folder)
}

/// Name, title and source, for the list.
pub fn description() -> pudica_lab::Result<(&'static str, String, String)> {
    let plan = SpectraPlan::new(None, &[])?;
    Ok((NAME, plan.title, plan.source))
}

/// The same for programs.
pub fn description_json() -> pudica_lab::Result<Value> {
    let plan = SpectraPlan::new(None, &[])?;
    Ok(
        json!({"name": NAME, "title": plan.title, "source": plan.source, "about": plan.about, "scales": SpectraPlan::scales()}),
    )
}

/// What it would do.
pub fn show(scale: Option<&str>, overrides: &[String], as_json: bool) -> Outcome {
    let plan = SpectraPlan::new(scale, overrides)?;
    let networks = plan.settings.specimens()?.len();
    if as_json {
        let object = json!({"recipe": NAME, "scale": plan.scale, "runs": networks, "settings": plan.settings,
            "command": plan.command(), "folder": plan.default_folder()});
        println!("{object}");
        return Ok(Ending::Done);
    }
    println!("{NAME}: {}\n  {}\n  {}\n", plan.title, plan.source, plan.about);
    let row = |name: &str, value: String| println!("  {name:<16} {value}");
    let list = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let settings = &plan.settings;
    row("scale", format!("{} (of {})", plan.scale, SpectraPlan::scales().join(", ")));
    row("networks", format!("{}, none of them trained", grouped(networks as u64)));
    row("cube", format!("all 2^{} inputs", settings.dim));
    row("architectures", settings.architectures.join(", "));
    row("layers", list(&settings.depths));
    row("widths", list(&settings.widths));
    row("random weights", format!("{} of each kind", settings.networks));
    row("results into", plan.default_folder().display().to_string());
    println!("\n  {}", plan.command());
    Ok(Ending::Done)
}

/// Computes what is missing and writes the report.
pub fn run(scale: Option<&str>, overrides: &[String], out: Option<&Path>, as_json: bool, stop: &Stop) -> Outcome {
    let plan = SpectraPlan::new(scale, overrides)?;
    let folder = out.map_or_else(|| plan.default_folder(), Path::to_path_buf);
    let terminal = std::io::stderr().is_terminal() && !as_json;
    let progress = |done: usize, all: usize, spent: f64| {
        if as_json {
            println!("{}", json!({"event": "network_computed", "done": done, "of": all, "seconds": spent}));
        } else if terminal {
            let left = seconds(spent / done as f64 * (all - done) as f64);
            let line = if done < all { format!("{done} of {all} networks, about {left} left") } else { String::new() };
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush(); // progress is a courtesy
        }
    };
    let missing = compute_spectra(&plan, &folder, &progress, stop)?;
    if missing > 0 {
        eprintln!("stopped with {missing} networks to go, the others are saved; the same command continues");
        return Ok(Ending::Interrupted);
    }
    report(&folder, as_json)
}

/// Writes the report of a folder again.
pub fn report(folder: &Path, as_json: bool) -> Outcome {
    let report = pudica_report::write(folder)?;
    let (computed, planned) = (report.tally.converged, report.tally.runs);
    if as_json {
        let (page, figures) = (report.page, report.figures);
        let object = json!({"event": "report_written", "page": page, "figures": figures, "computed": computed, "planned": planned});
        println!("{object}");
    } else {
        println!("{computed} of {planned} networks computed\nreport: {}", report.page.display());
    }
    Ok(Ending::Done)
}
