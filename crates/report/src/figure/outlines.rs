//! Texts of figures as the outlines of their letters, so that drawing them needs no library that lays out text.

use std::fmt::Write;
use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::png::{BOLD, REGULAR};

/// The size of texts that do not say theirs: that of the figure.
const SIZE: f64 = 13.0;

/// One of our figures with each `<text>` made a `<path>` of the same attributes. Texts are as `draw::text` writes them: a start, an anchor, and
/// parts that are raised or lowered.
pub fn outlined(svg: &str) -> Result<String, String> {
    let mut drawn = String::with_capacity(2 * svg.len());
    let mut rest = svg;
    while let Some((before, after)) = rest.split_once("<text ") {
        let (tag, after) = after.split_once('>').ok_or("a text without its end")?;
        let (content, after) = after.split_once("</text>").ok_or("a text without its end")?;
        drawn += before;
        let _ = write!(drawn, "<path {tag} d=\"{}\"/>", outline(tag, content)?);
        rest = after;
    }
    Ok(drawn + rest)
}

/// The letters of a text, where its attributes put them.
fn outline(tag: &str, content: &str) -> Result<String, String> {
    static FACES: LazyLock<Option<[Face; 2]>> =
        LazyLock::new(|| Some([Face::parse(REGULAR, 0).ok()?, Face::parse(BOLD, 0).ok()?]));
    let [regular, bold] = FACES.as_ref().ok_or("our fonts cannot be read")?;
    let face = if attribute(tag, "font-weight") == Some("bold") { bold } else { regular };
    let number = |name: &str| attribute(tag, name).and_then(|text| text.parse::<f64>().ok());
    let parts = parts(content, number("font-size").unwrap_or(SIZE));
    let width: f64 = parts.iter().map(|part| part.width(face)).sum();
    let start = match attribute(tag, "text-anchor") {
        Some("middle") => -width / 2.0,
        Some("end") => -width,
        _ => 0.0,
    };
    let mut pen = Pen { path: String::new(), x: number("x").unwrap_or(0.0) + start, y: 0.0, scale: 1.0 };
    let line = number("y").unwrap_or(0.0);
    for part in &parts {
        pen.y = line + part.below;
        pen.scale = part.size / f64::from(face.units_per_em());
        for glyph in part.glyphs(face) {
            face.outline_glyph(glyph, &mut pen);
            pen.x += advance(face, glyph) * pen.scale;
        }
    }
    Ok(pen.path)
}

/// The value of an attribute.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let named = |rest: &'a str| rest.strip_prefix("=\"")?.split_once('"').map(|(value, _)| value);
    let begins = |at: usize| at == 0 || tag.as_bytes()[at - 1] == b' ';
    tag.match_indices(name).filter(|(at, _)| begins(*at)).find_map(|(at, _)| named(&tag[at + name.len()..]))
}

/// Letters of one size on one line.
struct Part {
    text: String,
    size: f64,
    /// How far below the line of the text.
    below: f64,
}

impl Part {
    fn glyphs<'a>(&'a self, face: &'a Face) -> impl Iterator<Item = GlyphId> + 'a {
        self.text.chars().map(|letter| face.glyph_index(letter).unwrap_or_default())
    }

    fn width(&self, face: &Face) -> f64 {
        let units: f64 = self.glyphs(face).map(|glyph| advance(face, glyph)).sum();
        units * self.size / f64::from(face.units_per_em())
    }
}

fn advance(face: &Face, glyph: GlyphId) -> f64 {
    f64::from(face.glyph_hor_advance(glyph).unwrap_or(0))
}

