//! What is asked for: the recipe at a scale, changed by overrides.

use std::path::{Path, PathBuf};

use pudica_boolean::did_you_mean;
use pudica_data::TokenTask;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SyntheticRun;
use crate::error::{Error, Result};

/// The experiment's name.
pub const NAME: &str = "vasudeva/synthetic";

const TEXT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes/vasudeva/synthetic.toml"));

/// What is asked for, as stored in `synthetic.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SyntheticPlan {
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
    pub settings: SyntheticSettings,
    /// The recipe's text.
    pub recipe_text: String,
}

/// Which data, and how the layer is trained on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyntheticSettings {
    /// Data settings, each `n_s:n_f:n_d:m:M`.
    pub data: Vec<String>,
    /// T: tokens in a sequence.
    pub length: usize,
    /// Training sequences.
    pub train: usize,
    /// Test sequences, and as many out of distribution.
    pub test: usize,
    /// Sequences in a step of SGD.
    pub batch: usize,
    /// The learning rate.
    pub rate: f64,
    /// The standard deviation of all parameters at the start.
    pub start: f64,
    /// Passes through the training sequences.
    pub epochs: usize,
    /// Epochs between measurements.
    pub every: usize,
    /// Runs of each data setting, with seeds 0, 1, ...
    pub seeds: u64,
    /// Sequences for the simulated columns of Tables 1 and 3.
    pub simulated: usize,
    /// Columns of Wq, Wk, Wv and U; unless given, as many as there are tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
}

const KEYS: [&str; 12] =
    ["data", "length", "train", "test", "batch", "rate", "start", "epochs", "every", "seeds", "simulated", "width"];

impl SyntheticSettings {
    /// Whether the same data and seed give the same run.
    pub(super) fn train_alike(&self, other: &SyntheticSettings) -> bool {
        let plain = |settings: &SyntheticSettings| SyntheticSettings {
            data: Vec::new(),
            seeds: 0,
            simulated: 0,
            ..settings.clone()
        };
        plain(self) == plain(other)
    }
}

impl SyntheticPlan {
    /// The recipe at a scale (default: quick), changed by overrides such as `data=3:5:1:16:59 seeds=2`.
    pub fn new(scale: Option<&str>, overrides: &[String]) -> Result<SyntheticPlan> {
        let wrong = |problem: String| Error::Recipe { recipe: NAME.into(), problem };
        let file: Map<String, Value> = toml::from_str(TEXT).map_err(|error| wrong(error.to_string()))?;
        let name = scale.unwrap_or(crate::recipe::DEFAULT_SCALE);
        let Some(Value::Object(table)) = file.get(name).filter(|_| Self::scales().contains(&name)) else {
            return Err(wrong(format!("has no scale `{name}`; it has {}", Self::scales().join(" and "))));
        };
        let mut settings = match file.get("settings") {
            Some(Value::Object(shared)) => shared.clone(),
            _ => Map::new(),
        };
        settings.extend(table.clone());
        for text in overrides {
            let (key, value) = read_override(text)?;
            settings.insert(key, value);
        }
        let settings: SyntheticSettings = serde_json::from_value(settings.into())
            .map_err(|error| wrong(format!("a setting has the wrong kind of value ({error})")))?;
        let text = |key: &str| file.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
        let plan = SyntheticPlan {
            program: format!("pudica {}", env!("CARGO_PKG_VERSION")),
            title: text("title"),
            source: text("source"),
            about: text("about"),
            scale: name.into(),
            overrides: overrides.to_vec(),
            settings,
            recipe_text: TEXT.into(),
        };
        plan.check()?; // refuses what cannot be computed before anything is
        Ok(plan)
    }

    /// The scales on offer.
    pub fn scales() -> [&'static str; 2] {
        ["quick", "paper"]
    }

    /// The command that repeats it.
    pub fn command(&self) -> String {
        let changes: String = self.overrides.iter().map(|text| format!(" {text}")).collect();
        format!("pudica run {NAME} --scale {}{changes}", self.scale)
    }

    /// Where its results go unless the user says otherwise.
    pub fn default_folder(&self) -> PathBuf {
        Path::new("runs").join(format!("{NAME}-{}", self.scale))
    }

    /// The data settings.
    pub fn tasks(&self) -> Result<Vec<TokenTask>> {
        self.settings.data.iter().map(|text| read_task(text, self.settings.length)).collect()
    }

    /// All runs: every data setting with the first seed, then with the second one, ...
    pub fn runs(&self) -> Result<Vec<SyntheticRun>> {
        let tasks = self.tasks()?;
        let with_seed = |seed: u64| tasks.iter().map(move |task| SyntheticRun { task: *task, seed });
        Ok((0..self.settings.seeds).flat_map(with_seed).collect())
    }

