//! Figures as SVG.

use std::fmt::Write;

use super::axis::Ruler;
use super::colour::viridis;
use super::{ColourBar, Figure, Mark, Panel, Shape, Style};

/// Width of every figure, in SVG units.
const WIDTH: f64 = 780.0;
/// Height of a panel's frame, by the number of panels in a row.
const HEIGHTS: [f64; 4] = [330.0, 235.0, 190.0, 160.0];
/// Room around a panel's frame; above and below, less where a whole row has no titles or labels.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 28.0;
const TOP_UNTITLED: f64 = 8.0;
const BOTTOM: f64 = 48.0;
const BOTTOM_UNLABELLED: f64 = 24.0;
/// More room below where names on the horizontal axis are turned.
const TURNED: f64 = 52.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 24.0;
/// A colour bar's room at the right.
const BAR: f64 = 66.0;

const INK: &str = "#222";
const GRID: &str = "#e6e6e6";
const GREY: &str = "#666";

impl Figure {
    /// The figure as a complete SVG document.
    pub fn svg(&self) -> String {
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let height = HEIGHTS[columns.min(HEIGHTS.len()) - 1];
        let usable = if self.colour_bar.is_some() { WIDTH - BAR } else { WIDTH };
        let cell_width = usable / columns as f64;

        let mut body = String::new();
        let legend = draw_legend(&mut body, &self.legend);
        let mut y = legend;
        for (row, panels) in self.panels.chunks(columns).enumerate() {
            let titled = panels.iter().any(|panel| !panel.title.is_empty());
            let labelled = panels.iter().any(|panel| !panel.x.label.is_empty());
            let top = y + if titled { TOP } else { TOP_UNTITLED };
            for (column, panel) in panels.iter().enumerate() {
                let frame = Frame {
                    left: column as f64 * cell_width + LEFT,
                    right: (column + 1) as f64 * cell_width - RIGHT,
                    top,
                    bottom: top + height,
                };
                draw_panel(&mut body, panel, &frame, row * columns + column);
            }
            let turned = panels.iter().any(|panel| has_long_names(panel, cell_width - LEFT - RIGHT));
            y = top + height + if labelled { BOTTOM } else { BOTTOM_UNLABELLED } + if turned { TURNED } else { 0.0 };
        }
        if let Some(bar) = &self.colour_bar {
            draw_colour_bar(&mut body, bar, usable + 8.0, legend + TOP, height.min(240.0));
        }
        y += 4.0;
        if !self.note.is_empty() {
            text(&mut body, LEFT, y + 12.0, "start", "font-size=\"11.5\" fill=\"#666\"", &self.note);
            y += 20.0;
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" width=\"{WIDTH}\" height=\"{y}\" \
             font-family=\"Pudica Sans, sans-serif\" font-size=\"13\" fill=\"{INK}\">\
             <rect width=\"{WIDTH}\" height=\"{y}\" fill=\"white\"/>{body}</svg>\n"
        )
    }
}

/// The pixels of a panel's frame.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

fn draw_panel(svg: &mut String, panel: &Panel, frame: &Frame, place: usize) {
    let extent: Vec<(f64, f64)> =
        panel.marks.iter().flat_map(Mark::extent).filter(|(x, y)| panel.x.shows(*x) && panel.y.shows(*y)).collect();
    let (width, height) = (frame.right - frame.left, frame.bottom - frame.top);
    let x = Ruler::new(&panel.x, extent.iter().map(|(x, _)| *x), frame.left, frame.right, (width / 70.0).max(3.0));
    let y = Ruler::new(&panel.y, extent.iter().map(|(_, y)| *y), frame.bottom, frame.top, (height / 42.0).max(3.0));
    draw_axes(svg, panel, frame, &x, &y);

    let _ = write!(
        svg,
        "<clipPath id=\"panel{place}\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/></clipPath>\
         <g clip-path=\"url(#panel{place})\">",
        frame.left, frame.top
    );
    for mark in &panel.marks {
        draw_mark(svg, mark, panel, frame, &x, &y);
    }
    svg.push_str("</g>");
    if extent.is_empty() {
        let (middle_x, middle_y) = ((frame.left + frame.right) / 2.0, (frame.top + frame.bottom) / 2.0);
        text(svg, middle_x, middle_y, "middle", "fill=\"#999\"", "no runs to show yet");
    }
    let _ = write!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"none\" stroke=\"#888\"/>",
        frame.left, frame.top
    );
    text(
        svg,
        frame.left + width / 2.0,
        frame.top - 9.0,
        "middle",
        "font-weight=\"bold\" font-size=\"14\"",
        &panel.title,
    );
}

