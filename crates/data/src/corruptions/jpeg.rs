//! What JPEG takes away: colours at half the resolution, cosine coefficients rounded to multiples. Storing the coefficients loses
//! nothing, so no file is written; the steps are those of libjpeg as Pillow uses it (2 x 2 subsampling, smooth enlargement).

use super::SIDE;
use std::f64::consts::PI;

const HALF: usize = SIDE / 2;

/// Steps of the brightness coefficients at quality 50 (Annex K of the standard), row by row.
const LUMINANCE: [u16; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51,
    87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101,
    72, 92, 95, 98, 112, 100, 103, 99,
];

/// Steps of the colour coefficients at quality 50.
const CHROMINANCE: [u16; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99,
];

/// The picture after storing it at CIFAR-10-C's qualities.
pub fn compress(image: &[u8], level: usize) -> Vec<u8> {
    let scale =
        [80, 65, 58, 50, 40].map(|quality: u16| if quality < 50 { 5000 / quality } else { 200 - 2 * quality })[level];
    let steps = |table: [u16; 64]| table.map(|step| f64::from(((step * scale + 50) / 100).clamp(1, 255)));
    let plane = |weights: [f64; 3], offset: f64| -> Vec<f64> {
        let value = |pixel: &[u8]| (0..3).map(|c| weights[c] * f64::from(pixel[c])).sum::<f64>() + offset;
        image.chunks_exact(3).map(|pixel| value(pixel).round()).collect()
    };
    let bright = round_coefficients(&plane([0.299, 0.587, 0.114], 0.0), SIDE, &steps(LUMINANCE));
    let colour = |weights| enlarge(&round_coefficients(&halve(&plane(weights, 128.0)), HALF, &steps(CHROMINANCE)));
    let blue = colour([-0.168735892, -0.331264108, 0.5]);
    let red = colour([0.5, -0.418687589, -0.081312411]);
    let pixel = |at: usize| {
        let (y, b, r) = (bright[at], blue[at] - 128.0, red[at] - 128.0);
        [y + 1.402 * r, y - 0.344136286 * b - 0.714136286 * r, y + 1.772 * b]
            .map(|value| value.round().clamp(0.0, 255.0) as u8)
    };
    (0..SIDE * SIDE).flat_map(pixel).collect()
}

/// Means of 2 x 2 pixels; halves are rounded down and up in turn, as libjpeg does.
fn halve(plane: &[f64]) -> Vec<f64> {
    let mean = |at: usize| {
        let (y, x) = (at / HALF * 2, at % HALF * 2);
        let sum: f64 = [0, 1, SIDE, SIDE + 1].iter().map(|beside| plane[y * SIDE + x + beside]).sum();
        ((sum + if at.is_multiple_of(2) { 1.0 } else { 2.0 }) / 4.0).floor()
    };
    (0..HALF * HALF).map(mean).collect()
}

/// Twice the size: every new pixel 3/4 its nearest one and 1/4 the next, down and across.
fn enlarge(plane: &[f64]) -> Vec<f64> {
    let neighbour = |place: usize| {
        let near = place / 2;
        let far = if place.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(HALF - 1) };
        (near, far)
    };
    let value = |at: usize| {
        let ((near_y, far_y), (near_x, far_x)) = (neighbour(at / SIDE), neighbour(at % SIDE));
        let column = |x: usize| 3.0 * plane[near_y * HALF + x] + plane[far_y * HALF + x];
        let rounding = if at.is_multiple_of(2) { 8.0 } else { 7.0 };
        ((3.0 * column(near_x) + column(far_x) + rounding) / 16.0).floor()
    };
    (0..SIDE * SIDE).map(value).collect()
}

/// Blocks of 8 x 8 through the cosine transform, coefficients rounded to their steps, and back to whole values 0 to 255.
fn round_coefficients(plane: &[f64], side: usize, steps: &[f64; 64]) -> Vec<f64> {
    // basis[k][x] is orthonormal, so that the inverse is the transpose.
    let basis: [[f64; 8]; 8] = std::array::from_fn(|k| {
        let norm = if k == 0 { (1.0f64 / 8.0).sqrt() } else { 0.5 };
        std::array::from_fn(|x| norm * ((2 * x + 1) as f64 * k as f64 * PI / 16.0).cos())
    });
    let mut result = vec![0.0; plane.len()];
    for (top, left) in (0..side).step_by(8).flat_map(|top| (0..side).step_by(8).map(move |left| (top, left))) {
        let place = |at: usize| (top + at / 8) * side + left + at % 8;
        let sum = |at: usize, weight: &dyn Fn(usize, usize) -> f64, values: &[f64; 64]| -> f64 {
            (0..64).map(|other| weight(at / 8, other / 8) * weight(at % 8, other % 8) * values[other]).sum()
        };
        let block: [f64; 64] = std::array::from_fn(|at| plane[place(at)] - 128.0);
        let rounded: [f64; 64] =
            std::array::from_fn(|at| (sum(at, &|k, x| basis[k][x], &block) / steps[at]).round() * steps[at]);
        for at in 0..64 {
            let value = sum(at, &|x, k| basis[k][x], &rounded) + 128.0;
            result[place(at)] = value.round().clamp(0.0, 255.0);
        }
    }
    result
}
