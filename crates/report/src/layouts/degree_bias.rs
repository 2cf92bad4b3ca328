//! `hahn/degree-bias`: what networks make of strings they never saw, beside the min-degree interpolator of Abbe et al. (2023) and beside
//! their target.

use pudica_statistics::{Mean, mean};
use serde_json::{Map, Value, json};

use super::initialization::kind_title;
use crate::claims::{Claim, Parts, apart};
use crate::figure::colour::{PALETTE, point, viridis};
use crate::figure::{Axis, ColourBar, Figure, Mark, Panel, Point, Style};
use crate::findings::{Drawn, Findings, ScaleWords, Table, head, plain, with_count, with_interval};
use crate::group::band_and_line;
use crate::run::Run;
use crate::sweep::{Sweep, different};

const UNSEEN: &str = "Where networks that fit all strings they saw are on those they did not: 0 is the min-degree interpolator, 1 is the target \
    (the foot of the perpendicular on the line through both). f1 to f3 are Abbe et al.'s; random: random functions, with the strings unseen where \
    a formula is true, or so many at random. Each run a small point, means large with 95 % intervals.";
const LEARNT: &str = "Abbe et al. (2023): transformers, random features and diagonal linear networks learn the min-degree interpolator of \
    what they saw, not the target; networks with large learning rates or in the mean-field regime a leaky one.";
const TRAINING: &str = "The squared distance E (f - g)^{2} over all strings of transformers f from the min-degree interpolator and from the \
    target g through training; means over runs and their 95 % intervals.";
const EQ_17: &str = "Eq. 17 through training: the average sensitivity of transformers' outputs as they are, by flips (black), and the parts i d_{i} that \
    it is the sum of, by degree i (colours); means over runs.";
const ENTAILED: &str = "Section 6: average sensitivity is a summary of the degree profile (Eq. 17), so that a bias to low sensitivity is one \
    to low degrees.";
const BY_DEGREE: &str = "The squared distance in each degree, at the end of training, from the min-degree interpolator (above) and from the \
    target (below), log scale; means over runs that fit what they saw. What is not shown is below 10^{−5}.";

/// Runs that learn functions of one origin, of which the same strings are unseen.
struct Problem<'a> {
    title: String,
    /// Whether it is one of Abbe et al.'s.
    published: bool,
    runs: Vec<&'a Run>,
}

impl<'a> Problem<'a> {
    /// Runs of a kind of network that fit what they saw.
    fn of(&self, kind: &str) -> Vec<&'a Run> {
        self.runs.iter().copied().filter(|run| run.text("model.kind") == kind && run.is_converged()).collect()
    }

    fn mean(&self, kind: &str, measure: &str) -> Option<Mean> {
        mean(&self.of(kind).iter().filter_map(|run| run.value(measure)).collect::<Vec<_>>())
    }
}

/// The functions of Figure 1 of Abbe et al. and the strings they leave out.
const PUBLISHED: [(&str, &str, &str); 3] =
    [("triangle", "kparity:3", "f1"), ("kparity:2", "expr:x1 & x2", "f2"), ("cyclic:3", "expr:x1 & x2 & x3", "f3")];

/// What a run learns, for people, and whether that is published.
fn title(run: &Run) -> (String, bool) {
    let (target, unseen) = (run.text("target"), run.text("train.unseen"));
    let squeezed = |text: &str| text.replace(' ', "");
    let known = PUBLISHED.iter().find(|(f, rule, _)| *f == target && squeezed(rule) == squeezed(&unseen));
    if let Some((.., name)) = known {
        return (name.to_string(), true);
    }
    let name = if target.starts_with("random:") { "random".to_string() } else { target };
    let size = run.number("train.set_size").unwrap_or(0.0);
    let all = 2f64.powf(run.number("n").unwrap_or(0.0));
    let left_out = match (size, unseen.as_str()) {
        (0.0, "none" | "") => "all seen".into(),
        (0.0, rule) => rule.trim_start_matches("expr:").to_string(),
        (size, _) => format!("{:.0} %", 100.0 * (1.0 - size / all)),
    };
    (format!("{name}, {left_out}"), false)
}

const SCALE: ScaleWords = ScaleWords {
    paper: "The functions are Abbe et al.'s; the sizes are ours, chosen before any result was seen.",
    other: "The functions are Abbe et al.'s on fewer bits; the sizes are ours, chosen before any result was seen but for the number of steps, for two CPU cores and minutes.",
};

