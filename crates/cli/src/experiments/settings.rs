//! `pudica settings`: everything that can be set.

use clap::Args;
use pudica_lab::kinds::{KINDS, Kind, SettingDoc};
use serde_json::{Value, json};

use super::Outcome;
use crate::Ending;

/// Print every setting of a kind of experiment: its type, its default and what it means
#[derive(Args)]
#[command(after_help = SETTINGS_EXAMPLES)]
pub struct SettingsOf {
    /// boolean, classifier, grokking, tokens or spectra; all where none is given
    kind: Option<String>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print docs/settings.md
    #[arg(long)]
    markdown: bool,
}

const SETTINGS_EXAMPLES: &str = "\
Examples:
  pudica settings boolean            everything you can set in `pudica run hahn/...` and in your own recipes
  pudica settings classifier --json  the same for programs";

/// What can be set.
pub fn settings(arguments: &SettingsOf) -> Outcome {
    let kinds: Vec<&Kind> = match &arguments.kind {
        Some(name) if name.is_empty() => return Err("KIND is empty: name one, or leave it out for all".into()),
        Some(name) => vec![Kind::find(name)?],
        None => KINDS.to_vec(),
    };
    if arguments.json {
        let of = |kind: &&Kind| (kind.name.to_string(), json!({"about": kind.about, "settings": kind.documentation()}));
        println!("{}", Value::Object(kinds.iter().map(of).collect()));
        return Ok(Ending::Done);
    }
    if arguments.markdown {
        print!("{}", markdown(&kinds));
        return Ok(Ending::Done);
    }
    for (place, kind) in kinds.iter().enumerate() {
        if place > 0 {
            println!();
        }
        println!("{}: {}\n", kind.name, kind.about);
        for SettingDoc { key, default, choices, meaning, kind } in kind.documentation() {
            let choices = if choices.is_empty() { kind.to_string() } else { choices.join(" | ") };
            println!("  {key} = {default}   ({choices})\n      {meaning}");
        }
    }
    Ok(Ending::Done)
}

/// The page docs/settings.md.
fn markdown(kinds: &[&Kind]) -> String {
    let mut page = String::from(
        "# Settings\n\nEvery setting of every kind of experiment, as `pudica settings --markdown` prints it. Set them on the command line \
         (`pudica run hahn/length-scaling model.d=64 seed=0..10`) or in a recipe of your own ([recipes.md](recipes.md)).\n",
    );
    for kind in kinds {
        page += &format!("\n## {}\n\nWhat runs of this kind are: {}.\n\n", kind.name, kind.about);
        page += "| setting | type | default | meaning |\n|---|---|---|---|\n";
        for SettingDoc { key, default, choices, meaning, kind } in kind.documentation() {
            let choices = match choices.is_empty() {
                true => kind.to_string(),
                false => choices.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            };
            page += &format!("| `{key}` | {choices} | `{default}` | {} |\n", meaning.replace('|', "\\|"));
        }
    }
    page
}
