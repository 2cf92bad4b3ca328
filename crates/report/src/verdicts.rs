//! Claims on the page: the question and its answer at the head, a verdict beside each figure, and all of them in a table.

use crate::claims::{Claim, Decision};
use crate::findings::{Cell, Drawn, Findings, Table, head as heads};
use crate::sweep::Sweep;
use crate::typeset::{escape, html};

/// Below the title: what was done, the question of the experiment and its answer here, and what to know before believing it.
pub fn head(sweep: &Sweep, findings: &Findings) -> String {
    // Built-in recipes end by what was published, which stands beside our own answer below.
    let about = match sweep.record.about.split_once("Published:") {
        Some((about, _)) if sweep.is_builtin() => about.trim(),
        _ => sweep.record.about.trim(),
    };
    let mut text = if about.is_empty() { String::new() } else { format!("<p class=\"about\">{}</p>", escape(about)) };
    if let Some(claim) = findings.claims.first() {
        text += &format!(
            "<p class=\"question\"><b>{}</b></p><p class=\"answer\">{} {}. {}</p>",
            html(&claim.question),
            badge(claim.decision, claim.decision.answer()),
            html(&claim.evidence()),
            caution(sweep, claim.decision)
        );
    }
    text +=
        &findings.warnings.iter().map(|text| format!("<p class=\"warning\">{}</p>", html(text))).collect::<String>();
    text
}

/// What to think of a verdict from runs that are not the published ones.
fn caution(sweep: &Sweep, decision: Decision) -> &'static str {
    match (sweep.record.has_published_settings(), sweep.record.has_own_settings(), decision) {
        (true, ..) | (_, true, Decision::Agrees) => "",
        (_, false, _) => "Settings were changed by overrides, so this is another experiment than the published one.",
        _ => "That may be the scale: <code>--scale paper</code> is the published experiment.",
    }
}

/// A word that is seen at once.
fn badge(decision: Decision, text: &str) -> String {
    format!("<span class=\"badge {}\">{text}</span>", decision.words().replace(' ', "-"))
}

/// Beside a figure: what was published about it, and the verdicts of our runs.
pub fn beside(drawn: &Drawn, claims: &[Claim]) -> String {
    if drawn.published.is_empty() {
        return String::new();
    }
    let verdict = |claim: &Claim| {
        format!(
            "<br>{} {} {}.",
            badge(claim.decision, claim.decision.words()),
            html(&claim.question),
            html(&claim.evidence())
        )
    };
    let verdicts: String = claims.iter().filter(|claim| claim.figure == drawn.file).map(verdict).collect();
    format!("<span class=\"published\"><b>Published:</b> {}{verdicts}</span>", html(&drawn.published))
}

/// All verdicts; `None` where nothing was published.
pub fn table(sweep: &Sweep, claims: &[Claim]) -> Option<Table> {
    let row = |claim: &Claim| -> Vec<Cell> {
        let texts = [&claim.published, &claim.question].map(|text| Cell::from(text.as_str()));
        let decided = [Cell::from(claim.decision.words()), claim.statistic.as_str().into(), claim.runs.into()];
        texts.into_iter().chain(decided).collect()
    };
    let mut note = "Brackets are 95 % intervals. Agrees: the interval is on the side that the question asks for. Disagrees: it is on the other \
        side. Cannot tell: it is on both, or there is none. A statement of several parts agrees if all do, and disagrees if any does, \
        by p-values corrected for the number of parts (Holm's method)."
        .to_string();
    if !sweep.record.has_published_settings() {
        note += " These runs are not the published experiment.";
    }
    (!claims.is_empty()).then(|| Table {
        title: "What was published, and what our runs say".into(),
        head: heads(["published", "asked of our runs", "verdict", "decided by", "runs"]),
        rows: claims.iter().map(row).collect(),
        note,
    })
}
