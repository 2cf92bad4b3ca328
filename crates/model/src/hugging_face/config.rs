//! `config.json`: sizes and names.

use std::path::{Path, PathBuf};

use pudica_nn::Nonlinearity;
use serde_json::{Map, Value};

use crate::{ModelError, ModelResult};

/// Larger files are not read: an index of shards of the largest models has a few megabytes.
const LARGEST_FILE: u64 = 64 << 20;

/// Sizes above are no network's; products of them would overflow.
const LARGEST: u64 = 1 << 20;

/// The most layers: the largest models there are have some 130.
const MOST_LAYERS: usize = 1000;

/// A JSON object of a file, whose entries are asked for by name.
pub(super) struct Config {
    path: PathBuf,
    entries: Map<String, Value>,
}

impl Config {
    pub(super) fn read(path: &Path) -> ModelResult<Self> {
        let wrong = |problem: String| ModelError::file(path, problem);
        let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
        let about = std::fs::metadata(path).map_err(unreadable)?;
        if !about.is_file() || about.len() > LARGEST_FILE {
            return Err(wrong("is not a file of a few kilobytes, as such files are".into()));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let entries =
            serde_json::from_slice(&bytes).map_err(|error| wrong(format!("is not a JSON object: {error}")))?;
        Ok(Self { path: path.into(), entries })
    }

    /// A sentence about the file.
    pub(super) fn wrong(&self, problem: impl Into<String>) -> ModelError {
        ModelError::file(&self.path, problem)
    }

    /// What stands under a name; what is null is not there.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.entries.get(name).filter(|value| !value.is_null())
    }

    /// An object under a name.
    pub(super) fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.get(name)?.as_object()
    }

    /// The class of the model in Python.
    pub(super) fn architecture(&self) -> ModelResult<String> {
        let named = self.get("architectures").and_then(|list| list.get(0)).and_then(Value::as_str);
        Ok(named.ok_or_else(|| self.wrong("does not name its architecture (\"architectures\")"))?.to_string())
    }

    /// A size that must be there.
    pub(super) fn size(&self, name: &str) -> ModelResult<usize> {
        self.size_or(name, None)
    }

    /// A size, or what holds where it is not there.
    pub(super) fn size_or(&self, name: &str, default: Option<usize>) -> ModelResult<usize> {
        let size = match (self.get(name), default) {
            (None, Some(default)) => return Ok(default),
            (None, None) => return Err(self.wrong(format!("has no \"{name}\""))),
            (Some(value), _) => value.as_u64().filter(|size| (1..=LARGEST).contains(size)),
        };
        Ok(size.ok_or_else(|| self.wrong(format!("\"{name}\" is not a number from 1 to {LARGEST}")))? as usize)
    }

    /// How many layers there are: each is built before the weights are compared with it.
    pub(super) fn layers(&self, name: &str) -> ModelResult<usize> {
        match self.size(name)? {
            layers @ ..=MOST_LAYERS => Ok(layers),
            layers => {
                Err(self.wrong(format!("\"{name}\" is {layers}, and no network read here has more than {MOST_LAYERS}")))
            }
        }
    }

    /// A real number, or what holds where it is not there.
    pub(super) fn number_or(&self, name: &str, default: f64) -> ModelResult<f64> {
        let number = self.get(name).map_or(Some(default), Value::as_f64);
        number.ok_or_else(|| self.wrong(format!("\"{name}\" is not a number")))
    }

    /// Yes or no, or what holds where it is not there.
    pub(super) fn flag_or(&self, name: &str, default: bool) -> ModelResult<bool> {
        let flag = self.get(name).map_or(Some(default), Value::as_bool);
        flag.ok_or_else(|| self.wrong(format!("\"{name}\" is neither true nor false")))
    }

    /// The number of a token.
    pub(super) fn token(&self, name: &str) -> Option<u32> {
        self.get(name)?.as_u64()?.try_into().ok()
    }

    /// What stands between linear layers, or what holds where it is not there.
    pub(super) fn activation(&self, name: &str, default: &str) -> ModelResult<Nonlinearity> {
        match self.get(name).map_or(Some(default), Value::as_str) {
            Some("gelu") => Ok(Nonlinearity::Gelu),
            Some("gelu_new" | "gelu_pytorch_tanh" | "gelu_fast") => Ok(Nonlinearity::GeluByTanh),
            Some("relu") => Ok(Nonlinearity::Relu),
            other => {
                let other = other.unwrap_or("no word");
                Err(self.wrong(format!("\"{name}\" is {other}; there are gelu, gelu_new and relu")))
            }
        }
    }

    /// How many classes there are: as many as names for them, two where nothing is said.
    pub(super) fn classes(&self) -> ModelResult<usize> {
        let classes = match self.object("id2label") {
            Some(names) => names.len(),
            None => self.size_or("num_labels", Some(2))?,
        };
        match classes {
            0 | 1 => Err(self.wrong("is of a model that gives one number, not classes to tell apart")),
            classes => Ok(classes),
        }
    }

    /// The classes' names, in order; none where they are only numbered.
    pub(super) fn class_names(&self) -> Vec<String> {
        let Some(names) = self.object("id2label") else { return Vec::new() };
        let name = |class: usize| names.get(&class.to_string()).and_then(Value::as_str).map(String::from);
        let found: Option<Vec<String>> = (0..names.len()).map(name).collect();
        found.filter(|names| !names.iter().all(|name| name.starts_with("LABEL_"))).unwrap_or_default()
    }
}
