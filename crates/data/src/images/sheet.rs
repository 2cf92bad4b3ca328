//! Many images as one picture.

use super::Images;
use crate::{FileError, FileResult};
use pudica_boolean::write_atomically;
use std::path::Path;

/// Images in rows, on white, with a gap between them.
pub struct ContactSheet {
    width: usize,
    height: usize,
    /// \[height, width, 3\]
    pixels: Vec<u8>,
}

const GAP: usize = 2;

impl ContactSheet {
    /// One row for each class, its first `columns` images, each pixel a square of `scale`.
    pub fn by_class(images: &Images, columns: usize, scale: usize) -> Self {
        let mut rows = vec![Vec::new(); images.label_counts().len()];
        for (index, label) in images.labels().iter().enumerate() {
            let row = &mut rows[usize::from(*label)];
            if row.len() < columns {
                row.push(index);
            }
        }
        rows.retain(|row| !row.is_empty());
        Self::of_rows(images, &rows, scale)
    }

    /// These rows of images, by their indices.
    pub fn of_rows(images: &Images, rows: &[Vec<usize>], scale: usize) -> Self {
        let shape = images.shape();
        let (cell_height, cell_width) = (shape.height * scale + GAP, shape.width * scale + GAP);
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let (height, width) = (rows.len() * cell_height + GAP, columns * cell_width + GAP);
        let mut sheet = Self { width, height, pixels: vec![255; height * width * 3] };
        for (row, indices) in rows.iter().enumerate() {
            for (column, index) in indices.iter().enumerate() {
                let corner = (row * cell_height + GAP, column * cell_width + GAP);
                sheet.paint(images, *index, corner, scale);
            }
        }
        sheet
    }

    fn paint(&mut self, images: &Images, index: usize, (top, left): (usize, usize), scale: usize) {
        let (shape, image) = (images.shape(), images.image(index));
        for y in 0..shape.height * scale {
            for x in 0..shape.width * scale {
                let pixel = &image[(y / scale * shape.width + x / scale) * shape.channels..][..shape.channels];
                let colour = [pixel[0], pixel[pixel.len() / 2], pixel[pixel.len() - 1]]; // grey three times, or red, green, blue
                self.pixels[((top + y) * self.width + left + x) * 3..][..3].copy_from_slice(&colour);
            }
        }
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// Writes the sheet as a PNG.
    pub fn write_png(&self, path: &Path) -> FileResult<()> {
        write_png(path, self.width, self.height, &self.pixels)
    }
}

/// Writes pixels \[height, width, 3\] as a PNG.
pub fn write_png(path: &Path, width: usize, height: usize, pixels: &[u8]) -> FileResult<()> {
    let size = |length: usize| {
        u32::try_from(length)
            .map_err(|_| FileError::new(path, format!("cannot be written: {length} pixels are too many")))
    };
    let (width, height) = (size(width)?, size(height)?);
    write_atomically(path, |file| {
        let mut encoder = png::Encoder::new(file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        Ok(writer.finish()?)
    })
    .map_err(FileError::unwritable(path))
}
