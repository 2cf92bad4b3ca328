//! Figures for the page: a legend in HTML, and each panel an SVG of its own, so that panels stack on narrow screens and texts stay readable.
//! Colours are variables of the page's style, so that dark screens get their own.

use std::fmt::Write;

use super::colour::{PALETTE, viridis};
use super::draw::{
    BOTTOM, BOTTOM_UNLABELLED, FRAME, Frame, GREY, GRID, INK, Place, RIGHT, TOP, TOP_UNTITLED, TURNED, draw_panel,
    has_long_names, legend_sign,
};
use super::{ColourBar, Figure, Panel};
use crate::typeset::{escape, html, plain};

/// Width of a panel and height of its frame, by the number of panels in a row, in units that are about a pixel: 346 is what a phone of 390
/// pixels has.
const SIZES: [(f64, f64); 4] = [(780.0, 330.0), (346.0, 230.0), (346.0, 220.0), (258.0, 180.0)];
/// The same of a panel that has a row for itself, on a narrow screen.
const NARROW: (f64, f64) = (346.0, 250.0);

impl Figure {
    /// Legend, panels and small print; `name` is this figure's alone on the page.
    pub fn html(&self, name: &str) -> String {
        let columns = self.columns.clamp(1, self.panels.len().max(1)).min(SIZES.len());
        let mut out = String::new();
        if !self.legend.is_empty() {
            let entries = self.legend.iter().map(|(name, style)| {
                let mut sign = String::new();
                legend_sign(&mut sign, (4.0, 7.0), style);
                format!(
                    "<li><svg width=\"22\" height=\"14\" aria-hidden=\"true\">{}</svg>{}</li>",
                    themed(&sign),
                    html(name)
                )
            });
            let _ = write!(out, "<ul class=\"legend\">{}</ul>", entries.collect::<String>());
        }
        if let Some(bar) = &self.colour_bar {
            out += &bar.html();
        }
        let _ = write!(out, "<div class=\"panels c{columns}\">");
        for place in 0..self.panels.len() {
            if self.panels[place].is_blank() {
                out += "<div class=\"blank\"></div>";
                continue;
            }
            let drawn = |size, class: &str| self.panel(place, size, &format!("{name}-{place}{class}"), class);
            match columns {
                1 => out += &(drawn(SIZES[0], "wide") + &drawn(NARROW, "narrow")),
                columns => out += &drawn(SIZES[columns - 1], ""),
            }
        }
        out += "</div>";
        let small: Vec<String> = self.small_print().map(html).collect();
        if !small.is_empty() {
            let _ = write!(out, "<p class=\"small\">{}</p>", small.join("<br>"));
        }
        out
    }

    /// A panel with the title and the labels that it shares with its neighbours: on narrow screens it stands alone.
    fn panel(&self, place: usize, (width, height): (f64, f64), id: &str, class: &str) -> String {
        let columns = self.columns.max(1);
        let mut panel = self.panels[place].clone();
        let own = &self.panels[place];
        let above = (0..place).rev().filter(|other| place % columns == other % columns);
        let below = (place + 1..self.panels.len()).filter(|other| place % columns == other % columns);
        let before = (place - place % columns..place).rev();
        // The first of these panels' texts that is one.
        let first = |others: Vec<usize>, text: fn(&Panel) -> &String| {
            others.into_iter().map(|other| text(&self.panels[other])).find(|text| !text.is_empty()).cloned()
        };
        let (mut title_again, mut x_again, mut y_again) = (false, false, false);
        if own.title.is_empty()
            && let Some(title) = first(above.collect(), |panel| &panel.title)
        {
            (panel.title, title_again) = (title, true);
        }
        if own.x.label.is_empty()
            && let Some(label) = first(below.collect(), |panel| &panel.x.label)
        {
            (panel.x.label, x_again) = (label, true);
        }
        if own.y.label.is_empty()
            && let Some(label) = first(before.collect(), |panel| &panel.y.label)
        {
            (panel.y.label, y_again) = (label, true);
        }
        if columns > SIZES.len() {
            (title_again, x_again, y_again) = (false, false, false); // rows are broken on any screen
        }
        // All panels of a figure have the same room around them.
        let left = self.left();
        let titled = self.panels.iter().any(|panel| !panel.title.is_empty());
        let labelled = self.panels.iter().any(|panel| !panel.x.label.is_empty());
        let turned = self.panels.iter().any(|panel| has_long_names(panel, width - left - RIGHT));
        let top = if titled { TOP } else { TOP_UNTITLED };
        let height = self.height.of(width - left - RIGHT, height);
        let bottom = if labelled { BOTTOM } else { BOTTOM_UNLABELLED } + if turned { TURNED } else { 0.0 };
        let frame = Frame { left, right: width - RIGHT, top, bottom: top + height };
        let mut body = String::new();
        draw_panel(&mut body, &panel, &frame, left, id, Place::Page { title_again, x_again, y_again });
        // Beside its neighbours it leaves out what they share: the room for that, in percent of its width.
        let share = |again: bool, room: f64| if again { format!("{:.1}%", -100.0 * room / width) } else { "0".into() };
        let (up, down) = (share(title_again, TOP - TOP_UNTITLED), share(x_again, BOTTOM - BOTTOM_UNLABELLED));
        let texts = [&panel.title, &panel.y.label, &panel.x.label];
        let name = texts.into_iter().find(|text| !text.is_empty()).map_or("", String::as_str);
        format!(
            "<svg class=\"panel {class}\" style=\"--up:{up};--down:{down}\" viewBox=\"0 0 {width} {}\" role=\"img\" aria-label=\"{}\" aria-describedby=\"{id}-d\" \
             font-size=\"13\" fill=\"{}\"><desc id=\"{id}-d\">{}</desc>{}</svg>",
            top + height + bottom,
            escape(&plain(name)),
            variable(INK),
            escape(&panel.describe(self)),
            themed(&body)
        )
    }
}

