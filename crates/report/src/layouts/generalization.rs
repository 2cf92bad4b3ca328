//! What a transformer makes of a part of a random function: Figures 4 and 15.

use std::collections::HashMap;

use pudica_statistics::{Mean, mean};
use serde_json::{Map, Value, json};

use crate::claims::{Claim, Parts, apart, single};
use crate::figure::colour::point;
use crate::figure::{Axis, Figure, Mark, Panel, Point, Style};
use crate::findings::{Findings, Table, head, with_count};
use crate::run::Run;
use crate::sweep::Sweep;

/// Functions of one origin.
struct Family<'a> {
    name: String,
    key: String,
    /// Runs that tell how sensitive the functions are.
    functions: Vec<&'a Run>,
    /// Converged runs fitted to all strings of these functions.
    fits: Vec<&'a Run>,
}

impl Family<'_> {
    fn of(runs: &[&Run], measure: &str) -> Option<Mean> {
        mean(&runs.iter().filter_map(|run| run.value(measure)).collect::<Vec<f64>>())
    }

    fn sensitivity(&self) -> Option<Mean> {
        Family::of(&self.functions, "average_sensitivity")
    }

    fn sharpness(&self) -> Option<Mean> {
        Family::of(&self.fits, "sharpness")
    }

    fn set_sharpness(&self) -> Option<Mean> {
        Family::of(&self.fits, "set_sharpness")
    }
}

/// `hahn/generalization`.
pub fn findings(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let families = families(sweep);
    let n = sweep.runs.first().and_then(|run| run.number("n")).unwrap_or(0.0);
    findings.draw(
        "fig4",
        "Figure 4",
        "Sensitivity of what is learnt, and sharpness",
        &format!("Left: average sensitivity of the original random functions f on {n} bits and of what T1 makes of them, by the number of training strings. Right: sharpness of fresh transformers fitted to all strings of these functions against their average sensitivity; each run a small point, means large with 95 % intervals."),
        fig_4(&families),
    );
    findings.draw(
        "fig15",
        "Figure 15",
        "Sharpness on all strings and on the training strings",
        "Sharpness measured on all strings and on the training strings alone: means with 95 % intervals.",
        fig_15(&families),
    );
    findings.tables.push(Table {
        title: "Sensitivity and sharpness".into(),
        head: head(["function", "average sensitivity", "sharpness", "sharpness on the training strings"]),
        rows: families
            .iter()
            .map(|family| {
                let measures = [family.sensitivity(), family.sharpness(), family.set_sharpness()];
                std::iter::once(family.name.clone().into()).chain(measures.map(with_count)).collect()
            })
            .collect(),
        note: "A random function has an average sensitivity of n/2 in the mean. T1s that do not fit their training set exactly are left out.".into(),
    });
    let summary: Map<String, Value> = families
        .iter()
        .map(|family| {
            let entry = json!({
                "average_sensitivity": family.sensitivity(),
                "sharpness": family.sharpness(),
                "set_sharpness": family.set_sharpness(),
                "functions": family.functions.len(),
                "runs_kept": family.fits.len(),
            });
            (family.key.clone(), entry)
        })
        .collect();
    findings.summary.insert("families".into(), summary.into());
    findings.claims = claims(&families);
    findings
}

