//! The real trainer: networks of `pudica_nn`, measured by `pudica_probe`.

mod measure;
mod target;

use std::path::Path;

use pudica_data::Task;
use pudica_nn::{AdamWConfig, Architecture, Device, EncoderConfig, EncoderDecoderConfig, Network, NnError};
use serde_json::{Map, Value};

use crate::config::{Embed, ModelKind, RunConfig};
use crate::error::{Error, Result};
use crate::trainer::{Measured, Stop, Teacher, Trainer, Training};

/// Trains networks on one device.
#[derive(Clone, Debug)]
pub struct NetworkTrainer {
    device: Device,
}

impl NetworkTrainer {
    /// Computes on the device of this name: `cpu` or `cuda`.
    pub fn on(device: &str) -> Result<NetworkTrainer> {
        Ok(NetworkTrainer { device: Device::parse(device)? })
    }
}

impl Trainer for NetworkTrainer {
    fn begin(
        &self,
        config: &RunConfig,
        teacher: Option<&Teacher>,
        checkpoint: Option<&Path>,
    ) -> Result<Box<dyn Training>> {
        let task = target::task(config, teacher, &self.device)?;
        let architecture = architecture(config);
        let adamw = adamw(config);
        let trainer = match checkpoint {
            None => {
                let weights = architecture.initial_weights(config.seed)?;
                pudica_nn::Trainer::new(&architecture, weights, adamw, &self.device)?
            }
            Some(path) => {
                let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
                pudica_nn::Trainer::resume(&architecture, &bytes, adamw, &self.device)
                    .map_err(|error| Error::damaged(path, error))?
            }
        };
        Ok(Box::new(NetworkTraining { config: config.clone(), task, trainer }))
    }

    fn device(&self) -> String {
        self.device.name().into()
    }
}

/// A network in training.
struct NetworkTraining {
    config: RunConfig,
    task: Task,
    trainer: pudica_nn::Trainer,
}

impl Training for NetworkTraining {
    fn step(&self) -> u64 {
        self.trainer.steps()
    }

    fn advance(&mut self) -> Result<f64> {
        // A training set smaller than the batch is trained on whole.
        let set = self.task.training_set().map_or(usize::MAX, |set| set.strings().rows());
        let rows = self.config.train.batch.min(set);
        let batch = self.task.train_batch(rows, self.config.seed, self.trainer.steps())?;
        match self.trainer.step(&batch.strings, &batch.labels) {
            Ok(loss) => Ok(loss.into()),
            Err(NnError::Diverged { loss, .. }) => Ok(loss.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn track(&mut self, stop: &Stop) -> Result<Map<String, Value>> {
        measure::track(&self.config, &self.task, self.trainer.network()?, self.trainer.steps(), stop)
    }

    fn measure(&mut self, stop: &Stop) -> Result<Measured> {
        measure::after_training(&self.config, &self.task, self.trainer.network()?, stop)
    }

    fn save_checkpoint(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.trainer.checkpoint()?).map_err(Error::io("write", path))
    }

    fn save_weights(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.trainer.weights().to_bytes()?).map_err(Error::io("write", path))
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

/// The network a finished run has trained.
fn trained(config: &RunConfig, weights: &Path, device: &Device) -> Result<Network> {
    let architecture = architecture(config);
    let bytes = std::fs::read(weights).map_err(Error::io("read", weights))?;
    let weights = architecture.empty_weights()?.from_bytes(&bytes).map_err(|error| Error::damaged(weights, error))?;
    Ok(Network::new(&architecture, weights, device)?)
}
