//! What a model is asked about: read one input at a time, so that memory does not grow with their number.
//!
//! One file for each kind of source; [`InputSet::open`] finds which is meant.

mod array;
mod arrays;
mod bits;
mod catalogue;
mod choice;
mod classes;
mod fit;
mod folder;
mod held;
mod npz;
mod table;

use std::path::{Path, PathBuf};

use pudica_boolean::did_you_mean;
use pudica_data::images::DATA_SETS;
use pudica_data::text::TEXT_SETS;
use pudica_data::{FileError, identity};
use pudica_model::{Input, Takes};
use pudica_probe::InputKind;
use serde::Serialize;

use crate::{MOST_BITS, MeasureError, MeasureResult};
use choice::Choice;
pub use held::Held;

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
    /// What the first model calls its classes, where it says so: labels of these names are its classes.
    pub class_names: Vec<String>,
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
    /// What a reader should know: an axis that was guessed, a column that was left out. Whole sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl AboutInputs {
    /// Whether they are all strings of so many bits, in the order of a truth table: then nothing is sampled.
    pub fn is_every_string(&self) -> bool {
        let all = |n: usize| n <= MOST_BITS && self.count == 1 << n;
        self.source.starts_with("bits:") && self.shape.first().copied().is_some_and(all)
    }
}

/// Refuses inputs of a kind that a model does not take.
pub(crate) fn refuse_unfit(source: &str, kind: InputKind, takes: &Takes, model: &str) -> MeasureResult<()> {
    let fits = match takes {
        Takes::Images { .. } => kind == InputKind::Images,
        Takes::Rows { .. } => matches!(kind, InputKind::Numbers | InputKind::Bits),
        Takes::Tokens { .. } if kind == InputKind::Texts => {
            return Err(MeasureError::Other(format!(
                "{source}: these inputs are texts, but {model} takes tokens: what makes one of the other is missing (tokenizer.json in \
                 the model's folder; for a run of pudica's own, bpe in the folder that --data names)"
            )));
        }
        // A model that makes tokens itself may take them, too.
        Takes::Tokens { .. } | Takes::Texts => !matches!(kind, InputKind::Images | InputKind::Numbers),
        Takes::Anything => true,
    };
    let problem = || format!("{source}: these inputs are {}, but {model} takes {takes}", kind.name());
    if fits { Ok(()) } else { Err(MeasureError::Other(problem())) }
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
    inputs: Box<dyn Inputs>,
}

/// What a kind of source gives, of those inputs that were chosen: `index` < count.
trait Inputs: Send + Sync {
    /// One input and its class.
    fn read(&self, index: usize) -> MeasureResult<Labelled>;

    /// What it is called.
    fn name(&self, index: usize) -> String;

    /// A table's column.
    fn column(&self, _: usize) -> &[f32] {
        &[]
    }
}

/// A source that was opened.
struct Opened {
    kind: InputKind,
    shape: Vec<usize>,
    choice: Choice,
    classes: Vec<String>,
    columns: Vec<String>,
    spread: Vec<f64>,
    notes: Vec<String>,
    /// Digests of files and choices that decide what is read, other than which inputs were drawn.
    identity: Vec<String>,
    inputs: Box<dyn Inputs>,
}

impl InputSet {
    /// Finds the inputs, and looks at so much of them that all that follows can be trusted. `takes` is what the first model takes: it decides
    /// how large pictures become where the request does not say, and what an array of numbers means.
    pub fn open(request: &InputsRequest, takes: &Takes) -> MeasureResult<Self> {
        if request.sample == Some(0) {
            return Err(MeasureError::Other("--sample 0: at least one input is needed".into()));
        }
        Self::checked(request.open(takes)?, request, takes)
    }

    /// Inputs that somebody holds in memory, with their classes where they are known; of the request, only what they are called, the sample
    /// and the names of classes count.
    pub fn of(held: Held, labels: Option<Vec<usize>>, request: &InputsRequest, takes: &Takes) -> MeasureResult<Self> {
        Self::checked(held.open(labels, request, takes)?, request, takes)
    }

    /// Refuses what the model does not take.
    fn checked(opened: Opened, request: &InputsRequest, takes: &Takes) -> MeasureResult<Self> {
        let kind = opened.kind;
        refuse_unfit(&request.source, kind, takes, "the model")?;
        let drawn = opened.choice.identity();
        let about = AboutInputs {
            source: request.source.clone(),
            kind: opened.kind,
            shape: opened.shape,
            count: opened.choice.count(),
            available: opened.choice.available(),
            classes: opened.classes,
            columns: opened.columns,
            spread: opened.spread,
            digest: identity(opened.identity.iter().chain([&drawn])),
            notes: opened.notes,
        };
        Ok(Self { about, inputs: opened.inputs })
    }

