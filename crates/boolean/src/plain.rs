//! Reading a whole file: one that is a plain file, as a device or a pipe may never end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::memory::human_bytes;

/// The most bytes of a file that a person wrote, such as a recipe.
const LARGEST_TEXT: u64 = 64 << 20;

/// Its bytes.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    read(path, u64::MAX)
}

/// Its text.
pub fn text(path: &Path) -> io::Result<String> {
    read(path, u64::MAX).and_then(in_utf8)
}

/// Its text, as a person wrote it: at most 64 MiB.
pub fn written_text(path: &Path) -> io::Result<String> {
    read(path, LARGEST_TEXT).and_then(in_utf8)
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // On NFS a file that another machine has replaced is stale while it is read; opened again, it is the new one.
    let mut tries = 3;
    loop {
        tries -= 1;
        match read_once(path, most) {
            Err(error) if error.kind() == io::ErrorKind::StaleNetworkFileHandle && tries > 0 => {}
            read => return read,
        }
    }
}

fn read_once(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a pipe waits for somebody to write into it.
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let too_large = || io::Error::other(format!("it is larger than {}", human_bytes(most)));
    if about.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(about.len() as usize).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    // It may grow meanwhile.
    let read = File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if read as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

fn in_utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some");
        assert_eq!(bytes(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, "text").unwrap();
        assert_eq!((text(&path).unwrap(), bytes(&path).unwrap()), ("text".into(), b"text".to_vec()));
        assert_eq!(read(&path, 3).unwrap_err().to_string(), "it is larger than 3 B");
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(written_text(&path).unwrap_err().to_string(), "it is not UTF-8 text");
        assert_eq!(text(folder.path()).unwrap_err().to_string(), "it is not a plain file");
        #[cfg(unix)]
        for device in ["/dev/zero", "/dev/null"] {
            assert_eq!(bytes(Path::new(device)).unwrap_err().to_string(), "it is not a plain file");
        }
    }
}
