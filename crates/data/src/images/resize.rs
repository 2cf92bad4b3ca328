//! Pictures of any size as squares of one size.

use super::Shape;

/// Lobes of the filter on each side.
const LOBES: f64 = 3.0;

/// The middle square of a picture, resized to `size` x `size` by Lanczos' filter of three lobes: as wide as the pixels of the coarser of the two
/// grids, so that nothing finer than these is left.
pub(super) fn square(shape: Shape, pixels: &[u8], size: usize) -> (Shape, Vec<u8>) {
    let Shape { height, width, channels } = shape;
    let side = height.min(width);
    let (top, left) = ((height - side) / 2, (width - side) / 2);
    let resized = Shape { height: size, width: size, channels };
    if (height, width) == (size, size) {
        return (resized, pixels.to_vec());
    }
    let taps: Vec<Taps> = (0..size).map(|place| Taps::at(place, side, size)).collect();
    // Rows first: [side, size, channels].
    let mut rows = vec![0f32; side * size * channels];
    for (y, row) in rows.chunks_exact_mut(size * channels).enumerate() {
        let line = &pixels[((top + y) * width + left) * channels..][..side * channels];
        for (taps, pixel) in taps.iter().zip(row.chunks_exact_mut(channels)) {
            for (weight, from) in taps.weights.iter().zip(line[taps.first * channels..].chunks_exact(channels)) {
                pixel.iter_mut().zip(from).for_each(|(value, byte)| *value += weight * f32::from(*byte));
            }
        }
    }
    let mut squared = Vec::with_capacity(size * size * channels);
    for taps in &taps {
        let mut row = vec![0f32; size * channels];
        for (weight, from) in
            taps.weights.iter().zip(rows[taps.first * size * channels..].chunks_exact(size * channels))
        {
            row.iter_mut().zip(from).for_each(|(value, part)| *value += weight * part);
        }
        squared.extend(row.into_iter().map(|value| value.round() as u8)); // what is beyond 0 and 255 becomes these
    }
    (resized, squared)
}

/// What a pixel is made of: weights, with a sum of 1, of pixels from the first on.
struct Taps {
    first: usize,
    weights: Vec<f32>,
}

impl Taps {
    /// Of the pixel at `place` of `size`, made from `side` pixels.
    fn at(place: usize, side: usize, size: usize) -> Self {
        let scale = side as f64 / size as f64;
        let (middle, width) = ((place as f64 + 0.5) * scale, scale.max(1.0));
        let first = (middle - LOBES * width).round().max(0.0) as usize;
        let past = ((middle + LOBES * width).round() as usize).min(side);
        let weights: Vec<f64> = (first..past).map(|at| lanczos((at as f64 + 0.5 - middle) / width)).collect();
        let sum: f64 = weights.iter().sum();
        Self { first, weights: weights.iter().map(|weight| (weight / sum) as f32).collect() }
    }
}

fn lanczos(x: f64) -> f64 {
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x) };
    if x.abs() < LOBES { sinc(x) * sinc(x / LOBES) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Coarse waves and fine noise, as `tests/fixtures/own.py` makes them.
    fn picture(shape: Shape) -> Vec<u8> {
        (0..shape.pixels() as u64).map(|index| ((index * index * 7 + index * 13) / 16 % 256) as u8).collect()
    }

    /// Pillow rounds to bytes between rows and columns, so single levels may differ.
    #[test]
    fn resized_as_pillow_does() {
        let stored = include_bytes!("../../tests/fixtures/resized.npy");
        let mut expected = &stored[stored.len() - (32 * 32 * 3 + 32 * 32 + 8 * 8 * 3)..];
        for (height, width, channels, size) in [(60, 80, 3, 32), (20, 50, 1, 32), (97, 64, 3, 8)] {
            let shape = Shape { height, width, channels };
            let (resized, pixels) = square(shape, &picture(shape), size);
            assert_eq!(
                (resized, pixels.len()),
                (Shape { height: size, width: size, channels }, size * size * channels)
            );
            let (own, rest) = expected.split_at(pixels.len());
            let differences: Vec<u8> = pixels.iter().zip(own).map(|(a, b)| a.abs_diff(*b)).collect();
            let equal = differences.iter().filter(|difference| **difference == 0).count();
            assert!(differences.iter().all(|difference| *difference <= 1), "{shape}: {differences:?}");
            assert!(equal * 10 > 7 * pixels.len(), "{shape}: {equal} of {} are equal", pixels.len());
            expected = rest;
        }
    }

    #[test]
    fn a_constant_stays_one_and_the_same_size_is_the_same() {
        let shape = Shape { height: 7, width: 31, channels: 3 };
        let (_, pixels) = square(shape, &vec![200; shape.pixels()], 5);
        assert!(pixels.iter().all(|byte| *byte == 200));
        let shape = Shape { height: 9, width: 9, channels: 1 };
        assert_eq!(square(shape, &picture(shape), 9), (shape, picture(shape)));
    }
}
