//! Snow and fog.

use super::SIDE;
use super::filters::{enlarge, motion_blur};
use crate::Stream;

/// Flakes that fall, on a picture made paler.
pub fn snow(picture: Vec<f64>, level: usize, stream: &mut Stream) -> Vec<f64> {
    let (mean, spread, size, least, radius, sigma, keep) = [
        (0.1, 0.2, 1.0, 0.6, 8.0, 3.0, 0.95),
        (0.1, 0.2, 1.0, 0.5, 10.0, 4.0, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10.0, 4.0, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12.0, 6.0, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14.0, 12.0, 0.8),
    ][level];
    let layer: Vec<f64> = (0..SIDE * SIDE).map(|_| mean + spread * stream.normal()).collect();
    let flake = |value: f64| if value < least { 0 } else { (value.min(1.0) * 255.0) as u8 };
    let flakes: Vec<u8> = enlarge(&layer, 1, size).into_iter().map(flake).collect();
    let flakes = motion_blur(&flakes, 1, radius, sigma, -135.0 + 90.0 * stream.uniform());
    let mut snowed = Vec::with_capacity(picture.len());
    for (at, pixel) in picture.chunks_exact(3).enumerate() {
        let grey = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
        // The layer, and the layer turned by half a turn.
        let white = (f64::from(flakes[at]) + f64::from(flakes[flakes.len() - 1 - at])) / 255.0;
        snowed.extend(pixel.iter().map(|value| keep * value + (1.0 - keep) * value.max(grey * 1.5 + 0.5) + white));
    }
    snowed
}

/// A fractal cloud over the picture.
pub fn fog(picture: Vec<f64>, level: usize, stream: &mut Stream) -> Vec<f64> {
    let (density, decay) = [(0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75)][level];
    let brightest = picture.iter().copied().fold(0.0, f64::max);
    let cloud = plasma(decay, stream);
    let fogged = |(at, value): (usize, &f64)| (value + density * cloud[at / 3]) * brightest / (brightest + density);
    picture.iter().enumerate().map(fogged).collect()
}

/// A periodic landscape \[SIDE, SIDE\] of heights 0 to 1 by the diamond-square method; the roughness falls by `decay` at each scale.
fn plasma(decay: f64, stream: &mut Stream) -> Vec<f64> {
    let mut map = vec![0.0; SIDE * SIDE];
    let (mut step, mut roughness) = (SIDE, 100.0);
    while step >= 2 {
        let half = step / 2;
        // The roughness enters squared, as in the official script.
        let mut fill = |map: &mut [f64], (y0, x0): (usize, usize), around: [(usize, usize); 4]| {
            let old = map.to_vec();
            for y in (y0..SIDE).step_by(step) {
                for x in (x0..SIDE).step_by(step) {
                    let sum: f64 = around.iter().map(|(dy, dx)| old[(y + dy) % SIDE * SIDE + (x + dx) % SIDE]).sum();
                    let wobble = roughness * (-1.0 + 2.0 * stream.uniform());
                    map[y * SIDE + x] = sum / 4.0 + roughness * wobble;
                }
            }
        };
        let back = SIDE - half; // one half step up or to the left, around the edge
        fill(&mut map, (half, half), [(back, back), (back, half), (half, back), (half, half)]);
        fill(&mut map, (0, half), [(back, 0), (half, 0), (0, back), (0, half)]);
        fill(&mut map, (half, 0), [(back, 0), (half, 0), (0, back), (0, half)]);
        step = half;
        roughness /= decay;
    }
    let lowest = map.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = map.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    map.into_iter().map(|height| (height - lowest) / (highest - lowest)).collect()
}
