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

/// What networks can learn can be analysed, written the same way.
#[test]
fn functions_are_written_as_targets_are() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("f.txt");
    std::fs::write(&table, "00010111").unwrap();
    let expected = json(&["majority", "--n", "3"]);
    let table = format!("table:{}", table.display());
    for arguments in
        [&["expr:maj(x1, x2, x3)"][..], &["x1&x2|x1&x3|x2&x3"], &["threshold:n/2+1", "--n", "3"], &[&table, "--n", "3"]]
    {
        let found = json(arguments);
        for key in ["n", "influences", "degree_profile", "sensitivity_histogram", "nonlinearity"] {
            assert_eq!(found[key], expected[key], "{arguments:?}: {key}");
        }
    }
    assert!(refused(&["threshold:n/3"]).contains("say how many variables"));
    assert!(refused(&[&table, "--n", "4"]).contains("2^3 rows, but n=4"));
}

#[test]
fn two_functions_compared() {
    let object = json(&["parity", "--n", "12", "--versus", "first"]);
    assert_eq!(object["versus"]["distance"], 0.5);
    assert_eq!(object["versus"]["holds"], true);
    assert!(object["versus"]["lemma21"]["rmse"].as_f64().unwrap() > 0.5);
}

#[test]
fn names_expressions_and_tables_can_be_compared_with() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("and.txt");
    std::fs::write(&table, "00000011").unwrap();
    for other in ["x1 && x2", "!(!x1 | !x2)", table.to_str().unwrap()] {
        let found = json(&["parity", "--n", "3", "--versus", other]);
        assert_eq!(found["versus"]["distance"], 0.5, "{other}");
        assert_eq!(found["versus"]["average_sensitivities"][1], 1.0, "{other}");
    }
    let text = String::from_utf8(pudica(&["parity", "--n", "3", "--versus", "x2"]).stdout).unwrap();
    assert!(text.contains("a function of low average sensitivity is far from one of high"), "{text}");
}

