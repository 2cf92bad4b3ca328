//! One HTML page that needs nothing but itself: figures, fonts and style are inside it.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pudica_lab::config::{Configuration, Settings};
use pudica_lab::store::SweepRun;
use serde::Serialize;
use serde_json::Value;

use crate::experiments::{Drawn, Findings, Table};
use crate::figure::escape;
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
fn opening(heading: &Heading) -> String {
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

/// Everything a page says, from top to bottom.
pub struct Sheet<'a> {
    /// The top.
    pub heading: Heading<'a>,
    /// Numbers below it and what each counts.
    pub counts: Vec<(String, &'a str)>,
    /// Figures and tables.
    pub findings: &'a Findings,
    /// Runs that failed or were skipped: which, and why.
    pub problems: Vec<(String, String)>,
    /// Settings and their values.
    pub settings: Vec<(String, String)>,
    /// How to make it again.
    pub repeat: Repeat<'a>,
}

/// How to make the results again, and where they are.
pub struct Repeat<'a> {
    /// The command.
    pub command: &'a str,
    /// The program that made them.
    pub program: &'a str,
    /// The recipe.
    pub recipe_text: &'a str,
    /// What the folder holds beside results.csv, summary.json and figures/, in words.
    pub folder: &'a str,
}

/// The page.
pub fn whole(sheet: &Sheet) -> String {
    let counts =
        sheet.counts.iter().map(|(count, what)| format!("<div><b>{}</b> {}</div>", escape(count), escape(what)));
    let mut page = opening(&sheet.heading);
    let _ = writeln!(page, "<div class=\"counts\">{}</div>", counts.collect::<String>());
    sheet.findings.figures.iter().for_each(|drawn| page += &figure(drawn));
    sheet.findings.tables.iter().for_each(|found| page += &table(found));
    if !sheet.problems.is_empty() {
        let items = sheet.problems.iter().map(|(run, why)| format!("<li>{}: {}</li>", escape(run), escape(why)));
        let items: String = items.collect();
        let _ = writeln!(
            page,
            "<section><h2>Runs that failed or were skipped</h2><ul class=\"small\">{items}</ul></section>"
        );
    }
    let row = |(key, value): &(String, String)| format!("<tr><th>{}</th><td>{}</td></tr>", escape(key), escape(value));
    let rows: String = sheet.settings.iter().map(row).collect();
    let Repeat { command, program, recipe_text, folder } = sheet.repeat;
    let _ = writeln!(
        page,
        "<section><details><summary>Settings</summary><table class=\"settings\"><tbody>{rows}</tbody></table></details></section>\n\
         <section><h2>Repeat it</h2><pre>{}</pre><p>In this folder: <a href=\"results.csv\">results.csv</a>, \
         <a href=\"summary.json\">summary.json</a> (the statistics behind every figure and table), <a href=\"figures\">figures/</a> \
         (SVG and PNG), {}. Made by {}.</p><details><summary>The recipe</summary><pre>{}</pre></details></section>\n</main></body></html>",
        escape(command),
        escape(folder),
        escape(program),
        escape(recipe_text)
    );
    page
}

/// The page of a sweep.
pub fn html(sweep: &Sweep, findings: &Findings) -> String {
    let record = &sweep.record;
    let problem = |run: &SweepRun| {
        let problem = run.summary.as_ref()?.problem.clone()?;
        Some((format!("{} ({})", run.config.label(), run.record.id), problem))
    };
    whole(&Sheet {
        heading: Heading {
            title: &record.title,
            source: &record.source,
            about: &record.about,
            badge: if sweep.is_as_published() { "paper" } else { "quick" },
            scale: &record.scale,
            scale_words: scale_words(sweep),
        },
        counts: counts(sweep),
        findings,
        problems: sweep.runs.iter().filter_map(problem).collect(),
        settings: settings_of(&sweep.runs.iter().map(|run| run.config.settings()).collect::<Vec<_>>()),
        repeat: Repeat {
            command: &record.command,
            program: &record.program,
            recipe_text: &record.recipe_text,
            folder: "results.parquet (the table once more), runs/ (settings, metrics, weights of every run)",
        },
    })
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

fn counts(sweep: &Sweep) -> Vec<(String, &'static str)> {
    let tally = sweep.tally();
    let mut counts = vec![
        (tally.runs.to_string(), "runs planned"),
        (tally.converged.to_string(), "converged, kept"),
        (tally.discarded.to_string(), "not converged, discarded"),
        (tally.failed.to_string(), "failed"),
    ];
    for (count, what) in [(tally.skipped, "skipped"), (tally.remaining, "not finished yet")] {
        if count > 0 {
            counts.push((count.to_string(), what));
        }
    }
    counts.push((format!("{:.1}", tally.seconds / 60.0), "minutes of computing"));
    counts
}

/// A figure with its caption.
fn figure(drawn: &Drawn) -> String {
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
fn table(table: &Table) -> String {
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

/// The settings of an experiment that has one set of them for all its runs.
pub fn settings_table(settings: &impl Serialize) -> Vec<(String, String)> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(settings)) => settings.iter().map(|(key, value)| (key.clone(), value.to_string())).collect(),
        _ => Vec::new(),
    }
}

/// Settings with the values they take in the runs of a sweep.
pub fn settings_of(all: &[Settings]) -> Vec<(String, String)> {
    let shown = |key: String| {
        let mut values: Vec<String> = Vec::new();
        for settings in all {
            let value = settings.get(&key).map(|value| value.as_str().map_or(value.to_string(), str::to_string));
            if let Ok(value) = value
                && !values.contains(&value)
            {
                values.push(value);
            }
        }
        let values = match values.len() {
            0..=12 => values.join(", "),
            count => format!("{}, … ({count} values)", values[..4].join(", ")),
        };
        (key, values)
    };
    all.first().map(Settings::keys).unwrap_or_default().into_iter().map(shown).collect()
}
