//! Kind `boolean`: networks that learn Boolean functions, on the engines of `pudica_ensemble`, measured by `pudica_probe`.

mod config;
mod constant;
mod engine;
mod interruptible;
mod lengths;
mod lockstep;
mod measure;
mod size;
mod start;
mod target;
mod timing;
mod training;
mod unseen;
mod validate;
mod volume;
mod work;

use std::path::Path;

use pudica_boolean::TruthTable;
use pudica_boolean::memory::available;
use pudica_boolean::plain;
use pudica_ensemble::{SCRATCHPADS_ON_GPU, has_scratchpad_engine};
use pudica_nn::{
    AdamWConfig, Architecture, Cell, Device, EncoderConfig, EncoderDecoderConfig, MlpConfig, Network, RecurrentConfig,
    StateSpaceConfig, TrainingState, TransformerConfig, Variant,
};

use crate::compute::{Abilities, Machine};
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Lockstep, RunStart, Teacher, Training, Work};
use crate::kinds::{Configuration, Implied, Kind, SettingsOf};
use crate::plan::Plan;
use crate::settings::Settings;
use crate::store::RunFolder;
use crate::trained::{Trained, check_sizes};
use validate::LONGEST_TABLE;

pub use config::{
    CutAt, Embed, EvalConfig, MeasureConfig, ModelConfig, ModelKind, RunConfig, TrackConfig, TrainConfig,
};
pub use constant::constant_loss;
pub use engine::BooleanExperiment;
pub use pudica_ensemble::Precision;
pub use pudica_theory::constructions::Construction;
pub use size::check_fits;
pub use timing::{Rates, Timing, time};
pub use validate::TargetName;

/// The kind.
pub static KIND: Kind = Kind {
    name: "boolean",
    about: "networks that learn Boolean functions",
    abilities: Abilities {
        devices: &["cpu", "cuda"],
        dtypes: &["f32", "tf32", "f64"],
        engines: &["standard", "reference"],
        data: false,
        jobs: true,
        together: true,
    },
    figures: "runs",
    naming: &["target", "n", "seed"],
    headline: &["eval_loss", "sharpness"],
    measures: &[
        "eval_loss",
        "eval_accuracy",
        "output_std",
        "target_std",
        "sharpness",
        "output_shift",
        "set_sharpness",
        "blowup",
        "blowup_*",
        "param_norm",
        "average_sensitivity",
        "average_sensitivity_real",
        "mean_degree",
        "degree_one",
        "degree_sum",
        "sensitivity_min",
        "sensitivity_max",
        "noisy_sensitivity_*",
        "unseen_loss",
        "unseen_accuracy",
        "from_target",
        "from_interpolator",
        "toward_target",
        "loss_at_*",
        "accuracy_at_*",
        "average_sensitivity_at_*",
        "decode_accuracy",
        "train_loss",
        "train_accuracy",
    ],
    settings: SettingsOf { implied, resolve, ..SettingsOf::of::<RunConfig>() },
    teacher,
    trained: |folder, _| {
        let config = config_of_run(folder)?;
        Ok(Trained::Bits { network: Box::new(trained(&config, &folder.weights_path())?), n: config.n })
    },
    open,
};

/// Tables and expressions have a length of their own.
fn implied(settings: &Settings) -> Result<Implied> {
    let n = TargetName::parse(&settings.text("target"))?.own_n()?;
    Ok(n.map(|n| ("n", n.into())).into_iter().collect())
}

fn resolve(settings: &Settings) -> Result<Settings> {
    let config = RunConfig::resolve(settings)?;
    let resolved = config.settings();
    let Some(compute) = settings.compute() else { return Ok(resolved) };
    let (fast, name) = (fast_encoder(&config).is_some(), burn_name(&config));
    let has_tf32 = fast || fast_scratchpad(&config).is_some();
    let refuse = |key: &str, problem: &str| Err(Error::setting(key, problem));
    match (compute.dtype.as_str(), compute.engine.as_str()) {
        ("tf32", "reference") => refuse("compute.dtype", "the reference networks have no tf32; use f32 or f64"),
        ("tf32", _) if !has_tf32 => refuse("compute.dtype", &no_tf32(&config)),
        (_, "reference") if !fast => {
            refuse("compute.engine", &format!("{name} has no other engine than the reference; leave --reference out"))
        }
        _ => Ok(resolved),
    }
}

