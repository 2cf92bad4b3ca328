//! Spatter: drops of water on the lens (severities 1 to 3) or mud (4 and 5), with OpenCV's filters.

use super::SIDE;
use super::filters::{Border, gaussian};
use crate::Stream;

/// Pale turquoise and brown.
const WATER: [f64; 3] = [175.0 / 255.0, 238.0 / 255.0, 238.0 / 255.0];
const MUD: [f64; 3] = [63.0 / 255.0, 42.0 / 255.0, 20.0 / 255.0];

/// Mean and deviation of the noise, its smoothing, what counts as liquid, and strength (of water) or smoothing (of mud).
const LEVELS: [(f64, f64, f64, f64, f64); 5] = [
    (0.62, 0.1, 0.7, 0.7, 0.5),
    (0.65, 0.1, 0.8, 0.7, 0.5),
    (0.65, 0.3, 1.0, 0.69, 0.5),
    (0.65, 0.1, 0.7, 0.69, 0.6),
    (0.65, 0.1, 0.5, 0.68, 0.6),
];

/// Random drops over the picture.
pub fn spatter(picture: Vec<f64>, level: usize, stream: &mut Stream) -> Vec<f64> {
    let noise: Vec<f64> = (0..SIDE * SIDE).map(|_| stream.normal()).collect();
    splash(picture, level, &noise)
}

/// Drops where the noise \[SIDE, SIDE\] of mean 0 and deviation 1, smoothed, is high.
fn splash(picture: Vec<f64>, level: usize, noise: &[f64]) -> Vec<f64> {
    let (mean, deviation, sigma, least, strength) = LEVELS[level];
    let noise: Vec<f64> = noise.iter().map(|value| mean + deviation * value).collect();
    let mut liquid = gaussian(&noise, 1, sigma, 4.0, Border::Nearest);
    liquid.iter_mut().for_each(|value| *value = if *value < least { 0.0 } else { *value });
    if level < 3 { water(picture, &liquid, strength) } else { mud(picture, &liquid, least, strength) }
}

/// Light on the slopes of the drops, brightest where the liquid is deepest.
fn water(mut picture: Vec<f64>, liquid: &[f64], strength: f64) -> Vec<f64> {
    let liquid: Vec<u8> = liquid.iter().map(|value| (value * 255.0) as u8).collect();
    let far = distance_to(&edges(&liquid)).map(|distance| distance.min(20.0));
    let far = around(&far, |values| values.iter().sum::<f64>() / 9.0).map(|mean| f64::from(mean as u8));
    // A slope from the upper left is bright.
    let slope = around(&equalised(&far), |v| {
        let sum = -2.0 * v[0] - v[1] - v[3] + v[4] + v[5] + v[7] + 2.0 * v[8];
        sum.clamp(0.0, 255.0)
    });
    let slope = around(&slope, |values| (values.iter().sum::<f64>() / 9.0).round());
    let mask: Vec<f64> = liquid.iter().zip(slope).map(|(liquid, slope)| f64::from(*liquid) * slope).collect();
    let highest = mask.iter().copied().fold(0.0, f64::max);
    // Where no drop fell, the official script divides by zero and makes the picture black; here it stays as it is.
    if highest > 0.0 {
        for (pixel, mask) in picture.chunks_exact_mut(3).zip(mask) {
            pixel.iter_mut().zip(WATER).for_each(|(value, colour)| *value += mask / highest * strength * colour);
        }
    }
    picture
}

/// Opaque spots, thin ones washed away.
fn mud(mut picture: Vec<f64>, liquid: &[f64], least: f64, sigma: f64) -> Vec<f64> {
    let spots: Vec<f64> = liquid.iter().map(|value| f64::from(u8::from(*value > least))).collect();
    let spots = gaussian(&spots, 1, sigma, 4.0, Border::Nearest);
    for (pixel, spot) in picture.chunks_exact_mut(3).zip(spots) {
        let cover = if spot < 0.8 { 0.0 } else { spot };
        pixel.iter_mut().zip(MUD).for_each(|(value, colour)| *value = *value * (1.0 - cover) + colour * cover);
    }
    picture
}

type Field = [f64; SIDE * SIDE];

/// What `of` makes of each place's 3 x 3 values, rows first; the border mirrored.
fn around(field: &Field, of: impl Fn([f64; 9]) -> f64) -> Field {
    std::array::from_fn(|at| of(neighbours(at, Border::Mirror, |place| field[place])))
}

