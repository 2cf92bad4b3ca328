//! Texts with raised and lowered parts: `10^{−3}`, `n_{s}`, `U W_{v}^{T}`. Every text of a report may have them, in figures and on the page.

use std::fmt::Write;

/// How far a raised part is above the line in a figure, and a lowered one below, at size 13.
const RAISED: f64 = -5.0;
const LOWERED: f64 = 3.5;

/// Text made safe for XML and HTML.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"']) {
        safe += &rest[..at];
        safe += match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            _ => "&quot;",
        };
        rest = &rest[at + 1..];
    }
    safe + rest
}

/// Where a part of a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Line,
    Above,
    Below,
}

/// The parts of a text, in order.
fn parts(text: &str) -> Vec<(Place, &str)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.as_bytes().windows(2).position(|two| matches!(two, b"^{" | b"_{")) {
        let place = if rest[at..].starts_with('^') { Place::Above } else { Place::Below };
        let (inside, after) = rest[at + 2..].split_once('}').unwrap_or((&rest[at + 2..], ""));
        parts.extend((at > 0).then_some((Place::Line, &rest[..at])));
        parts.push((place, inside));
        rest = after;
    }
    parts.extend((!rest.is_empty()).then_some((Place::Line, rest)));
    parts
}

/// For the page.
pub fn html(text: &str) -> String {
    let part = |(place, part): (Place, &str)| match place {
        Place::Line => escape(part).replace(" %", "&nbsp;%"), // 95 % is one word
        Place::Above => format!("<sup>{}</sup>", escape(part)),
        Place::Below => format!("<sub>{}</sub>", escape(part)),
    };
    parts(text).into_iter().map(part).collect()
}

/// For places where nothing can be raised: `10^−3`, `n_s`.
pub fn plain(text: &str) -> String {
    let part = |(place, part): (Place, &str)| match place {
        Place::Line => part.to_string(),
        Place::Above => format!("^{part}"),
        Place::Below => format!("_{part}"),
    };
    parts(text).into_iter().map(part).collect()
}

/// For the inside of an SVG text.
pub fn svg(text: &str) -> String {
    let mut spans = String::new();
    let mut height = 0.0;
    for (place, part) in parts(text) {
        let (wanted, size) = match place {
            Place::Line => (0.0, ""),
            Place::Above => (RAISED, " font-size=\"11\""),
            Place::Below => (LOWERED, " font-size=\"11\""),
        };
        if wanted == height && size.is_empty() {
            spans += &escape(part);
        } else {
            let _ = write!(spans, "<tspan dy=\"{}\"{size}>{}</tspan>", wanted - height, escape(part));
        }
        height = wanted;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_raised_and_lowered() {
        assert_eq!(html("U W_{v}^{T} < 10^{−3}"), "U W<sub>v</sub><sup>T</sup> &lt; 10<sup>−3</sup>");
        assert_eq!(plain("U W_{v}^{T} < 10^{−3}"), "U W_v^T < 10^−3");
        assert_eq!(
            svg("W_{v}^{T} a"),
            "W<tspan dy=\"3.5\" font-size=\"11\">v</tspan><tspan dy=\"-8.5\" font-size=\"11\">T</tspan><tspan dy=\"5\"> a</tspan>"
        );
        assert_eq!(html("95 % of n"), "95&nbsp;% of n");
        assert_eq!(escape("a < \"b\" & é>"), "a &lt; &quot;b&quot; &amp; é&gt;");
        assert_eq!(html("set_seed ^ {x} ^{2"), "set_seed ^ {x} <sup>2</sup>");
    }
}
