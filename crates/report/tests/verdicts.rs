//! Beside each published statement, what made-up runs with a known answer say.

mod common;

use std::path::Path;

use common::{Planned, begin, checked, summary};
use pudica_report::{Claim, Decision, Report};
use serde_json::{Value, json};

/// The one claim whose question has these words.
fn claim<'a>(report: &'a Report, words: &str) -> &'a Claim {
    let found: Vec<&Claim> = report.claims.iter().filter(|claim| claim.question.contains(words)).collect();
    assert_eq!(found.len(), 1, "{words}: {:?}", report.claims);
    found[0]
}

/// Two evaluations of a classifier: at half of all inputs right, then at 0.9, with this sensitivity at the end and half of it before.
fn classify(run: &Planned, sensitivity: f64, error: f64, largest_class: Option<f64>) {
    let line = |epoch: u64, accuracy: f64, part: f64| {
        let mut line = json!({
            "step": epoch, "epoch": epoch, "train_loss": 0.3, "train_accuracy": accuracy, "test_loss": 0.4,
            "test_loss_std_error": 0.01, "test_accuracy": accuracy, "test_accuracy_std_error": 0.01,
            "sensitivity": part * sensitivity, "sensitivity_std_error": part * error, "sensitivity_inputs": 100,
        });
        if let Some(fraction) = largest_class {
            line["train_largest_class_fraction"] = fraction.into();
        }
        line
    };
    let last = line(8, if largest_class == Some(1.0) { 0.5 } else { 0.9 }, 1.0);
    run.log([line(4, 0.5, 0.5), last.clone()]);
    let mut measures = last;
    measures.as_object_mut().unwrap().remove("step");
    run.finish(true, measures, json!({}));
}

/// `vasudeva/mnist` at quick scale, where these are the sensitivities of the perceptron and of the ViT.
fn mnist(folder: &Path, perceptron: (f64, f64), vit: (f64, f64)) -> Report {
    for run in begin("vasudeva/mnist", Some("quick"), &[], folder) {
        let (value, error) = if run.text("/model/kind") == "mlp" { perceptron } else { vit };
        classify(&run, value, error, Some(0.5));
    }
    pudica_report::write(folder).unwrap()
}

/// What new users saw under a headline that said the opposite.
#[test]
fn a_perceptron_that_is_less_sensitive_disagrees() {
    let folder = tempfile::tempdir().unwrap();
    let report = mnist(folder.path(), (0.0512, 0.0064), (0.1033, 0.0087));
    let found = claim(&report, "is the perceptron more sensitive than the ViT?");
    assert_eq!((found.decision, found.runs), (Decision::Disagrees, 2));
    // -0.0521 ± 1.96 sqrt(0.0064^2 + 0.0087^2)
    assert!(found.statistic.contains("−0.052 [−0.073, −0.031]"), "{}", found.statistic);
    let (_, page) = checked(&report);
    let head = &page[..page.find("class=\"counts\"").unwrap()];
    assert!(head.contains("No, not here") && head.contains("smoke test"), "{head}");
    assert!(!head.contains("changes its answer more often"), "the head repeats the paper's conclusion");
    assert!(page.contains("Published:") && page.contains(">disagrees</span>"));
    let stored = &summary(folder.path())["verdicts"][0];
    assert_eq!((&stored["verdict"], &stored["runs"]), (&json!("disagrees"), &json!(2)));
    assert!(stored["published"].is_string() && stored["question"].is_string());
}

#[test]
fn the_same_question_may_be_answered_otherwise() {
    for (perceptron, vit, expected) in [
        ((0.1033, 0.0087), (0.0512, 0.0064), Decision::Agrees),
        ((0.1033, 0.0087), (0.1000, 0.0064), Decision::CannotTell),
        ((0.1033, 0.0), (0.0512, 0.0), Decision::CannotTell), // single runs without an error of their own
    ] {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(mnist(folder.path(), perceptron, vit).claims[0].decision, expected, "{perceptron:?} {vit:?}");
    }
}

/// A network that gives all inputs the same class is not "least sensitive".
#[test]
fn constant_classifiers_decide_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for run in begin("vasudeva/mnist", Some("quick"), &[], folder.path()) {
        match run.text("/model/kind") {
            "mlp" => classify(&run, 0.05, 0.005, Some(0.5)),
            _ => classify(&run, 0.0, 0.0, Some(1.0)),
        }
    }
    let report = pudica_report::write(folder.path()).unwrap();
    assert_eq!(report.claims[0].decision, Decision::CannotTell, "{:?}", report.claims);
    assert!(report.warnings[0].contains("1 of 2 runs gives the same answer to every input"), "{:?}", report.warnings);
    let (_, page) = checked(&report);
    assert!(page.contains("gives the same answer to every input"));
}

