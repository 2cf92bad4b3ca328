//! The report of spectra, from run folders made by hand.

mod common;

use common::{Planned, begin_by_hand, checked, place, summary};
use serde_json::{Value, json};
use std::path::Path;

/// The variance by degree of a network on 3 bits: an LSTM has less of it at degree 1, and every other seed 0.02 more.
fn shares(run: &Planned) -> [f64; 4] {
    let first = if run.text("/architecture") == "lstm" { 0.4 } else { 0.6 } + 0.02 * run.number("/seed");
    [0.1, first, 0.2, 0.7 - first]
}

fn finish(run: &Planned) {
    let shares = shares(run);
    let kernel =
        json!({"mu": [1.0, 0.5, 0.25, 0.125], "fractional_variance": shares, "off_diagonal": null, "eigen": null});
    let wide = [0.1, 0.5, 0.3, 0.1];
    let closed_form = run.text("/architecture") == "relu";
    let limit = if closed_form { json!(wide) } else { Value::Null };
    let mut measures = json!({});
    for kernel in ["ck", "ntk"] {
        let mean_degree: f64 = (0..4).map(|degree| f64::from(degree as u8) * shares[degree]).sum();
        measures[format!("{kernel}_mean_degree")] = mean_degree.into();
        for degree in 1..=3 {
            let share = shares[1..=degree].iter().sum::<f64>() / 0.9;
            measures[format!("{kernel}_low_degree_{degree}")] = share.into();
        }
        if closed_form {
            measures[format!("infinite_{kernel}_low_degree_2")] = (0.8 / 0.9).into();
            measures[format!("infinite_{kernel}_mean_degree")] = 1.4.into();
        }
    }
    run.log([]);
    run.finish(true, measures, json!({"ck": kernel, "ntk": kernel, "infinite": {"ck": limit, "ntk": limit}}));
}

fn make_up(folder: &Path) {
    let mut runs = Vec::new();
    for architecture in ["relu", "lstm"] {
        for width in [4, 16] {
            for seed in [0, 1] {
                runs.push(json!({"seed": seed, "dim": 3, "architecture": architecture, "depth": 1, "width": width, "heads": 2, "tokens": 0}));
            }
        }
    }
    begin_by_hand("vasudeva/spectra", "spectra", "", &runs, folder).iter().for_each(finish);
}

#[test]
fn what_was_put_in_is_told() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "vasudeva/spectra");
    make_up(&folder);
    let report = pudica_report::write(&folder).unwrap();
    let (names, page) = checked(&report);
    assert_eq!(names, ["spectra", "low-degrees", "widths"]);
    for part in ["CK: most weight on degrees 1 and 2 first", "CK, 1 layer", "8 of 8 runs finished · d = 3", "0.8889"] {
        assert!(page.contains(part), "{part}");
    }
    // The widest of both architectures, for both kernels; relu has more weight on degrees 1 and 2.
    let summary = summary(&folder);
    let kinds = summary["kinds"].as_array().unwrap();
    let names: Vec<&str> = kinds.iter().map(|kind| kind["arch"].as_str().unwrap()).collect();
    assert_eq!(names, ["relu", "lstm", "relu", "lstm"]);
    let relu = &kinds[0];
    assert_eq!((&relu["width"], &relu["kernel"], &relu["finite"]["networks"]), (&json!(16), &json!("ck"), &json!(2)));
    assert_eq!(relu["infinite_fractional_variance"], json!([0.1, 0.5, 0.3, 0.1]));
    assert_eq!(
        (&kinds[1]["infinite_fractional_variance"], &kinds[1]["finite"]["off_diagonal"]),
        (&Value::Null, &Value::Null)
    );
    let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-12;
    // Seeds 0 and 1 have 0.6 and 0.62.
    let first = &relu["finite"]["fractional_variance"][1];
    assert!(near(&first["mean"], 0.61) && near(&first["std_error"], 0.01), "{first}");
    assert!(near(&relu["finite"]["low_degree_share"][1]["mean"], 0.81 / 0.9));
}
