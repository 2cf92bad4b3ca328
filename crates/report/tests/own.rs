//! Sweeps of any kind whose recipe asks for the plain table of runs.

mod common;

use common::{begin_by_hand, checked, place};
use serde_json::json;

#[test]
fn runs_without_a_layout_are_a_table() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "own/runs");
    let runs =
        begin_by_hand("spectra", "runs", &[json!({"heads": 4, "width": 4}), json!({"heads": 4, "width": 8})], &folder);
    runs[0].log([json!({"step": 1, "loss": 0.5})]);
    runs[0].finish(true, json!({"accuracy": 0.75, "accuracy_std_error": 0.02}), json!({}));
    runs[1].log([]);
    let report = pudica_report::write(&folder).unwrap();
    let (names, page) = checked(&report);
    assert!(names.is_empty());
    for part in
        ["All runs", "width=4", "0.7500 <span class=\"i\">± 0.0200</span>", "<td>finished</td>", "not finished yet"]
    {
        assert!(page.contains(part), "{part}");
    }
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
