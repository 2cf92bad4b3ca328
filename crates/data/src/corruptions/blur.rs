//! Blurs.

use super::SIDE;
use super::filters::{self, Border, enlarge, motion_blur};
use crate::Stream;

/// A Gaussian filter.
pub fn gaussian(picture: Vec<f64>, level: usize) -> Vec<f64> {
    filters::gaussian(&picture, 3, [0.4, 0.6, 0.7, 0.8, 1.0][level], 4.0, Border::Nearest)
}

/// A disk, its edge softened.
pub fn defocus(picture: Vec<f64>, level: usize) -> Vec<f64> {
    const REACH: isize = 8;
    let (radius, softness): (f64, f64) = [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1)][level];
    let inside = |y: isize, x: isize| f64::from(u8::from((y * y + x * x) as f64 <= radius * radius));
    let beside = (-0.5 / (softness * softness)).exp();
    let soft = |offset: isize| if offset == 0 { 1.0 } else { beside } / (1.0 + 2.0 * beside);
    let mut kernel = Vec::new();
    for (y, x) in (-REACH..=REACH).flat_map(|y| (-REACH..=REACH).map(move |x| (y, x))) {
        let near = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dy, dx)));
        let weight: f64 = near.map(|(dy, dx)| soft(dy) * soft(dx) * inside(y + dy, x + dx)).sum();
        if weight > 0.0 {
            kernel.push((y, x, weight));
        }
    }
    let area: f64 = (-REACH..=REACH).flat_map(|y| (-REACH..=REACH).map(move |x| inside(y, x))).sum();
    let filtered = |at: usize| {
        let (y, x, channel) = ((at / 3 / SIDE) as isize, (at / 3 % SIDE) as isize, at % 3);
        let values = kernel.iter().map(|(dy, dx, weight)| {
            let (y, x) = (Border::Mirror.inside(y + dy, SIDE), Border::Mirror.inside(x + dx, SIDE));
            weight * picture[(y * SIDE + x) * 3 + channel]
        });
        values.sum::<f64>() / area
    };
    (0..picture.len()).map(filtered).collect()
}

/// Pixels that take the place of a neighbour's, between two Gaussian filters.
pub fn glass(picture: Vec<f64>, level: usize, stream: &mut Stream) -> Vec<f64> {
    let (sigma, rounds) = [(0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2)][level];
    let filter = |picture: &[f64]| filters::gaussian(picture, 3, sigma, 4.0, Border::Nearest);
    let mut bytes: Vec<u8> = filter(&picture).into_iter().map(|value| (value * 255.0) as u8).collect();
    for _ in 0..rounds {
        for y in (2..SIDE).rev() {
            for x in (2..SIDE).rev() {
                let (left, up) = (stream.below(2) as usize, stream.below(2) as usize);
                // The official script means to swap the two, but numpy's views make it a copy.
                let from = ((y - up) * SIDE + x - left) * 3;
                bytes.copy_within(from..from + 3, (y * SIDE + x) * 3);
            }
        }
    }
    let shuffled: Vec<f64> = bytes.into_iter().map(|byte| f64::from(byte) / 255.0).collect();
    filter(&shuffled)
}

/// A camera that moved, less than 45 degrees off the horizontal.
pub fn motion(image: &[u8], level: usize, stream: &mut Stream) -> Vec<u8> {
    let (radius, sigma) = [(6.0, 1.0), (6.0, 1.5), (6.0, 2.0), (8.0, 2.0), (9.0, 2.5)][level];
    motion_blur(image, 3, radius, sigma, -45.0 + 90.0 * stream.uniform())
}

/// The mean of the picture and its enlargements.
pub fn zoom(picture: Vec<f64>, level: usize) -> Vec<f64> {
    // numpy.arange(1, 1.06, 0.01) has seven values, its last one beyond the end by rounding; so for the others.
    let end: f64 = [1.06, 1.11, 1.16, 1.21, 1.26][level];
    let count = ((end - 1.0) / 0.01).ceil() as usize;
    let step = (1.0 + 0.01) - 1.0; // as numpy takes it: the last factor, 1.25 and a bit, is rounded up
    let mut sum = picture.clone();
    for index in 0..count {
        let enlarged = enlarge(&picture, 3, 1.0 + index as f64 * step);
        sum.iter_mut().zip(enlarged).for_each(|(sum, value)| *sum += value);
    }
    sum.into_iter().map(|value| value / (count + 1) as f64).collect()
}