fn teacher(settings: &Settings) -> Option<String> {
    match TargetName::parse(&settings.text("target")) {
        Ok(TargetName::Run(id)) => Some(id),
        _ => None,
    }
}

fn open(plan: &Plan, machine: &Machine) -> Result<Box<dyn Experiment>> {
    let compute = plan.runs.first().and_then(|run| run.settings.compute());
    let compute = compute.unwrap_or_else(|| KIND.abilities.default_compute());
    let experiment = BooleanExperiment::new(machine.together).on(&compute);
    // A device that is not there, and a network that does not fit, are told before anything is written.
    let (runs, free) = (plan.runs.len().max(1), available());
    let jobs = machine.jobs.unwrap_or_else(|| experiment.jobs()).min(runs);
    let at_once = jobs.saturating_mul(machine.together.unwrap_or(1)).min(runs);
    for run in &plan.runs {
        experiment.check(&run.settings, at_once, free)?;
    }
    Ok(Box::new(experiment))
}

impl Experiment for BooleanExperiment {
    fn default_jobs(&self) -> usize {
        self.jobs()
    }

    fn lockstep(&self, settings: &Settings) -> Result<Lockstep> {
        let (key, most) = (lockstep::key(settings)?, self.most_together(settings)?);
        Ok(Lockstep { key, most })
    }

    fn work(&self, settings: &Settings) -> Result<Work> {
        Ok(work::work(&settings.read()?))
    }

    fn step_of(&self, settings: &Settings, checkpoint: &[u8]) -> Result<u64> {
        Ok(TrainingState::from_bytes(&architecture(&settings.read()?), checkpoint)?.step)
    }

    fn refuse_teacher(&self, teacher: &Teacher) -> Option<String> {
        let settings = &teacher.settings;
        let on_set = settings.number("train.set_size") > 0.0
            || ![config::NONE, ""].contains(&settings.text("train.unseen").as_str());
        let fits = teacher.summary.measure("train_accuracy") == Some(1.0);
        (on_set && !fits).then(|| "does not fit its training set exactly".into())
    }

    fn begin(&self, runs: &[RunStart]) -> Result<Box<dyn Training + '_>> {
        Ok(Box::new(training::BooleanTraining::begin(self, runs)?))
    }

    fn trial(&self, settings: &Settings, replicas: usize) -> Result<Box<dyn Training + '_>> {
        let compute = settings.compute().unwrap_or_else(|| KIND.abilities.default_compute());
        Ok(Box::new(self.clone().on(&compute).trial_of(&settings.read()?, replicas)?))
    }
}

/// The network a run's settings describe: the paper's encoder, which has engines of its own, or one that burn computes.
pub fn architecture(config: &RunConfig) -> Architecture {
    let model = &config.model;
    let embed = match model.embed {
        Embed::Concat => pudica_nn::Embed::Concat,
        Embed::Add => pudica_nn::Embed::Add,
    };
    let (n, d, layers, heads, ff) = (config.n, model.d, model.layers, model.heads, config.ff());
    let (same_init, read) = (model.same_init, model.read);
    let variant = Variant { norm: model.norm, activation: model.activation, read };
    match model.kind {
        ModelKind::Encoder => {
            let encoder = EncoderConfig { n, d, layers, heads, ff, embed, same_init };
            let (position, span, positions) = (model.position, model.attention, config.positions());
            let own = TransformerConfig { encoder, variant, position, positions, span };
            if own.is_plain() { Architecture::Encoder(own.encoder) } else { Architecture::Transformer(own) }
        }
        ModelKind::EncoderDecoder => {
            Architecture::EncoderDecoder(EncoderDecoderConfig { n, d, layers, heads, ff, embed })
        }
        ModelKind::Mlp => Architecture::Mlp(MlpConfig { n, d, layers, activation: model.activation }),
        ModelKind::Lstm => Architecture::Recurrent(RecurrentConfig { cell: Cell::Lstm, n, d, layers, read }),
        ModelKind::Gru => Architecture::Recurrent(RecurrentConfig { cell: Cell::Gru, n, d, layers, read }),
        ModelKind::Ssm => {
            let eigenvalues = model.eigenvalues;
            Architecture::StateSpace(StateSpaceConfig { n, d, layers, ff, eigenvalues, same_init, variant })
        }
    }
}

