//! Ctrl-C and SIGTERM end every command within two seconds, with a word and the signal's code; and nothing computes for long before it
//! says what it does.

#![cfg(unix)]

mod common;

use common::{printed, pudica, run_folders, send, text};
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Every command, busy for much longer than these tests wait: what is typed, and a word of what it says on standard error before the
/// signal comes; none where it prints to standard output from the beginning.
fn busy(folder: &Path, mirror: &str) -> Vec<(Vec<String>, &'static str)> {
    let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    let parity = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/onnx/parity.onnx");
    let with_parity =
        |arguments: &str| [vec!["measure".into(), parity.display().to_string()], words(arguments)].concat();
    assert!(folder.is_dir());
    vec![
        (words("show hahn/dynamics --scale paper"), "planning hahn/dynamics"),
        (words("show hahn/length-scaling seed=0..20000"), "planning hahn/length-scaling"),
        (words("run spectra.toml --out spectra"), "1 run"),
        (words("report stuck"), "reading the runs of stuck"),
        (words("bench encoder --seconds 600"), "timing training steps"),
        (words("boolean parity --n 100 --precision 0.00000001 --time-limit 600"), "computing the measures of parity"),
        (words("boolean random:1 --n 30 --measures influences"), "computing the measures of random:1"),
        (words("bounds parity.safetensors --draws 100000"), "computing both sides of every bound"),
        (words("construct majority --n 300 --samples 100000"), "trying the transformer on 100,000 strings of 300 bits"),
        (words("construct two-majority --n 1000 --samples 1000000"), "trying the program"),
        (words("spectrum softmax-attention --dim 12 --empirical 1000"), "computing the kernel's spectrum"),
        (words("data corrupt all --data data --out corrupted"), "making all at five severities"),
        (words(&format!("data fetch mnist --data data --mirror {mirror}")), "asking for the files"),
        (words("measure --program cat.sh --inputs bits:8 --timeout 600"), "opening models and inputs"),
        (
            with_parity(
                "--inputs bits:8 --nudge weight-noise:rho=0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,2,3,4,5,6,7,8,9,draws=100000 --out measured",
            ),
            "",
        ),
        (words("status sweep --watch"), ""),
    ]
}

/// A folder with all that the commands read.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    printed(path, &["construct", "parity", "--n", "14", "--save", "parity.safetensors"]);
    let spectra = "title = 'Slow'\nkind = 'spectra'\n[settings]\ndim = 10\nwidth = 96\ndepth = 8\n[quick]\n[[quick.sweep]]\nname = 'all'\ngrid.seed = [0]\n";
    std::fs::write(path.join("spectra.toml"), spectra).unwrap();
    let tiny = "title = 'Tiny'\n[settings]\nn = 3\nmodel.d = 8\ntrain = { batch = 8, steps = 20 }\neval.batches = 1\nmeasure = { batches = 1, draws = 2 }\n[quick]\n[[quick.sweep]]\nname = 'all'\ngrid.seed = [0]\n";
    std::fs::write(path.join("tiny.toml"), tiny).unwrap();
    for out in ["sweep", "stuck"] {
        assert!(pudica(path, &["run", "tiny.toml", "--out", out]).status.success());
    }
    // A pipe that nobody writes into: who reads it waits.
    let metrics = run_folders(&path.join("stuck"))[0].join("metrics.jsonl");
    std::fs::remove_file(&metrics).ok();
    assert!(Command::new("mkfifo").arg(&metrics).status().unwrap().success());
    let script = path.join("cat.sh");
    std::fs::write(&script, "#!/bin/sh\nexec cat > /dev/null\n").unwrap();
    assert!(Command::new("chmod").arg("+x").arg(&script).status().unwrap().success());
    std::fs::create_dir_all(path.join("data/cifar10")).unwrap();
    std::fs::write(path.join("data/cifar10/test_batch.bin"), vec![1; 10_000 * 3073]).unwrap();
    folder
}

fn start(folder: &Path, arguments: &[String]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pudica"));
    command.args(arguments).current_dir(folder).env_remove("PUDICA_DATA").stdout(Stdio::null()).stderr(Stdio::piped());
    let path = std::env::join_paths(
        [PathBuf::from(folder)].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    command.env("PATH", path.unwrap()).spawn().unwrap()
}

/// How it ended, if it did within this time.
fn ended(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            None if start.elapsed() < within => std::thread::sleep(Duration::from_millis(10)),
            status => return status,
        }
    }
}

#[test]
fn every_command_says_what_it_does_and_ends_on_a_signal() {
    let folder = folder();
    // It takes connections and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mirror = format!("http://{}", listener.local_addr().unwrap());
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        for (arguments, word) in busy(folder.path(), &mirror) {
            let mut child = start(folder.path(), &arguments);
            // Longer than the second after which it speaks, as this machine may be busy.
            let early = ended(&mut child, Duration::from_millis(2500));
            send(signal, &child);
            let status = ended(&mut child, Duration::from_secs(2));
            child.kill().ok();
            let mut told = Vec::new();
            child.stderr.take().unwrap().read_to_end(&mut told).unwrap();
            let told = text(&told);
            assert_eq!(early, None, "{arguments:?} was not busy: {told}");
            let status = status.unwrap_or_else(|| panic!("{arguments:?} went on after SIG{signal}: {told}"));
            assert_eq!(status.code(), Some(code), "{arguments:?}: {told}");
            assert!(
                told.contains(word) && told.contains("stopped") && !told.contains("panicked"),
                "{arguments:?}: {told}"
            );
        }
    }
}
