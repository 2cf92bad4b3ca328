//! Which model is meant, and how it is to be read.

use std::fmt;
use std::path::{Path, PathBuf};

use pudica_boolean::{did_you_mean, shortened};
use pudica_nn::Device;
use serde::{Deserialize, Serialize};

use crate::{ModelError, ModelResult, Normalisation};

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file or a folder.
    File(PathBuf),
    /// A program that answers on its standard output.
    Program(String),
}

/// A model as a user names it: `PATH`, or `PATH:key=value,key=value`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// Where it comes from.
    pub source: Source,
    /// How it is to be read.
    pub choices: Choices,
}

/// How a model is to be read; what is `None` is found out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choices {
    /// What it is called in tables.
    pub name: Option<String>,
    /// The architecture of a checkpoint: `resnet20`.
    pub architecture: Option<String>,
    /// What computes an ONNX file.
    pub runtime: Option<Runtime>,
    /// The input of an ONNX file that has several.
    pub input: Option<String>,
    /// The output of an ONNX file that has several.
    pub output: Option<String>,
    /// Whether images are [height, width, channels].
    pub channels_last: Option<bool>,
    /// What is done to images first.
    pub normalisation: Option<Normalisation>,
    /// The normalisation of the inputs, which holds where neither the user nor the model's own files give it one.
    pub inputs_normalisation: Option<Normalisation>,
    /// What its outputs are.
    pub outputs: Option<Outputs>,
    /// Whether bits are given as -1 and 1 instead of 0 and 1.
    pub signs: bool,
    /// Inputs at a time.
    pub batch: Option<usize>,
    /// Where it computes: `cpu`, `cuda`, `torch`.
    pub device: Option<String>,
    /// Channels, height and width of the images it will be given, where they are known: some checkpoints do not tell.
    pub image: Option<[usize; 3]>,
    /// How long a program may take for one batch, in seconds.
    pub timeout: Option<f64>,
}

/// What computes an ONNX file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// The engine inside this program.
    Tract,
    /// ONNX Runtime, where its library is found.
    Ort,
}

/// What a model's outputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outputs {
    /// A score for each class, of any size (logits). One output alone: positive means class 1.
    Logits,
    /// A probability for each class. One output alone: above 1/2 means class 1.
    Probabilities,
}

impl fmt::Display for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Logits => "logits",
            Self::Probabilities => "probabilities",
        })
    }
}

/// A name stands in every row of a table.
const LONGEST_NAME: usize = 100;

/// The keys of [`ModelRequest::parse`].
const KEYS: [&str; 12] = [
    "name",
    "architecture",
    "runtime",
    "input",
    "output",
    "layout",
    "normalise",
    "mean",
    "std",
    "outputs",
    "bits",
    "batch",
];

impl ModelRequest {
    /// Reads `PATH` or `PATH:key=value,key=value`; what the text does not say is taken from `common`. A path that exists is taken whole.
    pub fn parse(text: &str, common: &Choices) -> ModelResult<Self> {
        let whole = || Self { source: Source::File(text.into()), choices: common.clone() };
        let Some((path, settings)) = text.rsplit_once(':').filter(|(_, settings)| settings.contains('=')) else {
            return Ok(whole());
        };
        if Path::new(text).exists() {
            return Ok(whole());
        }
        let mut request = Self { source: Source::File(path.into()), choices: common.clone() };
        for (key, value) in pairs(settings).map_err(|problem| ModelError::Other(format!("{text}: {problem}")))? {
            let set = request.choices.set(&key, &value);
            set.map_err(|problem| ModelError::Other(format!("{text}: {problem}")))?;
        }
        Ok(request)
    }
}

impl Choices {
    /// Where a network of pudica's own layers computes.
    pub(crate) fn network_device(&self) -> ModelResult<Device> {
        Ok(Device::parse(self.device.as_deref().unwrap_or("cpu"))?)
    }

    /// The normalisation that the user chose for this model, else the one of its `own` files, else the inputs'; where there is none, a note says so.
    pub(crate) fn normalisation_or(&self, own: Option<Normalisation>, notes: &mut Vec<String>) -> Normalisation {
        let found = self.normalisation.clone().or(own).or_else(|| self.inputs_normalisation.clone());
        found.unwrap_or_else(|| {
            notes.push("The network is given pixels from 0 to 1 as they are, for want of a normalisation.".into());
            Normalisation { mean: vec![0.0], std: vec![1.0] }
        })
    }

    /// What a model at this path is called: as the user says, or by the last part of the path.
    pub fn name_of(&self, path: &Path) -> String {
        let last = || path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        self.name.clone().unwrap_or_else(last)
    }

