//! One response to all nudges: a table of all models, the differences between them, points with intervals, and curves where a nudge has
//! several sizes.

use pudica_measure::results::{Difference, Value};

use super::Part;
use super::found::{Family, Found};
use super::head::{cell, tells};
use super::marks::{axis, curve, dots, file_name, list, point};
use super::words::{Words, cut, of_response};
use crate::figure::{Axis, Figure, Mark, Panel, Point};
use crate::findings::{Cell, Drawn, Table, head};
use crate::plot::spans_decades;
use crate::sweep::different;

/// More nudges of one kind than this are a list.
const FEW: usize = 6;
/// Letters of a panel's title, at most.
const TITLE: usize = 40;

/// Everything about one response.
pub fn parts(found: &Found, response: &str) -> Vec<Part> {
    let words = of_response(response);
    let families = found.families(response);
    let mut parts = vec![Part::Table(values(found, response, &words))];
    parts.extend(differences(found, response, &words).map(Part::Table));
    let (curves, single): (Vec<&Family>, Vec<&Family>) = families.iter().partition(|family| family.along.is_some());
    let kinds = different(single.iter().map(|family| family.kind));
    let of_kind =
        |kind: &str| -> Vec<&Family> { single.iter().filter(|family| family.kind == kind).copied().collect() };
    let (many, few): (Vec<&str>, Vec<&str>) = kinds.into_iter().partition(|kind| of_kind(kind).len() > FEW);
    let few: Vec<&Family> = few.into_iter().flat_map(of_kind).collect();
    parts.extend(panels(found, response, &words, &few).map(Part::Figure));
    parts.extend(many.into_iter().map(|kind| Part::Figure(listed(found, response, &words, kind, &of_kind(kind)))));
    parts.extend(along(found, response, &words, &curves).map(Part::Figure));
    parts
}

/// What was found, in a row for each nudge and a column for each model.
fn values(found: &Found, response: &str, words: &Words) -> Table {
    let nudges: Vec<&str> =
        found.families(response).iter().flat_map(|family| family.members.clone()).map(|(_, nudge)| nudge).collect();
    let mut notes = Vec::new();
    let mut rows = Vec::new();
    if response == "accuracy" {
        let clean = found.summary.models.iter().map(|model| cell(model.clean_accuracy));
        let inputs = found.summary.models.iter().map(|model| model.inputs).max().map(Cell::from);
        rows.push([Cell::from("inputs as they are")].into_iter().chain(clean).chain(inputs).collect());
    }
    for nudge in nudges {
        let results: Vec<_> = found.models().map(|model| found.result(model, nudge, response)).collect();
        let value = |result: &Option<&pudica_measure::results::Measured>| {
            result.map_or(Cell::Missing, |result| {
                cell(Some(result.found)).marked(if result.exact { "exact" } else { "" })
            })
        };
        let inputs = results.iter().flatten().map(|result| result.inputs).max();
        notes.extend(
            results
                .iter()
                .flatten()
                .filter_map(|result| Some(format!("{}, {nudge}: {}", result.model, result.note.as_ref()?))),
        );
        rows.push([Cell::from(nudge)].into_iter().chain(results.iter().map(value)).chain([inputs.into()]).collect());
    }
    let models: Vec<String> = found.models().map(String::from).collect();
    let heads = head(["nudge"]).into_iter().chain(models).chain(head(["inputs"]));
    let note = [words.meaning.to_string(), "Brackets are 95 % intervals over inputs.".into()].into_iter().chain(notes);
    let note: Vec<String> = note.filter(|part| !part.is_empty()).collect();
    Table { title: words.title.clone(), head: heads.collect(), rows, note: note.join(" ") }
}

/// How models differ, by pairs.
fn differences(found: &Found, response: &str, words: &Words) -> Option<Table> {
    let own: Vec<&Difference> = found.summary.differences.iter().filter(|one| one.response == response).collect();
    let row = |one: &&Difference| -> Vec<Cell> {
        let verdict = match (tells(&one.found), one.found.value > 0.0) {
            (false, _) => "cannot tell".to_string(),
            (true, true) => format!("{}: more", one.model),
            (true, false) => format!("{}: less", one.model),
        };
        let pair = format!("{} − {}", one.model, one.with);
        vec![one.nudge.as_str().into(), pair.into(), cell(Some(one.found)), verdict.into(), one.inputs.into()]
    };
    let mut note = "Same inputs, same nudges, so that the difference is taken input by input; 95 % intervals. Cannot tell: the interval \
        includes 0."
        .to_string();
    if own.len() >= 10 {
        note += " Where there is no difference at all, one interval in twenty leaves 0 out by chance.";
    }
    (!own.is_empty()).then(|| Table {
        title: format!("{}: paired differences between models", words.title),
        head: head(["nudge", "models", "difference", "verdict", "inputs"]),
        rows: own.iter().map(row).collect(),
        note,
    })
}

