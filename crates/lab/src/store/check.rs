//! Whether the files of a run are whole: they are checked, not believed.
//!
//! `summary.json` says of itself and of the files beside it what they were when the run ended: digests, sizes, lines. Settings are checked
//! by the run's id, which is their hash. Weights may be large, so how closely they are looked at is the caller's choice ([`Weights`]).

use std::fmt;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::atomic::json_text;
use super::run::{RunFolder, RunSummary};
use super::sweep::RunRecord;
use super::{FORMAT, check_format};
use crate::error::{Error, Result};
use crate::kinds::Kind;
use crate::settings::Settings;

/// The files of a run that has ended. What earlier programs did not note is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Lines in `metrics.jsonl`.
    pub metrics_lines: u64,
    /// Size of `weights.safetensors`; 0 where there is none.
    pub weights_bytes: u64,
    /// Digest of `metrics.jsonl`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub metrics_digest: String,
    /// Digest of `weights.safetensors`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub weights_digest: String,
    /// Digest of `summary.json` itself, with `UNSEALED` in this place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary_digest: String,
}

/// What stands for a summary's own digest while that is computed.
const UNSEALED: &str = "0000000000000000";

/// The first 16 hexadecimal digits of the SHA-256.
pub(super) fn digest(bytes: &[u8]) -> String {
    digits(Sha256::digest(bytes).as_slice())
}

/// The same of a file, which may be larger than memory.
fn digest_of_file(path: &Path) -> std::io::Result<String> {
    let (mut file, mut hash, mut buffer) = (std::fs::File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(digits(hash.finalize().as_slice())),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn digits(hash: &[u8]) -> String {
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The text of `summary.json`, with its own digest inside.
pub(super) fn sealed(path: &Path, summary: &RunSummary, files: Files) -> Result<String> {
    let files = Files { summary_digest: UNSEALED.into(), ..files };
    let text = json_text(path, &RunSummary { files: Some(files), ..summary.clone() })?;
    Ok(with_digest(&text, &digest(text.as_bytes())))
}

/// A summary's text with another digest of itself.
fn with_digest(text: &str, digest: &str) -> String {
    const KEY: &str = "\"summary_digest\": \"";
    match text.rfind(KEY).map(|at| at + KEY.len()) {
        Some(at) if text.is_char_boundary(at + UNSEALED.len()) => {
            format!("{}{digest}{}", &text[..at], &text[at + UNSEALED.len()..])
        }
        _ => text.into(),
    }
}

/// The metrics that a checkpoint counts on, as noted behind it.
pub(super) struct Logged {
    /// So many bytes.
    length: u64,
    digest: String,
}

impl Logged {
    /// Bytes of the note.
    pub const SIZE: usize = MARK.len() + 8 + UNSEALED.len();

    /// Of the whole lines of metrics: half a line, as a full disk leaves it, is dropped on resuming.
    pub fn of(metrics: &[u8]) -> Logged {
        let length = RunFolder::lines_of(metrics).map(|(_, line)| line.len()).sum();
        Logged { length: length as u64, digest: digest(&metrics[..length]) }
    }

    pub fn bytes(&self) -> Vec<u8> {
        [MARK, &self.length.to_le_bytes(), self.digest.as_bytes()].concat()
    }

    /// The note behind a checkpoint; those of earlier programs have none.
    pub fn at_the_end_of(checkpoint: &[u8]) -> Option<Logged> {
        let (length, digest) =
            checkpoint.last_chunk::<{ Logged::SIZE }>()?.strip_prefix(MARK)?.split_first_chunk::<8>()?;
        Some(Logged { length: u64::from_le_bytes(*length), digest: std::str::from_utf8(digest).ok()?.into() })
    }

    /// The same without reading all of the file.
    fn read(path: &Path) -> Option<Logged> {
        std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?; // opening a pipe would wait for ever
        let mut file = std::fs::File::open(path).ok()?;
        file.seek(SeekFrom::End(-(Logged::SIZE as i64))).ok()?;
        let mut end = Vec::new();
        file.read_to_end(&mut end).ok()?;
        Logged::at_the_end_of(&end)
    }
}

/// Where the note begins.
const MARK: &[u8] = b"\0metrics";

/// What is wrong with a file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file's name.
    pub file: &'static str,
    /// What is wrong with it: `has 3 of its 5 lines`.
    pub problem: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file, self.problem)
    }
}

