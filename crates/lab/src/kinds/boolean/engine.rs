//! What networks are computed on. The choice of engine is made here and nowhere else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;

use pudica_ensemble::{
    Ceilings, Engine, Member, Precision, Shape, ceilings, cpu, gpu, gpu_replicas, gpu_scratchpad,
    gpu_scratchpad_replicas, one_by_one,
};
use pudica_nn::{Device, EncoderDecoderConfig};

use super::size::check_fits_in;
use super::training::BooleanTraining;
use super::{KIND, Rates, RunConfig, architecture, burn_name, fast_encoder, fast_scratchpad, no_tf32};
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::settings::Settings;

/// Trains and measures networks: the paper's encoders on the fast lane, together, and on a GPU in tf32 the paper's scratchpads; other networks
/// on burn, one at a time.
#[derive(Clone, Debug)]
pub struct BooleanExperiment {
    /// At most this many runs in lock-step, instead of as many as suit the device.
    together: Option<usize>,
    /// What all runs compute on where their settings do not say.
    compute: Compute,
    /// How many networks of a shape fit on the GPU: asking it takes a good part of a second, and a plan has hundreds of runs.
    fitting: Arc<Mutex<HashMap<String, usize>>>,
}

impl BooleanExperiment {
    /// On whatever each run's settings say.
    pub fn new(together: Option<usize>) -> BooleanExperiment {
        BooleanExperiment { together, compute: KIND.abilities.default_compute(), fitting: Arc::default() }
    }

    /// On this, where settings do not say.
    pub fn on(self, compute: &Compute) -> BooleanExperiment {
        BooleanExperiment { compute: compute.clone(), ..self }
    }

    /// The most its device does per second, measured now; for a GPU only.
    pub fn ceilings(&self) -> Result<Option<Rates>> {
        if self.compute.device == "cpu" {
            return Ok(None);
        }
        let Ceilings { copy_bytes_per_second, product_flops_per_second } = ceilings(precision(&self.compute))?;
        Ok(Some(Rates { bytes: copy_bytes_per_second, flops: product_flops_per_second }))
    }

    /// So many networks like this one, with seeds 0, 1, ..., for timing.
    pub(super) fn trial_of(&self, config: &RunConfig, replicas: usize) -> Result<BooleanTraining> {
        // What is learnt does not matter for the time, and the labels of another run may not be there yet.
        let runs = (0..replicas as u64).map(|seed| RunConfig { target: "parity".into(), seed, ..config.clone() });
        BooleanTraining::trial(self, runs.collect())
    }

    /// Groups trained side by side: one per core on the CPU, one on a GPU.
    pub(super) fn jobs(&self) -> usize {
        if self.compute.device == "cuda" { 1 } else { available_parallelism().map_or(1, usize::from) }
    }

    /// Refuses a run whose device is not there, or whose network does not fit into the memory that is `free`; nor so many of them at once.
    pub(super) fn check(&self, settings: &Settings, at_once: usize, free: Option<u64>) -> Result<()> {
        let config: RunConfig = settings.read()?;
        let compute = self.compute_of(settings);
        if compute.device == "cpu" {
            check_fits_in(&config, &compute.dtype, 1, free)?;
            check_fits_in(&config, &compute.dtype, at_once, free).map_err(|error| {
                let problem = format!("{at_once} runs are made at a time (--jobs, --together)");
                Error::Other(format!("{problem}: {error}; or make fewer at a time"))
            })?;
        }
        self.most_together(settings).map(|_| ())
    }

    pub(super) fn compute_of(&self, settings: &Settings) -> Compute {
        settings.compute().unwrap_or_else(|| self.compute.clone())
    }