#[test]
fn what_kind_of_function_it_is() {
    let found = json(&["--expr", "x1 & x2 ^ x3", "--n", "4", "--rho", "0.5,0.9"]);
    assert_eq!((&found["mean"], &found["nonlinearity"]), (&0.0.into(), &4.into()));
    let flags = ["balanced", "monotone", "unate", "symmetric", "linear", "affine", "linear_threshold"];
    let flags = flags.map(|flag| found[flag].as_bool().unwrap());
    assert_eq!(flags, [true, false, false, false, false, false, false]);
    assert_eq!(found["relevant_variables"], Value::from(vec![1, 2, 3]));
    assert_eq!(found["algebraic_normal_form"]["polynomial"], "x3 + x1 x2");
    assert_eq!((&found["gf2_degree"], &found["variance"]), (&2.into(), &1.0.into()));
    assert_eq!((&found["decision_tree_depth"], &found["fourier_entropy"]), (&3.into(), &2.0.into()));
    assert_eq!((&found["correlation_immunity"], &found["resiliency"]), (&0.into(), &0.into()));
    assert_eq!(found["chow_parameters"], Value::from(vec![0.0, 0.0, 0.0, 0.5, 0.0]));
    // r(a) is not 0 for a = 0, x3, x4, x3 + x4 alone: 16 each.
    assert_eq!((&found["absolute_indicator"], &found["sum_of_square_indicator"]), (&16.into(), &1024.0.into()));
    let largest = found["top_coefficients"].as_array().unwrap();
    assert_eq!((largest.len(), &largest[0]["variables"], &largest[0]["value"]), (4, &vec![3].into(), &0.5.into()));
    let stabilities = found["noise_stability"].as_array().unwrap();
    assert_eq!((stabilities.len(), &stabilities[1]["rho"]), (2, &0.9.into()));
    // Every weight at most 4 degrees up, and none of them minus nothing.
    assert!(found["spectral_weight_above"].as_array().unwrap().iter().all(|w| w.as_f64().unwrap().is_sign_positive()));

    let text = String::from_utf8(pudica(&["--expr", "x1 & x2 ^ x3", "--n", "4"]).stdout).unwrap();
    for part in ["x3 + x1 x2", "a 3-junta", "not monotone", "each bit of y that of x with probability 0.95", "x1 x3"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// f = x1 & x2 | x3 with x1 = 1 is x2 | x3: variables keep their names.
#[test]
fn restrictions_and_biased_bits() {
    let found = json(&["x1 & x2 | x3", "--fix", "x1=1", "--p", "0.25", "--convention", "01"]);
    assert_eq!((&found["n"], &found["free_variables"]), (&2.into(), &vec![2, 3].into()));
    assert_eq!(found["relevant_variables"], Value::from(vec![2, 3]));
    assert_eq!(found["algebraic_normal_form"]["polynomial"], "x2 + x3 + x2 x3");
    assert_eq!(found["influences"], json(&["or", "--n", "2", "--convention", "01"])["influences"]);
    let biased = &found["biased"];
    assert_eq!((&biased["p"], &biased["mean"]), (&0.25.into(), &0.4375.into())); // 1 - 0.75^2
    assert_eq!(biased["influences"], Value::from(vec![0.75 / 4.0; 2]));
    // OR is 1 - (1 - x2) (1 - x3), and 1 - x is 0.75 + s phi with s^2 = 0.25 * 0.75.
    let square = 0.1875;
    let weights = [0.4375f64.powi(2), 2.0 * 0.75f64.powi(2) * square, square * square];
    for (found, weight) in biased["degree_profile"].as_array().unwrap().iter().zip(weights) {
        assert!((found.as_f64().unwrap() - weight).abs() < 1e-15, "{biased}");
    }
    assert_eq!(biased["top_coefficients"][3]["variables"], Value::from(vec![2, 3]));
    assert!((biased["top_coefficients"][3]["value"].as_f64().unwrap() + square).abs() < 1e-15, "{biased}");
    assert_eq!(
        (&biased["checks"]["parseval"]["holds"], &biased["checks"]["eq17"]["holds"]),
        (&true.into(), &true.into())
    );
    let only = json(&["or", "--n", "2", "--p", "0.25", "--measures", "noise_stability"]);
    assert!(only["biased"]["degree_profile"].is_null() && only["biased"]["noise_stability"][0]["value"].is_f64());
    let table = String::from_utf8(pudica(&["x1 & x2 | x3", "--fix", "x1=1", "--csv"]).stdout).unwrap();
    assert!(table.lines().any(|line| line == "influences,x3,0.5,,"), "{table}");
    let page = String::from_utf8(pudica(&["x1 & x2 | x3", "--fix", "x1=1", "--p", "0.25"]).stdout).unwrap();
    for part in [
        "x1 & x2 | x3 with x1=1, n = 2",
        "free variables",
        "x2 x3",
        "with bits 1 at p = 0.25",
        "f = 1 where x2 + x3 >= 1",
        "largest coefficients at p = 0.25",
        "degree profile at p = 0.25",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(json(&["majority", "--n", "3"])["biased"].is_null());
    // Beyond tables: parity of 38 free bits.
    assert_eq!(json(&["parity", "--n", "40", "--fix", "x1=1,x40=0"])["average_sensitivity"]["value"], 38.0);
}

#[test]
fn as_many_coefficients_as_asked_for() {
    let count = |top: &str| json(&["majority", "--n", "7", "--top", top])["top_coefficients"].as_array().unwrap().len();
    assert_eq!((count("5"), count("20"), count("1000")), (5, 20, 64)); // all sets of odd size
}

#[test]
fn latex_for_papers() {
    let text = |arguments: &[&str]| String::from_utf8(pudica(arguments).stdout).unwrap();
    let small = text(&["expr:x1 & x2", "--latex"]);
    for part in [
        r"expr:x1 \& x2, $n = 2$, $f \in \{+1, -1\}$",
        r"$\mathbb{E}[f]$ & $0.5$ \\",
        r"algebraic normal form & $x_{1} x_{2}$ \\",
        r"linear threshold function & yes \\",
        r"\[ f(x) = 0.5 + 0.5\,\chi_{\{1\}} + 0.5\,\chi_{\{2\}} - 0.5\,\chi_{\{1,2\}} \]",
    ] {
        assert!(small.contains(part), "{part}: {small}");
    }
    assert!(text(&["majority", "--n", "9", "--latex", "--top", "2"]).contains(r"+ \cdots \]"));
    assert!(text(&["parity", "--n", "40", "--latex"]).contains(r"average sensitivity $\mathrm{as}_n(f)$ & $40$ $["));
}

#[test]
fn influences_beyond_a_screenful_are_not_lost() {
    let text = |arguments: &[&str]| String::from_utf8(pudica(arguments).stdout).unwrap();
    let shown = text(&["--expr", "x40", "--method", "sampled", "--precision", "0.5"]);
    assert!(shown.lines().any(|line| line.trim_start().starts_with("x40 ") && line.contains('█')), "{shown}");
    assert!(shown.contains("and 39 more, the largest 0  [0, 0.0"), "{shown}");
    // Sampled numbers carry their intervals even where all are equal.
    let parity = text(&["parity", "--n", "40"]);
    let line = parity.lines().find(|line| line.contains("for every variable")).unwrap();
    assert!(line.contains(", 1]  from "), "{line}");
    assert!(text(&["parity", "--n", "5", "--precision", "0.1"]).contains("Sampled because of --precision"));
}

#[test]
fn csv_has_one_number_per_line() {
    let text = |arguments: &[&str]| String::from_utf8(pudica(arguments).stdout).unwrap();
    let exact = text(&["majority", "--n", "3", "--csv", "--versus", "first"]);
    for line in [
        "quantity,of,value,low95,high95",
        "average_sensitivity,,1.5,,",
        "influences,x3,0.5,,",
        "sensitivity_histogram,2,6,,",
        "degree_profile,3,0.25,,",
        "top_coefficients,x1 x2 x3,-0.5,,",
        "monotone,,1,,",
        "relevant_variables,x2,1,,",
        "gf2_degree,,2,,",
        "threshold_weights,threshold,2,,",
        "decision_tree_depth,,3,,",
        "versus,distance,0.25,,",
    ] {
        assert!(exact.lines().any(|found| found == line), "{line}: {exact}");
    }
    assert!(exact.lines().all(|line| line.matches(',').count() == 4), "{exact}");
    let sampled = text(&["parity", "--n", "40", "--csv"]);
    let mean = sampled.lines().find(|line| line.starts_with("mean,,")).unwrap();
    let cells: Vec<f64> = mean.split(',').skip(2).map(|cell| cell.parse().unwrap()).collect();
    assert!(cells[1] < cells[0] && cells[0] < cells[2], "{mean}");
}

#[test]
fn a_written_spectrum_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.npy");
    let text = String::from_utf8(pudica(&["first", "--n", "3", "--spectrum", path.to_str().unwrap()]).stdout).unwrap();
    assert!(text.contains(&format!("wrote all 8 coefficients to {}", path.display())), "{text}");
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
        (&["parity", "--n", "0"], "give a whole number from 1 to 10,000"),
        (&["parity", "--n", "99999"], "give a whole number from 1 to 10,000"),
        (&["parity", "--n", "-3"], "'--n <N>': give a whole number from 1 to 10,000"),
        (&["parity", "--n", "4", "--seed", "-1"], "'--seed <SEED>': give a whole number, 0 or more"),
        (&["parity", "--n", "4", "--threads", "0"], "give a whole number from 1 to 1,024"),
        (&["parity", "--n", "4", "--threads", "1000000"], "give a whole number from 1 to 1,024"),
        (&["--table", "/dev/zero"], "/dev/zero: this is a device, not a file"),
        (&["parity", "--n", "4", "--versus", "x1 & & x2"], "column 6"),
        (&["parity", "--n", "4", "--versus", "x5"], "uses x5, but n=4"),
        (&["parity", "--n", "4", "--versus", "majorty"], "did you mean 'majority'?"),
        (&["parity", "--n", "4", "--rho", "0.5,1.5"], "--rho 1.5 is no correlation"),
        (&["parity", "--n", "4", "--json", "--csv"], "cannot be used with"),
        (&["parity", "--n", "34"], "n=34 needs 64 GiB for the spectrum"),
        (
            &["parity", "--n", "40", "--measures", "degree"],
            "only mean, variance, average_sensitivity and influences can be sampled",
        ),
        (&["parity", "--n", "4", "--fix", "x5=1"], "there is no x5 to fix: n=4"),
        (&["parity", "--n", "4", "--fix", "x1"], "write x3=1"),
        (&["parity", "--n", "4", "--p", "1.5"], "--p 1.5 is no probability"),
        (&["parity", "--n", "40", "--p", "0.5"], "leave out --p"),
        (&["mean", "--n", "4", "--p", "0.5"], "--p is for Boolean functions"),
        (&["parity", "--n", "4", "--top", "0"], "give a whole number from 1 to 100,000"),
        (&["parity", "--n", "13", "--measures", "linear_threshold"], "n=13 is too large"),
        (&["parity", "--n", "13", "--measures", "decision_tree_depth"], "n=13 is too large"),
        (&["mean", "--n", "4", "--measures", "fourier_entropy"], "are for Boolean functions"),
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
