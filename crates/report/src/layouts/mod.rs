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
static LAYOUTS: [(&str, Layout); 15] = [
    ("runs", own::findings),
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

/// The words that a recipe's `figures` may have.
pub fn layouts() -> impl Iterator<Item = &'static str> {
    LAYOUTS.iter().map(|(name, _)| *name)
}

/// The findings of a sweep, by the layout its recipe names.
pub fn findings(sweep: &Sweep) -> Findings {
    let named = |word: &str| LAYOUTS.iter().find(|(name, _)| *name == word).map(|(_, layout)| *layout);
    let layout = named(&sweep.record.figures).unwrap_or(own::findings);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_recipes_may_use_are_the_layouts() {
        let mut drawn: Vec<&str> = layouts().collect();
        let mut known = pudica_lab::recipe::FIGURES.to_vec();
        drawn.sort_unstable();
        known.sort_unstable();
        assert_eq!(drawn, known);
    }
}
