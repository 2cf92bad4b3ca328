//! One response to all nudges: a table of all models, the differences between them, points with intervals, and curves where a nudge has
//! several sizes.

use pudica_measure::results::{Difference, Measured, Value};

use super::Part;
use super::found::{Family, Found, interval};
use super::head::{cell, tells};
use super::marks::{axis, curve, dots, file_name, list, point};
use super::words::{Words, cut, of_kind as of_kind_of_nudge, of_response};
use crate::figure::{Axis, Figure, Mark, Panel, Point};
use crate::findings::{Cell, Drawn, Table, head};
use crate::plot::{capitalised, spans_decades};
use crate::sweep::different;

/// More nudges of one kind than this are a list.
const FEW: usize = 6;
/// Notes below a table, at most.
const MOST_NOTES: usize = 6;
/// Letters of a panel's title, at most.
const TITLE: usize = 40;

/// Everything about one response.
pub fn parts(found: &Found, response: &str) -> Vec<Part> {
    let words = of_response(response);
    let families = found.families(response);
    let mut parts = vec![Part::Table(values(found, response, &words))];
    parts.extend(differences(found, response, &words).map(Part::Table));
    let kinds = different(families.iter().map(|family| family.kind));
    let of_kind = |kind: &str| -> Vec<&Family> { families.iter().filter(|family| family.kind == kind).collect() };
    let (many, few): (Vec<&str>, Vec<&str>) = kinds.into_iter().partition(|kind| of_kind(kind).len() > FEW);
    let few: Vec<&Family> = few.into_iter().flat_map(of_kind).collect();
    if !few.is_empty() {
        parts.push(Part::Figure(panels(found, response, &words, &words.title, &few, &file_name(response))));
    }
    for kind in many {
        let own = of_kind(kind);
        let title = format!("{} under {} kinds of {}", words.title, own.len(), of_kind_of_nudge(kind));
        let file = format!("{}-{}", file_name(response), file_name(kind));
        parts.push(Part::Figure(match own.iter().all(|family| family.along.is_none()) {
            true => listed(found, response, &words, &title, &own, &file),
            false => panels(found, response, &words, &title, &own, &file),
        }));
    }
    parts
}

/// What was found, in a row for each nudge and a column for each model; of two models also their difference.
fn values(found: &Found, response: &str, words: &Words) -> Table {
    let nudges: Vec<&str> =
        found.families(response).iter().flat_map(|family| family.members.clone()).map(|(_, nudge)| nudge).collect();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let models: Vec<&str> = found.models().collect();
    let own = || found.summary.differences.iter().filter(|one| one.response == response);
    // Of two models there is one pair: its differences stand beside the values.
    let pair = own().next().filter(|_| models.len() == 2);
    if response == "accuracy" {
        let clean = found.summary.models.iter().map(|model| cell(model.clean_accuracy));
        let inputs = found.summary.models.iter().map(|model| model.inputs).max().map(Cell::from);
        let beside = pair.map(|_| Cell::Missing);
        rows.push([Cell::from("inputs as they are")].into_iter().chain(clean).chain(beside).chain(inputs).collect());
    }
    for nudge in nudges {
        let results: Vec<_> = found.models().map(|model| found.result(model, nudge, response)).collect();
        let value = |result: &Option<&Measured>| {
            result.map_or(Cell::Missing, |result| {
                cell(Some(result.found)).marked(if result.exact { "exact" } else { "" })
            })
        };
        let inputs = results.iter().flatten().map(|result| result.inputs).max();
        let beside = pair.map(|pair| {
            let difference = found.difference(&pair.model, &pair.with, nudge, response);
            cell(difference).marked(difference.map_or("", |one| verdict(&one, "differs", "differs")))
        });
        let values = results.iter().map(value);
        rows.push([Cell::from(nudge)].into_iter().chain(values).chain(beside).chain([inputs.into()]).collect());
    }
    let beside = pair.map(|pair| format!("{} − {}", pair.model, pair.with));
    let heads = head(["nudge"]).into_iter().chain(models.iter().map(|model| model.to_string())).chain(beside);
    let mut note = vec![words.meaning, "Brackets are 95 % intervals over inputs."];
    if pair.is_some() {
        note.push("The difference is paired: same inputs, same nudges. Cannot tell: its interval includes 0.");
    }
    let notes = notes(found, response);
    let note: Vec<&str> =
        note.into_iter().chain(notes.iter().map(String::as_str)).filter(|part| !part.is_empty()).collect();
    Table { title: words.title.clone(), head: heads.chain(head(["inputs"])).collect(), rows, note: note.join(" ") }
}

