//! `pudica measure` as a user types it.

mod common;

use common::{json, measures, pudica, refused, run_folders, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/onnx").join(name)
}

fn measure(folder: &Path, arguments: &[&str]) -> Output {
    pudica(folder, &[&["measure"], arguments].concat())
}

/// The summary of a measurement that succeeds.
fn summary(folder: &Path, arguments: &[&str]) -> Value {
    let output = measure(folder, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A table of numbers whose class is the sign of the first column.
fn table(folder: &Path) -> PathBuf {
    let row = |at: usize| {
        let value = |column: usize| ((at * 7 + column * 13) % 11) as f64 / 5.0 - 1.0;
        let columns: Vec<String> = (0..6).map(|column| value(column).to_string()).collect();
        format!("{},{}\n", columns.join(","), usize::from(value(0) > 0.0))
    };
    let path = folder.join("table.csv");
    std::fs::write(&path, format!("a,b,c,d,e,f,label\n{}", (0..40).map(row).collect::<String>())).unwrap();
    path
}

#[test]
fn parity_is_exact_on_all_strings() {
    let folder = tempfile::tempdir().unwrap();
    let parity = model("parity.onnx");
    let arguments = [parity.to_str().unwrap(), "--inputs", "bits:8", "--out", "out"];
    let found = summary(folder.path(), &arguments);
    let label = &found["results"][0];
    assert_eq!((&label["response"], &label["value"], &label["exact"]), (&"label".into(), &1.0.into(), &true.into()));
    assert_eq!((&label["evaluations"], &label["std_error"]), (&256.into(), &0.0.into()));
    for file in ["report.html", "results.csv", "results.parquet", "inputs.parquet", "summary.json", "details.json"] {
        assert!(folder.path().join("out").join(file).is_file(), "{file}");
    }
    let printed = text(&measure(folder.path(), &arguments).stdout);
    assert!(printed.contains("average sensitivity  8") && printed.contains("report.html"), "{printed}");
    let details = json(&folder.path().join("out/details.json"));
    assert_eq!(details["boolean"][0]["degree_profile"][8], 1.0);
}

/// What is built by hand, and what a run has learnt, are models, too.
#[test]
fn our_own_networks_are_models() {
    let folder = tempfile::tempdir().unwrap();
    let built = pudica(folder.path(), &["construct", "majority", "--n", "5", "--save", "majority.safetensors"]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    let found = summary(folder.path(), &["majority.safetensors", "--inputs", "bits:5", "--response", "label"]);
    // Of five flips, 5 * C(4, 2) / 2^4 change a majority in the mean over all strings.
    assert_eq!(found["results"][0]["value"], 0.375, "{found}");
    let recipe = "title = \"Tiny\"\n[settings]\ntarget = \"first\"\nn = 3\nmodel.d = 8\ntrain.batch = 16\ntrain.steps = 20\n\
                  eval.batches = 2\nmeasure.batches = 2\nmeasure.draws = 2\n[[quick.sweep]]\nname = \"all\"\ngrid.seed = \"0..1\"\n";
    std::fs::write(folder.path().join("tiny.toml"), recipe).unwrap();
    let ran = pudica(folder.path(), &["run", "tiny.toml", "--out", "tiny"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let run = &run_folders(&folder.path().join("tiny"))[0];
    let found = summary(folder.path(), &[run.to_str().unwrap(), "--inputs", "bits:3", "--response", "label"]);
    let measured = &measures(&folder.path().join("tiny"))[0]["average_sensitivity"];
    let label = &found["results"][0];
    let total = label["value"].as_f64().unwrap() * label["sites"].as_f64().unwrap();
    assert_eq!((Some(total), &label["exact"]), (measured.as_f64(), &true.into()), "as the run itself measured it");
}

#[test]
fn a_table_with_curves_and_two_models() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(folder.path());
    let mlp = model("mlp.onnx");
    let other = format!("{}:name=again,outputs=logits", mlp.display());
    let found = summary(
        folder.path(),
        &[
            mlp.to_str().unwrap(),
            &other,
            "--inputs",
            table.to_str().unwrap(),
            "--label",
            "label",
            "--nudge",
            "feature-noise:scale=0.1,0.5",
            "--nudge",
            "weight-noise:rho=0.05,draws=4",
            "--nudge",
            "hessian:draws=3",
        ],
    );
    assert_eq!(found["models"].as_array().unwrap().len(), 2);
    assert!(found["models"][0]["clean_accuracy"]["value"].is_number());
    let results = found["results"].as_array().unwrap();
    let nudges: Vec<&str> = results.iter().filter_map(|result| result["nudge"].as_str()).collect();
    for nudge in
        ["feature-noise:scale=0.1", "feature-noise:scale=0.5", "weight-noise:rho=0.05,draws=4", "hessian:draws=3"]
    {
        assert!(nudges.contains(&nudge), "{nudges:?}");
    }
    // Both are one model, so nothing tells them apart.
    for difference in found["differences"].as_array().unwrap() {
        assert_eq!(difference["value"], 0.0, "{difference}");
    }
    assert!(folder.path().join("runs/measure").is_dir());
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let (parity, cnn) = (model("parity.onnx"), model("cnn.onnx"));
    let (parity, cnn) = (parity.to_str().unwrap(), cnn.to_str().unwrap());
    std::fs::write(folder.path().join("broken.onnx"), b"this is no model").unwrap();
    std::fs::write(folder.path().join("broken.pt"), b"PK\x03\x04 nor is this").unwrap();
    std::fs::write(folder.path().join("notes.doc"), b"hello").unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    for (arguments, sentence) in [
        (vec![], "--inputs"),
        (vec![parity], "--inputs"),
        (vec!["--inputs", "bits:8"], "name a model"),
        (vec![parity, "--inputs", "bits:9"], "bits:8 is meant"),
        (vec![parity, "--inputs", "bits:8", "--nudge", "patch-noise"], "is for images"),
        (vec![parity, "--inputs", "bits:8", "--nudge", "bitflip"], "did you mean 'bit-flip'"),
        (vec![parity, "--inputs", "bits:8", "--response", "labels"], "did you mean 'label'"),
        (vec![parity, "--inputs", "bits:8", "--precision", "0"], "more than 0"),
        (vec![parity, "--inputs", "bits:8", "--runtime", "onnx"], "tract or ort"),
        (vec![parity, "--inputs", "nowhere/"], "nowhere"),
        (vec![cnn, "--inputs", "cifar10:test"], "--data"),
        (vec![cnn, "--inputs", "empty"], "empty"),
        (vec!["nothing.onnx", "--inputs", "bits:8"], "nothing.onnx"),
        (vec!["broken.onnx", "--inputs", "bits:8"], "broken.onnx"),
        (vec!["broken.pt", "--inputs", "bits:8"], "broken.pt"),
        (vec!["notes.doc", "--inputs", "bits:8"], "notes.doc"),
        (vec!["empty", "--inputs", "bits:8"], "config.json"),
        (vec!["--program", "no-such-program-anywhere", "--inputs", "bits:8"], "no-such-program-anywhere"),
        (vec![&format!("{parity}:nam=x"), "--inputs", "bits:8"], "did you mean 'name'"),
    ] {
        let told = refused(folder.path(), &[&["measure"], &arguments[..]].concat());
        assert!(told.contains(sentence), "{arguments:?}: {told}");
        assert!(!folder.path().join("runs").exists(), "{arguments:?}: nothing is written");
    }
}

#[test]
fn everything_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let plain = text(&measure(folder.path(), &["--list"]).stdout);
    let listed: Value = serde_json::from_slice(&measure(folder.path(), &["--list", "--json"]).stdout).unwrap();
    let nudges = listed["nudges"].as_array().unwrap();
    assert!(nudges.len() >= 18);
    for nudge in nudges {
        assert!(plain.contains(&format!("\n{} (", nudge["name"].as_str().unwrap())), "{nudge}");
    }
}
