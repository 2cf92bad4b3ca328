//! Figures as SVG: whole ones for files, and panels for the page.

use std::fmt::Write;

use super::axis::{Ruler, Scale, on_log};
use super::colour::viridis;
use super::{ColourBar, Figure, Mark, Panel, Point, Shape, Style};
use crate::typeset::{self, escape, plain};

/// Width of every figure, in SVG units.
const WIDTH: f64 = 780.0;
/// Height of a panel's frame, by the number of panels in a row.
const HEIGHTS: [f64; 4] = [330.0, 235.0, 190.0, 160.0];
/// Room around a panel's frame; above and below, less where a whole row has no titles or labels.
const LEFT: f64 = 62.0;
pub(super) const RIGHT: f64 = 22.0; // half of "100,000" at the end of an axis
pub(super) const TOP: f64 = 28.0;
pub(super) const TOP_UNTITLED: f64 = 8.0;
pub(super) const BOTTOM: f64 = 48.0;
pub(super) const BOTTOM_UNLABELLED: f64 = 24.0;
/// More room below where names on the horizontal axis are turned.
pub(super) const TURNED: f64 = 52.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 24.0;
/// A colour bar's room at the right.
const BAR: f64 = 66.0;

pub(super) const INK: &str = "#222";
pub(super) const GRID: &str = "#e6e6e6";
pub(super) const GREY: &str = "#666";
pub(super) const FRAME: &str = "#888";

impl Figure {
    /// The figure as a complete SVG document.
    pub fn svg(&self) -> String {
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let usable = if self.colour_bar.is_some() { WIDTH - BAR } else { WIDTH };
        let cell_width = usable / columns as f64;
        let left = self.left();
        let usual = HEIGHTS[columns.min(HEIGHTS.len()) - 1];
        let height = self.height.of(cell_width - left - RIGHT, usual);

        let mut body = String::new();
        let legend = draw_legend(&mut body, &self.legend);
        let mut y = legend;
        for (row, panels) in self.panels.chunks(columns).enumerate() {
            let titled = panels.iter().any(|panel| !panel.title.is_empty());
            let labelled = panels.iter().any(|panel| !panel.x.label.is_empty());
            let top = y + if titled { TOP } else { TOP_UNTITLED };
            for (column, panel) in panels.iter().enumerate() {
                let frame = Frame {
                    left: column as f64 * cell_width + left,
                    right: (column + 1) as f64 * cell_width - RIGHT,
                    top,
                    bottom: top + height,
                };
                let clip = format!("panel{}", row * columns + column);
                draw_panel(&mut body, panel, &frame, left, &clip, Place::File);
            }
            let turned = panels.iter().any(|panel| has_long_names(panel, cell_width - left - RIGHT));
            y = top + height + if labelled { BOTTOM } else { BOTTOM_UNLABELLED } + if turned { TURNED } else { 0.0 };
        }
        if let Some(bar) = &self.colour_bar {
            draw_colour_bar(&mut body, bar, usable + 8.0, legend + TOP, height.min(240.0));
        }
        y += 4.0;
        for line in self.small_print() {
            text(&mut body, LEFT, y + 12.0, "start", "font-size=\"11.5\" fill=\"#666\"", line);
            y += 17.0;
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" width=\"{WIDTH}\" height=\"{y}\" \
             font-family=\"Pudica Sans, sans-serif\" font-size=\"13\" fill=\"{INK}\">\
             <rect width=\"{WIDTH}\" height=\"{y}\" fill=\"white\"/>{body}</svg>\n"
        )
    }
}

impl Figure {
    /// The lines below the panels: its note, and what a cut axis looks like where there is one.
    pub(super) fn small_print(&self) -> impl Iterator<Item = &str> {
        let is_cut = |panel: &Panel| panel.y.names.is_empty() && rulers(panel, &UNIT).1.is_cut();
        let cut = self.panels.iter().filter(|panel| !panel.marks.is_empty()).any(is_cut);
        let said = cut.then_some("A zigzag at the foot of a vertical axis: it does not start at 0.");
        Some(self.note.as_str()).filter(|note| !note.is_empty()).into_iter().chain(said)
    }
}