fn neighbours(at: usize, border: Border, value: impl Fn(usize) -> f64) -> [f64; 9] {
    let (y, x) = ((at / SIDE) as isize, (at % SIDE) as isize);
    std::array::from_fn(|k| {
        let (dy, dx) = (k as isize / 3 - 1, k as isize % 3 - 1);
        value(border.inside(y + dy, SIDE) * SIDE + border.inside(x + dx, SIDE))
    })
}

/// Canny's edges with thresholds 50 and 150: Sobel's gradients, their sum of sizes, thinned across the edge, kept where strong or
/// joined to strong ones.
fn edges(image: &[u8]) -> [bool; SIDE * SIDE] {
    const LOW: f64 = 50.0;
    const HIGH: f64 = 150.0;
    let gradient: Vec<(f64, f64)> = (0..SIDE * SIDE)
        .map(|at| {
            let v = neighbours(at, Border::Nearest, |place| f64::from(image[place]));
            (v[2] + 2.0 * v[5] + v[8] - v[0] - 2.0 * v[3] - v[6], v[6] + 2.0 * v[7] + v[8] - v[0] - 2.0 * v[1] - v[2])
        })
        .collect();
    let size = |y: isize, x: isize| match inside(y, x) {
        Some(at) => gradient[at].0.abs() + gradient[at].1.abs(),
        None => 0.0,
    };
    let is_ridge = |at: usize| {
        let ((dx, dy), (y, x)) = (gradient[at], ((at / SIDE) as isize, (at % SIDE) as isize));
        let own = size(y, x);
        // Across the edge: sideways, up and down, or along a diagonal. Of two equal ones side by side, one stays.
        match (dx.abs(), dy.abs()) {
            _ if own <= LOW => false,
            (across, along) if along < TANGENT * across => own > size(y, x - 1) && own >= size(y, x + 1),
            (across, along) if along > (TANGENT + 2.0) * across => own > size(y - 1, x) && own >= size(y + 1, x),
            _ => {
                let side = if (dx < 0.0) != (dy < 0.0) { -1 } else { 1 };
                own > size(y - 1, x - side) && own > size(y + 1, x + side)
            }
        }
    };
    let ridge: [bool; SIDE * SIDE] = std::array::from_fn(is_ridge);
    let strong = |at: &usize| ridge[*at] && gradient[*at].0.abs() + gradient[*at].1.abs() > HIGH;
    let mut waiting: Vec<usize> = (0..SIDE * SIDE).filter(strong).collect();
    let mut edge = [false; SIDE * SIDE];
    while let Some(at) = waiting.pop() {
        if std::mem::replace(&mut edge[at], true) {
            continue;
        }
        let (y, x) = ((at / SIDE) as isize, (at % SIDE) as isize);
        let beside = (-1..=1).flat_map(|dy| (-1..=1).filter_map(move |dx| inside(y + dy, x + dx)));
        waiting.extend(beside.filter(|at| ridge[*at] && !edge[*at]));
    }
    edge
}

/// tan(22.5 degrees); tan(67.5 degrees) is 2 more.
const TANGENT: f64 = std::f64::consts::SQRT_2 - 1.0;

fn inside(y: isize, x: isize) -> Option<usize> {
    let range = 0..SIDE as isize;
    (range.contains(&y) && range.contains(&x)).then(|| y as usize * SIDE + x as usize)
}

/// The distance of each place from the nearest edge, by steps of 1 (beside), 1.4 (diagonal) and 2.1969 (a knight's move), infinite where
/// there is none: OpenCV's approximation with a mask of 5 x 5.
fn distance_to(edge: &[bool; SIDE * SIDE]) -> Field {
    const STEPS: [(isize, isize, f64); 8] = [
        (0, -1, 1.0),
        (-1, 0, 1.0),
        (-1, -1, 1.4),
        (-1, 1, 1.4),
        (-2, -1, 2.1969),
        (-2, 1, 2.1969),
        (-1, -2, 2.1969),
        (-1, 2, 2.1969),
    ];
    let mut distance: Field = std::array::from_fn(|at| if edge[at] { 0.0 } else { f64::INFINITY });
    // Down through all rows with the steps from above, then up with their mirror images.
    let down = (0..SIDE * SIDE).map(|at| (at, 1));
    for (at, way) in down.chain((0..SIDE * SIDE).rev().map(|at| (at, -1))) {
        let (y, x) = ((at / SIDE) as isize, (at % SIDE) as isize);
        for (dy, dx, length) in STEPS {
            if let Some(from) = inside(y + way * dy, x + way * dx) {
                distance[at] = distance[at].min(distance[from] + length);
            }
        }
    }
    distance
}

