//! Noise on every value.

use crate::Stream;

/// Normal noise.
pub fn gaussian(picture: Vec<f64>, level: usize, stream: &mut Stream) -> Vec<f64> {
    let scale = [0.04, 0.06, 0.08, 0.09, 0.10][level];
    picture.into_iter().map(|value| value + scale * stream.normal()).collect()
}

/// A count of photons, `photons` of them on average for white.
pub fn shot(picture: Vec<f64>, level: usize, stream: &mut Stream) -> Vec<f64> {
    let photons = [500.0, 250.0, 100.0, 75.0, 50.0][level];
    picture.into_iter().map(|value| stream.poisson(value * photons) / photons).collect()
}

/// Salt and pepper, each value by itself, half of each.
pub fn impulse(picture: Vec<f64>, level: usize, stream: &mut Stream) -> Vec<f64> {
    let share = [0.01, 0.02, 0.03, 0.05, 0.07][level];
    let one = |value| {
        if stream.uniform() >= share { value } else { f64::from(u8::from(stream.uniform() < 0.5)) }
    };
    picture.into_iter().map(one).collect()
}

/// Normal noise in proportion to the value.
pub fn speckle(picture: Vec<f64>, level: usize, stream: &mut Stream) -> Vec<f64> {
    let scale = [0.06, 0.1, 0.12, 0.16, 0.2][level];
    picture.into_iter().map(|value| value + value * scale * stream.normal()).collect()
}
