//! What a figure shows, in words and numbers: the text of a point, a description for those who do not see it, and its CSV.

use super::{Axis, Figure, Mark, Panel, Point, Shape, Style};
use crate::findings::number;
use crate::typeset::plain;

/// Series that a description tells about, at most.
const DESCRIBED: usize = 6;

impl Panel {
    /// Whether nothing belongs here: it keeps a place in its row.
    pub(super) fn is_blank(&self) -> bool {
        self.marks.is_empty() && self.title.is_empty() && self.x.label.is_empty() && self.y.label.is_empty()
    }

    /// What hovering over a point shows: its label, its values and its interval.
    pub(super) fn tell(&self, point: &Point) -> String {
        let mut told = point.label.clone();
        if !told.is_empty() {
            told.push('\n');
        }
        let (x, y) = (value_on(&self.x, point.x, "x"), value_on(&self.y, point.y, "y"));
        told += &format!("{x}\n{y}");
        if let Some((low, high)) = point.interval {
            told += &format!(" [{}, {}]", short(low), short(high));
        }
        if point.few {
            told += "\nmost runs are missing here";
        }
        told
    }

    /// What is seen, in a few sentences.
    pub(super) fn describe(&self, figure: &Figure) -> String {
        let or = |label: &str, other: &str| if label.is_empty() { other.to_string() } else { plain(label) };
        let mut said = format!("{} against {}.", or(&self.y.label, "values"), or(&self.x.label, "the horizontal axis"));
        // Lines tell more than the points around them.
        let is_line = |mark: &&Mark| matches!(mark, Mark::Line { points, .. } if !points.is_empty());
        let lines = self.marks.iter().filter(is_line).count();
        let chosen = self.marks.iter().filter(|mark| if lines > 0 { is_line(mark) } else { true });
        let mut series = Vec::new();
        for mark in chosen {
            match mark {
                Mark::Points { points, style } | Mark::Line { points, style } => {
                    let shown = || points.iter().filter(|point| self.x.shows(point.x) && self.y.shows(point.y));
                    let ends = [f64::min, f64::max].map(|end| shown().map(|point| point.y).reduce(end));
                    let ([Some(low), Some(high)], Some(first), Some(last)) =
                        (ends, shown().next(), shown().next_back())
                    else {
                        continue;
                    };
                    let name = figure.series(style);
                    let name = if name.is_empty() { String::new() } else { format!("{}: ", plain(name)) };
                    series.push(format!(
                        " {name}{} values from {} to {}, {} at the first and {} at the last.",
                        shown().count(),
                        short(low),
                        short(high),
                        short(first.y),
                        short(last.y)
                    ));
                }
                Mark::Cells { cells, .. } => {
                    let largest = cells.iter().max_by(|one, other| one.2.total_cmp(&other.2));
                    let largest = largest.map_or(String::new(), |(.., told)| format!(" The largest: {told}."));
                    series.push(format!(" A map of {} cells.{largest}", cells.len()));
                }
                _ => {}
            }
        }
        let more = series.len().saturating_sub(DESCRIBED);
        said += &series[..series.len() - more].concat();
        if more > 0 {
            said += &format!(" And {more} more.");
        }
        said
    }
}

/// `n = 8`, by the axis' label and by its names where it has some.
fn value_on(axis: &Axis, value: f64, otherwise: &str) -> String {
    let nearest = axis.names.iter().find(|(at, _)| (at - value).abs() <= 0.5);
    let label = if axis.label.is_empty() { otherwise.into() } else { plain(&axis.label) };
    match nearest {
        Some((_, name)) if axis.label.is_empty() => plain(name),
        Some((_, name)) => format!("{label}: {}", plain(name)),
        None => format!("{label} = {}", short(value)),
    }
}

/// A number in four digits.
pub fn short(value: f64) -> String {
    plain(&number(value)).replace('\u{2212}', "-").trim_end_matches(".000").to_string()
}

/// The columns of a figure's CSV.
const COLUMNS: [&str; 13] = [
    "panel",
    "x_axis",
    "y_axis",
    "series",
    "mark",
    "x",
    "y",
    "low",
    "high",
    "label",
    "run",
    "most_runs_missing",
    "value",
];

impl Figure {
    /// What the legend says about a style; empty where it says nothing, or nothing definite.
    pub(super) fn series(&self, style: &Style) -> &str {
        let same = |entry: &Style| {
            entry.colour == style.colour
                && (entry.shape == style.shape || [entry.shape, style.shape].contains(&Shape::Line))
        };
        let mut found = self.legend.iter().filter(|(_, entry)| same(entry));
        match (found.next(), found.next()) {
            (Some((name, _)), None) => name,
            _ => "",
        }
    }

