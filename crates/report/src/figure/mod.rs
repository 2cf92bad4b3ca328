//! Figures as data: panels, axes and marks. Drawn for the page by [`Figure::html`], as a file by [`Figure::svg`] and [`png`]; their numbers
//! are [`Figure::csv`].

mod axis;
pub mod colour;
mod data;
mod draw;
mod html;
mod outlines;
pub mod png;

use pudica_statistics::Mean;

pub use axis::{Axis, Scale};

/// A figure: panels in rows, one legend above them, one line of small print below.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels in a row.
    pub columns: usize,
    /// How high panels are.
    pub height: Height,
    /// What the colours and shapes mean.
    pub legend: Vec<(String, Style)>,
    /// What the colours of a continuous scale mean.
    pub colour_bar: Option<ColourBar>,
    /// Small print: scale, runs kept and discarded.
    pub note: String,
}

/// How high the frames of panels are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Height {
    /// By the number of panels in a row.
    #[default]
    Usual,
    /// Room for so many names on the vertical axis.
    Names(usize),
    /// So many times their width: maps, whose cells are to be squares.
    OfWidth(f64),
}

impl Height {
    /// In pixels, for a frame of this width that would usually be so high.
    fn of(self, width: f64, usual: f64) -> f64 {
        match self {
            Height::Usual => usual,
            Height::Names(names) => 20.0 * names as f64 + 16.0,
            Height::OfWidth(times) => width * times,
        }
    }
}

/// One pair of axes and what is drawn in it.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Written above.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Drawn in order, later ones on top.
    pub marks: Vec<Mark>,
}

/// Something drawn in a panel, in the coordinates of its axes.
#[derive(Clone, Debug)]
pub enum Mark {
    /// A symbol at each point; hovering in a browser shows what is known about it, a click leads to its run. See [`Mark::points`].
    Points {
        /// In any order.
        points: Vec<Point>,
        /// How they look.
        style: Style,
    },
    /// A line through the points. See [`Mark::line`].
    Line {
        /// In order.
        points: Vec<Point>,
        /// How it looks.
        style: Style,
    },
    /// A shaded band between two curves: x, low, high. Where low or high is NaN, as where there is one run only, it is interrupted. On a log
    /// axis, intervals should be intervals of the logarithm; one that reaches 0 or less is carried over (`axis::on_log`). See [`Mark::band`].
    Band {
        /// In order; x may go back and forth.
        points: Vec<(f64, f64, f64)>,
        /// How it looks.
        style: Style,
    },
    /// Vertical intervals: x, low, high.
    Intervals {
        /// In any order.
        points: Vec<(f64, f64, f64)>,
        /// How they look.
        style: Style,
    },
    /// Horizontal intervals: y, low, high.
    LevelIntervals {
        /// In any order.
        points: Vec<(f64, f64, f64)>,
        /// How they look.
        style: Style,
    },
    /// Squares of side 1 around (x, y), coloured by a value; hovering in a browser shows their text. See [`Panel::map`].
    Cells {
        /// x, y, value and what hovering shows.
        cells: Vec<(f64, f64, f64, String)>,
        /// The values at the ends of the colours.
        ends: (f64, f64),
    },
    /// A dashed line across the panel at this y, with a text.
    Level(f64, String),
    /// A dashed line down the panel at this x.
    Moment(f64),
}

/// A place in a panel, and what is known about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// On the horizontal axis.
    pub x: f64,
    /// On the vertical axis.
    pub y: f64,
    /// The ends of its interval, where it has one; they are told, not drawn.
    pub interval: Option<(f64, f64)>,
    /// What it is: the label of a run, or of a group with the number of its runs.
    pub label: String,
    /// The id of its run, where it is one run: the point leads to its folder.
    pub run: Option<String>,
    /// Whether most runs that belong here are missing, not converged or not finished. Its symbol is then hollow, and lines to it and from it
    /// are faint and dashed.
    pub few: bool,
}

impl Point {
    /// A point with a label.
    pub fn new(x: f64, y: f64, label: impl Into<String>) -> Point {
        Point { x, y, label: label.into(), ..Point::default() }
    }

    /// A mean with its interval, where it has one.
    pub fn mean(x: f64, mean: &Mean, label: impl Into<String>) -> Point {
        let interval = (mean.low < mean.high).then_some((mean.low, mean.high));
        Point { interval, ..Point::new(x, mean.mean, label) }
    }

    /// The same as the run of this id.
    pub fn of_run(mut self, id: &str) -> Point {
        self.run = Some(id.into());
        self
    }

    /// The same, of few of the runs that belong here.
    pub fn few(mut self, few: bool) -> Point {
        self.few = few;
        self
    }
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Point {
        Point::new(x, y, "")
    }
}

impl From<(f64, f64, String)> for Point {
    fn from((x, y, label): (f64, f64, String)) -> Point {
        Point::new(x, y, label)
    }
}

