//! The measurements of one model and one nudge as they lie in a file: what was done stays done, whenever the process ends.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use pudica_lab::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::MeasureResult;

/// Lines of JSON, one for each part of the work that is done. The first line says what the work is.
pub struct WorkFile<T> {
    path: PathBuf,
    /// What was done, in order.
    pub parts: Vec<T>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    work: String,
}

/// The first 16 hexadecimal digits of a SHA-256.
pub fn digest(parts: &[&str]) -> String {
    let mut all = Sha256::new();
    for part in parts {
        all.update((part.len() as u64).to_le_bytes());
        all.update(part.as_bytes());
    }
    all.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether work was saved in this folder: some file has more than its head.
pub fn holds_work(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let has_parts =
        |path: PathBuf| std::fs::File::open(path).is_ok_and(|file| BufReader::new(file).lines().nth(1).is_some());
    files.map(|entry| entry.path()).any(has_parts)
}

impl<T: Serialize + DeserializeOwned> WorkFile<T> {
    /// Opens the file of this work in a folder, or begins it. A last line that was cut when a process died is dropped, and made again; so is all
    /// from a part on that `follows` says cannot come after those before it: a file that was changed is not believed.
    pub fn open(folder: &Path, work: &str, follows: impl Fn(&T, &[T]) -> bool) -> MeasureResult<Self> {
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let path = folder.join(format!("{}.jsonl", digest(&[work])));
        let mut parts = Vec::new();
        let mut whole = 0;
        if let Ok(file) = std::fs::File::open(&path) {
            let mut lines = BufReader::new(file);
            let mut line = String::new();
            loop {
                line.clear();
                let read = lines.read_line(&mut line).unwrap_or(0);
                if read == 0 || !line.ends_with('\n') {
                    break;
                }
                if whole == 0 {
                    match serde_json::from_str::<Head>(&line) {
                        Ok(head) if head.work == work => {}
                        _ => break,
                    }
                } else {
                    match serde_json::from_str(&line) {
                        Ok(part) if follows(&part, &parts) => parts.push(part),
                        _ => break,
                    }
                }
                whole += read as u64;
            }
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::io("write", &path))?;
        file.set_len(whole).map_err(Error::io("write", &path))?;
        let mut file = Self { path, parts };
        if whole == 0 {
            file.append(&Head { work: work.into() })?;
        }
        Ok(file)
    }

    /// Adds a part that is done.
    pub fn push(&mut self, part: T) -> MeasureResult<()> {
        self.append(&part)?;
        self.parts.push(part);
        Ok(())
    }

    fn append(&mut self, line: &impl Serialize) -> MeasureResult<()> {
        let mut text = serde_json::to_string(line).map_err(|error| Error::Other(error.to_string()))?;
        text.push('\n');
        let write = || OpenOptions::new().append(true).open(&self.path)?.write_all(text.as_bytes());
        Ok(write().map_err(Error::io("write", &self.path))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_is_made_again_and_other_work_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let open = |work| WorkFile::<Vec<u32>>::open(folder.path(), work, |part, _| !part.contains(&9)).unwrap();
        let mut file = open("a");
        file.push(vec![1, 2]).unwrap();
        file.push(vec![3]).unwrap();
        assert_eq!(open("a").parts, [vec![1, 2], vec![3]]);
        assert!(open("b").parts.is_empty());
        let text = std::fs::read_to_string(&file.path).unwrap();
        std::fs::write(&file.path, &text[..text.len() - 2]).unwrap();
        let mut cut = open("a");
        assert_eq!(cut.parts, [vec![1, 2]]);
        cut.push(vec![4]).unwrap();
        assert_eq!(open("a").parts, [vec![1, 2], vec![4]]);
        // What cannot follow goes, with all after it.
        cut.push(vec![9]).unwrap();
        cut.push(vec![5]).unwrap();
        assert_eq!(open("a").parts, [vec![1, 2], vec![4]]);
        assert_eq!(std::fs::read_to_string(&file.path).unwrap().lines().count(), 3);
    }
}
