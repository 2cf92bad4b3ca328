//! The report of grokking, from made-up curves whose onsets are known.

mod common;

use common::{Planned, begin, checked, place, summary};
use serde_json::{Value, json};
use std::path::Path;

fn ramp(epoch: u64, begin: u64, end: u64, from: f64, to: f64) -> f64 {
    let part = (epoch as f64 - begin as f64) / (end as f64 - begin as f64);
    from + (to - from) * part.clamp(0.0, 1.0)
}

/// The epoch from which sensitivity falls.
fn fall(run: &Planned) -> u64 {
    300 + 10 * run.whole("/seed")
}

/// Sensitivity falls for 500 epochs, test accuracy rises 1,000 epochs after it.
fn line(run: &Planned, epoch: u64) -> Value {
    let fall = fall(run);
    json!({
        "step": epoch,
        "train_loss": 0.1 / (1.0 + epoch as f64),
        "train_accuracy": ramp(epoch, 0, 100, 0.0, 1.0),
        "test_loss": 2.0,
        "test_accuracy": ramp(epoch, fall + 1000, fall + 1500, 0.0, 1.0),
        "sensitivity": ramp(epoch, fall, fall + 500, 0.6, 0.0),
        "weight_norm": 30.0,
    })
}

/// Runs of so many epochs, the fourth of which failed, with the moments that a real run would have found.
fn make_up(folder: &Path, overrides: &[&str], epochs: u64) {
    let runs = begin("vasudeva/grokking", Some("paper"), overrides, folder);
    for (place, run) in runs.iter().enumerate() {
        run.log((0..=epochs).map(|epoch| line(run, epoch)));
        if place == 3 {
            run.fail("the loss was NaN at epoch 7");
            continue;
        }
        let fall = fall(run);
        let rise = (epochs > fall + 1500).then_some(fall + 1000);
        let mut measures = line(run, epochs);
        measures.as_object_mut().unwrap().remove("step");
        for (name, epoch) in [
            ("memorised", Some(99)),
            ("sensitivity_fall_start", Some(fall + 50)),
            ("sensitivity_fall_half", Some(fall + 250)),
            ("test_rise_start", rise.map(|rise| rise + 50)),
            ("test_rise_half", rise.map(|rise| rise + 250)),
        ] {
            measures[name] = json!(epoch);
        }
        measures["sensitivity_std_error"] = 0.001.into();
        run.finish(true, measures, json!({}));
    }
}

#[test]
fn the_lag_that_was_put_in_is_told() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "vasudeva/grokking");
    make_up(&folder, &["seed=0..4"], 2500);
    let report = pudica_report::write(&folder).unwrap();
    assert_eq!((report.tally.runs, report.tally.converged, report.tally.failed), (4, 3, 1));
    let (names, page) = checked(&report);
    assert_eq!(names, ["grokking", "onsets"]);

    let summary = summary(&folder);
    let group = &summary["groups"][0];
    assert_eq!((&group["grokked"], summary["groups"].as_array().unwrap().len()), (&3.into(), 1));
    let moment = |name: &str| group["moments"][name]["mean"].as_f64().unwrap();
    assert_eq!(moment("memorised"), 99.0);
    // Halfway at 550, 560, 570; the test accuracy 1,000 epochs later, with no spread between seeds.
    assert_eq!(moment("sensitivity_fall_half"), 560.0);
    assert_eq!((moment("lag_of_halves"), moment("lag_of_starts")), (1000.0, 1000.0));
    let half = &group["moments"]["sensitivity_fall_half"];
    assert!(half["low"].as_f64().unwrap() < 559.0 && half["high"].as_f64().unwrap() > 561.0);

    for part in [
        "lag between the halves",
        "3 of 3",
        "the loss was NaN at epoch 7",
        "pudica run vasudeva/grokking --scale paper seed=0..4",
        "3830", // training pairs
        "train.weight_decay",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let csv = std::fs::read_to_string(folder.join("results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 4);
}

#[test]
fn runs_that_have_not_grokked_are_reported_too() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "vasudeva/grokking-two");
    make_up(&folder, &["seed=0..2", "operation=a+b,a*b"], 900);
    pudica_report::write(&folder).unwrap();
    let summary = summary(&folder);
    let group = &summary["groups"][1];
    assert_eq!((&group["grokked"], &group["moments"]["lag_of_halves"]), (&0.into(), &Value::Null));
    assert!(group["moments"]["sensitivity_fall_half"]["mean"].is_number());
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("a*b mod 113") && page.contains("0 of 2"));
}