/// `hahn/degree-bias`.
pub fn findings(sweep: &Sweep) -> Findings {
    let runs: Vec<&Run> = sweep.finished().collect();
    let problem = |(title_, published): (String, bool)| Problem {
        runs: runs.iter().copied().filter(|run| title(run).0 == title_).collect(),
        title: title_,
        published,
    };
    let problems: Vec<Problem> = different(runs.iter().map(|run| title(run))).into_iter().map(problem).collect();
    let kinds = sweep.texts("model.kind");
    let followed = kinds.iter().find(|kind| *kind == "encoder").or(kinds.first()).cloned().unwrap_or_default();
    let mut findings = Findings { scale: SCALE, ..Findings::default() };
    findings.figures.push(Drawn::new(
        "unseen",
        "Between interpolator and target",
        UNSEEN,
        LEARNT,
        unseen(&problems, &kinds),
    ));
    findings.figures.push(Drawn::new(
        "training",
        "Distances through training",
        TRAINING,
        "",
        training(&problems, &followed),
    ));
    findings.figures.push(Drawn::new("eq17", "Eq. 17 through training", EQ_17, ENTAILED, eq_17(&problems, &followed)));
    findings.figures.push(Drawn::new("by-degree", "Distances by degree", BY_DEGREE, "", by_degree(&problems, &kinds)));
    findings.tables.push(table(&problems, &kinds));
    findings.claims = vec![interpolates(&problems), low_degree(&problems)];
    let numbers = |problem: &Problem| -> Value {
        let of = |kind: &String| {
            let of = |measure: &str| problem.mean(kind, measure);
            let numbers = json!({ "runs_kept": problem.of(kind).len(), "toward_target": of("toward_target"),
                "from_target": of("from_target"), "from_interpolator": of("from_interpolator"), "unseen_accuracy": of("unseen_accuracy"),
                "average_sensitivity_real": of("average_sensitivity_real"), "mean_degree": of("mean_degree") });
            (kind.clone(), numbers)
        };
        kinds.iter().map(of).collect::<Map<String, Value>>().into()
    };
    let summary: Map<String, Value> =
        problems.iter().map(|problem| (problem.title.clone(), numbers(problem))).collect();
    findings.summary.insert("by_problem".into(), summary.into());
    findings
}

fn legend(kinds: &[String]) -> Vec<(String, Style)> {
    kinds.iter().enumerate().map(|(place, kind)| (kind_title(kind), point(place))).collect()
}

fn unseen(problems: &[Problem], kinds: &[String]) -> Figure {
    let known = |problem: &&Problem| kinds.iter().any(|kind| problem.mean(kind, "toward_target").is_some());
    let shown: Vec<&Problem> = problems.iter().filter(known).collect();
    let names: Vec<String> = shown.iter().map(|problem| problem.title.clone()).collect();
    let mut marks = vec![Mark::Level(0.0, "min-degree interpolator".into()), Mark::Level(1.0, "target".into())];
    let room = 0.8 / kinds.len().max(1) as f64;
    for (row, problem) in shown.iter().enumerate() {
        for (place, kind) in kinds.iter().enumerate() {
            let x = row as f64 - 0.4 + room * (place as f64 + 0.5);
            let values = problem.of(kind).into_iter().filter_map(|run| Some((run, run.value("toward_target")?)));
            let points: Vec<Point> = values.map(|(run, value)| run.point(x - 0.2 * room, value)).collect();
            let found = mean(&points.iter().map(|point| point.y).collect::<Vec<_>>());
            marks.push(Mark::points(points, point(place).faint(0.35).sized(2.2)));
            if let Some(found) = found {
                let style = point(place).faint(1.0);
                marks.push(Mark::Intervals {
                    points: vec![(x + 0.15 * room, found.low, found.high)],
                    style: style.clone(),
                });
                let label = format!("{}, {}: mean", problem.title, kind_title(kind));
                marks.push(Mark::points([Point::mean(x + 0.15 * room, &found, label)], style.sized(4.2)));
            }
        }
    }
    let y = Axis::linear("from interpolator (0) to target (1)");
    let mut panel =
        Panel { title: "On the unseen strings".into(), x: Axis::linear("what is learnt").named(&names), y, marks };
    // Both ends are shown, wherever the networks are.
    let values = panel.shown_values().into_iter();
    let (low, high) = values.fold((-0.1, 1.1), |(low, high), value| (f64::min(low, value), f64::max(high, value)));
    panel.y.range = Some((low - 0.05, high + 0.05));
    Figure { panels: vec![panel], columns: 1, legend: legend(kinds), ..Figure::default() }
}

