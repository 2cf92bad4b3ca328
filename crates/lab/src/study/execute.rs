//! Makes the runs of a study, one after the other, each on the whole machine; running again continues.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use pudica_data::Split;
use pudica_nn::Device;
use pudica_nn::classifier::{Classifier, Model};

use super::StudyPlan;
use super::config::{DataConfig, StudyConfig};
use super::images::ImageMaterial;
use super::material::{Material, Watch};
use super::run::{Assignment, Course, Passes, make_run};
use super::texts::TextMaterial;
use crate::config::Configuration;
use crate::error::Result;
use crate::events::{Event, Observer, Tally};
use crate::plan::PlannedRun;
use crate::store::{Outcome, RunFolder, RunSummary, SweepFolder};
use crate::trainer::Stop;

/// Dropout draws from the device's one generator, so a process trains one network at a time, whatever its threads do.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Inputs of the forward pass that tells how fast a network is here.
const TRIAL: usize = 16;

/// Where a study computes, and where its data lies.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// `cpu`, `cuda` or `torch`.
    pub device: &'a str,
    /// The folder with the data sets.
    pub data: Option<&'a Path>,
}

/// A data set of either kind.
enum Loaded {
    Images(Box<ImageMaterial>),
    Texts(TextMaterial),
}

/// Does something with a data set, whichever kind it is.
macro_rules! with {
    ($loaded:expr, $material:ident => $what:expr) => {
        match $loaded {
            Loaded::Images(material) => {
                let $material = material.as_ref();
                $what
            }
            Loaded::Texts($material) => $what,
        }
    };
}

/// All data sets of a plan, each read once.
struct Library {
    sets: Vec<(Key, Loaded)>,
}

/// What decides the material of a run.
type Key = (DataConfig, Option<usize>);

fn key(config: &StudyConfig) -> Key {
    // Texts are cut at the network's longest length.
    (config.data.clone(), config.model.kind.reads_text().then_some(config.model.length))
}

impl Library {
    fn load(plan: &StudyPlan, data: Option<&Path>) -> Result<Library> {
        let mut sets: Vec<(Key, Loaded)> = Vec::new();
        for run in &plan.runs {
            let key = key(&run.config);
            if sets.iter().any(|(known, _)| *known == key) {
                continue;
            }
            let loaded = match key.1 {
                None => Loaded::Images(Box::new(ImageMaterial::load(&key.0, data)?)),
                Some(length) => Loaded::Texts(TextMaterial::load(&key.0, length, data)?),
            };
            sets.push((key, loaded));
        }
        Ok(Library { sets })
    }

    fn of(&self, config: &StudyConfig) -> &Loaded {
        let key = key(config);
        let found = self.sets.iter().find(|(known, _)| *known == key);
        &found.expect("the data of every run of the plan is read").1
    }
}

/// What a run of a plan asks of this machine.
#[derive(Clone, Debug)]
pub struct RunEstimate {
    /// How a person names the run.
    pub label: String,
    /// Training steps.
    pub steps: u64,
    /// Seconds it would take, judged from one forward pass.
    pub seconds: f64,
}

/// How long the runs of a plan would take here.
pub fn estimate_study(plan: &StudyPlan, place: &Place) -> Result<Vec<RunEstimate>> {
    let device = Device::parse(place.device)?;
    let library = Library::load(plan, place.data)?;
    let mut paces = Paces::default();
    let of = |run: &PlannedRun<StudyConfig>| {
        let config = &run.config;
        with!(library.of(config), material => Ok(RunEstimate {
            label: config.label(),
            steps: Course::of(config, material).steps,
            seconds: Passes::of(config, material).total * paces.seconds(config, material, &device)?,
        }))
    };
    plan.runs.iter().map(of).collect()
}

/// Seconds of a pass, measured once for each network.
#[derive(Default)]
struct Paces {
    known: HashMap<String, f64>,
}

impl Paces {
    fn seconds<M: Material>(&mut self, config: &StudyConfig, material: &M, device: &Device) -> Result<f64> {
        let network = StudyConfig { model: config.model.clone(), data: config.data.clone(), ..StudyConfig::default() };
        let name = network.canonical_json();
        if let Some(seconds) = self.known.get(&name) {
            return Ok(*seconds);
        }
        let network = material.network(config)?;
        let model = Model::new(&network, &network.initial_weights(0)?, &network.initial_buffers(), device)?;
        let rows: Vec<usize> = (0..material.count(Split::Train).min(TRIAL)).collect();
        let (input, _) = material.batch(Split::Train, &rows);
        model.predict(&input)?; // starts the device up
        let start = Instant::now();
        model.predict(&input)?;
        let seconds = start.elapsed().as_secs_f64() / rows.len() as f64;
        self.known.insert(name, seconds);
        Ok(seconds)
    }
}

