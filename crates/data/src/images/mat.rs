//! MATLAB 5 files, as far as arrays of numbers go: a header of 128 bytes, then elements with a tag of type and length, those of
//! type 15 packed by zlib. Each variable is an element of type 14 that holds flags, sizes, a name and the values, column by column.

use super::bytes::Bytes;
use crate::FileResult;

const INT8: u32 = 1;
const UINT8: u32 = 2;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const DOUBLE: u32 = 9;
const MATRIX: u32 = 14;
const PACKED: u32 = 15;
const UTF8: u32 = 16;

/// A variable whose values come next in the file.
pub(super) struct Variable {
    /// Its name in MATLAB.
    pub name: String,
    /// Lengths of its axes, the first one varying fastest.
    pub sizes: Vec<u64>,
    /// How the values are stored.
    stored: u32,
    /// Their bytes.
    length: u64,
    /// Zeros after the values, to a multiple of 8.
    padding: u64,
}

/// Reads the header and hands each variable to `visit`, which must take all its values ([`Variable::records`],
/// [`Variable::small_integers`]) or [skip](Variable::skip) them.
pub(super) fn read_variables(
    file: &mut Bytes,
    mut visit: impl FnMut(Variable, &mut Bytes) -> FileResult<()>,
) -> FileResult<()> {
    let header: [u8; 128] = file.array("its MATLAB header")?;
    if header.starts_with(b"MATLAB 7.3") || header.starts_with(b"\x89HDF") {
        return Err(file.error("a MATLAB 7.3 (HDF5) file is not read here: save it with -v7 or older"));
    }
    match (&header[124..126], &header[126..128]) {
        (b"\x00\x01", b"IM") => {}
        (_, b"MI") => return Err(file.error("a big-endian MATLAB file is not read here")),
        _ => return Err(file.error("not a MATLAB 5 file")),
    }
    let mut start = [0; 8];
    while file.fill_or_end(&mut start, "a variable's tag")? {
        let (kind, length) = (word(&start[..4]), u64::from(word(&start[4..])));
        file.expect(length, "a variable")?;
        match kind {
            PACKED => file.unpack(length, |unpacked| {
                let inner: [u8; 8] = unpacked.array("a packed variable's tag")?;
                if word(&inner[..4]) != MATRIX {
                    return unpacked.skip(u64::from(word(&inner[4..])), "an element that is no variable");
                }
                let variable = variable(unpacked)?;
                visit(variable, unpacked)
            })?,
            MATRIX => {
                let variable = variable(file)?;
                visit(variable, file)?;
            }
            _ => file.skip(length, "an element that is no variable")?,
        }
    }
    Ok(())
}

/// Flags, sizes and name of a variable; the values' tag.
fn variable(file: &mut Bytes) -> FileResult<Variable> {
    let (kind, flags) = small_element(file, "a variable's flags", 8)?;
    if kind != UINT32 || flags.len() != 8 {
        return Err(file.error("a variable without flags"));
    }
    if !matches!(flags[0], 6..=15) || flags[1] & 0x08 != 0 {
        return Err(file.error(format!("a variable of class {} is not read here: real numeric arrays are", flags[0])));
    }
    let (kind, sizes) = small_element(file, "a variable's sizes", 64)?;
    if kind != INT32 || sizes.len() < 8 || sizes.len() % 4 != 0 {
        return Err(file.error("a variable without sizes"));
    }
    let sizes: Vec<u64> = sizes.chunks(4).map(|size| u64::from(word(size))).collect();
    let (kind, name) = small_element(file, "a variable's name", 256)?;
    if kind != INT8 && kind != UTF8 {
        return Err(file.error("a variable without a name"));
    }
    let name = String::from_utf8_lossy(&name).into_owned();
    let start: [u8; 8] = file.array("the tag of a variable's values")?;
    let (kind, length) = (word(&start[..4]), word(&start[4..]));
    if kind >> 16 != 0 {
        // Up to 4 bytes stand in the tag itself, which a file of images or labels has no use for, save with 4 images or fewer.
        return Err(file.error(format!("the variable {name} has too few values to be images or labels")));
    }
    let length = u64::from(length);
    file.expect(length, "values")?;
    Ok(Variable { name, sizes, stored: kind, length, padding: length.next_multiple_of(8) - length })
}

/// Type and bytes of an element of at most `longest` bytes; those of up to 4 may stand in the tag itself.
fn small_element(file: &mut Bytes, what: &str, longest: u32) -> FileResult<(u32, Vec<u8>)> {
    let start: [u8; 8] = file.array(what)?;
    let kind = word(&start[..4]);
    if kind >> 16 != 0 {
        let length = (kind >> 16) as usize;
        return match start[4..].get(..length) {
            Some(bytes) => Ok((kind & 0xffff, bytes.to_vec())),
            None => Err(file.error(format!("{what} of {length} bytes in a tag that holds 4"))),
        };
    }
    let length = word(&start[4..]);
    if length > longest {
        return Err(file.error(format!("{what} of {length} bytes are not believable")));
    }
    let bytes = file.vector(u64::from(length), what)?;
    file.skip(u64::from(length.next_multiple_of(8) - length), what)?;
    Ok((kind, bytes))
}

impl Variable {
    /// The number of values, if the sizes are possible.
    fn count(&self) -> Option<u64> {
        self.sizes.iter().try_fold(1u64, |product, size| product.checked_mul(*size))
    }

    /// Passes over the values.
    pub fn skip(&self, file: &mut Bytes) -> FileResult<()> {
        file.skip(self.length + self.padding, "values")
    }

    /// The values as records of `size` bytes each, handed to `visit` one after the other.
    pub fn records(&self, file: &mut Bytes, size: usize, mut visit: impl FnMut(&[u8])) -> FileResult<()> {
        if self.stored != UINT8 || self.count() != Some(self.length) {
            return Err(file.error(format!("the values of {} are not one byte (uint8) each", self.name)));
        }
        let mut record = vec![0; size];
        for _ in 0..self.length / size as u64 {
            file.fill(&mut record, "pixels")?;
            visit(&record);
        }
        file.skip(self.length % size as u64 + self.padding, "values")
    }

    /// The values as integers from 0 to 255, stored as bytes or as doubles.
    pub fn small_integers(&self, file: &mut Bytes) -> FileResult<Vec<u8>> {
        let size = match self.stored {
            UINT8 => 1,
            DOUBLE => 8,
            other => return Err(file.error(format!("{} is stored as type {other}, not as uint8 or double", self.name))),
        };
        if self.count().and_then(|count| count.checked_mul(size)) != Some(self.length) {
            return Err(file.error(format!("{} has {} bytes, not what its sizes say", self.name, self.length)));
        }
        let bytes = file.vector(self.length, &self.name)?;
        file.skip(self.padding, "values")?;
        if size == 1 {
            return Ok(bytes);
        }
        let integer = |chunk: &[u8]| {
            let value = chunk.try_into().map(f64::from_le_bytes).unwrap_or(f64::NAN);
            (value == f64::from(value as u8)).then_some(value as u8)
        };
        let values: Option<Vec<u8>> = bytes.chunks(8).map(integer).collect();
        values.ok_or_else(|| file.error(format!("{} has a value that is no integer from 0 to 255", self.name)))
    }
}

/// A little-endian word of up to four bytes.
fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}