    /// Its numbers: a row for each point, vertex of a line, interval and cell, as they are drawn.
    pub fn csv(&self) -> String {
        let mut csv = COLUMNS.join(",") + "\n";
        for (place, panel) in self.panels.iter().enumerate() {
            let title = if panel.title.is_empty() { (place + 1).to_string() } else { plain(&panel.title) };
            let (x, y) = (plain(&panel.x.label), plain(&panel.y.label));
            for mark in &panel.marks {
                for (style, kind, row) in self.rows(mark) {
                    let series = style.map_or(String::new(), |style| plain(self.series(style)));
                    let head = [&title, &x, &y, &series, kind].map(quoted).join(",");
                    csv += &format!("{head},{}\n", row.join(","));
                }
            }
        }
        csv
    }

    /// The rows of a mark: its style, its kind, and the cells from `x` on.
    fn rows<'a>(&self, mark: &'a Mark) -> Vec<(Option<&'a Style>, &'static str, [String; 8])> {
        let cells = |x: f64, y: f64, low: f64, high: f64, label: &str, run: &str, few: &str| {
            [cell(x), cell(y), cell(low), cell(high), quoted(label), quoted(run), few.into(), String::new()]
        };
        let none = f64::NAN;
        match mark {
            Mark::Points { points, style } | Mark::Line { points, style } => {
                let kind = if matches!(mark, Mark::Line { .. }) { "line" } else { "point" };
                let row = |point: &Point| {
                    let (low, high) = point.interval.unwrap_or((none, none));
                    let (run, few) = (point.run.as_deref().unwrap_or(""), if point.few { "yes" } else { "" });
                    (Some(style), kind, cells(point.x, point.y, low, high, &point.label, run, few))
                };
                points.iter().map(row).collect()
            }
            Mark::Band { points, style } | Mark::Intervals { points, style } => {
                let known = points.iter().filter(|(_, low, high)| low.is_finite() && high.is_finite());
                let row = |(x, low, high): &(f64, f64, f64)| {
                    (Some(style), "interval", cells(*x, none, *low, *high, "", "", ""))
                };
                known.map(row).collect()
            }
            // On the horizontal axis: the ends are values of x.
            Mark::LevelIntervals { points, style } => points
                .iter()
                .map(|(y, low, high)| (Some(style), "interval of x", cells(none, *y, *low, *high, "", "", "")))
                .collect(),
            Mark::Cells { cells: all, .. } => {
                let row = |(x, y, value, name): &(f64, f64, f64, String)| {
                    let mut row = cells(*x, *y, none, none, name, "", "");
                    row[7] = cell(*value);
                    (None, "cell", row)
                };
                all.iter().map(row).collect()
            }
            Mark::Level(y, name) => vec![(None, "level", cells(none, *y, none, none, &plain(name), "", ""))],
            Mark::Moment(x) => vec![(None, "moment", cells(*x, none, none, none, "", "", ""))],
        }
    }
}

fn cell(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// A text as CSV has it.
fn quoted(text: impl AsRef<str>) -> String {
    let text = text.as_ref();
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let style = Style::point("#D55E00", Shape::Circle);
        let points = vec![
            Point::new(4.0, 0.1, "n=4, \"seed\"=0").of_run("abc"),
            Point { interval: Some((0.2, 0.4)), ..Point::new(5.0, 0.3, "mean of 2 runs") }.few(true),
        ];
        let band = Mark::band(&points, Style::line("#D55E00"));
        let marks = vec![Mark::points(points, style), band, Mark::Level(1.0, "limit".into())];
        Panel { title: "W_{v}".into(), x: Axis::whole("n"), y: Axis::linear("sharpness"), marks }
    }

    fn figure() -> Figure {
        let legend = vec![("PARITY".to_string(), Style::point("#D55E00", Shape::Circle))];
        Figure { panels: vec![panel()], columns: 1, legend, ..Figure::default() }
    }

    #[test]
    fn hovering_tells_label_values_and_interval() {
        let panel = panel();
        let Mark::Points { points, .. } = &panel.marks[0] else { unreachable!() };
        assert_eq!(panel.tell(&points[0]), "n=4, \"seed\"=0\nn = 4\nsharpness = 0.1000");
        assert_eq!(
            panel.tell(&points[1]),
            "mean of 2 runs\nn = 5\nsharpness = 0.3000 [0.2000, 0.4000]\nmost runs are missing here"
        );
    }

    #[test]
    fn the_csv_has_what_is_drawn() {
        let csv = figure().csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "panel,x_axis,y_axis,series,mark,x,y,low,high,label,run,most_runs_missing,value");
        assert_eq!(lines[1], "W_v,n,sharpness,PARITY,point,4,0.1,,,\"n=4, \"\"seed\"\"=0\",abc,,");
        assert_eq!(lines[2], "W_v,n,sharpness,PARITY,point,5,0.3,0.2,0.4,mean of 2 runs,,yes,");
        // One run has no interval.
        assert_eq!(lines[3], "W_v,n,sharpness,PARITY,interval,5,,0.2,0.4,,,,");
        assert_eq!(lines[4], "W_v,n,sharpness,,level,,1,,,limit,,,");
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn a_description_tells_what_is_seen() {
        let figure = figure();
        assert_eq!(
            figure.panels[0].describe(&figure),
            "sharpness against n. PARITY: 2 values from 0.1000 to 0.3000, 0.1000 at the first and 0.3000 at the last."
        );
    }
}
