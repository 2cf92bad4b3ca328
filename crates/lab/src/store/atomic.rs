//! The files of a store: written completely or not at all, and read with damage named.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Lets `write` fill a file that takes the place of `path` once it is safely on disk.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    pudica_boolean::write_atomically(path, write).map_err(Error::io("write", path))
}

/// [`write_atomically`] for bytes at hand.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically(path, |file| file.write_all(bytes))
}

/// [`write_atomically`] for a value as indented JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    write_bytes(path, json_text(path, value)?.as_bytes())
}

/// A value as the indented JSON that a file has.
pub(super) fn json_text(path: &Path, value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value).map_err(|error| Error::damaged(path, error))? + "\n")
}

/// Reads JSON; `None` if there is no such file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = match pudica_boolean::plain::text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| Error::damaged(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_sentence() {
        // /dev/full refuses every byte with "no space left on device".
        let sentence = write_bytes(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert!(sentence.starts_with("cannot write /dev/full: the disk is full; free some space"), "{sentence}");
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
