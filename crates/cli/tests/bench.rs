//! `pudica bench` as a user runs it, on networks small enough for a test.

use serde_json::Value;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pudica")).args(["bench", "encoder"]).args(arguments).output().unwrap()
}

const TINY: [&str; 8] = ["--n", "5", "--d", "8", "--batch", "16", "--seconds", "0.1"];

#[test]
fn it_prints_what_plans_are_made_with() {
    for extra in [&["--replicas", "3"][..], &["--reference"], &["--layers", "1", "--ff", "4"]] {
        let output = bench(&[&TINY[..], &["--json"], extra].concat());
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{key} in {found}"));
        assert!(number("ms_per_replica_step") > 0.0 && number("forward_ms") > 0.0 && number("spread") >= 0.0);
        assert!(number("forward_ms") < number("ms_per_replica_step") * 5.0, "{found}");
        assert_eq!(number("replicas"), if extra[0] == "--replicas" { 3.0 } else { 1.0 });
        assert_eq!((number("n"), number("d"), number("batch"), number("heads")), (5.0, 8.0, 16.0, 2.0));
        assert!(found["device"].as_str().unwrap().starts_with("cpu"));
    }
    let output = bench(&TINY);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("a training step") && text.contains("a forward pass"), "{text}");
}

#[test]
fn sizes_that_cannot_be_are_explained() {
    for (arguments, part) in [
        (["--heads", "3"], "do not divide"),
        (["--n", "0"], "give a whole number from 1 to 10,000"),
        (["--batch", "0"], "at least one string"),
        (["--replicas", "0"], "replicas"),
        (["--seconds", "NaN"], "seconds"),
        (["--device", "tpu"], "tpu"),
    ] {
        let output = bench(&arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part) && !message.contains("panicked"), "{arguments:?}: {message}");
    }
}