    /// What is known of them.
    pub fn about(&self) -> &AboutInputs {
        &self.about
    }

    /// One of them, `index` < count.
    pub fn read(&self, index: usize) -> MeasureResult<Labelled> {
        if index >= self.about.count {
            return Err(MeasureError::Other(format!("there is no input {index}: there are {}", self.about.count)));
        }
        self.inputs.read(index)
    }

    /// What one is called: its file's name, or its row.
    pub fn name(&self, index: usize) -> String {
        if index < self.about.count { self.inputs.name(index) } else { index.to_string() }
    }

    /// The values of a table's column at all rows that are measured: what a feature is resampled from.
    pub fn column(&self, index: usize) -> &[f32] {
        self.inputs.column(index)
    }
}

impl InputsRequest {
    fn open(&self, takes: &Takes) -> MeasureResult<Opened> {
        let source = self.source.as_str();
        if let Some(bits) = source.strip_prefix("bits:") {
            self.refuse("bits", &["--labels", "--text", "--label", "--size"])?;
            return bits::open(self, bits, takes);
        }
        // A name of the catalogue is that data set; ./cifar10 is a folder.
        let (name, split) = source.split_once(':').map_or((source, None), |(name, split)| (name, Some(split)));
        if let Some(set) = DATA_SETS.iter().find(|set| set.name == name) {
            self.refuse("a data set", &["--labels", "--text", "--label"])?;
            return catalogue::open_images(self, set, catalogue::split(source, split)?, takes);
        }
        if let Some(set) = TEXT_SETS.iter().find(|set| set.name == name) {
            self.refuse("a data set of texts", &["--labels", "--text", "--label", "--size"])?;
            return catalogue::open_texts(self, set, catalogue::split(source, split)?);
        }
        let path = self.path()?;
        let ends = |endings: &[&str]| {
            let name = path.to_string_lossy().to_lowercase();
            endings.iter().any(|ending| name.ends_with(ending))
        };
        match () {
            () if path.is_dir() || ends(&[".png", ".jpg", ".jpeg"]) => {
                self.refuse("pictures", &["--labels", "--text", "--label"])?;
                folder::open(self, &path, takes)
            }
            () if ends(&[".npy", ".npz"]) => {
                self.refuse("an array", &["--text", "--label"])?;
                arrays::open(self, &path, takes)
            }
            () if ends(&[".tsv", ".csv", ".txt", ".tsv.gz", ".csv.gz", ".txt.gz"]) => {
                self.refuse("a table", &["--labels", "--size"])?;
                table::open(self, &path, takes)
            }
            () => Err(FileError::new(
                &path,
                "inputs of this kind are not read here: a folder of pictures, .png, .jpg, .npy, .npz, .tsv, .csv and .txt are",
            )
            .into()),
        }
    }

    /// Where the inputs lie: from here, or from the data folder.
    fn path(&self) -> MeasureResult<PathBuf> {
        let here = PathBuf::from(&self.source);
        let there = self.data.as_ref().map(|data| data.join(&self.source));
        if let Some(found) = [Some(here), there].into_iter().flatten().find(|path| path.exists()) {
            // A pipe may never begin, a device never end, and neither could be read again to continue.
            return match found.is_file() || found.is_dir() {
                true => Ok(found),
                false => Err(FileError::new(&found, "is not a plain file").into()),
            };
        }
        let names: Vec<&str> =
            DATA_SETS.iter().map(|set| set.name).chain(TEXT_SETS.iter().map(|set| set.name)).collect();
        let name = self.source.split(':').next().unwrap_or_default();
        Err(MeasureError::Other(format!(
            "{}: there is no such file or folder{}; inputs are a folder of pictures, a .npy, .npz, .tsv or .csv file, bits:16, or a data set: {}",
            if self.source.is_empty() { "--inputs ''" } else { &self.source },
            did_you_mean(name, names.iter().copied()),
            names.join(", ")
        )))
    }

    /// Refuses options that mean nothing for such a source.
    fn refuse(&self, what: &str, options: &[&str]) -> MeasureResult<()> {
        let given = [
            ("--labels", self.labels.is_some()),
            ("--text", self.text.is_some()),
            ("--label", self.label.is_some()),
            ("--size", self.size.is_some()),
        ];
        match given.iter().find(|(option, given)| *given && options.contains(option)) {
            Some((option, _)) => {
                Err(MeasureError::Other(format!("{}: {option} says nothing about {what}; leave it out", self.source)))
            }
            None => Ok(()),
        }
    }
}

/// The digest of one file.
fn digest_of(path: &Path) -> MeasureResult<String> {
    Ok(pudica_data::digest(path.parent().unwrap_or(path), &[path.to_path_buf()])?)
}