impl Figure {
    /// Room at the left of a panel: for the longest number on any vertical axis, and the axis' label.
    pub(super) fn left(&self) -> f64 {
        let ticks = self.panels.iter().flat_map(|panel| rulers(panel, &UNIT).1.ticks);
        LEFT.max(ticks.map(|(_, name)| text_width(&name) + 28.0).fold(0.0, f64::max))
    }
}

/// The pixels of a panel's frame.
pub(super) struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

const UNIT: Frame = Frame { left: 0.0, right: 100.0, top: 0.0, bottom: 100.0 };

/// Where a panel is drawn.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In a file of its own, beside other panels.
    File,
    /// On the page: points lead to their runs. Texts that it shares with neighbours are marked, so that they are hidden beside them.
    Page { title_again: bool, x_again: bool, y_again: bool },
}

/// The horizontal and the vertical axis of a panel along the sides of a frame.
fn rulers(panel: &Panel, frame: &Frame) -> (Ruler, Ruler) {
    let extent = extent(panel);
    let (width, height) = (frame.right - frame.left, frame.bottom - frame.top);
    let x = Ruler::new(&panel.x, extent.iter().map(|(x, _)| *x), frame.left, frame.right, (width / 70.0).max(3.0));
    let y = Ruler::new(&panel.y, extent.iter().map(|(_, y)| *y), frame.bottom, frame.top, (height / 42.0).max(3.0));
    (x, y)
}

/// All points of a panel that its axes can show.
fn extent(panel: &Panel) -> Vec<(f64, f64)> {
    panel.marks.iter().flat_map(Mark::extent).filter(|(x, y)| panel.x.shows(*x) && panel.y.shows(*y)).collect()
}

/// Draws a panel with so much room at the left of its frame; `clip` is a name that nothing else in the document has.
pub(super) fn draw_panel(svg: &mut String, panel: &Panel, frame: &Frame, left: f64, clip: &str, place: Place) {
    if panel.is_blank() {
        return;
    }
    let (width, height) = (frame.right - frame.left, frame.bottom - frame.top);
    let (x, y) = rulers(panel, frame);
    draw_axes(svg, panel, frame, left, (&x, &y), place);

    let _ = write!(
        svg,
        "<clipPath id=\"{clip}\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/></clipPath>\
         <g clip-path=\"url(#{clip})\">",
        frame.left, frame.top
    );
    for mark in &panel.marks {
        draw_mark(svg, mark, panel, frame, &x, &y, place);
    }
    svg.push_str("</g>");
    if extent(panel).is_empty() {
        let (middle_x, middle_y) = ((frame.left + frame.right) / 2.0, (frame.top + frame.bottom) / 2.0);
        text(svg, middle_x, middle_y, "middle", "fill=\"#999\"", "nothing to show yet");
    }
    let _ = write!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"none\" stroke=\"{FRAME}\"/>",
        frame.left, frame.top
    );
    if y.is_cut() && panel.y.names.is_empty() {
        let foot = format!("M{:.1} {:.1}l-4 -2.5l8 -4l-4 -2.5", frame.left, frame.bottom - 4.0);
        let _ = write!(
            svg,
            "<path d=\"{foot}\" fill=\"none\" stroke=\"white\" stroke-width=\"4\"/>\
             <path d=\"{foot}\" fill=\"none\" stroke=\"{FRAME}\"/>"
        );
    }
    let again = if let Place::Page { title_again: true, .. } = place { AGAIN } else { "" };
    let more = format!("font-weight=\"bold\" font-size=\"14\"{again}");
    text(svg, frame.left + width / 2.0, frame.top - 9.0, "middle", &more, &panel.title);
}

