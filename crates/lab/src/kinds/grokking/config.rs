//! The settings of one run that groks, or does not.

use pudica_data::{ModularTask, Polynomial};
use pudica_nn::classifier::Optimiser;
use pudica_nn::grokking::{Grokking, ModularTransformer};

use crate::error::{Error, Result};
use crate::kinds::{Configuration, documented};
use crate::settings::Settings;

documented! {
    /// All settings of one run.
    pub struct GrokkingConfig {
        /// Names every random choice of the run: which pairs are trained on, initial weights, noise.
        pub seed: u64,
        /// p: the numbers are 0 to p - 1, and so are the results.
        pub modulus: usize,
        /// What is learnt, modulo p: a polynomial in a and b, such as `a+b`, `a-b`, `a*b` or `a^2+b^2`.
        pub operation: String,
        /// The fraction of all p x p pairs that is trained on; the others are the test set.
        pub share: f64,
        /// Standard deviation of the noise on the embeddings of both numbers that sensitivity is measured with.
        pub noise: f64,
        /// The network.
        pub model: ModelConfig,
        /// How it is trained: full-batch AdamW on the cross-entropy.
        pub train: TrainConfig,
    }
}

documented! {
    /// One attention layer and one MLP with ReLU; no LayerNorm, no biases.
    pub struct ModelConfig {
        /// Width of the residual stream.
        pub d: usize,
        /// Attention heads; must divide `d`.
        pub heads: usize,
        /// Width of the MLP.
        pub mlp: usize,
    }
}

documented! {
    /// Full-batch AdamW.
    pub struct TrainConfig {
        /// Learning rate.
        pub lr: f64,
        /// Pull of the weights towards 0.
        pub weight_decay: f64,
        /// Decay of the first moment.
        pub beta1: f64,
        /// Decay of the second moment.
        pub beta2: f64,
        /// Steps, each on all training pairs.
        pub epochs: u64,
    }
}

/// Every default, in one place: the settings of Vasudeva et al. (2025).
impl Default for GrokkingConfig {
    fn default() -> Self {
        GrokkingConfig {
            seed: 0,
            modulus: 113,
            operation: "a+b".into(),
            share: 0.3,
            noise: 0.1,
            model: ModelConfig { d: 128, heads: 4, mlp: 512 },
            train: TrainConfig {
                lr: 1e-3,
                weight_decay: 1.0,
                beta1: 0.9,  // not stated: those of Nanda et al. (2023), whose network and data these are
                beta2: 0.98, // likewise
                epochs: 20_000,
            },
        }
    }
}

impl GrokkingConfig {
    /// What is learnt.
    pub fn task(&self) -> Result<ModularTask> {
        let operation: Polynomial =
            self.operation.parse().map_err(|error| Error::setting("operation", format!("{error}")))?;
        Ok(ModularTask { modulus: self.modulus, operation })
    }

    /// The network's sizes.
    pub(super) fn network(&self) -> ModularTransformer {
        let ModelConfig { d, heads, mlp } = self.model;
        ModularTransformer { modulus: self.modulus, d, heads, mlp }
    }

    /// How it is trained and touched.
    pub(super) fn training(&self) -> Grokking {
        let TrainConfig { lr, weight_decay, beta1, beta2, .. } = self.train;
        let optimiser = Optimiser::Adam { betas: (beta1, beta2), eps: 1e-8, weight_decay, decoupled: true };
        Grokking { optimiser, lr, noise: self.noise }
    }

    /// The same run with seed 0: runs that differ in their seed alone train together.
    pub fn without_seed(&self) -> GrokkingConfig {
        GrokkingConfig { seed: 0, ..self.clone() }
    }

    /// How many pairs are trained on.
    pub fn train_pairs(&self) -> usize {
        (self.share * (self.modulus * self.modulus) as f64) as usize
    }

    /// Bytes that a run needs at least: weights with gradients and moments, and what an epoch computes for every pair.
    pub(super) fn bytes(&self) -> f64 {
        let (p, d, mlp) = (self.modulus as f64, self.model.d as f64, self.model.mlp as f64);
        let weights = d * (2.0 * p + 4.0 * d + 2.0 * mlp);
        4.0 * (4.0 * weights + p * p * (6.0 * d + 2.0 * mlp + 2.0 * p))
    }

    fn validate(&self) -> Result<()> {
        self.task()?.check().map_err(|error| Error::setting("modulus", error.to_string()))?;
        self.network().check()?;
        self.training().optimiser.check()?;
        let pairs = self.modulus * self.modulus;
        if !(1..pairs).contains(&self.train_pairs()) {
            let problem =
                format!("must leave pairs to train on and to test on, but {} of {pairs} does not", self.share);
            return Err(Error::setting("share", problem));
        }
        if !(self.train.lr > 0.0 && self.train.lr.is_finite()) {
            return Err(Error::setting("train.lr", format!("must be a positive number, not {}", self.train.lr)));
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            return Err(Error::setting("noise", format!("must be 0 or more, not {}", self.noise)));
        }
        if !(1..=10_000_000).contains(&self.train.epochs) {
            let problem = format!("must be from 1 to 10000000, not {}", self.train.epochs);
            return Err(Error::setting("train.epochs", problem));
        }
        Ok(())
    }
}

impl Configuration for GrokkingConfig {
    fn resolve(settings: &Settings) -> Result<Self> {
        let mut config: GrokkingConfig = settings.read()?;
        config.operation = config.task()?.operation.to_string(); // without blanks: the same operation is the same run
        config.validate()?;
        Ok(config)
    }
}