    fn check(&self) -> Result<()> {
        let settings = &self.settings;
        let tasks = self.tasks()?;
        if tasks.is_empty() || (1..tasks.len()).any(|place| tasks[..place].contains(&tasks[place])) {
            return Err(Error::setting("data", "give one or more settings, each once"));
        }
        let counts = [
            ("train", settings.train, 1_000_000),
            ("test", settings.test, 1_000_000),
            ("batch", settings.batch, 1_000_000),
            ("epochs", settings.epochs, 1_000_000),
            ("every", settings.every, 1_000_000),
            ("seeds", settings.seeds.try_into().unwrap_or(usize::MAX), 10_000),
            ("simulated", settings.simulated, 1_000_000),
            ("width", settings.width.unwrap_or(1), 1024),
        ];
        for (key, value, most) in counts {
            if !(1..=most).contains(&value) {
                return Err(Error::setting(key, format!("must be from 1 to {most}, not {value}")));
            }
        }
        for (key, value) in [("rate", settings.rate), ("start", settings.start)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::setting(key, format!("must be a positive number, not {value}")));
            }
        }
        Ok(())
    }
}

/// `n_s:n_f:n_d:m:M`.
fn read_task(text: &str, length: usize) -> Result<TokenTask> {
    let wrong = |problem: String| Error::setting("data", format!("`{text}` {problem}"));
    let numbers: Option<Vec<usize>> = text.split(':').map(|number| number.trim().parse().ok()).collect();
    let Some(&[n_s, n_f, n_d, m, vocabulary]) = numbers.as_deref() else {
        return Err(wrong("is not five whole numbers n_s:n_f:n_d:m:M, such as 3:5:1:16:59".into()));
    };
    let task = TokenTask { length, vocabulary, n_s, n_f, n_d, m };
    task.check().map_err(|error| wrong(format!("is impossible ({error})")))?;
    Ok(task)
}

/// `key=value`, the value a number, or data settings separated by commas.
fn read_override(text: &str) -> Result<(String, Value)> {
    let wrong = |problem: String| Error::Override { text: text.into(), problem };
    let Some((key, value)) = text.split_once('=') else { return Err(wrong("write key=value".into())) };
    if !KEYS.contains(&key) {
        let suggestion = did_you_mean(key, KEYS);
        return Err(wrong(format!("there is no setting {key}{suggestion} (there are {})", KEYS.join(", "))));
    }
    let number = || match (value.parse::<u64>(), value.parse::<f64>()) {
        (Ok(whole), _) => Value::from(whole),
        (_, Ok(real)) => Value::from(real),
        _ => Value::from(value),
    };
    let value = if key == "data" { value.split(',').map(str::trim).collect() } else { number() };
    Ok((key.into(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scale_can_be_planned() {
        let settings = SyntheticPlan::scales().map(|scale| {
            let plan = SyntheticPlan::new(Some(scale), &[]).unwrap();
            assert_eq!(plan.runs().unwrap().len(), plan.settings.data.len() * plan.settings.seeds as usize);
            plan.settings
        });
        // What the paper states: all six settings, T = 50, 1,000 and 500 sequences, batches of 100.
        let [quick, paper] = settings;
        assert_eq!((paper.data.len(), paper.length, paper.train, paper.test, paper.batch), (6, 50, 1000, 500, 100));
        assert!(quick.data.iter().all(|data| paper.data.contains(data)));
    }

    #[test]
    fn mistakes_are_sentences() {
        let refusal =
            |scale: Option<&str>, text: &str| SyntheticPlan::new(scale, &[text.to_string()]).unwrap_err().to_string();
        assert!(refusal(Some("settings"), "seeds=4").contains("no scale `settings`; it has quick and paper"));
        assert!(refusal(None, "seed=4").contains("did you mean 'seeds'?"));
        assert!(refusal(None, "seeds").contains("key=value"));
        assert!(refusal(None, "seeds=0").contains("1 to 10000"));
        assert!(refusal(None, "seeds=few").contains("wrong kind of value"));
        assert!(refusal(None, "rate=-1").contains("positive number"));
        assert!(refusal(None, "rate=NaN").contains("rate") || refusal(None, "rate=NaN").contains("wrong kind"));
        assert!(refusal(None, "every=0").contains("every"));
        assert!(refusal(None, "data=3:5:1:16").contains("five whole numbers"));
        assert!(refusal(None, "data=3:5:1:16:20").contains("vocabulary of at least 34"));
        assert!(refusal(None, "data=").contains("five whole numbers"));
        assert!(refusal(None, "data=3:5:1:16:59,3:5:1:16:59").contains("each once"));
    }
}