/// The mean over runs of a tracked quantity, at each step that all of them have.
fn curve(runs: &[&Run], name: &str) -> Vec<(f64, Mean)> {
    let curves: Vec<Vec<(f64, f64)>> =
        runs.iter().map(|run| run.curve("step", name).map(|(step, value)| (step, value.mean)).collect()).collect();
    let Some(first) = curves.first() else { return Vec::new() };
    let at = |step: f64| {
        let values = curves.iter().map(|curve| curve.iter().find(|(own, _)| *own == step).map(|(_, value)| *value));
        mean(&values.collect::<Option<Vec<f64>>>()?)
    };
    first.iter().filter_map(|(step, _)| Some((*step, at(*step)?))).collect()
}

fn columns(panels: usize) -> usize {
    if panels.is_multiple_of(2) && panels < 6 { 2 } else { 3.min(panels.max(1)) }
}

fn training(problems: &[Problem], kind: &str) -> Figure {
    let series = [("from_interpolator", "from the min-degree interpolator"), ("from_target", "from the target")];
    let panel = |problem: &Problem| Panel {
        title: problem.title.clone(),
        x: Axis::linear("step"),
        y: Axis { range: None, ..Axis::linear("squared distance") },
        marks: (series.iter().enumerate())
            .flat_map(|(place, (name, _))| band_and_line(&curve(&problem.of(kind), name), PALETTE[place], 1, 0))
            .collect(),
    };
    let panels: Vec<Panel> = problems.iter().map(panel).collect();
    let legend = series.iter().enumerate().map(|(place, (_, name))| (name.to_string(), Style::line(PALETTE[place])));
    Figure { columns: columns(panels.len()), panels, legend: legend.collect(), ..Figure::default() }
}

fn eq_17(problems: &[Problem], kind: &str) -> Figure {
    let most = problems.iter().flat_map(|problem| &problem.runs).filter_map(|run| run.number("n")).fold(1.0, f64::max);
    let panel = |problem: &Problem| {
        let runs = problem.of(kind);
        let n = runs.first().and_then(|run| run.number("n")).unwrap_or(0.0) as usize;
        let mut marks = Vec::new();
        for degree in 1..=n {
            let points = curve(&runs, &format!("degrees.{degree}")).into_iter();
            let points = points.map(|(step, weight)| (step, degree as f64 * weight.mean, format!("degree {degree}")));
            let colour = viridis((degree as f64 - 1.0) / (most - 1.0).max(1.0));
            marks.push(Mark::line(points, Style::line(&colour)));
        }
        marks.extend(band_and_line(&curve(&runs, "average_sensitivity_real"), "#111111", 1, 0));
        Panel {
            title: problem.title.clone(),
            x: Axis::linear("step"),
            y: Axis::linear("average sensitivity, and its parts"),
            marks,
        }
    };
    let panels: Vec<Panel> = problems.iter().map(panel).collect();
    Figure {
        columns: columns(panels.len()),
        panels,
        legend: vec![("average sensitivity, by flips".into(), Style::line("#111111"))],
        colour_bar: Some(ColourBar { label: "degree i".into(), low: 1.0, high: most }),
        ..Figure::default()
    }
}

fn by_degree(problems: &[Problem], kinds: &[String]) -> Figure {
    let mut panels = Vec::new();
    for (name, from) in [("from_interpolator_by_degree", "interpolator"), ("from_target_by_degree", "target")] {
        for problem in problems {
            let mut marks = Vec::new();
            for (place, kind) in kinds.iter().enumerate() {
                let profiles: Vec<Vec<Mean>> = problem.of(kind).iter().map(|run| run.profile(name)).collect();
                let degrees = profiles.iter().map(Vec::len).min().unwrap_or(0);
                let at = |degree: usize| mean(&profiles.iter().map(|profile| profile[degree].mean).collect::<Vec<_>>());
                let curve: Vec<(f64, Mean)> =
                    (0..degrees).filter_map(|degree| Some((degree as f64, at(degree)?))).collect();
                let points = curve.iter().map(|(degree, mean)| Point::mean(*degree, mean, kind_title(kind)));
                marks.push(Mark::line(
                    curve.iter().map(|(degree, mean)| (*degree, mean.mean)),
                    Style::line(PALETTE[place % PALETTE.len()]).faint(0.5),
                ));
                marks.push(Mark::points(points, point(place).sized(2.6)));
            }
            let title = format!("{}: from the {from}", problem.title);
            panels.push(Panel {
                title,
                x: Axis::whole("degree"),
                y: Axis::log("squared distance").within(1e-5, 30.0),
                marks,
            });
        }
    }
    Figure { columns: problems.len().clamp(1, 3), panels, legend: legend(kinds), ..Figure::default() }
}

