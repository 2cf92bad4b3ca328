//! Tables: typed cells, one format of numbers per column, and their markup. A small script on the page makes them sortable and filterable.

use std::fmt::Write;

use pudica_statistics::Mean;

use crate::findings::counted;
use crate::typeset::{escape, html};

/// A table.
pub struct Table {
    /// Above it.
    pub title: String,
    /// Column heads.
    pub head: Vec<String>,
    /// Rows; the first cell names the row.
    pub rows: Vec<Vec<Cell>>,
    /// Below it.
    pub note: String,
}

/// What stands in a cell. Everything that is a text is escaped, and may have raised and lowered parts (see `typeset`).
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Not known: a dash.
    Missing,
    /// A text. One that is a number is sorted as a number, and written as it is.
    Text(String),
    /// A number, written as the others of its column.
    Number {
        /// The number itself, by which its column is sorted.
        value: f64,
        /// How sure it is.
        spread: Spread,
        /// The number of runs behind it, where that is to be said.
        runs: Option<usize>,
        /// What else is said of it, in grey behind it: `exact`; empty as a rule.
        mark: &'static str,
    },
    /// A text that leads somewhere, relative to the page.
    Link {
        /// What is written.
        text: String,
        /// Where it leads: `runs/ID/`.
        to: String,
    },
}

/// How sure a number is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Exactly, or it is not known how.
    None,
    /// One standard error: `0.34 ± 0.02`.
    Error(f64),
    /// An interval: `0.34 [0.30, 0.38]`.
    Interval(f64, f64),
}

impl Cell {
    /// A link to the folder of a run.
    pub fn run(label: &str, id: &str) -> Cell {
        Cell::Link { text: label.into(), to: format!("runs/{id}/") }
    }

    /// A number; a dash where it is none.
    pub fn number(value: f64, spread: Spread, runs: Option<usize>) -> Cell {
        if value.is_finite() { Cell::Number { value, spread, runs, mark: "" } } else { Cell::Missing }
    }

    /// A number with its interval, where it has one.
    pub fn within(value: f64, interval: Option<(f64, f64)>) -> Cell {
        Cell::number(value, interval.map_or(Spread::None, |(low, high)| Spread::Interval(low, high)), None)
    }

    /// The same with a word behind it, if it is a number.
    pub fn marked(mut self, word: &'static str) -> Cell {
        if let Cell::Number { mark, .. } = &mut self {
            *mark = word;
        }
        self
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        if text == MISSING { Cell::Missing } else { Cell::Text(text) }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        text.to_string().into()
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::number(value, Spread::None, None)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Cell {
        (count as f64).into()
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Missing, T::into)
    }
}

const MISSING: &str = "–";

/// A mean without its interval.
pub fn plain(mean: Option<Mean>) -> Cell {
    mean.map(|mean| mean.mean).into()
}

/// A mean with its interval, where it has one.
pub fn with_interval(mean: Option<Mean>) -> Cell {
    match mean {
        Some(mean) if mean.low < mean.high => Cell::number(mean.mean, Spread::Interval(mean.low, mean.high), None),
        mean => plain(mean),
    }
}

/// A mean with its interval and the number of runs behind it.
pub fn with_count(mean: Option<Mean>) -> Cell {
    match mean {
        Some(Mean { count: 1, mean, .. }) => Cell::number(mean, Spread::None, Some(1)),
        Some(Mean { count, mean, low, high, .. }) => {
            let spread = if low < high { Spread::Interval(low, high) } else { Spread::None };
            Cell::number(mean, spread, Some(count))
        }
        None => Cell::Missing,
    }
}

/// A mean ± one standard error.
pub fn with_error(mean: Option<Mean>) -> Cell {
    match mean {
        Some(mean) if mean.count > 1 || mean.std_error > 0.0 => {
            Cell::number(mean.mean, Spread::Error(mean.std_error), None)
        }
        mean => plain(mean),
    }
}

/// A row of texts, of anything that is one.
pub fn head<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(String::from).into()
}

/// A row of cells, of anything that is one.
pub fn row<T: Into<Cell>>(cells: impl IntoIterator<Item = T>) -> Vec<Cell> {
    cells.into_iter().map(T::into).collect()
}

/// How all numbers of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// With so many decimals.
    Decimals(usize),
    /// As `1.93·10^{−3}`: the column spans too many powers of ten for decimals.
    Powers,
}

