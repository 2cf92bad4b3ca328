//! Somebody's own recipes: what was swept is what is shown, and nothing is called published.

mod common;

use std::path::Path;

use common::{Planned, begin, begin_by_hand, begin_own, checked, place, summary};
use pudica_lab::recipe::Plot;
use serde_json::{Value, json};

/// The example of docs/recipes.md.
const WIDTH: &str = r#"
title = "Does width help PARITY?"
figures = "length-scaling"
[settings]
target = "parity"
train.batch = 128
[quick]
settings = { train.steps = 1500, train.lr = 3e-3 }
[[quick.sweep]]
name = "all"
grid.model.d = [16, 32, 64]
grid.n = "4..=8"
grid.seed = "0..3"
"#;

/// Sharpness rises by 0.01 per bit at width 16, 0.02 at 32 and 0.04 at 64; at 16 nothing longer than six bits converges.
fn make(run: &Planned) {
    let (n, d, seed) = (run.number("/n"), run.number("/model/d"), run.number("/seed"));
    let measures = json!({
        "eval_loss": 1e-4, "sharpness": n * d / 1600.0 + 0.001 * seed, "sharpness_std_error": 0.002, "blowup": 2.0 * n,
        "param_norm": d,
    });
    run.log([]);
    run.finish(d > 16.0 || n <= 6.0, measures, json!({}));
}

fn own(recipe: &str, folder: &Path) -> (Vec<String>, String) {
    begin_own(recipe, folder).iter().for_each(make);
    let report = pudica_report::write(folder).unwrap();
    assert!(report.claims.is_empty());
    checked(&report)
}

/// Nothing was published about somebody's own experiment.
fn assert_own(page: &str) {
    let (_, body) = page.split_once("</style>").unwrap();
    let (before, _) = body.split_once("The recipe").unwrap();
    for word in ["Figure 1", "Figure 5", "Table 2", "ublished"] {
        assert!(!before.contains(word), "{word}");
    }
}

#[test]
fn width_is_on_the_page_that_asks_about_width() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "own/width");
    let (names, page) = own(WIDTH, &folder);
    assert_eq!(names, ["sharpness-against-input-length", "measures"]);
    assert_own(&page);
    for part in ["PARITY, d 16", "PARITY, d 64", "What was swept", "All runs", "not converged, discarded", "d 32"] {
        assert!(page.contains(part), "{part}");
    }
    // A slope for each width, and nothing pooled in the table.
    let summary = summary(&folder);
    let fits = summary["fits_by_series"].as_array().unwrap();
    assert_eq!(fits.len(), 3);
    for (fit, (slope, kept)) in fits.iter().zip([(0.01, 9), (0.02, 15), (0.04, 15)]) {
        assert!((fit["slope"].as_f64().unwrap() - slope).abs() < 1e-9, "{fit}");
        assert_eq!((fit["runs_kept"].as_u64(), fit["interval"]["low"].as_f64().unwrap() < slope), (Some(kept), true));
    }
    // Every run is linked.
    let links = page.matches("href=\"runs/").count();
    assert!(links >= 45, "{links}");
    let svg = std::fs::read_to_string(folder.join("figures/sharpness-against-input-length.svg")).unwrap();
    assert!(svg.contains("d 16") && svg.contains("d 64"));
}

#[test]
fn without_a_layout_every_measure_is_drawn_against_every_axis() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "own/axes");
    let recipe = WIDTH.replace("figures = \"length-scaling\"", "");
    let (names, page) = own(&recipe, &folder);
    let expected: Vec<String> = ["eval_loss", "sharpness", "blowup", "param_norm"]
        .iter()
        .flat_map(|measure| ["n", "model.d"].map(|axis| format!("{measure}-by-{axis}")))
        .collect();
    assert_eq!(names, expected);
    assert_own(&page);
    // The counts of a cell: at width 16 and n = 8 three runs, none of them converged.
    let table = &page[page.find("What was swept").unwrap()..page.find("All runs").unwrap()];
    assert_eq!(table.matches("<tr>").count(), 1 + 15);
    assert!(page.contains("model.d = 16") && page.contains("6 runs did not converge and are left out"));
    // Fits of lengths stay in the summary.
    assert!(summary(&folder)["fits"]["parity"]["slope"].is_number());
}