/// A run that does not count, because its folder does not hold what it should.
#[derive(Clone, Debug)]
pub struct DamagedRun {
    /// Its place in the sweep.
    pub record: RunRecord,
    /// What is wrong.
    pub damage: Damage,
}

impl fmt::Display for DamagedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunRecord { id, label, .. } = &self.record;
        let damage = &self.damage;
        write!(f, "run {id} ({label}) is damaged: {damage}; its command with --repair makes it again")
    }
}

/// How closely the weights of an ended run are looked at. They may be gone altogether, unless everything is to be there: people delete them
/// for their size, and only runs that learn from this one need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    /// At their size.
    Size,
    /// At every byte.
    Bytes,
    /// At every byte, and they must be there.
    Needed,
}

/// How a run stands.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing is there.
    None,
    /// It is unfinished.
    Begun(Settings),
    /// It has ended, and is whole.
    Ended(Settings, Box<RunSummary>),
    /// It does not count.
    Damaged(Damage),
}

/// A file as it was found.
enum File {
    None,
    Bytes(Vec<u8>),
    Damaged(Damage),
}

impl RunFolder {
    /// How the run stands. Every byte is looked at, and of the weights what is asked for.
    pub(crate) fn state(&self, kind: &Kind, weights: Weights) -> Result<State> {
        let id = self.path().file_name().unwrap_or_default().to_string_lossy();
        let damaged = |file, problem: String| Ok(State::Damaged(Damage { file, problem }));
        let summary = match self.file("summary.json")? {
            File::Damaged(damage) => return Ok(State::Damaged(damage)),
            File::Bytes(bytes) => Some(bytes),
            File::None => None,
        };
        let settings = match self.file("config.json")? {
            File::Damaged(damage) => return Ok(State::Damaged(damage)),
            File::None if summary.is_none() => return Ok(State::None),
            File::None => return damaged("config.json", "is missing".into()),
            File::Bytes(bytes) => match serde_json::from_slice(&bytes) {
                Ok(tree) => Settings::stored(tree),
                Err(error) => return damaged("config.json", format!("cannot be read ({error})")),
            },
        };
        match kind.id(&settings) {
            Ok(found) if found == id => {}
            Ok(found) => return damaged("config.json", format!("has the settings of a run {found}")),
            Err(error) => return damaged("config.json", format!("has settings that no run has ({error})")),
        }
        let Some(bytes) = summary else {
            return Ok(self.lost_metrics()?.map_or(State::Begun(settings), State::Damaged));
        };
        let (text, summary) = match read_summary(&bytes) {
            Ok(read) => read,
            Err(problem) => return damaged("summary.json", problem),
        };
        check_format(&self.path().join("summary.json"), summary.format)?;
        if summary.format == FORMAT && summary.id != id {
            return damaged("summary.json", format!("is the summary of run {}", summary.id));
        }
        if let Some((name, value)) = summary.measures.iter().find(|(_, value)| !value.is_number() && !value.is_null()) {
            return damaged("summary.json", format!("has {value} for {name}, which is not a number"));
        }
        let Some(files) = &summary.files else { return Ok(State::Ended(settings, Box::new(summary))) };
        if !files.summary_digest.is_empty() && digest(with_digest(text, UNSEALED).as_bytes()) != files.summary_digest {
            return damaged("summary.json", "was changed after the run had ended".into());
        }
        let damage = self.metrics_damage(files)?.or(self.weights_damage(files, weights)?);
        Ok(damage.map_or(State::Ended(settings, Box::new(summary)), State::Damaged))
    }