/// Colour, shape and line of a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Style {
    /// As in CSS.
    pub colour: String,
    /// The symbol of points.
    pub shape: Shape,
    /// 0 to 1.
    pub opacity: f64,
    /// Radius of points, half the width of lines.
    pub size: f64,
}

/// Symbols, told apart without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// No symbol: a line or band.
    Line,
}

/// A continuous scale of colours and its meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct ColourBar {
    /// What the colour tells.
    pub label: String,
    /// Its smallest value.
    pub low: f64,
    /// Its largest value.
    pub high: f64,
}

impl Style {
    /// A symbol of this colour.
    pub fn point(colour: &str, shape: Shape) -> Style {
        Style { colour: colour.into(), shape, opacity: 0.75, size: 3.2 }
    }

    /// A line of this colour.
    pub fn line(colour: &str) -> Style {
        Style { colour: colour.into(), shape: Shape::Line, opacity: 1.0, size: 0.9 }
    }

    /// The same with another opacity.
    pub fn faint(mut self, opacity: f64) -> Style {
        self.opacity = opacity;
        self
    }

    /// The same with another size.
    pub fn sized(mut self, size: f64) -> Style {
        self.size = size;
        self
    }
}

impl Mark {
    /// A symbol at each point.
    pub fn points<T: Into<Point>>(points: impl IntoIterator<Item = T>, style: Style) -> Mark {
        Mark::Points { points: points.into_iter().map(T::into).collect(), style }
    }

    /// A line through points.
    pub fn line<T: Into<Point>>(points: impl IntoIterator<Item = T>, style: Style) -> Mark {
        Mark::Line { points: points.into_iter().map(T::into).collect(), style }
    }

    /// A band of the intervals of points, interrupted where they have none.
    pub fn band(points: &[Point], style: Style) -> Mark {
        let ends = |point: &Point| point.interval.unwrap_or((f64::NAN, f64::NAN));
        let points = points.iter().map(|point| (point.x, ends(point).0, ends(point).1)).collect();
        Mark::Band { points, style }
    }

    /// All points of the mark that its panel must show.
    fn extent(&self) -> Vec<(f64, f64)> {
        match self {
            Mark::Points { points, .. } | Mark::Line { points, .. } => {
                points.iter().map(|point| (point.x, point.y)).collect()
            }
            Mark::Band { points, .. } | Mark::Intervals { points, .. } => {
                points.iter().flat_map(|(x, low, high)| [(*x, *low), (*x, *high)]).collect()
            }
            Mark::LevelIntervals { points, .. } => {
                points.iter().flat_map(|(y, low, high)| [(*low, *y), (*high, *y)]).collect()
            }
            Mark::Cells { cells, .. } => {
                cells.iter().flat_map(|(x, y, ..)| [(x - 0.5, y - 0.5), (x + 0.5, y + 0.5)]).collect()
            }
            Mark::Level(..) | Mark::Moment(_) => Vec::new(),
        }
    }
}

impl Panel {
    /// A map of values row by row from the top, in so many columns, each with what hovering shows; `ends` are the values at the ends of the
    /// colours.
    pub fn map(title: &str, columns: usize, values: &[(f64, String)], ends: (f64, f64)) -> Panel {
        let columns = columns.clamp(1, values.len().max(1));
        let rows = values.len().div_ceil(columns);
        let cell = |(site, (value, text)): (usize, &(f64, String))| {
            // The axis goes upwards.
            let (x, y) = (site % columns, rows - 1 - site / columns);
            (x as f64, y as f64, *value, text.clone())
        };
        let marks = vec![Mark::Cells { cells: values.iter().enumerate().map(cell).collect(), ends }];
        let axis = |count: usize, up: bool| {
            // Where there are many, every second, fifth, ... is named.
            let every = [1, 2, 5, 10, 20, 50].into_iter().find(|every| count <= 10 * every).unwrap_or(100);
            let place = |one: usize| if up { count - 1 - one } else { one };
            let names = (0..count).step_by(every).map(|one| (place(one) as f64, one.to_string()));
            Axis { names: names.collect(), ..Axis::linear("").within(-0.5, count as f64 - 0.5) }
        };
        Panel { title: title.into(), x: axis(columns, false), y: axis(rows, true), marks }
    }

    /// The vertical values of its lines that its axis can show.
    pub fn line_values(&self) -> Vec<f64> {
        let lines = self.marks.iter().filter(|mark| matches!(mark, Mark::Line { .. }));
        lines.flat_map(Mark::extent).map(|(_, y)| y).filter(|y| self.y.shows(*y)).collect()
    }

    /// The vertical values that its axis can show.
    pub fn shown_values(&self) -> Vec<f64> {
        self.marks.iter().flat_map(Mark::extent).map(|(_, y)| y).filter(|y| self.y.shows(*y)).collect()
    }
}