/// Profiles over twenty positions, counted from the last token: the LSTM's rises towards the end, RoBERTa's by this factor from half to half.
fn positions(folder: &Path, factor: f64) -> Report {
    for run in begin("vasudeva/mrpc", Some("quick"), &[], folder) {
        let lstm = run.text("/model/kind") == "lstm";
        let site = |place: u32| match lstm {
            true => 0.2 - 0.005 * f64::from(place),
            false if place < 10 => 0.02 * factor,
            false => 0.02,
        };
        let sites: Vec<Value> =
            (0..20).map(|place| json!({"mean": site(place), "std_error": 0.05 * site(place)})).collect();
        let line = json!({"step": 1, "epoch": 1, "train_loss": 0.3, "train_accuracy": 0.9, "test_accuracy": 0.8, "sensitivity": 0.1,
            "sensitivity_std_error": 0.01, "sensitivity_inputs": 100, "train_largest_class_fraction": 0.5, "sites": sites});
        run.log([line.clone()]);
        let mut measures = line;
        measures.as_object_mut().unwrap().retain(|name, _| !["step", "sites"].contains(&name.as_str()));
        run.finish(true, measures, json!({}));
    }
    pudica_report::write(folder).unwrap()
}

#[test]
fn positions_decide_what_is_uniform() {
    for (factor, expected) in
        [(1.2, Decision::Agrees), (0.9, Decision::Agrees), (2.0, Decision::CannotTell), (3.0, Decision::Disagrees)]
    {
        let folder = tempfile::tempdir().unwrap();
        let report = positions(folder.path(), factor);
        let uniform = claim(&report, "Is RoBERTa's sensitivity to later tokens within a factor of two");
        assert_eq!(uniform.decision, expected, "{factor}: {uniform:?}");
        assert_eq!(claim(&report, "Does the LSTM's sensitivity rise towards the end").decision, Decision::Agrees);
    }
}

/// Sparse tokens are used, and attention is mostly on irrelevant ones.
fn tokens(folder: &Path, attention: [f64; 3]) -> Report {
    for run in begin("vasudeva/synthetic", Some("quick"), &[], folder) {
        let sparse = run.text("/data").starts_with('3');
        let used = if sparse { "sparse" } else { "frequent" };
        let mut line = json!({
            "epoch": 100, "train_loss": 0.1, "train_accuracy": 1.0, "test_accuracy": 1.0,
            "ood_accuracy": f64::from(u8::from(!sparse)), "sensitivity": 0.01, "sensitivity_std_error": 0.001,
        });
        for (kind, attention) in ["sparse", "frequent", "irrelevant"].into_iter().zip(attention) {
            line[format!("alignment_{kind}")] =
                json!(if kind == used { 0.95 } else { 0.1 } + 0.01 * run.number("/seed"));
            line[format!("attention_{kind}")] =
                json!(attention + 0.01 * run.number("/seed") * f64::from(u8::from(kind == "sparse")));
        }
        run.log([line.clone()]);
        let [sparse, frequent] = if sparse { [0.0, 0.2878] } else { [0.0328, 0.0] };
        line["predictor_sparse"] = sparse.into();
        line["predictor_frequent"] = frequent.into();
        run.finish(true, line, json!({}));
    }
    pudica_report::write(folder).unwrap()
}

#[test]
fn attention_on_irrelevant_tokens_disagrees() {
    let folder = tempfile::tempdir().unwrap();
    let report = tokens(folder.path(), [0.08, 0.10, 0.82]);
    let attention = claim(&report, "Is attention to the less sensitive tokens");
    assert_eq!(attention.decision, Decision::Disagrees, "{attention:?}");
    assert!(attention.statistic.contains("(3, 5, 1, 16) sparse −0.735 "), "{}", attention.statistic);
    // All of 2 runs times 500 sequences say so.
    let used = claim(&report, "Does the layer use the less sensitive tokens");
    assert!(used.decision == Decision::Agrees && used.statistic.contains("sparse 0.5000 [0.4962, 0.5000]"), "{used:?}");
    // 0.0328 is not the published 0.0339.
    assert_eq!(claim(&report, "Tables 1 and 3").decision, Decision::Disagrees);
}

