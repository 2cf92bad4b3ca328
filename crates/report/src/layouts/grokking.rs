//! `vasudeva/grokking`: whether sensitivity falls before the test accuracy rises.

use pudica_lab::kinds::grokking::onset::{GENERALISES, HOLD, LEAST_FALL, MEMORISED, SMOOTHING};
use pudica_statistics::Mean;
use serde_json::{Map, Value, json};

use crate::claims::{Claim, Parts, single};
use crate::figure::colour::PALETTE;
use crate::figure::{Axis, Figure, Mark, Panel, Point, Shape, Style};
use crate::findings::{Drawn, Findings, ScaleWords, Table, head, row, with_count};
use crate::group::{Group, averaged};
use crate::run::{Run, estimate};
use crate::sweep::Sweep;

/// The moments of a run, in epochs: what a summary calls them, for people, and on an axis.
const MOMENTS: [(&str, &str, &str); 5] = [
    ("memorised", "memorised", "memorised"),
    ("sensitivity_fall_start", "sensitivity starts to fall", "sensitivity, start"),
    ("test_rise_start", "test accuracy starts to rise", "test, start"),
    ("sensitivity_fall_half", "sensitivity has fallen halfway", "sensitivity, half"),
    ("test_rise_half", "test accuracy has risen halfway", "test, half"),
];

/// Epochs by which sensitivity is ahead: a name, for people, and the moments between which they are.
const LAGS: [(&str, &str, [&str; 2]); 2] = [
    ("lag_of_starts", "lag between the starts", ["sensitivity_fall_start", "test_rise_start"]),
    ("lag_of_halves", "lag between the halves", ["sensitivity_fall_half", "test_rise_half"]),
];

/// The quantities of which the last value is given.
const QUANTITIES: [&str; 6] =
    ["train_loss", "train_accuracy", "test_loss", "test_accuracy", "sensitivity", "weight_norm"];

/// Panels from top to bottom: the axis' name, its curves with their colours, and the moments marked in it.
struct Row {
    name: &'static str,
    log: bool,
    curves: &'static [(usize, &'static str)],
    marked: &'static [&'static str],
}

const ROWS: [Row; 4] = [
    Row {
        name: "accuracy",
        log: false,
        curves: &[(6, "train_accuracy"), (1, "test_accuracy")],
        marked: &["test_rise_start", "test_rise_half"],
    },
    Row {
        name: "sensitivity",
        log: false,
        curves: &[(0, "sensitivity")],
        marked: &["sensitivity_fall_start", "sensitivity_fall_half"],
    },
    Row {
        name: "loss",
        log: true,
        curves: &[(6, "train_loss"), (1, "test_loss")],
        marked: &["test_rise_start", "test_rise_half"],
    },
    Row { name: "weight norm", log: false, curves: &[(2, "weight_norm")], marked: &[] },
];

/// Points of a curve that are drawn, at most: evenly spaced on the axis, which is logarithmic.
const DRAWN: usize = 300;

const CURVES: &str = "Columns are what is learnt; every run is a line. From top to bottom: fraction of right results on training and test pairs; \
    share of training pairs whose answer changes under noise on both embeddings; cross-entropy; Euclidean norm of all parameters. Dashed: \
    where the test accuracy (sensitivity, in its own panel) has changed by a tenth and by half, mean over runs. Epochs are on a log scale.";
const PUBLISHED: &str = "Sensitivity falls before the test accuracy rises.";
const ONSETS: &str = "Epochs (log scale) at which each run memorises, at which its sensitivity and its test accuracy start to change (a tenth of \
    the change is done) and at which half of it is done. Large symbols with bars: means over runs and 95 % intervals.";

const SCALE: ScaleWords = ScaleWords {
    paper: "The published settings. AdamW's betas (0.9, 0.98) and the initial weights are those of Nanda et al. (2023), whose network this is; no biases, no warm-up.",
    other: "A smoke test: not the published settings. Where it disagrees with the paper, that may be its size.",
};

/// Curves with the moments marked, the moments of all runs, and tables of both.
pub fn findings(sweep: &Sweep) -> Findings {
    let groups = sweep.groups(|run| format!("{} mod {}", run.text("operation"), run.text("modulus")));
    let definitions = json!({"smoothing": SMOOTHING, "hold": HOLD, "memorised": MEMORISED, "generalises": GENERALISES,
        "least_fall": LEAST_FALL});
    let groups_found: Value = groups.iter().map(summary).collect();
    Findings {
        figures: vec![
            Drawn::new("grokking", "Curves", CURVES, PUBLISHED, curves(&groups)),
            Drawn::new("onsets", "What comes first", ONSETS, PUBLISHED, onsets(&groups)),
        ],
        tables: vec![moment_table(&groups), end_table(&groups)],
        summary: Map::from_iter([("definitions".to_string(), definitions), ("groups".to_string(), groups_found)]),
        claims: claims(&groups),
        scale: SCALE,
        ..Findings::default()
    }
}

