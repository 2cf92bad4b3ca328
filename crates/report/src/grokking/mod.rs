//! The report of `vasudeva/grokking`: whether sensitivity falls before the test accuracy rises.

mod figures;

use std::fmt::Write;
use std::path::Path;

use pudica_lab::grokking::onset::{GENERALISES, HOLD, LEAST_FALL, MEMORISED, SMOOTHING};
use pudica_lab::grokking::{GrokkingConfig, GrokkingPoint, GrokkingRun, Onsets, read_grokking};
use pudica_lab::store::SweepRecord;
use pudica_lab::{Configuration, Outcome, Result, Tally};
use pudica_statistics::{Mean, mean};
use serde_json::{Map, Value, json};

use crate::experiments::{Findings, Table, number, with_interval};
use crate::sweep::tally;
use crate::{Report, figure_files, page, write_text};

/// Writes `results.csv`, `summary.json`, `figures/` and `report.html` into the folder of the experiment, finished or not.
pub fn write_grokking(folder: &Path) -> Result<Report> {
    let (record, runs) = read_grokking(folder)?;
    let tally = tally(record.runs.len(), runs.iter().filter_map(|run| run.summary.as_ref()));
    let groups = groups(&runs);
    let findings = Findings {
        figures: figures::draw(&record, &tally, &groups),
        tables: vec![lag_table(&groups), end_table(&groups)],
        summary: Map::new(),
    };
    let summary = json!({
        "recipe": record.recipe, "scale": record.scale, "overrides": record.overrides, "command": record.command,
        "runs": {"planned": tally.runs, "finished": tally.converged, "failed": tally.failed, "remaining": tally.remaining},
        "seconds_of_computing": tally.seconds,
        "definitions": {"smoothing": SMOOTHING, "hold": HOLD, "memorised": MEMORISED, "generalises": GENERALISES, "least_fall": LEAST_FALL},
        "groups": groups.iter().map(Group::summary).collect::<Vec<_>>(),
    });
    write_text(&folder.join("summary.json"), &format!("{summary:#}\n"))?;
    write_text(&folder.join("results.csv"), &one_row_a_run(&groups))?;
    let figures = figure_files(folder, &findings.figures)?;
    let page = folder.join("report.html");
    write_text(&page, &html(&record, &runs, &findings, &tally))?;
    Ok(Report { page, figures, tally })
}

/// Runs that differ in their seed alone.
struct Group<'a> {
    /// What is learnt, and what else tells it from the other groups.
    label: String,
    config: GrokkingConfig,
    runs: Vec<(&'a GrokkingRun, Onsets)>,
}

/// Groups of the runs that have measured anything and did not fail.
fn groups(runs: &[GrokkingRun]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    let failed = |run: &GrokkingRun| run.summary.as_ref().is_some_and(|summary| summary.outcome != Outcome::Finished);
    for run in runs.iter().filter(|run| !run.points.is_empty() && !failed(run)) {
        let config = run.config.without_seed();
        let measured = (run, Onsets::of(&run.points));
        match groups.iter_mut().find(|group| group.config == config) {
            Some(group) => group.runs.push(measured),
            None => groups.push(Group { label: config.task_label(), config, runs: vec![measured] }),
        }
    }
    // Where the task alone does not tell groups apart, the other settings that differ do.
    let settings: Vec<_> = groups.iter().map(|group| group.config.settings()).collect();
    let keys = settings.first().map(|settings| settings.keys()).unwrap_or_default();
    for key in keys.iter().filter(|key| !["modulus", "operation", "seed"].contains(&key.as_str())) {
        let values: Vec<String> =
            settings.iter().map(|one| one.get(key).map(Value::to_string).unwrap_or_default()).collect();
        if values.iter().any(|value| *value != values[0]) {
            for (group, value) in groups.iter_mut().zip(values) {
                group.label += &format!(", {key}={value}");
            }
        }
    }
    groups
}

/// A moment of a run.
type Moment = fn(&Onsets) -> Option<f64>;