impl Format {
    /// The format in which the largest number has four digits and the smallest at least two; or as few as are exact, where all numbers are.
    fn of<'a>(cells: impl Iterator<Item = &'a Cell>) -> Format {
        let mut exact = Some(0);
        let (mut largest, mut smallest) = (0.0f64, f64::INFINITY);
        for cell in cells {
            let Cell::Number { value, spread, .. } = cell else { continue };
            let enough = |decimals: &usize| format!("{value:.decimals$}").parse() == Ok(*value);
            let decimals = (0..=4).find(enough).filter(|_| *spread == Spread::None);
            exact = exact.zip(decimals).map(|(most, decimals)| decimals.max(most));
            // A number needs no digits far below its own error.
            let reach = match spread {
                Spread::None => 0.0,
                Spread::Error(error) => *error,
                Spread::Interval(low, high) => (high - low) / 2.0,
            };
            let size = value.abs().max(reach);
            largest = largest.max(size);
            if size > 0.0 {
                smallest = smallest.min(size);
            }
        }
        let power = |size: f64| size.log10().floor() as i32;
        if let Some(decimals) = exact.filter(|_| largest < 1e9) {
            return Format::Decimals(decimals);
        }
        // All of it is noise around 0 where nothing has a size.
        let decimals = if largest > 0.0 { (3 - power(largest)).max(1 - power(smallest)).max(0) } else { 0 };
        if decimals <= 5 && largest < 1e6 { Format::Decimals(decimals as usize) } else { Format::Powers }
    }

    fn write(self, value: f64) -> String {
        let text = self.digits(value);
        // What is rounded to 0 has no sign.
        match text.strip_prefix('-').filter(|digits| digits.chars().all(|digit| "0.,".contains(digit))) {
            Some(zero) => zero.into(),
            None => text.replace('-', "−"),
        }
    }

    fn digits(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => MISSING.into(),
            Format::Decimals(0) => grouped(&format!("{value:.0}")),
            Format::Decimals(decimals) => format!("{value:.decimals$}"),
            Format::Powers if value == 0.0 => "0".into(),
            Format::Powers => {
                let text = format!("{value:.2e}");
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                format!("{digits}·10^{{{exponent}}}")
            }
        }
    }
}

/// A whole number in groups of three digits from 10,000 on.
pub fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    if digits.len() < 5 {
        return format!("{sign}{digits}");
    }
    let first = (digits.len() - 1) % 3 + 1;
    let groups: Vec<&str> = std::iter::once(&digits[..first])
        .chain((first..digits.len()).step_by(3).map(|at| &digits[at..at + 3]))
        .collect();
    format!("{sign}{}", groups.join(","))
}

impl Table {
    /// Its section of the page.
    pub fn html(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let format = |column: usize| Format::of(self.rows.iter().filter_map(|row| row.get(column)));
        let formats: Vec<Format> = (0..columns).map(format).collect();
        let runs: Vec<Option<usize>> = (0..columns).map(|column| self.common_runs(column)).collect();
        let mut head = String::new();
        for (cell, runs) in self.head.iter().zip(runs.iter().chain(std::iter::repeat(&None))) {
            let _ = write!(head, "<th scope=\"col\">{}{}</th>", html(cell), runs.map_or(String::new(), runs_html));
        }
        let mut rows = String::new();
        for row in &self.rows {
            rows += "<tr>";
            for (place, cell) in row.iter().enumerate() {
                let (tag, scope) = if place == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
                let _ = write!(rows, "<{tag}{scope}{}</{tag}>", cell.html(formats[place], runs[place].is_none()));
            }
            rows += "</tr>\n";
        }
        let title = html(&self.title);
        let note =
            if self.note.is_empty() { String::new() } else { format!("<p class=\"small\">{}</p>", html(&self.note)) };
        format!(
            "<section><h2>{title}</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\
             <table class=\"data\"><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>{note}</section>\n",
            escape(&crate::typeset::plain(&self.title)),
        )
    }
}

impl Table {
    /// The number of runs behind every number of a column, where it is the same: the head says it then.
    fn common_runs(&self, column: usize) -> Option<usize> {
        let mut runs = self.rows.iter().filter_map(|row| match row.get(column) {
            Some(Cell::Number { runs, .. }) => Some(*runs),
            _ => None,
        });
        let first = runs.next()??;
        runs.all(|other| other == Some(first)).then_some(first)
    }
}

/// Room for a sentence, so that it has three lines at most: a letter is about half as wide as it is high.
fn room(text: &str) -> String {
    match text.chars().count() {
        ..=36 => String::new(),
        letters => format!(" style=\"min-width:min({}em,70vw)\"", (letters / 6 + 3).min(60)),
    }
}

fn runs_html(runs: usize) -> String {
    format!(" <span class=\"i\">({})</span>", counted(runs, "run"))
}