/// The paper's encoder on strings of one length, which has engines of its own: the fast lane.
fn fast_encoder(config: &RunConfig) -> Option<EncoderConfig> {
    match architecture(config) {
        Architecture::Encoder(encoder) if !config.has_other_lengths() => Some(encoder),
        _ => None,
    }
}

/// The paper's scratchpad, which has an engine of its own on a GPU in tf32.
fn fast_scratchpad(config: &RunConfig) -> Option<EncoderDecoderConfig> {
    match architecture(config) {
        Architecture::EncoderDecoder(own) if !config.has_other_lengths() && config.train.set_size == 0 => {
            has_scratchpad_engine(&own).then_some(own)
        }
        _ => None,
    }
}

/// Why a run cannot be computed in tf32, and what to do.
fn no_tf32(config: &RunConfig) -> String {
    let name = burn_name(config);
    match config.model.kind {
        ModelKind::EncoderDecoder => {
            format!("{name} has tf32 only as in the paper: {SCRATCHPADS_ON_GPU}; use f32 or f64")
        }
        _ => format!("{name} has no tf32; use f32 or f64"),
    }
}

/// What sentences call a run's network where burn computes it.
fn burn_name(config: &RunConfig) -> &'static str {
    match architecture(config) {
        Architecture::Encoder(_) if config.has_other_lengths() => "an encoder that meets several lengths",
        Architecture::Encoder(_) => "the reference network",
        Architecture::Transformer(_) => "this variant of the encoder",
        _ => config.model.kind.name(),
    }
}

fn adamw(config: &RunConfig) -> AdamWConfig {
    let train = &config.train;
    AdamWConfig { lr: train.lr, betas: (train.beta1, train.beta2), eps: train.eps, weight_decay: train.weight_decay }
}

/// The settings of the run in this folder.
pub fn config_of_run(folder: &RunFolder) -> Result<RunConfig> {
    let path = folder.path();
    let settings = folder.settings()?.ok_or_else(|| {
        let problem = "is not a run's folder: it has no config.json";
        Error::Folder { path: path.into(), problem: problem.into() }
    })?;
    check_sizes(folder, &settings)?;
    settings.read().map_err(|error| Error::Folder {
        path: path.join("config.json"),
        problem: format!("is not a run's configuration, of a network that learns a Boolean function ({error})"),
    })
}

/// The function that the network of a finished run computes: 1 where its answer is above 1/2.
pub fn function_of_run(folder: &RunFolder) -> Result<TruthTable> {
    let config = config_of_run(folder)?;
    if config.n > LONGEST_TABLE {
        let problem = format!("a network's table is computed up to n = {LONGEST_TABLE}, but its n = {}", config.n);
        return Err(Error::Folder { path: folder.path().into(), problem });
    }
    Ok(pudica_probe::learnt_table(&trained(&config, &folder.weights_path())?, config.n)?)
}

/// The network a finished run has trained, on this machine's processor.
fn trained(config: &RunConfig, weights: &Path) -> Result<Network> {
    let architecture = architecture(config);
    let bytes = plain::bytes(weights).map_err(Error::io("read", weights))?;
    let weights = architecture.read_weights(&bytes).map_err(|error| Error::damaged(weights, error))?;
    Ok(Network::new(&architecture, weights, &Device::cpu())?)
}
