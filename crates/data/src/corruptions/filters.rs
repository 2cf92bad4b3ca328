//! Filters, enlargement and their borders, on arrays \[SIDE, SIDE, channels\] of reals.

use super::SIDE;

/// What is beyond the border.
#[derive(Clone, Copy)]
pub enum Border {
    /// `a a a | a b c | c c c`
    Nearest,
    /// `c b a | a b c | c b a`
    Reflect,
    /// `c b | a b c | b a`, the border itself not repeated.
    Mirror,
}

impl Border {
    /// The index inside 0..size that stands for `index`.
    pub fn inside(self, index: isize, size: usize) -> usize {
        let size = size as isize;
        let folded = match self {
            Self::Nearest => index.clamp(0, size - 1),
            Self::Reflect => {
                let place = index.rem_euclid(2 * size);
                place.min(2 * size - 1 - place)
            }
            Self::Mirror => {
                let period = (2 * size - 2).max(1);
                let place = index.rem_euclid(period);
                place.min(period - place)
            }
        };
        folded as usize
    }
}

/// Gaussian filter cut off at `truncate` standard deviations, along rows and columns, as scipy's.
pub fn gaussian(picture: &[f64], channels: usize, sigma: f64, truncate: f64, border: Border) -> Vec<f64> {
    let radius = (truncate * sigma + 0.5) as isize;
    let mut kernel: Vec<f64> =
        (-radius..=radius).map(|at| (-0.5 * (at * at) as f64 / (sigma * sigma).max(1e-300)).exp()).collect();
    let sum: f64 = kernel.iter().sum();
    kernel.iter_mut().for_each(|weight| *weight /= sum);
    let along = |picture: &[f64], down: bool| -> Vec<f64> {
        let mut filtered = vec![0.0; picture.len()];
        for (at, value) in filtered.iter_mut().enumerate() {
            let (y, x, channel) = (at / channels / SIDE, at / channels % SIDE, at % channels);
            *value = kernel.iter().zip(-radius..).fold(0.0, |sum, (weight, offset)| {
                let moved = |place: usize| border.inside(place as isize + offset, SIDE);
                let (y, x) = if down { (moved(y), x) } else { (y, moved(x)) };
                sum + weight * picture[(y * SIDE + x) * channels + channel]
            });
        }
        filtered
    };
    along(&along(picture, true), false)
}

/// The value between four pixels, linearly, at (y, x) of one channel.
pub fn between(picture: &[f64], channels: usize, channel: usize, y: f64, x: f64, border: Border) -> f64 {
    let (top, left) = (y.floor(), x.floor());
    let (down, right) = (y - top, x - left);
    let pixel = |dy: isize, dx: isize| {
        let (y, x) = (border.inside(top as isize + dy, SIDE), border.inside(left as isize + dx, SIDE));
        picture[(y * SIDE + x) * channels + channel]
    };
    let upper = pixel(0, 0) * (1.0 - right) + pixel(0, 1) * right;
    let lower = pixel(1, 0) * (1.0 - right) + pixel(1, 1) * right;
    upper * (1.0 - down) + lower * down
}

/// The middle of the picture enlarged by `factor` >= 1 to its old size, linearly, corners on corners as scipy's zoom.
pub fn enlarge(picture: &[f64], channels: usize, factor: f64) -> Vec<f64> {
    let crop = (SIDE as f64 / factor).ceil();
    let first = (SIDE - crop as usize) / 2;
    let enlarged = (crop * factor).round_ties_even();
    let trim = (enlarged as usize - SIDE) / 2;
    let step = (crop - 1.0) / (enlarged - 1.0);
    let source = |place: usize| first as f64 + ((place + trim) as f64 * step).min(crop - 1.0);
    let mut result = vec![0.0; picture.len()];
    for (at, value) in result.iter_mut().enumerate() {
        let (y, x, channel) = (at / channels / SIDE, at / channels % SIDE, at % channels);
        *value = between(picture, channels, channel, source(y), source(x), Border::Nearest);
    }
    result
}

/// ImageMagick's motion blur of bytes \[SIDE, SIDE, channels\]: half a Gaussian along a line of whole pixels, edges repeated.
pub fn motion_blur(image: &[u8], channels: usize, radius: f64, sigma: f64, degrees: f64) -> Vec<u8> {
    let width = 2 * radius.ceil() as usize + 1;
    let weights: Vec<f64> = (0..width).map(|at| (-((at * at) as f64) / (2.0 * sigma * sigma)).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let (sine, cosine) = degrees.to_radians().sin_cos();
    let offset = |at: usize, slope: f64| (at as f64 * slope - 0.5).ceil() as isize;
    let blurred = |at: usize| {
        let (y, x, channel) = (at / channels / SIDE, at / channels % SIDE, at % channels);
        let value = weights.iter().enumerate().fold(0.0, |sum, (step, weight)| {
            let y = Border::Nearest.inside(y as isize + offset(step, sine), SIDE);
            let x = Border::Nearest.inside(x as isize + offset(step, cosine), SIDE);
            sum + weight * f64::from(image[(y * SIDE + x) * channels + channel])
        });
        (value / sum).round() as u8
    };
    (0..image.len()).map(blurred).collect()
}
