//! Every recipe of Boolean functions is reported from a made-up sweep whose statistics are known.

mod common;

use common::{Planned, begin, checked, place, summary};
use serde_json::{Value, json};
use std::path::Path;

/// A number in [-1, 1) that looks random and depends on the text alone.
fn noise(text: &str) -> f64 {
    let hash =
        text.bytes().fold(0xcbf29ce484222325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100000001b3));
    (hash >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Sharpness rises by 0.05 a bit for PARITY and not at all for the others.
fn made_up(run: &Planned) -> Value {
    let (n, id) = (run.number("/n"), &run.id);
    let sharpness = match run.text("/target") {
        "parity" => 0.05 * n - 0.1 + 0.04 * noise(id),
        target if target.starts_with("random") || target.starts_with("completion") => 0.5 + 0.05 * noise(id),
        target if target.starts_with("run") => 0.2 + 0.05 * noise(id),
        _ => 1e-3 * (1.0 + 0.3 * noise(id)),
    };
    let norm = 30.0 - 40.0 * run.number("/train/weight_decay") + noise(&format!("{id} norm"));
    let parity = run.text("/target") == "parity";
    json!({
        "eval_loss": 1e-5,
        "sharpness": sharpness,
        "set_sharpness": sharpness * 0.97,
        "blowup": 10f64.powf(5.0 - 0.1 * norm + 0.02 * n),
        "blowup_theory": 10f64.powf(0.1 * n),
        "param_norm": norm,
        "average_sensitivity": if parity { n } else { n / 2.0 - 2.0 + 0.2 * noise(&format!("{id} as")) },
        "average_sensitivity_real": n / 4.0 + 0.1 * noise(&format!("{id} real")),
        "degree_sum": n / 4.0,
        "mean_degree": 1.5 + 0.1 * noise(&format!("{id} degree")),
        "degree_one": 0.8,
        "sensitivity_min": 0.0,
        "sensitivity_max": (n / 2.0).floor(),
        "toward_target": 0.1 * noise(&format!("{id} toward")),
        "from_target": 2.0 + 0.1 * noise(&format!("{id} target")),
        "from_interpolator": 0.5 + 0.1 * noise(&format!("{id} interpolator")),
        "unseen_accuracy": 0.2,
        "train_accuracy": 1.0,
        "decode_accuracy": 1.0,
    })
}

/// Profiles over degrees and strings, and what is around a network.
fn detail(run: &Planned) -> Value {
    let falling: Vec<f64> = (0..=run.whole("/n")).map(|degree| 0.5f64.powi(degree as i32)).collect();
    let around = |rho: f64| {
        let found: Vec<f64> = (0..30).map(|draw| 3.0 + 2.0 * noise(&format!("{} {rho} {draw}", run.id))).collect();
        json!({ "rho": rho, "average_sensitivities": found })
    };
    json!({
        "sensitivity": { "histogram": falling, "real_degree_profile": falling },
        "volume": [around(0.01), around(0.1)],
        "references": { "target_degrees": falling },
        "from_target_by_degree": falling,
        "from_interpolator_by_degree": falling,
    })
}

/// A run whose loss falls after a quarter of its steps, if it is tracked. One in nine does not converge.
fn make(run: &Planned, failed: bool) {
    let (steps, every) = (run.whole("/train/steps"), run.whole("/track/every"));
    let mut lines = Vec::new();
    if let Some(quarter) = (steps / 4).checked_div(every) {
        let fall = quarter * every;
        for step in (0..=steps).step_by(every as usize) {
            let after = step.saturating_sub(fall) as f64 / steps as f64;
            let (learnt, decay) = (step >= fall, run.number("/train/weight_decay"));
            lines.push(json!({
                "step": step,
                "loss": if learnt { 1e-4 } else { 0.25 },
                "sharpness": if learnt { 0.8 - 0.3 * after } else { 0.01 } + 0.02 * noise(&format!("{}{step}", run.id)),
                "param_norm": 30.0 - 20.0 * decay * after,
                "blowup": 10f64.powf(2.0 + 10.0 * decay * after),
                "average_sensitivity_real": 1.0 + after,
                "degrees": [0.1, 0.5 * after, 0.25 * after],
                "from_target": 2.0 + after,
                "from_interpolator": 2.0 - after,
                "seconds": 0.1 * step as f64,
            }));
        }
    }
    run.log(lines);
    match failed {
        true => run.fail("the loss became NaN at step 3"),
        false => run.finish(run.whole("/seed") % 9 != 4, made_up(run), detail(run)),
    }
}

/// A sweep folder with every run of the recipe made up; the last run failed.
fn sweep(recipe: &str, folder: &Path, overrides: &[&str]) -> usize {
    let runs = begin(recipe, Some("paper"), overrides, folder);
    runs.iter().enumerate().for_each(|(place, run)| make(run, place + 1 == runs.len()));
    runs.len()
}

#[test]
fn every_recipe_draws_its_figures() {
    let figures: [(&str, &[&str], &[&str]); 11] = [
        ("hahn/length-scaling", &["fig1", "fig5", "fig6", "measures"], &["n=4..=30 step 2", "seed=0..3"]),
        ("hahn/long-lengths", &["fig7", "fig8"], &["seed=0..2"]),
        ("hahn/tradeoff", &["fig2", "fig9"], &["draws=40"]),
        ("hahn/tradeoff-lengths", &["fig10"], &["draws=40"]),
        ("hahn/dynamics", &["fig3", "fig12", "fig14"], &["seed=0..2"]),
        ("hahn/dynamics-long", &["fig13"], &["seed=0..1"]),
        ("hahn/generalization", &["fig4", "fig15"], &["target=random:0..2", "train.set_seed=0..2"]),
        ("hahn/scratchpad", &["fig11"], &["seed=0..2"]),
        ("hahn/constructions", &["constructions"], &["seed=0..2"]),
        (
            "hahn/random-initialization",
            &["initial-sensitivity", "initial-profiles", "initial-sizes", "volume"],
            &["seed=0..3"],
        ),
        ("hahn/degree-bias", &["unseen", "training", "eq17", "by-degree"], &["seed=0..3"]),
    ];
    for (recipe, expected, overrides) in figures {
        let temporary = tempfile::tempdir().unwrap();
        let folder = place(temporary.path(), recipe);
        sweep(recipe, &folder, overrides);
        let (names, page) = checked(&pudica_report::write(&folder).unwrap());
        assert_eq!(names, expected, "{recipe}");
        assert!(page.contains(&format!("pudica run {recipe} --scale paper")) && page.contains("Published:"));
        assert!(page.contains("the loss became NaN at step 3"), "{recipe}: failed runs are listed");
        assert!(folder.join("results.parquet").exists() && folder.join("results.csv").exists());
    }
}

#[test]
fn length_scaling_fits_what_was_put_in() {
    let folder = tempfile::tempdir().unwrap();
    let runs = sweep("hahn/length-scaling", folder.path(), &["n=4..=28 step 4"]);
    let report = pudica_report::write(folder.path()).unwrap();
    assert_eq!(report.tally.runs, 4 * 7 * 10);
    assert_eq!((report.tally.discarded, report.tally.failed), (28, 1));
    let summary = summary(folder.path());
    assert_eq!(
        summary["runs"],
        json!({"planned": 280, "kept": 251, "discarded": 28, "failed": 1, "skipped": 0, "remaining": 0})
    );
    let parity = &summary["fits"]["parity"];
    assert!((parity["slope"].as_f64().unwrap() - 0.05).abs() < 1e-3);
    assert!((parity["intercept"].as_f64().unwrap() + 0.1).abs() < 2e-2);
    assert!(parity["r"].as_f64().unwrap() > 0.99 && parity["p"].as_f64().unwrap() < 1e-50);
    assert_eq!((&parity["runs_kept"], &parity["runs_discarded"]), (&json!(63), &json!(7)));
    assert!(summary["fits"]["first"]["slope"].as_f64().unwrap().abs() < 1e-5);
    let page = std::fs::read_to_string(report.page).unwrap();
    assert!(page.contains("<b>251</b> converged, kept") && page.contains("<b>28</b> not converged, discarded"));
    let rows = std::fs::read_to_string(folder.path().join("results.csv")).unwrap().lines().count();
    assert_eq!(rows, runs + 1);
}

#[test]
fn a_sweep_that_has_only_begun_can_be_reported() {
    for recipe in pudica_lab::recipe::builtin_names().filter(|name| name.starts_with("hahn/")) {
        let folder = tempfile::tempdir().unwrap();
        let runs = begin(recipe, None, &[], folder.path());
        pudica_report::write(folder.path()).unwrap();
        make(&runs[0], false);
        let report = pudica_report::write(folder.path()).unwrap();
        assert_eq!(report.tally.remaining, runs.len() - 1);
        assert!(std::fs::read_to_string(report.page).unwrap().contains("not finished yet"));
    }
}
