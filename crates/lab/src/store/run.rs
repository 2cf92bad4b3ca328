//! The folder of one run.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pudica_boolean::atomic::{remove_abandoned, write_atomically_if};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::atomic::{json_text, read_json};
use super::check::{Files, Logged, digest, sealed};
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

    /// Puts a file into the folder, unless another process has taken the run over. That is looked at last, when the new file lies beside
    /// the old one: who takes a run over removes such files first, so that one who is frozen at whatever moment replaces nothing.
    fn write(&self, path: &Path, parts: &[&[u8]]) -> Result<()> {
        let last_look = || self.check_claim().map_err(io::Error::other);
        let written =
            write_atomically_if(path, |file| parts.iter().try_for_each(|part| file.write_all(part)), last_look);
        written.map_err(|error| self.failed_write(path, error))
    }

    /// Why something could not be written: the run was taken over, perhaps, and on NFS what was opened before is stale then.
    fn failed_write(&self, path: &Path, error: io::Error) -> Error {
        self.check_claim().err().unwrap_or_else(|| Error::io("write", path)(error))
    }

    fn write_json(&self, path: &Path, value: &impl Serialize) -> Result<()> {
        self.write(path, &[json_text(path, value)?.as_bytes()])
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder and stores the run's settings in it.
    pub fn create(&self, settings: &Settings) -> Result<()> {
        std::fs::create_dir_all(&self.path).map_err(Error::io("create", &self.path))?;
        self.write_json(&self.config_path(), settings)
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
            None => self.write_json(&path, data),
        }
    }

    /// The outcome, if the run has ended, as it stands there; [`RunFolder::state`] does not believe it.
    pub(super) fn summary(&self) -> Result<Option<RunSummary>> {
        let path = self.summary_path();
        let summary: Option<RunSummary> = read_json(&path)?;
        if let Some(summary) = &summary {
            check_format(&path, summary.format)?;
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
        self.write_json(&self.config_path(), settings)?;
        let path = self.summary_path();
        match read_json::<RunSummary>(&path)? {
            Some(summary) => self.write_json(&path, &RunSummary { id: id.into(), format: FORMAT, ..summary }),
            None => Ok(()),
        }
    }

    /// Drops a run's state, so that it begins again; whether there was any.
    pub(super) fn forget(&self) -> Result<bool> {
        let checkpoint = remove(&self.checkpoint_path())?;
        Ok(remove(&self.metrics_path())? || checkpoint)
    }

    /// Moves the run to `DIR/damaged/ID`, or `ID-2` and so on, so that it begins again and nothing is lost; where it is then.
    pub(crate) fn set_aside(&self) -> Result<PathBuf> {
        self.check_claim()?;
        let (sweep, id) = (self.path.ancestors().nth(2).unwrap_or(&self.path), self.path.file_name());
        let (folder, id) = (sweep.join("damaged"), id.unwrap_or_default().to_string_lossy());
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let names = std::iter::once(id.to_string()).chain((2..).map(|number| format!("{id}-{number}")));
        let mut free = names.map(|name| folder.join(name)).filter(|path| !path.exists());
        let to = free.next().unwrap_or(folder);
        std::fs::rename(&self.path, &to).map_err(Error::io("move", &self.path))?;
        Ok(to)
    }

    /// Stores the outcome, and what the other files are now; the checkpoint is no longer needed then.
    pub fn finish(&self, summary: &RunSummary) -> Result<()> {
        self.sync_metrics()?;
        let (metrics, weights) = (read_or_empty(&self.metrics_path())?, read_or_empty(&self.weights_path())?);
        let files = Files {
            metrics_lines: RunFolder::lines_of(&metrics).count() as u64,
            weights_bytes: weights.len() as u64,
            metrics_digest: digest(&metrics),
            weights_digest: digest(&weights),
            ..Files::default()
        };
        let path = self.summary_path();
        self.write(&path, &[sealed(&path, summary, files)?.as_bytes()])?;
        self.remove_checkpoint()
    }

    /// Removes the checkpoint, if there is one, and one that was being written when its process was killed.
    pub(crate) fn remove_checkpoint(&self) -> Result<()> {
        let path = self.checkpoint_path();
        remove_abandoned(&self.path, path.file_name());
        remove(&path).map(|_| ())
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
        self.write(&self.weights_path(), &[bytes])
    }

    /// Path of the checkpoint.
    pub fn checkpoint_path(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }

    /// The state an interrupted run continues from, if there is one.
    pub fn checkpoint(&self) -> Result<Option<Vec<u8>>> {
        let path = self.checkpoint_path();
        match pudica_boolean::plain::bytes(&path) {
            Ok(mut bytes) => {
                bytes.truncate(bytes.len() - Logged::at_the_end_of(&bytes).map_or(0, |_| Logged::SIZE));
                Ok(Some(bytes))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if !path.is_file() => Err(Error::damaged(&path, error)), // `--repair` moves it away
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Replaces the checkpoint. All metrics logged so far reach the disk first, and behind the checkpoint stands what they are.
    pub fn save_checkpoint(&self, bytes: &[u8]) -> Result<()> {
        self.sync_metrics()?;
        let logged = Logged::of(&read_or_empty(&self.metrics_path())?);
        self.write(&self.checkpoint_path(), &[bytes, &logged.bytes()])
    }

    /// Sees to it that all metrics logged so far are on the disk: what is written next counts on them.
    fn sync_metrics(&self) -> Result<()> {
        let path = self.metrics_path();
        match OpenOptions::new().append(true).open(&path).and_then(|file| file.sync_all()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("write", &path)(error)),
            _ => Ok(()),
        }
    }

    fn metrics_path(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// Adds one line to the metrics. They are opened before the claim is looked at: who takes the run over puts another file in their
    /// place, so that a line which comes too late goes nowhere.
    pub fn log(&self, line: &Map<String, Value>) -> Result<()> {
        let path = self.metrics_path();
        let mut text = serde_json::to_string(line).map_err(|error| Error::damaged(&path, error))?;
        text.push('\n');
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let mut file = file.map_err(Error::io("write", &path))?;
        self.check_claim()?;
        file.write_all(text.as_bytes()).map_err(|error| self.failed_write(&path, error))
    }

    /// The logged lines, in order. A last line cut off by a crash is left out.
    pub fn metrics(&self) -> Result<Vec<Map<String, Value>>> {
        let bytes = read_or_empty(&self.metrics_path())?;
        Ok(RunFolder::lines_of(&bytes).map(|(line, _)| line).collect())
    }

    /// The lines of metrics up to the first that is not whole, each also as it is written: only a line break ends one.
    pub(super) fn lines_of(bytes: &[u8]) -> impl Iterator<Item = (Map<String, Value>, &[u8])> {
        let whole = bytes.split_inclusive(|byte| *byte == b'\n').take_while(|line| line.ends_with(b"\n"));
        whole.map_while(|line| Some((serde_json::from_slice(line).ok()?, line)))
    }

    /// Drops what was logged after `step`, which a resumed run logs again; returns the lines kept.
    pub fn rewind_metrics(&self, step: u64) -> Result<Vec<Map<String, Value>>> {
        let bytes = read_or_empty(&self.metrics_path())?;
        let (mut lines, mut text) = (Vec::new(), Vec::new());
        for (line, own) in RunFolder::lines_of(&bytes) {
            if line.get("step").and_then(Value::as_u64).is_some_and(|at| at <= step) {
                lines.push(line);
                text.push(own);
            }
        }
        self.write(&self.metrics_path(), &text)?;
        Ok(lines)
    }
}

/// The bytes of a file, none where there is no such file.
fn read_or_empty(path: &Path) -> Result<Vec<u8>> {
    match pudica_boolean::plain::bytes(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("read", path)(error)),
        read => Ok(read.unwrap_or_default()),
    }
}

/// Removes a file; whether it was there.
fn remove(path: &Path) -> Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("remove", path)(error)),
    }
}
