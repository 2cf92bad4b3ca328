//! Who works in a sweep's folder and how far each is: a small file of each process under `DIR/.work`, written anew every few seconds. It
//! changes no number. `pudica status` reads it, and other processes tell by it whether this one still lives.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pudica_boolean::atomic::remove_abandoned;
use serde::{Deserialize, Serialize};

use super::atomic::{read_json, write_json};
use super::owner::Owner;
use crate::compute::instruction_set;
use crate::error::{Error, Result};

/// Time between two writings.
pub(crate) const BEAT: Duration = Duration::from_secs(5);

/// What a process tells about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AtWork {
    /// Which process it is.
    #[serde(flatten)]
    pub owner: Owner,
    /// Its part of the plan, as in `3/12`; nothing: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The program, its version and its commit.
    pub program: String,
    /// Its processor's widest vector instructions.
    pub instruction_set: String,
    /// How often this file was written: it grows while the process lives.
    pub beat: u64,
    /// When it was written, in seconds since 1970 by the clock of its machine.
    pub written: f64,
    /// Seconds since the process began with this sweep.
    pub seconds: f64,
    /// Runs that it is to make, and how many of them have ended.
    pub runs: usize,
    /// How many of them have ended.
    pub ended: usize,
    /// How much of its work is done, 0 to 1.
    pub done: f64,
    /// Training steps per second, all its runs together.
    pub steps_per_second: f64,
    /// Seconds until it ends, as far as one can tell yet.
    pub seconds_left: Option<f64>,
    /// The runs it is at.
    pub at: Vec<RunAt>,
    /// After its end: what went wrong. The file of a process that met no error goes when it ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Whether it has ended.
    #[serde(default)]
    pub has_ended: bool,
}

/// A run in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunAt {
    /// The run's id.
    pub id: String,
    /// How a person names it.
    pub label: String,
    /// Steps made.
    pub step: u64,
    /// Steps to make.
    pub steps: u64,
}

impl AtWork {
    /// The folder with these files and with the claims.
    pub(crate) fn folder(sweep: &Path) -> PathBuf {
        sweep.join(".work")
    }

    /// The file of the process of this name.
    pub(super) fn path(sweep: &Path, id: &str) -> PathBuf {
        AtWork::folder(sweep).join(format!("{id}.json"))
    }

    /// What the process of this name told last.
    pub(crate) fn of(sweep: &Path, id: &str) -> Result<Option<AtWork>> {
        read_json(&AtWork::path(sweep, id))
    }

    /// Tells.
    pub(crate) fn write(&mut self, sweep: &Path) -> Result<()> {
        self.beat += 1;
        self.written = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        write_json(&AtWork::path(sweep, &self.owner.id()), self)
    }

    /// Takes its files away. Its report goes last: while that is there, a leftover is told from a living process.
    pub(crate) fn remove(&self, sweep: &Path) {
        let id = self.owner.id();
        for path in [AtWork::claims_name(sweep, &id), AtWork::path(sweep, &id)] {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The file that the claims of the process of this name are further names of.
    pub(crate) fn claims_name(sweep: &Path, id: &str) -> PathBuf {
        AtWork::folder(sweep).join(format!(".{id}"))
    }

    /// The files of all processes in a sweep's folder, in the order of their units and names. What cannot be read is left out.
    pub fn all(sweep: &Path) -> Result<Vec<AtWork>> {
        let folder = AtWork::folder(sweep);
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("read", &folder)(error)),
        };
        let is_report = |name: &str| name.ends_with(".json") && !name.starts_with('.');
        let paths = entries.flatten().map(|entry| entry.path());
        let reports = paths.filter(|path| path.file_name().is_some_and(|name| is_report(&name.to_string_lossy())));
        let mut all: Vec<AtWork> = reports.filter_map(|path| read_json(&path).ok().flatten()).collect();
        let part = |unit: &Option<String>| unit.as_ref().and_then(|unit| unit.split('/').next()?.parse::<u64>().ok());
        all.sort_by_key(|one| (part(&one.unit), one.owner.id()));
        Ok(all)
    }

    /// Removes what ended processes have left behind: those that told nothing, and those whose part is attempted again now.
    pub(crate) fn tidy(&self, sweep: &Path) -> Result<()> {
        for old in AtWork::all(sweep)? {
            let is_gone = self.owner.follows(&old.owner) || self.owner.sees_gone(&old.owner) == Some(true);
            if (old.has_ended || is_gone) && (old.errors.is_empty() || old.unit == self.unit) {
                old.remove(sweep);
            }
        }
        remove_abandoned(&AtWork::folder(sweep), None);
        Ok(())
    }

    /// Seconds since it was written, by this machine's clock.
    pub fn age(&self) -> f64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        (now - self.written).max(0.0)
    }
}

/// This process at work in a sweep's folder. When it goes, so does its file, unless something went wrong.
#[derive(Debug)]
pub(crate) struct Presence {
    sweep: PathBuf,
    report: Mutex<AtWork>,
}

impl Presence {
    /// Tells that this process begins.
    pub fn begin(sweep: &Path, report: AtWork) -> Result<Presence> {
        let folder = AtWork::folder(sweep);
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let mut report = AtWork { owner: Owner::this(), instruction_set: instruction_set().into(), ..report };
        report.tidy(sweep)?;
        report.write(sweep)?;
        Ok(Presence { sweep: sweep.into(), report: Mutex::new(report) })
    }

    /// Which process it is.
    pub fn owner(&self) -> Owner {
        self.report().owner.clone()
    }

    fn report(&self) -> MutexGuard<'_, AtWork> {
        self.report.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Tells how far it is.
    pub fn tell(&self, change: impl FnOnce(&mut AtWork)) {
        let mut report = self.report();
        change(&mut report);
        let _ = report.write(&self.sweep); // a disk that is full for a moment must not end the runs
    }

    /// Leaves word of what went wrong.
    pub fn end(&self, errors: Vec<String>) {
        self.tell(|report| {
            report.has_ended = true;
            report.at.clear();
            report.errors = errors;
        });
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let report = self.report();
        if report.errors.is_empty() {
            report.remove(&self.sweep);
        }
    }
}