/// Whether the names on a panel's horizontal axis do not fit beside each other.
fn has_long_names(panel: &Panel, width: f64) -> bool {
    let room = width / panel.x.names.len().max(1) as f64;
    panel.x.names.iter().any(|(_, name)| text_width(name) > room)
}

fn draw_axes(svg: &mut String, panel: &Panel, frame: &Frame, x: &Ruler, y: &Ruler) {
    let turned = has_long_names(panel, frame.right - frame.left);
    for (value, name) in &x.ticks {
        let Some(at) = x.at(*value).filter(|at| (frame.left - 0.5..=frame.right + 0.5).contains(at)) else { continue };
        line(svg, (at, frame.top), (at, frame.bottom), GRID, "");
        line(svg, (at, frame.bottom), (at, frame.bottom + 4.0), "#888", "");
        if turned {
            let turn = format!("font-size=\"12\" transform=\"rotate(-38 {at:.1} {:.1})\"", frame.bottom + 13.0);
            text(svg, at + 3.0, frame.bottom + 15.0, "end", &turn, name);
        } else {
            text(svg, at, frame.bottom + 17.0, "middle", "font-size=\"12\"", name);
        }
    }
    for (value, name) in &y.ticks {
        let Some(at) = y.at(*value).filter(|at| (frame.top - 0.5..=frame.bottom + 0.5).contains(at)) else { continue };
        line(svg, (frame.left, at), (frame.right, at), GRID, "");
        line(svg, (frame.left - 4.0, at), (frame.left, at), "#888", "");
        text(svg, frame.left - 7.0, at + 4.0, "end", "font-size=\"12\"", name);
    }
    for at in y.minor.iter().filter_map(|value| y.at(*value)) {
        line(svg, (frame.left - 2.5, at), (frame.left, at), "#888", "");
    }
    for at in x.minor.iter().filter_map(|value| x.at(*value)) {
        line(svg, (at, frame.bottom), (at, frame.bottom + 2.5), "#888", "");
    }
    let (middle_x, middle_y) = ((frame.left + frame.right) / 2.0, (frame.top + frame.bottom) / 2.0);
    text(svg, middle_x, frame.bottom + 36.0, "middle", "", &panel.x.label);
    let turned = format!("transform=\"rotate(-90 {:.1} {middle_y:.1})\"", frame.left - 44.0);
    text(svg, frame.left - 44.0, middle_y, "middle", &turned, &panel.y.label);
}

