//! Figures 9, 14 and 15, and attacks: how many answers stay right when the input is made worse.

use pudica_statistics::{Mean, Range};

use super::Context;
use crate::figure::{Axis, Figure, Mark, Panel, Point, Style};
use crate::findings::{Drawn, Table, head, with_interval};
use crate::group::{Group, averaged, measure_names};
use crate::run::{Run, estimate};

/// What the accuracy on a corruption is logged under, before the corruption's name.
const CORRUPTED: &str = "corruptions.";

/// The mean accuracy over all corruptions at a run's last evaluation. They are made of the same images, so their errors are taken to go
/// together: the error of the mean is the mean of the errors.
pub fn mean_accuracy(run: &Run) -> Option<Mean> {
    let found: Vec<Mean> = run.logged(CORRUPTED).filter_map(|name| run.estimate(name)).collect();
    let mean = |of: fn(&Mean) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
    (!found.is_empty()).then(|| estimate(mean(|one| one.mean), Some(mean(|one| one.std_error))))
}

/// Groups that were corrupted, by severity.
fn severities<'a, 'b>(groups: &'b [Group<'a>]) -> Vec<(String, Vec<&'b Group<'a>>)> {
    let mut found: Vec<(String, Vec<&Group>)> = Vec::new();
    for group in groups.iter().filter(|group| group.runs.iter().any(|run| run.logged(CORRUPTED).next().is_some())) {
        let severity = group.text("measure.severity");
        match found.iter_mut().find(|(other, _)| *other == severity) {
            Some((_, groups)) => groups.push(group),
            None => found.push((severity, vec![group])),
        }
    }
    found
}

/// All corruptions that any of these runs met, as they are logged.
fn names<'a>(groups: &[&Group<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in groups.iter().flat_map(|group| &group.runs).flat_map(|run| run.logged(CORRUPTED)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A corruption's name for people.
fn words(name: &str) -> String {
    name.trim_start_matches(CORRUPTED).replace('_', " ")
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
             where there are three or more, over images where there is one.",
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

fn through_training(groups: &[&Group], names: &[&str]) -> Figure {
    let panel = |title: &str, name: &str| Panel {
        title: title.into(),
        x: Axis::whole(""),
        y: Axis::fraction(""),
        marks: groups.iter().flat_map(|group| group.marks(&group.curve("epoch", name))).collect(),
    };
    let mut panels = vec![panel("sensitivity", "sensitivity"), panel("clean test set", "test_accuracy")];
    panels.extend(names.iter().map(|name| panel(&words(name), name)));
    let legend = groups.iter().map(|group| (group.label.clone(), group.symbol())).collect();
    Figure { panels, columns: 4, legend, ..Figure::default() }
}

fn at_the_end(groups: &[&Group], names: &[&str]) -> Figure {
    let mut ordered = groups.to_vec();
    let sensitivity = |group: &Group| group.value("sensitivity").map_or(0.0, |mean| mean.mean);
    ordered.sort_by(|a, b| sensitivity(b).total_cmp(&sensitivity(a)));
    let mut marks = Vec::new();
    for (place, group) in ordered.iter().enumerate() {
        let overall = averaged(group.runs.iter().filter_map(|run| mean_accuracy(run)));
        let overall = overall.map(|mean| mean.within(Range::Fraction));
        let values =
            [group.shown("test_accuracy"), overall].into_iter().chain(names.iter().map(|name| group.shown(name)));
        // Side by side within a column.
        let offset = if ordered.len() > 1 { 0.7 * (place as f64 / (ordered.len() - 1) as f64 - 0.5) } else { 0.0 };
        let placed: Vec<(f64, Mean)> =
            values.enumerate().filter_map(|(column, mean)| Some((column as f64 + offset, mean?))).collect();
        let bars = placed.iter().map(|(x, mean)| (*x, mean.low, mean.high)).collect();
        let points: Vec<Point> = placed.iter().map(|(x, mean)| Point::mean(*x, mean, group.label.as_str())).collect();
        marks.push(Mark::Intervals { points: bars, style: Style::line(group.colour()) });
        marks.push(Mark::points(points, group.symbol()));
    }
    let words: Vec<String> = head(["clean", "mean"]).into_iter().chain(names.iter().map(|name| words(name))).collect();
    let panel = Panel { title: String::new(), x: Axis::linear("").named(&words), y: Axis::fraction("accuracy"), marks };
    let name = |group: &&Group| format!("{} ({:.4})", group.label, sensitivity(group));
    let legend = ordered.iter().map(|group| (name(group), group.symbol())).collect();
    Figure { panels: vec![panel], columns: 1, legend, ..Figure::default() }
}

/// Accuracy under attack; `None` where nothing was attacked.
pub fn attacks(context: &Context) -> Option<Table> {
    let attacks = measure_names(context.groups.iter().flat_map(|group| &group.runs).copied(), "adversarial_");
    if attacks.is_empty() {
        return None;
    }
    let row = |group: &Group| {
        let numbers =
            ["test_accuracy", "sensitivity"].iter().chain(&attacks).map(|name| with_interval(group.shown(name)));
        std::iter::once(group.label.clone().into()).chain(numbers).chain([group.runs.len().into()]).collect()
    };
    let names = attacks.iter().map(|name| name.trim_start_matches("adversarial_").replace('_', " "));
    let head = head(["network", "clean", "sensitivity"]).into_iter().chain(names);
    Some(Table {
        title: "Accuracy under attack".into(),
        head: head.chain(["runs".into()]).collect(),
        rows: context.groups.iter().map(row).collect(),
        note: "Fraction of test images still classified right when each is moved, by at most the distance named, to where the loss is largest: \
               fgsm in one step, pgd in several; linf bounds every pixel (of values 0 to 1), l2 the length of the whole change. Brackets: 95 % intervals."
            .into(),
    })
}