/// Whole values 0 to 255 spread so that all are about equally frequent: OpenCV's histogram equalisation.
fn equalised(field: &Field) -> Field {
    let mut counts = [0u32; 256];
    field.iter().for_each(|value| counts[*value as usize] += 1);
    let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
    let others = field.len() as u32 - counts[first];
    if others == 0 {
        return *field;
    }
    let (mut sum, mut table) = (0, [0.0; 256]);
    for value in first + 1..256 {
        sum += counts[value];
        table[value] = f64::from(255.0 / others as f32 * sum as f32).round_ties_even();
    }
    field.map(|value| table[value as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_boolean::npy::read_header;
    use std::io::Read;

    /// The picture and the noise of `tests/fixtures/spatter.py`, which gives them to OpenCV and scikit-image.
    #[test]
    fn as_other_programs_make_it() {
        let value = |i: usize| {
            let (y, x, c) = (i / 96, i / 3 % 32, i % 3);
            ((3 * x * (c + 1) + 5 * y + (x * y * (c + 2)) / 7 + 40 * ((x / 5 + y / 7 + c) % 3)) % 256) as f64 / 255.0
        };
        let picture: Vec<f64> = (0..SIDE * SIDE * 3).map(value).collect();
        // A linear congruential generator's uniform numbers, of mean 0 and deviation 1.
        let mut state = 12_345u64;
        let mut uniform = || {
            state = (state * 1_103_515_245 + 12_345) % (1 << 31);
            (state as f64 / (1u64 << 31) as f64 - 0.5) * 12.0f64.sqrt()
        };
        let noise: Vec<f64> = (0..SIDE * SIDE).map(|_| uniform()).collect();
        let mut file = &include_bytes!("../../tests/fixtures/spatter.npy")[..];
        assert_eq!(read_header(&mut file).unwrap().shape, [5, 32, 32, 3]);
        for level in 0..5 {
            let mut expected = vec![0; SIDE * SIDE * 3];
            file.read_exact(&mut expected).unwrap();
            let found = splash(picture.clone(), level, &noise);
            let found = found.iter().map(|value| (value.clamp(0.0, 1.0) * 255.0) as u8);
            let differences: Vec<u8> = found.zip(&expected).map(|(a, b)| a.abs_diff(*b)).collect();
            let worst = differences.iter().max().copied().unwrap_or(0);
            let share = differences.iter().filter(|difference| **difference > 0).count() as f64 / 3072.0;
            println!("severity {}: worst {worst}, {share:.4} differ", level + 1);
            assert!(worst <= 1 && share < 0.02, "severity {}: worst {worst}, {share} differ", level + 1);
        }
    }

    #[test]
    fn distances_are_those_of_the_steps() {
        let mut edge = [false; SIDE * SIDE];
        edge[10 * SIDE + 10] = true;
        let distance = distance_to(&edge);
        let at = |y: usize, x: usize| distance[y * SIDE + x];
        assert_eq!((at(10, 10), at(10, 13), at(7, 10), at(12, 12)), (0.0, 3.0, 3.0, 2.8));
        assert_eq!((at(12, 11), at(9, 8), at(11, 8)), (2.1969, 2.1969, 2.1969));
        assert!(distance_to(&[false; SIDE * SIDE]).iter().all(|distance| distance.is_infinite()));
    }

    #[test]
    fn a_bright_square_has_its_outline_for_edges() {
        let image: Vec<u8> = (0..SIDE * SIDE)
            .map(|at| if (8..24).contains(&(at / SIDE)) && (8..24).contains(&(at % SIDE)) { 200 } else { 0 })
            .collect();
        let edge = edges(&image);
        assert!((10..22).all(|y| (0..SIDE).filter(|x| edge[y * SIDE + x]).count() == 2), "two sides in each row");
        assert!(!(0..6).any(|y| (0..SIDE).any(|x| edge[y * SIDE + x])));
        assert_eq!(edges(&vec![90; SIDE * SIDE]), [false; SIDE * SIDE]);
    }
}
