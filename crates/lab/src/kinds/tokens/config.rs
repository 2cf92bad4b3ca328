//! The settings of one run: one attention layer on one set of synthetic tokens.

use pudica_data::TokenTask;

use crate::error::{Error, Result};
use crate::kinds::{Configuration, documented};
use crate::settings::Settings;

documented! {
    /// All settings of one run.
    pub struct TokensConfig {
        /// Names every random choice of the run: sequences, initial weights, order of the batches.
        pub seed: u64,
        /// The data as `n_s:n_f:n_d:m:M`: sparse tokens per sequence, frequent ones, by how much those of the label are more, how many
        /// different frequent tokens each label has, and the vocabulary's size.
        pub data: String,
        /// T: tokens per sequence.
        pub length: usize,
        /// The layer.
        pub model: ModelConfig,
        /// How it is trained.
        pub train: TrainConfig,
        /// What it is tested on.
        pub eval: EvalConfig,
        /// What is measured.
        pub measure: MeasureConfig,
    }
}

documented! {
    /// One attention layer without biases.
    pub struct ModelConfig {
        /// Columns of Wq, Wk, Wv and U; 0 means as many as there are tokens.
        pub width: usize,
        /// Standard deviation of all parameters at the start.
        pub init: f64,
    }
}

documented! {
    /// SGD on the logistic loss.
    pub struct TrainConfig {
        /// Training sequences.
        pub set_size: usize,
        /// Batch size: sequences per step.
        pub batch: usize,
        /// Learning rate.
        pub lr: f64,
        /// Passes through the training sequences.
        pub epochs: u64,
    }
}

documented! {
    /// Testing.
    pub struct EvalConfig {
        /// Test sequences, and as many out of distribution.
        pub sequences: usize,
    }
}

documented! {
    /// Measuring.
    pub struct MeasureConfig {
        /// Epochs between measurements.
        pub every: u64,
        /// Sequences for the simulated sensitivity of the two predictors (Tables 1 and 3).
        pub simulated: usize,
    }
}

/// Every default, in one place. Published: T, the sizes of the sets, the batch. Ours, chosen before looking at which tokens the layer
/// uses: the vocabulary's size M, the loss, learning rate, start and epochs.
impl Default for TokensConfig {
    fn default() -> Self {
        TokensConfig {
            seed: 0,
            data: "3:5:1:16:59".into(), // the first column of Figure 2
            length: 50,
            model: ModelConfig { width: 0, init: 0.1 },
            train: TrainConfig { set_size: 1000, batch: 100, lr: 0.1, epochs: 200 },
            eval: EvalConfig { sequences: 500 },
            measure: MeasureConfig { every: 5, simulated: 10_000 },
        }
    }
}

impl TokensConfig {
    /// What is learnt.
    pub fn task(&self) -> Result<TokenTask> {
        let wrong = |problem: String| Error::setting("data", format!("`{}` {problem}", self.data));
        let numbers: Option<Vec<usize>> = self.data.split(':').map(|number| number.trim().parse().ok()).collect();
        let Some(&[n_s, n_f, n_d, m, vocabulary]) = numbers.as_deref() else {
            return Err(wrong("is not five whole numbers n_s:n_f:n_d:m:M, such as 3:5:1:16:59".into()));
        };
        let task = TokenTask { length: self.length, vocabulary, n_s, n_f, n_d, m };
        task.check().map_err(|error| wrong(format!("is impossible ({error})")))?;
        Ok(task)
    }

    /// Steps per epoch.
    pub fn steps_per_epoch(&self) -> u64 {
        self.train.set_size.div_ceil(self.train.batch) as u64
    }

    fn validate(&self) -> Result<()> {
        let counts = [
            ("model.width", self.model.width as u64, 1024),
            ("train.set_size", self.train.set_size as u64, 1_000_000),
            ("train.batch", self.train.batch as u64, 1_000_000),
            ("train.epochs", self.train.epochs, 1_000_000),
            ("eval.sequences", self.eval.sequences as u64, 1_000_000),
            ("measure.every", self.measure.every, 1_000_000),
            ("measure.simulated", self.measure.simulated as u64, 1_000_000),
        ];
        for (key, value, most) in counts {
            if !(1..=most).contains(&value) {
                return Err(Error::setting(key, format!("must be from 1 to {most}, not {value}")));
            }
        }
        for (key, value) in [("train.lr", self.train.lr), ("model.init", self.model.init)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::setting(key, format!("must be a positive number, not {value}")));
            }
        }
        Ok(())
    }
}

impl Configuration for TokensConfig {
    fn resolve(settings: &Settings) -> Result<Self> {
        let mut config: TokensConfig = settings.read()?;
        let task = config.task()?;
        if config.model.width == 0 {
            config.model.width = task.vocabulary;
        }
        config.validate()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(key: &str, value: Value) -> String {
        let mut settings = TokensConfig::default().settings();
        match settings.set(key, value) {
            Err(error) => error.to_string(),
            Ok(()) => TokensConfig::resolve(&settings).unwrap_err().to_string(),
        }
    }

    #[test]
    fn mistakes_are_sentences() {
        assert!(refusal("seeds", json!(4)).contains("did you mean `seed`?"));
        assert!(refusal("train.epochs", json!(0)).contains("1 to 1000000"));
        assert!(refusal("train.lr", json!(-1.0)).contains("positive number"));
        assert!(refusal("measure.every", json!(0)).contains("measure.every"));
        assert!(refusal("data", json!("3:5:1:16")).contains("five whole numbers"));
        assert!(refusal("data", json!("3:5:1:16:20")).contains("vocabulary of at least 34"));
        assert_eq!(TokensConfig::resolve(&TokensConfig::default().settings()).unwrap().model.width, 59);
    }
}
