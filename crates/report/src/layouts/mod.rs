//! What each experiment shows: its figures, its tables, and the statistics behind them. A layout is a function of a sweep; a recipe names
//! it by its `figures`.

mod classifier;
mod constructions;
mod dynamics;
mod generalization;
mod grokking;
mod lengths;
mod own;
mod spectra;
mod tokens;
mod tradeoff;

use crate::figure::Style;
use crate::figure::colour::of_target;
use crate::findings::Findings;
use crate::sweep::Sweep;

/// What a report shows of a sweep.
type Layout = fn(&Sweep) -> Findings;

/// All layouts by the words that recipes name them by.
static LAYOUTS: [(&str, Layout); 14] = [
    ("length-scaling", lengths::scaling),
    ("long-lengths", lengths::long),
    ("scratchpad", lengths::scratchpad),
    ("tradeoff", tradeoff::by_target),
    ("tradeoff-lengths", tradeoff::by_length),
    ("dynamics", dynamics::around_convergence),
    ("dynamics-long", dynamics::long),
    ("generalization", generalization::findings),
    ("constructions", constructions::findings),
    ("classifier", classifier::comparison),
    ("ablation", classifier::ablation),
    ("grokking", grokking::findings),
    ("tokens", tokens::findings),
    ("spectra", spectra::findings),
];

/// The layout of runs of a kind whose recipe names none, or one of an earlier version; of all others, [`own`].
const OF_KINDS: [(&str, &str); 5] = [
    ("classifier", "classifier"),
    ("study", "classifier"), // the same in folders of format 1
    ("grokking", "grokking"),
    ("tokens", "tokens"),
    ("spectra", "spectra"),
];

/// The words that a recipe's `figures` may have.
pub fn layouts() -> impl Iterator<Item = &'static str> {
    LAYOUTS.iter().map(|(name, _)| *name)
}

/// The findings of a sweep, by the layout its recipe names.
pub fn findings(sweep: &Sweep) -> Findings {
    let named = |word: &str| LAYOUTS.iter().find(|(name, _)| *name == word).map(|(_, layout)| *layout);
    let of_kind = || OF_KINDS.iter().find(|(kind, _)| *kind == sweep.record.kind).and_then(|(_, word)| named(word));
    let layout = named(&sweep.record.figures).or_else(of_kind).unwrap_or(own::findings);
    let mut findings = layout(sweep);
    for figure in findings.figures.iter_mut().map(|drawn| &mut drawn.figure) {
        if figure.note.is_empty() {
            figure.note = sweep.note();
        }
    }
    findings
}

/// What the colours of targets mean.
fn legend_of(targets: &[String]) -> Vec<(String, Style)> {
    targets.iter().map(|target| (title_of(target), of_target(target))).collect()
}

/// A target's name as the paper writes it.
fn title_of(target: &str) -> String {
    match target {
        "parity" | "majority" | "first" | "mean" => target.to_uppercase(),
        other => other.to_string(),
    }
}