/// The moments that are told, with their names in summary.json and for people.
const MOMENTS: [(&str, &str, Moment); 5] = [
    ("memorised", "memorised", |onsets| onsets.memorised.map(|epoch| epoch as f64)),
    ("sensitivity_fall_start", "sensitivity starts to fall", |onsets| onsets.fall.map(|fall| fall.start as f64)),
    ("test_rise_start", "test accuracy starts to rise", |onsets| onsets.rise.map(|rise| rise.start as f64)),
    ("sensitivity_fall_half", "sensitivity has fallen halfway", |onsets| onsets.fall.map(|fall| fall.half as f64)),
    ("test_rise_half", "test accuracy has risen halfway", |onsets| onsets.rise.map(|rise| rise.half as f64)),
];

/// Epochs by which sensitivity is ahead.
const LAGS: [(&str, &str, Moment); 2] = [
    ("lag_of_starts", "lag between the starts", Onsets::lag_of_starts),
    ("lag_of_halves", "lag between the halves", Onsets::lag_of_halves),
];

/// A number of an epoch.
type Quantity = fn(&GrokkingPoint) -> f64;

const QUANTITIES: [(&str, Quantity); 6] = [
    ("train_loss", |point| point.train_loss),
    ("train_accuracy", |point| point.train_accuracy),
    ("test_loss", |point| point.test_loss),
    ("test_accuracy", |point| point.test_accuracy),
    ("sensitivity", |point| point.sensitivity),
    ("weight_norm", |point| point.weight_norm),
];

impl Group<'_> {
    /// The mean of a moment over the runs that have it.
    fn moment(&self, of: Moment) -> Option<Mean> {
        mean(&self.runs.iter().filter_map(|(_, onsets)| of(onsets)).collect::<Vec<_>>())
    }

    /// The mean of a quantity at the last epoch of each run.
    fn last(&self, of: Quantity) -> Option<Mean> {
        mean(&self.runs.iter().filter_map(|(run, _)| run.points.last().map(of)).collect::<Vec<_>>())
    }

    fn grokked(&self) -> usize {
        self.runs.iter().filter(|(_, onsets)| onsets.rise.is_some()).count()
    }

    fn summary(&self) -> Value {
        let moments = MOMENTS.iter().chain(&LAGS).map(|(name, _, of)| (name.to_string(), json!(self.moment(*of))));
        let last = QUANTITIES.iter().map(|(name, of)| (name.to_string(), json!(self.last(*of))));
        let runs =
            self.runs.iter().map(|(run, onsets)| json!({"id": run.id, "seed": run.config.seed, "onsets": onsets}));
        json!({
            "settings": self.config, "grokked": self.grokked(), "runs": runs.collect::<Vec<_>>(),
            "moments": moments.collect::<Map<_, _>>(), "final": last.collect::<Map<_, _>>(),
        })
    }
}

fn lag_table(groups: &[Group]) -> Table {
    let cell = |mean: Option<Mean>| match mean {
        Some(mean) if mean.count == 1 => format!("{:.0} (one run)", mean.mean),
        Some(mean) => format!("{:.0} [{:.0}, {:.0}]", mean.mean, mean.low, mean.high).replace('-', "−"),
        None => "–".into(),
    };
    let row = |group: &Group| {
        let cells = MOMENTS.iter().chain(&LAGS).map(|(_, _, of)| cell(group.moment(*of)));
        let grokked = format!("{} of {}", group.grokked(), group.runs.len());
        std::iter::once(group.label.clone()).chain(cells).chain([grokked]).collect()
    };
    let names = MOMENTS.iter().chain(&LAGS).map(|(_, name, _)| name.to_string());
    Table {
        title: "Epochs at which it happens".into(),
        head: std::iter::once("learnt".into()).chain(names).chain(["grokked".into()]).collect(),
        rows: groups.iter().map(row).collect(),
        note: format!(
            "Means over runs with 95 % intervals. Curves are smoothed over {SMOOTHING} epochs. Memorised: training accuracy of {MEMORISED}. \
             From there on, test accuracy rises from its level then to its highest one, and sensitivity falls from its highest level before \
             the middle of that rise to its lowest one after. A change starts where a tenth of it is done and is halfway where half of it is, \
             and stays so for {HOLD} epochs. A lag above 0: sensitivity is first. A run has grokked if its test accuracy reaches {GENERALISES}."
        ),
    }
}