/// Makes all runs of `plan` in `folder`. Runs that have ended are not repeated, an interrupted one continues and ends with the same
/// numbers; a run whose loss is lost is marked failed and the study goes on. All data is read before anything is written.
pub fn execute_study(
    plan: &StudyPlan,
    folder: &Path,
    place: &Place,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Tally> {
    let device = Device::parse(place.device)?;
    let library = Library::load(plan, place.data)?;
    for run in &plan.runs {
        with!(library.of(&run.config), material => material.check(&run.config))?;
    }
    let folder = SweepFolder::claim(folder, plan)?;
    let mut study = Running { plan, device, observer, start: Instant::now(), done: Cell::new(0.0), work: Vec::new() };
    let mut tally = Tally { runs: plan.runs.len(), ..Tally::default() };
    let (mut finished, mut total_steps) = (0, 0);
    let mut paces = Paces::default();
    for run in &plan.runs {
        let ended = folder.run(&run.id).summary()?.is_some();
        finished += usize::from(ended);
        let (steps, seconds) = with!(library.of(&run.config), material => {
            if ended {
                folder.run(&run.id).check_data(&material.describe())?;
            }
            let pace = if ended { 0.0 } else { paces.seconds(&run.config, material, &study.device)? };
            (Course::of(&run.config, material).steps, pace * Passes::of(&run.config, material).total)
        });
        total_steps += steps;
        study.work.push(Work { steps, seconds });
    }
    let (path, runs) = (folder.path().to_path_buf(), plan.runs.len());
    observer.notice(&Event::SweepStarted { folder: path, runs, finished, total_steps });
    for ((data, _), loaded) in &library.sets {
        for (split, there, published) in with!(loaded, material => material.incomplete()) {
            let text = format!("{}: {there} of {published} published {split} inputs are there", data.name);
            observer.notice(&Event::Notice { text });
        }
    }
    for (index, run) in plan.runs.iter().enumerate() {
        let run_folder = folder.run(&run.id);
        let summary = match run_folder.summary()? {
            Some(summary) => summary,
            None if stop.requested() => {
                tally.remaining += 1;
                continue;
            }
            None => {
                let made = with!(library.of(&run.config), material => study.make(index, run_folder, material, stop));
                match made {
                    Err(crate::Error::Stopped) => {
                        tally.remaining += 1;
                        continue;
                    }
                    made => made?,
                }
            }
        };
        match summary.outcome {
            Outcome::Finished => tally.converged += 1,
            Outcome::Failed => tally.failed += 1,
            Outcome::Skipped => tally.skipped += 1,
        }
    }
    (tally.stopped, tally.seconds) = (stop.requested(), study.start.elapsed().as_secs_f64());
    observer.notice(&Event::SweepEnded(tally.clone()));
    Ok(tally)
}

/// A study while it is made.
struct Running<'a> {
    plan: &'a StudyPlan,
    device: Device,
    observer: &'a dyn Observer,
    start: Instant,
    /// Seconds of work, as judged beforehand, that runs made in this call had.
    done: Cell<f64>,
    /// Of each run.
    work: Vec<Work>,
}

/// What a run asks, as judged beforehand; 0 seconds where it had ended before.
struct Work {
    steps: u64,
    seconds: f64,
}

impl Running<'_> {
    fn make<M: Material>(&self, index: usize, folder: RunFolder, material: &M, stop: &Stop) -> Result<RunSummary> {
        let run = &self.plan.runs[index];
        let passes = Passes::of(&run.config, material).total;
        let work = &self.work[index];
        // The part of its work that was done in an earlier call counts neither as done nor as left.
        let before = Cell::new(0.0);
        let begun = |from_step: u64, passes_before: f64| {
            before.set(work.seconds * passes_before / passes);
            self.observer.notice(&Event::RunStarted { id: run.id.clone(), label: run.config.label(), from_step });
        };
        let tell = |made: f64, step: u64, loss: f64| {
            let part = (work.seconds * made / passes).min(work.seconds - before.get());
            let (done, seconds_left) = self.how_far(part, before.get());
            let (id, label, steps) = (run.id.clone(), run.config.label(), work.steps);
            self.observer.notice(&Event::Progress { id, label, step, steps, loss, done, seconds_left });
        };
        let assignment = Assignment { config: &run.config, material, folder, device: &self.device };
        // Whoever panicked with it has left nothing behind that the next run would see: every step seeds the generator anew.
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let summary = make_run(&assignment, &Watch::new(stop, &tell), &begun)?;
        self.done.set(self.done.get() + work.seconds - before.get());
        let (done, seconds_left) = self.how_far(0.0, before.get());
        self.observer.notice(&Event::RunEnded {
            id: run.id.clone(),
            label: run.config.label(),
            outcome: summary.outcome,
            converged: summary.converged,
            measures: summary.headline(&["train_accuracy", "test_accuracy", "sensitivity"]),
            problem: summary.problem.clone(),
            seconds: summary.seconds,
            ended: index + 1,
            runs: self.plan.runs.len(),
            done,
            seconds_left,
        });
        Ok(summary)
    }

    /// The part of this call's work that is done, and the seconds left at the pace so far.
    fn how_far(&self, in_progress: f64, before: f64) -> (f64, Option<f64>) {
        let all = self.work.iter().map(|work| work.seconds).sum::<f64>() - before;
        let done = ((self.done.get() + in_progress) / all.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let elapsed = self.start.elapsed().as_secs_f64();
        (done, (done > 0.0).then(|| elapsed * (1.0 - done) / done))
    }
}
