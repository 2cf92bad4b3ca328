//! The bytes of a file, unpacked as they are read, with a count of where we are.

use super::MAX_PIXELS;
use crate::{FileError, FileResult};
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// Deflate cannot pack better than this: a match of 258 bytes in 2 bits.
const BEST_PACKING: u64 = 1032;

/// Bytes from a file, plain or gzipped, or from a packed part of one.
pub(crate) struct Bytes<'a> {
    path: &'a Path,
    reader: Box<dyn Read + 'a>,
    /// Bytes read so far, of the unpacked content.
    position: u64,
    /// The content cannot be longer than this.
    longest: u64,
    /// What positions count in: "" for the file itself.
    of: &'static str,
}

impl<'a> Bytes<'a> {
    /// The content of a file; gzip is recognised by its first bytes and unpacked.
    pub fn open(path: &'a Path) -> FileResult<Self> {
        let wrong = |error: std::io::Error| FileError::new(path, format!("cannot be read: {error}"));
        let mut file = File::open(path).map_err(wrong)?;
        let metadata = file.metadata().map_err(wrong)?;
        if metadata.is_dir() {
            return Err(FileError::new(path, "is a folder, not a file"));
        }
        let mut start = Vec::new();
        (&mut file).take(2).read_to_end(&mut start).map_err(wrong)?;
        file.seek(SeekFrom::Start(0)).map_err(wrong)?;
        let (length, file) = (metadata.len(), BufReader::with_capacity(1 << 16, file));
        Ok(if start == [0x1f, 0x8b] {
            let (reader, longest) = (Box::new(MultiGzDecoder::new(file)), length.saturating_mul(BEST_PACKING));
            Self { path, reader, position: 0, longest, of: " of its unpacked content" }
        } else {
            Self { path, reader: Box::new(file), position: 0, longest: length, of: "" }
        })
    }

    /// Hands the next `length` bytes, which are zlib's, to `visit`, unpacked as they are read; `visit` must read them to the end.
    pub fn unpack(&mut self, length: u64, visit: impl FnOnce(&mut Bytes) -> FileResult<()>) -> FileResult<()> {
        let mut packed = (&mut self.reader).take(length);
        let longest = length.saturating_mul(BEST_PACKING);
        let reader = Box::new(ZlibDecoder::new(&mut packed));
        let mut unpacked = Bytes { path: self.path, reader, position: 0, longest, of: " of a packed variable" };
        visit(&mut unpacked)?;
        unpacked.end("a packed variable")?; // which compares zlib's checksum too
        self.position += length;
        std::io::copy(&mut packed, &mut std::io::sink())
            .map(|_| ())
            .map_err(|error| self.error(format!("damaged: {error}")))
    }

    /// The error of this file, with the place.
    pub fn error(&self, problem: impl std::fmt::Display) -> FileError {
        FileError::new(self.path, format!("{problem} (at byte {}{})", self.position, self.of))
    }

    /// Bytes that can still follow, at most.
    pub fn left(&self) -> u64 {
        self.longest.saturating_sub(self.position)
    }

    /// Fills the buffer with the next bytes, which are `what`; false if the content had ended before the first of them.
    pub fn fill_or_end(&mut self, buffer: &mut [u8], what: &str) -> FileResult<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(self.error(format!("the file ends in the middle of {what}"))),
                Ok(count) => {
                    filled += count;
                    self.position += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Err(self.error(format!("the packed file is cut off in {what}")));
                }
                Err(error) => return Err(self.error(format!("damaged in {what}: {error}"))),
            }
        }
        Ok(true)
    }

    /// Fills the buffer with the next bytes, which are `what`.
    pub fn fill(&mut self, buffer: &mut [u8], what: &str) -> FileResult<()> {
        if buffer.is_empty() || self.fill_or_end(buffer, what)? {
            return Ok(());
        }
        Err(self.error(format!("the file ends before {what}")))
    }

    /// The next `N` bytes, which are `what`.
    pub fn array<const N: usize>(&mut self, what: &str) -> FileResult<[u8; N]> {
        let mut array = [0; N];
        self.fill(&mut array, what).map(|()| array)
    }

    /// Whether `count` bytes of `what` can still follow; called before memory is asked for.
    pub fn expect(&self, count: u64, what: &str) -> FileResult<()> {
        if count > self.left() || count > MAX_PIXELS {
            let left = self.left();
            return Err(self.error(format!("{count} bytes of {what} are announced, at most {left} can follow")));
        }
        Ok(())
    }

    /// The next `count` bytes, which are `what`. Memory grows with what is really there, not with what is announced.
    pub fn vector(&mut self, count: u64, what: &str) -> FileResult<Vec<u8>> {
        self.expect(count, what)?;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < count {
            let step = (count - bytes.len() as u64).min(1 << 20) as usize;
            let start = bytes.len();
            bytes.resize(start + step, 0);
            self.fill(&mut bytes[start..], what)?;
        }
        Ok(bytes)
    }

    /// Passes over `count` bytes of `what`.
    pub fn skip(&mut self, count: u64, what: &str) -> FileResult<()> {
        let mut buffer = [0; 4096];
        let mut left = count;
        while left > 0 {
            let step = left.min(4096) as usize;
            self.fill(&mut buffer[..step], what)?;
            left -= step as u64;
        }
        Ok(())
    }

    /// Makes sure that the content ends here; for packed content this also checks its own checksum.
    pub fn end(mut self, what: &str) -> FileResult<()> {
        match self.fill_or_end(&mut [0], "its end")? {
            true => Err(self.error(format!("more bytes follow after {what}"))),
            false => Ok(()),
        }
    }
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}
