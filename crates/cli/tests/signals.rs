//! A sweep that is asked to stop saves, says how to continue, and ends with the signal's code; the same command continues to the same
//! numbers.

#![cfg(unix)]

mod common;

use common::{measures, send, started, with_tiny};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Two runs of some seconds.
const SLOW: [&str; 6] = ["run", "tiny.toml", "target=parity", "train.steps=20000", "--jobs", "1"];

fn command(folder: &Path, out: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pudica"));
    command.args(SLOW).args(["--out", out]).current_dir(folder);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Whether these tests run under `nohup`, which the command heeds: no SIGHUP then.
fn under_nohup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|signals| signals & 1 == 1)
}

#[test]
fn each_signal_saves_and_the_same_command_continues_to_the_same_numbers() {
    let folder = with_tiny();
    assert!(command(folder.path(), "straight").output().unwrap().status.success());
    let expected = measures(&folder.path().join("straight"));
    assert_eq!(expected.len(), 2);
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129), ("USR1", 138)] {
        if signal == "HUP" && under_nohup() {
            eprintln!("SIGHUP was not tried: it is ignored here");
            continue;
        }
        let out = folder.path().join(signal);
        let child = started(&mut command(folder.path(), signal), &out);
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{signal}: {message}");
        assert!(message.contains("the same command continues"), "{signal}: {message}");
        let resumed = command(folder.path(), signal).output().unwrap();
        let message = String::from_utf8_lossy(&resumed.stderr);
        assert!(resumed.status.success(), "{signal}: {message}");
        assert!(message.contains("continuing"), "{signal}: {message}");
        assert_eq!(measures(&out), expected, "{signal}");
    }
}

/// Its standard error is a full pipe, so that after the first signal it waits, for ever, to say how to continue.
#[test]
fn a_second_signal_of_the_same_kind_does_not_wait() {
    let folder = with_tiny();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = command(folder.path(), "out");
    command.stderr(writer.try_clone().unwrap());
    let mut child = started(&mut command, &folder.path().join("out"));
    let filler = std::thread::spawn(move || {
        let mut writer = writer;
        while writer.write_all(b".").is_ok() {} // by bytes, so that not one is left free
    });
    std::thread::sleep(Duration::from_secs(1));
    send("TERM", &child);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(child.try_wait().unwrap(), None, "one signal of a kind is obeyed, not rushed");
    send("HUP", &child);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None, "another kind does not hurry it");
    send("TERM", &child);
    let mut status = None;
    for _ in 0..400 {
        status = child.try_wait().unwrap();
        if status.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    child.kill().unwrap(); // nothing if it has ended, as it should have
    assert_eq!(status.and_then(|status| status.code()), Some(143));
    drop(reader);
    filler.join().unwrap();
}

#[test]
fn under_nohup_a_closed_terminal_is_ignored() {
    let folder = with_tiny();
    let mut nohup = Command::new("nohup");
    nohup.arg(env!("CARGO_BIN_EXE_pudica")).args(SLOW).args(["--out", "out"]);
    nohup.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = started(&mut nohup, &folder.path().join("out"));
    send("HUP", &child);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(measures(&folder.path().join("out")).len(), 2);
}
