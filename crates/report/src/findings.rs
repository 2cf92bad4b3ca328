//! What a report says: figures, tables, claims, the statistics behind them, and how numbers are written.

use serde_json::{Map, Value};

use crate::claims::Claim;
use crate::figure::Figure;
use crate::published::trend;
pub use crate::table::{Cell, Spread, Table, head, plain, row, with_count, with_error, with_interval};

/// Everything a report says about a sweep.
#[derive(Default)]
pub struct Findings {
    /// In the paper's order.
    pub figures: Vec<Drawn>,
    /// Below the figures.
    pub tables: Vec<Table>,
    /// What was published, and what the runs say about it; the first is the question of the whole page.
    pub claims: Vec<Claim>,
    /// What a reader must know before believing a number.
    pub warnings: Vec<String>,
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
            other: "A smoke test: small networks and short inputs, chosen to show the effect on two CPU cores in minutes. Where it disagrees with the paper, that may be its size.",
        }
    }
}

/// A figure and its caption.
pub struct Drawn {
    /// File name without extension: `fig5`.
    pub file: String,
    /// The published figure it repeats: `Figure 5`; empty where there is none.
    pub number: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What is drawn.
    pub caption: String,
    /// What was published.
    pub published: String,
    /// The drawing; where it has no small print, it gets that of the sweep.
    pub figure: Figure,
}

impl Findings {
    /// Adds a figure of the papers, with what was published about it.
    pub fn draw(&mut self, file: &str, number: &str, title: &str, caption: &str, figure: Figure) {
        let drawn = Drawn::new(file, title, caption, trend(file), figure);
        self.figures.push(Drawn { number: number.into(), ..drawn });
    }
}

impl Drawn {
    /// A figure, its caption and what was published.
    pub fn new(file: &str, title: &str, caption: &str, published: &str, figure: Figure) -> Drawn {
        Drawn {
            file: file.into(),
            number: String::new(),
            title: title.into(),
            caption: caption.into(),
            published: published.into(),
            figure,
        }
    }
}

/// "1 run", "7 runs".
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
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
        format!("{digits}·10^{{{exponent}}}").replace('-', "−")
    }
}
