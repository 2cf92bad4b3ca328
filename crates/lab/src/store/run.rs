//! The folder of one run.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::FORMAT;
use super::atomic::{read_json, write_bytes, write_json};
use crate::error::{Error, Result};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Trained and measured; whether it converged is a measure of its own.
    Finished,
    /// The loss became infinite or not a number.
    Failed,
    /// Not run, because the run it learns from is of no use.
    Skipped,
}

/// What is known about a run after its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The folder layout's version.
    pub format: u32,
    /// The run's id.
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Training steps made; for a failed run the step at which it failed.
    pub steps: u64,
    /// Whether the evaluation loss is below the threshold.
    pub converged: bool,
    /// Seconds spent training and measuring; of runs that trained in company, each has an equal share.
    pub seconds: f64,
    /// What it was computed on.
    pub device: String,
    /// All measures by name; a number that is not finite is null.
    pub measures: Map<String, Value>,
    /// Larger results: profiles and histograms.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub detail: Map<String, Value>,
}

impl RunSummary {
    /// A measure by name, if it was taken and is a finite number.
    pub fn measure(&self, name: &str) -> Option<f64> {
        self.measures.get(name).and_then(Value::as_f64)
    }

    /// Some of the measures, null where one was not taken.
    pub fn headline(&self, names: &[&str]) -> Map<String, Value> {
        names.iter().map(|name| (name.to_string(), self.measures.get(*name).cloned().unwrap_or_default())).collect()
    }
}

/// The folder of one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The folder at `path`, which need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        RunFolder { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder and stores the run's settings in it.
    pub fn create(&self, config: &impl Serialize) -> Result<()> {
        std::fs::create_dir_all(&self.path).map_err(Error::io("create", &self.path))?;
        write_json(&self.path.join("config.json"), config)
    }

    /// Refuses to go on with a run that was begun with other data than `data` describes; where nothing was begun, stores that.
    pub(crate) fn check_data(&self, data: &Map<String, Value>) -> Result<()> {
        let path = self.path.join("data.json");
        match read_json::<Map<String, Value>>(&path)? {
            Some(found) if found != *data => {
                let (then, now) = (Value::Object(found), Value::Object(data.clone()));
                let problem =
                    format!("was begun with other data ({then}) than there is now ({now}); choose another --out");
                Err(Error::Folder { path: self.path.clone(), problem })
            }
            Some(_) => Ok(()),
            None => write_json(&path, data),
        }
    }

    /// The outcome, if the run has ended.
    pub fn summary(&self) -> Result<Option<RunSummary>> {
        let path = self.path.join("summary.json");
        let summary: Option<RunSummary> = read_json(&path)?;
        match summary {
            Some(summary) if summary.format != FORMAT => Err(Error::Folder {
                path,
                problem: format!(
                    "was written in format {}, this program reads {FORMAT}; use another --out",
                    summary.format
                ),
            }),
            other => Ok(other),
        }
    }

    /// Stores the outcome; the checkpoint is no longer needed then.
    pub fn finish(&self, summary: &RunSummary) -> Result<()> {
        write_json(&self.path.join("summary.json"), summary)?;
        match std::fs::remove_file(self.checkpoint_path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &self.checkpoint_path())(error))
            }
            _ => Ok(()),
        }
    }

    /// The trained network.
    pub fn weights_path(&self) -> PathBuf {
        self.path.join("weights.safetensors")
    }

    /// Stores the trained network.
    pub fn save_weights(&self, bytes: &[u8]) -> Result<()> {
        write_bytes(&self.weights_path(), bytes)
    }

    /// Where that state lies.
    pub fn checkpoint_path(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }

    /// The state an interrupted run continues from, if there is one.
    pub fn checkpoint(&self) -> Result<Option<Vec<u8>>> {
        let path = self.checkpoint_path();
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Replaces the checkpoint. All metrics logged so far reach the disk first.
    pub fn save_checkpoint(&self, bytes: &[u8]) -> Result<()> {
        let metrics = self.metrics_path();
        if let Ok(file) = OpenOptions::new().append(true).open(&metrics) {
            file.sync_all().map_err(Error::io("write", &metrics))?;
        }
        write_bytes(&self.checkpoint_path(), bytes)
    }

    fn metrics_path(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// Adds one line to the metrics.
    pub fn log(&self, line: &Map<String, Value>) -> Result<()> {
        let path = self.metrics_path();
        let mut text = serde_json::to_string(line).map_err(|error| Error::damaged(&path, error))?;
        text.push('\n');
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::io("write", &path))
    }

    /// The logged lines, in order. A last line cut off by a crash is left out.
    pub fn metrics(&self) -> Result<Vec<Map<String, Value>>> {
        let path = self.metrics_path();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Drops what was logged after `step`, which a resumed run logs again; returns the last line kept.
    pub fn rewind_metrics(&self, step: u64) -> Result<Option<Map<String, Value>>> {
        let mut kept = self.metrics()?;
        kept.retain(|line| line.get("step").and_then(Value::as_u64).is_some_and(|at| at <= step));
        let mut text = String::new();
        for line in &kept {
            text += &Value::Object(line.clone()).to_string();
            text.push('\n');
        }
        write_bytes(&self.metrics_path(), text.as_bytes())?;
        Ok(kept.pop())
    }
}
