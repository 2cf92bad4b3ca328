//! Other people's networks, each as a [`Model`]: it answers to inputs with scores, and says in one sentence what it cannot give.
//!
//! [`open`] finds the door by what lies at a path: an ONNX file, a PyTorch checkpoint, a Hugging Face folder; or it starts a program.
//! Networks of our own that somebody trained with `pudica run` come through `pudica_measure`, which knows run folders.

mod batches;
mod checkpoint;
mod error;
mod hugging_face;
mod input;
pub mod native;
pub mod onnx;
mod program;
mod request;

pub use batches::{Batches, Edits, make_ahead};
pub use error::{ModelError, ModelResult};
pub use input::{Image, Input, Normalisation, Takes};
pub use request::{Choices, ModelRequest, Outputs, Runtime, Source, pairs};

use pudica_nn::Weights;
use pudica_statistics::Estimate;
use serde::{Deserialize, Serialize};

/// What is known of a model before it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// What it is called in tables: the file's name, or what the user calls it.
    pub name: String,
    /// What computes it, with its version: `tract 0.23.9`, `ONNX Runtime 1.31.1`, `pudica`, `program`.
    pub runtime: String,
    /// What it takes.
    pub takes: Takes,
    /// What its outputs are.
    pub outputs: Outputs,
    /// How many classes it tells apart; 1 where it gives one number.
    pub classes: usize,
    /// What its classes are called, where its files say so: one name for each, or none at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_names: Vec<String>,
    /// How many weights it has, where that is known.
    pub parameters: Option<u64>,
    /// The identity of its files and of all choices that decide its answers: the first 16 hexadecimal digits of a SHA-256. Results of another
    /// identity are not continued.
    pub digest: String,
    /// What a reader should know: an axis that was guessed, an engine that was chosen for a reason. Whole sentences.
    pub notes: Vec<String>,
}

/// Scores \[inputs, classes\].
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Numbers per input.
    pub classes: usize,
    /// Input after input.
    pub values: Vec<f32>,
}

impl Scores {
    /// The scores of each input, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.classes.max(1))
    }
}

/// The curvature of the mean cross-entropy in the weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Curvature {
    /// The trace of the Hessian, by Hutchinson's estimate.
    pub trace: Estimate,
    /// Its largest eigenvalue.
    pub top_eigenvalue: Option<f64>,
    /// How much a product with the Hessian may be off because derivatives are differences, as a fraction.
    pub step_error: f64,
}

/// A network that somebody brings. What it cannot give it refuses in one sentence ([`ModelError::Lacks`]).
pub trait Model: Send {
    /// What is known of it.
    fn about(&self) -> &About;

    /// The scores of these inputs, one row for each, in order.
    fn scores(&mut self, inputs: &[Input]) -> ModelResult<Scores>;

    /// The scores of batches, each given to `take`, in order, until that says `false`.
    fn scores_in_turn(&mut self, batches: &dyn Batches, take: &mut dyn FnMut(ModelResult<Scores>) -> bool) {
        make_ahead(batches.count(), |at| batches.made(at), |inputs| take(self.scores(&inputs)));
    }

    /// Inputs to give it at a time.
    fn batch(&self) -> usize {
        64
    }

    /// What it does to images first, where it is known: the unit of noise on them.
    fn normalisation(&self) -> Option<Normalisation> {
        None
    }

    /// Its trained weights under their names.
    fn weights(&self) -> ModelResult<Weights> {
        Err(self.lacks("weights that can be reached"))
    }

    /// The same model with other weights, of the names and shapes of [`Model::weights`].
    fn with_weights(&self, _: &Weights) -> ModelResult<Box<dyn Model>> {
        Err(self.lacks("weights that can be reached"))
    }

    /// The gradient of each input's cross-entropy with respect to its pixels or features, in the units of the input (before normalisation).
    fn input_gradient(&mut self, _: &[Input], _labels: &[usize]) -> ModelResult<Vec<Vec<f32>>> {
        Err(self.lacks("gradients"))
    }

    /// The curvature of the mean cross-entropy over these inputs, with `draws` random directions named by `seed`.
    fn curvature(&mut self, _: &[Input], _labels: &[usize], _draws: usize, _seed: u64) -> ModelResult<Curvature> {
        Err(self.lacks("gradients"))
    }

    /// The tokens of a text, special ones included.
    fn tokens(&self, _: &Input) -> ModelResult<Vec<u32>> {
        Err(self.lacks("tokens that can be reached"))
    }

    /// Features of a token's embedding, where noise can be added to embeddings ([`Input::Tokens`] with a touch).
    fn embedding_width(&self) -> ModelResult<usize> {
        Err(self.lacks("embeddings that can be reached"))
    }

    /// The refusal of what it has not.
    fn lacks(&self, what: &'static str) -> ModelError {
        ModelError::Lacks { model: self.about().name.clone(), runtime: self.about().runtime.clone(), what }
    }
}

/// Opens what a request names.
pub fn open(request: &ModelRequest) -> ModelResult<Box<dyn Model>> {
    match &request.source {
        Source::File(path) if path.extension().is_some_and(|name| name == "onnx") => onnx::open(path, &request.choices),
        Source::File(path) if hugging_face::is_folder(path) => hugging_face::open(path, &request.choices),
        Source::File(path) if checkpoint::is_checkpoint(path) => checkpoint::open(path, &request.choices),
        Source::File(path) => Err(unknown(path)),
        Source::Program(command) => program::open(command, &request.choices),
    }
}

/// Why what lies at a path is no model.
fn unknown(path: &std::path::Path) -> ModelError {
    let has = |name: &str| path.join(name).is_file();
    let problem = match path.is_dir() {
        _ if path.as_os_str().is_empty() => {
            return ModelError::Other("a model's name is empty: give a file, a folder, or --program COMMAND".into());
        }
        _ if !path.exists() => "there is no such file or folder",
        false if !path.is_file() => "is not a plain file",
        true if has("sweep.json") => "is a folder of many runs; name one of those in its folder runs",
        true if has("config.json") => {
            "has a config.json but no weights: the run is not finished, or was copied without them"
        }
        true => "is a folder without a config.json, so neither a run of pudica's nor a Hugging Face model",
        false => {
            "is no model that is known here: .onnx, a PyTorch checkpoint (.pt, .pth, .th, .bin), .safetensors, or a folder"
        }
    };
    ModelError::file(path, problem)
}
