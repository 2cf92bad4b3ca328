//! What networks are computed on. The choice of engine is made here and nowhere else.

use pudica_ensemble::{Ceilings, Engine, Member, Precision, Shape, ceilings, cpu, gpu, gpu_replicas, one_by_one};
use pudica_nn::{Architecture, Device};

use super::architecture;
use crate::config::{ModelKind, RunConfig};
use crate::error::{Error, Result};
use crate::timing::Rates;

/// Trains and measures networks: encoders on the fast lane, together; other networks on burn, one at a time.
#[derive(Clone, Debug)]
pub struct NetworkTrainer {
    place: Place,
    precision: Precision,
    reference: bool,
    together: Option<usize>,
}

/// Where numbers are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Cpu,
    Cuda,
}

impl NetworkTrainer {
    /// On this machine's processor, in f32.
    pub fn cpu() -> NetworkTrainer {
        NetworkTrainer { place: Place::Cpu, precision: Precision::F32, reference: false, together: None }
    }

    /// On the first GPU, in f32.
    pub fn cuda() -> NetworkTrainer {
        NetworkTrainer { place: Place::Cuda, ..NetworkTrainer::cpu() }
    }

    /// In this precision.
    pub fn precision(self, precision: Precision) -> NetworkTrainer {
        NetworkTrainer { precision, ..self }
    }

    /// All networks on burn, by automatic differentiation: slow, and what the fast lane is checked against.
    pub fn reference(self) -> NetworkTrainer {
        NetworkTrainer { reference: true, ..self }
    }

    /// At most this many runs in lock-step, instead of as many as suit the device.
    pub fn together(self, most: usize) -> NetworkTrainer {
        NetworkTrainer { together: Some(most), ..self }
    }

    /// The most its device does a second, measured now; for a GPU only.
    pub fn ceilings(&self) -> Result<Option<Rates>> {
        if self.place == Place::Cpu {
            return Ok(None);
        }
        let Ceilings { copy_bytes_per_second, product_flops_per_second } = ceilings(self.precision)?;
        Ok(Some(Rates { bytes: copy_bytes_per_second, flops: product_flops_per_second }))
    }

    /// How many runs like this one may train in lock-step.
    pub(super) fn most_together(&self, config: &RunConfig) -> Result<usize> {
        let fitting = match (self.shape(config), self.place) {
            (None, _) => return self.burn_device(config).map(|_| 1),
            // On two cores, 70 runs side by side and in groups of 14 took the same processor time: nothing is gained together.
            (Some(_), Place::Cpu) => return Ok(self.together.unwrap_or(1)),
            (Some(shape), Place::Cuda) => gpu_replicas(&shape, self.precision)?,
        };
        Ok(self.together.map_or(fitting, |most| most.min(fitting)))
    }

    /// The shape of a run's network, if it goes on the fast lane.
    fn shape(&self, config: &RunConfig) -> Option<Shape> {
        match architecture(config) {
            Architecture::Encoder(encoder) if !self.reference => Some(Shape { encoder, batch: config.train.batch }),
            _ => None,
        }
    }

    /// An engine for runs of one company, of which `config` is one.
    pub(super) fn engine(&self, config: &RunConfig, members: Vec<Member>) -> Result<Box<dyn Engine>> {
        Ok(match (self.shape(config), self.place) {
            (None, _) => one_by_one(&architecture(config), config.train.batch, members, &self.burn_device(config)?)?,
            (Some(shape), Place::Cpu) => cpu(shape, members, self.precision)?,
            (Some(shape), Place::Cuda) => gpu(shape, members, self.precision)?,
        })
    }

    /// Where burn computes: on a GPU only through LibTorch.
    fn burn_device(&self, config: &RunConfig) -> Result<Device> {
        let what = match config.model.kind {
            ModelKind::Encoder => "the reference network",
            ModelKind::EncoderDecoder => "the encoder-decoder",
        };
        let device = match self.place {
            Place::Cpu => Device::cpu(),
            Place::Cuda => Device::parse("cuda")
                .map_err(|error| Error::Training(format!("{what} computes on a GPU only through LibTorch; {error}")))?,
        };
        match self.precision {
            Precision::F32 => Ok(device),
            Precision::F64 => Ok(device.double()),
            Precision::Tf32 => Err(Error::Training(format!("{what} has no tf32; use --precision f32 or f64"))),
        }
    }
}
