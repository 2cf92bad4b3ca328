//! The page as HTML.

use super::found::Found;
use super::pictures::Pictures;
use super::{Part, head};
use crate::page::{begin, counted_boxes, end, figure};
use crate::sweep::different;
use crate::typeset::escape;

/// The page of a measurement.
pub fn of(found: &Found, pictures: &Pictures, parts: &[Part]) -> String {
    let summary = &found.summary;
    let mut page =
        begin(&head::question(found)) + &head::head(found) + &pictures.html() + &counted_boxes(counts(found));
    for part in parts {
        page += &match part {
            Part::Figure(drawn) => figure(drawn, &[]),
            Part::Table(table) => table.html(),
            Part::Html(html) => html.clone(),
        };
    }
    page += &format!(
        "<section><h2>Repeat it</h2><pre>{}</pre><p>In this folder: <a href=\"results.csv\">results.csv</a> (a row for each model, nudge and \
         response, also as .parquet); <a href=\"summary.json\">summary.json</a> (the same with the differences) and details.json (by place and by \
         class, and the examples); inputs.csv and .parquet (a row for each input); <a href=\"figures\">figures/</a> (SVG, PNG and the numbers as \
         CSV). Made by {}.</p></section>\n{}",
        escape(&summary.command),
        escape(&summary.program),
        end()
    );
    page
}

/// Numbers below the head.
fn counts(found: &Found) -> Vec<(String, &'static str)> {
    let summary = &found.summary;
    // Responses to one nudge are compared in the same answers.
    let asked = different(summary.results.iter().map(|result| (&result.model, &result.nudge)));
    let evaluations = |model: &str, nudge: &str| {
        let own = summary.results.iter().filter(|result| result.model == model && result.nudge == nudge);
        own.map(|result| result.evaluations).max().unwrap_or(0)
    };
    let evaluations: u64 = asked.iter().fold(0, |sum, (model, nudge)| sum.saturating_add(evaluations(model, nudge)));
    let nudges = found.nudges().len();
    vec![
        (summary.models.len().to_string(), if summary.models.len() == 1 { "model" } else { "models" }),
        (grouped(summary.models.iter().map(|model| model.inputs as u64).max().unwrap_or(0)), "inputs"),
        (nudges.to_string(), if nudges == 1 { "nudge" } else { "nudges" }),
        (grouped(evaluations), "answers to nudges"),
        (format!("{:.1}", summary.seconds / 60.0), "minutes of computing"),
    ]
}

/// A count in groups of three digits.
fn grouped(count: u64) -> String {
    crate::table::grouped(&count.to_string())
}