impl Cell {
    /// What follows the name of its tag: attributes, `>` and what is in it.
    fn html(&self, format: Format, tells_runs: bool) -> String {
        match self {
            Cell::Missing => format!(" class=\"n\">{MISSING}"),
            Cell::Text(text) => match text.replace('−', "-").parse::<f64>() {
                Ok(value) if value.is_finite() => format!(" class=\"n\" data-v=\"{value}\">{}", html(text)),
                _ => format!("{}>{}", room(text), html(text)),
            },
            Cell::Link { text, to } => format!("><a href=\"{}\">{}</a>", escape(to), html(text)),
            // Nothing was seen of what cannot be less than nothing: an upper limit.
            Cell::Number { value: 0.0, spread: Spread::Interval(0.0, high), .. } => {
                format!(" class=\"n\" data-v=\"0\">&lt; {}", html(&format.write(*high)))
            }
            Cell::Number { value, spread, runs, mark } => {
                let write = |value: f64| html(&format.write(value));
                let spread = match spread {
                    Spread::None => String::new(),
                    Spread::Error(error) => format!(" <span class=\"i\">± {}</span>", write(*error)),
                    Spread::Interval(low, high) => {
                        format!(" <span class=\"i\">[{}, {}]</span>", write(*low), write(*high))
                    }
                };
                let runs = runs.filter(|_| tells_runs).map_or(String::new(), runs_html);
                let mark = if mark.is_empty() { String::new() } else { format!(" <span class=\"i\">{mark}</span>") };
                format!(" class=\"n\" data-v=\"{value}\">{}{spread}{runs}{mark}", write(*value))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[f64]) -> Vec<String> {
        let cells: Vec<Cell> = row(values.iter().copied());
        let format = Format::of(cells.iter());
        values.iter().map(|value| format.write(*value)).collect()
    }

    #[test]
    fn a_column_has_one_format() {
        assert_eq!(written(&[0.05, 1.9e-3, 0.3413]), ["0.0500", "0.0019", "0.3413"]);
        assert_eq!(written(&[1.0, 4.123e-4, -0.25]), ["1.00000", "0.00041", "−0.25000"]);
        assert_eq!(written(&[0.0, 0.1, 0.25]), ["0.00", "0.10", "0.25"], "exact, as settings are");
        assert_eq!(written(&[5e-2, 3.2e-12]), ["5.00·10^{−2}", "3.20·10^{−12}"]);
        assert_eq!(written(&[3.0, 20_000.0, -1_234_567.0]), ["3", "20,000", "−1,234,567"]);
        assert_eq!(written(&[123.456_789, 0.0]), ["123.5", "0.0"]);
        assert_eq!(written(&[123.456_789, -0.001]), ["123.4568", "−0.0010"]);
        assert_eq!(Format::Decimals(2).write(-0.001), "0.00");
        // A number that its own error hides from 0 does not set the format.
        let noise = Cell::number(1e-7, Spread::Error(0.02), None);
        assert_eq!(Format::of([Cell::from(0.5), noise].iter()), Format::Decimals(4));
    }

    #[test]
    fn cells_are_sorted_by_what_they_mean() {
        let format = Format::Decimals(2);
        assert_eq!(Cell::from("−3").html(format, true), " class=\"n\" data-v=\"-3\">−3");
        assert_eq!(Cell::from("a < b").html(format, true), ">a &lt; b");
        assert!(
            Cell::from("a ".repeat(20).as_str())
                .html(format, true)
                .starts_with(" style=\"min-width:min(9em,70vw)\">a a")
        );
        assert_eq!(Cell::from(f64::NAN).html(format, true), " class=\"n\">–");
        assert_eq!(Cell::run("seed=0", "abc").html(format, true), "><a href=\"runs/abc/\">seed=0</a>");
        let none = Mean { mean: 0.0, std_error: 0.0, low: 0.0, high: 0.00597, count: 1 };
        assert_eq!(with_interval(Some(none)).html(Format::Decimals(4), true), " class=\"n\" data-v=\"0\">&lt; 0.0060");
        let mean = Mean { mean: 0.5, std_error: 0.1, low: 0.3, high: 0.7, count: 4 };
        assert_eq!(
            with_count(Some(mean)).html(format, true),
            " class=\"n\" data-v=\"0.5\">0.50 <span class=\"i\">[0.30, 0.70]</span> <span class=\"i\">(4 runs)</span>"
        );
    }

    #[test]
    fn runs_are_told_once_where_they_are_the_same() {
        let mean = |count: usize| with_count(Some(Mean { mean: 0.5, std_error: 0.1, low: 0.3, high: 0.7, count }));
        let table = |counts: [usize; 2]| {
            let rows = counts.map(|count| vec!["name".into(), mean(count)]).into();
            Table { title: "T".into(), head: head(["what", "how"]), rows, note: String::new() }.html()
        };
        let same = table([3, 3]);
        assert!(same.contains("how <span class=\"i\">(3 runs)</span></th>") && same.matches("3 runs").count() == 1);
        assert_eq!((table([3, 2]).matches("(3 runs)").count(), table([3, 2]).matches("(2 runs)").count()), (1, 1));
    }
}