fn lengths(folder: &Path, overrides: &[&str], slope: impl Fn(&str) -> f64, made: usize) -> Report {
    let runs = begin("hahn/length-scaling", Some("paper"), overrides, folder);
    for run in runs.iter().take(made) {
        let (n, seed) = (run.number("/n"), run.number("/seed"));
        let wobble = 1e-4 * ((7.0 * n + 3.0 * seed) % 5.0 - 2.0);
        run.log([]);
        let sharpness = 0.01 + slope(run.text("/target")) * n + wobble;
        run.finish(
            true,
            json!({"eval_loss": 1e-5, "sharpness": sharpness, "blowup": 1.0, "param_norm": 1.0}),
            json!({}),
        );
    }
    pudica_report::write(folder).unwrap()
}

#[test]
fn slopes_decide() {
    let folder = tempfile::tempdir().unwrap();
    let slope = |target: &str| match target {
        "parity" => 0.05,
        "majority" => 1.8e-3,
        "first" => -1e-3,
        _ => 0.0,
    };
    let report = lengths(folder.path(), &["seed=0..3"], slope, usize::MAX);
    assert_eq!(claim(&report, "Do PARITY's minima get sharper").decision, Decision::Agrees);
    assert_eq!(claim(&report, "ten times more slowly").decision, Decision::Agrees);
    assert_eq!(claim(&report, "for MAJORITY and FIRST, however slightly").decision, Decision::Disagrees);
    assert_eq!(claim(&report, "no trend for MEAN").decision, Decision::Agrees);
    let (_, page) = checked(&report);
    assert!(
        page.contains("Figure 1: sharpness against input length")
            && page.contains("not with all of the published seeds")
    );
    assert!(!page.contains("Settings were changed by overrides"), "seeds are no settings that change the experiment");

    let folder = tempfile::tempdir().unwrap();
    let (_, page) = checked(&lengths(folder.path(), &["seed=0..2", "train.lr=1e-3"], slope, usize::MAX));
    assert!(page.contains("Figure 1 with other settings: sharpness against input length"));
    assert!(page.contains("Settings were changed by overrides"));

    let folder = tempfile::tempdir().unwrap();
    let report = lengths(folder.path(), &["seed=0..3"], slope, 100);
    assert!(report.claims.iter().all(|claim| claim.decision == Decision::CannotTell), "most runs are not made");
    assert!(report.claims[0].statistic.starts_with("only 100 of 324 runs are made"));
}

/// Networks at initialisation whose average sensitivity is this of a kind, give or take; trained ones with neighbours of this one.
fn initial(folder: &Path, sensitivity: impl Fn(&str) -> f64, neighbours: f64) -> Report {
    for run in begin("hahn/random-initialization", Some("quick"), &["seed=0..8"], folder) {
        let wobble = 0.02 * ((7.0 * run.number("/n") + 3.0 * run.number("/seed")) % 5.0 - 2.0);
        run.log([]);
        let measures = json!({"eval_loss": 1e-5, "average_sensitivity": sensitivity(run.text("/model/kind")) + wobble});
        run.finish(true, measures, json!({"volume": [{"rho": 0.2, "average_sensitivities": vec![neighbours; 40]}]}));
    }
    pudica_report::write(folder).unwrap()
}

#[test]
fn random_networks_decide_which_are_less_sensitive() {
    let folder = tempfile::tempdir().unwrap();
    let report = initial(folder.path(), |kind| if kind == "encoder" { 1.2 } else { 2.0 }, 1.0);
    let lower = claim(&report, "are transformers less sensitive than LSTMs and GRUs");
    assert_eq!(lower.decision, Decision::Agrees, "{lower:?}");
    assert!(lower.statistic.contains("LSTM minus transformer, n up to 20, 0.8"), "{}", lower.statistic);
    // No network of ten bits is above, but eight of each of four depths are too few to say that fewer than 5 % are.
    let small = claim(&report, "do fewer than 5 % of random transformers");
    assert_eq!((small.decision, small.runs), (Decision::CannotTell, 32), "{small:?}");
    // 1 is below a quarter of eight bits: eight networks with 40 neighbours each.
    let most = claim(&report, "do most neighbours of transformers that compute PARITY");
    assert_eq!(most.decision, Decision::Agrees, "{most:?}");
    assert!(most.statistic.starts_with("n = 8, ρ = 0.2: 0 of 320"), "{}", most.statistic);

    let folder = tempfile::tempdir().unwrap();
    let report = initial(folder.path(), |kind| if kind == "encoder" { 2.0 } else { 1.2 }, 3.0);
    assert_eq!(claim(&report, "are transformers less sensitive").decision, Decision::Disagrees);
    assert_eq!(claim(&report, "do most neighbours").decision, Decision::Disagrees);
}

