//! Images as networks take them.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::layers::at_least_one;
use crate::{Device, NnError};

/// A batch of images in the host's memory, already normalised.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageBatch {
    /// Row-major [count, channels, height, width].
    pub values: Vec<f32>,
    /// Images.
    pub count: usize,
    /// Colours: 1 or 3.
    pub channels: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
}

impl ImageBatch {
    /// Images of this shape \[channels, height, width\], one after another; as many as there are values for.
    pub fn new(values: Vec<f32>, [channels, height, width]: [usize; 3]) -> Result<Self, NnError> {
        let shape = format!("{channels} x {height} x {width}");
        let pixels = channels.checked_mul(height).and_then(|product| product.checked_mul(width));
        match pixels {
            None | Some(0) => Err(NnError::Batch(format!("there are no images of {shape} values"))),
            Some(pixels) if !values.len().is_multiple_of(pixels) => {
                Err(NnError::Batch(format!("{} values are not a whole number of images of {shape}", values.len())))
            }
            Some(pixels) => Ok(Self { count: values.len() / pixels, values, channels, height, width }),
        }
    }

    /// Values in one image.
    pub fn pixels(&self) -> usize {
        self.channels * self.height * self.width
    }

    /// The images of these indices, in this order.
    pub fn select(&self, indices: &[usize]) -> Result<Self, NnError> {
        let pixels = self.pixels();
        let mut values = Vec::with_capacity(indices.len() * pixels);
        for index in indices {
            let image = self.values.get(index * pixels..(index + 1) * pixels);
            values.extend_from_slice(
                image.ok_or_else(|| {
                    NnError::Batch(format!("there is no image {index}: it has {} of them", self.count))
                })?,
            );
        }
        Ok(Self { values, count: indices.len(), ..*self })
    }

    /// \[count, channels, height, width\] on a device.
    pub(super) fn upload(&self, device: &Device) -> Tensor<4> {
        let shape = [self.count, self.channels, self.height, self.width];
        device.floats(self.values.clone(), shape)
    }
}

/// The shape of the images a network is shown, and how many classes it tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageShape {
    /// Colours: 1 or 3.
    pub channels: usize,
    /// Height and width in pixels.
    pub side: usize,
    /// Classes.
    pub classes: usize,
}

impl ImageShape {
    /// MNIST and Fashion-MNIST.
    pub const MNIST: Self = Self { channels: 1, side: 28, classes: 10 };

    /// CIFAR-10 and SVHN.
    pub const CIFAR: Self = Self { channels: 3, side: 32, classes: 10 };

    /// Values in one image.
    pub fn pixels(&self) -> usize {
        self.channels * self.side * self.side
    }

    /// Whether a network can be made for them.
    pub(super) fn check(&self) -> Result<(), NnError> {
        at_least_one("model.images.channels", self.channels)?;
        at_least_one("model.images.side", self.side)?;
        match self.classes {
            0 | 1 => Err(NnError::setting("model.images.classes", "there must be at least 2 classes to tell apart")),
            _ => Ok(()),
        }
    }

    /// Patches of this side in an image.
    pub(super) fn patches(&self, patch: usize) -> usize {
        (self.side / patch).pow(2)
    }

    /// Whether they can be cut into patches of this side.
    pub(super) fn check_patch(&self, patch: usize) -> Result<(), NnError> {
        if patch == 0 || !self.side.is_multiple_of(patch) {
            let problem = format!("must divide the image's side {}, but is {patch}", self.side);
            return Err(NnError::setting("model.patch", problem));
        }
        Ok(())
    }

    /// Whether a batch is of such images.
    pub(super) fn check_batch(&self, batch: &ImageBatch) -> Result<(), NnError> {
        let ImageBatch { values, count, channels, height, width } = batch;
        if (*channels, *height, *width) != (self.channels, self.side, self.side) {
            let (own, side) = (self.channels, self.side);
            let problem =
                format!("images of {channels} x {height} x {width} where {own} x {side} x {side} are expected");
            return Err(NnError::Batch(problem));
        }
        if *count == 0 || values.len() != count * batch.pixels() {
            return Err(NnError::Batch(format!(
                "{} values for {count} images of {} each",
                values.len(),
                self.pixels()
            )));
        }
        Ok(())
    }
}

impl Default for ImageShape {
    fn default() -> Self {
        Self::CIFAR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_counted_and_chosen() {
        let batch = ImageBatch::new((0..12).map(|x| x as f32).collect(), [1, 2, 2]).unwrap();
        assert_eq!(batch.count, 3);
        assert_eq!(batch.select(&[2, 0]).unwrap().values, [8.0, 9.0, 10.0, 11.0, 0.0, 1.0, 2.0, 3.0]);
        assert!(batch.select(&[3]).unwrap_err().to_string().contains("no image 3"));
        assert!(ImageBatch::new(vec![0.0; 5], [1, 2, 2]).unwrap_err().to_string().contains("5 values"));
        assert!(ImageBatch::new(vec![], [0, 2, 2]).is_err());
        assert!(ImageBatch::new(vec![], [usize::MAX, 2, 2]).is_err());
    }

    #[test]
    fn batches_that_do_not_fit_are_refused() {
        let images = ImageShape { channels: 1, side: 2, classes: 3 };
        let fits = ImageBatch::new(vec![0.0; 8], [1, 2, 2]).unwrap();
        assert!(images.check_batch(&fits).is_ok());
        let wide = ImageBatch::new(vec![0.0; 6], [1, 2, 3]).unwrap();
        assert!(images.check_batch(&wide).unwrap_err().to_string().contains("1 x 2 x 3 where 1 x 2 x 2"));
        assert!(images.check_batch(&ImageBatch { count: 1, ..fits }).is_err());
        assert!(images.check_batch(&ImageBatch::new(vec![], [1, 2, 2]).unwrap()).is_err());
        assert!(ImageShape { classes: 1, ..images }.check().is_err());
    }
}
