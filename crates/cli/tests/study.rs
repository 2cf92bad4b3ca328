//! Studies as a user runs them, on images made up here.

use pudica_data::images::{Images, Shape, write_npy};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const TINY: &str = r#"
title = "Tiny"
kind = "study"
[quick.settings]
data.name = "pictures"
model = { kind = "mlp", hidden = "8" }
train = { batch = 10, epochs = 2 }
measure = { every = 1, draws = 1, patch = 4, inputs = 5 }
[[quick.sweep]]
name = "all"
grid.seed = "0..2"
"#;

fn pudica(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pudica"));
    command.args(arguments).current_dir(folder).env_remove("PUDICA_DATA").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with the recipe and 40 images of two classes: dark ones and bright ones.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
    for split in ["train", "test"] {
        let own = folder.path().join("pictures").join(split);
        std::fs::create_dir_all(&own).unwrap();
        let labels: Vec<u8> = (0..40).map(|index| index % 2).collect();
        let pixels = labels.iter().flat_map(|label| (0..64).map(move |at| 100 * label + at)).collect();
        let images = Images::new(Shape { height: 8, width: 8, channels: 1 }, pixels, labels).unwrap();
        write_npy(&images, &own.join("images.npy"), &own.join("labels.npy")).unwrap();
    }
    folder
}

#[test]
fn a_study_is_shown_run_reported_and_not_repeated() {
    let folder = folder();
    let shown = pudica(folder.path(), &["show", "tiny.toml"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    assert!(text(&shown.stdout).contains("2 epochs, sgd 0.1, batch 10"), "{}", text(&shown.stdout));
    let first = pudica(folder.path(), &["run", "tiny.toml", "--out", "out"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let table = text(&first.stdout);
    assert!(table.contains("sensitivity") && table.contains("pictures mlp (8) seed=1"), "{table}");
    for file in ["config.json", "metrics.jsonl", "summary.json", "weights.safetensors"] {
        for run in std::fs::read_dir(folder.path().join("out/runs")).unwrap() {
            assert!(run.unwrap().path().join(file).exists(), "{file}");
        }
    }
    let again = pudica(folder.path(), &["run", "tiny.toml", "--out", "out", "--json"]);
    let events: Vec<Value> = text(&again.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["event"], &events[0]["finished"]), (&"sweep_started".into(), &2.into()));
    assert!(events.iter().all(|event| event["event"] != "run_started"), "a finished run was repeated");
    assert!(pudica(folder.path(), &["report", "out"]).status.success());
}

#[test]
fn mistakes_are_one_sentence_and_exit_code_2() {
    let folder = folder();
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = pudica(folder.path(), arguments);
        let sentence = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{sentence}");
        assert!(words.iter().all(|word| sentence.contains(word)), "{sentence}");
        assert_eq!(sentence.trim().lines().count(), 1, "{sentence}");
    };
    refused(&["run", "vasudeva/mnist"], &["--data DIR", "PUDICA_DATA", "pudica data fetch mnist"]);
    refused(&["run", "vasudeva/mnist", "--data", "pictures"], &["train-images-idx3-ubyte", "pudica data fetch mnist"]);
    refused(&["run", "vasudeva/minst"], &["did you mean `vasudeva/mnist`?"]);
    refused(&["run", "tiny.toml", "model.kindd=mlp"], &["did you mean `model.kind`?"]);
    refused(&["run", "tiny.toml", "model.kind=vit-smal"], &["did you mean 'vit-small'?"]);
    refused(&["run", "tiny.toml", "data.name=nowhere"], &["\"nowhere\" is no folder"]);
    refused(&["run", "hahn/dynamics", "--device", "torch"], &["studies"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_the_same_command_continues_to_the_same_numbers() {
    let folder = folder();
    let arguments =
        |out: &'static str| ["run", "tiny.toml", "train.epochs=2000", "measure.every=500", "seed=0", "--out", out];
    let mut child = Command::new(env!("CARGO_BIN_EXE_pudica"))
        .args(arguments("stopped"))
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let metrics = || {
        std::fs::read_dir(folder.path().join("stopped/runs"))
            .ok()?
            .next()?
            .ok()?
            .path()
            .join("metrics.jsonl")
            .metadata()
            .ok()
    };
    for _ in 0..400 {
        if metrics().is_some_and(|file| file.len() > 0) {
            break;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130), "stopped before the end, with its own code");
    assert!(pudica(folder.path(), &arguments("stopped")).status.success());
    assert!(pudica(folder.path(), &arguments("straight")).status.success());
    let numbers = |out: &str| {
        let run = std::fs::read_dir(folder.path().join(out).join("runs")).unwrap().next().unwrap().unwrap().path();
        let summary: Value = serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap();
        (summary["measures"].clone(), std::fs::read(run.join("weights.safetensors")).unwrap())
    };
    assert!(numbers("stopped") == numbers("straight"));
}