    /// Sets one of them by its name.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "name" if value.is_empty() => return Err("name=: give a name, or leave it out".into()),
            "name" if value.chars().count() > LONGEST_NAME => {
                return Err(format!("name={}: at most {LONGEST_NAME} characters", shortened(value, 20)));
            }
            "name" => self.name = Some(value.into()),
            "architecture" => self.architecture = Some(value.into()),
            "runtime" => self.runtime = Some(one_of(key, value, [("tract", Runtime::Tract), ("ort", Runtime::Ort)])?),
            "input" => self.input = Some(value.into()),
            "output" => self.output = Some(value.into()),
            "layout" => self.channels_last = Some(one_of(key, value, [("nchw", false), ("nhwc", true)])?),
            "outputs" => {
                let known = [("logits", Outputs::Logits), ("probabilities", Outputs::Probabilities)];
                self.outputs = Some(one_of(key, value, known)?);
            }
            "bits" => self.signs = one_of(key, value, [("01", false), ("signs", true)])?,
            "batch" => {
                let batch = value.parse().ok().filter(|batch| (1..=65536).contains(batch));
                self.batch = Some(batch.ok_or_else(|| format!("batch={value}: give a whole number from 1 to 65536"))?);
            }
            "normalise" => {
                let preset = Normalisation::preset(value).ok_or_else(|| {
                    let names = Normalisation::PRESETS.map(|(name, ..)| name);
                    format!("normalise={value}{}: there are {}", did_you_mean(value, names), names.join(", "))
                })?;
                self.normalisation = Some(preset);
            }
            "mean" | "std" => {
                let numbers: Option<Vec<f32>> = value.split('/').map(|number| number.trim().parse().ok()).collect();
                let numbers = numbers.filter(|all| all.iter().all(|x| x.is_finite() && (key == "mean" || *x > 0.0)));
                let numbers = numbers.ok_or_else(|| {
                    format!("{key}={value}: give a number, or one for each channel with / between them")
                })?;
                let found = self.normalisation.get_or_insert(Normalisation { mean: vec![0.0], std: vec![1.0] });
                *(if key == "mean" { &mut found.mean } else { &mut found.std }) = numbers;
            }
            _ => {
                return Err(format!(
                    "a model has no setting '{key}'{}; there are {}",
                    did_you_mean(key, KEYS),
                    KEYS.join(", ")
                ));
            }
        }
        Ok(())
    }
}

fn one_of<T: Copy, const N: usize>(key: &str, value: &str, known: [(&'static str, T); N]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == value).map(|(_, choice)| *choice);
    found.ok_or_else(|| format!("{key}={value}: give {}", known.map(|(name, _)| name).join(" or ")))
}

/// The settings of `key=value,key=value`. A part without `=` belongs to the value before it: `variance=0.1,1,5` is one setting.
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut found: Vec<(String, String)> = Vec::new();
    for part in text.split(',') {
        match (part.split_once('='), found.last_mut()) {
            (Some((key, value)), _) => found.push((key.trim().into(), value.trim().into())),
            (None, Some((_, value))) => *value = format!("{value},{}", part.trim()),
            (None, None) => return Err(format!("'{part}' is no setting: write key=value")),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_follow_a_path() {
        let common = Choices { runtime: Some(Runtime::Tract), ..Choices::default() };
        let plain = ModelRequest::parse("a/net.onnx", &common).unwrap();
        assert_eq!((plain.source, plain.choices), (Source::File("a/net.onnx".into()), common.clone()));
        let text = "r20.th:architecture=resnet20,normalise=imagenet,name=R 20,outputs=logits";
        let found = ModelRequest::parse(text, &common).unwrap();
        assert_eq!(found.source, Source::File("r20.th".into()));
        assert_eq!(found.choices.name.as_deref(), Some("R 20"));
        assert_eq!(found.choices.normalisation, Normalisation::preset("imagenet"));
        assert_eq!(found.choices.runtime, Some(Runtime::Tract));
        let refused = |text| ModelRequest::parse(text, &common).unwrap_err().to_string();
        assert!(refused("x:nam=y").contains("did you mean 'name'"));
        assert!(refused("x:layout=z").contains("nchw or nhwc"));
        assert!(refused("x:std=0").contains("give a number"));
    }

    #[test]
    fn a_list_is_one_value() {
        let expected =
            [("size", "4"), ("variance", "0.1,1,5")].map(|(key, value)| (key.to_string(), value.to_string()));
        assert_eq!(pairs("size=4,variance=0.1,1,5").unwrap(), expected);
        assert!(pairs("4").is_err());
    }
}
