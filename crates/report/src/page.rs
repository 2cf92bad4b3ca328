//! One HTML page that needs nothing but itself: figures, fonts, style and a small script are inside it. Links lead to files beside it.

use std::fmt::Write;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::claims::Claim;
use crate::figure::png::{BOLD, REGULAR};
use crate::findings::{Drawn, Findings, ScaleWords, Table};
use crate::run::Run;
use crate::sweep::Sweep;
use crate::typeset::{escape, html};
use crate::verdicts;

const STYLE: &str = include_str!("page.css");
/// Makes tables sortable and filterable.
const SCRIPT: &str = include_str!("page.js");

/// The page of a sweep.
pub fn of(sweep: &Sweep, findings: &Findings) -> String {
    let record = &sweep.record;
    let mut page = begin(&record.title);
    let _ = writeln!(
        page,
        "<header><p class=\"source\">{}</p><h1>{}</h1>{}<p><span class=\"badge {}\">{} scale</span> {}</p></header>",
        html(&record.source),
        html(&record.title),
        verdicts::head(sweep, findings),
        if record.has_published_settings() { "paper" } else { "quick" },
        escape(&record.scale),
        scale_words(sweep, &findings.scale)
    );
    page += &counted_boxes(counts(sweep));
    findings.figures.iter().for_each(|drawn| page += &figure(drawn, &findings.claims));
    page.extend(findings.tables.iter().map(Table::html));
    page += &problems(&sweep.runs);
    let row = |(key, values): (&str, String)| format!("<tr><th>{}</th><td>{}</td></tr>", escape(key), escape(&values));
    let _ = writeln!(
        page,
        "<section><details><summary>Settings</summary><table class=\"settings\"><tbody>{}</tbody></table></details></section>\n\
         <section><h2>Repeat it</h2><pre>{}</pre><p>In this folder: <a href=\"results.csv\">results.csv</a> (a row per run) and, where runs \
         were followed through training, curves.csv (a row per evaluation), both also as .parquet; <a href=\"summary.json\">summary.json</a> \
         (the statistics behind every figure and table); <a href=\"figures\">figures/</a> (SVG, PNG and the numbers as CSV); <a href=\"runs\">runs/</a> \
         (settings, metrics and weights of every run). Made by {}.</p><details><summary>The recipe</summary><pre>{}</pre></details></section>\n\
         {}",
        settings(sweep).map(row).collect::<String>(),
        escape(&record.command),
        escape(&record.program),
        escape(&record.recipe_text),
        end()
    );
    page
}

/// What every page begins with, up to its first word.
pub fn begin(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{} · pudica</title><style>{}{STYLE}</style></head><body><main>\n",
        escape(title),
        *FONT_FACES
    )
}

/// What every page ends with.
pub fn end() -> String {
    format!("</main><script>{SCRIPT}</script></body></html>\n")
}

/// Numbers below the head, and what each counts.
pub fn counted_boxes(counts: impl IntoIterator<Item = (String, &'static str)>) -> String {
    let boxes = counts.into_iter().map(|(count, what)| format!("<div><b>{count}</b> {what}</div>"));
    format!("<div class=\"counts\">{}</div>\n", boxes.collect::<String>())
}

static FONT_FACES: LazyLock<String> = LazyLock::new(|| {
    let face = |weight: &str, font: &[u8]| {
        format!(
            "@font-face{{font-family:'Pudica Sans';font-weight:{weight};src:url(data:font/ttf;base64,{}) format('truetype')}}",
            STANDARD.encode(font)
        )
    };
    face("400", REGULAR) + &face("700", BOLD)
});

fn scale_words(sweep: &Sweep, words: &ScaleWords) -> &'static str {
    match (sweep.is_builtin(), sweep.record.scale.as_str(), sweep.record.overrides.is_empty()) {
        (true, "paper", true) => words.paper,
        _ if sweep.record.has_published_settings() => "The published settings; not with all of the published seeds.",
        (true, "paper", false) => "The published settings, changed by the overrides in the command below.",
        (true, _, _) => words.other,
        (false, _, _) => "",
    }
}

/// Numbers below the head, and what each counts.
fn counts(sweep: &Sweep) -> Vec<(String, &'static str)> {
    let tally = sweep.tally();
    let mut counts = vec![(tally.runs, if tally.runs == 1 { "run planned" } else { "runs planned" })];
    match tally.discarded {
        0 => counts.push((tally.converged, "finished")),
        discarded => counts.extend([(tally.converged, "converged, kept"), (discarded, "not converged, discarded")]),
    }
    counts.push((tally.failed, "failed"));
    let rare = [(tally.skipped, "skipped"), (tally.damaged, "damaged"), (tally.remaining, "not finished yet")];
    counts.extend(rare.iter().filter(|(count, _)| *count > 0));
    let minutes = (format!("{:.1}", tally.seconds / 60.0), "minutes of computing");
    counts.into_iter().map(|(count, what)| (count.to_string(), what)).chain([minutes]).collect()
}

/// A figure with its caption, and links to its files.
pub fn figure(drawn: &Drawn, claims: &[Claim]) -> String {
    let file = escape(&drawn.file);
    let mut figure = format!(
        "<figure id=\"{file}\">{}<figcaption><b>{}.</b> {}",
        drawn.figure.html(&file),
        html(&drawn.title),
        html(&drawn.caption)
    );
    figure += &verdicts::beside(drawn, claims);
    let _ = writeln!(
        figure,
        "</figcaption><p class=\"files\"><a href=\"figures/{file}.csv\">data (CSV)</a> <a href=\"figures/{file}.svg\">SVG</a> \
         <a href=\"figures/{file}.png\">PNG</a></p></figure>"
    );
    figure
}

/// The runs that failed or were skipped, and why.
fn problems(runs: &[Run]) -> String {
    let problem = |run: &Run| {
        let problem = run.summary.as_ref()?.problem.as_ref()?;
        Some(format!("<li>{}: {}</li>", escape(&run.name()), escape(problem)))
    };
    let items: String = runs.iter().filter_map(problem).collect();
    if items.is_empty() {
        return items;
    }
    format!("<section><h2>Runs that failed or were skipped</h2><ul class=\"small\">{items}</ul></section>\n")
}

/// Settings with the values they take in the runs of a sweep.
fn settings(sweep: &Sweep) -> impl Iterator<Item = (&str, String)> {
    let shown = |key: &str| {
        let values = sweep.texts(key);
        match values.len() {
            0..=12 => values.join(", "),
            count => format!("{}, … ({count} values)", values[..4].join(", ")),
        }
    };
    sweep.runs.first().into_iter().flat_map(|run| run.settings.keys()).map(move |key| (key.as_str(), shown(key)))
}