/// The parts of a text of ours: plain ones, and `<tspan>`s that move the line and may have their own size.
fn parts(content: &str, size: f64) -> Vec<Part> {
    let (mut parts, mut below) = (Vec::new(), 0.0);
    for (place, piece) in content.split("<tspan").enumerate() {
        let (inside, after) = match piece.split_once("</tspan>") {
            Some((inside, after)) if place > 0 => (Some(inside), after),
            _ => (None, piece),
        };
        if let Some((tag, text)) = inside.and_then(|inside| inside.split_once('>')) {
            let number = |name: &str| attribute(tag, name).and_then(|text| text.parse::<f64>().ok());
            below += number("dy").unwrap_or(0.0);
            parts.push(Part { text: unescaped(text), size: number("font-size").unwrap_or(size), below });
        }
        parts.push(Part { text: unescaped(after), size, below });
    }
    parts
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Writes outlines, which are in units of the font with y upwards, as an SVG path.
struct Pen {
    path: String,
    x: f64,
    y: f64,
    scale: f64,
}

impl Pen {
    fn write<const N: usize>(&mut self, command: char, points: [(f32, f32); N]) {
        self.path.push(command);
        for (x, y) in points {
            let (x, y) = (self.x + f64::from(x) * self.scale, self.y - f64::from(y) * self.scale);
            let _ = write!(self.path, "{x:.2} {y:.2} ");
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.write('M', [(x, y)]);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.write('L', [(x, y)]);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.write('Q', [(x1, y1), (x, y)]);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.write('C', [(x1, y1), (x2, y2), (x, y)]);
    }
    fn close(&mut self) {
        self.path.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typeset;

    /// Left, right, top and bottom of a text at (100, 50).
    fn extent(more: &str, text: &str) -> [f64; 4] {
        let tag = format!("x=\"100\" y=\"50\" {more}");
        let path = outline(&tag, &typeset::svg(text)).unwrap();
        let numbers: Vec<f64> =
            path.split(|c: char| c.is_alphabetic() || c == ' ').filter_map(|n| n.parse().ok()).collect();
        let (xs, ys) = (numbers.iter().step_by(2), numbers.iter().skip(1).step_by(2));
        let span = |values: &mut dyn Iterator<Item = &f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
        };
        let ((left, right), (top, bottom)) = (span(&mut xs.into_iter()), span(&mut ys.into_iter()));
        [left, right, top, bottom]
    }

    #[test]
    fn texts_begin_end_or_are_centred_at_their_place() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 0.02, "{a} {b}");
        // By the font's tables, in thousandths of its size: H is 652 wide with ink from 90 to 562, and 656 high.
        let unit = 13.0 / 1000.0;
        let [left, right, top, bottom] = extent("text-anchor=\"start\"", "HHHH");
        near(left, 100.0 + 90.0 * unit);
        near(right, 100.0 + (3.0 * 652.0 + 562.0) * unit);
        near(top, 50.0 - 656.0 * unit);
        near(bottom, 50.0);
        near(extent("text-anchor=\"end\"", "HHHH")[1], 100.0 - 90.0 * unit);
        let middle = extent("text-anchor=\"middle\"", "HHHH");
        near((middle[0] + middle[1]) / 2.0, 100.0);
        let large = extent("text-anchor=\"start\" font-size=\"26\"", "HHHH");
        near(large[1] - large[0], 2.0 * (right - left));
        let bold = extent("text-anchor=\"start\" font-weight=\"bold\"", "HHHH");
        assert!(bold[1] > right + 0.5, "{bold:?}");
        // Raised, lowered and escaped letters.
        assert!(extent("", "H^{H}")[2] < top - 2.0 && extent("", "H_{H}")[3] > bottom + 2.0);
        assert!(extent("", "H^{2}H")[3] < 51.0, "back on the line");
        assert_eq!(unescaped(&typeset::escape("a < \"b\" & c > d")), "a < \"b\" & c > d");
    }

    #[test]
    fn only_texts_become_paths() {
        let svg = "<svg><rect x=\"1\"/><text x=\"1.0\" y=\"2.0\" text-anchor=\"end\" fill=\"#666\">a &lt; b</text><line/></svg>";
        let drawn = outlined(svg).unwrap();
        assert!(
            drawn.starts_with("<svg><rect x=\"1\"/><path x=\"1.0\" y=\"2.0\" text-anchor=\"end\" fill=\"#666\" d=\"M")
        );
        assert!(drawn.ends_with("Z\"/><line/></svg>") && !drawn.contains("text>"), "{drawn}");
        assert!(outlined("<text x=\"1\">").is_err());
    }
}
