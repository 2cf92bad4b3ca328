//! The folder of one run.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::atomic::{read_json, write_bytes, write_json};
use super::{Claim, FORMAT, check_format};
use crate::error::{Error, Result};
use crate::settings::Settings;

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
    /// Seconds spent training and measuring; of runs that trained in lock-step, each has an equal part.
    pub seconds: f64,
    /// What it was computed on.
    pub device: String,
    /// What else decides its numbers to the last bit; unknown for runs of format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<MadeBy>,
    /// All measures by name; a number that is not finite is null.
    pub measures: Map<String, Value>,
    /// Larger results: profiles and histograms.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub detail: Map<String, Value>,
    /// What lies beside the summary, so that a file cut later is noticed; unknown for runs of earlier programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Files>,
}

/// The other files of a run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Lines in `metrics.jsonl`.
    pub metrics_lines: u64,
    /// Size of `weights.safetensors`; 0 where there is none.
    pub weights_bytes: u64,
}

/// What made a run, beside its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MadeBy {
    /// The program, its version and its commit.
    pub program: String,
    /// The type of numbers.
    pub dtype: String,
    /// Which implementation.
    pub engine: String,
    /// The processor's widest vector instructions.
    pub instruction_set: String,
}

impl RunSummary {
    /// The record of a run that was never made, and why.
    pub(crate) fn skipped(id: &str, problem: String) -> RunSummary {
        RunSummary {
            format: FORMAT,
            id: id.into(),
            outcome: Outcome::Skipped,
            problem: Some(problem),
            steps: 0,
            converged: false,
            seconds: 0.0,
            device: "none".into(),
            made_by: None,
            measures: Map::new(),
            detail: Map::new(),
            files: None,
        }
    }

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
    /// The right to write here, where several processes might: looked at before each write.
    claim: Option<Arc<Claim>>,
}

