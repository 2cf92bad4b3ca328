//! The most and the least sensitive inputs: images with their map on them, texts with their words coloured, rows in a table.

use std::fmt::Write;

use pudica_measure::results::{Example, Sites};

use super::Part;
use super::found::Found;
use super::head::nudge_title;
use super::marks::brief;
use super::pictures::{Picture, Pictures};
use super::sites::ends;
use super::words::{Words, of_response};
use crate::figure::ColourBar;
use crate::figure::colour::viridis;
use crate::findings::{Cell, Table, head};
use crate::typeset::escape;

/// Places that are told in words below an example.
const TOLD: usize = 3;

/// The examples of a nudge.
pub fn parts(found: &Found, nudge: &str, pictures: &Pictures) -> Vec<Part> {
    let own: Vec<&Example> = found.details.examples.iter().filter(|example| example.nudge == nudge).collect();
    let Some(first) = own.first() else { return Vec::new() };
    let examples = Examples {
        found,
        nudge,
        words: of_response(&first.response),
        title: format!("{}: the most and the least sensitive inputs", nudge_title(found, nudge)),
        ends: ends(own.iter().flat_map(|one| one.by_site.iter().copied())),
        own,
    };
    vec![if examples.own.iter().any(|one| one.image.is_some()) {
        Part::Html(examples.images(pictures))
    } else if examples.own.iter().any(|one| !one.words.is_empty()) {
        Part::Html(examples.texts())
    } else {
        Part::Table(examples.rows())
    }]
}

struct Examples<'a> {
    found: &'a Found,
    nudge: &'a str,
    words: Words,
    title: String,
    /// The ends of the colours.
    ends: (f64, f64),
    own: Vec<&'a Example>,
}

