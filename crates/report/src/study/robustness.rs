//! Figures 9, 14 and 15, and attacks: how many answers stay right when the input is made worse.

use pudica_lab::study::{Point, StudyRun};
use pudica_statistics::{Estimate, Mean};

use super::Context;
use super::group::*;
use crate::experiments::{Drawn, Table};
use crate::figure::colour::PALETTE;
use crate::figure::{Axis, Figure, Mark, Panel, Style};

/// Accuracy on one corruption at one evaluation.
fn corrupted(point: &Point, corruption: &str) -> Option<Estimate> {
    point.corruptions.get(corruption).copied()
}

/// The mean accuracy over all corruptions at a run's last evaluation. They are made of the same images, so their errors are taken to go
/// together: the error of the mean is the mean of the errors.
pub fn mean_accuracy(run: &StudyRun) -> Option<Estimate> {
    let found = &run.points.last()?.corruptions;
    let count = found.len() as f64;
    (count > 0.0).then(|| {
        let mean_of = |number: fn(&Estimate) -> f64| found.values().map(number).sum::<f64>() / count;
        Estimate::stated(mean_of(|found| found.mean), Some(mean_of(Estimate::error_or_zero)))
    })
}

/// Groups that were corrupted, by severity.
fn severities<'a, 'b>(groups: &'b [Group<'a>]) -> Vec<(usize, Vec<&'b Group<'a>>)> {
    let mut found: Vec<(usize, Vec<&Group>)> = Vec::new();
    for group in groups {
        if group.runs.iter().all(|run| run.points.last().is_some_and(|point| point.corruptions.is_empty())) {
            continue;
        }
        let severity = group.config.measure.severity;
        match found.iter_mut().find(|(other, _)| *other == severity) {
            Some((_, groups)) => groups.push(group),
            None => found.push((severity, vec![group])),
        }
    }
    found
}

/// All corruptions that any of these runs met.
fn names(groups: &[&Group]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for point in groups.iter().flat_map(|group| &group.runs).filter_map(|run| run.points.last()) {
        names.extend(point.corruptions.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    }
    names
}

/// Two figures for each severity: through training, and at its end.
pub fn figures(context: &Context) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    for (severity, groups) in severities(&context.groups) {
        let names = names(&groups);
        drawn.push(context.drawn(
            &format!("corruptions-{severity}"),
            &format!("Corruptions of severity {severity}, through training"),
            "Sensitivity, accuracy on the test set as it is, and on each corruption of it, against the epoch. Bands are 95 % intervals: over runs \
             where there are several, over images where there is one.",
            through_training(&groups, &names),
        ));
        drawn.push(context.drawn(
            &format!("corruptions-{severity}-end"),
            &format!("Corruptions of severity {severity}, at the end"),
            "Accuracy at the end of training on the test set as it is, on each corruption of it, and the mean over corruptions, with 95 % \
             intervals. The legend is in the order of falling sensitivity (in parentheses).",
            at_the_end(&groups, &names),
        ));
    }
    drawn
}

fn through_training(groups: &[&Group], names: &[String]) -> Figure {
    let panel = |title: &str, marks: Vec<Mark>| Panel {
        title: title.replace('_', " "),
        x: Axis::whole(""),
        y: Axis::linear(""),
        marks,
    };
    let of = |quantity: Quantity| groups.iter().flat_map(|group| group.marks(&group.curve(quantity))).collect();
    let mut panels = vec![panel("sensitivity", of(SENSITIVITY)), panel("clean test set", of(TEST_ACCURACY))];
    for name in names {
        let marks = groups.iter().flat_map(|group| group.marks(&curve(group, name)));
        panels.push(panel(name, marks.collect()));
    }
    let legend = groups.iter().map(|group| (group.label.clone(), group.symbol())).collect();
    Figure { panels, columns: 4, legend, ..Figure::default() }
}

