//! What is asked for: the recipe at a scale, changed by overrides.

use pudica_data::TokenTask;
use serde::{Deserialize, Serialize};

use super::SyntheticRun;
use crate::error::{Error, Result};
use crate::table::{TablePlan, TableSettings};

/// The experiment's name.
pub const NAME: &str = "vasudeva/synthetic";

/// What is asked for, as stored in `synthetic.json`.
pub type SyntheticPlan = TablePlan<SyntheticSettings>;

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

impl SyntheticSettings {
    /// The data settings.
    pub fn tasks(&self) -> Result<Vec<TokenTask>> {
        self.data.iter().map(|text| read_task(text, self.length)).collect()
    }

    /// All runs: every data setting with the first seed, then with the second one, ...
    pub fn runs(&self) -> Result<Vec<SyntheticRun>> {
        let tasks = self.tasks()?;
        let with_seed = |seed: u64| tasks.iter().map(move |task| SyntheticRun { task: *task, seed });
        Ok((0..self.seeds).flat_map(with_seed).collect())
    }

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

impl TableSettings for SyntheticSettings {
    const NAME: &'static str = NAME;
    const TEXT: &'static str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes/vasudeva/synthetic.toml"));
    const SCALES: [&'static str; 2] = ["quick", "paper"];
    const KEYS: &'static [&'static str] = &[
        "data",
        "length",
        "train",
        "test",
        "batch",
        "rate",
        "start",
        "epochs",
        "every",
        "seeds",
        "simulated",
        "width",
    ];
    const LISTS: &'static [&'static str] = &["data"];

    fn check(&self) -> Result<()> {
        let tasks = self.tasks()?;
        if tasks.is_empty() || (1..tasks.len()).any(|place| tasks[..place].contains(&tasks[place])) {
            return Err(Error::setting("data", "give one or more settings, each once"));
        }
        let counts = [
            ("train", self.train, 1_000_000),
            ("test", self.test, 1_000_000),
            ("batch", self.batch, 1_000_000),
            ("epochs", self.epochs, 1_000_000),
            ("every", self.every, 1_000_000),
            ("seeds", self.seeds.try_into().unwrap_or(usize::MAX), 10_000),
            ("simulated", self.simulated, 1_000_000),
            ("width", self.width.unwrap_or(1), 1024),
        ];
        for (key, value, most) in counts {
            if !(1..=most).contains(&value) {
                return Err(Error::setting(key, format!("must be from 1 to {most}, not {value}")));
            }
        }
        for (key, value) in [("rate", self.rate), ("start", self.start)] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scale_can_be_planned() {
        let settings = SyntheticPlan::scales().map(|scale| {
            let plan = SyntheticPlan::new(Some(scale), &[]).unwrap();
            assert_eq!(plan.settings.runs().unwrap().len(), plan.settings.data.len() * plan.settings.seeds as usize);
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
