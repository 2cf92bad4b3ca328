//! CIFAR-10's binary files: records of one label and 32 x 32 pixels, red plane first, then green, then blue.

use super::bytes::Bytes;
use super::{Images, MAX_PIXELS, Shape};
use crate::FileResult;
use std::path::Path;

const SHAPE: Shape = Shape { height: 32, width: 32, channels: 3 };
const PLANE: usize = 32 * 32;

/// All records of a `.bin` file, gzipped or not.
pub fn read_cifar(path: &Path) -> FileResult<Images> {
    let mut file = Bytes::open(path)?;
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    let mut record = [0; 1 + 3 * PLANE];
    while file.fill_or_end(&mut record, "a record of 3,073 bytes")? {
        let [label, planes @ ..] = &record;
        if *label > 9 {
            return Err(file.error(format!("record {} has the label {label}, not 0 to 9", labels.len())));
        }
        if (pixels.len() + planes.len()) as u64 > MAX_PIXELS {
            return Err(file.error(format!("more than the {MAX_PIXELS} bytes read here")));
        }
        labels.push(*label);
        pixels.extend((0..PLANE).flat_map(|at| [planes[at], planes[PLANE + at], planes[2 * PLANE + at]]));
    }
    if labels.is_empty() {
        return Err(file.error("the file is empty"));
    }
    Ok(Images { shape: SHAPE, pixels, labels })
}
