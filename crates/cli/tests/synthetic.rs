//! The experiment `vasudeva/synthetic` as a user runs it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn pudica(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pudica")).args(arguments).output().unwrap()
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs what must fail: exit code 2, nothing on stdout, one sentence on stderr.
fn refused(arguments: &[&str]) -> String {
    let output = pudica(arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

const SMALL: [&str; 6] =
    ["train=100", "test=50", "epochs=4", "every=2", "simulated=500", "data=3:5:1:16:59,1:17:7:20:75,1:7:7:10:75"];

#[test]
fn the_experiment_runs_resumes_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let run = || pudica(&[&["run", "vasudeva/synthetic", "--out", path][..], &SMALL].concat());
    assert!(text(run()).contains("6 of 6 runs made"));

    let page = read(&folder.path().join("report.html"));
    for part in ["Figure 2", "Figure 10, top", "Figure 10, bottom", "Tables 1 and 3", "0.2878", "0.0339", "0.0328"] {
        assert!(page.contains(part), "{part}");
    }
    for figure in ["fig2", "fig10-top", "fig10-bottom"] {
        assert!(folder.path().join("figures").join(format!("{figure}.png")).is_file(), "{figure}");
    }
    let csv = read(&folder.path().join("results.csv"));
    assert_eq!(csv.lines().count(), 1 + 6);
    let summary: Value = serde_json::from_str(&read(&folder.path().join("summary.json"))).unwrap();
    assert!((summary["predictors"][1]["exact"].as_f64().unwrap() - 0.2878).abs() < 5e-5);
    assert!(summary["predictors"][1]["simulated"]["std_error"].as_f64().unwrap() > 0.0);
    assert_eq!(summary["trained"][0]["less_sensitive_predictor"], "sparse");
    assert!(summary["trained"][0]["final"]["ood_accuracy"]["mean"].is_number());

    // Without one run's file, only that run is made again, and all numbers are the same.
    let some = std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&some).unwrap();
    assert!(text(pudica(&["report", path])).contains("5 of 6 runs made"));
    run();
    assert_eq!(read(&folder.path().join("results.csv")), csv);
}

#[test]
fn it_is_listed_and_shown() {
    assert!(text(pudica(&["list"])).contains("vasudeva/synthetic"));
    let shown = text(pudica(&["show", "vasudeva/synthetic", "--scale", "paper"]));
    assert!(shown.contains("3:3:1:6:59") && shown.contains("batch 100"), "{shown}");
    let object: Value = serde_json::from_str(&text(pudica(&["show", "vasudeva/synthetic", "--json"]))).unwrap();
    assert_eq!(object["settings"]["length"], 50);
}

#[test]
fn mistakes_are_sentences() {
    assert!(refused(&["run", "synthetic"]).contains("did you mean `vasudeva/synthetic`?"));
    assert!(refused(&["run", "vasudeva/synthetic", "epoch=3"]).contains("did you mean 'epochs'?"));
    assert!(refused(&["run", "vasudeva/synthetic", "data=3:5:1:16:20"]).contains("vocabulary of at least 34"));
    assert!(refused(&["show", "vasudeva/synthetic", "--scale", "large"]).contains("quick and paper"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let arguments = [&["run", "vasudeva/synthetic", "--out", path, "rate=1e300"][..], &SMALL].concat();
    assert!(refused(&arguments).contains("rate: the loss is no longer a number"));
}