/// What there is to know about single numbers, each sentence once. An upper limit where nothing was seen is in the table as such.
fn notes(found: &Found, response: &str) -> Vec<String> {
    let own: Vec<&Measured> = found.summary.results.iter().filter(|one| one.response == response).collect();
    let has_note = |one: &&&Measured| one.note.is_some() && !(one.found.value == 0.0 && interval(&one.found).is_some());
    let noted: Vec<&Measured> = own.iter().filter(has_note).copied().collect();
    let sentences = different(noted.iter().filter_map(|one| one.note.as_deref()));
    let more = sentences.len().saturating_sub(MOST_NOTES);
    let told = |sentence: &&str| {
        let of: Vec<String> = noted
            .iter()
            .filter(|one| one.note.as_deref() == Some(*sentence))
            .map(|one| format!("{}, {}", one.model, one.nudge))
            .collect();
        let of = if of.len() == own.len() { "All".into() } else { of.join("; ") };
        format!("{of}: {}.", sentence.trim_end_matches('.'))
    };
    let told = sentences.iter().take(MOST_NOTES).map(told);
    told.chain((more > 0).then(|| format!("{more} more notes are in results.csv."))).collect()
}

/// What a difference tells: the first word where it is more than 0, the second where it is less.
fn verdict<'a>(difference: &Value, more: &'a str, less: &'a str) -> &'a str {
    match (tells(difference), difference.value > 0.0) {
        _ if difference.ci95 == Some([0.0, 0.0]) => "the same, exactly",
        (false, _) => "cannot tell",
        (true, true) => more,
        (true, false) => less,
    }
}

/// How more than two models differ, by pairs.
fn differences(found: &Found, response: &str, words: &Words) -> Option<Table> {
    let own: Vec<&Difference> = found.summary.differences.iter().filter(|one| one.response == response).collect();
    let row = |one: &&Difference| -> Vec<Cell> {
        let [more, less] = ["more", "less"].map(|word| format!("{}: {word}", one.model));
        let verdict = verdict(&one.found, &more, &less);
        let pair = format!("{} − {}", one.model, one.with);
        vec![one.nudge.as_str().into(), pair.into(), cell(Some(one.found)), verdict.into(), one.inputs.into()]
    };
    let mut note = "Same inputs, same nudges, so that the difference is taken input by input; 95 % intervals. Cannot tell: the interval \
        includes 0."
        .to_string();
    if own.len() >= 10 {
        note += " Where there is no difference at all, one interval in twenty leaves 0 out by chance.";
    }
    (!own.is_empty() && found.models().count() > 2).then(|| Table {
        title: format!("{}: paired differences between models", words.title),
        head: head(["nudge", "models", "difference", "verdict", "inputs"]),
        rows: own.iter().map(row).collect(),
        note,
    })
}

/// A panel for each family of nudges: the value of each model, or curves where there are several sizes.
fn panels(found: &Found, response: &str, words: &Words, title: &str, families: &[&Family], file: &str) -> Drawn {
    let panel = |family: &&Family| match family.along {
        None => values_of_models(found, response, words, family),
        Some(name) => along(found, response, words, family, name),
    };
    let panels: Vec<Panel> = families.iter().map(panel).collect();
    let columns = if panels.len() > FEW { 4 } else { panels.len().clamp(1, 3) };
    let mut figure = Figure { panels, columns, legend: found.legend(), ..Figure::default() };
    // One panel alone would be as wide as the page.
    widen(&mut figure);
    let several = if families.len() > 1 { " Each panel has its own scale." } else { "" };
    let caption = format!("{} Bars and bands are 95 % intervals over inputs.{several}", words.meaning);
    Drawn::new(file, title, caption.trim(), "", figure)
}

