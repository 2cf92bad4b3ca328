//! What a report says: figures, tables, the statistics behind them, and how numbers are written.

use pudica_statistics::Mean;
use serde_json::{Map, Value};

use crate::figure::Figure;
use crate::published::trend;

/// Everything a report says about a sweep.
#[derive(Default)]
pub struct Findings {
    /// In the paper's order.
    pub figures: Vec<Drawn>,
    /// Below the figures.
    pub tables: Vec<Table>,
    /// The statistics behind them, for summary.json.
    pub summary: Map<String, Value>,
    /// What the scale of a built-in recipe means.
    pub scale: ScaleWords,
}

/// What it means that an experiment was run at a scale.
pub struct ScaleWords {
    /// At the scale `paper`, nothing changed.
    pub paper: &'static str,
    /// At another scale.
    pub other: &'static str,
}

impl Default for ScaleWords {
    fn default() -> Self {
        ScaleWords {
            paper: "The published settings, nothing changed.",
            other: "Small networks and short inputs, chosen to show the effect on two CPU cores in minutes: compare trends with the published ones, not absolute values.",
        }
    }
}

/// A figure and its caption.
pub struct Drawn {
    /// File name without extension: `fig5`.
    pub file: String,
    /// `Figure 5`, or a name where the paper has none.
    pub title: String,
    /// What is drawn.
    pub caption: String,
    /// What was published.
    pub published: String,
    /// The drawing; where it has no small print, it gets that of the sweep.
    pub figure: Figure,
}

/// A table of texts.
pub struct Table {
    /// Above it.
    pub title: String,
    /// Column heads.
    pub head: Vec<String>,
    /// Rows; the first cell names the row.
    pub rows: Vec<Vec<String>>,
    /// Below it.
    pub note: String,
}

impl Findings {
    /// Adds a figure, with what was published about it.
    pub fn draw(&mut self, file: &str, title: &str, caption: &str, figure: Figure) {
        self.figures.push(Drawn::new(file, title, caption, trend(file), figure));
    }
}

impl Drawn {
    /// A figure, its caption and what was published.
    pub fn new(file: &str, title: &str, caption: &str, published: &str, figure: Figure) -> Drawn {
        Drawn { file: file.into(), title: title.into(), caption: caption.into(), published: published.into(), figure }
    }
}

/// A number for people: four significant digits, powers of ten where they help.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let size = value.abs();
    if size == 0.0 {
        "0".into()
    } else if (0.01..1e5).contains(&size) {
        let decimals = (3 - size.log10().floor() as i32).clamp(0, 5) as usize;
        format!("{value:.decimals$}").replace('-', "−")
    } else {
        let text = format!("{value:.1e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{digits}·10<sup>{exponent}</sup>").replace('-', "−")
    }
}

/// A mean without its interval.
pub fn plain(mean: Option<Mean>) -> String {
    mean.map_or("–".into(), |mean| number(mean.mean))
}

/// A mean with its interval.
pub fn with_interval(mean: Option<Mean>) -> String {
    match mean {
        Some(mean) if mean.low < mean.high => {
            format!("{} [{}, {}]", number(mean.mean), number(mean.low), number(mean.high))
        }
        mean => plain(mean),
    }
}

/// A mean with its interval and the number of runs behind it.
pub fn with_count(mean: Option<Mean>) -> String {
    match mean {
        Some(Mean { count: 1, mean, .. }) => format!("{} (one run)", number(mean)),
        Some(Mean { count, mean, low, high, .. }) => {
            format!("{} [{}, {}], {count} runs", number(mean), number(low), number(high))
        }
        None => "–".into(),
    }
}

/// A mean ± one standard error.
pub fn with_error(mean: Option<Mean>) -> String {
    match mean {
        Some(mean) if mean.count > 1 || mean.std_error > 0.0 => {
            format!("{} ± {}", number(mean.mean), number(mean.std_error))
        }
        mean => plain(mean),
    }
}

/// A row of texts, of anything that is one.
pub fn head<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(String::from).into()
}