/// Networks at these squared distances from target and interpolator, which make this average sensitivity of targets of 3.5.
fn unseen(folder: &Path, from_target: f64, from_interpolator: f64, sensitivity: f64) -> Report {
    for run in begin("hahn/degree-bias", Some("quick"), &["seed=0..4"], folder) {
        let wobble = 0.02 * (3.0 * run.number("/seed") % 5.0 - 2.0);
        run.log([]);
        let measures = json!({"eval_loss": 1e-5, "from_target": from_target + wobble, "from_interpolator": from_interpolator - wobble,
            "average_sensitivity_real": sensitivity + wobble, "toward_target": 0.1 + wobble});
        run.finish(true, measures, json!({"references": {"target_degrees": [0.0, 0.25, 0.0, 0.75, 0.25]}}));
    }
    pudica_report::write(folder).unwrap()
}

#[test]
fn what_networks_make_of_the_unseen_decides() {
    let folder = tempfile::tempdir().unwrap();
    let report = unseen(folder.path(), 2.0, 0.3, 3.0);
    let nearer = claim(&report, "nearer to the min-degree interpolator than to the target");
    assert_eq!((nearer.decision, nearer.runs), (Decision::Agrees, 12), "{nearer:?}");
    assert_eq!(claim(&report, "do transformers make less sensitive ones").decision, Decision::Agrees);
    let folder = tempfile::tempdir().unwrap();
    let report = unseen(folder.path(), 0.3, 2.0, 4.0);
    assert_eq!(claim(&report, "nearer to the min-degree interpolator").decision, Decision::Disagrees);
    assert_eq!(claim(&report, "do transformers make less sensitive ones").decision, Decision::Disagrees);
}

/// PARITY built by hand fails where ρ n = 1/20, at its loss of 1/2; MAJORITY's loss grows with ρ only.
fn under_noise(folder: &Path, majority: impl Fn(f64) -> f64) -> Report {
    for run in begin("hahn/noise-lengths", Some("quick"), &[], folder) {
        let (n, rho, wobble) = (run.number("/n"), run.number("/measure/rho"), 1e-3 * run.number("/seed"));
        let loss = match run.text("/target") {
            "parity" => (10.0 * rho * n).min(1.0),
            "majority" => majority(rho),
            _ => 1e-4,
        };
        run.log([]);
        let measures = json!({"eval_loss": 0.0, "sharpness": loss + wobble, "output_shift": loss, "output_std": 0.5, "target_std": 0.5});
        run.finish(true, measures, json!({}));
    }
    pudica_report::write(folder).unwrap()
}

#[test]
fn the_length_of_failure_is_found_and_losses_under_noise_decide() {
    let folder = tempfile::tempdir().unwrap();
    let report = under_noise(folder.path(), |rho| rho);
    assert_eq!(claim(&report, "fail under every size of weight noise").decision, Decision::Agrees);
    assert_eq!(claim(&report, "MAJORITY and FIRST built by hand lower").decision, Decision::Agrees);
    let found = summary(folder.path());
    let parity = &found["by_construction"]["construct:parity"];
    // ρ = 0.001: the loss is 0.32 at 32 bits and 0.64 at 64, so 1/2 at 32 · 2^(0.18 / 0.32) = 47.3, a little earlier with the wobble.
    let length = parity["by_rho"]["0.001"]["fails_at"]["mean"].as_f64().unwrap();
    assert!((length - 47.2).abs() < 0.3, "{length}");
    let power = parity["failing_length_power_of_rho"]["slope"].as_f64().unwrap();
    assert!((power + 1.0).abs() < 0.05, "{power}");
    let (figures, page) = checked(&report);
    assert!(
        figures.contains(&"failing-lengths".to_string())
            && page.contains("more than 512")
            && page.contains("8 or less")
    );

    let folder = tempfile::tempdir().unwrap();
    let report = under_noise(folder.path(), |_| 1.5);
    assert_eq!(claim(&report, "MAJORITY and FIRST built by hand lower").decision, Decision::Disagrees);
}