impl ColourBar {
    /// The scale with the values at its ends.
    pub fn html(&self) -> String {
        let stops: Vec<String> = (0..=8).map(|place| viridis(f64::from(place) / 8.0)).collect();
        self.html_with(&stops.join(","))
    }

    /// The same with other colours, from its low end to its high one.
    pub fn html_with(&self, colours: &str) -> String {
        format!(
            "<div class=\"colours\"><span>{} {}</span><i style=\"background:linear-gradient(90deg,{colours})\"></i><span>{}</span></div>",
            html(&self.label),
            self.value(0.0),
            self.value(1.0)
        )
    }
}

/// Colours of figures by the variables that have them on the page.
fn variable(colour: &str) -> &'static str {
    match colour {
        INK => "var(--ink)",
        GRID => "var(--grid)",
        GREY => "var(--grey)",
        FRAME => "var(--frame)",
        "white" => "var(--paper)",
        colour => {
            const SERIES: [&str; PALETTE.len()] =
                ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)"];
            PALETTE.iter().position(|known| *known == colour).map_or("", |place| SERIES[place])
        }
    }
}

/// An SVG with variables in place of its colours: of attributes that are a colour and nothing else.
fn themed(svg: &str) -> String {
    let known = |text: &str| [INK, GRID, GREY, FRAME, "white"].contains(&text) || PALETTE.contains(&text);
    let mut out = String::with_capacity(svg.len() + svg.len() / 4);
    // Quotes in texts are escaped, so that these stand around attributes.
    for (place, part) in svg.split('"').enumerate() {
        if place > 0 {
            out.push('"');
        }
        out += if known(part) { variable(part) } else { part };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Mark, Panel, Point, Shape, Style};
    use super::*;

    fn figure(columns: usize) -> Figure {
        let panel = |place: usize| {
            let points = [Point::new(1.0, 0.5, "seed=0").of_run("abc"), Point::new(2.0, 0.7, "").few(true)];
            let style = Style::point(PALETTE[6], Shape::Circle);
            let text = |shown: bool, text: &str| if shown { text.to_string() } else { String::new() };
            Panel {
                title: text(place < 2, &format!("column {place}")),
                x: Axis::linear(&text(place >= 2, "epoch")),
                y: Axis::linear(&text(place.is_multiple_of(2), "loss")),
                marks: vec![Mark::line(points.clone(), style.clone()), Mark::points(points, style)],
            }
        };
        Figure { panels: (0..4).map(panel).collect(), columns, ..Figure::default() }
    }

    #[test]
    fn a_panel_that_stands_alone_has_all_its_texts() {
        let html = figure(2).html("fig");
        let panels: Vec<&str> = html.split("<svg class=\"panel").skip(1).collect();
        assert_eq!(panels.len(), 4);
        for panel in &panels {
            for text in [">column ", ">epoch<", ">loss<"] {
                assert!(panel.contains(text), "{text} in {panel}");
            }
        }
        let again: Vec<usize> = panels.iter().map(|panel| panel.matches("class=\"again\"").count()).collect();
        assert_eq!(again, [1, 2, 1, 2], "x; x and y; title; title and y");
    }

    #[test]
    fn points_lead_to_their_runs_on_the_page_alone() {
        let figure = figure(1);
        let html = figure.html("fig");
        assert_eq!(html.matches("<a href=\"runs/abc/\"").count(), 2 * 4, "wide and narrow");
        assert!(!figure.svg().contains("<a "));
        assert!(figure.svg().contains("stroke-dasharray=\"3 4\""), "few runs");
    }

    #[test]
    fn colours_follow_the_page() {
        let html = figure(2).html("fig");
        assert!(html.contains("var(--c6)") && html.contains("var(--paper)"));
        assert!(!html.contains('#') || !html.contains("\"#"), "no colour of its own");
    }
}