/// The mark of a text that a neighbour has as well.
const AGAIN: &str = " class=\"again\"";

/// Whether the names on a panel's horizontal axis do not fit beside each other.
pub(super) fn has_long_names(panel: &Panel, width: f64) -> bool {
    let room = width / panel.x.names.len().max(1) as f64;
    panel.x.names.iter().any(|(_, name)| text_width(name) > room)
}

fn draw_axes(svg: &mut String, panel: &Panel, frame: &Frame, left: f64, (x, y): (&Ruler, &Ruler), place: Place) {
    let turned = has_long_names(panel, frame.right - frame.left);
    for (value, name) in &x.ticks {
        let Some(at) = x.at(*value).filter(|at| (frame.left - 0.5..=frame.right + 0.5).contains(at)) else { continue };
        line(svg, (at, frame.top), (at, frame.bottom), GRID, "");
        line(svg, (at, frame.bottom), (at, frame.bottom + 4.0), FRAME, "");
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
        line(svg, (frame.left - 4.0, at), (frame.left, at), FRAME, "");
        text(svg, frame.left - 7.0, at + 4.0, "end", "font-size=\"12\"", name);
    }
    for at in y.minor.iter().filter_map(|value| y.at(*value)) {
        line(svg, (frame.left - 2.5, at), (frame.left, at), FRAME, "");
    }
    for at in x.minor.iter().filter_map(|value| x.at(*value)) {
        line(svg, (at, frame.bottom), (at, frame.bottom + 2.5), FRAME, "");
    }
    let (middle_x, middle_y) = ((frame.left + frame.right) / 2.0, (frame.top + frame.bottom) / 2.0);
    let (x_again, y_again) = match place {
        Place::Page { x_again, y_again, .. } => (x_again, y_again),
        Place::File => (false, false),
    };
    let mark = |again: bool| if again { AGAIN } else { "" };
    let below = if turned { 36.0 + TURNED } else { 36.0 };
    text(svg, middle_x, frame.bottom + below, "middle", mark(x_again), &panel.x.label);
    let at = frame.left - left + 14.0;
    let turned = format!("transform=\"rotate(-90 {at:.1} {middle_y:.1})\"{}", mark(y_again));
    text(svg, at, middle_y, "middle", &turned, &panel.y.label);
}

