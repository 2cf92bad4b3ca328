//! What is tried, and the sound files that it begins with.

mod boolean;
mod images;
mod measure;
mod models;
mod recipes;
mod runs;
mod texts;
mod words;

use crate::target::{Reader, Target};
use std::borrow::Cow;
use std::fmt::Display;
use std::path::Path;

/// Every target.
pub static TARGETS: [Target; 32] = [
    boolean::TABLE,
    boolean::EXPRESSION,
    boolean::FUNCTION,
    words::NUDGE,
    words::MODEL_REQUEST,
    words::POLYNOMIAL,
    words::AUTOMATON,
    words::SMALL,
    words::SLURM,
    recipes::RECIPE,
    recipes::OVERRIDES,
    recipes::SETTINGS,
    runs::SWEEP,
    runs::REPORT,
    runs::CHECKPOINT,
    runs::WEIGHTS,
    images::IDX,
    images::CIFAR,
    images::SVHN,
    images::NPY,
    images::PICTURE,
    texts::TABLE,
    texts::OWN,
    texts::TOKENIZER,
    texts::VOCABULARY,
    models::ONNX,
    models::PYTORCH,
    models::SAFETENSORS,
    models::HUGGING_FACE,
    measure::INPUTS,
    measure::MEASURED,
    measure::CONTINUED,
];

/// Bytes as a text: what is none becomes one.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What a reader says, without what it gives.
fn said<T, E: Display>(result: Result<T, E>) -> Result<(), String> {
    result.map(|_| ()).map_err(|error| error.to_string())
}

/// Writes a file of the scratch folder. A disk in memory that is full is no fault of a reader.
fn write(path: &Path, bytes: &[u8]) {
    if let Err(error) = std::fs::write(path, bytes) {
        eprintln!("cannot write {}: {error}", path.display());
        std::process::exit(3);
    }
}

/// The reader of one file, which is written under this name whenever it is to be read.
fn file_reader(folder: &Path, name: &str, mut read: impl FnMut(&Path) -> Result<(), String> + 'static) -> Reader {
    let path = folder.join(name);
    Box::new(move |_, bytes| {
        write(&path, bytes);
        read(&path)
    })
}

/// A file that travels with the sources.
macro_rules! file {
    ($path:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $path)).as_slice()
    };
}
use file;
