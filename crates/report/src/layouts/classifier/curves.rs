//! Figures 4 to 7, 11 to 13 and 16 to 19: how training went, and sensitivity through it, also at equal training accuracy.

use pudica_statistics::Mean;
use serde_json::{Value, json};

use super::Context;
use crate::figure::{Axis, Figure, Mark, Panel};
use crate::findings::{Drawn, Table, head, number, plain, with_interval};
use crate::group::averaged;
use crate::published::final_sensitivity;
use crate::run::{Run, estimate};

/// Loss and accuracy on both sets against the epoch.
pub fn training(context: &Context) -> Drawn {
    let panel = |title: &str, y: Axis, name: &str| Panel {
        title: title.into(),
        x: Axis::whole("epoch"),
        y,
        marks: context.groups.iter().flat_map(|group| group.marks(&group.curve("epoch", name))).collect(),
    };
    let panels = vec![
        panel("Training set", Axis::fraction("accuracy"), "train_accuracy"),
        panel("Test set", Axis::fraction("accuracy"), "test_accuracy"),
        panel("Training set", Axis::log("cross-entropy"), "train_loss"),
        panel("Test set", Axis::log("cross-entropy"), "test_loss"),
    ];
    context.drawn(
        "training",
        "Training",
        "Accuracy and cross-entropy on the training and the test set. Lines are means over runs, bands 95 % intervals: over runs where there \
         are three or more, over inputs where there is one.",
        Figure { panels, columns: 2, legend: context.legend(), ..Figure::default() },
    )
}

/// Sensitivity against the epoch and against the training accuracy; `None` where it was not measured.
pub fn sensitivity(context: &Context) -> Option<Drawn> {
    let mut by_epoch = Vec::new();
    let mut by_accuracy = Vec::new();
    for group in &context.groups {
        let curve = group.curve("epoch", "sensitivity");
        let accuracy = group.curve("epoch", "train_accuracy");
        let at = |epoch: f64| accuracy.iter().find(|(other, _)| *other == epoch).map(|(_, mean)| mean.mean);
        let across: Vec<(f64, Mean)> = curve.iter().filter_map(|(epoch, mean)| Some((at(*epoch)?, *mean))).collect();
        by_epoch.extend(group.marks(&curve));
        by_accuracy.extend(group.path(&across));
    }
    if by_epoch.iter().all(|mark| matches!(mark, Mark::Line { points, .. } if points.is_empty())) {
        return None;
    }
    let panels = vec![
        Panel { title: String::new(), x: Axis::whole("epoch"), y: Axis::fraction("sensitivity"), marks: by_epoch },
        Panel {
            title: String::new(),
            x: Axis::fraction("training accuracy"),
            y: Axis::fraction("sensitivity"),
            marks: by_accuracy,
        },
    ];
    Some(context.drawn(
        "sensitivity",
        "Sensitivity",
        "Fraction of touches that change the predicted class, through training (left) and at the same training accuracy (right). Bands and bars are \
         95 % intervals: over runs where there are three or more, over inputs where there is one.",
        Figure { panels, columns: 2, legend: context.legend(), ..Figure::default() },
    ))
}

/// A run where its training accuracy first reached some level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matched {
    /// Epochs until then, by linear interpolation between evaluations.
    pub epoch: f64,
    /// The accuracy: the level, or more where the first evaluation was already beyond it.
    pub accuracy: f64,
    /// Sensitivity there, likewise.
    pub sensitivity: Mean,
}

/// A run's evaluations that measured its sensitivity: epoch, training accuracy and sensitivity.
fn evaluations(run: &Run) -> Vec<(f64, f64, Mean)> {
    let accuracies: Vec<(f64, Mean)> = run.curve("epoch", "train_accuracy").collect();
    let at = |epoch: f64| accuracies.iter().find(|(other, _)| *other == epoch).map(|(_, accuracy)| accuracy.mean);
    run.curve("epoch", "sensitivity").filter_map(|(epoch, found)| Some((epoch, at(epoch)?, found))).collect()
}