#[test]
fn the_figure_that_is_asked_for_comes_first() {
    let recipe = WIDTH.replacen(
        "[settings]",
        "plot = [{ x = \"n\", y = \"sharpness\", colour = \"model.d\" }, { x = \"param_norm\", y = \"blowup\", panel = \"n\" }]\n[settings]",
        1,
    );
    let folder = tempfile::tempdir().unwrap();
    let (names, page) = own(&recipe, folder.path());
    assert_eq!(names[..2], ["plot-1", "plot-2"]);
    assert!(page.contains("Sharpness against n") && page.contains("Blowup against param norm"));

    let plot = |x: &str, y: &str| Plot { x: x.into(), y: y.into(), colour: None, panel: None };
    let report = pudica_report::write_with(folder.path(), &[plot("model.d", "sharpness")]).unwrap();
    let (names, page) = checked(&report);
    assert!(names[..3] == ["plot-1", "plot-2", "plot-3"] && page.contains("Sharpness against model.d"));
    let refusal = pudica_report::write_with(folder.path(), &[plot("n", "sharpnes")]).unwrap_err().to_string();
    assert!(refusal.contains("there is no y `sharpnes`; did you mean `sharpness`?"), "{refusal}");
    let refusal = pudica_report::write_with(folder.path(), &[plot("n", "qqqqqqqq")]).unwrap_err().to_string();
    assert!(refusal.contains("measures: ") && refusal.contains("param_norm"), "{refusal}");
}

/// Draws at random: every run has values of its own, so that there are points and no means, and colours are a scale.
#[test]
fn many_values_are_a_scatter() {
    let recipe = r#"
title = "Draws"
[settings]
target = "majority"
n = 5
[quick]
[[quick.sweep]]
name = "all"
draws = 40
draw_seed = 1
random.train.lr = "1e-4..1e-3"
random.train.weight_decay = "0.0..0.4"
"#;
    let folder = tempfile::tempdir().unwrap();
    let (names, page) = own(recipe, folder.path());
    assert!(names.contains(&"sharpness-by-train.lr".to_string()), "{names:?}");
    assert!(page.contains("Every point is a converged run") && !page.contains("What was swept"));
}

#[test]
fn runs_without_a_layout_are_a_table() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "own/runs");
    let runs = begin_by_hand(
        "own.toml",
        "spectra",
        "runs",
        &[json!({"heads": 4, "width": 4}), json!({"heads": 4, "width": 8})],
        &folder,
    );
    runs[0].log([json!({"step": 1, "loss": 0.5})]);
    runs[0].finish(true, json!({"accuracy": 0.75, "accuracy_std_error": 0.02}), json!({}));
    runs[1].log([]);
    let report = pudica_report::write(&folder).unwrap();
    let (names, page) = checked(&report);
    assert!(names.is_empty());
    for part in ["All runs", "width=4", "0.7500", "± 0.0200", ">finished<", "not finished yet"] {
        assert!(page.contains(part), "{part}");
    }
}

/// A constant answer is recognised by its measures, and is said to be one.
#[test]
fn constant_networks_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let runs = begin("hahn/long-lengths", Some("paper"), &["target=mean", "n=64,256", "seed=0..3"], folder.path());
    for run in &runs {
        let n = run.number("/n");
        let loss = if n > 251.0 { 0.25 / n } else { 1e-5 };
        run.log([]);
        run.finish(loss < 1e-3, json!({"eval_loss": loss, "sharpness": 1e-3}), json!({}));
    }
    let report = pudica_report::write(folder.path()).unwrap();
    let page = std::fs::read_to_string(&report.page).unwrap();
    assert_eq!(report.warnings.len(), 2, "{:?}", report.warnings);
    assert!(report.warnings[0].starts_with("3 of 6 runs give the same answer"), "{:?}", report.warnings);
    assert!(report.warnings[1].contains("for MEAN at n = 256") && page.contains("for MEAN at n = 256"));
}

#[test]
fn layouts_are_listed_and_recipes_name_them() {
    let names: Vec<&str> = pudica_report::layouts().collect();
    assert!(names.contains(&"length-scaling") && names.contains(&"spectra"));
    for recipe in pudica_lab::recipe::builtin_names() {
        let figures = pudica_lab::Recipe::find(recipe).unwrap().figures;
        assert!(names.contains(&figures.as_str()), "{recipe}: {figures}");
    }
}

/// What is said of a sweep, without the time it took.
#[test]
fn a_report_written_twice_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    own(WIDTH, folder.path());
    let read = || -> (Value, String) {
        (summary(folder.path()), std::fs::read_to_string(folder.path().join("report.html")).unwrap())
    };
    let first = read();
    pudica_report::write(folder.path()).unwrap();
    assert!(read() == first);
}
