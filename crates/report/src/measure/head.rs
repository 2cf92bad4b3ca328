//! The head of the page: the question, its answer in a sentence for each nudge, and the models that were asked.

use pudica_measure::results::{Measured, ModelResult, Value};

use super::Part;
use super::found::{Family, Found, interval};
use super::words::{self, listed, of_response};
use crate::findings::{Cell, Table, counted, head as heads, number};
use crate::plot::capitalised;
use crate::sweep::different;
use crate::table::grouped;
use crate::typeset::{escape, html};

/// Kinds of nudges that the question names, and sentences of the answer, at most.
const MOST_KINDS: usize = 4;
const MOST_SENTENCES: usize = 8;

/// What the page asks.
pub fn question(found: &Found) -> String {
    let models: Vec<&str> = found.models().collect();
    let who = match models[..] {
        [only] => format!("is {only}"),
        _ => format!("are {} models", models.len()),
    };
    let mut kinds: Vec<String> = different(found.summary.results.iter().map(|result| result.kind.as_str()))
        .into_iter()
        .map(words::of_kind)
        .collect();
    if kinds.is_empty() {
        return format!("How sensitive {who}?");
    }
    if kinds.len() > MOST_KINDS {
        let more = kinds.len() - MOST_KINDS + 1;
        kinds.truncate(MOST_KINDS - 1);
        kinds.push(format!("{more} more nudges"));
    }
    format!("How sensitive {who} to {}?", listed(&kinds))
}

/// Question, answer, whether everything was measured, and what to know before believing it.
pub fn head(found: &Found) -> String {
    let summary = &found.summary;
    let notes = summary.notes.iter().map(|note| format!("<p class=\"warning\">{}</p>", html(note)));
    let (class, state) = if summary.complete { ("paper", "complete") } else { ("quick", "not complete") };
    let problem = match (&summary.problem, summary.complete) {
        (Some(problem), _) => html(problem),
        (None, false) => "Some of what was asked for is not measured yet; the command below continues.".into(),
        (None, true) => String::new(),
    };
    format!(
        "<header><p class=\"source\">{}</p><h1>{}</h1>{}{}<p><span class=\"badge {class}\">{state}</span> {problem}</p></header>\n",
        html(&inputs(found)),
        html(&question(found)),
        notes.collect::<String>(),
        answer(found)
    )
}

/// What was asked about: `500 of 10,000 images in cifar10:test, 10 classes`.
fn inputs(found: &Found) -> String {
    let about = &found.summary.inputs;
    let text = |key: &str| about[key].as_str().unwrap_or("").to_string();
    let (count, available) = (about["count"].as_u64().unwrap_or(0), about["available"].as_u64().unwrap_or(0));
    let kind = match text("kind").as_str() {
        "" => "inputs".to_string(),
        // Rows of a table; bits are strings of them.
        "numbers" => "rows".into(),
        "bits" => "strings of bits".into(),
        kind => kind.to_lowercase(),
    };
    let [number, all] = [count, available].map(|count| grouped(&count.to_string()));
    let counted = if available > count { format!("{number} of {all} {kind}") } else { format!("{number} {kind}") };
    let classes = match about["classes"].as_array().map_or(0, Vec::len) {
        0 => ", without labels".into(),
        count => format!(", {count} classes"),
    };
    format!("{counted} in {}{classes}", text("source"))
}

/// A sentence for each nudge; of those that differ in a number, for the largest.
fn answer(found: &Found) -> String {
    let mut said = Vec::new();
    let mut nudges: Vec<&str> = Vec::new();
    for response in found.responses() {
        for family in found.families(response) {
            if family.members.iter().all(|(_, nudge)| !nudges.contains(nudge)) {
                nudges.extend(family.members.iter().map(|(_, nudge)| *nudge));
                said.extend(sentence(found, &family, response));
            }
        }
    }
    let more = said.len().saturating_sub(MOST_SENTENCES);
    said.truncate(MOST_SENTENCES);
    if more > 0 {
        said.push(format!("{} below.", counted(more, "more nudge")));
    }
    match &said[..] {
        [] => "<p class=\"about\">Nothing is measured yet.</p>".into(),
        [only] => format!("<p class=\"about\">{only}</p>"),
        all => {
            let items: String = all.iter().map(|sentence| format!("<li>{sentence}</li>")).collect();
            format!("<p class=\"about\">With 95&nbsp;% intervals over inputs:</p><ul>{items}</ul>")
        }
    }
}