/// Section 7.4, Figures 4 and 15.
fn claims(families: &[Family]) -> Vec<Claim> {
    let Some((original, _)) = families.split_first() else { return Vec::new() };
    let learnt: Vec<&Family> = families.iter().filter(|family| family.key.starts_with("T1")).collect();
    let (mut sensitivity, mut sharpness, mut order) = (Parts::default(), Parts::default(), Parts::default());
    for family in &learnt {
        let name = format!("f minus {}", family.name);
        sensitivity.above(&name, apart(original.sensitivity(), family.sensitivity()));
        sharpness.above(&name, apart(original.sharpness(), family.sharpness()));
    }
    // Families come by falling size of the training set.
    for pair in learnt.windows(2) {
        let name = format!("{} minus {}", pair[0].name, pair[1].name);
        order.above(&name, apart(pair[0].sensitivity(), pair[1].sensitivity()));
    }
    let count = |of: fn(&Family) -> usize| -> usize { original_and(original, &learnt).map(of).sum() };
    let (functions, fits) = (count(|family| family.functions.len()), count(|family| family.fits.len()));
    let mut same = Parts::default();
    let ratio = |run: &&Run| {
        Some(run.value("set_sharpness")? / run.value("sharpness")? - 1.0).filter(|ratio| ratio.is_finite())
    };
    let ratios: Vec<f64> = families.iter().flat_map(|family| &family.fits).filter_map(ratio).collect();
    same.about("relative difference", mean(&ratios).as_ref().and_then(single), 0.1);
    vec![
        sensitivity.claim(
            "fig4",
            "Learnt functions T1 are less sensitive than the random f.",
            "Is what a transformer makes of part of a random function less sensitive than the function?",
            functions,
        ),
        sharpness.claim(
            "fig4",
            "Refitting T1 ends in flatter minima than fitting f.",
            "Are the minima of transformers fitted to T1 flatter than those of f?",
            fits,
        ),
        order.claim(
            "fig4",
            "The fewer training strings, the less sensitive is T1.",
            "Does sensitivity fall with every smaller training set?",
            functions,
        ),
        same.claim(
            "fig15",
            "Sharpness on the training strings alone is almost the same as on all strings.",
            "Is sharpness on the training strings within a tenth of that on all strings?",
            ratios.len(),
        ),
    ]
}

fn original_and<'a, 'b>(
    original: &'b Family<'a>,
    learnt: &'b [&'b Family<'a>],
) -> impl Iterator<Item = &'b Family<'a>> {
    std::iter::once(original).chain(learnt.iter().copied())
}

/// The original functions, what T1 made of them by training set size (largest first), and random completions.
fn families(sweep: &Sweep) -> Vec<Family<'_>> {
    let in_sweep = |name: &'static str| sweep.finished().filter(move |run| run.record.sweep == name);
    let converged = |name: &'static str| in_sweep(name).filter(|run| run.is_converged());
    let set_size = |run: &Run| run.number("train.set_size");
    let set_of: HashMap<&str, f64> =
        in_sweep("learn").filter_map(|run| Some((run.record.id.as_str(), set_size(run)?))).collect();
    let parent_set = |run: &&Run| run.record.parent.as_deref().and_then(|id| set_of.get(id)).copied();
    let mut sizes: Vec<f64> = set_of.values().copied().collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();

    let originals: Vec<&Run> = converged("original").collect();
    let mut families = vec![Family {
        name: "f, the original".into(),
        key: "original".into(),
        functions: once_per_target(&originals),
        fits: originals,
    }];
    for size in sizes.iter().rev() {
        families.push(Family {
            name: format!("T1 from {size} strings"),
            key: format!("T1_{size}"),
            functions: in_sweep("learn")
                .filter(|run| set_size(run) == Some(*size) && run.value("train_accuracy") == Some(1.0))
                .collect(),
            fits: converged("refit").filter(|run| parent_set(run) == Some(*size)).collect(),
        });
    }
    let completions: Vec<&Run> = converged("completion").collect();
    if let Some(size) = completions.first().and_then(parent_set) {
        families.push(Family {
            name: format!("random beyond {size} strings"),
            key: format!("completion_{size}"),
            functions: once_per_target(&completions),
            fits: completions,
        });
    }
    families
}

/// Several runs fit the same function; its sensitivity counts once.
fn once_per_target<'a>(runs: &[&'a Run]) -> Vec<&'a Run> {
    let mut seen = std::collections::HashSet::new();
    runs.iter().copied().filter(|run| seen.insert(run.text("target"))).collect()
}

