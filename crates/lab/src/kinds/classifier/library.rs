//! The data sets of a plan, each read once, and how fast its networks are on this machine.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use pudica_boolean::memory::available;
use pudica_data::Split;
use pudica_nn::Device;
use pudica_nn::classifier::{Classifier, Learner, Model};
use serde_json::{Map, Value};

use super::KIND;
use super::config::{ClassifierConfig, DataConfig};
use super::dataset::Dataset;
use super::images::ImageDataset;
use super::schedule::{Passes, Schedule};
use super::size::check_fits;
use super::texts::TextDataset;
use super::training::ClassifierTraining;
use crate::compute::Machine;
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Lockstep, RunStart, Training, Work};
use crate::kinds::Configuration;
use crate::plan::Plan;
use crate::settings::Settings;

/// Inputs of the forward pass that tells how fast a network is here.
const TRIAL: usize = 16;

/// Classes named in a notice.
const SHOWN_CLASSES: usize = 10;

/// A data set of either kind.
enum Loaded {
    Images(Box<ImageDataset>),
    Texts(TextDataset),
}

/// Does something with a data set, whichever kind it is.
macro_rules! with {
    ($loaded:expr, $dataset:ident => $what:expr) => {
        match $loaded {
            Loaded::Images(dataset) => {
                let $dataset = dataset.as_ref();
                $what
            }
            Loaded::Texts($dataset) => $what,
        }
    };
}

/// What decides the data of a run.
type Key = (DataConfig, Option<usize>);

fn key(config: &ClassifierConfig) -> Key {
    // Texts are cut at the network's longest length.
    (config.data.clone(), config.model.kind.reads_text().then_some(config.model.length))
}

/// Classifiers with their data, on one device.
struct ClassifierExperiment {
    device: Device,
    sets: Vec<(Key, Loaded)>,
    /// Seconds per forward pass of one input, by network.
    paces: HashMap<String, f64>,
}

/// Reads all data, tries every network on it, and refuses what cannot be made to its last measure.
pub(super) fn open(plan: &Plan, machine: &Machine) -> Result<Box<dyn Experiment>> {
    let compute = plan.runs.first().and_then(|run| run.settings.compute());
    let device = compute.clone().unwrap_or_else(|| KIND.abilities.default_compute()).device()?;
    let mut experiment = ClassifierExperiment { device, sets: Vec::new(), paces: HashMap::new() };
    let free = available();
    for run in &plan.runs {
        if run.settings.compute() != compute {
            return Err(Error::setting("compute.device", "classifiers of one sweep compute on one device"));
        }
        let config: ClassifierConfig = run.settings.read()?;
        experiment.load(&config, machine.data.as_deref())?;
        with!(experiment.data_of(&config)?, dataset => {
            check_fits(&config, dataset, &experiment.device, free)?;
            dataset.check(&config)
        })?;
        experiment.find_pace(&config)?;
    }
    Ok(Box::new(experiment))
}

impl ClassifierExperiment {
    fn load(&mut self, config: &ClassifierConfig, data: Option<&Path>) -> Result<()> {
        let key = key(config);
        if self.sets.iter().any(|(known, _)| *known == key) {
            return Ok(());
        }
        let loaded = match key.1 {
            None => Loaded::Images(Box::new(ImageDataset::load(&key.0, data)?)),
            Some(length) => Loaded::Texts(TextDataset::load(&key.0, length, data)?),
        };
        self.sets.push((key, loaded));
        Ok(())
    }

    fn data_of(&self, config: &ClassifierConfig) -> Result<&Loaded> {
        let key = key(config);
        let found = self.sets.iter().find(|(known, _)| *known == key).map(|(_, loaded)| loaded);
        found.ok_or_else(|| Error::setting("data.name", "was not read; it is not of this plan"))
    }

    fn find_pace(&mut self, config: &ClassifierConfig) -> Result<()> {
        let name = network_name(config);
        if !self.paces.contains_key(&name) {
            let seconds = with!(self.data_of(config)?, dataset => seconds_per_pass(config, dataset, &self.device))?;
            self.paces.insert(name, seconds);
        }
        Ok(())
    }

    fn pace(&self, config: &ClassifierConfig) -> f64 {
        self.paces.get(&network_name(config)).copied().unwrap_or(1.0)
    }
}

