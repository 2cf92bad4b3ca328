//! Colours, distortion and larger pixels.

use super::SIDE;
use super::filters::{Border, between, gaussian};
use crate::Stream;

/// Less difference from each channel's mean.
pub fn contrast(mut picture: Vec<f64>, level: usize) -> Vec<f64> {
    let keep = [0.75, 0.5, 0.4, 0.3, 0.15][level];
    for channel in 0..3 {
        let mean = picture[channel..].iter().step_by(3).sum::<f64>() / (SIDE * SIDE) as f64;
        picture[channel..].iter_mut().step_by(3).for_each(|value| *value = (*value - mean) * keep + mean);
    }
    picture
}

/// More of the V of hue, saturation and value.
pub fn brightness(picture: Vec<f64>, level: usize) -> Vec<f64> {
    let more = [0.05, 0.1, 0.15, 0.2, 0.3][level];
    recolour(picture, |[hue, saturation, value]| [hue, saturation, (value + more).clamp(0.0, 1.0)])
}

/// Less saturation, then more.
pub fn saturate(picture: Vec<f64>, level: usize) -> Vec<f64> {
    let (factor, more) = [(0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)][level];
    recolour(picture, |[hue, saturation, value]| [hue, (saturation * factor + more).clamp(0.0, 1.0), value])
}

/// Changes every pixel in hue (0 to 1, 0 for grey), saturation and value.
fn recolour(picture: Vec<f64>, change: impl Fn([f64; 3]) -> [f64; 3]) -> Vec<f64> {
    let pixel = |pixel: &[f64]| {
        let (red, green, blue) = (pixel[0], pixel[1], pixel[2]);
        let value = red.max(green).max(blue);
        let range = value - red.min(green).min(blue);
        let saturation = if value > 0.0 { range / value } else { 0.0 };
        let hue = match () {
            () if range == 0.0 => 0.0,
            () if blue == value => 4.0 + (red - green) / range,
            () if green == value => 2.0 + (blue - red) / range,
            () => ((green - blue) / range).rem_euclid(6.0),
        };
        let [hue, saturation, value] = change([hue / 6.0, saturation, value]);
        // Each colour is a trapezoid of the hue: full, falling, none, rising.
        [5.0, 3.0, 1.0].map(|shift| {
            let place = (shift + hue * 6.0).rem_euclid(6.0);
            value - value * saturation * place.min(4.0 - place).clamp(0.0, 1.0)
        })
    };
    picture.chunks_exact(3).flat_map(pixel).collect()
}

/// A random affine map, then a smooth random displacement of every pixel.
pub fn elastic(picture: Vec<f64>, level: usize, stream: &mut Stream) -> Vec<f64> {
    let side = SIDE as f64;
    let (strength, sigma, shift) =
        [(0.0, 0.0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)]
            .map(|(strength, sigma, shift)| (strength * side, sigma * side, shift * side))[level];
    let around = |stream: &mut Stream, reach: f64| reach * (2.0 * stream.uniform() - 1.0);
    // Three corners (x, y) of a square of 20 in the middle move; the picture with them.
    let corners = [[26.0, 26.0], [26.0, 6.0], [6.0, 6.0]];
    let moved = corners.map(|[x, y]: [f64; 2]| [x + around(stream, shift), y + around(stream, shift)]);
    // Back from the moved picture: corners[1] + a (target - moved[1]), where a maps the two moved edges to the old ones.
    let edge = |points: [[f64; 2]; 3], end: usize| [points[end][0] - points[1][0], points[end][1] - points[1][1]];
    let ([ux, uy], [vx, vy]) = (edge(moved, 0), edge(moved, 2));
    let determinant = ux * vy - uy * vx;
    let ([px, py], [qx, qy]) = (edge(corners, 0), edge(corners, 2));
    let mut warped = vec![0.0; picture.len()];
    for (at, value) in warped.iter_mut().enumerate() {
        let (y, x) = ((at / 3 / SIDE) as f64 - moved[1][1], (at / 3 % SIDE) as f64 - moved[1][0]);
        let (along_u, along_v) = ((x * vy - y * vx) / determinant, (y * ux - x * uy) / determinant);
        let source_x = corners[1][0] + along_u * px + along_v * qx;
        let source_y = corners[1][1] + along_u * py + along_v * qy;
        *value = between(&picture, 3, at % 3, source_y, source_x, Border::Mirror);
    }
    let mut displacement = || {
        let random: Vec<f64> = (0..SIDE * SIDE).map(|_| around(stream, 1.0)).collect();
        gaussian(&random, 1, sigma, 3.0, Border::Reflect).into_iter().map(|value| value * strength).collect::<Vec<_>>()
    };
    let (right, down) = (displacement(), displacement());
    let pulled = |at: usize| {
        let (y, x) = ((at / 3 / SIDE) as f64 + down[at / 3], (at / 3 % SIDE) as f64 + right[at / 3]);
        between(&warped, 3, at % 3, y, x, Border::Reflect)
    };
    (0..warped.len()).map(pulled).collect()
}

/// Reduced and enlarged again by averages over boxes, in Pillow's steps of bytes.
pub fn pixelate(image: &[u8], level: usize) -> Vec<u8> {
    let small = [30, 28, 27, 24, 20][level];
    resize_boxes(&resize_boxes(image, SIDE, small), small, SIDE)
}

/// A square of bytes \[from, from, 3\] as one of \[to, to, 3\], rows first, rounded to bytes between.
fn resize_boxes(image: &[u8], from: usize, to: usize) -> Vec<u8> {
    let scale = from as f64 / to as f64;
    let reach = 0.5 * scale.max(1.0);
    // First and last pixel (excluded) of each box.
    let boxes: Vec<(usize, usize)> = (0..to)
        .map(|place| {
            let centre = (place as f64 + 0.5) * scale;
            let covered = |pixel: &usize| {
                let distance = (*pixel as f64 + 0.5 - centre) / scale.max(1.0);
                distance > -0.5 && distance <= 0.5
            };
            let (low, high) = ((centre - reach + 0.5).max(0.0) as usize, ((centre + reach + 0.5) as usize).min(from));
            let inside: Vec<usize> = (low..high).filter(covered).collect();
            (inside.first().copied().unwrap_or(low), inside.last().map_or(low + 1, |last| last + 1))
        })
        .collect();
    let mean = |values: &mut dyn Iterator<Item = u8>, count: usize| {
        let sum: u32 = values.map(u32::from).sum();
        (f64::from(sum) / count as f64).round() as u8
    };
    let mut rows = Vec::with_capacity(from * to * 3);
    for y in 0..from {
        for (first, end) in &boxes {
            rows.extend((0..3).map(|c| mean(&mut (*first..*end).map(|x| image[(y * from + x) * 3 + c]), end - first)));
        }
    }
    let mut result = Vec::with_capacity(to * to * 3);
    for (first, end) in &boxes {
        for at in 0..to * 3 {
            result.push(mean(&mut (*first..*end).map(|y| rows[y * to * 3 + at]), end - first));
        }
    }
    result
}
