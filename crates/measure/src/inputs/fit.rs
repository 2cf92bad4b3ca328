//! Pictures as a model takes them: cut, resized, grey or in colour.

use pudica_data::images::{Shape, fitted, in_colour, in_grey};
use pudica_model::{Image, Takes};

/// What every picture becomes: channels, height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fit {
    pub channels: usize,
    pub height: usize,
    pub width: usize,
}

/// Why pictures cannot be made equal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// The picture of this index has another size than the first.
    Differs(usize),
    /// Anything else, in a sentence.
    Other(String),
}

impl Fit {
    /// For pictures of these shapes: the size that the user says, else what the model takes, else their own. Where some are grey and some are not,
    /// all are made colour, unless the model says otherwise.
    pub fn new(shapes: &[Shape], size: Option<usize>, takes: &Takes) -> Result<Self, Unfit> {
        let refuse = |problem: String| Err(Unfit::Other(problem));
        let (channels, height, width) = match takes {
            Takes::Images { channels, height, width } => (*channels, *height, *width),
            _ => (None, None, None),
        };
        let channels = channels.unwrap_or(if shapes.iter().any(|shape| shape.channels == 3) { 3 } else { 1 });
        if channels != 1 && channels != 3 {
            return refuse(format!("the model takes {takes}, but pictures have 1 channel (grey) or 3 (colour)"));
        }
        let taken = height.or(width).map(|one| (height.unwrap_or(one), width.unwrap_or(one)));
        let (height, width) = match (size, taken, shapes.first()) {
            (Some(size), ..) if !(1..=4096).contains(&size) => {
                return refuse(format!("--size {size}: give a number of pixels from 1 to 4096"));
            }
            (Some(size), Some(taken), _) if taken != (size, size) => {
                return refuse(format!("--size {size} makes pictures of {size} x {size}, but the model takes {takes}"));
            }
            (Some(size), ..) => (size, size),
            (None, Some(taken), _) => taken,
            (None, None, Some(first)) => {
                let differs = |shape: &Shape| (shape.height, shape.width) != (first.height, first.width);
                match shapes.iter().position(differs) {
                    Some(index) => return Err(Unfit::Differs(index)),
                    None => (first.height, first.width),
                }
            }
            (None, None, None) => return refuse("there are no pictures".into()),
        };
        Ok(Self { channels, height, width })
    }

    /// The shape of each image, as [`Image`] has it.
    pub fn shape(&self) -> [usize; 3] {
        [self.channels, self.height, self.width]
    }

    /// Pixels \[height, width, channels\] as an image of values 0 to 1.
    pub fn image(&self, shape: Shape, pixels: &[u8]) -> Image {
        let grey: Vec<u8>;
        let (shape, pixels) = match (shape.channels, self.channels) {
            (3, 1) => {
                grey = in_grey(pixels).collect();
                (Shape { channels: 1, ..shape }, grey.as_slice())
            }
            _ => (shape, pixels),
        };
        let (shape, mut pixels) = fitted(shape, pixels, self.height, self.width);
        if shape.channels < self.channels {
            pixels = in_colour(&pixels).collect();
        }
        let plane = |channel: usize| pixels.iter().skip(channel).step_by(self.channels);
        let values = (0..self.channels).flat_map(plane).map(|byte| f32::from(*byte) / 255.0).collect();
        Image { shape: self.shape(), values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Takes = Takes::Images { channels: None, height: None, width: None };

    fn shape(height: usize, width: usize, channels: usize) -> Shape {
        Shape { height, width, channels }
    }

    #[test]
    fn the_user_decides_then_the_model_then_the_pictures() {
        let shapes = [shape(4, 4, 1), shape(4, 4, 3)];
        let model = Takes::Images { channels: Some(1), height: Some(8), width: Some(6) };
        let fit = |size, takes| Fit::new(&shapes, size, takes).map(|fit| fit.shape());
        assert_eq!(fit(None, &ANY), Ok([3, 4, 4]));
        assert_eq!(fit(Some(9), &ANY), Ok([3, 9, 9]));
        assert_eq!(fit(None, &model), Ok([1, 8, 6]));
        assert!(matches!(fit(Some(9), &model), Err(Unfit::Other(problem)) if problem.contains("--size 9")));
        assert!(matches!(fit(Some(0), &ANY), Err(Unfit::Other(problem)) if problem.contains("1 to 4096")));
        let shapes = [shape(4, 4, 1), shape(4, 4, 1), shape(4, 5, 1)];
        assert_eq!(Fit::new(&shapes, None, &ANY), Err(Unfit::Differs(2)));
        assert!(Fit::new(&shapes, None, &model).is_ok());
    }

    #[test]
    fn channels_come_first_and_grey_is_as_pillow_makes_it() {
        // Red, green / blue, white.
        let pixels = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
        let fit = |channels| Fit { channels, height: 2, width: 2 }.image(shape(2, 2, 3), &pixels);
        assert_eq!(fit(3).values, [1., 0., 0., 1., 0., 1., 0., 1., 0., 0., 1., 1.]);
        // Image.convert("L") of these: 76, 150, 29, 255.
        assert_eq!(fit(1).values, [76., 150., 29., 255.].map(|level: f32| level / 255.0));
        let grey = Fit { channels: 3, height: 1, width: 2 }.image(shape(1, 2, 1), &[0, 51]);
        assert_eq!(grey.values, [0.0, 0.2, 0.0, 0.2, 0.0, 0.2]);
    }
}