/// What decides how fast a network is.
fn network_name(config: &ClassifierConfig) -> String {
    ClassifierConfig { model: config.model.clone(), data: config.data.clone(), ..ClassifierConfig::default() }
        .canonical_json()
}

fn seconds_per_pass<D: Dataset>(config: &ClassifierConfig, dataset: &D, device: &Device) -> Result<f64> {
    let network = dataset.network(config)?;
    let model = Model::new(&network, &network.initial_weights(0)?, &network.initial_buffers(), device)?;
    let rows: Vec<usize> = (0..dataset.count(Split::Train).min(TRIAL)).collect();
    let (input, _) = dataset.batch(Split::Train, &rows);
    model.predict(&input)?; // starts the device up
    let start = Instant::now();
    model.predict(&input)?;
    Ok(start.elapsed().as_secs_f64() / rows.len() as f64)
}

/// What the user should know about a data set: what is missing of a known one, what was found of the user's own.
fn notices_of<D: Dataset>(data: &DataConfig, dataset: &D) -> Vec<String> {
    let name = &data.name;
    let ((train, train_published), (test, test_published)) = (dataset.found(Split::Train), dataset.found(Split::Test));
    if let Some(classes) = dataset.own_classes() {
        let how = if data.test_fraction > 0.0 { ", divided by data.seed" } else { "" };
        let shown: Vec<&str> = classes.iter().take(SHOWN_CLASSES).map(String::as_str).collect();
        let more = if classes.len() > SHOWN_CLASSES { ", ..." } else { "" };
        let names = format!("{}{more}", shown.join(", "));
        return vec![format!(
            "{name}: {train} training and {test} test inputs{how}, in {} classes: {names}",
            classes.len()
        )];
    }
    let parts = [("training", train, train_published), ("test", test, test_published)].into_iter();
    let incomplete =
        parts.filter_map(|(part, there, all)| all.filter(|all| there < *all).map(|all| (part, there, all)));
    incomplete.map(|(part, there, all)| format!("{name}: {there} of {all} published {part} inputs are there")).collect()
}

impl Experiment for ClassifierExperiment {
    fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        for ((data, _), loaded) in &self.sets {
            notices.extend(with!(loaded, dataset => notices_of(data, dataset)));
        }
        notices
    }

    fn lockstep(&self, settings: &Settings) -> Result<Lockstep> {
        Ok(Lockstep { key: network_name(&settings.read()?), most: 1 })
    }

    fn seconds_per_work(&self) -> Option<f64> {
        Some(1.0)
    }

    fn work(&self, settings: &Settings) -> Result<Work> {
        let config: ClassifierConfig = settings.read()?;
        let pace = self.pace(&config);
        with!(self.data_of(&config)?, dataset => {
            let (schedule, passes) = (Schedule::of(&config, dataset), Passes::of(&config, dataset));
            Ok(Work {
                steps: schedule.steps,
                step: pace * passes.step,
                line: pace * passes.evaluation,
                line_every: schedule.steps_per_epoch.saturating_mul(config.measure.every),
                line_at_start: config.measure.start,
                measure: pace * passes.end,
            })
        })
    }

    fn data(&self, settings: &Settings) -> Option<Map<String, Value>> {
        let config: ClassifierConfig = settings.read().ok()?;
        Some(with!(self.data_of(&config).ok()?, dataset => dataset.describe()))
    }

    fn step_of(&self, settings: &Settings, checkpoint: &[u8]) -> Result<u64> {
        let config: ClassifierConfig = settings.read()?;
        let optimiser = config.train.optimiser()?;
        Ok(with!(self.data_of(&config)?, dataset => {
            Learner::resume(&dataset.network(&config)?, checkpoint, optimiser, config.seed, &self.device)?.steps()
        }))
    }

    fn begin(&self, runs: &[RunStart]) -> Result<Box<dyn Training + '_>> {
        let [start] = runs else { return Err(Error::Other("classifiers train one at a time".into())) };
        let config: ClassifierConfig = start.settings.read()?;
        let pace = self.pace(&config);
        Ok(with!(self.data_of(&config)?, dataset => {
            Box::new(ClassifierTraining::begin(config, dataset, &self.device, pace, start)?)
        }))
    }
}
