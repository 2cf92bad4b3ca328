//! CIFAR-10-C's files: `NAME.npy` with the test images at severities 1 to 5, one block after the other, and `labels.npy`.

use super::Images;
use super::npy::{count_of_npy, read_npy};
use crate::corruptions::Corruption;
use crate::{FileError, FileResult};
use std::path::Path;

/// How many severities there are.
const SEVERITIES: u64 = 5;

/// The images of one corruption at one severity (1 to 5) from a folder with the official files, or with those of `pudica data corrupt`.
/// Each of the five blocks is a fifth of the file: 10,000 images in the official ones.
pub fn read_cifar10_c(folder: &Path, corruption: Corruption, severity: usize) -> FileResult<Images> {
    let path = folder.join(format!("{}.npy", corruption.name()));
    let severity = severity as u64;
    if !(1..=SEVERITIES).contains(&severity) {
        return Err(FileError::new(&path, format!("a severity of {severity}; 1 to {SEVERITIES} are defined")));
    }
    let count = count_of_npy(&path)?;
    if count == 0 || !count.is_multiple_of(SEVERITIES) {
        let problem = format!("{count} images are not {SEVERITIES} blocks of one size, one for each severity");
        return Err(FileError::new(&path, problem));
    }
    let block = count / SEVERITIES;
    read_npy(&path, &folder.join("labels.npy"), Some((severity - 1) * block..severity * block))
}