/// The mean over runs of each moment and each lag, by name.
fn moments(group: &Group) -> impl Iterator<Item = (&'static str, Option<Mean>)> {
    let lag = |[from, to]: [&str; 2]| {
        let of = |run: &&Run| Some(estimate(run.value(to)? - run.value(from)?, None));
        averaged(group.runs.iter().filter_map(of))
    };
    MOMENTS.map(|(name, ..)| (name, group.value(name))).into_iter().chain(LAGS.map(|(name, _, ends)| (name, lag(ends))))
}

/// Sensitivity against test accuracy, by the halves and by the starts of their changes, run by run.
fn claims(groups: &[Group]) -> Vec<Claim> {
    let claim = |(name, words, ends): &(&str, &str, [&str; 2])| {
        let mut parts = Parts::default();
        let mut runs = 0;
        for group in groups {
            let lag = moments(group).find(|(own, _)| own == name).and_then(|(_, lag)| lag);
            runs += lag.map_or(0, |lag| lag.count);
            let label = if groups.len() > 1 {
                format!("{}: {words}, epochs,", group.label)
            } else {
                format!("{words}, epochs,")
            };
            parts.above(&label, lag.as_ref().and_then(single));
        }
        let moment = if ends[0].ends_with("half") {
            "fallen halfway before test accuracy has risen halfway"
        } else {
            "started to fall before test accuracy starts to rise"
        };
        parts.claim("onsets", PUBLISHED, &format!("Has sensitivity {moment}?"), runs)
    };
    LAGS.iter().rev().map(claim).collect()
}

/// How many of its runs have grokked.
fn grokked(group: &Group) -> usize {
    group.runs.iter().filter(|run| run.value("test_rise_half").is_some()).count()
}

fn summary(group: &Group) -> Value {
    let run = |run: &&Run| {
        let onsets: Map<String, Value> =
            MOMENTS.iter().map(|(name, ..)| (name.to_string(), json!(run.value(name)))).collect();
        json!({"id": run.record.id, "seed": run.settings.get("seed"), "onsets": onsets})
    };
    let last = QUANTITIES.iter().map(|name| (name.to_string(), json!(group.value(name))));
    json!({
        "settings": group.settings(), "grokked": grokked(group), "runs": group.runs.iter().map(run).collect::<Vec<_>>(),
        "moments": moments(group).map(|(name, mean)| (name.to_string(), json!(mean))).collect::<Map<_, _>>(),
        "final": last.collect::<Map<_, _>>(),
    })
}

fn moment_table(groups: &[Group]) -> Table {
    // Without the sign of what is rounded to 0.
    let whole = |epochs: f64| format!("{:.0}", epochs.round() + 0.0).replace('-', "−");
    let cell = |mean: Option<Mean>| match mean {
        Some(mean) if mean.count == 1 => format!("{} (1 run)", whole(mean.mean)),
        Some(mean) => format!("{} [{}, {}]", whole(mean.mean), whole(mean.low), whole(mean.high)),
        None => "–".into(),
    };
    let line = |group: &Group| {
        let cells = moments(group).map(|(_, mean)| cell(mean));
        let grokked = format!("{} of {}", grokked(group), group.runs.len());
        row(std::iter::once(group.label.clone()).chain(cells).chain([grokked]))
    };
    let names = MOMENTS.iter().map(|(_, name, _)| *name).chain(LAGS.iter().map(|(_, name, _)| *name));
    Table {
        title: "Epochs at which it happens".into(),
        head: ["learnt"].into_iter().chain(names).chain(["grokked"]).map(String::from).collect(),
        rows: groups.iter().map(line).collect(),
        note: format!(
            "Means over finished runs with 95 % intervals. Curves are smoothed over {SMOOTHING} epochs. Memorised: training accuracy of {MEMORISED}. \
             From there on, test accuracy rises from its level then to its highest one, and sensitivity falls from its highest level before \
             the middle of that rise to its lowest one after. A change starts where a tenth of it is done and is halfway where half of it is, \
             and stays so for {HOLD} epochs. A lag above 0: sensitivity is first. A run has grokked if its test accuracy reaches {GENERALISES}."
        ),
    }
}