fn draw_mark(svg: &mut String, mark: &Mark, panel: &Panel, frame: &Frame, x: &Ruler, y: &Ruler, place: Place) {
    let at = |px: f64, py: f64| x.at(px).zip(y.at(py));
    // An interval's place: its x, its upper and its lower end.
    let between = |px: f64, low: f64, high: f64| {
        let ends = if panel.y.scale == Scale::Log { on_log(low, high) } else { Some((low, high)) };
        let (low, high) = ends?;
        Some((x.at(px)?, y.at(high)?, y.at(low)?))
    };
    match mark {
        Mark::Points { points, style } => {
            for point in points {
                if let Some(centre) = at(point.x, point.y) {
                    draw_point(svg, centre, style, point, panel, place);
                }
            }
        }
        Mark::Line { points, style } => {
            let shown = points.iter().filter_map(|point| Some((at(point.x, point.y)?, point.few)));
            draw_line(svg, &shown.collect::<Vec<_>>(), style);
        }
        Mark::Band { points, style } => {
            let places: Vec<_> = points.iter().map(|(px, low, high)| between(*px, *low, *high)).collect();
            for part in places.split(Option::is_none) {
                draw_band(svg, &part.iter().flatten().copied().collect::<Vec<_>>(), style);
            }
        }
        Mark::Intervals { points, style } => {
            for (px, low, high) in points {
                if let Some((px, upper, lower)) = between(*px, *low, *high) {
                    draw_interval(svg, (px, lower), (px, upper), (3.0, 0.0), style);
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
        Mark::Cells { cells, ends } => {
            let (low, high) = ends;
            for (px, py, value, name) in cells {
                let corners = at(px - 0.5, py + 0.5).zip(at(px + 0.5, py - 0.5));
                let Some(((left, top), (right, bottom))) = corners else { continue };
                let _ = write!(
                    svg,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}</title></rect>",
                    right - left,
                    bottom - top,
                    viridis((value - low) / (high - low).max(f64::MIN_POSITIVE)),
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
                text(svg, start, level - 5.0, anchor, "font-size=\"12\" fill=\"#666\"", name);
            }
        }
        Mark::Moment(value) => {
            if let Some(at) = x.at(*value) {
                line(svg, (at, frame.top), (at, frame.bottom), GREY, "stroke-dasharray=\"5 4\"");
            }
        }
    }
}

/// A line through places; to and from those with few of their runs it is faint and dashed.
fn draw_line(svg: &mut String, places: &[((f64, f64), bool)], style: &Style) {
    let is_faint = |from: usize| places[from].1 || places[from + 1].1;
    let mut from = 0;
    while from + 1 < places.len() {
        let faint = is_faint(from);
        let to = (from + 1..places.len() - 1).find(|next| is_faint(*next) != faint).unwrap_or(places.len() - 1);
        let path: Vec<String> = places[from..=to].iter().map(|((x, y), _)| format!("{x:.1},{y:.1}")).collect();
        let (opacity, dashes) =
            if faint { (0.5 * style.opacity, " stroke-dasharray=\"3 4\"") } else { (style.opacity, "") };
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1}\" stroke-opacity=\"{opacity}\" \
             stroke-linejoin=\"round\"{dashes}/>",
            path.join(" "),
            style.colour,
            2.0 * style.size
        );
        from = to;
    }
}

/// A band without gaps: x, upper and lower end of each place. One place alone is a bar.
fn draw_band(svg: &mut String, places: &[(f64, f64, f64)], style: &Style) {
    let corner = |x: f64, y: f64| format!("{x:.1} {y:.1}");
    let path = match places {
        [] => return,
        [(x, upper, lower)] => {
            let opacity = (2.5 * style.opacity).min(1.0);
            return draw_interval(svg, (*x, *lower), (*x, *upper), (3.0, 0.0), &style.clone().faint(opacity));
        }
        places if places.is_sorted_by(|one, next| one.0 <= next.0) => {
            let upper = places.iter().map(|(x, upper, _)| corner(*x, *upper));
            let lower = places.iter().rev().map(|(x, _, lower)| corner(*x, *lower));
            format!("M{}Z", upper.chain(lower).collect::<Vec<_>>().join("L"))
        }
        // Where x goes back, one outline would cross itself: a piece for each step, all in the same sense, so that none cancels another.
        places => {
            let piece = |pair: &[(f64, f64, f64)]| {
                let (left, right) = if pair[0].0 <= pair[1].0 { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
                let corners = [(left.0, left.1), (right.0, right.1), (right.0, right.2), (left.0, left.2)];
                format!("M{}Z", corners.map(|(x, y)| corner(x, y)).join("L"))
            };
            places.windows(2).map(piece).collect()
        }
    };
    let _ = write!(svg, "<path d=\"{path}\" fill=\"{}\" fill-opacity=\"{}\"/>", style.colour, style.opacity);
}

/// A bar from one end to the other with caps reaching `cap` to both sides.
fn draw_interval(svg: &mut String, from: (f64, f64), to: (f64, f64), cap: (f64, f64), style: &Style) {
    let width = format!("stroke-width=\"1.3\" stroke-opacity=\"{}\"", style.opacity);
    line(svg, from, to, &style.colour, &width);
    for end in [from, to] {
        line(svg, (end.0 - cap.0, end.1 - cap.1), (end.0 + cap.0, end.1 + cap.1), &style.colour, &width);
    }
}

/// The symbol of a point: hovering tells what it is, and on the page a click leads to its run.
fn draw_point(svg: &mut String, centre: (f64, f64), style: &Style, point: &Point, panel: &Panel, place: Place) {
    let title = format!("<title>{}</title>", escape(&panel.tell(point)));
    let symbol = symbol(centre, style, &title, point.few);
    match (&point.run, place) {
        // The table of runs has the same links for the keyboard.
        (Some(id), Place::Page { .. }) => {
            let _ = write!(svg, "<a href=\"runs/{}/\" tabindex=\"-1\">{symbol}</a>", escape(id));
        }
        _ => svg.push_str(&symbol),
    }
}

/// A symbol with something inside its element.
pub(super) fn symbol((x, y): (f64, f64), style: &Style, inside: &str, hollow: bool) -> String {
    let Style { colour, opacity, size, .. } = style;
    let paint = match hollow {
        true => format!("fill=\"white\" stroke=\"{colour}\" stroke-width=\"1.2\" stroke-opacity=\"{opacity}\""),
        false => format!("fill=\"{colour}\" fill-opacity=\"{opacity}\" stroke=\"white\" stroke-width=\"0.5\""),
    };
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<String> =
            corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * size, y + dy * size)).collect();
        format!("<polygon points=\"{}\" {paint}>{inside}</polygon>", corners.join(" "))
    };
    match style.shape {
        Shape::Circle | Shape::Line => {
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size}\" {paint}>{inside}</circle>")
        }
        Shape::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        Shape::Triangle => polygon(&[(0.0, -1.2), (1.15, 0.8), (-1.15, 0.8)]),
        Shape::Diamond => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
    }
}