impl RunFolder {
    /// The folder at `path`, which need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        RunFolder { path, claim: None }
    }

    /// The same folder, written only while this claim stands.
    pub(crate) fn under(self, claim: Arc<Claim>) -> RunFolder {
        RunFolder { claim: Some(claim), ..self }
    }

    /// An error if another process has taken the run over.
    fn check_claim(&self) -> Result<()> {
        self.claim.as_ref().map_or(Ok(()), |claim| claim.check())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder and stores the run's settings in it.
    pub fn create(&self, settings: &Settings) -> Result<()> {
        self.check_claim()?;
        std::fs::create_dir_all(&self.path).map_err(Error::io("create", &self.path))?;
        write_json(&self.config_path(), settings)
    }

    /// Path of the settings.
    pub(crate) fn config_path(&self) -> PathBuf {
        self.path.join("config.json")
    }

    /// The settings, if the run has begun.
    pub fn settings(&self) -> Result<Option<Settings>> {
        Ok(read_json(&self.config_path())?.map(Settings::stored))
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
        let path = self.summary_path();
        let summary: Option<RunSummary> = read_json(&path)?;
        if let Some(summary) = &summary {
            check_format(&path, summary.format)?;
            let id = self.path.file_name().unwrap_or_default().to_string_lossy();
            if summary.format == FORMAT && summary.id != id {
                return Err(Error::damaged(&path, format!("it is the summary of run {}, not of {id}", summary.id)));
            }
            if let Some((name, value)) =
                summary.measures.iter().find(|(_, value)| !value.is_number() && !value.is_null())
            {
                return Err(Error::damaged(&path, format!("the measure {name} is {value}, not a number")));
            }
        }
        Ok(summary)
    }

    /// Whether there is an outcome; it is not read.
    pub fn has_ended(&self) -> bool {
        self.summary_path().is_file()
    }

    /// Gives a finished run of format 1 its place under another id; done again after an interruption, it ends the same.
    pub(super) fn take_over(&self, from: &RunFolder, id: &str, settings: &Settings) -> Result<()> {
        if from.path.exists() {
            std::fs::rename(&from.path, &self.path).map_err(Error::io("rename", &from.path))?;
        }
        write_json(&self.config_path(), settings)?;
        let path = self.summary_path();
        match read_json::<RunSummary>(&path)? {
            Some(summary) => write_json(&path, &RunSummary { id: id.into(), format: FORMAT, ..summary }),
            None => Ok(()),
        }
    }

    /// Drops a run's state and outcome, so that it begins again; whether there was any. The outcome goes first: without it the run is
    /// unfinished, whatever else is left.
    pub(crate) fn forget(&self) -> Result<bool> {
        self.check_claim()?;
        let summary = remove(&self.summary_path())?;
        let checkpoint = remove(&self.checkpoint_path())?;
        Ok(remove(&self.metrics_path())? || checkpoint || summary)
    }

    /// Stores the outcome; the checkpoint is no longer needed then.
    pub fn finish(&self, summary: &RunSummary) -> Result<()> {
        self.check_claim()?;
        let weights_bytes = std::fs::metadata(self.weights_path()).map_or(0, |weights| weights.len());
        let files = Files { metrics_lines: self.metrics()?.len() as u64, weights_bytes };
        write_json(&self.summary_path(), &RunSummary { files: Some(files), ..summary.clone() })?;
        self.remove_checkpoint()
    }

    /// The outcome, if the run has ended, and what is wrong with its other files, if anything.
    pub(crate) fn ending(&self) -> Result<Option<(RunSummary, Option<String>)>> {
        let Some(summary) = self.summary()? else { return Ok(None) };
        let damage = self.cut_metrics(&summary)?.or_else(|| self.cut_weights(&summary));
        Ok(Some((summary, damage)))
    }

    /// What is wrong with the metrics of a run that has ended, if anything.
    pub(crate) fn cut_metrics(&self, summary: &RunSummary) -> Result<Option<String>> {
        let Some(Files { metrics_lines, .. }) = summary.files else { return Ok(None) };
        let lines = self.metrics()?.len() as u64;
        Ok((lines < metrics_lines).then(|| format!("metrics.jsonl has {lines} of its {metrics_lines} lines")))
    }

    /// What is wrong with the weights of a run that has ended, if anything. They may be gone altogether: people delete them for their
    /// size, and only runs that learn from this one need them.
    pub(crate) fn cut_weights(&self, summary: &RunSummary) -> Option<String> {
        let (Files { weights_bytes, .. }, weights) = (summary.files?, std::fs::metadata(self.weights_path()).ok()?);
        let found = weights.len();
        (found != weights_bytes).then(|| format!("weights.safetensors has {found} of its {weights_bytes} bytes"))
    }

    /// Removes the checkpoint, if there is one.
    pub(crate) fn remove_checkpoint(&self) -> Result<()> {
        remove(&self.checkpoint_path()).map(|_| ())
    }

    fn summary_path(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// The trained network.
    pub fn weights_path(&self) -> PathBuf {
        self.path.join("weights.safetensors")
    }

    /// Stores the trained network.
    pub fn save_weights(&self, bytes: &[u8]) -> Result<()> {
        self.check_claim()?;
        write_bytes(&self.weights_path(), bytes)
    }

    /// Path of the checkpoint.
    pub fn checkpoint_path(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }

    /// The state an interrupted run continues from, if there is one.
    pub fn checkpoint(&self) -> Result<Option<Vec<u8>>> {
        let path = self.checkpoint_path();
        match pudica_boolean::plain::bytes(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Replaces the checkpoint. All metrics logged so far reach the disk first.
    pub fn save_checkpoint(&self, bytes: &[u8]) -> Result<()> {
        self.check_claim()?;
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
        self.check_claim()?;
        let path = self.metrics_path();
        let mut text = serde_json::to_string(line).map_err(|error| Error::damaged(&path, error))?;
        text.push('\n');
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::io("write", &path))
    }

    /// The logged lines, in order. A last line cut off by a crash is left out.
    pub fn metrics(&self) -> Result<Vec<Map<String, Value>>> {
        let path = self.metrics_path();
        match pudica_boolean::plain::text(&path) {
            Ok(text) => Ok(text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Drops what was logged after `step`, which a resumed run logs again; returns the lines kept.
    pub fn rewind_metrics(&self, step: u64) -> Result<Vec<Map<String, Value>>> {
        self.check_claim()?;
        let mut kept = self.metrics()?;
        kept.retain(|line| line.get("step").and_then(Value::as_u64).is_some_and(|at| at <= step));
        let mut text = String::new();
        for line in &kept {
            text += &Value::Object(line.clone()).to_string();
            text.push('\n');
        }
        write_bytes(&self.metrics_path(), text.as_bytes())?;
        Ok(kept)
    }
}

/// Removes a file; whether it was there.
fn remove(path: &Path) -> Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("remove", path)(error)),
    }
}
