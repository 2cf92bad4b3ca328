//! What a hostile or careless environment does to any command: a full disk, a closed pipe, absurd limits.

#![cfg(unix)]

use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn pudica() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pudica"))
}

/// Exit code and standard error, without a word of a panic.
fn ending(output: &Output) -> (Option<i32>, String) {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!message.contains("panicked"), "{message}");
    (output.status.code(), message)
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn a_full_standard_output_is_a_sentence() {
    for arguments in [
        &["list"][..],
        &["--help"],
        &["boolean", "--list"],
        &["boolean", "majority", "--n", "5"],
        &["boolean", "majority", "--n", "5", "--json"],
        &["construct", "first", "--n", "3"],
        &["spectrum", "relu", "--dim", "4"],
        &["data", "list"],
        &["show", "hahn/length-scaling", "--no-estimate"],
    ] {
        let output = pudica().args(arguments).stdout(full()).stderr(Stdio::piped()).output().unwrap();
        let (code, message) = ending(&output);
        assert_eq!(code, Some(2), "{arguments:?}: {message}");
        assert!(
            message.starts_with("pudica: cannot write to standard output: the disk is full"),
            "{arguments:?}: {message}"
        );
    }
}

#[test]
fn a_full_standard_error_changes_nothing() {
    let output = pudica().args(["boolean", "majority", "--n", "5"]).stderr(full()).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
    for arguments in [&["boolean", "majorty", "--n", "5"][..], &["boolean", "--nonsense"]] {
        let output = pudica().args(arguments).stderr(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let output = pudica().args(arguments).stderr(full()).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let pipe = format!("{} boolean --list | head -n 1", env!("CARGO_BIN_EXE_pudica"));
    let output = Command::new("sh").args(["-c", &pipe]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1);
}

/// A device is written into, never replaced: as root the node would be gone for all.
#[test]
fn an_output_that_is_a_device_stays_one() {
    for arguments in
        [&["boolean", "majority", "--n", "5", "--spectrum"][..], &["construct", "first", "--n", "4", "--save"]]
    {
        let (code, message) = ending(&pudica().args(arguments).arg("/dev/full").output().unwrap());
        assert_eq!(code, Some(2), "{arguments:?}: {message}");
        assert!(message.contains("cannot write /dev/full: the disk is full"), "{message}");
        assert!(pudica().args(arguments).arg("/dev/null").output().unwrap().status.success());
        for device in ["/dev/full", "/dev/null"] {
            assert!(fs::symlink_metadata(device).unwrap().file_type().is_char_device(), "{device}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (link, real) = (folder.path().join("link.npy"), folder.path().join("real.npy"));
    std::os::unix::fs::symlink("real.npy", &link).unwrap();
    let arguments = ["boolean", "majority", "--n", "5", "--spectrum"];
    assert!(pudica().args(arguments).arg(&link).output().unwrap().status.success());
    assert!(link.is_symlink() && fs::read(&real).unwrap().starts_with(b"\x93NUMPY"));
}

#[test]
fn absurd_numbers_of_threads_are_refused() {
    for name in ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"] {
        let output = pudica().args(["boolean", "majority", "--n", "12"]).env(name, "1000000").output().unwrap();
        let (code, message) = ending(&output);
        assert_eq!(
            (code, message.as_str()),
            (Some(2), &*format!("pudica: {name}=1000000: give a number of threads, at most 1024\n"))
        );
    }
}

/// Under `ulimit -v`, what does not fit is refused before it is allocated.
#[test]
fn a_limit_of_memory_is_heeded() {
    for (limit, command) in [
        (1_000_000, "boolean majority --n 28"),
        (4_000_000, "boolean majority --n 35 --versus first"),
        (2_000_000, "bench encoder --n 30 --batch 16000000"),
    ] {
        let line = format!("ulimit -v {limit} && {} {command}", env!("CARGO_BIN_EXE_pudica"));
        let (code, message) = ending(&Command::new("sh").args(["-c", &line]).output().unwrap());
        assert_eq!(code, Some(2), "{command}: {message}");
        assert!(message.contains("needs") && message.contains("this process may have"), "{command}: {message}");
    }
}

#[test]
fn absurd_networks_are_refused_with_what_fits() {
    for (arguments, part) in [
        // Hundreds of terabytes, so that no machine has them.
        (["--batch", "16000000"], "--batch: 16000000 needs about"),
        (["--d", "65536"], "--d: 65536 needs about"),
        (["--ff", "1000000"], "--ff: 1000000 needs about"),
    ] {
        let output =
            pudica().args(["bench", "encoder", "--n", "30", "--layers", "1024"]).args(arguments).output().unwrap();
        let (code, message) = ending(&output);
        assert_eq!(code, Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part) && message.contains("could fit"), "{arguments:?}: {message}");
    }
    for (arguments, part) in [
        (["--batch", "1000000000000"], "--batch: must be at most 16777216"),
        (["--d", "1000000000"], "--d: must be at most 65536"),
        (["--ff", "10000000000000"], "--ff: must be at most 1048576"),
        (["--layers", "1000000000000"], "--layers: must be at most 1024"),
    ] {
        let (code, message) = ending(&pudica().args(["bench", "encoder"]).args(arguments).output().unwrap());
        assert_eq!(code, Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn long_input_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("deep.toml");
    fs::write(&deep, format!("x = {}", "[".repeat(100_000))).unwrap();
    let deep = deep.to_str().unwrap();
    let nested = "(".repeat(100_000) + "x1";
    for arguments in [
        &["boolean", "--expr", &nested][..],
        &["boolean", &nested, "--n", "4"],
        &["run", deep],
        &["construct", "automaton", deep, "--n", "4"],
    ] {
        let (code, message) = ending(&pudica().args(arguments).output().unwrap());
        assert_eq!(code, Some(2));
        assert!(message.len() < 2000, "{} bytes: {}", message.len(), &message[..300]);
    }
    assert!(!Path::new("runs").exists());
}