/// The sign of a legend's entry, around the middle of its left end.
pub(super) fn legend_sign(svg: &mut String, (x, y): (f64, f64), style: &Style) {
    match style.shape {
        Shape::Line => line(svg, (x - 4.0, y), (x + 16.0, y), &style.colour, "stroke-width=\"2\""),
        _ => svg.push_str(&symbol((x + 6.0, y), &style.clone().sized(4.2).faint(1.0), "", false)),
    }
}

/// Draws the legend in as many lines as it needs; returns their height.
fn draw_legend(svg: &mut String, legend: &[(String, Style)]) -> f64 {
    let (mut x, mut y) = (LEFT, 14.0);
    for (name, style) in legend {
        let width = 22.0 + text_width(name);
        if x + width > WIDTH && x > LEFT {
            (x, y) = (LEFT, y + LEGEND_LINE);
        }
        legend_sign(svg, (x, y), style);
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
    plain(text).chars().map(letter).sum()
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
        text(svg, left + 17.0, top + (1.0 - part) * height + 4.0, "start", "font-size=\"12\"", &bar.value(part));
    }
    text(svg, left + 6.0, top - 9.0, "middle", "font-size=\"12\"", &bar.label);
}

impl ColourBar {
    /// The value at a part of it, 0 to 1, as text.
    pub(super) fn value(&self, part: f64) -> String {
        let value = self.low + part * (self.high - self.low);
        let decimals = match value.fract() == 0.0 {
            true => 0,
            false => (1.0 - (self.high - self.low).log10().floor()).clamp(1.0, 6.0) as usize,
        };
        format!("{value:.decimals$}")
    }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, more: &str) {
    let _ = write!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" {more}/>",
        from.0, from.1, to.0, to.1
    );
}

