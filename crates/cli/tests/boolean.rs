//! `pudica boolean` as a user runs it.

use serde_json::Value;
use std::process::{Command, Output};

fn pudica(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pudica")).arg("boolean").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = pudica(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs what must fail: exit code 2, nothing on stdout, and the sentence on stderr.
fn refused(arguments: &[&str]) -> String {
    let output = pudica(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_json_contract() {
    let object = json(&["majority", "--n", "21"]);
    assert_eq!(object["function"], "majority");
    assert_eq!(object["n"], 21);
    assert_eq!(object["convention"], "pm1");
    assert_eq!(object["method"], "exact");
    let average = object["average_sensitivity"].as_f64().unwrap();
    assert!((average - 21.0 * 184_756.0 / 1_048_576.0).abs() < 1e-12); // n C(20,10) / 2^20
    assert_eq!(object["influences"].as_array().unwrap().len(), 21);
    assert_eq!(object["max_sensitivity"], 11.0);
    assert_eq!(object["sensitivity_histogram"].as_array().unwrap().len(), 22);
    assert_eq!(object["degree"], 21);
    assert_eq!(object["degree_profile"].as_array().unwrap().len(), 22);
    assert!(object["spectral_norm"].is_f64());
    for check in ["parseval", "eq17", "huang"] {
        assert_eq!(object["checks"][check]["holds"], true, "{check}");
    }
    assert!(object["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn sampled_values_carry_their_interval() {
    let object = json(&["majority", "--n", "201", "--precision", "0.5", "--seed", "3"]);
    assert_eq!(object["method"], "sampled");
    let average = &object["average_sensitivity"];
    let [low, high] = [0, 1].map(|end| average["ci95"][end].as_f64().unwrap());
    assert!(high - low <= 1.0 && (low..=high).contains(&11.298), "{average}"); // 201 C(200,100) / 2^200 = 11.298
    assert!(average["samples"].as_u64().unwrap() >= 1024);
    assert_eq!(object["influences"].as_array().unwrap().len(), 201);
    assert!(object["influences"][7]["ci95"].is_array());
    assert!(object["degree"].is_null());
    // Beyond a table's reach sampling is chosen by itself.
    assert_eq!(json(&["parity", "--n", "10000"])["average_sensitivity"]["value"], 10_000.0);
}

#[test]
fn only_what_was_asked_for() {
    let object = json(&["parity", "--n", "10", "--measures", "influences,degree"]);
    assert_eq!(object["degree"], 10);
    assert_eq!(object["influences"][9], 1.0);
    assert!(object["average_sensitivity"].is_null() && object["sensitivity_histogram"].is_null());
    assert!(object["spectral_norm"].is_null());
}

#[test]
fn conventions_differ_by_four() {
    let (pm1, zero_one) = (json(&["and", "--n", "4"]), json(&["and", "--n", "4", "--convention", "01"]));
    assert_eq!(zero_one["convention"], "01");
    let value = |object: &Value| object["average_sensitivity"].as_f64().unwrap();
    assert_eq!(value(&pm1), 4.0 * value(&zero_one));
    assert_eq!(value(&zero_one), zero_one["average_sensitivity_by_convention"]["01"].as_f64().unwrap());
    assert_eq!(zero_one["checks"]["parseval"]["left"], 1.0 / 16.0);
    let mean = json(&["mean", "--n", "8"]);
    assert!((value(&mean) - 1.0 / 8.0).abs() < 1e-12 && mean["degree"] == 1 && mean["sensitivity_histogram"].is_null());
    assert!((value(&json(&["mean", "--n", "8", "--convention", "01"])) - 1.0 / 32.0).abs() < 1e-12);
}

#[test]
fn expressions_tables_and_spectra_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    // x1 & x2 | x3: rows 000 to 111.
    std::fs::write(path("table.txt"), "0101 0111\n").unwrap();
    let by_table = json(&["--table", &path("table.txt"), "--spectrum", &path("s.npy")]);
    let by_expression = json(&["--expr", "x1 & x2 | x3"]);
    for key in
        ["n", "average_sensitivity", "influences", "degree_profile", "block_sensitivity", "certificate_complexity"]
    {
        assert_eq!(by_table[key], by_expression[key], "{key}");
    }
    let spectrum = std::fs::read(path("s.npy")).unwrap();
    assert_eq!(&spectrum[..6], b"\x93NUMPY");
    let coefficients: Vec<f64> =
        spectrum[spectrum.len() - 64..].chunks(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect();
    assert_eq!(coefficients[0], -0.25); // three inputs with 0, five with 1
    assert_eq!(coefficients[1], 0.75); // x3 is the least significant bit of S
}

#[test]
fn two_functions_compared() {
    let object = json(&["parity", "--n", "12", "--versus", "first"]);
    assert_eq!(object["versus"]["distance"], 0.5);
    assert_eq!(object["versus"]["holds"], true);
    assert!(object["versus"]["lemma21"]["rmse"].as_f64().unwrap() > 0.5);
}

#[test]
fn people_get_a_table_and_a_list() {
    let text = String::from_utf8(pudica(&["majority", "--n", "5"]).stdout).unwrap();
    for part in ["average sensitivity", "1.875", "degree profile", "█", "holds"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let list = String::from_utf8(pudica(&["--list"]).stdout).unwrap();
    for name in [
        "parity",
        "kparity:K",
        "majority",
        "first",
        "dictator:I",
        "mean",
        "and",
        "or",
        "threshold:T",
        "random:SEED",
        "tribes:W",
        "address:K",
        "inner-product",
        "two-majority",
    ] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{name}");
    }
}

#[test]
fn bad_input_gets_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("seven.txt");
    std::fs::write(&table, "0110100").unwrap();
    for (arguments, part) in [
        (&["majorty", "--n", "5"][..], "did you mean 'majority'?"),
        (&["majority"], "--n 20"),
        (&["parity", "--n", "0"], "at least one variable"),
        (&["parity", "--n", "99999"], "up to 10000"),
        (&["parity", "--n", "34"], "n=34 needs 64 GiB for the spectrum"),
        (&["parity", "--n", "40", "--measures", "degree"], "only average_sensitivity and influences can be sampled"),
        (&["parity", "--n", "40", "--method", "exact"], "too large for an exact truth table"),
        (&["--expr", "x1 & & x2"], "column 6"),
        (&["--table", table.to_str().unwrap()], "7 values, not 2^n"),
        (&["--table", "/no/such/table"], "cannot read /no/such/table"),
        (&["parity", "--n", "4", "--measures", "degre"], "did you mean 'degree'?"),
        (&["parity", "--n", "4", "--precision", "-1"], "not a positive number"),
        (&["parity", "--n", "4", "--rho", "2"], "from -1 to 1"),
        (&["parity", "--n", "4", "--spectrum", "/no/such/folder/s.npy"], "cannot write /no/such/folder/s.npy"),
        (&["mean", "--n", "4", "--versus", "first"], "real values"),
        (&["parity", "--n", "4", "--versus", "tribes:3"], "multiple of W=3"),
        (&["parity", "--n", "four"], "invalid value 'four'"),
        (&[], "FUNCTION"),
    ] {
        let message = refused(arguments);
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}
