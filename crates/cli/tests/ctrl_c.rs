//! Ctrl-C and SIGTERM end every command within two seconds, with a word and the signal's code; and nothing computes for long before it
//! says what it does.

#![cfg(unix)]

mod common;

use common::{printed, pudica, send, text};
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
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
        (words("show hahn/length-scaling --scale paper"), "planning hahn/length-scaling"),
        (words("run spectra.toml --out spectra"), "1 run"),
        (words("report stuck"), "reading the runs of stuck"),
        (words("bench encoder --seconds 600"), "timing training steps"),
        (words("boolean parity --n 100 --precision 0.00000001 --time-limit 600"), "computing the measures of parity"),
        (words("boolean random:1 --n 26 --threads 1"), "computing the measures of random:1"),
        (words("bounds parity.safetensors --draws 100000"), "computing both sides of every bound"),
        (words("construct majority --n 300 --samples 100000"), "trying the transformer on 100,000 strings of 300 bits"),
        (words("spectrum softmax-attention --dim 12 --empirical 1000"), "computing the kernel's spectrum"),
        (words("data corrupt zoom_blur --data data --out corrupted"), "making zoom_blur at five severities"),
        (words(&format!("data fetch mnist --data data --mirror {mirror}")), "asking for the files"),
        (words("measure --program cat.sh --inputs bits:8 --timeout 600"), "opening models and inputs"),
        (
            with_parity(
                "--inputs bits:8 --nudge weight-noise:rho=0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,2,3,4,5,6,7,8,9,draws=100000 --out measured",
            ),
            "into measured",
        ),
        (words("status spectra --watch"), ""),
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
    assert!(pudica(path, &["run", "tiny.toml", "--out", "stuck"]).status.success());
    // A pipe that nobody reads from: who writes the page into it waits.
    let page = path.join("stuck/report.html");
    std::fs::remove_file(&page).unwrap();
    assert!(Command::new("mkfifo").arg(&page).status().unwrap().success());
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

/// Waits until something is so, or this time has passed; whether it is.
fn wait(within: Duration, mut so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !so() {
        if start.elapsed() > within {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
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
            let told = Arc::new(Mutex::new(Vec::new()));
            let (mut pipe, into) = (child.stderr.take().unwrap(), Arc::clone(&told));
            let reader = std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                    into.lock().unwrap().extend(&bytes[..count]);
                }
            });
            let said = || text(&told.lock().unwrap());
            // A second, and what a busy machine adds to it.
            let spoke = match word {
                "" => !wait(Duration::from_millis(1500), || false),
                word => wait(Duration::from_secs(60), || said().contains(word)),
            };
            assert!(spoke, "{arguments:?} does not say '{word}': {}", said());
            assert_eq!(child.try_wait().unwrap(), None, "{arguments:?} was not busy: {}", said());
            send(signal, &child);
            let ended = wait(Duration::from_secs(2), || child.try_wait().unwrap().is_some());
            child.kill().ok();
            let status = child.wait().unwrap();
            reader.join().unwrap();
            assert!(ended, "{arguments:?} went on after SIG{signal}: {}", said());
            assert_eq!(status.code(), Some(code), "{arguments:?}: {}", said());
            assert!(said().contains("stopped") && !said().contains("panicked"), "{arguments:?}: {}", said());
        }
    }
}
