//! `pudica run --unit` and `pudica merge` as a user runs them: what is refused, what is resumed, what is said.

mod common;

use common::{TINY, json, measures, printed, pudica, refused, run_folders, text, with_tiny};
use std::path::Path;

/// A recipe, and its runs: all in `whole`, the first half in `a`, the second in `b`.
fn folder() -> tempfile::TempDir {
    let folder = with_tiny();
    for (out, unit) in [("whole", &[][..]), ("a", &["--unit", "1/2"]), ("b", &["--unit", "2/2"])] {
        printed(folder.path(), &[&["run", "tiny.toml", "--out", out], unit].concat());
    }
    folder
}

fn copy(from: &Path, to: &Path) {
    assert!(std::process::Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
}

#[test]
fn folders_are_joined_resumed_and_reported() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    assert_eq!((run_folders(&at("a")).len(), run_folders(&at("b")).len()), (2, 2));

    // Half of it gives a page that says what is missing; the rest comes later, into the same folder.
    let half = printed(folder.path(), &["merge", "a", "--into", "both"]);
    assert!(half.contains("4 runs: ") && half.contains("2 not made yet"), "{half}");
    let output = pudica(folder.path(), &["merge", "b", "--into", "both"]);
    assert!(text(&output.stderr).contains("2 finished runs copied, 2 there already"), "{}", text(&output.stderr));
    assert_eq!(measures(&at("both")), measures(&at("whole")));
    for name in ["report.html", "results.csv", "summary.json"] {
        assert!(at("both").join(name).is_file(), "{name}");
    }
    // Nothing is left to do, neither for merge nor for the command itself.
    let output = pudica(folder.path(), &["merge", "a", "b", "whole", "--into", "both"]);
    assert!(text(&output.stderr).contains("0 finished runs copied, 4 there already"), "{}", text(&output.stderr));
    let again = pudica(folder.path(), &["run", "tiny.toml", "--out", "both"]);
    assert!(text(&again.stderr).contains("4 runs, 4 of them made before"), "{}", text(&again.stderr));

    // Into one of them; and a copy that was cut off is made again, as its summary comes last.
    printed(folder.path(), &["merge", "b", "--into", "a"]);
    assert_eq!(measures(&at("a")), measures(&at("whole")));
    let cut = run_folders(&at("a"))[0].clone();
    std::fs::remove_file(cut.join("summary.json")).unwrap();
    std::fs::write(cut.join("weights.safetensors"), "half").unwrap();
    printed(folder.path(), &["merge", "whole", "--into", "a"]);
    assert_eq!(measures(&at("a")), measures(&at("whole")));
    let weights = std::fs::read(cut.join("weights.safetensors")).unwrap();
    assert_eq!(
        weights,
        std::fs::read(at("whole").join("runs").join(cut.file_name().unwrap()).join("weights.safetensors")).unwrap()
    );
}

#[test]
fn what_does_not_belong_together_is_refused_in_one_sentence() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let refuse = |arguments: &[&str]| {
        let sentence = refused(folder.path(), &[&["merge"], arguments, &["--into", "into"]].concat());
        assert_eq!(sentence.trim().lines().count(), 1, "{sentence}");
        assert!(!at("into").join("sweep.json").exists(), "it was refused and written");
        sentence
    };
    assert!(refuse(&["a", "nowhere"]).contains("nowhere: there is no such folder"));
    std::fs::create_dir(at("empty")).unwrap();
    assert!(refuse(&["a", "empty"]).contains("is not a sweep folder"));
    std::fs::write(at("other.toml"), TINY.replace("title = \"Tiny\"", "title = \"Other\"")).unwrap();
    printed(folder.path(), &["run", "other.toml", "--out", "other"]);
    assert!(refuse(&["a", "other"]).contains("holds another sweep (other.toml)"));
    printed(folder.path(), &["run", "tiny.toml", "train.steps=3", "--out", "short"]);
    assert!(refuse(&["a", "short"]).contains("have other settings"));
    std::fs::create_dir(at("into")).unwrap();
    std::fs::write(at("into/notes.txt"), "mine").unwrap();
    assert!(refuse(&["a"]).contains("is not empty and holds no sweep"));
    std::fs::remove_dir_all(at("into")).unwrap();

    // Another number in a run that both have.
    copy(&at("a"), &at("changed"));
    let run = run_folders(&at("changed"))[0].clone();
    let mut summary = json(&run.join("summary.json"));
    summary["seconds"] = 1e6.into();
    summary["device"] = "another".into();
    summary["files"] = serde_json::Value::Null; // a record of itself and of the other files, which would tell that it was changed
    std::fs::write(run.join("summary.json"), summary.to_string()).unwrap();
    printed(folder.path(), &["merge", "a", "changed", "--into", "fine"]);
    summary["measures"]["sharpness"] = 0.25.into();
    std::fs::write(run.join("summary.json"), summary.to_string()).unwrap();
    let sentence = refuse(&["a", "changed"]);
    let id = run.file_name().unwrap().to_string_lossy().into_owned();
    assert!(sentence.contains(&id) && sentence.contains("sharpness: 0.25 and "), "{sentence}");

    // A damaged run is named and left out; the rest is merged.
    copy(&at("a"), &at("damaged"));
    let run = run_folders(&at("damaged"))[0].clone();
    std::fs::write(run.join("weights.safetensors"), "short").unwrap();
    let output = pudica(folder.path(), &["merge", "damaged", "b", "--into", "rest"]);
    assert!(
        output.status.success() && text(&output.stderr).contains("weights.safetensors has 5 of its"),
        "{}",
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains("1 not made yet"), "{}", text(&output.stdout));
}

