//! What tests of the command share.
#![allow(dead_code)] // each test file uses its own part

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

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
