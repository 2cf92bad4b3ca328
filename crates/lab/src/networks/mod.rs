//! The real trainer: networks of `pudica_nn` on the engines of `pudica_ensemble`, measured by `pudica_probe`.

mod engine;
mod heeding;
mod measure;
mod target;
mod training;

use std::path::Path;

use pudica_nn::{AdamWConfig, Architecture, Device, EncoderConfig, EncoderDecoderConfig, Network, TrainingState};

use crate::config::{Embed, ModelKind, RunConfig};
use crate::error::{Error, Result};
use crate::trainer::{Start, Trainer, Training};

pub use engine::NetworkTrainer;
pub use pudica_ensemble::Precision;

impl Trainer for NetworkTrainer {
    fn company(&self, config: &RunConfig) -> Result<usize> {
        self.most_together(config)
    }

    fn step_of(&self, config: &RunConfig, checkpoint: &[u8]) -> Result<u64> {
        Ok(TrainingState::from_bytes(&architecture(config), checkpoint)?.step)
    }

    fn begin(&self, runs: &[Start]) -> Result<Box<dyn Training>> {
        Ok(Box::new(training::NetworkTraining::begin(self, runs)?))
    }
}

/// The network a run's settings describe.
pub fn architecture(config: &RunConfig) -> Architecture {
    let embed = match config.model.embed {
        Embed::Concat => pudica_nn::Embed::Concat,
        Embed::Add => pudica_nn::Embed::Add,
    };
    let (n, d, layers, heads, ff) = (config.n, config.model.d, config.model.layers, config.model.heads, config.ff());
    match config.model.kind {
        ModelKind::Encoder => {
            let same_init = config.model.same_init;
            Architecture::Encoder(EncoderConfig { n, d, layers, heads, ff, embed, same_init })
        }
        ModelKind::EncoderDecoder => {
            Architecture::EncoderDecoder(EncoderDecoderConfig { n, d, layers, heads, ff, embed })
        }
    }
}

fn adamw(config: &RunConfig) -> AdamWConfig {
    let train = &config.train;
    AdamWConfig { lr: train.lr, betas: (train.beta1, train.beta2), eps: train.eps, weight_decay: train.weight_decay }
}

/// The network a finished run has trained, on this machine's processor.
fn trained(config: &RunConfig, weights: &Path) -> Result<Network> {
    let architecture = architecture(config);
    let bytes = std::fs::read(weights).map_err(Error::io("read", weights))?;
    let weights = architecture.empty_weights()?.from_bytes(&bytes).map_err(|error| Error::damaged(weights, error))?;
    Ok(Network::new(&architecture, weights, &Device::cpu())?)
}
