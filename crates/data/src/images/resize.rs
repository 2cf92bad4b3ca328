//! Pictures of any size as images of one size.

use super::Shape;

/// Lobes of the filter on each side.
const LOBES: f64 = 3.0;

/// The middle square of a picture, resized to `size` x `size`: [`fitted`] of a square.
pub(super) fn square(shape: Shape, pixels: &[u8], size: usize) -> (Shape, Vec<u8>) {
    fitted(shape, pixels, size, size)
}

/// The middle of a picture, as much as has the proportions of `height` x `width`, resized to them by Lanczos' filter of three lobes: as wide as
/// the pixels of the coarser of the two grids, so that nothing finer than these is left.
pub fn fitted(shape: Shape, pixels: &[u8], height: usize, width: usize) -> (Shape, Vec<u8>) {
    let channels = shape.channels;
    let resized = Shape { height, width, channels };
    if shape == resized {
        return (resized, pixels.to_vec());
    }
    // What is kept: the whole of one side, and of the other what the proportions leave.
    let part =
        |other: usize, this: usize, of: usize| (other as f64 * this as f64 / of as f64).round().max(1.0) as usize;
    let rows = part(shape.width, height, width).min(shape.height);
    let columns = part(shape.height, width, height).min(shape.width);
    let (top, left) = ((shape.height - rows) / 2, (shape.width - columns) / 2);
    let taps = |pixels: usize, size: usize| (0..size).map(move |place| Taps::at(place, pixels, size));
    let across: Vec<Taps> = taps(columns, width).collect();
    // Rows first, as bytes: [rows, width, channels].
    let mut narrow = Vec::with_capacity(rows * width * channels);
    for y in 0..rows {
        let line = &pixels[((top + y) * shape.width + left) * channels..][..columns * channels];
        for taps in &across {
            narrow.extend(taps.mix(line, channels));
        }
    }
    let squared = taps(rows, height).flat_map(|taps| taps.mix(&narrow, width * channels)).collect();
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

    /// The mixture of pieces of so many values.
    fn mix(&self, values: &[u8], piece: usize) -> impl Iterator<Item = u8> + use<> {
        let mut mixed = vec![0f32; piece];
        for (weight, from) in self.weights.iter().zip(values[self.first * piece..].chunks_exact(piece)) {
            mixed.iter_mut().zip(from).for_each(|(value, byte)| *value += weight * f32::from(*byte));
        }
        mixed.into_iter().map(|value| value.round() as u8) // what is beyond 0 and 255 becomes these
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

    /// Pillow's weights are rounded, so single levels may differ.
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
            assert!(differences.iter().all(|difference| *difference <= 1), "{shape}: {:?}", differences.iter().max());
            assert!(equal * 100 > 99 * pixels.len(), "{shape}: {equal} of {} are equal", pixels.len());
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

    /// Each axis is resized by itself, so a picture whose rows are equal stays so, and the middle is what is kept.
    #[test]
    fn any_proportions() {
        let shape = Shape { height: 8, width: 12, channels: 1 };
        let columns: Vec<u8> =
            (0..8).flat_map(|_| (0..12).map(|x| if (4..8).contains(&x) { 200 } else { 10 })).collect();
        let (resized, pixels) = fitted(shape, &columns, 4, 2);
        assert_eq!((resized.height, resized.width, pixels.len()), (4, 2, 8));
        assert!(pixels.iter().all(|value| *value >= 190), "{pixels:?}");
        // A line is stretched to a whole image.
        let line = Shape { height: 1, width: 5, channels: 3 };
        assert_eq!(fitted(line, &[7; 15], 3, 2).1, [7; 18]);
    }
}