/// Where a run's training accuracy first reached a level, among the evaluations that measured its sensitivity.
pub fn at_accuracy(run: &Run, level: f64) -> Option<Matched> {
    let points = evaluations(run);
    let reached = points.iter().position(|(_, accuracy, _)| *accuracy >= level)?;
    let (epoch, accuracy, sensitivity) = points[reached];
    let Some(before) = reached.checked_sub(1) else { return Some(Matched { epoch, accuracy, sensitivity }) };
    let (epoch_before, accuracy_before, before) = points[before];
    let part = (level - accuracy_before) / (accuracy - accuracy_before);
    let mix = |from: f64, to: f64| from + part * (to - from);
    let std_error = ((1.0 - part) * before.std_error).hypot(part * sensitivity.std_error);
    Some(Matched {
        epoch: mix(epoch_before, epoch),
        accuracy: level,
        sensitivity: estimate(mix(before.mean, sensitivity.mean), Some(std_error)),
    })
}

/// The largest training accuracy that every run reached.
pub fn common_accuracy<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<f64> {
    let highest = |run: &Run| evaluations(run).into_iter().map(|(_, accuracy, _)| accuracy).reduce(f64::max);
    runs.map(highest).collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::min)
}

/// The comparison at equal training accuracy, and at the end beside what was published.
pub fn matched_table(context: &Context) -> Option<(Table, Value)> {
    let level = common_accuracy(context.runs())?;
    let (mut rows, mut summary) = (Vec::new(), Vec::new());
    let (mut most, mut beyond) = (0.0f64, 0usize);
    for group in &context.groups {
        let matched: Vec<Matched> = group.runs.iter().filter_map(|run| at_accuracy(run, level)).collect();
        let sensitivity = averaged(matched.iter().map(|one| one.sensitivity));
        let epochs = averaged(matched.iter().map(|one| estimate(one.epoch, None)));
        beyond += matched.iter().filter(|one| one.accuracy > level).count();
        most = matched.iter().fold(most, |most, one| most.max(one.accuracy - level));
        let published = context.shows_published.then(|| final_sensitivity(group.first())).flatten();
        let mut row = vec![
            group.label.clone().into(),
            with_interval(sensitivity.map(|mean| group.possible("sensitivity", mean))),
            plain(epochs),
            with_interval(group.shown("sensitivity")),
        ];
        if context.shows_published {
            row.push(published.into());
        }
        row.extend(["train_accuracy", "test_accuracy"].map(|name| with_interval(group.shown(name))));
        row.push(group.runs.len().into());
        rows.push(row);
        summary.push(json!({
            "label": group.label, "sensitivity": sensitivity, "epoch": epochs, "published_final": published,
        }));
    }
    let mut names =
        head(["network", "sensitivity at equal training accuracy", "reached after epochs", "sensitivity at the end"]);
    names.extend(context.shows_published.then(|| "published at the end".to_string()));
    names.extend(head(["training accuracy at the end", "test accuracy at the end", "runs"]));
    let how = match beyond {
        0 => "All runs are compared at exactly that accuracy, by linear interpolation between evaluations.".to_string(),
        count => format!(
            "{} beyond it at the first evaluation, by up to {}, and compared there; the others are at exactly that accuracy, by linear \
             interpolation between evaluations.",
            if count == 1 { "1 run was".into() } else { format!("{count} runs were") },
            number(most)
        ),
    };
    let note = format!(
        "The largest training accuracy that every run reached is {level:.4}. {how} Brackets: 95 % intervals, over runs where there are several, \
         over inputs where there is one."
    );
    let table =
        Table { title: "Sensitivity at equal training accuracy, and at the end".into(), head: names, rows, note };
    Some((table, json!({"training_accuracy": level, "beyond_at_first_evaluation": beyond, "groups": summary})))
}
