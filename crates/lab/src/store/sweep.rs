//! The folder of a sweep: what was asked for, and the folders of its runs.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::FORMAT;
use super::atomic::{read_json, write_json};
use super::run::{RunFolder, RunSummary};
use crate::config::{Configuration, RunConfig};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::recipe::Kind;

/// What was asked for, as stored in `sweep.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// The folder layout's version.
    pub format: u32,
    /// The program that wrote it.
    pub program: String,
    /// The recipe's name.
    pub recipe: String,
    /// What its runs are.
    #[serde(default)]
    pub kind: Kind,
    /// Its title.
    pub title: String,
    /// Which figures and tables of which paper.
    pub source: String,
    /// What the experiment shows.
    pub about: String,
    /// The report layout.
    pub figures: String,
    /// The scale.
    pub scale: String,
    /// The overrides as typed.
    pub overrides: Vec<String>,
    /// The command that repeats it.
    pub command: String,
    /// The recipe's text.
    pub recipe_text: String,
    /// The runs, in order.
    pub runs: Vec<RunRecord>,
}

/// A run's place in the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's id.
    pub id: String,
    /// The recipe's sweep it belongs to.
    pub sweep: String,
    /// The run it was made for, where its sweep follows another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A run as found in a sweep folder.
#[derive(Clone, Debug)]
pub struct SweepRun<C = RunConfig> {
    /// Its place in the sweep.
    pub record: RunRecord,
    /// Its settings.
    pub config: C,
    /// Its outcome, if it has ended.
    pub summary: Option<RunSummary>,
    /// Its folder.
    pub folder: RunFolder,
}

/// The folder of a sweep. While one made by [`SweepFolder::claim`] lives, no other process can claim it.
#[derive(Debug)]
pub struct SweepFolder {
    path: PathBuf,
    record: SweepRecord,
    _lock: Option<File>,
}

impl SweepFolder {
    /// Makes or continues the sweep of `plan` in `path`, and locks it against other processes.
    pub fn claim<C: Configuration>(path: &Path, plan: &Plan<C>) -> Result<SweepFolder> {
        std::fs::create_dir_all(path.join("runs")).map_err(Error::io("create", path))?;
        let lock = lock(path)?;
        let record = SweepRecord {
            format: FORMAT,
            program: format!("pudica {}", env!("CARGO_PKG_VERSION")),
            recipe: plan.recipe.name.clone(),
            kind: plan.recipe.kind,
            title: plan.recipe.title.clone(),
            source: plan.recipe.source.clone(),
            about: plan.recipe.about.clone(),
            figures: plan.recipe.figures.clone(),
            scale: plan.scale.clone(),
            overrides: plan.overrides.clone(),
            command: plan.command(),
            recipe_text: plan.recipe.text.clone(),
            runs: plan
                .runs
                .iter()
                .map(|run| RunRecord { id: run.id.clone(), sweep: run.sweep.clone(), parent: run.parent.clone() })
                .collect(),
        };
        if let Some(old) = read_record(path)?
            && old.recipe != record.recipe
        {
            let problem = format!("holds a sweep of {}, not of {}; choose another --out", old.recipe, record.recipe);
            return Err(Error::Folder { path: path.into(), problem });
        }
        write_json(&path.join("sweep.json"), &record)?;
        Ok(SweepFolder { path: path.into(), record, _lock: Some(lock) })
    }

    /// Opens a sweep folder for reading, finished or not.
    pub fn open(path: &Path) -> Result<SweepFolder> {
        let record = read_record(path)?.ok_or_else(|| Error::Folder {
            path: path.into(),
            problem: "is not a sweep folder (it has no sweep.json); give the folder that `pudica run` named".into(),
        })?;
        Ok(SweepFolder { path: path.into(), record, _lock: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was asked for.
    pub fn record(&self) -> &SweepRecord {
        &self.record
    }

    /// The folder of one run.
    pub fn run(&self, id: &str) -> RunFolder {
        RunFolder::new(self.path.join("runs").join(id))
    }

    /// All runs that have at least begun, in the order of the sweep; of a sweep of Boolean functions.
    pub fn runs(&self) -> Result<Vec<SweepRun>> {
        self.runs_of()
    }

    /// [`SweepFolder::runs`] for runs of any kind.
    pub fn runs_of<C: Configuration>(&self) -> Result<Vec<SweepRun<C>>> {
        if self.record.kind != C::KIND {
            let problem = format!("holds runs of the kind {:?}, not {:?}", self.record.kind, C::KIND);
            return Err(Error::Folder { path: self.path.clone(), problem });
        }
        let mut runs = Vec::new();
        for record in &self.record.runs {
            let folder = self.run(&record.id);
            if let Some(config) = read_json(&folder.path().join("config.json"))? {
                runs.push(SweepRun { record: record.clone(), config, summary: folder.summary()?, folder });
            }
        }
        Ok(runs)
    }
}

fn read_record(path: &Path) -> Result<Option<SweepRecord>> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let file = path.join("sweep.json");
    // The version is read on its own first: a record of another version may have other fields.
    match read_json::<Version>(&file)? {
        Some(Version { format }) if format != FORMAT => Err(Error::Folder {
            path: path.into(),
            problem: format!(
                "was written in format {format}, this program reads format {FORMAT}; choose another --out"
            ),
        }),
        _ => read_json(&file),
    }
}

fn lock(path: &Path) -> Result<File> {
    let file = path.join(".lock");
    let lock =
        OpenOptions::new().create(true).truncate(false).write(true).open(&file).map_err(Error::io("create", &file))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::Folder {
            path: path.into(),
            problem: "another pudica is running in this folder; wait for it or choose another --out".into(),
        }),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", &file)(error)),
    }
}
