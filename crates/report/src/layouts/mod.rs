//! What each experiment shows: its figures, its tables, and the statistics behind them. A layout is a function of a sweep; a recipe names
//! it by its `figures`.

mod classifier;
mod constructions;
mod degree_bias;
mod dynamics;
mod generalization;
mod grokking;
mod initialization;
mod length_generalization;
mod lengths;
mod noise_lengths;
mod own;
mod spectra;
mod tokens;
mod tradeoff;

use pudica_lab::Kind;
use pudica_lab::recipe::Plot;

use crate::claims::{Claim, Decision};
use crate::constant;
use crate::figure::Style;
use crate::figure::colour::of_target;
use crate::findings::{Drawn, Findings};
use crate::sweep::Sweep;
use crate::verdicts;

pub use own::plots;

/// What a report shows of a sweep.
type Layout = fn(&Sweep) -> Findings;

/// All layouts by the words that recipes name them by, with the axes that each of them shows: all that were swept where none are named.
static LAYOUTS: [(&str, Layout, &[&str]); 19] = [
    ("runs", own::findings, &[""]),
    ("length-scaling", lengths::scaling, &[]),
    ("long-lengths", lengths::long, &[]),
    ("scratchpad", lengths::scratchpad, &[]),
    ("tradeoff", tradeoff::by_target, &["target", "n", "train.lr", "train.weight_decay", "train.steps"]),
    ("tradeoff-lengths", tradeoff::by_length, &["target", "n", "train.lr", "train.weight_decay", "train.steps"]),
    ("dynamics", dynamics::around_convergence, &[]),
    ("dynamics-long", dynamics::long, &[]),
    ("generalization", generalization::findings, &["target", "train.set_size", "measure.set_size"]),
    ("constructions", constructions::findings, &[]),
    ("random-initialization", initialization::findings, &[]),
    ("degree-bias", degree_bias::findings, &[]),
    (
        "length-generalization",
        length_generalization::findings,
        &["target", "model.kind", "model.position", "model.positions"],
    ),
    ("noise-lengths", noise_lengths::findings, &["model.start", "target", "n", "measure.rho"]),
    ("classifier", classifier::comparison, &[]),
    ("ablation", classifier::ablation, &[]),
    ("grokking", grokking::findings, &[]),
    ("tokens", tokens::findings, &[]),
    ("spectra", spectra::findings, &[]),
];

/// The words that a recipe's `figures` may have.
pub fn layouts() -> impl Iterator<Item = &'static str> {
    LAYOUTS.iter().map(|(name, ..)| *name)
}

/// The findings of a sweep, by the layout its recipe names, with these further figures.
pub fn findings(sweep: &Sweep, plots: &[Plot]) -> Findings {
    let (_, layout, shown) = LAYOUTS.iter().find(|(name, ..)| *name == sweep.record.figures).unwrap_or(&LAYOUTS[0]);
    let mut findings = layout(sweep);
    if sweep.is_builtin() {
        findings.claims.iter_mut().for_each(|claim| check_complete(sweep, claim));
        findings.tables.splice(0..0, verdicts::table(sweep, &findings.claims));
    } else {
        // Nothing was published about somebody's own experiment.
        findings.claims.clear();
        let is_of_kind = Kind::find(&sweep.record.kind).is_ok_and(|kind| kind.figures == sweep.record.figures);
        let mut axes = sweep.axes();
        axes.retain(|axis| is_of_kind || !shown.is_empty() && !shown.contains(&axis.as_str()));
        own::add(&mut findings, sweep, &axes);
    }
    findings.warnings.extend(constant::warnings(sweep));
    findings.figures.splice(0..0, own::asked(sweep, plots));
    findings.figures.iter_mut().for_each(|drawn| name(sweep, drawn));
    findings
}

/// Gives a figure its title and small print.
fn name(sweep: &Sweep, drawn: &mut Drawn) {
    if !sweep.is_builtin() {
        drawn.published.clear();
        if !drawn.number.is_empty() {
            drawn.file = drawn.title.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        }
    }
    drawn.title = sweep.titled(&drawn.number, &drawn.title);
    if drawn.figure.note.is_empty() {
        drawn.figure.note = sweep.note();
    }
}

/// A sweep of which most runs are missing decides nothing.
fn check_complete(sweep: &Sweep, claim: &mut Claim) {
    let tally = sweep.tally();
    let ended = tally.runs - tally.remaining;
    if 2 * ended < tally.runs {
        claim.decision = Decision::CannotTell;
        claim.statistic = format!("only {ended} of {} runs are made; {}", tally.runs, claim.statistic);
    }
}

/// What the colours of targets mean.
fn legend_of(targets: &[String]) -> Vec<(String, Style)> {
    targets.iter().map(|target| (title_of(target), of_target(target))).collect()
}

/// A target's name as the paper writes it.
pub fn title_of(target: &str) -> String {
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