fn end_table(groups: &[Group]) -> Table {
    let row = |group: &Group| {
        let cells = QUANTITIES.iter().map(|(_, of)| group.last(*of).map_or("–".into(), |mean| with_interval(&mean)));
        let pairs = group.config.train_pairs();
        let error = group.runs.iter().filter_map(|(run, _)| run.points.last());
        let error = error.map(|point| point.sensitivity_std_error(pairs)).fold(0.0, f64::max);
        std::iter::once(group.label.clone()).chain(cells).chain([pairs.to_string(), number(error)]).collect()
    };
    let names = QUANTITIES.iter().map(|(name, _)| name.replace('_', " "));
    Table {
        title: "At the end".into(),
        head: std::iter::once("learnt".into())
            .chain(names)
            .chain(["training pairs".into(), "std. error of a run's sensitivity, at most".into()])
            .collect(),
        rows: groups.iter().map(row).collect(),
        note: "Means over runs with 95 % intervals, at the last epoch of each.".into(),
    }
}

/// A row for each run; every epoch is in its metrics.jsonl.
fn one_row_a_run(groups: &[Group]) -> String {
    let moments: Vec<&str> = MOMENTS.iter().chain(&LAGS).map(|(name, _, _)| *name).collect();
    let names: Vec<&str> = QUANTITIES.iter().map(|(name, _)| *name).collect();
    let mut text = format!(
        "id,operation,modulus,share,seed,epochs,{},sensitivity_std_error,{}\n",
        names.join(","),
        moments.join(",")
    );
    for (run, onsets) in groups.iter().flat_map(|group| &group.runs) {
        let GrokkingConfig { operation, modulus, share, seed, .. } = &run.config;
        let Some(last) = run.points.last() else { continue };
        let _ = write!(text, "{},{operation},{modulus},{share},{seed},{}", run.id, last.epoch);
        for (_, of) in QUANTITIES {
            let _ = write!(text, ",{}", of(last));
        }
        let _ = write!(text, ",{}", last.sensitivity_std_error(run.config.train_pairs()));
        for (_, _, of) in MOMENTS.iter().chain(&LAGS) {
            let _ = write!(text, ",{}", of(onsets).map(|epoch| epoch.to_string()).unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

fn html(record: &SweepRecord, runs: &[GrokkingRun], findings: &Findings, tally: &Tally) -> String {
    let paper = record.scale == "paper" && record.overrides.is_empty();
    let problem = |run: &GrokkingRun| {
        let problem = run.summary.as_ref()?.problem.clone()?;
        Some((format!("{} ({})", run.config.label(), run.id), problem))
    };
    page::whole(&page::Sheet {
        heading: page::Heading {
            title: &record.title,
            source: &record.source,
            about: &record.about,
            badge: if paper { "paper" } else { "quick" },
            scale: &record.scale,
            scale_words: if paper {
                "The published settings. AdamW's betas (0.9, 0.98) and the initial weights are those of Nanda et al. (2023), whose network this is; no biases, no warm-up."
            } else {
                "Not the published settings: compare trends with the published ones, not absolute values."
            },
        },
        counts: vec![
            (tally.runs.to_string(), "runs planned"),
            (tally.converged.to_string(), "finished"),
            (tally.failed.to_string(), "failed"),
            (format!("{:.1}", tally.seconds / 60.0), "minutes of computing"),
        ],
        findings,
        problems: runs.iter().filter_map(problem).collect(),
        settings: page::settings_of(&runs.iter().map(|run| run.config.settings()).collect::<Vec<_>>()),
        repeat: page::Repeat {
            command: &record.command,
            program: &record.program,
            recipe_text: &record.recipe_text,
            folder: "runs/ (settings, every epoch and weights of every run)",
        },
    })
}