    /// What is wrong with the metrics of an unfinished run: those that its checkpoint counts on must be there, as it will not log them again.
    fn lost_metrics(&self) -> Result<Option<Damage>> {
        // In this order: meanwhile the run may go on, and the metrics grow.
        let Some(logged) = Logged::read(&self.checkpoint_path()) else { return Ok(None) };
        let bytes = match self.file("metrics.jsonl")? {
            File::Damaged(damage) => return Ok(Some(damage)),
            File::Bytes(bytes) => bytes,
            File::None => Vec::new(),
        };
        let length = usize::try_from(logged.length).unwrap_or(usize::MAX);
        if bytes.get(..length).is_some_and(|own| digest(own) == logged.digest) {
            return Ok(None);
        }
        let problem = "has lost lines that were logged before the checkpoint".into();
        Ok(Some(Damage { file: "metrics.jsonl", problem }))
    }

    fn metrics_damage(&self, files: &Files) -> Result<Option<Damage>> {
        let bytes = match self.file("metrics.jsonl")? {
            File::Damaged(damage) => return Ok(Some(damage)),
            File::Bytes(bytes) => bytes,
            File::None => Vec::new(),
        };
        if digest(&bytes) == files.metrics_digest {
            return Ok(None);
        }
        let (lines, noted) = (RunFolder::lines_of(&bytes).count() as u64, files.metrics_lines);
        let problem = match lines < noted {
            true => format!("has {lines} of its {noted} lines"),
            false if files.metrics_digest.is_empty() => return Ok(None),
            false => "was changed after the run had ended".into(),
        };
        Ok(Some(Damage { file: "metrics.jsonl", problem }))
    }

    /// What is wrong with the weights.
    pub(crate) fn weights_damage(&self, files: &Files, look: Weights) -> Result<Option<Damage>> {
        let (noted, path) = (files.weights_bytes, self.weights_path());
        let problem = match std::fs::metadata(&path) {
            Ok(found) if !found.is_file() => "is not a plain file".into(),
            Ok(found) if found.len() != noted => format!("has {} of its {noted} bytes", found.len()),
            Err(error) if error.kind() == ErrorKind::NotFound && noted > 0 && look == Weights::Needed => {
                "is missing".into()
            }
            Ok(_) if look != Weights::Size && !files.weights_digest.is_empty() => match digest_of_file(&path) {
                Ok(found) if found == files.weights_digest => return Ok(None),
                Ok(_) => "was changed after the run had ended".into(),
                Err(error) => unreadable(&path, error)?,
            },
            _ => return Ok(None),
        };
        Ok(Some(Damage { file: "weights.safetensors", problem }))
    }

    /// What a disk does not give back is damage; what may not be read is an error.
    fn file(&self, name: &'static str) -> Result<File> {
        let path = self.path().join(name);
        Ok(match pudica_boolean::plain::bytes(&path) {
            Ok(bytes) => File::Bytes(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => File::None,
            Err(error) => File::Damaged(Damage { file: name, problem: unreadable(&path, error)? }),
        })
    }
}

/// What is wrong with a file that could not be read; an error if that is not the file's fault.
fn unreadable(path: &Path, error: std::io::Error) -> Result<String> {
    match error.kind() {
        ErrorKind::PermissionDenied => Err(Error::io("read", path)(error)),
        _ => Ok(format!("cannot be read ({error})")),
    }
}

/// The text and what it says; in words what is wrong with it otherwise.
fn read_summary(bytes: &[u8]) -> Result<(&str, RunSummary), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("cannot be read ({error})"))?;
    let summary = serde_json::from_str(text).map_err(|error| format!("cannot be read ({error})"))?;
    Ok((text, summary))
}
