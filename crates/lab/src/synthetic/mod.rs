//! The experiment `vasudeva/synthetic`: one attention layer on synthetic tokens (Section 4 and A.1 of Vasudeva et al. 2024).
//!
//! ```text
//! DIR/synthetic.json     what was asked for
//! DIR/predictors.json    the predictors of Tables 1 and 3: closed form and simulation
//! DIR/runs/*.json        one file for each run: its settings and its curves
//! ```
//!
//! Running again trains only the runs that have no file yet. Runs train side by side, each on one core, and every random number is
//! named by its run's seed: the same numbers on any number of threads.

mod plan;
mod predictors;
pub mod sensitivity;
mod training;

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use pudica_data::TokenTask;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::store::{read_json, write_json};
use crate::trainer::Stop;

pub use plan::{NAME, SyntheticPlan, SyntheticSettings};
pub use predictors::{PredictorRow, predictor_rows};
pub use training::{ByKind, Point, train};

/// A run to be made, or made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SyntheticRun {
    /// Its data.
    pub task: TokenTask,
    /// The name of its randomness.
    pub seed: u64,
}

/// A run that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trained {
    /// Which.
    pub run: SyntheticRun,
    /// How: what else its numbers depend on.
    pub settings: SyntheticSettings,
    /// Its curves.
    pub points: Vec<Point>,
    /// Seconds it took.
    pub seconds: f64,
}

impl SyntheticRun {
    /// Its file's name: what differs between the runs of a folder.
    fn file(&self) -> String {
        let TokenTask { vocabulary, n_s, n_f, n_d, m, .. } = self.task;
        format!("sparse{n_s}-frequent{n_f}-difference{n_d}-m{m}-vocabulary{vocabulary}-seed{}.json", self.seed)
    }

    /// The run as it is stored, if it was made with these settings (whatever other data and seeds they name).
    fn read(&self, settings: &SyntheticSettings, folder: &Path) -> Result<Option<Trained>> {
        let found: Option<Trained> = read_json(&folder.join("runs").join(self.file()))?;
        Ok(found.filter(|found| found.run == *self && found.settings.train_alike(settings)))
    }
}

/// Trains the runs of `plan` that `folder` does not hold yet, as many at a time as there are threads; `progress` hears (done, all,
/// seconds spent so far). Returns how many are missing, which is 0 unless `stop` was requested.
pub fn compute_synthetic(
    plan: &SyntheticPlan,
    folder: &Path,
    progress: &(dyn Fn(usize, usize, f64) + Sync),
    stop: &Stop,
) -> Result<usize> {
    let runs_folder = folder.join("runs");
    std::fs::create_dir_all(&runs_folder).map_err(Error::io("create", &runs_folder))?;
    write_json(&folder.join("synthetic.json"), plan)?;
    write_json(&folder.join("predictors.json"), &predictor_rows(plan)?)?;
    let runs = plan.settings.runs()?;
    let (start, done) = (Instant::now(), Mutex::new(0));
    let make = |run: &SyntheticRun| -> Result<bool> {
        if run.read(&plan.settings, folder)?.is_none() {
            let begun = Instant::now();
            let Some(points) = train(&run.task, &plan.settings, run.seed, stop)? else { return Ok(false) };
            let seconds = begun.elapsed().as_secs_f64();
            let trained = Trained { run: run.clone(), settings: plan.settings.clone(), points, seconds };
            write_json(&runs_folder.join(run.file()), &trained)?;
        }
        let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *done += 1;
        progress(*done, runs.len(), start.elapsed().as_secs_f64());
        Ok(true)
    };
    // One at a time for each thread, so that those begun first end first.
    let made: Vec<bool> = runs.par_iter().with_max_len(1).map(make).collect::<Result<_>>()?;
    Ok(made.iter().filter(|made| !**made).count())
}

/// Whether a folder holds this experiment.
pub fn is_synthetic_folder(folder: &Path) -> bool {
    folder.join("synthetic.json").is_file()
}

/// What a folder holds: the plan, the predictors, and the runs made so far.
pub fn read_synthetic(folder: &Path) -> Result<(SyntheticPlan, Vec<PredictorRow>, Vec<Trained>)> {
    let missing = |file: &str| Error::Folder {
        path: folder.into(),
        problem: format!("has no {file}; give the folder that `pudica run {NAME}` named"),
    };
    let plan: SyntheticPlan = read_json(&folder.join("synthetic.json"))?.ok_or_else(|| missing("synthetic.json"))?;
    let predictors = read_json(&folder.join("predictors.json"))?.ok_or_else(|| missing("predictors.json"))?;
    let mut trained = Vec::new();
    for run in plan.settings.runs()? {
        trained.extend(run.read(&plan.settings, folder)?);
    }
    Ok((plan, predictors, trained))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> SyntheticPlan {
        let overrides = [
            "data=1:3:3:4:11,2:3:1:4:12",
            "length=8",
            "train=40",
            "test=20",
            "batch=10",
            "epochs=3",
            "every=2",
            "seeds=2",
        ];
        SyntheticPlan::new(None, &overrides.map(String::from)).unwrap()
    }

    #[test]
    fn an_interrupted_study_continues_with_the_same_numbers_on_any_number_of_threads() {
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let whole = tempfile::tempdir().unwrap();
        let quiet = |_: usize, _: usize, _: f64| {};
        pool(3).install(|| assert_eq!(compute_synthetic(&small(), whole.path(), &quiet, &Stop::new()).unwrap(), 0));
        let parts = tempfile::tempdir().unwrap();
        let stop = Stop::new();
        let stop_after_one = |_: usize, _: usize, _: f64| stop.request();
        pool(1).install(|| {
            assert_eq!(compute_synthetic(&small(), parts.path(), &stop_after_one, &stop).unwrap(), 3);
            assert_eq!(compute_synthetic(&small(), parts.path(), &quiet, &Stop::new()).unwrap(), 0);
        });
        let points = |folder: &Path| {
            let (_, predictors, trained) = read_synthetic(folder).unwrap();
            (predictors, trained.into_iter().map(|one| one.points).collect::<Vec<_>>())
        };
        assert_eq!(points(whole.path()), points(parts.path()));
        let (predictors, curves) = points(whole.path());
        assert_eq!((predictors.len(), curves.len()), (4, 4));
        assert_eq!(curves[0].iter().map(|point| point.epoch).collect::<Vec<_>>(), [0, 2, 3]);
        assert!(is_synthetic_folder(whole.path()) && !is_synthetic_folder(&whole.path().join("runs")));
    }

    #[test]
    fn other_settings_are_other_runs() {
        let folder = tempfile::tempdir().unwrap();
        let plan = small();
        compute_synthetic(&plan, folder.path(), &|_, _, _| {}, &Stop::new()).unwrap();
        let mut faster = plan.settings.clone();
        faster.rate *= 2.0;
        let more = SyntheticSettings { seeds: 7, ..plan.settings.clone() };
        for run in plan.settings.runs().unwrap() {
            assert!(run.read(&faster, folder.path()).unwrap().is_none());
            assert!(run.read(&more, folder.path()).unwrap().is_some());
        }
    }
}
