//! The experiment `vasudeva/grokking` as a user runs it.

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

const SMALL: [&str; 7] =
    ["modulus=5,7", "operation=a+b", "seed=0..2", "model.d=8", "model.heads=2", "model.mlp=8", "train.epochs=150"];

#[test]
fn the_experiment_runs_resumes_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let run = || pudica(&[&["run", "vasudeva/grokking", "--out", path][..], &SMALL].concat());
    assert!(text(run()).contains("4 of 4 runs finished"));
    let page = read(&folder.path().join("report.html"));
    for part in ["a+b mod 5", "a+b mod 7", "lag between the halves", "Epochs at which it happens"] {
        assert!(page.contains(part), "{part}");
    }
    let csv = read(&folder.path().join("results.csv"));
    assert_eq!(csv.lines().count(), 1 + 4);
    // Without one run's folder, only that run is made again, up to rounding in other company.
    let some = std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_dir_all(&some).unwrap();
    assert!(text(pudica(&["report", path])).contains("3 of 4 runs finished"));
    assert!(text(run()).contains("4 of 4 runs finished"));
    assert_eq!(read(&some.join("metrics.jsonl")).lines().count(), 151);
}

#[test]
fn it_is_listed_and_shown() {
    assert!(text(pudica(&["list"])).contains("vasudeva/grokking"));
    let shown = text(pudica(&["show", "vasudeva/grokking", "--scale", "paper", "--no-estimate"]));
    assert!(
        shown.contains("a+b mod 113 seed=2: 3,830 of 12,769 pairs, AdamW 0.001, weight decay 1, 20,000 epochs"),
        "{shown}"
    );
    let arguments = [&["show", "vasudeva/grokking", "--json"][..], &SMALL].concat();
    let object: Value = serde_json::from_str(&text(pudica(&arguments))).unwrap();
    assert_eq!((object["runs"].as_array().unwrap().len(), &object["steps"]), (4, &600.into()));
    assert!(object["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn mistakes_are_sentences() {
    assert!(refused(&["run", "vasudeva/grokking", "operation=sin(a)"]).contains("such as a+b"));
    assert!(refused(&["run", "vasudeva/grokking", "epochs=3"]).contains("did you mean `train.epochs`?"));
    assert!(refused(&["show", "vasudeva/grokking", "modulus=1000"]).contains("from 2 to 300"));
}
