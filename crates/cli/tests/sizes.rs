//! Absurd sizes at the command line: exit code 2, one sentence, at once, and no folder.

#![cfg(target_os = "linux")]

mod common;

use common::{printed, refused, run_folders, text};
use std::path::Path;
use std::process::Command;

const TINY: &str = "title = 'Tiny'\n[settings]\nn = 4\nmodel.d = 8\ntrain = { batch = 8, steps = 5 }\neval.batches = 1\n\
                    measure = { batches = 1, draws = 2 }\n[quick]\n[[quick.sweep]]\nname = 'all'\ngrid.seed = '0..2'\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
    folder
}

/// What is refused, and that nothing but the recipe is there afterwards.
fn check(folder: &Path, line: &str, part: &str) {
    let arguments: Vec<&str> = line.split(' ').collect();
    let sentence = refused(folder, &arguments);
    assert!(sentence.contains(part), "{line}: {sentence}");
    assert!(sentence.starts_with("pudica: ") || sentence.starts_with("error: "), "{line}: {sentence}");
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["tiny.toml"], "{line}");
}

#[test]
fn sizes_that_aborted_or_hung_are_sentences() {
    let folder = folder();
    for (line, part) in [
        ("run tiny.toml train.batch=1000000000000", "train.batch: must be at most"),
        ("run tiny.toml model.d=100000", "model.d: must be at most"),
        ("run tiny.toml model.d=1000000000", "model.d: must be at most"),
        ("run tiny.toml model.ff=10000000000", "model.ff: must be at most"),
        ("run tiny.toml model.layers=1000000", "model.layers: must be at most"),
        ("run tiny.toml measure.draws=1000000000000", "measure.draws: must be at most"),
        ("run tiny.toml train.batch=100000000", "train.batch: must be at most"),
        ("run tiny.toml n=60 train.set_size=1000000000000000", "train.set_size: 1000000000000000 needs about"),
        ("run tiny.toml target=completion:1:1000000000:2:parity", "there are only 16 strings of 4 bits"),
        ("run tiny.toml train.steps=9223372036854775808", "years"),
        ("show tiny.toml seed=0..100000 n=4..=30", "asks for 2700000 runs; a plan holds at most 200000"),
        ("run tiny.toml --jobs 1000000", "--jobs"),
        ("run tiny.toml --together 1000000000", "--together"),
        ("bench encoder --batch 1000000000000", "--batch"),
        ("bench encoder --d 1000000000", "--d"),
        ("construct parity --n 20 --samples 1000000000000", "--samples"),
        ("construct two-majority --n 20 --samples 1000000000000", "--samples"),
        ("bounds tiny.toml --draws 1000000000000", "--draws"),
        ("boolean majority --n 12 --threads 1000000", "--threads"),
        ("boolean --table /dev/zero", "/dev/zero"),
        ("boolean --table /dev/urandom --table-format packed", "/dev/urandom"),
        ("spectrum relu --dim 12 --empirical 1 --width 4096 --depth 64", "inputs x"),
    ] {
        check(folder.path(), line, part);
    }
}

/// What never ends is not read, whatever it is called.
#[test]
fn endless_files_are_sentences() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("tiny.toml"), TINY).unwrap();
    printed(folder.path(), &["run", "tiny.toml", "seed=0", "--out", "sweep"]);
    let run = run_folders(&at("sweep")).remove(0);
    let run = run.strip_prefix(folder.path()).unwrap().to_str().unwrap();
    for (name, line) in [
        ("z.toml", "run z.toml"),
        ("z.toml", "construct automaton z.toml --n 4"),
        ("z.safetensors", "bounds z.safetensors"),
        ("z.npy", "boolean --table z.npy"),
        ("z.onnx", "measure z.onnx --inputs bits:8"),
        ("z.pt", "measure z.pt --inputs bits:8"),
        ("z.tsv", "data show z.tsv"),
        (&format!("{run}/weights.safetensors"), &format!("bounds {run}")),
        (&format!("{run}/weights.safetensors"), &format!("boolean run:{run}")),
        (&format!("{run}/config.json"), &format!("bounds {run}")),
        ("sweep/sweep.json", "report sweep"),
        ("sweep/sweep.json", "status sweep"),
        ("sweep/sweep.json", "run tiny.toml seed=0 --out sweep"),
    ] {
        let path = at(name);
        let before = std::fs::read(&path).ok();
        std::fs::remove_file(&path).ok();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let sentence = refused(folder.path(), &line.split(' ').collect::<Vec<_>>());
        assert!(sentence.len() < 500, "{line}: {sentence}");
        std::fs::remove_file(&path).unwrap();
        before.into_iter().for_each(|bytes| std::fs::write(&path, bytes).unwrap());
    }
}

/// Under the limits of a shell, what does not fit is refused with what the limit leaves, for networks, too.
#[test]
fn limits_of_memory_and_data_are_heeded() {
    let folder = folder();
    for (limit, line) in [
        ("-v 2000000", "run tiny.toml n=30 train.batch=16000000 model.d=64"),
        ("-d 2000000", "run tiny.toml n=30 train.batch=16000000 model.d=64"),
        ("-d 1000000", "boolean majority --n 28"),
        ("-v 2000000", "spectrum lstm --dim 12 --empirical 1 --width 100"),
    ] {
        let line = format!("ulimit {limit} && exec {} {line}", env!("CARGO_BIN_EXE_pudica"));
        let output = Command::new("sh").args(["-c", &line]).current_dir(folder.path()).output().unwrap();
        let sentence = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {sentence}");
        assert!(sentence.contains("may have") && !sentence.contains("panicked"), "{line}: {sentence}");
        assert!(!folder.path().join("runs").exists(), "{line}");
    }
}

/// Several runs at a time need several times the memory.
#[test]
fn runs_at_a_time_are_counted() {
    let folder = folder();
    // One needs about 40 MiB.
    let line = format!(
        "ulimit -v 1500000 && exec {} run tiny.toml n=20 model.d=256 train.batch=1024 seed=0..1000 --jobs 500",
        env!("CARGO_BIN_EXE_pudica")
    );
    let output = Command::new("sh").args(["-c", &line]).current_dir(folder.path()).output().unwrap();
    let sentence = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{sentence}");
    assert!(
        sentence.contains("500 runs are made at a time") && sentence.contains("this process may have"),
        "{sentence}"
    );
}
