//! What tests of whole sweeps share.
#![allow(dead_code)] // each test file uses its own part

use std::path::Path;

use pudica_lab::store::SweepRun;
use pudica_lab::{Plan, Recipe, Request, SweepFolder};

/// The runs of a recipe's text.
pub fn plan(text: &str, overrides: &[&str]) -> Plan {
    plan_of(&Recipe::parse("test.toml", text).unwrap(), None, overrides).unwrap()
}

/// The runs of a recipe.
pub fn plan_of(recipe: &Recipe, scale: Option<&str>, overrides: &[&str]) -> pudica_lab::Result<Plan> {
    let overrides = overrides.iter().map(|text| text.to_string()).collect();
    Plan::new(recipe, &Request { scale: scale.map(String::from), overrides, ..Request::default() })
}

/// The runs of a folder.
pub fn runs(folder: &Path) -> Vec<SweepRun> {
    SweepFolder::open(folder).unwrap().runs().unwrap()
}

/// Everything of every run but the time it took.
pub fn numbers(folder: &Path) -> Vec<(String, String, Vec<u8>)> {
    let of = |run: SweepRun| {
        let summary = run.summary.as_ref().expect("the run has ended");
        let mut metrics = run.lines().unwrap();
        metrics.iter_mut().for_each(|line| {
            line.remove("seconds");
        });
        let weights = std::fs::read(run.folder.weights_path()).unwrap_or_default();
        (format!("{:?} {:?} {:?}", summary.outcome, summary.measures, summary.detail), format!("{metrics:?}"), weights)
    };
    runs(folder).into_iter().map(of).collect()
}
