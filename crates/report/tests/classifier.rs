//! Reports of classifiers, from made-up folders whose statistics are known.

mod common;

use common::{Planned, begin, checked, place, summary};
use serde_json::{Map, Value, json};
use std::path::Path;

/// What a kind of network is like: its sensitivity per unit of training accuracy.
fn slope(run: &Planned) -> f64 {
    let kind = match run.text("/model/kind") {
        "lstm" => 0.3,
        "resnet18" => 0.2,
        "mlp" => 0.1,
        "vit-small" => 0.04,
        _ => 0.02,
    };
    if run.number("/intervene/regularise") > 0.0 { kind / 4.0 } else { kind }
}

/// Training accuracy rises to 0.9 (an LSTM's to 0.8); sensitivity is a multiple of it; accuracy on corruptions is 0.8 less sensitivity.
fn line(run: &Planned, epoch: u64, last: u64) -> Value {
    let top = if run.text("/model/kind") == "lstm" { 0.8 } else { 0.9 };
    let accuracy = 0.1 + (top - 0.1) * epoch as f64 / last as f64;
    let sensitivity = slope(run) * accuracy + 0.0001 * run.number("/seed");
    let site = |mean: f64| json!({"mean": mean, "std_error": 0.001});
    let sites = if ["roberta", "gpt2", "lstm"].contains(&run.text("/model/kind")) { 20 } else { 64 };
    let mut line = json!({
        "step": 10 * epoch,
        "epoch": epoch,
        "train_loss": 2.3 * (1.0 - accuracy) + 0.01,
        "train_accuracy": accuracy,
        "test_loss": 2.3 * (1.0 - accuracy) + 0.1,
        "test_loss_std_error": 0.01,
        "test_accuracy": accuracy - sensitivity,
        "test_accuracy_std_error": 0.005,
        "sensitivity": sensitivity,
        "sensitivity_std_error": 0.002,
        "sensitivity_inputs": 100,
        "sites": (0..sites).map(|place| site(sensitivity * (1.0 + (place % 8) as f64 / 8.0))).collect::<Vec<_>>(),
        "seconds": epoch,
    });
    if run.text("/measure/corruptions") != "none" {
        let corruptions = ["gaussian_noise", "fog", "jpeg_compression"];
        line["corruptions"] = corruptions.map(|name| (name.to_string(), site(0.8 - sensitivity))).into_iter().collect();
    }
    line
}

fn make_up(recipe: &str, scale: &str, overrides: &[&str], folder: &Path) -> usize {
    let runs = begin(recipe, Some(scale), overrides, folder);
    for run in &runs {
        let (every, last) = (run.whole("/measure/every"), run.whole("/train/epochs"));
        let epochs = (0..=last).filter(|epoch| epoch % every == 0 || *epoch == last);
        run.log(epochs.map(|epoch| line(run, epoch, last)));
        // As real runs do: the last line's numbers once more.
        let mut measures: Map<String, Value> = line(run, last, last).as_object().unwrap().clone();
        measures.retain(|name, value| value.is_number() && !["step", "seconds"].contains(&name.as_str()));
        let mut measures = Value::from(measures);
        if run.number("/measure/sharpness") > 0.0 {
            measures["shop"] = (100.0 * slope(run)).into();
            measures["shop_std_error"] = 0.5.into();
            measures["shpred"] = slope(run).into();
        }
        if run.text("/measure/adversarial") != "none" {
            measures["adversarial_fgsm_linf_0.01"] = (0.5 - slope(run)).into();
            measures["adversarial_fgsm_linf_0.01_std_error"] = 0.01.into();
        }
        run.finish(true, measures, json!({}));
    }
    runs.len()
}

