//! What each experiment shows: its figures, its tables, and the statistics behind them.

mod constructions;
mod dynamics;
mod generalization;
mod lengths;
mod tradeoff;

use serde_json::{Map, Value};

use crate::figure::Figure;
use crate::sweep::Sweep;

/// Everything a report says about a sweep.
#[derive(Default)]
pub struct Findings {
    /// In the paper's order.
    pub figures: Vec<Drawn>,
    /// Below the figures.
    pub tables: Vec<Table>,
    /// The statistics behind them, for summary.json.
    pub summary: Map<String, Value>,
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
    /// The drawing.
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
    fn draw(&mut self, file: &str, title: &str, caption: &str, figure: Figure) {
        self.figures.push(Drawn {
            file: file.into(),
            title: title.into(),
            caption: caption.into(),
            published: crate::published::trend(file).into(),
            figure,
        });
    }
}

/// The findings of a sweep, by the layout its recipe names.
pub fn findings(sweep: &Sweep) -> Findings {
    match sweep.record.figures.as_str() {
        "length-scaling" => lengths::scaling(sweep),
        "long-lengths" => lengths::long(sweep),
        "scratchpad" => lengths::scratchpad(sweep),
        "tradeoff" => tradeoff::by_target(sweep),
        "tradeoff-lengths" => tradeoff::by_length(sweep),
        "dynamics" => dynamics::around_convergence(sweep),
        "dynamics-long" => dynamics::long(sweep),
        "generalization" => generalization::findings(sweep),
        "constructions" => constructions::findings(sweep),
        // A user's own recipe: the measures against n.
        _ => lengths::own(sweep),
    }
}

/// A number for people: four significant digits, powers of ten where they help.
pub(crate) fn number(value: f64) -> String {
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

/// A mean with its interval for people.
pub(crate) fn with_interval(mean: &pudica_statistics::Mean) -> String {
    match mean.count {
        1 => format!("{} (one run)", number(mean.mean)),
        count => format!("{} [{}, {}], {count} runs", number(mean.mean), number(mean.low), number(mean.high)),
    }
}