fn draw_mark(svg: &mut String, mark: &Mark, panel: &Panel, frame: &Frame, x: &Ruler, y: &Ruler) {
    let at = |px: f64, py: f64| x.at(px).zip(y.at(py));
    // The lower end of an interval may be below 0, which a log axis cannot show: it then ends at the frame.
    let low_at = |px: f64, low: f64| x.at(px).map(|at| (at, y.at(low).unwrap_or(frame.bottom)));
    match mark {
        Mark::Points { points, style } => {
            for (px, py, name) in points {
                if let Some(centre) = at(*px, *py) {
                    draw_symbol(svg, centre, style, name);
                }
            }
        }
        Mark::Line { points, style } => {
            let path = points.iter().filter_map(|(px, py)| at(*px, *py));
            let path: Vec<String> = path.map(|(px, py)| format!("{px:.1},{py:.1}")).collect();
            let _ = write!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1}\" stroke-opacity=\"{}\" \
                 stroke-linejoin=\"round\"/>",
                path.join(" "),
                style.colour,
                2.0 * style.size,
                style.opacity
            );
        }
        Mark::Band { points, style } => {
            let upper = points.iter().filter_map(|(px, _, high)| at(*px, *high));
            let lower = points.iter().rev().filter_map(|(px, low, _)| low_at(*px, *low));
            let outline: Vec<String> = upper.chain(lower).map(|(px, py)| format!("{px:.1},{py:.1}")).collect();
            let _ = write!(
                svg,
                "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"{}\"/>",
                outline.join(" "),
                style.colour,
                style.opacity
            );
        }
        Mark::Intervals { points, style } => {
            for (px, low, high) in points {
                if let (Some(from), Some(to)) = (low_at(*px, *low), at(*px, *high)) {
                    draw_interval(svg, from, to, (3.0, 0.0), style);
                }
            }
        }
        Mark::LevelIntervals { points, style } => {
            for (py, low, high) in points {
                if let (Some(from), Some(to)) = (at(*low, *py), at(*high, *py)) {
                    draw_interval(svg, from, to, (0.0, 3.0), style);
                }
            }
        }
        Mark::Cells { cells } => {
            for (px, py, value, name) in cells {
                let corners = at(px - 0.5, py + 0.5).zip(at(px + 0.5, py - 0.5));
                let Some(((left, top), (right, bottom))) = corners else { continue };
                let _ = write!(
                    svg,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}</title></rect>",
                    right - left,
                    bottom - top,
                    viridis(*value),
                    escape(name)
                );
            }
        }
        Mark::Level(value, name) => {
            if let Some(level) = y.at(*value) {
                line(svg, (frame.left, level), (frame.right, level), GREY, "stroke-dasharray=\"5 4\"");
                // Its name where fewer points are in the way.
                let points: Vec<_> =
                    panel.marks.iter().flat_map(Mark::extent).filter_map(|(px, py)| at(px, py)).collect();
                let above = (level - 20.0)..=level;
                let between = |left: f64, right: f64| {
                    points.iter().filter(|(px, py)| (left..=right).contains(px) && above.contains(py)).count()
                };
                let width = text_width(name) + 12.0;
                let on_the_left = between(frame.left, frame.left + width) < between(frame.right - width, frame.right);
                let (start, anchor) =
                    if on_the_left { (frame.left + 6.0, "start") } else { (frame.right - 6.0, "end") };
                text(svg, start, level - 5.0, anchor, "font-size=\"11.5\" fill=\"#666\"", name);
            }
        }
        Mark::Moment(value) => {
            if let Some(at) = x.at(*value) {
                line(svg, (at, frame.top), (at, frame.bottom), GREY, "stroke-dasharray=\"5 4\"");
            }
        }
    }
}

/// A bar from one end to the other with caps reaching `cap` to both sides.
fn draw_interval(svg: &mut String, from: (f64, f64), to: (f64, f64), cap: (f64, f64), style: &Style) {
    let width = format!("stroke-width=\"1.3\" stroke-opacity=\"{}\"", style.opacity);
    line(svg, from, to, &style.colour, &width);
    for end in [from, to] {
        line(svg, (end.0 - cap.0, end.1 - cap.1), (end.0 + cap.0, end.1 + cap.1), &style.colour, &width);
    }
}

fn draw_symbol(svg: &mut String, (x, y): (f64, f64), style: &Style, name: &str) {
    let Style { colour, opacity, size, .. } = style;
    let paint = format!("fill=\"{colour}\" fill-opacity=\"{opacity}\" stroke=\"white\" stroke-width=\"0.5\"");
    let title = if name.is_empty() { String::new() } else { format!("<title>{}</title>", escape(name)) };
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<String> =
            corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * size, y + dy * size)).collect();
        format!("<polygon points=\"{}\" {paint}>{title}</polygon>", corners.join(" "))
    };
    svg.push_str(&match style.shape {
        Shape::Circle | Shape::Line => {
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size}\" {paint}>{title}</circle>")
        }
        Shape::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        Shape::Triangle => polygon(&[(0.0, -1.2), (1.15, 0.8), (-1.15, 0.8)]),
        Shape::Diamond => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
    });
}

