//! One array of NumPy's, whose rows are read when they are asked for.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pudica_boolean::npy::{Header, Type, read_header};
use pudica_data::{FileError, FileResult};

/// A row of more values than this is no input of any network here.
const MOST_VALUES: u64 = 1 << 26;

/// An array whose first axis counts inputs.
pub(super) struct Array {
    /// The file, and the array's name where it holds several: for messages.
    path: PathBuf,
    header: Header,
    bytes: Content,
}

enum Content {
    /// From this byte of a file on.
    File(Mutex<File>, u64),
    /// Unpacked.
    Memory(Vec<u8>),
}

impl Array {
    /// The array of a `.npy` file.
    pub fn open(path: &Path) -> FileResult<Self> {
        let wrong = |error: std::io::Error| FileError::new(path, format!("cannot be read: {error}"));
        let metadata = std::fs::metadata(path).map_err(wrong)?;
        if !metadata.is_file() {
            return Err(FileError::new(path, "is not a plain file"));
        }
        Self::at(path, File::open(path).map_err(wrong)?, 0, metadata.len())
    }

    /// The array that fills `length` bytes of a file from `start` on; `path` is what messages call it.
    pub fn at(path: &Path, mut file: File, start: u64, length: u64) -> FileResult<Self> {
        let wrong = |error: std::io::Error| FileError::new(path, format!("cannot be read: {error}"));
        file.seek(SeekFrom::Start(start)).map_err(wrong)?;
        let header = read_header(&mut (&file).take(length)).map_err(|problem| FileError::new(path, problem))?;
        let first = file.stream_position().map_err(wrong)?;
        Self::checked(path, header, (start + length).saturating_sub(first), Content::File(Mutex::new(file), first))
    }

    /// The array that these bytes are.
    pub fn unpacked(path: &Path, mut bytes: Vec<u8>) -> FileResult<Self> {
        let mut reader = Cursor::new(&bytes);
        let header = read_header(&mut reader).map_err(|problem| FileError::new(path, problem))?;
        let first = reader.position() as usize;
        bytes.drain(..first);
        Self::checked(path, header, bytes.len() as u64, Content::Memory(bytes))
    }

    /// These values, the last axis varying fastest.
    pub fn held(path: &Path, dtype: Type, shape: &[usize], bytes: Vec<u8>) -> FileResult<Self> {
        let shape: Vec<u64> = shape.iter().map(|length| *length as u64).collect();
        let values = shape.iter().product();
        Self::checked(path, Header { dtype, values, shape }, bytes.len() as u64, Content::Memory(bytes))
    }

    fn checked(path: &Path, header: Header, length: u64, bytes: Content) -> FileResult<Self> {
        let wrong = |problem: String| Err(FileError::new(path, problem));
        let expected = header.values.checked_mul(header.dtype.size() as u64);
        let Some((count, rest)) = header.shape.split_first() else {
            return wrong("a single number is no set of inputs".into());
        };
        if header.values == 0 {
            return wrong(format!("an array of shape {:?} is empty", header.shape));
        }
        if expected != Some(length) {
            let problem = format!(
                "{length} bytes of values follow the header, but an array {:?} of {} has {}",
                header.shape,
                header.dtype.name(),
                expected.map_or("more than any file".into(), |expected| expected.to_string())
            );
            return wrong(problem);
        }
        let row: u64 = rest.iter().product();
        if row > MOST_VALUES || usize::try_from(*count).is_err() {
            return wrong(format!("{count} inputs of {row} values each are more than what is read here"));
        }
        Ok(Self { path: path.into(), header, bytes })
    }

    /// The type of its values.
    pub fn dtype(&self) -> Type {
        self.header.dtype
    }

    /// How many inputs it has.
    pub fn count(&self) -> usize {
        self.header.shape[0] as usize
    }

    /// The lengths of the other axes: the shape of one input.
    pub fn shape(&self) -> Vec<usize> {
        self.header.shape[1..].iter().map(|length| *length as usize).collect()
    }

    /// What messages call it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it.
    pub fn error(&self, problem: impl Into<String>) -> FileError {
        FileError::new(&self.path, problem)
    }

    /// The bytes of one input, `row` < count.
    pub fn bytes(&self, row: usize) -> FileResult<Vec<u8>> {
        let values: usize = self.shape().iter().product();
        let length = values * self.dtype().size();
        let start = row as u64 * length as u64;
        match &self.bytes {
            Content::Memory(bytes) => Ok(bytes[start as usize..][..length].to_vec()),
            Content::File(file, first) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let mut found = vec![0; length];
                let read = file.seek(SeekFrom::Start(first + start)).and_then(|_| file.read_exact(&mut found));
                read.map(|()| found).map_err(|error| self.error(format!("row {row} cannot be read: {error}")))
            }
        }
    }

    /// The values of one input; nothing for integers that no f64 is equal to.
    pub fn values(&self, row: usize) -> FileResult<impl Iterator<Item = Option<f64>>> {
        let (bytes, dtype) = (self.bytes(row)?, self.dtype());
        let size = dtype.size();
        Ok((0..bytes.len() / size).map(move |at| {
            let mut padded = [0; 8];
            padded[..size].copy_from_slice(&bytes[at * size..][..size]);
            dtype.value(padded)
        }))
    }

    /// The values of one input as finite f32.
    pub fn floats(&self, row: usize) -> FileResult<Vec<f32>> {
        if self.dtype() == Type::F32 {
            // The usual case: whatever is not finite is named below.
            let bytes = self.bytes(row)?;
            let values: Vec<f32> = bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
            if values.iter().all(|value| value.is_finite()) {
                return Ok(values);
            }
        }
        let finite = |(at, value): (usize, Option<f64>)| match value.map(|value| value as f32) {
            Some(value) if value.is_finite() => Ok(value),
            _ => Err(self.error(format!("row {row}, value {at} is not a finite number of 32 bits"))),
        };
        self.values(row)?.enumerate().map(finite).collect()
    }
}