/// The value of each model, a panel for each nudge.
fn panels(found: &Found, response: &str, words: &Words, families: &[&Family]) -> Option<Drawn> {
    let names = found.short_models();
    let panel = |family: &&Family| {
        let (_, nudge) = family.members.first()?;
        let values: Vec<(usize, &str, Value)> = found
            .models()
            .enumerate()
            .filter_map(|(place, model)| Some((place, model, found.result(model, nudge, response)?.found)))
            .collect();
        let styles: Vec<_> = found.styles().map(|(_, style)| style).collect();
        let marks = values
            .iter()
            .flat_map(|(place, model, value)| dots(vec![point(*place as f64, value, model)], styles[*place].clone()));
        let y = axis(words, &words.name, values.iter().map(|(.., value)| *value));
        let x = Axis::linear("").named(&names);
        Some(Panel { title: cut(&family.title, TITLE), x, y, marks: marks.collect() })
    };
    let panels: Vec<Panel> = families.iter().filter_map(panel).collect();
    let columns = panels.len().clamp(1, 3);
    let mut figure = Figure { panels, columns, legend: found.legend(), ..Figure::default() };
    // One panel alone would be as wide as the page.
    widen(&mut figure);
    (!families.is_empty()).then(|| {
        let caption = format!("{} Bars are 95 % intervals over inputs. Each panel has its own scale.", words.meaning);
        Drawn::new(&file_name(response), &words.title, caption.trim(), "", figure)
    })
}

/// Puts an empty panel beside one that is alone.
pub fn widen(figure: &mut Figure) {
    if figure.panels.len() == 1 {
        let blank = Panel { title: String::new(), x: Axis::linear(""), y: Axis::linear(""), marks: Vec::new() };
        figure.panels.push(blank);
        figure.columns = 2;
    }
}

/// Many nudges of one kind, such as all corruptions, below each other; accuracy beside that on clean inputs.
fn listed(found: &Found, response: &str, words: &Words, kind: &str, families: &[&Family]) -> Drawn {
    let row = |family: &&Family| {
        let title = family.title.strip_prefix(kind).unwrap_or(&family.title).trim_start_matches([' ', ',']);
        let value = |model| found.result(model, family.members[0].1, response).map(|result| result.found);
        (title.to_string(), found.models().map(value).collect::<Vec<_>>())
    };
    let clean = || found.summary.models.iter().map(|model| model.clean_accuracy).collect::<Vec<_>>();
    let clean = (response == "accuracy").then(|| ("clean".to_string(), clean()));
    let rows: Vec<_> = clean.into_iter().chain(families.iter().map(row)).collect();
    let title = format!("{} under {} kinds of {}", words.title, families.len(), kind.replace('-', " "));
    let caption = format!("{} Bars are 95 % intervals over inputs.", words.meaning);
    list(found, &format!("{}-{}", file_name(kind), file_name(response)), &title, &caption, words, &rows)
}

/// Curves along the number in which nudges differ, a panel for each family.
fn along(found: &Found, response: &str, words: &Words, families: &[&Family]) -> Option<Drawn> {
    let panel = |family: &&Family| {
        let name = family.along?;
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
        let x = match (spans_decades(&numbers, 50.0), numbers.iter().all(|x| x.fract() == 0.0)) {
            (true, _) => Axis::log(&label),
            (false, true) if from_clean => Axis::whole(&format!("{label}, 0 is clean")),
            (false, true) => Axis::whole(&label),
            (false, false) => Axis::linear(&label),
        };
        Some(Panel { title: cut(&family.title, TITLE), x, y: axis(words, &words.name, values.into_iter()), marks })
    };
    let panels: Vec<Panel> = families.iter().filter_map(panel).collect();
    let columns = if panels.len() > 6 { 4 } else { panels.len().clamp(1, 3) };
    let mut figure = Figure { panels, columns, legend: found.legend(), ..Figure::default() };
    widen(&mut figure);
    (!families.is_empty()).then(|| {
        let names: Vec<String> =
            different(families.iter().filter_map(|family| family.along)).into_iter().map(String::from).collect();
        let title = format!("{} against {}", words.title, super::words::listed(&names));
        let caption = format!("{} Bands are 95 % intervals over inputs. Each panel has its own scale.", words.meaning);
        Drawn::new(&format!("{}-curves", file_name(response)), &title, caption.trim(), "", figure)
    })
}
