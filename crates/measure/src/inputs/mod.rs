//! What a model is asked about: read one input at a time, so that memory does not grow with their number.

use std::path::PathBuf;

use pudica_model::{Input, Takes};
use pudica_probe::InputKind;
use serde::Serialize;

use crate::{MeasureError, MeasureResult};

/// Inputs as a user names them.
#[derive(Debug, Clone, Default)]
pub struct InputsRequest {
    /// A folder, a file, `cifar10:test`, `bits:16`.
    pub source: String,
    /// The folder of the catalogue's data sets.
    pub data: Option<PathBuf>,
    /// A file of labels beside an array.
    pub labels: Option<PathBuf>,
    /// The column of a table's text, or two with `+` between them.
    pub text: Option<String>,
    /// The column of a table's classes.
    pub label: Option<String>,
    /// Side of images in pixels; pictures are cut to a square and resized.
    pub size: Option<usize>,
    /// At most so many inputs, drawn at random.
    pub sample: Option<usize>,
    /// Names which.
    pub seed: u64,
}

/// What is known of a set of inputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AboutInputs {
    /// As the user named it.
    pub source: String,
    /// What they are.
    pub kind: InputKind,
    /// The shape of each: `[channels, height, width]`, `[columns]`, `[bits]`; empty where they differ in length.
    pub shape: Vec<usize>,
    /// How many are measured.
    pub count: usize,
    /// How many there are in the source.
    pub available: usize,
    /// The names of the classes; empty where there are no labels.
    pub classes: Vec<String>,
    /// The names of a table's columns, without the one of the classes.
    pub columns: Vec<String>,
    /// The spread (standard deviation) of each column of a table, the unit of noise on it.
    pub spread: Vec<f64>,
    /// The identity of what is read: the first 16 hexadecimal digits of a SHA-256 over files and choices.
    pub digest: String,
}

/// One input and its class, where it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Labelled {
    /// The input.
    pub input: Input,
    /// Its class.
    pub label: Option<usize>,
}

/// Inputs that are read when they are asked for.
pub struct InputSet {
    about: AboutInputs,
}

impl InputSet {
    /// Finds the inputs, and looks at so much of them that all that follows can be trusted. `takes` is what the first model takes: it decides
    /// how large pictures become where the request does not say, and what an array of numbers means.
    pub fn open(request: &InputsRequest, _takes: &Takes) -> MeasureResult<Self> {
        Err(MeasureError::Other(format!("{}: no such inputs", request.source)))
    }

    /// What is known of them.
    pub fn about(&self) -> &AboutInputs {
        &self.about
    }

    /// One of them, `index` < count.
    pub fn read(&self, index: usize) -> MeasureResult<Labelled> {
        Err(MeasureError::Other(format!("there is no input {index}")))
    }

    /// What one is called: its file's name, or its row.
    pub fn name(&self, index: usize) -> String {
        index.to_string()
    }

    /// The values of a table's column at all rows that are measured: what a feature is resampled from.
    pub fn column(&self, _index: usize) -> &[f32] {
        &[]
    }
}
