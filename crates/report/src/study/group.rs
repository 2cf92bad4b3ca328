//! Runs of a study that differ in their seed alone, and what they have in common.

use pudica_lab::study::{Point, Study, StudyConfig, StudyRun};
use pudica_lab::{Configuration, Outcome};
use pudica_statistics::{Estimate, Mean, mean};
use serde_json::Value;

use crate::figure::colour::{PALETTE, point};
use crate::figure::{Mark, Style};

/// What of an evaluation is looked at; `None` where it was not measured.
pub type Quantity = fn(&Point) -> Option<Estimate>;

pub const TRAIN_ACCURACY: Quantity = |point| Some(Estimate::stated(point.train_accuracy, None));
pub const TRAIN_LOSS: Quantity = |point| Some(Estimate::stated(point.train_loss, None));
pub const TEST_ACCURACY: Quantity =
    |point| Some(Estimate::stated(point.test_accuracy, Some(point.test_accuracy_std_error)));
pub const TEST_LOSS: Quantity = |point| Some(Estimate::stated(point.test_loss, Some(point.test_loss_std_error)));
pub const SENSITIVITY: Quantity = |point| Some(Estimate::stated(point.sensitivity?, point.sensitivity_std_error));

/// The mean of runs with its 95 % interval: over runs where there are several; of one run, by its own standard error.
pub fn averaged(values: &[Estimate]) -> Option<Mean> {
    match values {
        [one] => Some(Mean::of_one(one)),
        several => mean(&several.iter().map(|one| one.mean).collect::<Vec<_>>()),
    }
}

/// Runs that differ in their seed alone.
pub struct Group<'a> {
    /// The recipe's sweep, and the settings that tell it from other groups of that sweep.
    pub label: String,
    /// The settings, with seed 0.
    pub config: StudyConfig,
    /// Those that have been evaluated and did not fail.
    pub runs: Vec<&'a StudyRun>,
    /// Its number, which is its colour and symbol.
    pub place: usize,
}

/// All groups, in the order of the plan.
pub fn groups(study: &Study) -> Vec<Group<'_>> {
    let failed = |run: &StudyRun| run.summary.as_ref().is_some_and(|summary| summary.outcome != Outcome::Finished);
    let mut groups: Vec<Group> = Vec::new();
    for run in study.runs.iter().filter(|run| !run.points.is_empty() && !failed(run)) {
        let config = StudyConfig { seed: 0, ..run.config.clone() };
        match groups.iter_mut().find(|group| group.config == config && group.label == run.sweep) {
            Some(group) => group.runs.push(run),
            None => {
                let place = groups.len();
                groups.push(Group { label: run.sweep.clone(), config, runs: vec![run], place });
            }
        }
    }
    tell_apart(&mut groups);
    groups
}

/// Adds to the labels of groups of the same sweep the settings that differ between them.
fn tell_apart(groups: &mut [Group]) {
    let settings: Vec<_> = groups.iter().map(|group| group.config.settings()).collect();
    let keys = settings.first().map(|settings| settings.keys()).unwrap_or_default();
    let sweeps: Vec<String> = groups.iter().map(|group| group.label.clone()).collect();
    for key in keys {
        let values: Vec<String> = settings
            .iter()
            .map(|one| {
                one.get(&key).map_or(String::new(), |value| value.as_str().map_or(value.to_string(), String::from))
            })
            .collect();
        for (place, group) in groups.iter_mut().enumerate() {
            let same_sweep = |other: &usize| sweeps[*other] == sweeps[place];
            if (0..values.len()).filter(same_sweep).any(|other| values[other] != values[place]) {
                let name = key.rsplit('.').next().unwrap_or(&key);
                group.label += &format!(", {name} {}", values[place]);
            }
        }
    }
}

impl Group<'_> {
    /// The mean over runs at every epoch that all of them were evaluated after.
    pub fn curve(&self, of: Quantity) -> Vec<(f64, Mean)> {
        let Some(first) = self.runs.first() else { return Vec::new() };
        let at = |epoch: u64| {
            let values = self.runs.iter().map(|run| run.points.iter().find(|point| point.epoch == epoch).and_then(of));
            averaged(&values.collect::<Option<Vec<_>>>()?).map(|mean| (epoch as f64, mean))
        };
        first.points.iter().filter_map(|point| at(point.epoch)).collect()
    }

    /// The mean over runs at their last evaluation.
    pub fn last(&self, of: Quantity) -> Option<Mean> {
        averaged(&self.runs.iter().filter_map(|run| run.points.last().and_then(of)).collect::<Vec<_>>())
    }

    /// The mean over runs of a measure taken at the end.
    pub fn measure(&self, name: &str) -> Option<Mean> {
        averaged(&self.runs.iter().filter_map(|run| measure(run, name)).collect::<Vec<_>>())
    }

    /// How its points look.
    pub fn symbol(&self) -> Style {
        point(self.place)
    }

    /// A line through means with a band of their intervals, as a function of what `across` makes of the epoch.
    pub fn marks(&self, curve: &[(f64, Mean)]) -> Vec<Mark> {
        let style = Style::line(PALETTE[self.place % PALETTE.len()]);
        let band = curve.iter().map(|(x, mean)| (*x, mean.low, mean.high)).collect();
        let line = curve.iter().map(|(x, mean)| (*x, mean.mean)).collect();
        let points =
            curve.iter().map(|(x, mean)| (*x, mean.mean, format!("{}: {:.4}", self.label, mean.mean))).collect();
        vec![
            Mark::Band { points: band, style: style.clone().faint(0.15) },
            Mark::Line { points: line, style },
            Mark::Points { points, style: self.symbol().sized(2.4) },
        ]
    }
}

/// A measure of a run's end with its standard error.
pub fn measure(run: &StudyRun, name: &str) -> Option<Estimate> {
    let summary = run.summary.as_ref()?;
    Some(Estimate::stated(summary.measure(name)?, summary.measure(&format!("{name}_std_error"))))
}

/// The names of all measures taken at the end of any run that begin so, without those of standard errors.
pub fn measures(groups: &[Group], prefix: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let summaries = groups.iter().flat_map(|group| &group.runs).filter_map(|run| run.summary.as_ref());
    for (name, value) in summaries.flat_map(|summary| &summary.measures) {
        if name.starts_with(prefix)
            && !name.ends_with("_std_error")
            && value.as_f64().is_some()
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    names
}

/// A mean for people: with its interval, and a word where it is of one run.
pub fn told(mean: Option<Mean>) -> String {
    use crate::experiments::number;
    match mean {
        Some(mean) if mean.low < mean.high => {
            format!("{} [{}, {}]", number(mean.mean), number(mean.low), number(mean.high))
        }
        Some(mean) => number(mean.mean),
        None => "–".into(),
    }
}

/// A mean for programs.
pub fn as_json(mean: Option<Mean>) -> Value {
    serde_json::to_value(mean).unwrap_or_default()
}
