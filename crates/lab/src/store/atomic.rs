//! Writing a file so that it is there completely or not at all.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Lets `write` fill a file under a scratch name, then syncs it and renames it to `path`.
pub fn write_atomically(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let scratch = scratch_name(path);
    let finish = || -> Result<()> {
        write(&scratch)?;
        File::open(&scratch).and_then(|file| file.sync_all()).map_err(Error::io("write", path))?;
        std::fs::rename(&scratch, path).map_err(Error::io("write", path))?;
        // The rename itself reaches the disk with the folder. Not every filesystem can sync one; losing the name is then
        // the same as not having written yet.
        if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        Ok(())
    };
    finish().inspect_err(|_| {
        let _ = std::fs::remove_file(&scratch);
    })
}

/// [`write_atomically`] for bytes at hand.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically(path, |scratch| {
        File::create(scratch).and_then(|mut file| file.write_all(bytes)).map_err(Error::io("write", path))
    })
}

/// [`write_atomically`] for a value as indented JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| Error::damaged(path, error))?;
    text.push('\n');
    write_bytes(path, text.as_bytes())
}

/// Reads JSON; `None` if there is no such file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| Error::damaged(path, error))
}

fn scratch_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.scratch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_scratch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.json");
        write_json(&path, &1).unwrap();
        let failed = write_atomically(&path, |scratch| {
            std::fs::write(scratch, "half of it").unwrap();
            Err(Error::Training("power cut".into()))
        });
        assert_eq!(failed.unwrap_err().to_string(), "power cut");
        assert_eq!(read_json::<u32>(&path).unwrap(), Some(1));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_is_a_sentence() {
        // /dev/full refuses every byte with "no space left on device".
        let error = File::create("/dev/full").and_then(|mut file| file.write_all(b"x")).unwrap_err();
        let sentence = Error::io("write", Path::new("runs/a"))(error).to_string();
        assert!(sentence.starts_with("cannot write runs/a: the disk is full; free some space"), "{sentence}");
    }

    #[test]
    fn damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        std::fs::write(&path, "{\"half").unwrap();
        assert!(read_json::<u32>(&path).unwrap_err().to_string().contains("is damaged"));
        assert_eq!(read_json::<u32>(&folder.path().join("none.json")).unwrap(), None);
    }
}