/// Everything is learnt up to 6 bits; beyond, transformers have this accuracy on PARITY, 0.9 on the others, and the LSTM is always right.
fn by_length(folder: &Path, parity: f64) -> Report {
    for run in begin("hahn/length-generalization", Some("quick"), &[], folder) {
        let lstm = run.text("/model/kind") == "lstm";
        let mut measures = json!({"eval_loss": 1e-5, "sharpness": 0.1, "output_std": 0.5, "target_std": 0.5});
        for length in [3, 6, 7, 9, 12, 18, 24] {
            let accuracy = match run.text("/target") {
                _ if length <= 6 || lstm => 1.0,
                "parity" => parity + 0.01 * run.number("/seed"),
                _ => 0.9 + 0.01 * run.number("/seed"),
            };
            measures[format!("accuracy_at_{length}")] = accuracy.into();
            measures[format!("loss_at_{length}")] = (1.0 - accuracy).into();
            measures[format!("average_sensitivity_at_{length}")] = f64::from(length).into();
        }
        run.log([]);
        // The rotary ones do not learn PARITY, and are not asked.
        let learnt =
            run.text("/target") != "parity" || run.settings.pointer("/model/position") != Some(&json!("rotary"));
        run.finish(learnt, measures, json!({"train_lengths": [1, 6]}));
    }
    pudica_report::write(folder).unwrap()
}

#[test]
fn accuracies_beyond_the_trained_lengths_decide() {
    let folder = tempfile::tempdir().unwrap();
    let report = by_length(folder.path(), 0.49);
    let falls = claim(&report, "guess, within 0.1, on inputs four times as long");
    assert_eq!((falls.decision, falls.runs), (Decision::Agrees, 9), "{falls:?}");
    assert!(!falls.statistic.contains("rotary") && falls.statistic.contains("24 bits minus 1/2, 0.000 "), "{falls:?}");
    assert_eq!(claim(&report, "more accurate on MAJORITY and FIRST than on PARITY").decision, Decision::Agrees);
    assert_eq!(claim(&report, "a recurrent network more accurate on PARITY").decision, Decision::Agrees);
    let (figures, page) = checked(&report);
    assert!(figures.contains(&"length-sensitivity".to_string()), "{figures:?}");
    assert!(page.contains("0 of 3") && page.contains("positions learned") && page.contains("LSTM"));
    let found = &summary(folder.path())["by_target"]["parity"];
    assert_eq!(found["positions none"]["accuracy"]["6"]["mean"], json!(1.0));

    let folder = tempfile::tempdir().unwrap();
    let report = by_length(folder.path(), 0.95);
    assert_eq!(claim(&report, "guess, within 0.1").decision, Decision::Disagrees);
    assert_eq!(claim(&report, "more accurate on MAJORITY and FIRST than on PARITY").decision, Decision::Disagrees);
}

/// Every built-in recipe but the one about an open question has statements, each with a question, and they can be asked of no runs at all.
#[test]
fn every_recipe_of_the_papers_has_claims() {
    for recipe in pudica_lab::recipe::builtin_names().filter(|name| *name != "vasudeva/spectra") {
        let folder = tempfile::tempdir().unwrap();
        let runs = begin(recipe, None, &[], folder.path());
        for run in &runs {
            run.log([json!({"step": 0, "epoch": 0, "loss": 0.001, "sharpness": 0.1, "param_norm": 1.0, "blowup": 1.0,
                "train_accuracy": 0.5, "sensitivity": 0.1, "sites": [{"mean": 0.1}, {"mean": 0.2}, {"mean": 0.3}, {"mean": 0.4}]})]);
            let data: Value = json!({"eval_loss": 1e-5, "sharpness": 0.1, "set_sharpness": 0.1, "blowup": 2.0, "param_norm": 1.0,
                "average_sensitivity": 2.0, "train_accuracy": 1.0, "sensitivity": 0.1, "shop": 1.0, "shpred": 0.1,
                "predictor_sparse": 0.0, "predictor_frequent": 0.1, "sensitivity_fall_start": 1, "sensitivity_fall_half": 2,
                "test_rise_start": 3, "test_rise_half": 4});
            run.finish(true, data, json!({}));
        }
        let report = pudica_report::write(folder.path()).unwrap();
        assert!(!report.claims.is_empty(), "{recipe}");
        for claim in &report.claims {
            assert!(
                claim.question.ends_with('?') && claim.published.len() > 10 && claim.runs > 0,
                "{recipe}: {claim:?}"
            );
        }
    }
}
