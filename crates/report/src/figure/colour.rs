//! Colours that people with any colour vision can tell apart.

use super::{Shape, Style};

/// Okabe and Ito's palette without yellow, which is too pale for points on white.
pub const PALETTE: [&str; 7] = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333"];

const SHAPES: [Shape; 4] = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Diamond];

/// Colour and symbol number `place`.
pub fn point(place: usize) -> Style {
    Style::point(PALETTE[place % PALETTE.len()], SHAPES[place % SHAPES.len()])
}

/// Colour and symbol of a target; the paper's four have fixed ones.
pub fn of_target(target: &str) -> Style {
    let place = ["parity", "majority", "first", "mean"].iter().position(|known| *known == target);
    point(place.unwrap_or(4))
}

/// A colour of the continuous scale "viridis", from 0 (dark) to 1 (bright).
pub fn viridis(t: f64) -> String {
    // Nine evenly spaced anchors of matplotlib's table, linear between them.
    const ANCHORS: [[f64; 3]; 9] = [
        [68.0, 1.0, 84.0],
        [71.0, 44.0, 122.0],
        [59.0, 81.0, 139.0],
        [44.0, 113.0, 142.0],
        [33.0, 144.0, 141.0],
        [39.0, 173.0, 129.0],
        [92.0, 200.0, 99.0],
        [170.0, 220.0, 50.0],
        [253.0, 231.0, 37.0],
    ];
    let place = t.clamp(0.0, 1.0) * 8.0;
    let below = (place.floor() as usize).min(7);
    let part = place - below as f64;
    let mix = |channel: usize| ANCHORS[below][channel] * (1.0 - part) + ANCHORS[below + 1][channel] * part;
    format!("#{:02x}{:02x}{:02x}", mix(0).round() as u8, mix(1).round() as u8, mix(2).round() as u8)
}
