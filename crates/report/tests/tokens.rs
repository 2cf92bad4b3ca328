//! The report of synthetic tokens, from run folders made by hand.

mod common;

use common::{Planned, begin_by_hand, checked, place, summary};
use serde_json::{Value, json};
use std::path::Path;

const DATA: [&str; 3] = ["3:5:1:16:59", "1:17:7:20:75", "1:7:7:10:75"];

/// The sensitivities of the predictors of sparse and of frequent tokens.
fn predictors(data: &str) -> [f64; 2] {
    if data.starts_with('3') { [0.0, 0.2878] } else { [0.0328, 0.0] }
}

/// Sensitivity falls from 0.5 to that of the less sensitive predictor and the seed's hundredth.
fn line(run: &Planned, epoch: u64) -> Value {
    let [sparse, frequent] = predictors(run.text("/data"));
    let part = epoch as f64 / 4.0;
    let used = if sparse < frequent { 0.0 } else { 1.0 };
    json!({
        "step": 10 * epoch, "epoch": epoch, "train_loss": 1.0 - 0.9 * part, "train_accuracy": part, "test_accuracy": part,
        "ood_accuracy": used, "alignment_sparse": part * (1.0 - used), "alignment_frequent": part * used,
        "alignment_irrelevant": 0.0, "attention_sparse": 0.2, "attention_frequent": 0.3, "attention_irrelevant": 0.5,
        "sensitivity": 0.5 * (1.0 - part) + sparse.min(frequent) + 0.01 * run.number("/seed"),
        "sensitivity_std_error": 0.001, "seconds": 0.1,
    })
}

/// Three data settings with two seeds each; the last run has only begun.
fn make_up(folder: &Path) {
    let settings = |data: &str, seed: u64| {
        json!({
            "seed": seed, "data": data, "length": 50, "model": {"width": 59, "init": 0.1},
            "train": {"set_size": 1000, "batch": 100, "lr": 0.1, "epochs": 4}, "eval": {"sequences": 500},
            "measure": {"every": 2, "simulated": 500},
        })
    };
    let runs: Vec<Value> = [0, 1].iter().flat_map(|seed| DATA.map(|data| settings(data, *seed))).collect();
    let runs = begin_by_hand("vasudeva/synthetic", "tokens", "tokens", &runs, folder);
    let (last, others) = runs.split_last().unwrap();
    for run in others {
        run.log([0, 2, 4].map(|epoch| line(run, epoch)));
        let [sparse, frequent] = predictors(run.text("/data"));
        let mut measures = line(run, 4);
        for (name, value) in [("predictor_sparse", sparse), ("predictor_frequent", frequent)] {
            measures[name] = value.into();
            measures[format!("{name}_ties_keep")] = (value / 2.0).into();
            measures[format!("{name}_simulated")] = (value * 1.01).into();
            measures[format!("{name}_simulated_std_error")] = 0.004.into();
        }
        run.finish(true, measures, json!({}));
    }
    last.log([line(last, 0)]);
}

#[test]
fn what_was_put_in_is_told() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "vasudeva/synthetic");
    make_up(&folder);
    let report = pudica_report::write(&folder).unwrap();
    assert_eq!((report.tally.runs, report.tally.converged, report.tally.remaining), (6, 5, 1));
    let (names, page) = checked(&report);
    assert_eq!(names, ["fig2", "fig10-top", "fig10-bottom"]);
    for part in [
        "(1, 17, 7, 20)",
        "Tables 1 and 3",
        "0.2878",
        "0.0339",
        "0.2907 <span class=\"i\">± 0.0040</span>",
        "5 of 6 runs finished",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let summary = summary(&folder);
    let predictor = &summary["predictors"][1];
    assert_eq!((&predictor["predictor"], &predictor["exact"]), (&json!("frequent"), &json!(0.2878)));
    assert_eq!(predictor["task"], json!({"length": 50, "vocabulary": 59, "n_s": 3, "n_f": 5, "n_d": 1, "m": 16}));
    assert_eq!(predictor["simulated"]["std_error"], 0.004);
    let trained = &summary["trained"];
    assert_eq!(trained[0]["less_sensitive_predictor"], "sparse");
    assert_eq!(trained[1]["less_sensitive_predictor"], "frequent");
    // Seeds 0 and 1 end 0.01 apart; of the third setting, one run has ended and the other stands at its first line.
    let sensitivity = |place: usize| &trained[place]["final"]["sensitivity"];
    assert!((sensitivity(0)["mean"].as_f64().unwrap() - 0.005).abs() < 1e-12);
    assert!((sensitivity(0)["std_error"].as_f64().unwrap() - 0.005).abs() < 1e-12);
    assert_eq!((&sensitivity(0)["count"], &sensitivity(2)["count"]), (&json!(2), &json!(2)));
    let figure = std::fs::read_to_string(&report.figures[0]).unwrap();
    assert!(figure.contains("sparse only") && figure.contains("epoch"));
}