/// Writes a text, which may have raised and lowered parts.
fn text(svg: &mut String, x: f64, y: f64, anchor: &str, more: &str, content: &str) {
    if content.is_empty() {
        return;
    }
    let spans = typeset::svg(content);
    let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>{spans}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Shape, Style};

    #[test]
    fn a_level_is_named_where_fewer_points_are() {
        let name_at = |crowded: f64| {
            let points = [0.0, crowded, 10.0].map(|x| (x, if x == crowded { 1.01 } else { 0.0 }));
            let style = Style::point("#000000", Shape::Circle);
            let marks = vec![Mark::points(points, style), Mark::Level(1.0, "limit for PARITY".into())];
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

    /// What is drawn of a band from 0 to 10 on an axis from 0.001 to 1, or from 0 to 1.
    fn band(points: &[(f64, f64, f64)], scale: Scale) -> String {
        let y = match scale {
            Scale::Log => Axis::log("y").within(1e-3, 1.0),
            Scale::Linear => Axis::linear("y").within(0.0, 1.0),
        };
        let marks = vec![Mark::Band { points: points.to_vec(), style: Style::line("#123456") }];
        let panel = Panel { title: String::new(), x: Axis::linear("x").within(0.0, 10.0), y, marks };
        let svg = Figure { panels: vec![panel], columns: 1, ..Figure::default() }.svg();
        let own = svg.split('<').filter(|element| element.contains("#123456"));
        own.map(|element| format!("<{element}")).collect()
    }

    #[test]
    fn a_band_is_interrupted_where_there_is_no_interval() {
        let none = (5.0, f64::NAN, f64::NAN);
        let svg = band(&[(1.0, 0.2, 0.4), (2.0, 0.2, 0.4), none, (8.0, 0.2, 0.4), (9.0, 0.2, 0.4)], Scale::Linear);
        assert_eq!(svg.matches("<path").count(), 2, "{svg}");
        // An interval without neighbours is a bar with two caps.
        let svg = band(&[(1.0, 0.2, 0.4), none, (8.0, 0.2, 0.4), (9.0, 0.2, 0.4)], Scale::Linear);
        assert_eq!((svg.matches("<path").count(), svg.matches("<line").count()), (1, 3), "{svg}");
    }

    #[test]
    fn a_band_that_goes_back_does_not_cross_itself() {
        let svg = band(&[(1.0, 0.2, 0.4), (5.0, 0.3, 0.5), (3.0, 0.4, 0.6), (7.0, 0.1, 0.9)], Scale::Linear);
        assert_eq!(svg.matches("<path").count(), 1, "one shade: {svg}");
        let path = svg.split('"').nth(1).unwrap();
        for piece in path.split('M').skip(1) {
            let corners: Vec<Vec<f64>> = piece
                .trim_end_matches('Z')
                .split('L')
                .map(|corner| corner.split(' ').map(|number| number.parse().unwrap()).collect())
                .collect();
            // All turn the same way: left above, right above, right below, left below.
            assert!(corners[0][0] < corners[1][0] && corners[1][0] == corners[2][0] && corners[3][0] == corners[0][0]);
            assert!(corners[0][1] < corners[3][1] && corners[1][1] < corners[2][1], "{piece}");
        }
        assert_eq!(path.matches('M').count(), 3);
    }

    #[test]
    fn a_band_on_a_log_axis_does_not_fall_to_its_floor() {
        let svg = band(&[(1.0, -0.1, 0.5), (2.0, -0.1, 0.5)], Scale::Log);
        let path = svg.split('"').nth(1).unwrap();
        let heights: Vec<f64> = path
            .trim_matches(['M', 'Z'])
            .split('L')
            .map(|corner| corner.split(' ').nth(1).unwrap().parse().unwrap())
            .collect();
        // m = 0.2, h = 0.3: the band is as high above the mean as it reaches below, and the floor is far.
        let (top, bottom) = (heights[0], heights[3]);
        let floor = TOP_UNTITLED + HEIGHTS[0];
        let mean = TOP_UNTITLED + HEIGHTS[0] * 0.2f64.log10() / -3.0;
        assert!(((mean - top) - (bottom - mean)).abs() < 0.2 && bottom < floor - 50.0, "{top} {mean} {bottom} {floor}");
    }
}
