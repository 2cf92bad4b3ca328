//! `pudica show`: the runs of a plan and what they would cost here.

use std::collections::HashSet;

use clap::Args;
use pudica_lab::{Plan, Recipe, TimeEstimate, estimate, open};
use serde_json::{Value, json};

use super::{Outcome, What};
use crate::Ending;
use crate::text::{grouped, seconds};

/// Show what an experiment would do: runs, what is swept, and how long it would take here
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct Show {
    #[command(flatten)]
    what: What,
    /// Do not measure training steps for an estimate of the time
    #[arg(long)]
    no_estimate: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  pudica show hahn/length-scaling
  pudica show hahn/length-scaling --scale paper
  pudica show hahn/tradeoff model.d=64 --no-estimate";

impl Show {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        let estimate =
            if self.no_estimate { "" } else { ", and timing some of its steps (--no-estimate leaves that out)" };
        format!("planning {}{estimate}", self.what.recipe)
    }
}

/// The plan, and its cost here.
pub fn show(arguments: &Show) -> Outcome {
    let (plan, machine) = arguments.what.plan(false)?;
    let (mut time, mut steps) = (None, None);
    if arguments.no_estimate && plan.reads_own_files {
        open(&plan, &machine)?; // what `run` refuses in the user's own files is refused here
    }
    if !arguments.no_estimate {
        let experiment = open(&plan, &machine)?;
        let works = plan.runs.iter().map(|run| Ok(experiment.work(&run.settings)?.steps));
        steps = Some(works.collect::<pudica_lab::Result<Vec<u64>>>()?.iter().sum::<u64>());
        time = Some(estimate(&plan, experiment.as_ref(), &machine)?);
    }
    let swept: Vec<(&String, Vec<String>)> = plan.swept.iter().map(|key| (key, values(&plan, key))).collect();
    if arguments.json {
        let runs: Vec<Value> = plan
            .runs
            .iter()
            .map(|run| json!({"id": run.id, "label": run.label, "sweep": run.sweep, "settings": run.settings}))
            .collect();
        let swept: serde_json::Map<String, Value> =
            swept.into_iter().map(|(key, values)| (key.clone(), json!(values))).collect();
        let object = json!({"recipe": plan.recipe.name, "kind": plan.kind().name, "scale": plan.scale, "swept": swept,
            "runs": runs, "steps": steps, "seconds": time.as_ref().map(|t| t.seconds),
            "jobs": time.as_ref().map(|t| t.jobs), "together": time.as_ref().map(|t| t.together),
            "command": plan.command(), "folder": plan.default_folder()});
        println!("{object}");
        return Ok(Ending::Done);
    }
    let Recipe { name, title, source, about, kind, scales, .. } = &plan.recipe;
    println!("{name}: {title}");
    for text in [source, about].into_iter().filter(|text| !text.is_empty()) {
        println!("  {text}");
    }
    println!();
    let scales: Vec<&str> = scales.iter().map(|scale| scale.name.as_str()).collect();
    row("scale", format!("{} (of {})", plan.scale, scales.join(", ")));
    row("kind", format!("{}: {}", kind.name, kind.about));
    let steps = steps.filter(|steps| *steps > 0);
    let steps = steps.map_or(String::new(), |steps| format!(", {} training steps in all", grouped(steps)));
    row("runs", format!("{}{steps}", grouped(plan.runs.len() as u64)));
    for (place, (key, values)) in swept.iter().enumerate() {
        row(if place == 0 { "swept" } else { "" }, format!("{key} = {}", shortened(values)));
    }
    if let Some(time) = time {
        row("time here", words(&time));
    }
    row("results into", plan.default_folder().display().to_string());
    println!("\n  {}", plan.command());
    Ok(Ending::Done)
}

/// A line about a plan.
fn row(name: &str, value: String) {
    println!("  {name:<16} {value}");
}

/// The different values of a setting among the runs, in the order of first appearance.
fn values(plan: &Plan, key: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    plan.runs.iter().map(|run| run.settings.text(key)).filter(|value| seen.insert(value.clone())).collect()
}

/// "4, 5, ..., 30 (27 values)" for many, all of them for few.
fn shortened(values: &[String]) -> String {
    match values {
        [first, second, .., last] if values.len() > 8 => {
            format!("{first}, {second}, ..., {last} ({} values)", values.len())
        }
        _ => {
            let shown = |value: &String| if value.is_empty() { "none".into() } else { value.clone() };
            values.iter().map(shown).collect::<Vec<_>>().join(", ")
        }
    }
}

fn words(time: &TimeEstimate) -> String {
    let judged = time.groups - time.groups_measured.min(time.groups);
    let note = if judged > 0 {
        format!(", {judged} of {} kinds of network judged from smaller ones", time.groups)
    } else {
        String::new()
    };
    let at_once = match (time.jobs, time.together) {
        (1, 1) => String::new(),
        (jobs, 1) => format!(", {jobs} runs at a time"),
        (1, most) => format!(", up to {most} runs in lock-step"),
        (jobs, most) => format!(", {jobs} groups at a time, up to {most} runs in lock-step in each"),
    };
    format!("about {}{at_once}{note}", seconds(time.seconds))
}
