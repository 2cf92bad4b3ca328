//! Published checksums are of the unpacked files: the same whoever packed them.

use super::bytes::Bytes;
use crate::FileResult;
use md5::{Digest, Md5};
use std::path::Path;

/// MD5 in hexadecimal of a file's content, unpacked if it is gzipped, and how many bytes that is.
pub fn md5_of_content(path: &Path) -> FileResult<(String, u64)> {
    let mut file = Bytes::open(path)?;
    let (mut digest, mut length) = (Md5::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match std::io::Read::read(&mut file, &mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                digest.update(&buffer[..count]);
                length += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(file.error(format!("damaged: {error}"))),
        }
    }
    Ok((digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), length))
}
