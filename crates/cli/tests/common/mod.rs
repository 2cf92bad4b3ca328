//! What tests of the command share.
#![allow(dead_code)] // each test file uses its own part

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;

/// Four runs, each a fraction of a second.
pub const TINY: &str = r#"
title = "Tiny"
[settings]
model.d = 8
n = 3
eval.batches = 2
measure = { batches = 2, draws = 2 }
train = { batch = 16, lr = 0.01, steps = 20 }
[[quick.sweep]]
name = "all"
grid.target = ["parity", "first"]
grid.seed = "0..2"
"#;

/// A folder with that recipe, `tiny.toml`.
pub fn with_tiny() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
    folder
}

/// Runs the command in a folder.
pub fn pudica(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pudica"));
    command.args(arguments).current_dir(folder).env_remove("PUDICA_DATA").output().unwrap()
}

/// What a command printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command that must succeed printed.
pub fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = pudica(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// What a command that must succeed prints with `--json`: one object.
pub fn object(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(Path::new("."), &[arguments, &["--json"]].concat())).unwrap()
}

/// Runs what must fail: exit code 2, nothing on stdout, one sentence on stderr, no panic.
pub fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = pudica(folder, arguments);
    let sentence = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {sentence}");
    assert!(output.stdout.is_empty() && !sentence.contains("panicked"), "{arguments:?}: {sentence}");
    sentence
}

/// The events of `--json`.
pub fn events(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A JSON file.
pub fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The folders of a sweep's runs, in the order of their names.
pub fn run_folders(out: &Path) -> Vec<PathBuf> {
    let mut runs: Vec<_> = std::fs::read_dir(out.join("runs")).unwrap().map(|run| run.unwrap().path()).collect();
    runs.sort();
    runs
}

/// What was measured, run by run.
pub fn measures(out: &Path) -> Vec<Value> {
    run_folders(out).iter().map(|run| json(&run.join("summary.json"))["measures"].clone()).collect()
}

/// Starts a sweep in `out` and waits until its first run is at work.
pub fn started(command: &mut Command, out: &Path) -> Child {
    let child = command.spawn().unwrap();
    for _ in 0..2400 {
        if std::fs::read_dir(out.join("runs")).is_ok_and(|mut runs| runs.next().is_some()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    std::thread::sleep(Duration::from_millis(100));
    child
}

/// Sends a signal, as in `INT`.
pub fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap().success());
}
