//! NumPy's `.npy` files of bytes, as CIFAR-10-C comes in: images \[count, height, width, channels\] and labels \[count\].

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
    let header = header_of_bytes(&mut file, "pixels")?;
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
    let header = header_of_bytes(&mut file, "labels")?;
    if header.shape != [count] {
        return Err(file.error(format!("labels of shape {:?} for {count} images, not [{count}]", header.shape)));
    }
    let labels = file.vector(count, "labels")?;
    file.end("the last label")?;
    let labels = labels[rows.start as usize..rows.end as usize].to_vec();
    Ok(Images { shape, pixels, labels })
}

/// How many images a file says it has.
pub(super) fn count_of_npy(images: &Path) -> FileResult<u64> {
    let mut file = Bytes::open(images)?;
    let header = header_of_bytes(&mut file, "pixels")?;
    header.shape.first().copied().ok_or_else(|| file.error("a single number is no set of images"))
}

fn header_of_bytes(file: &mut Bytes, what: &str) -> FileResult<Header> {
    match read_header(file) {
        Ok(header) if header.dtype == Type::U8 => Ok(header),
        Ok(header) => Err(file.error(format!("{what} of type {}: save them as uint8", header.dtype.name()))),
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
