//! Reports of studies, from made-up folders whose statistics are known.

use pudica_lab::store::{FORMAT, Outcome};
use pudica_lab::study::{Point, StudyConfig, StudyPlan};
use pudica_lab::{Recipe, RunSummary, SweepFolder};
use pudica_statistics::Estimate;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What a kind of network is like: its sensitivity per unit of training accuracy.
fn slope(config: &StudyConfig) -> f64 {
    let kind = match config.model.kind.name() {
        "lstm" => 0.3,
        "resnet18" => 0.2,
        "mlp" => 0.1,
        "vit-small" => 0.04,
        _ => 0.02,
    };
    if config.intervene.regularise > 0.0 { kind / 4.0 } else { kind }
}

/// Training accuracy rises to 0.9 (an LSTM's to 0.8); sensitivity is a multiple of it; accuracy on corruptions is 0.8 less sensitivity.
fn point(config: &StudyConfig, epoch: u64, last: u64) -> Point {
    let top = if config.model.kind.name() == "lstm" { 0.8 } else { 0.9 };
    let accuracy = 0.1 + (top - 0.1) * epoch as f64 / last as f64;
    let sensitivity = slope(config) * accuracy + 0.0001 * config.seed as f64;
    let site = |mean: f64| Estimate::stated(mean, Some(0.001));
    let sites = if config.model.kind.reads_text() { 20 } else { 64 };
    let corruption = |name: &str| (name.to_string(), site(0.8 - sensitivity));
    let corrupted = config.measure.corruptions != "none";
    Point {
        step: 10 * epoch,
        epoch,
        train_loss: 2.3 * (1.0 - accuracy) + 0.01,
        train_accuracy: accuracy,
        test_loss: 2.3 * (1.0 - accuracy) + 0.1,
        test_loss_std_error: 0.01,
        test_accuracy: accuracy - sensitivity,
        test_accuracy_std_error: 0.005,
        sensitivity: Some(sensitivity),
        sensitivity_std_error: Some(0.002),
        sensitivity_inputs: Some(100),
        sites: (0..sites).map(|place| site(sensitivity * (1.0 + (place % 8) as f64 / 8.0))).collect(),
        corruptions: if corrupted {
            ["gaussian_noise", "fog", "jpeg_compression"].map(corruption).into()
        } else {
            BTreeMap::new()
        },
        seconds: epoch as f64,
    }
}

fn make_up(recipe: &str, scale: &str, overrides: &[&str], folder: &Path) -> StudyPlan {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let plan = StudyPlan::new(&Recipe::find(recipe).unwrap(), Some(scale), &overrides).unwrap();
    let claimed = SweepFolder::claim(folder, &plan).unwrap();
    for run in &plan.runs {
        let (config, folder) = (&run.config, claimed.run(&run.id));
        folder.create(config).unwrap();
        let (every, last) = (config.measure.every, config.train.epochs);
        for epoch in (0..=last).filter(|epoch| epoch % every == 0 || *epoch == last) {
            let Value::Object(line) = serde_json::to_value(point(config, epoch, last)).unwrap() else { panic!() };
            folder.log(&line).unwrap();
        }
        let mut measures = json!({"test_accuracy": 0.8, "epoch": last});
        if config.measure.sharpness > 0.0 {
            measures["shop"] = (100.0 * slope(config)).into();
            measures["shop_std_error"] = 0.5.into();
            measures["shpred"] = slope(config).into();
        }
        if config.measure.adversarial != "none" {
            measures["adversarial_fgsm_linf_0.01"] = (0.5 - slope(config)).into();
            measures["adversarial_fgsm_linf_0.01_std_error"] = 0.01.into();
        }
        let summary = RunSummary {
            format: FORMAT,
            id: run.id.clone(),
            outcome: Outcome::Finished,
            problem: None,
            steps: 10 * last,
            converged: true,
            seconds: 30.0,
            device: "made up".into(),
            measures: measures.as_object().unwrap().clone(),
            detail: Map::new(),
        };
        folder.finish(&summary).unwrap();
    }
    plan
}

fn summary(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("summary.json")).unwrap()).unwrap()
}

#[test]
fn every_study_draws_what_it_measured() {
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
            &["Figure 13 (a)", "depth, depth 4"],
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
    // Set PUDICA_KEEP_REPORTS to a folder to look at them.
    let kept = std::env::var_os("PUDICA_KEEP_REPORTS");
    for (recipe, scale, figures, parts) in cases {
        let temporary = tempfile::tempdir().unwrap();
        let folder = kept.as_ref().map_or(temporary.path().into(), |kept| Path::new(kept).join(recipe));
        let plan = make_up(recipe, scale, &[], &folder);
        let report = pudica_report::write_study(&folder).unwrap();
        let names: Vec<_> = report.figures.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, figures, "{recipe}");
        assert!(report.figures.iter().all(|svg| svg.with_extension("png").is_file()));
        let page = std::fs::read_to_string(&report.page).unwrap();
        for part in parts.iter().chain(&["Sensitivity at equal training accuracy", "Repeat it", "measure.variance"]) {
            assert!(page.contains(part), "{recipe}: {part}");
        }
        assert!(!page.contains("src=\"http") && !page.contains("<script"));
        let csv = std::fs::read_to_string(folder.join("results.csv")).unwrap();
        assert_eq!(csv.lines().count(), 1 + plan.runs.len());
        assert!(csv.lines().all(|line| line.matches(',').count() >= 50));
    }
}

/// The LSTM reaches 0.8 only, so all are compared there: sensitivity is 0.8 times each slope, by interpolation.
#[test]
fn networks_are_compared_at_equal_training_accuracy() {
    let folder = tempfile::tempdir().unwrap();
    make_up("vasudeva/mrpc", "paper", &[], folder.path());
    pudica_report::write_study(folder.path()).unwrap();
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
    pudica_report::write_study(folder.path()).unwrap();
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
fn a_study_that_has_only_begun_can_be_reported() {
    let folder = tempfile::tempdir().unwrap();
    let plan = StudyPlan::new(&Recipe::find("vasudeva/cifar10").unwrap(), None, &[]).unwrap();
    let claimed = SweepFolder::claim(folder.path(), &plan).unwrap();
    pudica_report::write_study(folder.path()).unwrap();
    let run = &plan.runs[0];
    claimed.run(&run.id).create(&run.config).unwrap();
    let Value::Object(line) = serde_json::to_value(point(&run.config, 0, 8)).unwrap() else { panic!() };
    claimed.run(&run.id).log(&line).unwrap();
    let report = pudica_report::write_study(folder.path()).unwrap();
    assert_eq!((report.tally.converged, report.tally.remaining), (0, plan.runs.len()));
    assert!(report.page.is_file());
}