/// Puts an empty panel beside one that is alone.
pub fn widen(figure: &mut Figure) {
    if figure.panels.len() == 1 {
        let blank = Panel { title: String::new(), x: Axis::linear(""), y: Axis::linear(""), marks: Vec::new() };
        figure.panels.push(blank);
        figure.columns = 2;
    }
}

/// One nudge: its value for each model, side by side.
fn values_of_models(found: &Found, response: &str, words: &Words, family: &Family) -> Panel {
    let nudge = family.members.first().map_or("", |(_, nudge)| *nudge);
    let mut marks = Vec::new();
    let mut values = Vec::new();
    for (place, (model, style)) in found.styles().enumerate() {
        let Some(result) = found.result(model, nudge, response) else { continue };
        values.push(result.found);
        marks.extend(dots(vec![point(place as f64, &result.found, model)], style));
    }
    let x = Axis::linear("").named(&found.short_models());
    Panel { title: capitalised(&cut(&family.title, TITLE)), x, y: axis(words, &words.name, values.into_iter()), marks }
}

/// Nudges that differ in a number: a curve along it for each model.
fn along(found: &Found, response: &str, words: &Words, family: &Family, name: &str) -> Panel {
    // Severity 0 is the input as it is.
    let from_clean = response == "accuracy" && name == "severity";
    let clean = |model: &str| {
        let own = found.summary.models.iter().find(|one| one.about.name == model)?;
        own.clean_accuracy.map(|value| point(0.0, &value, &format!("{model}, clean"))).filter(|_| from_clean)
    };
    let mut marks: Vec<Mark> = Vec::new();
    let mut values = Vec::new();
    for (model, style) in found.styles() {
        let measured = family.members.iter().filter_map(|(x, nudge)| {
            let value = found.result(model, nudge, response)?.found;
            values.push(value);
            Some(point(*x, &value, model))
        });
        let points: Vec<Point> = measured.collect();
        marks.extend(curve(clean(model).into_iter().chain(points).collect(), style));
    }
    let numbers: Vec<f64> = family.members.iter().map(|(x, _)| *x).collect();
    let label = name.replace(['-', '_'], " ");
    let x = match (spans_decades(&numbers, 9.9), numbers.iter().all(|x| x.fract() == 0.0)) {
        (true, _) => Axis::log(&label),
        (false, true) if from_clean => Axis::whole(&format!("{label}, 0 is clean")),
        (false, true) => Axis::whole(&label),
        (false, false) => Axis::linear(&label),
    };
    Panel { title: capitalised(&cut(&family.title, TITLE)), x, y: axis(words, &words.name, values.into_iter()), marks }
}

/// Many nudges of one kind, such as all corruptions, below each other; accuracy beside that on clean inputs.
fn listed(found: &Found, response: &str, words: &Words, title: &str, families: &[&Family], file: &str) -> Drawn {
    let row = |family: &&Family| {
        let kind = of_kind_of_nudge(family.kind);
        let name = family.title.strip_prefix(&kind).unwrap_or(&family.title).trim_start_matches([' ', ',']);
        let value = |model| found.result(model, family.members[0].1, response).map(|result| result.found);
        (name.to_string(), found.models().map(value).collect::<Vec<_>>())
    };
    let clean = || found.summary.models.iter().map(|model| model.clean_accuracy).collect::<Vec<_>>();
    let clean = (response == "accuracy").then(|| ("clean".to_string(), clean()));
    let rows: Vec<_> = clean.into_iter().chain(families.iter().map(row)).collect();
    let caption = format!("{} Bars are 95 % intervals over inputs.", words.meaning);
    list(found, file, title, &caption, words, &rows)
}
