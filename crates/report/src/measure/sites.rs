//! Where a nudge is felt: a map over patches, a profile over positions or bits, features ranked.

use pudica_measure::results::{SiteProfile, Sites, Value};

use super::Part;
use super::found::{Found, interval};
use super::head::{cell, nudge_title};
use super::marks::{MOST_NAMES, axis, brief, curve, file_name, list, point};
use super::responses::widen;
use super::words::{Words, of_response};
use crate::figure::{Axis, ColourBar, Figure, Height, Panel, Point};
use crate::findings::{Cell, Drawn, Table, head};

/// What is known of the sites of a nudge, of one response: changes of labels where there are some.
pub fn parts(found: &Found, nudge: &str) -> Vec<Part> {
    let profiles = found.profiles(nudge);
    let Some(first) = profiles.first() else { return Vec::new() };
    let words = of_response(&first.response);
    let title = nudge_title(found, nudge);
    match &first.sites {
        // Stopped before the first value.
        Sites::Grid { .. } if profiles.iter().all(|profile| profile.by_site.is_empty()) => Vec::new(),
        Sites::Grid { rows, columns } => {
            vec![Part::Figure(maps(&profiles, (*rows, *columns), &words, &title, nudge))]
        }
        Sites::Positions { from_end } => {
            let label = if *from_end { "position, 0 is the last" } else { "position, 0 is the first" };
            let place = |site: usize| if *from_end { -(site as f64) } else { site as f64 };
            vec![Part::Figure(profile(found, &profiles, &words, (&title, "position", nudge), label, place))]
        }
        // Of all strings there are the influences of the bits.
        Sites::Bits if !found.details.boolean.is_empty() => Vec::new(),
        Sites::Bits => {
            vec![Part::Figure(profile(found, &profiles, &words, (&title, "bit", nudge), "bit", |bit| bit as f64 + 1.0))]
        }
        Sites::Features { names } => features(found, &profiles, &words, &title, nudge, names),
        Sites::Whole => Vec::new(),
    }
}

/// A map for each model, all with the same colours.
fn maps(profiles: &[&SiteProfile], (rows, columns): (usize, usize), words: &Words, title: &str, nudge: &str) -> Drawn {
    let ends = ends(profiles.iter().flat_map(|profile| profile.by_site.iter().map(|value| value.value)));
    let panel = |profile: &&SiteProfile| {
        let told = |(site, value): (usize, &Value)| {
            let range =
                interval(value).map_or(String::new(), |(low, high)| format!(" [{}, {}]", brief(low), brief(high)));
            let place = format!("row {}, column {}", site / columns.max(1), site % columns.max(1));
            (value.value, format!("{}, {place}: {}{range}", profile.model, brief(value.value)))
        };
        let values: Vec<_> = profile.by_site.iter().enumerate().map(told).collect();
        Panel::map(&profile.model, columns, &values, ends)
    };
    let panels: Vec<Panel> = profiles.iter().map(panel).collect();
    let mut figure = Figure {
        columns: panels.len().clamp(1, 3),
        panels,
        height: Height::OfWidth(rows as f64 / columns.max(1) as f64),
        colour_bar: Some(ColourBar { label: words.name.clone(), low: ends.0, high: ends.1 }),
        ..Figure::default()
    };
    widen(&mut figure);
    let caption = format!(
        "Where in the input a nudge is felt, as rows and columns of places: mean over all inputs. {} Hovering over a place in a browser shows its 95 % \
         interval.",
        words.meaning
    );
    Drawn::new(&format!("map-{}", file_name(nudge)), &format!("Map: {title}"), &caption, "", figure)
}

/// The ends of the colours for these values: 0, and the largest.
pub fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((0.0f64, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    if low < high { (low, high) } else { (low, low + 1.0) }
}

/// A curve over sites for each model.
fn profile(
    found: &Found,
    profiles: &[&SiteProfile],
    words: &Words,
    (title, what, nudge): (&str, &str, &str),
    label: &str,
    place: impl Fn(usize) -> f64,
) -> Drawn {
    let mut marks = Vec::new();
    for (model, style) in found.styles() {
        let Some(profile) = profiles.iter().find(|profile| profile.model == model) else { continue };
        let at = |(site, value): (usize, &Value)| {
            let inputs = profile.inputs_at_site.get(site).map_or(String::new(), |count| format!(", {count} inputs"));
            point(place(site), value, &format!("{model}{inputs}"))
        };
        let points: Vec<Point> = profile.by_site.iter().enumerate().map(at).collect();
        marks.extend(curve(points, style));
    }
    let values = profiles.iter().flat_map(|profile| profile.by_site.iter().copied());
    let panel = Panel { title: String::new(), x: Axis::whole(label), y: axis(words, &words.name, values), marks };
    let fewer = profiles.iter().any(|profile| profile.inputs_at_site.windows(2).any(|pair| pair[0] != pair[1]));
    let caption = format!(
        "{} Mean over the inputs that have this {what}; bands are 95 % intervals over inputs.{}",
        words.meaning,
        if fewer { " Where few inputs are long enough, intervals are wide." } else { "" }
    );
    let figure = Figure { panels: vec![panel], columns: 1, legend: found.legend(), ..Figure::default() };
    Drawn::new(&format!("profile-{}", file_name(nudge)), &format!("{title}, by {what}"), caption.trim(), "", figure)
}

/// Features from the most to the least felt, by the mean over models: the first of them drawn, all in a table.
fn features(
    found: &Found,
    profiles: &[&SiteProfile],
    words: &Words,
    title: &str,
    nudge: &str,
    names: &[String],
) -> Vec<Part> {
    let of =
        |model: &str, site: usize| profiles.iter().find(|profile| profile.model == model)?.by_site.get(site).copied();
    let mut rows: Vec<(String, Vec<Option<Value>>)> = names
        .iter()
        .enumerate()
        .map(|(site, name)| (name.clone(), found.models().map(|model| of(model, site)).collect()))
        .collect();
    let size = |values: &[Option<Value>]| values.iter().flatten().map(|value| value.value).sum::<f64>();
    rows.sort_by(|(_, one), (_, other)| size(other).total_cmp(&size(one)));
    let shown = &rows[..rows.len().min(MOST_NAMES)];
    let mut caption = format!(
        "{} Nudged one feature at a time; the most felt first. Bars are 95 % intervals over inputs.",
        words.meaning
    );
    if shown.len() < rows.len() {
        caption += &format!(" The first {} of {} features.", shown.len(), rows.len());
    }
    let drawn =
        list(found, &format!("features-{}", file_name(nudge)), &format!("{title}, by feature"), &caption, words, shown);
    let row = |(place, (name, values)): (usize, &(String, Vec<Option<Value>>))| -> Vec<Cell> {
        let values = values.iter().map(|value| cell(*value));
        [Cell::from(name.as_str()), (place + 1).into()].into_iter().chain(values).collect()
    };
    let models: Vec<String> = found.models().map(String::from).collect();
    let table = Table {
        title: format!("{title}: features ranked by {}", words.name),
        head: head(["feature", "rank"]).into_iter().chain(models).collect(),
        rows: rows.iter().enumerate().map(row).collect(),
        note: "Brackets are 95 % intervals over inputs; ranked by the mean over models.".into(),
    };
    vec![Part::Figure(drawn), Part::Table(table)]
}
