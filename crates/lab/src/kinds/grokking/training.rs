//! Networks of the same settings and different seeds, in lock-step.

use pudica_boolean::memory::available;
use pudica_data::{Pairs, Stream};
use pudica_nn::Device;
use pudica_nn::grokking::{Measures, Replica, Replicas};
use serde_json::{Map, Value};

use super::{GrokkingConfig, GrokkingPoint, KIND, Onsets};
use crate::compute::Machine;
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Line, Lockstep, Lost, Measured, RunStart, Training, Work};
use crate::kinds::Configuration;
use crate::plan::Plan;
use crate::settings::Settings;
use crate::size::{self, Dimension};
use crate::stop::Progress;
use crate::store::RunFolder;
use crate::trained::{Trained, settings_of, weights_of};

/// Seeds trained at once where nobody says otherwise; a network of the paper's size needs about 0.3 GB.
const TOGETHER: usize = 8;

/// Epochs between two looks at what the device has measured.
const PIECE: u64 = 100;

/// What makes runs large.
const DIMENSIONS: [Dimension<GrokkingConfig>; 3] = [
    ("model.d", |config| config.model.d, |config, value| config.model.d = value),
    ("model.mlp", |config| config.model.mlp, |config, value| config.model.mlp = value),
    ("modulus", |config| config.modulus, |config, value| config.modulus = value),
];

struct GrokkingExperiment {
    device: Device,
    together: usize,
}

pub(super) fn open(plan: &Plan, machine: &Machine) -> Result<Box<dyn Experiment>> {
    let compute = plan.runs.first().and_then(|run| run.settings.compute());
    if plan.runs.iter().any(|run| run.settings.compute() != compute) {
        return Err(Error::setting("compute.device", "the runs of one sweep compute on one device"));
    }
    let device = compute.unwrap_or_else(|| KIND.abilities.default_compute()).device()?;
    let together = machine.together.unwrap_or(TOGETHER);
    let (free, at_once) = (available(), together.min(plan.runs.len()));
    for run in plan.runs.iter().filter(|_| device.name() == "cpu") {
        size::check_fits(&run.settings.read()?, &DIMENSIONS, free, |config: &GrokkingConfig| {
            config.bytes() * at_once as f64
        })
        .map_err(|error| if at_once > 1 { Error::Other(format!("{error}; or take --together 1")) } else { error })?;
    }
    Ok(Box::new(GrokkingExperiment { device, together }))
}

impl Experiment for GrokkingExperiment {
    fn lockstep(&self, settings: &Settings) -> Result<Lockstep> {
        let config: GrokkingConfig = settings.read()?;
        Ok(Lockstep { key: config.without_seed().canonical_json(), most: self.together })
    }

    fn work(&self, settings: &Settings) -> Result<Work> {
        let config: GrokkingConfig = settings.read()?;
        let (p, d) = (config.modulus as f64, config.model.d as f64);
        // Every epoch passes through all pairs, forwards and on some of them backwards and with noise.
        let step = p * p * d * (4.0 * d + 2.0 * config.model.mlp as f64 + p);
        Ok(Work { steps: config.train.epochs, step, ..Work::default() })
    }

    fn step_of(&self, _: &Settings, checkpoint: &[u8]) -> Result<u64> {
        Ok(Replicas::epoch_of(checkpoint)?)
    }

    fn begin(&self, runs: &[RunStart]) -> Result<Box<dyn Training + '_>> {
        Ok(Box::new(GrokkingTraining::begin(self, runs)?))
    }
}

/// The network that a run has trained.
pub(super) fn trained(folder: &RunFolder) -> Result<Trained> {
    let config: GrokkingConfig = settings_of(folder)?;
    let network = config.network();
    let weights = network.read_weights(&weights_of(folder)?);
    let weights = weights.map_err(|error| Error::damaged(&folder.weights_path(), error))?;
    Ok(Trained::Modular { network, weights })
}

/// Networks in training.
struct GrokkingTraining<'a> {
    experiment: &'a GrokkingExperiment,
    networks: Replicas,
    runs: Vec<NetworkRun>,
    /// Whether the last epoch was measured.
    complete: bool,
}

struct NetworkRun {
    config: GrokkingConfig,
    /// Every epoch so far.
    points: Vec<GrokkingPoint>,
    /// How many of them were handed out as lines.
    handed_out: usize,
    lost: Option<Lost>,
}