    /// How many runs like this one may train in lock-step.
    pub(super) fn most_together(&self, settings: &Settings) -> Result<usize> {
        let (config, compute) = (settings.read()?, self.compute_of(settings));
        let fitting = match lane(&config, &compute) {
            Lane::Burn => return burn_device(&config, &compute).map(|_| 1),
            // On two cores, 70 runs side by side and in groups of 14 took the same processor time: nothing is gained together.
            Lane::Encoder(_) if compute.device == "cpu" => return Ok(self.together.unwrap_or(1)),
            Lane::Encoder(shape) => {
                let precision = precision(&compute);
                let name = format!("{shape:?} {}", precision.name());
                self.fitting_on_gpu(name, || Ok(gpu_replicas(&shape, precision)?))?
            }
            Lane::Scratchpad(own) => {
                let batch = config.train.batch;
                self.fitting_on_gpu(format!("{own:?} {batch}"), || Ok(gpu_scratchpad_replicas(&own, batch)?))?
            }
        };
        Ok(self.together.map_or(fitting, |most| most.min(fitting)))
    }

    /// How many networks of this name fit, by what is known or `ask` finds out.
    fn fitting_on_gpu(&self, name: String, ask: impl FnOnce() -> Result<usize>) -> Result<usize> {
        let mut known = self.fitting.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(fitting) = known.get(&name) {
            return Ok(*fitting);
        }
        let fitting = ask()?;
        known.insert(name, fitting);
        Ok(fitting)
    }

    /// An engine for runs that train in lock-step, of which `config` is one.
    pub(super) fn engine(
        &self,
        config: &RunConfig,
        compute: &Compute,
        members: Vec<Member>,
    ) -> Result<Box<dyn Engine>> {
        let precision = precision(compute);
        Ok(match lane(config, compute) {
            Lane::Burn => {
                one_by_one(&architecture(config), config.train.batch, members, &burn_device(config, compute)?)?
            }
            Lane::Encoder(shape) if compute.device == "cpu" => cpu(shape, members, precision)?,
            Lane::Encoder(shape) => gpu(shape, members, precision)?,
            Lane::Scratchpad(own) => gpu_scratchpad(&own, config.train.batch, members)?,
        })
    }

    /// What runs without settings of their own compute on.
    pub(super) fn own_compute(&self) -> &Compute {
        &self.compute
    }
}

fn precision(compute: &Compute) -> Precision {
    match compute.dtype.as_str() {
        "tf32" => Precision::Tf32,
        "f64" => Precision::F64,
        _ => Precision::F32,
    }
}

/// What computes a run.
enum Lane {
    /// The engines of the paper's encoder.
    Encoder(Shape),
    /// The GPU's engine of the paper's scratchpad.
    Scratchpad(EncoderDecoderConfig),
    /// burn, one network at a time.
    Burn,
}

fn lane(config: &RunConfig, compute: &Compute) -> Lane {
    if compute.engine == "reference" {
        return Lane::Burn;
    }
    let on_gpu_in_tf32 = compute.device == "cuda" && precision(compute) == Precision::Tf32;
    match (fast_encoder(config), fast_scratchpad(config)) {
        (Some(encoder), _) => Lane::Encoder(Shape { encoder, batch: config.train.batch }),
        (_, Some(own)) if on_gpu_in_tf32 => Lane::Scratchpad(own),
        _ => Lane::Burn,
    }
}

/// Where burn computes: on a GPU only through LibTorch.
fn burn_device(config: &RunConfig, compute: &Compute) -> Result<Device> {
    let what = burn_name(config);
    let device = match compute.device.as_str() {
        "cpu" => Device::cpu(),
        _ => Device::parse("cuda").map_err(|error| {
            let or = if fast_scratchpad(config).is_some() { ", or in tf32 (--dtype tf32)" } else { "" };
            Error::Other(format!("{what} computes on a GPU only through LibTorch{or}; {error}"))
        })?,
    };
    match precision(compute) {
        Precision::F32 => Ok(device),
        Precision::F64 => Ok(device.double()),
        Precision::Tf32 => Err(Error::setting("compute.dtype", no_tf32(config))),
    }
}
