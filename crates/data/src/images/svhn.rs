//! SVHN's `.mat` files: `X` \[height, width, channels, count\] and `y` \[count, 1\], where 10 means the digit 0.

use super::bytes::Bytes;
use super::mat::read_variables;
use super::{Images, Shape};
use crate::{FileError, FileResult};
use std::path::Path;

/// The images `X` and labels `y` of a MATLAB 5 file.
pub fn read_svhn(path: &Path) -> FileResult<Images> {
    let mut file = Bytes::open(path)?;
    let (mut images, mut labels) = (None, None);
    read_variables(&mut file, |variable, file| {
        match variable.name.as_str() {
            "X" => {
                let &[height, width, channels, count] = variable.sizes.as_slice() else {
                    return Err(file.error(format!("X has {} axes, not 4", variable.sizes.len())));
                };
                let shape = Shape::checked(count, height, width, channels).map_err(|problem| file.error(problem))?;
                let mut pixels = Vec::new();
                variable.records(file, shape.pixels(), |record| extend_by_rows(&mut pixels, record, shape))?;
                images = Some((shape, count, pixels));
            }
            "y" => labels = Some(variable.small_integers(file)?),
            _ => variable.skip(file)?,
        }
        Ok(())
    })?;
    let wrong = |problem: String| FileError::new(path, problem);
    let (shape, count, pixels) = images.ok_or_else(|| wrong("the file has no variable X (the images)".into()))?;
    let mut labels = labels.ok_or_else(|| wrong("the file has no variable y (the labels)".into()))?;
    if labels.len() as u64 != count {
        return Err(wrong(format!("{} labels in y for the {count} images in X", labels.len())));
    }
    if let Some(index) = labels.iter().position(|label| !(1..=10).contains(label)) {
        return Err(wrong(format!("y[{index}] is {}, not 1 to 10", labels[index])));
    }
    labels.iter_mut().for_each(|label| *label %= 10);
    Ok(Images { shape, pixels, labels })
}

/// One image \[height, width, channels\] from MATLAB's order, the first axis fastest, to ours, the last fastest.
fn extend_by_rows(pixels: &mut Vec<u8>, record: &[u8], shape: Shape) {
    let Shape { height, width, channels } = shape;
    for row in 0..height {
        for column in 0..width {
            pixels.extend((0..channels).map(|channel| record[(channel * width + column) * height + row]));
        }
    }
}
