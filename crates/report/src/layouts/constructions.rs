//! Transformers built by hand, measured as trained ones are: beside Theorem 6 and Corollary 5.

use pudica_statistics::{Mean, Term, difference};
use serde_json::{Map, Value, json};

use super::title_of;
use crate::claims::{Claim, Decision, Parts, interval};
use crate::figure::colour::point;
use crate::figure::{Axis, Figure, Mark, Panel, Point, Style};
use crate::findings::{Findings, Table, counted, head, plain, with_count};
use crate::group::band_and_line;
use crate::published::PARITY_LIMIT;
use crate::run::Run;
use crate::sweep::{Sweep, different, means_by};

/// The runs of one construction at one gain.
struct Family<'a> {
    title: String,
    style: Style,
    runs: Vec<&'a Run>,
}

impl Family<'_> {
    /// A measure's mean over runs at each length.
    fn by_length(&self, measure: &str) -> Vec<(f64, Mean)> {
        means_by(&self.runs, "n", measure)
    }
}

/// `hahn/constructions`.
pub fn findings(sweep: &Sweep) -> Findings {
    let axes = sweep.other_axes(&["model.start", "target", "n"]);
    let kinds = different(sweep.runs.iter().map(|run| (run.text("model.start"), run.words(&axes))));
    let family = |(place, (start, others)): (usize, &(String, String))| Family {
        title: if others.is_empty() { title(start) } else { format!("{}, {others}", title(start)) },
        style: point(place),
        runs: sweep.kept_with("model.start", start).into_iter().filter(|run| run.words(&axes) == *others).collect(),
    };
    let families: Vec<Family> = kinds.iter().enumerate().map(family).collect();
    let mut sharpness = panel(&families, "sharpness", Axis::linear("sharpness"), "Sharpness");
    sharpness.marks.push(Mark::Level(PARITY_LIMIT, String::new()));
    let panels = vec![
        sharpness,
        panel(&families, "blowup_theory", Axis::log("Blowup, product of (1 + N)"), "LayerNorm blowup"),
        panel(&families, "param_norm", Axis::log("parameter norm"), "Parameter norm"),
    ];
    let legend = families.iter().map(|family| (family.title.clone(), family.style.clone())).collect();
    let mut findings = Findings::default();
    findings.draw(
        "constructions",
        "",
        "Built by hand",
        "Sharpness, LayerNorm blowup and parameter norm of transformers built by hand against input length: means over runs, which differ in strings and noise only, and their 95 % intervals; dashed, the limit of Theorem 6 for PARITY. PARITY needs large weights (gain n) or a large blowup (gain 1), as Corollary 5 says, and is sharp either way, as Theorem 6 says.",
        Figure { panels, columns: 3, legend, ..Figure::default() },
    );
    findings.tables.extend(families.iter().map(table));
    findings.claims.extend(claim(&families));
    let numbers = |family: &Family| -> Value {
        let of = |measure: &str| -> Map<String, Value> {
            family.by_length(measure).into_iter().map(|(n, mean)| (n.to_string(), json!(mean))).collect()
        };
        json!({ "sharpness": of("sharpness"), "blowup": of("blowup_theory"), "param_norm": of("param_norm"),
            "average_sensitivity": of("average_sensitivity") })
    };
    let summary: Map<String, Value> = families.iter().map(|family| (family.title.clone(), numbers(family))).collect();
    findings.summary.insert("by_construction".into(), summary.into());
    findings
}

/// Theorem 6 at the longest inputs there are. It is about a limit: a sharpness below 1 at some length would not contradict it.
fn claim(families: &[Family]) -> Option<Claim> {
    let parity: Vec<&Family> = families.iter().filter(|family| family.title.starts_with("PARITY")).collect();
    let mut parts = Parts::default();
    for family in &parity {
        let (n, mean) = family.by_length("sharpness").pop()?;
        let known = Term { value: PARITY_LIMIT, std_error: 0.0, freedom: f64::INFINITY };
        let found = difference(&mean, known);
        let decision = match Decision::above(found) {
            Decision::Agrees => Decision::Agrees,
            _ => Decision::CannotTell,
        };
        parts.add(decision, interval(&format!("{} at n = {n}: sharpness minus 1,", family.title), found));
    }
    let runs = parity.iter().map(|family| family.runs.len()).sum();
    (!parity.is_empty()).then(|| {
        parts.claim(
            "constructions",
            "Theorem 6: for PARITY the limit of sharpness is at least 1, whatever the weights, as long as they stay bounded.",
            "Is PARITY built by hand as sharp as the limit of Theorem 6 at the longest inputs?",
            runs,
        )
    })
}

/// `construct:parity:1` for people: PARITY, gain 1.
pub(super) fn title(start: &str) -> String {
    let mut parts = start.trim_start_matches("construct:").split(':');
    let name = title_of(parts.next().unwrap_or(start));
    match (parts.next(), name.as_str()) {
        (Some(gain), _) => format!("{name}, gain {gain}"),
        (None, "FIRST") => name,
        (None, _) => format!("{name}, gain n"),
    }
}

fn panel(families: &[Family], measure: &str, axis: Axis, title: &str) -> Panel {
    let mut marks = Vec::new();
    for family in families {
        let means = family.by_length(measure);
        marks.extend(band_and_line(&means, &family.style.colour, 3, 0));
        let name = |mean: &Mean| format!("{}: mean of {}", family.title, counted(mean.count, "run"));
        let points = means.iter().map(|(n, mean)| Point::mean(*n, mean, name(mean)));
        marks.push(Mark::points(points, family.style.clone().sized(2.6)));
    }
    Panel { title: title.into(), x: Axis::whole("input length n"), y: axis, marks }
}

/// Sharpness beside as_n / n, and what is paid for it.
fn table(family: &Family) -> Table {
    let at = |measure: &str, n: f64| family.by_length(measure).into_iter().find(|(m, _)| *m == n).map(|(_, mean)| mean);
    let row = |(n, sharpness): (f64, Mean)| {
        let bound = at("average_sensitivity", n).map(|mean| mean.mean / n);
        let paid = ["blowup_theory", "param_norm", "eval_loss"].map(|measure| plain(at(measure, n)));
        [n.into(), bound.into(), with_count(Some(sharpness))].into_iter().chain(paid).collect()
    };
    Table {
        title: format!("{}: sharpness beside Theorem 6", family.title),
        head: head(["n", "Theorem 6: as_{n} / n", "sharpness", "Blowup", "parameter norm", "MSE"]),
        rows: family.by_length("sharpness").into_iter().map(row).collect(),
        note: "as_{n} / n is what sharpness approaches or exceeds as n grows and then the noise shrinks; at one n and one noise neither is promised.".into(),
    }
}