/// Which model responds most to a nudge, which least, and whether they can be told apart.
fn sentence(found: &Found, family: &Family, response: &str) -> Option<String> {
    let words = of_response(response);
    let (_, nudge) = family.members.last()?;
    let mut results: Vec<&Measured> = found.models().filter_map(|model| found.result(model, nudge, response)).collect();
    results.sort_by(|one, other| other.found.value.total_cmp(&one.found.value));
    let (most, least) = (results.first()?, results.last()?);
    let told = |result: &Measured| {
        let exact = if result.exact { " (exact)" } else { "" };
        format!("<b>{}</b> {}{exact}", escape(&result.model), said(&result.found))
    };
    let head = format!("<code>{}</code>: {}", escape(nudge), escape(&words.name));
    if results.len() == 1 {
        return Some(format!("{head} {}{}.", said(&most.found), if most.exact { " (exact)" } else { "" }));
    }
    let (least_word, most_word) = if words.is_inverse { ("lowest", "highest") } else { ("least", "most") };
    let order = |word: &str, other: &str| format!("{word} for {}, {other} for {}", told(most), told(least));
    Some(match found.difference(&most.model, &least.model, nudge, response) {
        Some(difference) if tells(&difference) => {
            format!("{head} {}; paired difference {}.", order(most_word, least_word), said(&difference))
        }
        Some(difference) => format!(
            "{head}: cannot tell {} apart: {} and {}, paired difference {}.",
            if results.len() == 2 { "the two".into() } else { format!("the {} models", results.len()) },
            told(most),
            told(least),
            said(&difference)
        ),
        None => format!("{head} {}.", order(most_word, least_word)),
    })
}

/// Whether a difference is none that could be 0.
pub fn tells(difference: &Value) -> bool {
    match difference.ci95 {
        Some([low, high]) => low > 0.0 || high < 0.0,
        None => false,
    }
}

/// A value and its interval, as HTML.
fn said(value: &Value) -> String {
    let text = match interval(value) {
        Some((0.0, high)) if value.value == 0.0 => format!("none seen (less than {})", number(high)),
        Some((low, high)) => {
            // Two digits of what is not known are enough.
            let decimals = 1 - ((high - low) / 2.0).log10().floor() as i32;
            let write = |value: f64| match decimals {
                0..=5 => format!("{value:.*}", decimals as usize).replace('-', "−"),
                _ => number(value),
            };
            format!("{} [{}, {}]", write(value.value), write(low), write(high))
        }
        None => number(value.value),
    };
    html(&text)
}

/// A value with its interval, for a table.
pub fn cell(value: Option<Value>) -> Cell {
    value.map_or(Cell::Missing, |value| Cell::within(value.value, interval(&value)))
}

/// The models: what computes them, and how they do on inputs that nobody touched.
pub fn models(found: &Found) -> Vec<Part> {
    let all = &found.summary.models;
    let row = |model: &ModelResult| -> Vec<Cell> {
        let about = &model.about;
        vec![
            Cell::from(about.name.as_str()),
            about.runtime.as_str().into(),
            about.parameters.map(|count| count as f64).into(),
            about.classes.into(),
            cell(model.clean_accuracy),
            cell(model.clean_loss),
            model.inputs.into(),
        ]
    };
    let table = Table {
        title: if all.len() == 1 { "The model" } else { "The models" }.into(),
        head: heads(["model", "computed by", "parameters", "classes", "accuracy", "loss", "inputs"]),
        rows: all.iter().map(row).collect(),
        note: "On inputs as they are, with 95 % intervals; the loss is the mean cross-entropy.".into(),
    };
    let notes: Vec<String> = all
        .iter()
        .flat_map(|model| model.about.notes.iter().map(move |note| (&model.about.name, note)))
        .map(|(model, note)| format!("<li><b>{}</b>: {}</li>", escape(model), escape(note)))
        .collect();
    let notes = (!notes.is_empty()).then(|| {
        Part::Html(format!("<section><h2>About the models</h2><ul class=\"small\">{}</ul></section>\n", notes.concat()))
    });
    [Part::Table(table)].into_iter().chain(notes).collect()
}

/// A nudge as a title.
pub fn nudge_title(found: &Found, nudge: &str) -> String {
    let result = found.summary.results.iter().find(|result| result.nudge == nudge);
    let title = |result: &Measured| capitalised(&words::of_nudge(&result.kind, &result.parameters, None));
    result.map_or_else(|| nudge.into(), title)
}
