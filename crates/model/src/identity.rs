//! The identity of models: what decides their answers.

use std::path::Path;

use pudica_data::digest;
use sha2::{Digest, Sha256};

use crate::ModelResult;

/// The identity of files and of all choices, in words, that decide a model's answers: the first 16 hexadecimal digits of a SHA-256. It does not
/// depend on where the files lie.
pub(crate) fn identity(root: &Path, files: &[&Path], choices: &str) -> ModelResult<String> {
    let files: Vec<_> = files.iter().map(|path| path.to_path_buf()).collect();
    let contents = digest(root, &files)?;
    let all = Sha256::digest(format!("{contents} {choices}"));
    Ok(all.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}
