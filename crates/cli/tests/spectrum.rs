//! `pudica spectrum` and the experiment `vasudeva/spectra` as a user runs them.

use serde_json::Value;
use std::process::{Command, Output};

fn pudica(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pudica")).args(arguments).output().unwrap()
}

fn spectrum(arguments: &str) -> Output {
    pudica(&["spectrum"].into_iter().chain(arguments.split(' ')).collect::<Vec<_>>())
}

fn json(arguments: &str) -> Value {
    let output = spectrum(&format!("{arguments} --json"));
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs what must fail: exit code 2, nothing on stdout, one sentence on stderr.
fn refused(output: Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn the_json_contract() {
    let object = json("relu --dim 16 --depth 2 --kernel ntk --bias-variance 0.1");
    assert_eq!(object["arch"], "relu");
    assert_eq!(object["kernel"], "ntk");
    assert_eq!(object["dim"], 16);
    assert_eq!(object["depth"], 2);
    let (mu, shares) = (numbers(&object["mu"]), numbers(&object["fractional_variance"]));
    assert_eq!((mu.len(), shares.len()), (17, 17));
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let binomial = 16.0 * 15.0 / 2.0;
    assert!((binomial * mu[2] / mu[0] - shares[2] / shares[0]).abs() < 1e-12);
    assert_eq!(object["monotone"]["even"], true);
    assert_eq!(object["monotone"]["odd"], true);
    assert!(object["accuracy"]["relative_error"].as_f64().unwrap() < 1e-14);
    assert_eq!(object["method"], "infinite-width");
    let named = |arguments: &str| json(arguments)["arch"].clone();
    assert_eq!(named("mlp --dim 4"), "relu");
    assert_eq!(named("mlp --dim 4 --activation erf"), "erf");
}

#[test]
fn five_hundred_and_twelve_dimensions() {
    let object = json("erf --dim 512 --kernel CK");
    assert_eq!(object["kernel"], "ck");
    let mu = numbers(&object["mu"]);
    // erf without bias is odd; asin(4c/5) has (4/5)^(2m+1) at c^(2m+1), and the last eigenvalue is tiny, but not nothing.
    assert!(mu[511] > 0.0 && mu[511] < 1e-200 && mu[512] == 0.0);
    assert!(object["log10_mu"][512].is_null());
    assert!((numbers(&object["fractional_variance"]).iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn the_exact_attention_kernel_contradicts_the_claim() {
    let object = json("linear-attention --dim 8 --kernel ntk");
    assert_eq!(object["monotone"]["even"], true);
    assert!(object["exact"]["distance"]["not_univariate"].as_f64().unwrap() > 0.05);
    assert_eq!(object["exact"]["monotone"]["even"], false);
    assert_eq!(object["exact"]["monotone"]["violations"][0], 8);
    assert!(object["exact"]["eigen"]["largest"][0]["value"].as_f64().unwrap() > 0.0);
    // One token is the case in which the claim is true.
    let one = json("linear-attention --dim 8 --tokens 1");
    assert!(one["exact"]["distance"]["not_univariate"].as_f64().unwrap() < 1e-12);
}

#[test]
fn finite_networks_carry_standard_errors() {
    for arch in ["relu", "softmax-attention", "linear-attention", "lstm"] {
        let object = json(&format!("{arch} --dim 4 --empirical 3 --width 8 --heads 2"));
        let empirical = &object["empirical"];
        assert_eq!(empirical["networks"], 3);
        assert!(empirical["fractional_variance"][1]["std_error"].as_f64().unwrap() > 0.0);
        assert!(empirical["eigenvalue_shares"][0]["mean"].as_f64().unwrap() > 0.0);
        assert_eq!(numbers(&object["mu"]).len(), 5);
        let closed_form = arch == "relu" || arch == "linear-attention";
        assert_eq!(object["method"], if closed_form { "infinite-width" } else { "finite-width" });
    }
    // The same seeds are the same numbers.
    let again = || json("lstm --dim 4 --empirical 2 --width 8 --seed 5")["mu"].clone();
    assert_eq!(again(), again());
}

#[test]
fn people_get_tables() {
    let table = text(spectrum("linear-attention --dim 6 --empirical 2 --width 8"));
    for part in
        ["NTK of linear-attention", "fraction of the variance", "█", "Prop. 3.1", "exact kernel", "not a function", "±"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(text(pudica(&["spectrum", "--help"])).contains("Examples:"));
}

#[test]
fn mistakes_are_sentences() {
    let refusal = |arguments: &str| refused(spectrum(arguments));
    assert!(refusal("rely --dim 8").contains("did you mean 'relu'?"));
    assert!(refusal("relu --dim 0").contains("1 to 512"));
    assert!(refusal("relu --dim 513").contains("1 to 512"));
    assert!(refusal("relu --dim 8 --depth 0").contains("--depth 0"));
    assert!(refusal("relu --dim 8 --weight-variance -1").contains("positive number"));
    assert!(refusal("relu --dim 8 --weight-variance NaN").contains("positive number"));
    assert!(refusal("relu --dim 8 --bias-variance inf").contains("--bias-variance"));
    assert!(refusal("relu --dim 8 --tokens 2").contains("leave --tokens out"));
    assert!(refusal("relu --dim 8 --activation erf").contains("--activation is for transformers"));
    assert!(refusal("relu --dim 8 --exact").contains("leave --exact out"));
    assert!(refusal("linear-attention --dim 12 --tokens 5").contains("1, 2, 3, 4, 6, 12"));
    assert!(refusal("linear-attention --dim 16 --exact").contains("to 14"));
    assert!(refusal("lstm --dim 8").contains("--empirical"));
    assert!(refusal("lstm --dim 13 --empirical 1").contains("to 12"));
    assert!(refusal("relu --dim 8 --empirical 0").contains("number of random networks"));
    assert!(refusal("softmax-attention --dim 8 --empirical 1 --heads 3").contains("does not divide"));
    assert!(refusal("relu --dim 8 --empirical 1 --width 0").contains("--width 0"));
    assert!(refusal("relu --dim 8 --width 16").contains("--empirical"));
    assert!(refusal("relu --dim eight").contains("eight"));
}

#[test]
fn the_experiment_runs_resumes_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let small = ["dim=4", "depth=1", "width=4,8", "heads=2", "seed=0..2"];
    let run = || pudica(&[&["run", "vasudeva/spectra", "--out", path][..], &small].concat());
    assert!(text(run()).contains("20 runs: 20 finished"));
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for part in ["Variance by degree", "Weight on low degrees", "softmax-attention", "lstm", "no such experiment"] {
        assert!(page.contains(part), "{part}");
    }
    for file in ["spectra", "low-degrees", "widths"] {
        assert!(folder.path().join("figures").join(format!("{file}.png")).is_file(), "{file}");
    }
    let summary = std::fs::read_to_string(folder.path().join("summary.json")).unwrap();
    // Without one network's folder, only that network is computed again, and all numbers are the same.
    let some = std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let before = std::fs::read_to_string(some.join("summary.json")).unwrap();
    std::fs::remove_dir_all(&some).unwrap();
    assert!(text(pudica(&["report", path])).contains("20 runs: 19 finished, 1 not made yet"));
    run();
    let numbers = |text: &str| serde_json::from_str::<Value>(text).unwrap()["detail"].clone();
    assert_eq!(numbers(&std::fs::read_to_string(some.join("summary.json")).unwrap()), numbers(&before));
    let kinds = |text: &str| serde_json::from_str::<Value>(text).unwrap()["kinds"].clone();
    assert_eq!(kinds(&std::fs::read_to_string(folder.path().join("summary.json")).unwrap()), kinds(&summary));

    assert!(text(pudica(&["list"])).contains("vasudeva/spectra"));
    assert!(text(pudica(&["show", "vasudeva/spectra"])).contains("nothing is trained"));
    assert!(refused(pudica(&["run", "spectra"])).contains("did you mean `vasudeva/spectra`?"));
    assert!(refused(pudica(&["run", "vasudeva/spectra", "dimm=3"])).contains("did you mean `dim`?"));
    assert!(refused(pudica(&["show", "vasudeva/spectra", "--scale", "paper"])).contains("quick and large"));
}