fn curve(group: &Group, corruption: &str) -> Vec<(f64, Mean)> {
    let Some(first) = group.runs.first() else { return Vec::new() };
    let at = |epoch: u64| {
        let of = |run: &&StudyRun| {
            run.points.iter().find(|point| point.epoch == epoch).and_then(|point| corrupted(point, corruption))
        };
        averaged(&group.runs.iter().map(of).collect::<Option<Vec<_>>>()?).map(|mean| (epoch as f64, mean))
    };
    first.points.iter().filter_map(|point| at(point.epoch)).collect()
}

fn at_the_end(groups: &[&Group], names: &[String]) -> Figure {
    let mut ordered = groups.to_vec();
    let sensitivity = |group: &Group| group.last(SENSITIVITY).map_or(0.0, |mean| mean.mean);
    ordered.sort_by(|a, b| sensitivity(b).total_cmp(&sensitivity(a)));
    let columns: Vec<String> = ["clean".to_string(), "mean".into()].into_iter().chain(names.iter().cloned()).collect();
    let mut marks = Vec::new();
    for (place, group) in ordered.iter().enumerate() {
        let values = std::iter::once(group.last(TEST_ACCURACY))
            .chain([averaged(&group.runs.iter().filter_map(|run| mean_accuracy(run)).collect::<Vec<_>>())])
            .chain(names.iter().map(|name| {
                let of = |run: &&StudyRun| run.points.last().and_then(|point| corrupted(point, name));
                averaged(&group.runs.iter().filter_map(of).collect::<Vec<_>>())
            }));
        // Side by side within a column.
        let offset = if ordered.len() > 1 { 0.7 * (place as f64 / (ordered.len() - 1) as f64 - 0.5) } else { 0.0 };
        let placed: Vec<(f64, Mean)> =
            values.enumerate().filter_map(|(column, mean)| Some((column as f64 + offset, mean?))).collect();
        let bars = placed.iter().map(|(x, mean)| (*x, mean.low, mean.high)).collect();
        let told = |mean: &Mean| format!("{}: {:.4}", group.label, mean.mean);
        let points = placed.iter().map(|(x, mean)| (*x, mean.mean, told(mean))).collect();
        marks.push(Mark::Intervals { points: bars, style: Style::line(PALETTE[group.place % PALETTE.len()]) });
        marks.push(Mark::Points { points, style: group.symbol() });
    }
    let words: Vec<String> = columns.iter().map(|name| name.replace('_', " ")).collect();
    let panel = Panel { title: String::new(), x: Axis::linear("").named(&words), y: Axis::linear("accuracy"), marks };
    let name = |group: &&Group| format!("{} ({:.4})", group.label, sensitivity(group));
    let legend = ordered.iter().map(|group| (name(group), group.symbol())).collect();
    Figure { panels: vec![panel], columns: 1, legend, ..Figure::default() }
}

/// Accuracy under attack; `None` where nothing was attacked.
pub fn attacks(context: &Context) -> Option<Table> {
    let attacks = measures(&context.groups, "adversarial_");
    if attacks.is_empty() {
        return None;
    }
    let row = |group: &Group| {
        let cells = attacks.iter().map(|name| told(group.measure(name)));
        let ends = [told(group.last(TEST_ACCURACY)), told(group.last(SENSITIVITY))];
        std::iter::once(group.label.clone()).chain(ends).chain(cells).chain([group.runs.len().to_string()]).collect()
    };
    let name = |name: &String| name.trim_start_matches("adversarial_").replace('_', " ");
    let head = ["network", "clean", "sensitivity"].map(String::from).into_iter().chain(attacks.iter().map(name));
    Some(Table {
        title: "Accuracy under attack".into(),
        head: head.chain(["runs".into()]).collect(),
        rows: context.groups.iter().map(row).collect(),
        note: "Share of test images still classified right when each is moved, by at most the distance named, to where the loss is largest: \
               fgsm in one step, pgd in several; linf bounds every pixel (of values 0 to 1), l2 the length of the whole change. Brackets: 95 % intervals. \
               The final version of the paper names adversarial evaluation without numbers."
            .into(),
    })
}
