//! Figures as data: panels, axes and marks. Drawn as SVG by [`Figure::svg`] and as PNG by [`png`].

mod axis;
pub mod colour;
mod draw;
pub mod png;

pub use axis::{Axis, Scale};
pub(crate) use draw::escape;

/// A figure: panels in rows, one legend above them, one line of small print below.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels in a row.
    pub columns: usize,
    /// What the colours and shapes mean.
    pub legend: Vec<(String, Style)>,
    /// What the colours of a continuous scale mean.
    pub colour_bar: Option<ColourBar>,
    /// Small print: scale, runs kept and discarded.
    pub note: String,
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
    /// A symbol at each (x, y); hovering in a browser shows its text.
    Points {
        /// x, y and what hovering shows.
        points: Vec<(f64, f64, String)>,
        /// How they look.
        style: Style,
    },
    /// A line through the points.
    Line {
        /// In order.
        points: Vec<(f64, f64)>,
        /// How it looks.
        style: Style,
    },
    /// A shaded band between two curves: x, low, high.
    Band {
        /// In order.
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
    /// Squares of side 1 around (x, y), coloured by a value from 0 to 1; hovering in a browser shows their text.
    Cells {
        /// x, y, value and what hovering shows.
        cells: Vec<(f64, f64, f64, String)>,
    },
    /// A dashed line across the panel at this y, with a text.
    Level(f64, String),
    /// A dashed line down the panel at this x.
    Moment(f64),
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
    /// All points of the mark that its panel must show.
    fn extent(&self) -> Vec<(f64, f64)> {
        match self {
            Mark::Points { points, .. } => points.iter().map(|(x, y, _)| (*x, *y)).collect(),
            Mark::Line { points, .. } => points.clone(),
            Mark::Band { points, .. } | Mark::Intervals { points, .. } => {
                points.iter().flat_map(|(x, low, high)| [(*x, *low), (*x, *high)]).collect()
            }
            Mark::LevelIntervals { points, .. } => {
                points.iter().flat_map(|(y, low, high)| [(*low, *y), (*high, *y)]).collect()
            }
            Mark::Cells { cells } => {
                cells.iter().flat_map(|(x, y, ..)| [(x - 0.5, y - 0.5), (x + 0.5, y + 0.5)]).collect()
            }
            Mark::Level(..) | Mark::Moment(_) => Vec::new(),
        }
    }
}

impl Panel {
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
