//! `pudica data fetch` as a user runs it, from a server on this machine.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Serves these files; others are 404. No ranges.
fn serve(files: HashMap<String, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let path = request[0].split(' ').nth(1).unwrap_or_default();
            let (status, body) = match files.get(path) {
                Some(body) => ("200 OK", body.as_slice()),
                None => ("404 Not Found", &[][..]),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    url
}

fn fetch(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pudica"));
    // A proxy of this machine's own must not stand between the test and its server.
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "PUDICA_DATA"] {
        command.env_remove(name);
    }
    command.args(["data", "fetch"]).args(arguments).output().unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = fetch(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_cannot_be_had_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let wrong = [("/mnist/train-images-idx3-ubyte.gz".to_string(), b"not the images".to_vec())];
    let mirror = serve(wrong.into_iter().collect());
    let problem = refused(&["mnist", "--data", &data, "--mirror", &mirror]);
    assert!(
        problem.contains("not the published file") && problem.contains("6bbc9ace898e44ae57da46a324031adb"),
        "{problem}"
    );
    assert!(!folder.path().join("mnist").exists(), "nothing wrong is left");
    let problem = refused(&["svhn", "--data", &data, "--mirror", &mirror]);
    assert!(problem.contains("/svhn/train_32x32.mat: the server answered 404"), "{problem}");
    assert_eq!(problem.trim_end().lines().count(), 1);
    assert!(refused(&["mnsit", "--data", &data]).contains("did you mean 'mnist'?"));
    assert!(refused(&["qqp", "--data", &data]).contains("gluebenchmark.com"));
    assert!(refused(&["mnist"]).contains("--data DIR, or the variable PUDICA_DATA"));
}

/// The real files of Fashion-MNIST, where they are on this machine.
#[test]
fn a_data_set_is_fetched_once() {
    let shared = std::env::var_os("PUDICA_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let names = ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"];
    let read = |name: &str| {
        let file = format!("{name}-ubyte.gz");
        let bytes = fs::read(shared.join("fashion_mnist").join(&file)).ok()?;
        Some((format!("/fashion_mnist/{file}"), bytes))
    };
    let Some(files) = names.into_iter().map(read).collect::<Option<HashMap<_, _>>>() else {
        println!("skipped: no Fashion-MNIST in {}", shared.display());
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("new").display().to_string();
    let mirror = serve(files);
    let first = fetch(&["fashion-mnist", "--data", &data, "--mirror", &mirror]);
    let said = String::from_utf8(first.stdout).unwrap();
    assert!(first.status.success() && said.matches("as published").count() == 4, "{said}");
    // The second time nothing is asked for: nobody listens at this address.
    let second = fetch(&["fashion-mnist", "--data", &data, "--mirror", "http://127.0.0.1:9", "--json"]);
    let second: serde_json::Value = serde_json::from_slice(&second.stdout).unwrap();
    assert!((0..4).all(|at| second["files"][at]["state"] == "already here"), "{second}");
    let verified = Command::new(env!("CARGO_BIN_EXE_pudica")).args(["data", "verify", &data]).output().unwrap();
    assert!(verified.status.success());
}
