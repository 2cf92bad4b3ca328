//! One HTML page that needs nothing but itself: figures, fonts and style are inside it.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pudica_lab::config::{Configuration, Settings};

use crate::experiments::{Drawn, Findings, Table};
pub(crate) use crate::figure::escape;
use crate::figure::png::{BOLD, REGULAR};
use crate::sweep::Sweep;

const STYLE: &str = include_str!("page.css");

/// What a page begins with.
pub struct Heading<'a> {
    /// The experiment's title.
    pub title: &'a str,
    /// What it belongs to.
    pub source: &'a str,
    /// What it shows.
    pub about: &'a str,
    /// The colour of the scale's badge: `paper` or `quick`.
    pub badge: &'a str,
    /// The scale's name.
    pub scale: &'a str,
    /// What the scale means.
    pub scale_words: &'a str,
}

/// Everything up to the counts.
pub fn opening(heading: &Heading) -> String {
    let mut page = String::new();
    let _ = writeln!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{} · pudica</title><style>{}{STYLE}</style></head><body><main>",
        escape(heading.title),
        font_faces()
    );
    let _ = writeln!(
        page,
        "<header><p class=\"source\">{}</p><h1>{}</h1><p class=\"about\">{}</p><p><span class=\"badge {}\">{} scale</span> {}</p></header>",
        escape(heading.source),
        escape(heading.title),
        escape(heading.about),
        heading.badge,
        escape(heading.scale),
        heading.scale_words
    );
    page
}

/// The page of a sweep.
pub fn html(sweep: &Sweep, findings: &Findings) -> String {
    let record = &sweep.record;
    let mut page = opening(&Heading {
        title: &record.title,
        source: &record.source,
        about: &record.about,
        badge: if sweep.is_as_published() { "paper" } else { "quick" },
        scale: &record.scale,
        scale_words: scale_words(sweep),
    });
    page += &counts(sweep);
    for drawn in &findings.figures {
        page += &figure(drawn);
    }
    for found in &findings.tables {
        page += &table(found);
    }
    page += &problems(sweep);
    page += &settings(sweep);
    let _ = writeln!(
        page,
        "<section><h2>Repeat it</h2><pre>{}</pre><p>In this folder: <a href=\"results.csv\">results.csv</a> and results.parquet \
         (one row a run), <a href=\"summary.json\">summary.json</a> (the statistics behind every figure and table), \
         <a href=\"figures\">figures/</a> (SVG and PNG), runs/ (settings, metrics, weights of every run). Made by {}.</p>\
         <details><summary>The recipe</summary><pre>{}</pre></details></section>\n</main></body></html>",
        escape(&record.command),
        escape(&record.program),
        escape(&record.recipe_text)
    );
    page
}

fn font_faces() -> String {
    let face = |weight: &str, font: &[u8]| {
        format!(
            "@font-face{{font-family:'Pudica Sans';font-weight:{weight};src:url(data:font/ttf;base64,{}) format('truetype')}}",
            STANDARD.encode(font)
        )
    };
    face("400", REGULAR) + &face("700", BOLD)
}

fn scale_words(sweep: &Sweep) -> &'static str {
    match (sweep.is_builtin(), sweep.record.scale.as_str(), sweep.record.overrides.is_empty()) {
        (true, "paper", true) => "The published settings, nothing changed.",
        (true, "paper", false) => "The published settings, changed by the overrides in the command below.",
        (true, _, _) => {
            "Small networks and short inputs, chosen to show the effect on two CPU cores in minutes: compare trends with the published ones, not absolute values."
        }
        (false, _, _) => "",
    }
}

fn counts(sweep: &Sweep) -> String {
    let tally = sweep.tally();
    let cell = |count: usize, what: &str| format!("<div><b>{count}</b> {what}</div>");
    let mut cells = cell(tally.runs, "runs planned")
        + &cell(tally.converged, "converged, kept")
        + &cell(tally.discarded, "not converged, discarded");
    cells += &cell(tally.failed, "failed");
    if tally.skipped > 0 {
        cells += &cell(tally.skipped, "skipped");
    }
    if tally.remaining > 0 {
        cells += &cell(tally.remaining, "not finished yet");
    }
    let minutes = tally.seconds / 60.0;
    cells += &format!("<div><b>{minutes:.1}</b> minutes of computing</div>");
    format!("<div class=\"counts\">{cells}</div>\n")
}

/// A figure with its caption.
pub fn figure(drawn: &Drawn) -> String {
    // Each figure's clip paths need names of their own within the page.
    let svg = drawn.figure.svg();
    let svg = svg.replace("id=\"panel", &format!("id=\"{}-panel", drawn.file));
    let svg = svg.replace("url(#panel", &format!("url(#{}-panel", drawn.file));
    let mut html = format!(
        "<figure id=\"{}\">{svg}<figcaption><b>{}.</b> {}",
        drawn.file,
        escape(&drawn.title),
        escape(&drawn.caption)
    );
    if !drawn.published.is_empty() {
        let _ = write!(html, "<span class=\"published\"><b>Published:</b> {}</span>", escape(&drawn.published));
    }
    html + "</figcaption></figure>\n"
}

/// Cells are HTML of our own making, except the first of each row, which may be a user's text.
pub fn table(table: &Table) -> String {
    let head: String = table.head.iter().map(|cell| format!("<th>{}</th>", escape(cell))).collect();
    let mut rows = String::new();
    for row in &table.rows {
        rows += "<tr>";
        for (place, cell) in row.iter().enumerate() {
            rows += &if place == 0 { format!("<th>{}</th>", escape(cell)) } else { format!("<td>{cell}</td>") };
        }
        rows += "</tr>";
    }
    format!(
        "<section><h2>{}</h2><div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div><p class=\"small\">{}</p></section>\n",
        escape(&table.title),
        table.note
    )
}

/// Failed and skipped runs, with the reason of each.
fn problems(sweep: &Sweep) -> String {
    let mut items = String::new();
    for run in &sweep.runs {
        if let Some(problem) = run.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
            let _ = write!(items, "<li>{} ({}): {}</li>", escape(&run.config.label()), run.record.id, escape(problem));
        }
    }
    if items.is_empty() {
        return items;
    }
    format!("<section><h2>Runs that failed or were skipped</h2><ul class=\"small\">{items}</ul></section>\n")
}

/// Settings with the values they take in the sweep.
fn settings(sweep: &Sweep) -> String {
    let all: Vec<Settings> = sweep.runs.iter().map(|run| run.config.settings()).collect();
    let mut rows = String::new();
    for key in &all.first().map(Settings::keys).unwrap_or_default() {
        let mut values: Vec<String> = Vec::new();
        for settings in &all {
            let value = settings.get(key).map(|value| value.as_str().map_or(value.to_string(), str::to_string));
            if let Ok(value) = value
                && !values.contains(&value)
            {
                values.push(value);
            }
        }
        let shown = match values.len() {
            0..=12 => values.join(", "),
            count => format!("{}, … ({count} values)", values[..4].join(", ")),
        };
        let _ = write!(rows, "<tr><th>{key}</th><td>{}</td></tr>", escape(&shown));
    }
    format!(
        "<section><details><summary>Settings</summary><table class=\"settings\"><tbody>{rows}</tbody></table></details></section>\n"
    )
}