/// The average sensitivity of what was to be learnt, by Eq. 17.
fn target_sensitivity(run: &Run) -> Option<f64> {
    let degrees = run.profile("references.target_degrees");
    (!degrees.is_empty()).then(|| degrees.iter().enumerate().map(|(degree, weight)| degree as f64 * weight.mean).sum())
}

fn table(problems: &[Problem], kinds: &[String]) -> Table {
    let mut rows = Vec::new();
    for problem in problems {
        for kind in kinds {
            let all = problem.runs.iter().filter(|run| run.text("model.kind") == *kind).count();
            let own = problem.of(kind);
            if all == 0 {
                continue;
            }
            let targets: Vec<f64> = own.iter().filter_map(|run| target_sensitivity(run)).collect();
            let of = |measure: &str| problem.mean(kind, measure);
            rows.push(vec![
                problem.title.as_str().into(),
                kind_title(kind).as_str().into(),
                format!("{} of {all}", own.len()).as_str().into(),
                with_interval(of("toward_target")),
                with_interval(of("from_interpolator")),
                with_interval(of("from_target")),
                with_interval(of("unseen_accuracy")),
                plain(mean(&targets)),
                with_count(of("average_sensitivity_real")),
            ]);
        }
    }
    Table {
        title: "What was learnt of the unseen".into(),
        head: head([
            "learnt",
            "network",
            "fit what they saw",
            "from interpolator (0) to target (1)",
            "distance from the interpolator",
            "distance from the target",
            "accuracy on the unseen",
            "average sensitivity of the target",
            "of the network",
        ]),
        rows,
        note: format!(
            "Distances are E (f - g)^{{2}} over all strings, on the ±1 scale. Means over runs that fit what they saw, with 95 % intervals. Both sides of Eq. 17, by flips and by degrees, differ by at most {} in any run.",
            largest_gap(problems)
        ),
    }
}

/// How far the sides of Eq. 17 are apart at most, relative to them.
fn largest_gap(problems: &[Problem]) -> String {
    let gap = |run: &&Run| {
        let (flips, degrees) = (run.value("average_sensitivity_real")?, run.value("degree_sum")?);
        Some((flips - degrees).abs() / flips.max(f64::MIN_POSITIVE))
    };
    let most = problems.iter().flat_map(|problem| &problem.runs).filter_map(gap).fold(0.0, f64::max);
    crate::findings::number(most)
}

/// Transformers on Abbe et al.'s functions.
fn interpolates(problems: &[Problem]) -> Claim {
    let mut parts = Parts::default();
    let mut runs = 0;
    for problem in problems.iter().filter(|problem| problem.published) {
        let of = |measure: &str| problem.mean("encoder", measure);
        parts.above(
            &format!("{}: distance from the target minus that from the interpolator,", problem.title),
            apart(of("from_target"), of("from_interpolator")),
        );
        runs += problem.of("encoder").len();
    }
    parts.claim(
        "unseen",
        LEARNT,
        "Are transformers on these functions nearer to the min-degree interpolator than to the target?",
        runs,
    )
}

/// Transformers on random functions.
fn low_degree(problems: &[Problem]) -> Claim {
    let mut parts = Parts::default();
    let mut runs = 0;
    for problem in problems.iter().filter(|problem| problem.title.starts_with("random,")) {
        let own = problem.of("encoder");
        let fall = |run: &&Run| Some(target_sensitivity(run)? - run.value("average_sensitivity_real")?);
        let falls = mean(&own.iter().filter_map(fall).collect::<Vec<_>>());
        parts.above(
            &format!("{}: average sensitivity of the target minus that of the network,", problem.title),
            falls.as_ref().and_then(crate::claims::single),
        );
        runs += own.len();
    }
    parts.claim(
        "eq17",
        ENTAILED,
        "Of random functions, do transformers make less sensitive ones, of lower degree by Eq. 17?",
        runs,
    )
}
