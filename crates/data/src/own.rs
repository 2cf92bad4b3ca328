//! What own data of all kinds have in common: parts with names, a division by seed, an identity.

use crate::{FileError, FileResult, Stream};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The names that the part for tests may have; the first that is there is taken. GLUE's `test` has no labels, so it is the last.
pub(crate) const TEST_NAMES: [&str; 5] = ["dev", "validation", "valid", "val", "test"];

/// A data set in its two parts, with the names of its classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divided<T> {
    /// What networks are trained on.
    pub train: T,
    /// What they are tested on.
    pub test: T,
    /// The name of each class, in the order of their numbers.
    pub classes: Vec<String>,
}

/// How a set that has no part for tests is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Division {
    /// The fraction of each class that is for tests, between 0 and 1.
    pub fraction: f64,
    /// Names which inputs these are.
    pub seed: u64,
}

impl Division {
    /// The inputs for training and those for tests, in order. Of every class the same fraction is for tests, at least one input and never all.
    pub(crate) fn rows(&self, labels: &[usize], classes: &[String]) -> Result<(Vec<usize>, Vec<usize>), String> {
        let mut of_class = vec![Vec::new(); classes.len()];
        labels.iter().enumerate().for_each(|(row, label)| of_class[*label].push(row));
        let (mut train, mut test) = (Vec::new(), Vec::new());
        for (class, mut rows) in of_class.into_iter().enumerate() {
            if rows.len() < 2 {
                let (name, found) = (&classes[class], rows.len());
                return Err(format!(
                    "too few of class '{name}': {found}, but training and tests need at least one each"
                ));
            }
            Stream::new(self.seed, "own/division", class as u64).shuffle(&mut rows);
            let tested = (self.fraction * rows.len() as f64).round().clamp(1.0, (rows.len() - 1) as f64) as usize;
            train.extend_from_slice(&rows[tested..]);
            test.extend_from_slice(&rows[..tested]);
        }
        train.sort_unstable();
        test.sort_unstable();
        Ok((train, test))
    }
}

/// The identity of files that lie in `root`: the first 16 hexadecimal digits of the SHA-256 of their names and contents. It does not depend on
/// where `root` lies.
pub fn digest(root: &Path, files: &[PathBuf]) -> FileResult<String> {
    let mut all = Sha256::new();
    for path in files {
        let wrong = |error: std::io::Error| FileError::new(path, format!("cannot be read: {error}"));
        // A device or a pipe may never end, or never begin.
        if !std::fs::metadata(path).map_err(wrong)?.is_file() {
            return Err(FileError::new(path, "is not a plain file"));
        }
        let (mut own, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
        let mut file = std::fs::File::open(path).map_err(wrong)?;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => own.update(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(wrong(error)),
            }
        }
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
        all.update((name.len() as u64).to_le_bytes());
        all.update(name.as_bytes());
        all.update(own.finalize());
    }
    Ok(first_digits(all))
}

/// The identity of choices, digests and the like: the first 16 hexadecimal digits of the SHA-256 of these texts and their lengths.
pub fn identity<T: AsRef<str>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut all = Sha256::new();
    for part in parts {
        all.update((part.as_ref().len() as u64).to_le_bytes());
        all.update(part.as_ref().as_bytes());
    }
    first_digits(all)
}

fn first_digits(all: Sha256) -> String {
    all.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// What lies in a folder, by name; what is hidden, or made by a system for itself (`.git`, `__MACOSX`), is left out.
pub fn entries(folder: &Path) -> FileResult<Vec<PathBuf>> {
    let wrong = |error: std::io::Error| FileError::new(folder, format!("cannot be listed: {error}"));
    let listed = std::fs::read_dir(folder).map_err(wrong)?;
    let mut paths: Vec<PathBuf> =
        listed.map(|entry| entry.map(|e| e.path()).map_err(wrong)).collect::<Result<_, _>>()?;
    paths.retain(|path| !name_of(path).starts_with('.') && name_of(path) != "__MACOSX");
    paths.sort();
    Ok(paths)
}

/// The last part of a path.
pub fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_divided_alike_and_by_the_seed() {
        let labels: Vec<usize> = (0..100).map(|row| usize::from(row % 10 == 0)).collect();
        let classes = ["many".to_string(), "few".to_string()];
        let rows = |fraction, seed| Division { fraction, seed }.rows(&labels, &classes).unwrap();
        let (train, test) = rows(0.2, 0);
        let few = |rows: &[usize]| rows.iter().filter(|row| labels[**row] == 1).count();
        assert_eq!((train.len(), test.len(), few(&train), few(&test)), (80, 20, 8, 2));
        let mut all = [train.clone(), test.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        assert_eq!(rows(0.2, 0), (train, test.clone()));
        assert_ne!(rows(0.2, 1).1, test);
        // Never all, never none.
        assert_eq!((few(&rows(0.99, 0).0), few(&rows(0.001, 0).1)), (1, 1));
        let refused = Division { fraction: 0.2, seed: 0 }.rows(&[0, 0, 1], &classes).unwrap_err();
        assert!(refused.contains("too few of class 'few': 1"), "{refused}");
    }

    #[test]
    fn the_identity_is_that_of_names_and_contents() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a/x"), folder.path().join("b/x"));
        for (path, content) in [(&a, "same"), (&b, "same")] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let of = |root: &Path, file: &PathBuf| digest(root, std::slice::from_ref(file)).unwrap();
        let first = of(&folder.path().join("a"), &a);
        assert_eq!(first.len(), 16);
        assert_eq!(first, of(&folder.path().join("b"), &b), "wherever it lies");
        assert_ne!(first, of(folder.path(), &a), "another name");
        std::fs::write(&b, "Same").unwrap();
        assert_ne!(first, of(&folder.path().join("b"), &b), "another content");
    }
}