fn end_table(groups: &[Group]) -> Table {
    let line = |group: &Group| {
        let cells = QUANTITIES.iter().map(|name| with_count(group.shown(name)));
        let pairs = group.number("share").zip(group.number("modulus")).map(|(share, p)| share * (p * p));
        let errors = group.runs.iter().filter_map(|run| run.value("sensitivity_std_error"));
        let last = row([pairs.map(f64::floor), errors.reduce(f64::max)]);
        std::iter::once(group.label.clone().into()).chain(cells).chain(last).collect()
    };
    let names = QUANTITIES.iter().map(|name| name.replace('_', " "));
    let last = head(["training pairs", "std. error of a run's sensitivity, at most"]);
    Table {
        title: "At the end".into(),
        head: head(["learnt"]).into_iter().chain(names).chain(last).collect(),
        rows: groups.iter().map(line).collect(),
        note: "Means over runs with 95 % intervals, at the last epoch of each.".into(),
    }
}

fn curves(groups: &[Group]) -> Figure {
    // One group has its four panels in a square; several have a column each, three beside each other.
    let (together, columns) =
        if groups.len() == 1 { (1, 2) } else { (groups.len().clamp(1, 3), groups.len().clamp(1, 3)) };
    let mut panels = Vec::new();
    for some in groups.chunks(together) {
        for (place, row) in ROWS.iter().enumerate() {
            for group in some {
                let title = if place == 0 { group.label.clone() } else { String::new() };
                let label = if place + columns / together >= ROWS.len() { "epoch" } else { "" };
                let last = group.runs.iter().filter_map(|run| run.value("step")).fold(2.0, f64::max);
                let y = match (row.log, row.name) {
                    (true, _) => Axis::log(row.name),
                    (false, "accuracy") => Axis::linear(row.name).within(-0.02, 1.02),
                    (false, _) => Axis::linear(row.name),
                };
                let moments = row.marked.iter().filter_map(|name| group.value(name));
                let mut marks: Vec<Mark> = moments.map(|moment| Mark::Moment(moment.mean)).collect();
                for (colour, name) in row.curves {
                    marks.extend(group.runs.iter().map(|run| line(run, *colour, name)));
                }
                panels.push(Panel { title, x: Axis::log(label).within(1.0, last), y, marks });
            }
            // A last row with fewer groups keeps its columns.
            let blank = || Panel { title: String::new(), x: Axis::linear(""), y: Axis::linear(""), marks: Vec::new() };
            panels.extend((some.len()..together).map(|_| blank()));
        }
    }
    let named = [("training pairs", 6), ("test pairs", 1), ("sensitivity", 0), ("norm", 2)];
    let legend = named.map(|(name, place)| (name.to_string(), Style::line(PALETTE[place]))).into();
    Figure { panels, columns, legend, ..Figure::default() }
}

fn line(run: &Run, colour: usize, name: &str) -> Mark {
    let points: Vec<(f64, f64)> = run.curve("step", name).map(|(epoch, value)| (epoch, value.mean)).collect();
    Mark::line(thinned(&points), Style::line(PALETTE[colour]).sized(0.6).faint(0.8))
}

/// Epochs from 1 on, evenly spaced on a log axis.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let last = points.len().saturating_sub(1).max(1) as f64;
    let mut places: Vec<usize> =
        (0..=DRAWN).map(|step| last.powf(step as f64 / DRAWN as f64).round() as usize).collect();
    places.dedup();
    places.into_iter().filter_map(|place| points.get(place).copied()).collect()
}

fn onsets(groups: &[Group]) -> Figure {
    let panel = |group: &Group| {
        let (mut all, mut means, mut bars) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (moment, name, _)) in MOMENTS.iter().enumerate() {
            let x = place as f64;
            for run in &group.runs {
                all.extend(run.value(moment).map(|epoch| run.point(x, epoch.max(1.0))));
            }
            if let Some(mean) = group.value(moment) {
                means.push(Point::mean(x, &Mean { mean: mean.mean.max(1.0), ..mean }, *name));
                bars.push((x, mean.low.max(1.0), mean.high));
            }
        }
        let marks = vec![
            Mark::points(all, Style::point(PALETTE[5], Shape::Circle).faint(0.6)),
            Mark::Intervals { points: bars, style: Style::line(PALETTE[6]) },
            Mark::points(means, Style::point(PALETTE[0], Shape::Diamond).sized(4.5).faint(1.0)),
        ];
        let names = MOMENTS.map(|(_, _, short)| short.to_string());
        Panel { title: group.label.clone(), x: Axis::linear("").named(&names), y: Axis::log("epoch"), marks }
    };
    Figure { panels: groups.iter().map(panel).collect(), columns: 1, ..Figure::default() }
}
