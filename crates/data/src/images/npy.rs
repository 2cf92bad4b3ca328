//! NumPy's `.npy` files, as CIFAR-10-C comes in: images \[count, height, width, channels\] of bytes and labels \[count\] of whole numbers.

use super::bytes::Bytes;
use super::{Images, Shape};
use crate::{FileError, FileResult};
use pudica_boolean::npy::{Header, Type, read_header, write_u8};
use pudica_boolean::write_atomically;
use std::ops::Range;
use std::path::Path;

/// Images \[count, height, width(, channels)\] and labels \[count\] from two files; with `rows`, only those images (of CIFAR-10-C's
/// five blocks of 10,000, severity s is `(s - 1) * 10_000..s * 10_000`).
pub fn read_npy(images: &Path, labels: &Path, rows: Option<Range<u64>>) -> FileResult<Images> {
    let mut file = Bytes::open(images)?;
    let header = header_of_bytes(&mut file)?;
    let (count, height, width, channels) = match *header.shape.as_slice() {
        [count, height, width] => (count, height, width, 1),
        [count, height, width, channels] => (count, height, width, channels),
        _ => return Err(file.error(format!("an array of {} axes is no set of images", header.shape.len()))),
    };
    let rows = rows.unwrap_or(0..count);
    if rows.start > rows.end || rows.end > count {
        return Err(file.error(format!("images {} to {} of a file of {count}", rows.start, rows.end)));
    }
    let chosen = rows.end - rows.start;
    let shape = Shape::checked(count, height, width, channels).map_err(|problem| file.error(problem))?;
    let size = shape.pixels() as u64;
    file.expect(header.values, "pixels")?;
    file.skip(rows.start * size, "pixels")?;
    let pixels = file.vector(chosen * size, "pixels")?;
    file.skip((count - rows.end) * size, "pixels")?;
    file.end("the last image")?;

    let mut file = Bytes::open(labels)?;
    let header = read_header(&mut file).map_err(|problem| file.error(problem))?;
    let dtype = header.dtype;
    if dtype.is_float() || dtype == Type::Bool {
        return Err(file.error(format!("labels of type {}: save them as whole numbers, such as uint8", dtype.name())));
    }
    if header.shape != [count] {
        return Err(file.error(format!("labels of shape {:?} for {count} images, not [{count}]", header.shape)));
    }
    let bytes = file.vector(count * dtype.size() as u64, "labels")?;
    let label = |(place, bytes): (usize, &[u8])| {
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        let label = dtype.value(value).filter(|label| (0.0..=255.0).contains(label));
        label.map(|label| label as u8).ok_or_else(|| file.error(format!("label {place} is not one of 0 to 255")))
    };
    let labels: Vec<u8> = bytes.chunks_exact(dtype.size()).enumerate().map(label).collect::<FileResult<_>>()?;
    file.end("the last label")?;
    let labels = labels[rows.start as usize..rows.end as usize].to_vec();
    Ok(Images { shape, pixels, labels })
}

/// How many images a file says it has.
pub(super) fn count_of_npy(images: &Path) -> FileResult<u64> {
    let mut file = Bytes::open(images)?;
    let header = header_of_bytes(&mut file)?;
    header.shape.first().copied().ok_or_else(|| file.error("a single number is no set of images"))
}

fn header_of_bytes(file: &mut Bytes) -> FileResult<Header> {
    match read_header(file) {
        Ok(header) if header.dtype == Type::U8 => Ok(header),
        Ok(header) => Err(file.error(format!("pixels of type {}: save them as uint8", header.dtype.name()))),
        Err(problem) => Err(file.error(problem)),
    }
}

/// Writes pixels \[count, height, width, channels\] and labels \[count\] as [`read_npy`] reads them.
pub fn write_npy(set: &Images, images: &Path, labels: &Path) -> FileResult<()> {
    let Shape { height, width, channels } = set.shape();
    write_bytes(images, &[set.count(), height, width, channels], set.pixels())?;
    write_bytes(labels, &[set.count()], set.labels())
}

fn write_bytes(path: &Path, shape: &[usize], bytes: &[u8]) -> FileResult<()> {
    let shape: Vec<u64> = shape.iter().map(|&length| length as u64).collect();
    write_atomically(path, |file| write_u8(file, &shape, bytes)).map_err(FileError::unwritable(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A file as NumPy writes it.
    fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
        let padded = format!("{header:<117}\n");
        [b"\x93NUMPY\x01\x00", &(padded.len() as u16).to_le_bytes()[..], padded.as_bytes(), values].concat()
    }

    #[test]
    fn labels_are_whole_numbers_of_any_type() {
        let folder = tempfile::tempdir().unwrap();
        let [images, labels] = ["images.npy", "labels.npy"].map(|name| folder.path().join(name));
        fs::write(&images, npy("|u1", "3, 2, 2", &[7; 12])).unwrap();
        let wanted = [2u8, 0, 200];
        for (descr, size) in [("|u1", 1), ("<i2", 2), ("<u2", 2), ("<i4", 4), ("<u4", 4), ("<i8", 8), ("<u8", 8)] {
            let values: Vec<u8> =
                wanted.iter().flat_map(|label| u64::from(*label).to_le_bytes()[..size].to_vec()).collect();
            fs::write(&labels, npy(descr, "3,", &values)).unwrap();
            assert_eq!(read_npy(&images, &labels, None).unwrap().labels(), wanted, "{descr}");
        }
        fs::write(&labels, npy("<i8", "3,", &[[0; 8], (-1i64).to_le_bytes(), [0; 8]].concat())).unwrap();
        let error = read_npy(&images, &labels, None).unwrap_err().to_string();
        assert!(error.contains("label 1 is not one of 0 to 255"), "{error}");
        fs::write(&labels, npy("<f8", "3,", &[0; 24])).unwrap();
        assert!(read_npy(&images, &labels, None).unwrap_err().to_string().contains("labels of type float64"));
    }
}
