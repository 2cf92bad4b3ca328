//! What `show` and `run` make of any plan alike.

use crate::Ending;
use pudica_lab::{Configuration, Plan, Recipe, Tally};
use serde_json::{Value, json};

/// What was asked for on the command line; `place` says where it computes.
pub struct Asked<'a, P> {
    pub recipe: &'a Recipe,
    pub scale: Option<&'a str>,
    pub overrides: &'a [String],
    pub place: P,
    pub json: bool,
}

impl<P> Asked<'_, P> {
    /// The runs that are meant.
    pub fn plan<C: Configuration>(&self) -> pudica_lab::Result<Plan<C>> {
        Plan::new(self.recipe, self.scale, self.overrides)
    }
}

/// What a plan would do, as one object.
pub fn as_json<C: Configuration>(plan: &Plan<C>, steps: Option<u64>, seconds: Option<f64>) -> Value {
    let runs: Vec<Value> = plan.runs.iter().map(|run| json!({"id": run.id, "settings": run.config})).collect();
    json!({"recipe": plan.recipe.name, "scale": plan.scale, "runs": runs, "steps": steps, "seconds": seconds,
        "command": plan.command(), "folder": plan.default_folder()})
}

/// The first lines about a plan: what it is and at which scale.
pub fn tell_beginning<C: Configuration>(plan: &Plan<C>) {
    println!("{}: {}\n  {}\n  {}\n", plan.recipe.name, plan.recipe.title, plan.recipe.source, plan.recipe.about);
    let scales: Vec<&str> = plan.recipe.scales.iter().map(|scale| scale.name.as_str()).collect();
    row("scale", format!("{} (of {})", plan.scale, scales.join(", ")));
}

/// A line about a plan.
pub fn row(name: &str, value: String) {
    println!("  {name:<16} {value}");
}

/// The last lines: where it goes and the command.
pub fn tell_end<C: Configuration>(plan: &Plan<C>) {
    row("results into", plan.default_folder().display().to_string());
    println!("\n  {}", plan.command());
}

/// Says that runs are left and ends, where Ctrl-C left some.
pub fn interrupted(tally: &Tally) -> Option<Ending> {
    (tally.stopped && tally.remaining > 0).then(|| {
        eprintln!("stopped with {} runs to go, all saved; the same command continues", tally.remaining);
        Ending::Interrupted
    })
}