/// Commands that each chose some of the recipe's values: together they are parts of the recipe's own.
#[test]
fn parts_chosen_by_lists_are_joined_and_what_is_missing_is_said() {
    let folder = with_tiny();
    let at = |name: &str| folder.path().join(name);
    let more = ["--dtype", "f64", "train.batch=8"];
    for (out, list) in [("first", "target=first"), ("parity", "target=parity"), ("one", "seed=1")] {
        printed(folder.path(), &[&["run", "tiny.toml", list, "--out", out], &more[..]].concat());
    }
    printed(folder.path(), &[&["run", "tiny.toml", "--out", "whole"], &more[..]].concat());
    let half = printed(folder.path(), &["merge", "first", "one", "--into", "both", "--without-weights"]);
    assert!(half.contains("4 runs: ") && half.contains("1 not made yet"), "{half}");
    let record = json(&at("both/sweep.json"));
    assert_eq!(record["command"], "pudica run tiny.toml --scale quick train.batch=8 --dtype f64");
    assert!(run_folders(&at("both")).iter().all(|run| !run.join("weights.safetensors").exists()));
    printed(folder.path(), &["merge", "parity", "--into", "both", "--without-weights"]);
    assert_eq!(measures(&at("both")), measures(&at("whole")));
    // Without their weights runs are as good as lost to a merge that wants them, which says so.
    let output = pudica(folder.path(), &["merge", "both", "--into", "again"]);
    assert!(
        text(&output.stderr).contains("has no weights; --without-weights takes such runs"),
        "{}",
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains("4 not made yet"), "{}", text(&output.stdout));
    // Another setting is not a list of the recipe's.
    printed(folder.path(), &["run", "tiny.toml", "n=2", "--dtype", "f64", "train.batch=8", "--out", "other"]);
    assert!(refused(folder.path(), &["merge", "first", "other", "--into", "no"]).contains("have other settings"));
}

/// What one machine has begun, another can finish.
#[cfg(unix)]
#[test]
fn unfinished_runs_go_on_after_a_merge() {
    let folder = with_tiny();
    let run = ["run", "tiny.toml", "train.steps=20000", "track.every=1000", "target=parity", "seed=0", "--out"];
    let out = folder.path().join("begun");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pudica"));
    command.args(run).arg("begun").current_dir(folder.path());
    let mut child = common::started(&mut command, &out);
    common::send("TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    printed(folder.path(), &["merge", "begun", "--into", "moved"]);
    printed(folder.path(), &[&run[..], &["moved"]].concat());
    printed(folder.path(), &[&run[..], &["straight"]].concat());
    assert_eq!(measures(&folder.path().join("moved")), measures(&folder.path().join("straight")));
    let lines = |out: &str| {
        let run = run_folders(&folder.path().join(out))[0].join("metrics.jsonl");
        std::fs::read_to_string(run).unwrap().lines().count()
    };
    assert_eq!(lines("moved"), lines("straight"));
}
