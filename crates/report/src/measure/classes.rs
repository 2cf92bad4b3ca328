//! Responses by class.

use pudica_measure::results::{SiteProfile, Value};

use super::Part;
use super::found::Found;
use super::head::{cell, nudge_title};
use super::marks::{MOST_NAMES, file_name, names};
use super::words::{cut, of_response};
use crate::figure::{Figure, Height, Panel};
use crate::findings::{Cell, Drawn, Table, head};
use crate::sweep::different;

/// Panels at most; the table has all nudges.
const MOST_PANELS: usize = 8;

/// A figure and a table for each response that has classes: as a rule there is one.
pub fn parts(found: &Found) -> Vec<Part> {
    let shown: Vec<(&str, Vec<&SiteProfile>)> = found
        .nudges()
        .into_iter()
        .map(|nudge| {
            let mut profiles = found.profiles(nudge);
            profiles.retain(|profile| !profile.by_class.is_empty());
            (nudge, profiles)
        })
        .filter(|(_, profiles)| !profiles.is_empty())
        .collect();
    let responses = different(shown.iter().map(|(_, profiles)| profiles[0].response.as_str()));
    let of = |response: &str| -> Vec<&(&str, Vec<&SiteProfile>)> {
        shown.iter().filter(|(_, profiles)| profiles[0].response == response).collect()
    };
    responses.into_iter().flat_map(|response| by_class(found, response, &of(response))).collect()
}

fn by_class(found: &Found, response: &str, nudges: &[&(&str, Vec<&SiteProfile>)]) -> [Part; 2] {
    let words = of_response(response);
    let classes = different(
        nudges.iter().flat_map(|(_, profiles)| profiles).flat_map(|one| &one.by_class).map(|one| one.0.as_str()),
    );
    let value = |profiles: &[&SiteProfile], model: &str, class: &str| -> Option<(Value, u64)> {
        let profile = profiles.iter().find(|profile| profile.model == model)?;
        profile.by_class.iter().find(|one| one.0 == class).map(|one| (one.1, one.2))
    };
    let drawn = &classes[..classes.len().min(MOST_NAMES)];
    let panel = |(nudge, profiles): &&(&str, Vec<&SiteProfile>)| -> Panel {
        let values = |class: &str| found.models().map(|model| Some(value(profiles, model, class)?.0)).collect();
        let rows: Vec<(String, Vec<Option<Value>>)> =
            drawn.iter().map(|class| (class.to_string(), values(class))).collect();
        names(found, &cut(&nudge_title(found, nudge), 40), &words, &rows)
    };
    let panels: Vec<Panel> = nudges.iter().take(MOST_PANELS).map(panel).collect();
    let mut caption =
        format!("{} Bars are 95 % intervals over the inputs of a class. Each panel has its own scale.", words.meaning);
    if drawn.len() < classes.len() || panels.len() < nudges.len() {
        caption += " Classes and nudges that have no room here are in the table.";
    }
    let figure = Figure {
        columns: panels.len().min(2),
        panels,
        height: Height::Names(drawn.len()),
        legend: found.legend(),
        ..Figure::default()
    };
    let figure = Drawn::new(
        &format!("classes-{}", file_name(response)),
        &format!("{} by class", words.title),
        &caption,
        "",
        figure,
    );
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (nudge, profiles) in nudges {
        for class in &classes {
            let values: Vec<Option<(Value, u64)>> = found.models().map(|model| value(profiles, model, class)).collect();
            let inputs = values.iter().flatten().map(|(_, inputs)| *inputs as usize).max();
            let values = values.into_iter().map(|value| cell(value.map(|(value, _)| value)));
            rows.push(
                [Cell::from(*class), Cell::from(*nudge)].into_iter().chain(values).chain([inputs.into()]).collect(),
            );
        }
    }
    let models: Vec<String> = found.models().map(String::from).collect();
    let table = Table {
        title: format!("{} by class: numbers", words.title),
        head: head(["class", "nudge"]).into_iter().chain(models).chain(head(["inputs"])).collect(),
        rows,
        note: "Brackets are 95 % intervals over the inputs of a class.".into(),
    };
    [Part::Figure(figure), Part::Table(table)]
}
