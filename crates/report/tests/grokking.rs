//! The report of grokking, from made-up curves whose onsets are known.

use pudica_lab::grokking::{GrokkingConfig, GrokkingPlan, GrokkingPoint};
use pudica_lab::store::{FORMAT, Outcome};
use pudica_lab::{Recipe, RunSummary, SweepFolder};
use serde_json::{Map, Value};
use std::path::Path;

fn ramp(epoch: u64, begin: u64, end: u64, from: f64, to: f64) -> f64 {
    let part = (epoch as f64 - begin as f64) / (end as f64 - begin as f64);
    from + (to - from) * part.clamp(0.0, 1.0)
}

/// Sensitivity falls from epoch 300 + 10 seed to 500 epochs later, test accuracy rises 1,000 epochs after it.
fn point(config: &GrokkingConfig, epoch: u64) -> GrokkingPoint {
    let fall = 300 + 10 * config.seed;
    GrokkingPoint {
        epoch,
        train_loss: 0.1 / (1.0 + epoch as f64),
        train_accuracy: ramp(epoch, 0, 100, 0.0, 1.0),
        test_loss: 2.0,
        test_accuracy: ramp(epoch, fall + 1000, fall + 1500, 0.0, 1.0),
        sensitivity: ramp(epoch, fall, fall + 500, 0.6, 0.0),
        weight_norm: 30.0,
        seconds: None,
    }
}

fn make_up(folder: &Path, overrides: &[&str], epochs: u64) -> GrokkingPlan {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let plan = GrokkingPlan::new(&Recipe::find("vasudeva/grokking").unwrap(), Some("paper"), &overrides).unwrap();
    let claimed = SweepFolder::claim(folder, &plan).unwrap();
    for (place, run) in plan.runs.iter().enumerate() {
        let folder = claimed.run(&run.id);
        folder.create(&run.config).unwrap();
        for epoch in 0..=epochs {
            let Value::Object(line) = serde_json::to_value(point(&run.config, epoch)).unwrap() else { panic!() };
            folder.log(&line).unwrap();
        }
        let failed = place == 3;
        let summary = RunSummary {
            format: FORMAT,
            id: run.id.clone(),
            outcome: if failed { Outcome::Failed } else { Outcome::Finished },
            problem: failed.then(|| "the loss was NaN at epoch 7".into()),
            steps: epochs,
            converged: !failed,
            seconds: 60.0,
            device: "made up".into(),
            measures: Map::new(),
            detail: Map::new(),
        };
        folder.finish(&summary).unwrap();
    }
    plan
}

#[test]
fn the_lag_that_was_put_in_is_told() {
    let folder = tempfile::tempdir().unwrap();
    make_up(folder.path(), &["seed=0..4"], 2500);
    let report = pudica_report::write_grokking(folder.path()).unwrap();
    assert_eq!((report.tally.runs, report.tally.converged, report.tally.failed), (4, 3, 1));
    let names: Vec<_> = report.figures.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["grokking", "onsets"]);
    assert!(report.figures.iter().all(|svg| svg.with_extension("png").is_file()));

    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("summary.json")).unwrap()).unwrap();
    let group = &summary["groups"][0];
    assert_eq!((&group["grokked"], summary["groups"].as_array().unwrap().len()), (&3.into(), 1));
    let moment = |name: &str| group["moments"][name]["mean"].as_f64().unwrap();
    assert_eq!(moment("memorised"), 99.0);
    // Halfway at 550, 560, 570; the test accuracy 1,000 epochs later, with no spread between seeds.
    assert!((moment("sensitivity_fall_half") - 560.0).abs() <= 1.0);
    assert!((moment("lag_of_halves") - 1000.0).abs() <= 1.0 && (moment("lag_of_starts") - 1000.0).abs() <= 1.0);
    let half = &group["moments"]["sensitivity_fall_half"];
    assert!(half["low"].as_f64().unwrap() < 559.0 && half["high"].as_f64().unwrap() > 561.0);

    let page = std::fs::read_to_string(&report.page).unwrap();
    for part in [
        "lag between the halves",
        "3 of 3",
        "the loss was NaN at epoch 7",
        "pudica run vasudeva/grokking --scale paper seed=0..4",
        "Repeat it",
        "train.weight_decay",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("src=\"http") && !page.contains("<script"));
    let csv = std::fs::read_to_string(folder.path().join("results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 3);
    assert!(csv.lines().nth(1).unwrap().contains("a+b,113,0.3,0,2500"));
}

#[test]
fn runs_that_have_not_grokked_are_reported_too() {
    let folder = tempfile::tempdir().unwrap();
    make_up(folder.path(), &["seed=0..2", "operation=a+b,a*b"], 900);
    pudica_report::write_grokking(folder.path()).unwrap();
    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("summary.json")).unwrap()).unwrap();
    let group = &summary["groups"][1];
    assert_eq!((&group["grokked"], &group["moments"]["lag_of_halves"]), (&0.into(), &Value::Null));
    assert!(group["moments"]["sensitivity_fall_half"]["mean"].is_number());
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("a*b mod 113") && page.contains("0 of 2"));
}
