//! Figures as PNG, with our own fonts: nothing of the system is needed.

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::outlines::outlined;

/// The regular font, as in the figures and the page.
pub const REGULAR: &[u8] = include_bytes!("../../fonts/PudicaSans-Regular.ttf");

/// The bold font.
pub const BOLD: &[u8] = include_bytes!("../../fonts/PudicaSans-Bold.ttf");

/// Pixels for each unit of the SVG: sharp in print and on dense screens.
const ZOOM: f32 = 2.5;

/// Draws an SVG as PNG; the error is a sentence for the maintainers, since the SVG is ours.
pub fn render(svg: &str) -> Result<Vec<u8>, String> {
    let tree = Tree::from_str(&outlined(svg)?, &Options::default()).map_err(|error| error.to_string())?;
    let size = tree.size();
    let (width, height) = ((size.width() * ZOOM).ceil() as u32, (size.height() * ZOOM).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| format!("no room for {width} x {height} pixels"))?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(ZOOM, ZOOM), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
