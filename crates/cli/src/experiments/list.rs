//! `pudica list`.

use clap::Args;
use pudica_lab::Recipe;
use pudica_lab::recipe::builtin_names;
use serde_json::{Value, json};

use super::Outcome;
use crate::Ending;

/// List the experiments that come with pudica
#[derive(Args)]
pub struct List {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// One line per recipe.
pub fn list(arguments: &List) -> Outcome {
    let recipes: Vec<Recipe> = builtin_names().map(Recipe::find).collect::<Result<_, _>>()?;
    if arguments.json {
        let describe = |r: &Recipe| {
            let scales: Vec<&str> = r.scales.iter().map(|scale| scale.name.as_str()).collect();
            json!({"name": r.name, "kind": r.kind.name, "title": r.title, "source": r.source, "about": r.about, "scales": scales})
        };
        println!("{}", Value::from_iter(recipes.iter().map(describe)));
        return Ok(Ending::Done);
    }
    let width = recipes.iter().map(|recipe| recipe.name.len()).max().unwrap_or(0);
    for recipe in &recipes {
        println!("{:<width$}  {}; {}", recipe.name, recipe.title, recipe.source);
    }
    println!("\n`pudica show NAME` tells what one does and how long it takes here; `pudica run NAME` runs it.");
    Ok(Ending::Done)
}