fn fig_4(families: &[Family]) -> Figure {
    let names: Vec<String> = families.iter().map(short).collect();
    let mut left = Panel {
        title: "Sensitivity of what is learnt".into(),
        x: Axis::linear("function").named(&names),
        y: Axis::linear("average sensitivity"),
        marks: Vec::new(),
    };
    let mut right = Panel {
        title: "Sharpness against sensitivity".into(),
        x: Axis::linear("average sensitivity"),
        y: Axis::linear("sharpness"),
        marks: Vec::new(),
    };
    for (place, family) in families.iter().enumerate() {
        let style = point(place);
        left.marks.extend(column(place as f64, &family.functions, "average_sensitivity", &style));
        let points = family
            .fits
            .iter()
            .filter_map(|run| Some(run.point(run.value("average_sensitivity")?, run.value("sharpness")?)));
        right.marks.push(Mark::points(points, style.clone().faint(0.35).sized(2.4)));
    }
    for (place, family) in families.iter().enumerate() {
        let Some((x, y)) = Family::of(&family.fits, "average_sensitivity").zip(family.sharpness()) else { continue };
        let style = point(place).faint(1.0);
        right.marks.push(Mark::Intervals { points: vec![(x.mean, y.low, y.high)], style: style.clone() });
        right.marks.push(Mark::LevelIntervals { points: vec![(y.mean, x.low, x.high)], style: style.clone() });
        right.marks.push(Mark::points([Point::mean(x.mean, &y, family.name.as_str())], style.sized(5.0)));
    }
    Figure { panels: vec![left, right], columns: 2, legend: legend(families), ..Figure::default() }
}

fn fig_15(families: &[Family]) -> Figure {
    let names: Vec<String> = families.iter().map(short).collect();
    let panel = |title: &str, measure: &str| Panel {
        title: title.into(),
        x: Axis::linear("function").named(&names),
        y: Axis::linear("sharpness"),
        marks: families
            .iter()
            .enumerate()
            .flat_map(|(place, family)| column(place as f64, &family.fits, measure, &point(place)))
            .collect(),
    };
    let mut panels = vec![panel("On all strings", "sharpness"), panel("On the training strings", "set_sharpness")];
    let values: Vec<f64> = panels.iter().flat_map(Panel::shown_values).collect();
    let top = values.iter().copied().fold(0.0, f64::max) * 1.06;
    if top > 0.0 {
        panels.iter_mut().for_each(|panel| panel.y.range = Some((-0.02 * top, top)));
    }
    Figure { panels, columns: 2, legend: legend(families), ..Figure::default() }
}

/// The values of a family above its place on a named axis: points side by side, and their mean with its interval.
fn column(place: f64, runs: &[&Run], measure: &str, style: &Style) -> Vec<Mark> {
    let values: Vec<(f64, &&Run)> = runs.iter().filter_map(|run| Some((run.value(measure)?, run))).collect();
    let count = values.len().max(2) as f64;
    let points =
        values.iter().enumerate().map(|(i, (y, run))| run.point(place - 0.3 + 0.35 * i as f64 / (count - 1.0), *y));
    let mut marks = vec![Mark::points(points, style.clone().faint(0.35).sized(2.4))];
    if let Some(mean) = mean(&values.iter().map(|(y, _)| *y).collect::<Vec<f64>>()) {
        let bold = style.clone().faint(1.0).sized(5.0);
        marks.push(Mark::Intervals { points: vec![(place + 0.25, mean.low, mean.high)], style: bold.clone() });
        marks.push(Mark::points([Point::mean(place + 0.25, &mean, "mean")], bold));
    }
    marks
}

fn short(family: &Family) -> String {
    let digits: String = family.name.chars().filter(char::is_ascii_digit).collect();
    match family.key.as_str() {
        "original" => "f".into(),
        key if key.starts_with("completion") => format!("rnd {}", &digits),
        _ => format!("T1 {}", &digits[1..]),
    }
}

fn legend(families: &[Family]) -> Vec<(String, Style)> {
    families.iter().enumerate().map(|(place, family)| (family.name.clone(), point(place))).collect()
}