impl Examples<'_> {
    /// A section with the examples of each model, the most sensitive first.
    fn section(&self, bar: &str, class: &str, note: &str, draw: impl Fn(&Example) -> String) -> String {
        let mut body = String::new();
        for model in self.found.models() {
            for (most, word) in [(true, "most"), (false, "least")] {
                let own: Vec<&&Example> =
                    self.own.iter().filter(|one| one.model == model && one.most == most).collect();
                if own.is_empty() {
                    continue;
                }
                let drawn: String = own.into_iter().map(|one| draw(one)).collect();
                let _ =
                    write!(body, "<h3>{}: {word} sensitive</h3><div class=\"{class}\">{drawn}</div>", escape(model));
            }
        }
        format!("<section><h2>{}</h2>{bar}{body}<p class=\"small\">{note}</p></section>\n", escape(&self.title))
    }

    fn bar(&self) -> ColourBar {
        ColourBar { label: self.words.name.clone(), low: self.ends.0, high: self.ends.1 }
    }

    /// Where a value is between the ends of the colours, 0 to 1.
    fn part(&self, value: f64) -> f64 {
        ((value - self.ends.0) / (self.ends.1 - self.ends.0)).clamp(0.0, 1.0)
    }

    fn images(&self, pictures: &Pictures) -> String {
        let size = self.found.profiles(self.nudge).iter().find_map(|profile| match profile.sites {
            Sites::Grid { rows, columns } => Some((rows, columns.max(1))),
            _ => None,
        });
        let draw = |one: &Example| {
            let (rows, columns) = size.unwrap_or((1, one.by_site.len().max(1)));
            let picture = pictures.of(one);
            // The picture has the shape of its file; places are laid over it, however many there are.
            let (wide, high) = picture
                .map_or((columns as f64, rows as f64), |picture| (f64::from(picture.width), f64::from(picture.height)));
            let shown = picture.map_or(String::new(), Picture::html);
            let place = |site: usize| format!("row {}, column {}", site / columns, site % columns);
            let mut cells = String::new();
            for (site, value) in one.by_site.iter().enumerate() {
                let _ = write!(
                    cells,
                    "<rect x=\"{:.3}\" y=\"{:.3}\" width=\"{:.3}\" height=\"{:.3}\" fill=\"{}\" fill-opacity=\"{:.2}\"><title>{}: {}</title></rect>",
                    (site % columns) as f64 * wide / columns as f64,
                    (site / columns) as f64 * high / rows as f64,
                    wide / columns as f64,
                    high / rows as f64,
                    viridis(self.part(*value)),
                    // What is hardly felt leaves the picture as it is.
                    0.2 + 0.5 * self.part(*value),
                    place(site),
                    brief(*value)
                );
            }
            let svg = |label: &str, inside: &str| {
                format!(
                    "<svg viewBox=\"0 0 {wide} {high}\" role=\"img\" aria-label=\"{}\">{inside}</svg>",
                    escape(label)
                )
            };
            let map = format!("Where nudges of {} are felt: {}", one.name, largest(one, place));
            // A nudge of the whole input has no map.
            let map = if one.by_site.len() > 1 { svg(&map, &format!("{shown}{cells}")) } else { String::new() };
            let input = svg(&format!("Input {}", one.name), &shown);
            format!("<div class=\"card\"><div>{input}{map}</div>{}</div>", self.told(one, ""))
        };
        let note =
            "Left: the input. Right: the same with the mean response at each place on it; hovering shows the number.";
        self.section(&self.bar().html(), "cards", note, draw)
    }

    fn texts(&self) -> String {
        let profiles = self.found.profiles(self.nudge);
        let from_end = profiles.iter().any(|profile| profile.sites == Sites::Positions { from_end: true });
        // The word of a site and the site of a word: sites may be counted from the last word.
        let other =
            |one: &Example, place: usize| if from_end { one.words.len().checked_sub(place + 1) } else { Some(place) };
        let draw = |one: &Example| {
            let largest_value = one.by_site.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut text = String::new();
            for (place, word) in one.words.iter().enumerate() {
                let value = other(one, place).and_then(|site| one.by_site.get(site)).filter(|value| value.is_finite());
                let Some(value) = value else {
                    let _ = write!(text, "{} ", escape(word));
                    continue;
                };
                let word = match *value == largest_value && largest_value > 0.0 {
                    true => format!("<b>{}</b>", escape(word)),
                    false => escape(word),
                };
                let _ = write!(
                    text,
                    "<span style=\"--t:{:.3}\" title=\"{}\">{word}</span> ",
                    self.part(*value),
                    escape(&brief(*value))
                );
            }
            let word = |site: usize| other(one, site).and_then(|place| one.words.get(place));
            let word = |site: usize| format!("“{}”", word(site).map_or("", String::as_str));
            let largest = largest(one, word);
            let largest = if largest.is_empty() { largest } else { format!(" Most: {}.", escape(&largest)) };
            format!("<div class=\"card\"><p class=\"words\">{text}</p>{}</div>", self.told(one, &largest))
        };
        let bar = self.bar().html_with("transparent,rgb(230 159 0 / var(--shade))");
        let note =
            "Each word is coloured by the mean response to its nudges, the largest is bold; hovering shows the number.";
        self.section(&bar, "texts", note, draw)
    }

    /// What is known of an example, below it; `more` is HTML.
    fn told(&self, one: &Example, more: &str) -> String {
        let class = match &one.label {
            Some(label) if *label == one.predicted => format!("{} (right)", escape(label)),
            Some(label) => format!("{}, taken for {}", escape(label), escape(&one.predicted)),
            None => format!("taken for {}", escape(&one.predicted)),
        };
        format!(
            "<p>{class}. {} <b>{}</b>.{more} <span class=\"i\">{}</span></p>",
            escape(&self.words.title),
            escape(&brief(one.value)),
            escape(&one.name)
        )
    }

    fn rows(&self) -> Table {
        let names = self.found.profiles(self.nudge).iter().find_map(|profile| match &profile.sites {
            Sites::Features { names } => Some(names.clone()),
            _ => None,
        });
        let row = |one: &&Example| -> Vec<Cell> {
            let place = |site: usize| match (&names, one.values.get(site)) {
                (Some(names), Some(value)) => format!("{} = {value}", names.get(site).map_or("", String::as_str)),
                (Some(names), None) => names.get(site).cloned().unwrap_or_default(),
                _ => format!("{}", site + 1),
            };
            vec![
                one.name.as_str().into(),
                one.model.as_str().into(),
                (if one.most { "most" } else { "least" }).into(),
                one.label.clone().into(),
                one.predicted.as_str().into(),
                one.value.into(),
                Some(largest(one, place)).filter(|text| !text.is_empty()).into(),
            ]
        };
        Table {
            title: self.title.clone(),
            head: head(["input", "model", "sensitive", "class", "taken for", "value", "felt most at"]),
            rows: self.own.iter().map(row).collect(),
            note: format!("{} Mean over all nudges of one input.", self.words.meaning),
        }
    }
}

/// The places of an example that respond most, in words.
fn largest(one: &Example, place: impl Fn(usize) -> String) -> String {
    let mut sites: Vec<(usize, f64)> =
        one.by_site.iter().copied().enumerate().filter(|(_, value)| *value > 0.0).collect();
    sites.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let told = sites.iter().take(TOLD).map(|(site, value)| format!("{} ({})", place(*site), brief(*value)));
    told.collect::<Vec<_>>().join(", ")
}