impl<'a> GrokkingTraining<'a> {
    fn begin(experiment: &'a GrokkingExperiment, starts: &[RunStart]) -> Result<Self> {
        let mut runs = Vec::new();
        let mut pairs: Vec<(Pairs, Pairs)> = Vec::new();
        for start in starts {
            let config: GrokkingConfig = start.settings.read()?;
            pairs.push(config.task()?.split(config.share, &mut Stream::new(config.seed, "modular-pairs", 0))?);
            let lines = start.lines.iter().cloned();
            let points: Vec<GrokkingPoint> = lines.map(GrokkingPoint::from_line).collect::<Result<_>>()?;
            runs.push(NetworkRun { config, handed_out: points.len(), points, lost: None });
        }
        let members: Vec<Replica> = starts
            .iter()
            .zip(&runs)
            .zip(&pairs)
            .map(|((start, run), (train, test))| Replica {
                seed: run.config.seed,
                train,
                test,
                checkpoint: start.checkpoint.as_deref(),
            })
            .collect();
        let config = &runs[0].config;
        let networks = Replicas::new(config.network(), config.training(), &members, &experiment.device)?;
        Ok(GrokkingTraining { experiment, networks, runs, complete: false })
    }

    /// Takes in what the device has measured from epoch `first` on.
    fn collect(&mut self, first: u64) -> Result<()> {
        for (epoch, measured) in (first..).zip(self.networks.collect()?) {
            for (run, measures) in self.runs.iter_mut().zip(&measured) {
                run.take_in(epoch, measures);
            }
        }
        Ok(())
    }
}

impl NetworkRun {
    fn take_in(&mut self, epoch: u64, measures: &Measures) {
        let numbers = [measures.train_loss, measures.test_loss, measures.weight_norm];
        if self.lost.is_none() && numbers.iter().any(|value| !value.is_finite()) {
            self.lost = Some(Lost { step: epoch, loss: measures.train_loss });
        }
        // An interrupted run may have logged an epoch beyond its checkpoint: the same numbers, once.
        let known = self.points.last().is_some_and(|point| point.epoch >= epoch);
        if self.lost.is_none() && !known {
            self.points.push(GrokkingPoint::new(epoch, measures));
        }
    }
}

impl Training for GrokkingTraining<'_> {
    fn step(&self) -> u64 {
        self.networks.epoch()
    }

    fn device(&self) -> String {
        self.experiment.device.name().into()
    }

    fn loss(&self, run: usize) -> f64 {
        self.runs[run].points.last().map_or(f64::NAN, |point| point.measures.train_loss)
    }

    fn lost(&self, run: usize) -> Option<Lost> {
        self.runs[run].lost
    }

    fn advance(&mut self, at_most: u64) -> Result<()> {
        let first = self.networks.epoch();
        (0..at_most.min(PIECE)).try_for_each(|_| self.networks.advance())?;
        self.collect(first)
    }

    fn lines(&mut self, _: &Progress) -> Result<Vec<Vec<Line>>> {
        let epoch = self.networks.epoch();
        if epoch == self.runs[0].config.train.epochs && !self.complete {
            self.networks.measure();
            self.collect(epoch)?;
            self.complete = true;
        }
        let mut lines = Vec::new();
        for run in &mut self.runs {
            let new = run.points[run.handed_out..].iter();
            let line = |point: &GrokkingPoint| Ok(Line { step: point.epoch, values: point.values()? });
            lines.push(new.map(line).collect::<Result<_>>()?);
            run.handed_out = run.points.len();
        }
        Ok(lines)
    }

    fn measure(&mut self, _: &Progress) -> Result<Vec<Option<Measured>>> {
        self.runs.iter().map(|run| run.lost.is_none().then(|| run.measured()).transpose()).collect()
    }

    fn checkpoint(&self, run: usize) -> Result<Vec<u8>> {
        Ok(self.networks.checkpoint(run)?)
    }

    fn weights(&self, run: usize) -> Result<Option<Vec<u8>>> {
        Ok(Some(self.networks.weights(run)?.to_bytes()?))
    }
}

impl NetworkRun {
    /// The last epoch's numbers, and when the run memorised, lost its sensitivity and generalised.
    fn measured(&self) -> Result<Measured> {
        let onsets = Onsets::of(&self.points);
        let mut measures = Map::new();
        if let Some(last) = self.points.last() {
            measures = last.values()?;
            let error = last.sensitivity_std_error(self.config.train_pairs());
            measures.insert("sensitivity_std_error".into(), error.into());
        }
        let moments = [
            ("memorised", onsets.memorised),
            ("sensitivity_fall_start", onsets.fall.map(|fall| fall.start)),
            ("sensitivity_fall_half", onsets.fall.map(|fall| fall.half)),
            ("test_rise_start", onsets.rise.map(|rise| rise.start)),
            ("test_rise_half", onsets.rise.map(|rise| rise.half)),
        ];
        measures.extend(moments.map(|(name, epoch)| (name.to_string(), Value::from(epoch))));
        // Whether it generalises is what is asked, not a condition.
        Ok(Measured { converged: true, measures, detail: Map::new() })
    }
}