#[test]
fn every_recipe_draws_what_it_measured() {
    let cases: [(&str, &str, &[&str], &[&str]); 9] = [
        (
            "vasudeva/mnist",
            "paper",
            &["training", "sensitivity", "patches", "correlations"],
            &["Figure 11", "perceptron"],
        ),
        (
            "vasudeva/fashion-mnist",
            "paper",
            &["training", "sensitivity", "patches", "correlations"],
            &["Figure 4", "0.0559", "0.0505", "0.0453", "0.0098"],
        ),
        (
            "vasudeva/cifar10",
            "paper",
            &["training", "sensitivity", "patches", "correlations"],
            &["Figure 6", "0.005", "0.0014", "0.0827", "0.3673"],
        ),
        (
            "vasudeva/svhn",
            "paper",
            &["training", "sensitivity", "patches", "correlations"],
            &["Figure 5", "0.0516", "0.0147"],
        ),
        (
            "vasudeva/ablation-depth",
            "paper",
            &["training", "sensitivity", "patches", "correlations"],
            &["Figure 13 (a)", "ViT-small, depth 4"],
        ),
        (
            "vasudeva/mrpc",
            "paper",
            &["training", "sensitivity", "positions", "correlations"],
            &["Figure 7 (a)", "Figure 8 (a)", "0.002"],
        ),
        ("vasudeva/qqp-variance", "paper", &["training", "sensitivity", "positions", "correlations"], &["Figure 16"]),
        (
            "vasudeva/robustness",
            "quick",
            &["training", "sensitivity", "patches", "corruptions-2", "corruptions-2-end", "correlations"],
            &["Figure 9", "Figure 15", "Accuracy under attack", "fgsm linf 0.01", "gaussian noise"],
        ),
        (
            "vasudeva/sharpness",
            "paper",
            &["training", "sensitivity", "patches", "correlations"],
            &["Table 2", "39.166 / 0.5346", "9.025 / 0.3982"],
        ),
    ];
    for (recipe, scale, figures, parts) in cases {
        let temporary = tempfile::tempdir().unwrap();
        let folder = place(temporary.path(), recipe);
        let runs = make_up(recipe, scale, &[], &folder);
        let (names, page) = checked(&pudica_report::write(&folder).unwrap());
        assert_eq!(names, figures, "{recipe}");
        for part in parts.iter().chain(&["Sensitivity at equal training accuracy", "</b> finished", "measure.variance"])
        {
            assert!(page.contains(part), "{recipe}: {part}");
        }
        let csv = std::fs::read_to_string(folder.join("results.csv")).unwrap();
        assert_eq!(csv.lines().count(), 1 + runs);
        let heading = csv.lines().next().unwrap();
        assert!(
            ["data.name,", "model.kind,", "seed,", "outcome,", "test_accuracy,", "device"]
                .iter()
                .all(|name| heading.contains(name))
        );
        let columns = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
        assert!(csv.lines().all(|line| columns(line) == columns(heading)), "{heading}");
    }
}

/// The LSTM reaches 0.8 only, so all are compared there: sensitivity is 0.8 times each slope, by interpolation.
#[test]
fn networks_are_compared_at_equal_training_accuracy() {
    let folder = tempfile::tempdir().unwrap();
    make_up("vasudeva/mrpc", "paper", &[], folder.path());
    pudica_report::write(folder.path()).unwrap();
    let summary = summary(folder.path());
    let matched = &summary["at_equal_training_accuracy"];
    assert!((matched["training_accuracy"].as_f64().unwrap() - 0.8).abs() < 1e-12);
    for (place, slope) in [(0, 0.3), (1, 0.02)] {
        let found = &matched["groups"][place]["sensitivity"];
        // Seeds 0, 1 and 2 add 0, 0.0001 and 0.0002.
        assert!((found["mean"].as_f64().unwrap() - (0.8 * slope + 0.0001)).abs() < 1e-9, "{found}");
        assert!((found["std_error"].as_f64().unwrap() - 0.0001 / 3f64.sqrt()).abs() < 1e-9);
        assert_eq!(found["count"], 3);
    }
    assert_eq!(matched["groups"][0]["published_final"], 0.15);
    assert_eq!(matched["beyond_at_first_evaluation"], 0);
}

/// Where there is one run, its interval is its own standard error's; corrupted accuracy falls exactly as sensitivity rises.
#[test]
fn single_runs_have_intervals_and_correlations_are_found() {
    let folder = tempfile::tempdir().unwrap();
    make_up("vasudeva/robustness", "quick", &[], folder.path());
    pudica_report::write(folder.path()).unwrap();
    let summary = summary(folder.path());
    let sensitivity = &summary["networks"][0]["final"]["sensitivity"];
    assert!((sensitivity["mean"].as_f64().unwrap() - 0.04 * 0.9).abs() < 1e-12);
    assert!((sensitivity["high"].as_f64().unwrap() - (0.04 * 0.9 + 1.96 * 0.002)).abs() < 1e-12);
    let correlations = summary["correlations_with_sensitivity"].as_array().unwrap();
    let with =
        |name: &str| correlations.iter().find(|found| found["with"] == name).unwrap()["pearson"]["r"].as_f64().unwrap();
    assert!((with("corrupted_accuracy") + 1.0).abs() < 1e-9);
    assert!((with("test_accuracy") + 1.0).abs() < 1e-9);
}

#[test]
fn a_sweep_that_has_only_begun_can_be_reported() {
    let folder = tempfile::tempdir().unwrap();
    let runs = begin("vasudeva/cifar10", None, &[], folder.path());
    pudica_report::write(folder.path()).unwrap();
    runs[0].log([line(&runs[0], 0, 8)]);
    let report = pudica_report::write(folder.path()).unwrap();
    assert_eq!((report.tally.converged, report.tally.remaining), (0, runs.len()));
    assert!(report.page.is_file());
}

/// The recipes' words of earlier versions, and none at all, mean what the kind shows.
#[test]
fn folders_of_earlier_versions_are_reported_as_before() {
    for figures in ["", "sensitivity"] {
        let folder = tempfile::tempdir().unwrap();
        make_up("vasudeva/mnist", "quick", &["seed=0..1"], folder.path());
        let path = folder.path().join("sweep.json");
        let mut record: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        record["figures"] = figures.into();
        std::fs::write(&path, record.to_string()).unwrap();
        let (names, _) = checked(&pudica_report::write(folder.path()).unwrap());
        assert_eq!(names[..2], ["training", "sensitivity"], "{figures}");
    }
}
