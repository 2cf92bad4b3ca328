//! What figures of measurements are made of: points with their intervals, curves, and lists of names with values beside them.

use pudica_measure::results::Value;

use super::found::{Found, interval};
use super::words::{Words, cut};
use crate::figure::{Axis, Figure, Height, Mark, Panel, Point, Style};
use crate::findings::Drawn;

/// Letters of a name on the vertical axis, at most: a phone has room for a value beside them.
const LETTERS: usize = 22;
/// Names of one figure, at most.
pub const MOST_NAMES: usize = 30;

/// A value at a place.
pub fn point(x: f64, value: &Value, label: &str) -> Point {
    Point { interval: interval(value), ..Point::new(x, value.value, label) }
}

/// A line through values with the band of their intervals.
pub fn curve(points: Vec<Point>, style: Style) -> [Mark; 3] {
    let band = Mark::band(&points, style.clone().faint(0.15));
    let line = Mark::line(points.iter().cloned(), style.clone().faint(1.0).sized(0.9));
    [band, line, Mark::points(points, style.faint(1.0))]
}

/// Symbols with their intervals.
pub fn dots(points: Vec<Point>, style: Style) -> [Mark; 2] {
    let bars = points.iter().filter_map(|point| point.interval.map(|(low, high)| (point.x, low, high))).collect();
    [
        Mark::Intervals { points: bars, style: style.clone().faint(1.0) },
        Mark::points(points, style.faint(1.0).sized(4.0)),
    ]
}

/// The axis of a response for these values: from 0 on, but for those that are of interest near 1.
pub fn axis(words: &Words, label: &str, values: impl Iterator<Item = Value>) -> Axis {
    let axis = if words.is_fraction { Axis::fraction(label) } else { Axis::linear(label) };
    let ends = values.flat_map(|value| {
        let (low, high) = interval(&value).unwrap_or((value.value, value.value));
        [low, high]
    });
    let (low, high) =
        ends.filter(|end| end.is_finite()).fold((0.0f64, 0.0f64), |(low, high), end| (low.min(end), high.max(end)));
    match words.is_inverse || low == high {
        true => axis,
        false => axis.within(low - 0.03 * (high - low), high + 0.06 * (high - low)),
    }
}

/// Names down the side and a symbol with its interval for each model that has a value: a row is a name and the models' values, in their order.
pub fn names(found: &Found, title: &str, words: &Words, rows: &[(String, Vec<Option<Value>>)]) -> Panel {
    let down = |row: usize| (rows.len() - 1 - row) as f64;
    let count = found.models().count();
    let mut marks = Vec::new();
    for (place, (model, style)) in found.styles().enumerate() {
        // Models side by side within a row.
        let beside = if count > 1 { 0.5 * (0.5 - place as f64 / (count - 1) as f64) } else { 0.0 };
        let value = |(row, (name, values)): (usize, &(String, Vec<Option<Value>>))| {
            let value = (*values.get(place)?)?;
            let ends = interval(&value);
            let range = ends.map_or(String::new(), |(low, high)| {
                format!(" [{}, {}]", crate::figure::short(low), crate::figure::short(high))
            });
            let label = format!("{model}, {name}: {}{range}", crate::figure::short(value.value));
            Some((Point::new(value.value, down(row) + beside, label), ends))
        };
        let values: Vec<(Point, Option<(f64, f64)>)> = rows.iter().enumerate().filter_map(value).collect();
        let bars = values.iter().filter_map(|(point, ends)| ends.map(|(low, high)| (point.y, low, high))).collect();
        marks.push(Mark::LevelIntervals { points: bars, style: style.clone().faint(1.0) });
        marks.push(Mark::points(values.into_iter().map(|(point, _)| point), style.faint(1.0).sized(4.0)));
    }
    let values = rows.iter().flat_map(|(_, values)| values).flatten().copied();
    let named = rows.iter().enumerate().map(|(row, (name, _))| (down(row), cut(name, LETTERS)));
    let y = Axis { names: named.collect(), ..Axis::linear("").within(-0.6, rows.len() as f64 - 0.4) };
    Panel { title: title.into(), x: axis(words, &words.name, values), y, marks }
}

/// A figure of one list of names.
pub fn list(
    found: &Found,
    file: &str,
    title: &str,
    caption: &str,
    words: &Words,
    rows: &[(String, Vec<Option<Value>>)],
) -> Drawn {
    let panels = vec![names(found, "", words, rows)];
    let height = Height::Names(rows.len());
    let figure = Figure { panels, columns: 1, height, legend: found.legend(), ..Figure::default() };
    Drawn::new(file, title, caption, "", figure)
}

/// A text as part of a file's name.
pub fn file_name(text: &str) -> String {
    let plain = text.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.', "-");
    plain.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}
