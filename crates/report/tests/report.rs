//! Every recipe's report is written from a made-up sweep whose statistics are known.

use std::path::Path;

use pudica_lab::store::RunFolder;
use pudica_lab::{Outcome, Plan, Recipe, RunConfig, RunSummary, SweepFolder};
use serde_json::{Map, Value, json};

/// A number in [-1, 1) that looks random and depends on the text alone.
fn noise(text: &str) -> f64 {
    let hash =
        text.bytes().fold(0xcbf29ce484222325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100000001b3));
    (hash >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Sharpness rises by 0.05 a bit for PARITY and not at all for the others.
fn made_up(config: &RunConfig, id: &str) -> Map<String, Value> {
    let n = config.n as f64;
    let sharpness = match config.target.as_str() {
        "parity" => 0.05 * n - 0.1 + 0.04 * noise(id),
        target if target.starts_with("random") || target.starts_with("completion") => 0.5 + 0.05 * noise(id),
        target if target.starts_with("run") => 0.2 + 0.05 * noise(id),
        _ => 1e-3 * (1.0 + 0.3 * noise(id)),
    };
    let norm = 30.0 - 40.0 * config.train.weight_decay + noise(&format!("{id} norm"));
    let measures = json!({
        "eval_loss": 1e-5,
        "sharpness": sharpness,
        "set_sharpness": sharpness * 0.97,
        "blowup": 10f64.powf(5.0 - 0.1 * norm + 0.02 * n),
        "param_norm": norm,
        "average_sensitivity": if config.target == "parity" { n } else { n / 2.0 - 2.0 + 0.2 * noise(&format!("{id} as")) },
        "train_accuracy": 1.0,
        "decode_accuracy": 1.0,
    });
    measures.as_object().unwrap().clone()
}

fn write_run(folder: &RunFolder, config: &RunConfig, id: &str, outcome: Outcome) {
    folder.create(config).unwrap();
    if let Some(quarter) = (config.train.steps / 4).checked_div(config.track.every) {
        let fall = quarter * config.track.every;
        for step in (0..=config.train.steps).step_by(config.track.every as usize) {
            let after = step.saturating_sub(fall) as f64 / config.train.steps as f64;
            let learnt = step >= fall;
            let line = json!({
                "step": step,
                "loss": if learnt { 1e-4 } else { 0.25 },
                "sharpness": if learnt { 0.8 - 0.3 * after } else { 0.01 } + 0.02 * noise(&format!("{id}{step}")),
                "param_norm": 30.0 - 20.0 * config.train.weight_decay * after,
                "blowup": 10f64.powf(2.0 + 10.0 * config.train.weight_decay * after),
                "seconds": 0.1 * step as f64,
            });
            folder.log(line.as_object().unwrap()).unwrap();
        }
    }
    let finished = outcome == Outcome::Finished;
    let summary = RunSummary {
        format: pudica_lab::store::FORMAT,
        id: id.into(),
        outcome,
        problem: (!finished).then(|| "the loss became NaN at step 3".into()),
        steps: config.train.steps,
        // One run in nine does not converge.
        converged: finished && config.seed % 9 != 4,
        seconds: 1.5,
        device: "made up".into(),
        measures: if finished { made_up(config, id) } else { Map::new() },
        detail: Map::new(),
    };
    folder.finish(&summary).unwrap();
}

/// A sweep folder with every run of the recipe made up; the last run failed.
fn sweep(recipe: &str, scale: &str, folder: &Path, overrides: &[&str]) -> Plan {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let plan: Plan = Plan::new(&Recipe::find(recipe).unwrap(), Some(scale), &overrides).unwrap();
    let claimed = SweepFolder::claim(folder, &plan).unwrap();
    for (place, run) in plan.runs.iter().enumerate() {
        let outcome = if place + 1 == plan.runs.len() { Outcome::Failed } else { Outcome::Finished };
        write_run(&claimed.run(&run.id), &run.config, &run.id, outcome);
    }
    plan
}

fn json_file(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_recipe_draws_its_figures() {
    let figures: [(&str, &[&str], &[&str]); 8] = [
        ("hahn/length-scaling", &["fig1", "fig5", "fig6", "measures"], &["n=4..=30 step 2", "seed=0..3"]),
        ("hahn/long-lengths", &["fig7", "fig8"], &["seed=0..2"]),
        ("hahn/tradeoff", &["fig2", "fig9"], &["draws=40"]),
        ("hahn/tradeoff-lengths", &["fig10"], &["draws=40"]),
        ("hahn/dynamics", &["fig3", "fig12", "fig14"], &["seed=0..2"]),
        ("hahn/dynamics-long", &["fig13"], &["seed=0..1"]),
        ("hahn/generalization", &["fig4", "fig15"], &["target=random:0..2", "train.set_seed=0..2"]),
        ("hahn/scratchpad", &["fig11"], &["seed=0..2"]),
    ];
    // Set PUDICA_KEEP_REPORTS to a folder to look at them.
    let kept = std::env::var_os("PUDICA_KEEP_REPORTS");
    for (recipe, expected, overrides) in figures {
        let temporary = tempfile::tempdir().unwrap();
        let folder = kept.as_ref().map_or(temporary.path().into(), |kept| Path::new(kept).join(recipe));
        sweep(recipe, "paper", &folder, overrides);
        let report = pudica_report::write(&folder).unwrap();
        let names: Vec<String> =
            report.figures.iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names, expected, "{recipe}");
        let page = std::fs::read_to_string(&report.page).unwrap();
        for svg in &report.figures {
            let png = std::fs::read(svg.with_extension("png")).unwrap();
            assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{}", svg.display());
            assert!(page.contains(&format!("id=\"{}\"", svg.file_stem().unwrap().to_string_lossy())));
        }
        // Self-contained: nothing is fetched from anywhere.
        assert!(!page.contains("src=\"http") && !page.contains("@import") && !page.contains("<script"));
        assert!(page.contains(&format!("pudica run {recipe} --scale paper")) && page.contains("Published:"));
        assert!(page.contains("the loss became NaN at step 3"), "{recipe}: failed runs are listed");
        assert!(folder.join("results.parquet").exists() && folder.join("results.csv").exists());
    }
}

#[test]
fn length_scaling_fits_what_was_put_in() {
    let folder = tempfile::tempdir().unwrap();
    let plan = sweep("hahn/length-scaling", "paper", folder.path(), &["n=4..=28 step 4"]);
    let report = pudica_report::write(folder.path()).unwrap();
    assert_eq!(report.tally.runs, 4 * 7 * 10);
    assert_eq!((report.tally.discarded, report.tally.failed), (28, 1));
    let summary = json_file(&folder.path().join("summary.json"));
    let parity = &summary["fits"]["parity"];
    assert!((parity["slope"].as_f64().unwrap() - 0.05).abs() < 1e-3);
    assert!((parity["intercept"].as_f64().unwrap() + 0.1).abs() < 2e-2);
    assert!(parity["r"].as_f64().unwrap() > 0.99 && parity["p"].as_f64().unwrap() < 1e-50);
    assert_eq!((&parity["runs_kept"], &parity["runs_discarded"]), (&json!(63), &json!(7)));
    assert!(summary["fits"]["first"]["slope"].as_f64().unwrap().abs() < 1e-5);
    let rows = std::fs::read_to_string(folder.path().join("results.csv")).unwrap().lines().count();
    assert_eq!(rows, plan.runs.len() + 1);
}

#[test]
fn a_sweep_that_has_only_begun_can_be_reported() {
    for recipe in pudica_lab::recipe::builtin_names().into_iter().filter(|name| name.starts_with("hahn/")) {
        let folder = tempfile::tempdir().unwrap();
        let plan: Plan = Plan::new(&Recipe::find(recipe).unwrap(), None, &[]).unwrap();
        let claimed = SweepFolder::claim(folder.path(), &plan).unwrap();
        pudica_report::write(folder.path()).unwrap();
        write_run(&claimed.run(&plan.runs[0].id), &plan.runs[0].config, &plan.runs[0].id, Outcome::Finished);
        let report = pudica_report::write(folder.path()).unwrap();
        assert_eq!(report.tally.remaining, plan.runs.len() - 1);
        assert!(std::fs::read_to_string(report.page).unwrap().contains("not finished yet"));
    }
}
