//! IDX, the format of MNIST: `00 00 08 rank`, `rank` big-endian sizes, then the bytes. Gzipped or not.

use super::bytes::Bytes;
use super::{Images, Shape};
use crate::FileResult;
use std::path::Path;

/// Images \[count, height, width\] from one IDX file and their labels \[count\] from another.
pub fn read_idx(images: &Path, labels: &Path) -> FileResult<Images> {
    let mut file = Bytes::open(images)?;
    let [count, height, width] = header(&mut file, "images")?;
    let shape = Shape::checked(count, height, width, 1).map_err(|problem| file.error(problem))?;
    let pixels = file.vector(count * shape.pixels() as u64, "pixels")?;
    file.end("the last image")?;

    let mut file = Bytes::open(labels)?;
    let [label_count] = header(&mut file, "labels")?;
    if label_count != count {
        return Err(file.error(format!("{label_count} labels for the {count} images of {}", images.display())));
    }
    let labels = file.vector(count, "labels")?;
    file.end("the last label")?;
    Ok(Images { shape, pixels, labels })
}

/// The sizes of an array of bytes with `RANK` axes.
fn header<const RANK: usize>(file: &mut Bytes, what: &str) -> FileResult<[u64; RANK]> {
    let magic: [u8; 4] = file.array("its IDX header")?;
    match magic {
        [0, 0, 8, rank] if usize::from(rank) == RANK => {}
        [0, 0, 8, rank] => {
            return Err(file.error(format!("an IDX file of {what} has {RANK} axes, this one has {rank}")));
        }
        [0, 0, kind, _] => {
            return Err(file.error(format!("IDX values of type {kind:#04x} are not read here: bytes (0x08) are")));
        }
        _ => return Err(file.error(format!("not an IDX file: it begins with {magic:02x?}"))),
    }
    let mut sizes = [0; RANK];
    for size in &mut sizes {
        *size = u64::from(u32::from_be_bytes(file.array("its sizes")?));
    }
    Ok(sizes)
}
