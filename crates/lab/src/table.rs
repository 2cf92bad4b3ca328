//! Experiments whose recipe is one table of settings for each scale, without sweeps of runs.

use std::path::{Path, PathBuf};

use pudica_boolean::did_you_mean;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The settings of such an experiment.
pub trait TableSettings: DeserializeOwned {
    /// The experiment's name.
    const NAME: &'static str;
    /// Its recipe.
    const TEXT: &'static str;
    /// Its scales, the default first.
    const SCALES: [&'static str; 2];
    /// All settings.
    const KEYS: &'static [&'static str];
    /// Those that are lists.
    const LISTS: &'static [&'static str];

    /// Refuses what cannot be computed, before anything is.
    fn check(&self) -> Result<()>;
}

/// What is asked for, as its folder stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TablePlan<S> {
    /// The program that wrote it.
    pub program: String,
    /// A short title.
    pub title: String,
    /// What it belongs to.
    pub source: String,
    /// What it shows.
    pub about: String,
    /// The scale's name.
    pub scale: String,
    /// Settings changed on the command line, as typed.
    pub overrides: Vec<String>,
    /// The settings.
    pub settings: S,
    /// The recipe's text.
    pub recipe_text: String,
}

impl<S: TableSettings> TablePlan<S> {
    /// The recipe at a scale (default: quick): what all scales share, what this one has, and overrides such as `dim=10 widths=16,32`.
    pub fn new(scale: Option<&str>, overrides: &[String]) -> Result<Self> {
        let wrong = |problem: String| Error::Recipe { recipe: S::NAME.into(), problem };
        let file: Map<String, Value> = toml::from_str(S::TEXT).map_err(|error| wrong(error.to_string()))?;
        let name = scale.unwrap_or(crate::recipe::DEFAULT_SCALE);
        let Some(Value::Object(table)) = file.get(name).filter(|_| S::SCALES.contains(&name)) else {
            return Err(wrong(format!("has no scale `{name}`; it has {}", S::SCALES.join(" and "))));
        };
        let mut settings = match file.get("settings") {
            Some(Value::Object(shared)) => shared.clone(),
            _ => Map::new(),
        };
        settings.extend(table.clone());
        for text in overrides {
            let (key, value) = read_override::<S>(text)?;
            settings.insert(key, value);
        }
        let settings: S = serde_json::from_value(settings.into())
            .map_err(|error| wrong(format!("a setting has the wrong kind of value ({error})")))?;
        settings.check()?;
        let text = |key: &str| file.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
        Ok(Self {
            program: format!("pudica {}", env!("CARGO_PKG_VERSION")),
            title: text("title"),
            source: text("source"),
            about: text("about"),
            scale: name.into(),
            overrides: overrides.to_vec(),
            settings,
            recipe_text: S::TEXT.into(),
        })
    }

    /// The scales on offer.
    pub fn scales() -> [&'static str; 2] {
        S::SCALES
    }

    /// The command that repeats it.
    pub fn command(&self) -> String {
        let changes: String = self.overrides.iter().map(|text| format!(" {text}")).collect();
        format!("pudica run {} --scale {}{changes}", S::NAME, self.scale)
    }

    /// Where its results go unless the user says otherwise.
    pub fn default_folder(&self) -> PathBuf {
        Path::new("runs").join(format!("{}-{}", S::NAME, self.scale))
    }
}

/// `key=value`, the value a number or a word, or several of them separated by commas.
fn read_override<S: TableSettings>(text: &str) -> Result<(String, Value)> {
    let wrong = |problem: String| Error::Override { text: text.into(), problem };
    let Some((key, value)) = text.split_once('=') else { return Err(wrong("write key=value".into())) };
    if !S::KEYS.contains(&key) {
        let suggestion = did_you_mean(key, S::KEYS.iter().copied());
        return Err(wrong(format!("there is no setting {key}{suggestion} (there are {})", S::KEYS.join(", "))));
    }
    let typed = |word: &str| match (word.trim().parse::<u64>(), word.trim().parse::<f64>()) {
        (Ok(whole), _) => Value::from(whole),
        (_, Ok(real)) => Value::from(real),
        _ => Value::from(word.trim()),
    };
    let value = if S::LISTS.contains(&key) { value.split(',').map(typed).collect() } else { typed(value) };
    Ok((key.into(), value))
}
