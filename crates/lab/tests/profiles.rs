//! Degree profiles, unseen strings and neighbours, of tiny networks through the whole laboratory.

mod common;

use common::{plan, runs};
use pudica_lab::{Event, Machine, Stop, execute};
use serde_json::{Map, Value};

const TINY: &str = "
title = 'tiny'
[quick.settings]
n = 5
model.d = 8
target = 'kparity:2'
train = { batch = 16, steps = 60, lr = 0.01, unseen = 'expr:x1 & x2' }
eval.batches = 4
measure = { batches = 1, draws = 2, profile = true }
track = { every = 20, draws = 2 }
[[quick.sweep]]
name = 'all'
grid.model.kind = ['encoder', 'lstm']
";

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{found} {expected}");
}

fn number(line: &Map<String, Value>, name: &str) -> f64 {
    line[name].as_f64().unwrap_or_else(|| panic!("{name} in {line:?}"))
}

fn list(line: &Map<String, Value>, name: &str) -> Vec<f64> {
    line[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// Flips and degrees say the same at every step, distances add up over degrees, and on all strings they are four times the loss, of which the
/// seen and the unseen strings have their parts.
#[test]
fn both_sides_of_eq_17_and_all_distances_agree_through_training() {
    let folder = tempfile::tempdir().unwrap();
    let tally = execute(&plan(TINY, &[]), folder.path(), &Machine::default(), &|_: &Event| {}, &Stop::new()).unwrap();
    assert_eq!((tally.runs, tally.failed), (2, 0));
    for run in runs(folder.path()) {
        let lines = run.lines().unwrap();
        assert_eq!(lines.iter().map(|line| number(line, "step")).collect::<Vec<_>>(), [0.0, 20.0, 40.0, 60.0]);
        for line in &lines {
            let degrees = list(line, "degrees");
            assert_eq!(degrees.len(), 6);
            let by_degree = degrees.iter().enumerate().map(|(degree, weight)| degree as f64 * weight).sum();
            close(by_degree, number(line, "average_sensitivity_real"));
            for name in ["from_target", "from_interpolator"] {
                close(list(line, &format!("{name}_by_degree")).iter().sum(), number(line, name));
            }
        }
        let measures = run.summary.unwrap().measures;
        close(number(&measures, "degree_sum"), number(&measures, "average_sensitivity_real"));
        close(number(&measures, "from_target"), 4.0 * number(&measures, "eval_loss"));
        // 24 strings are seen, 8 are not.
        let parts = 0.75 * number(&measures, "train_loss") + 0.25 * number(&measures, "unseen_loss");
        close(parts, number(&measures, "eval_loss"));
        let variance: f64 = list(lines.last().unwrap(), "degrees")[1..].iter().sum();
        close(number(&measures, "mean_degree"), number(&measures, "average_sensitivity_real") / variance);
    }
}

/// Neighbours under hardly any noise are the network itself, those under much are not; all are there, of networks on the fast lane and others.
#[test]
fn neighbours_are_as_far_as_the_noise_is_large() {
    let folder = tempfile::tempdir().unwrap();
    let overrides =
        ["train.steps=0", "track.every=0", "measure.cut=median", "measure.volume=1e-9+3", "measure.volume_draws=5"];
    execute(&plan(TINY, &overrides), folder.path(), &Machine::default(), &|_: &Event| {}, &Stop::new()).unwrap();
    for run in runs(folder.path()) {
        let summary = run.summary.unwrap();
        let own = number(&summary.measures, "average_sensitivity");
        assert_eq!(number(&summary.measures, "noisy_sensitivity_1e-9"), own);
        let volume = summary.detail["volume"].as_array().unwrap();
        let far = list(volume[1].as_object().unwrap(), "average_sensitivities");
        assert!(volume[0]["rho"] == 1e-9 && far.len() == 5 && far.iter().any(|value| *value != own), "{volume:?}");
    }
}