/// Draws the legend in as many lines as it needs; returns their height.
fn draw_legend(svg: &mut String, legend: &[(String, Style)]) -> f64 {
    let (mut x, mut y) = (LEFT, 14.0);
    for (name, style) in legend {
        let width = 22.0 + text_width(name);
        if x + width > WIDTH && x > LEFT {
            (x, y) = (LEFT, y + LEGEND_LINE);
        }
        match style.shape {
            Shape::Line => line(svg, (x - 4.0, y), (x + 16.0, y), &style.colour, "stroke-width=\"2\""),
            _ => draw_symbol(svg, (x + 6.0, y), &style.clone().sized(4.2).faint(1.0), ""),
        }
        text(svg, x + 18.0, y + 4.5, "start", "", name);
        x += width + 16.0;
    }
    if legend.is_empty() { 0.0 } else { y + LEGEND_LINE - 12.0 }
}

/// About how wide a text of size 13 is in our font.
fn text_width(text: &str) -> f64 {
    let letter = |letter: char| match letter {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | ' ' | '.' | ',' | ':' => 3.6,
        'm' | 'w' | 'M' | 'W' => 10.5,
        letter if letter.is_uppercase() => 7.8,
        _ => 6.6,
    };
    text.chars().map(letter).sum()
}

fn draw_colour_bar(svg: &mut String, bar: &ColourBar, left: f64, top: f64, height: f64) {
    const SLICES: usize = 60;
    let slice = height / SLICES as f64;
    for i in 0..SLICES {
        let colour = viridis(1.0 - (i as f64 + 0.5) / SLICES as f64);
        let y = top + i as f64 * slice;
        let _ = write!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{y:.2}\" width=\"12\" height=\"{:.2}\" fill=\"{colour}\"/>",
            slice + 0.4
        );
    }
    for part in [0.0, 0.5, 1.0] {
        let value = bar.low + part * (bar.high - bar.low);
        let decimals = if value.fract() == 0.0 {
            0
        } else {
            (1.0 - (bar.high - bar.low).log10().floor()).clamp(1.0, 6.0) as usize
        };
        let value = format!("{value:.decimals$}");
        text(svg, left + 17.0, top + (1.0 - part) * height + 4.0, "start", "font-size=\"12\"", &value);
    }
    text(svg, left + 6.0, top - 9.0, "middle", "font-size=\"12\"", &bar.label);
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, more: &str) {
    let _ = write!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" {more}/>",
        from.0, from.1, to.0, to.1
    );
}

/// Writes a text; `^{...}` in it is set as a superscript.
fn text(svg: &mut String, x: f64, y: f64, anchor: &str, more: &str, content: &str) {
    if content.is_empty() {
        return;
    }
    let mut spans = String::new();
    let mut rest = content;
    while let Some((before, after)) = rest.split_once("^{") {
        let (raised, after) = after.split_once('}').unwrap_or((after, ""));
        let _ = write!(
            spans,
            "{}<tspan dy=\"-5\" font-size=\"9.5\">{}</tspan><tspan dy=\"5\">{}</tspan>",
            escape(before),
            escape(raised),
            if after.is_empty() { "\u{200b}" } else { "" }
        );
        rest = after;
    }
    spans.push_str(&escape(rest));
    let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>{spans}</text>");
}

/// Text made safe for XML and HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Shape, Style};

    #[test]
    fn a_level_is_named_where_fewer_points_are() {
        let name_at = |crowded: f64| {
            let points = [0.0, crowded, 10.0].map(|x| (x, if x == crowded { 1.01 } else { 0.0 }, String::new()));
            let style = Style::point("#000000", Shape::Circle);
            let marks =
                vec![Mark::Points { points: points.to_vec(), style }, Mark::Level(1.0, "limit for PARITY".into())];
            let (x, y) = (Axis::linear("n"), Axis::linear("sharpness"));
            let svg =
                Figure { panels: vec![Panel { title: String::new(), x, y, marks }], columns: 1, ..Figure::default() }
                    .svg();
            let text = &svg[..svg.find(">limit for PARITY<").unwrap()];
            text[text.rfind("<text").unwrap()..].contains("text-anchor=\"end\"")
        };
        assert!(name_at(0.3), "on the right, as there is a point on the left");
        assert!(!name_at(9.7), "on the left, as there is a point on the right");
        assert!(name_at(5.0), "on the right, as nothing is in the way");
    }
}
