//! Real (tiny) networks through the whole laboratory.

use std::path::Path;
use std::time::Duration;

use pudica_lab::config::Configuration;
use pudica_lab::store::SweepRun;
use pudica_lab::{Event, NetworkTrainer, Outcome, Plan, Precision, Recipe, Stop, SweepFolder, Tally, execute};

const TINY: &str = "
title = 'tiny'
[quick.settings]
n = 5
model.d = 8
train.batch = 16
train.steps = 60
train.lr = 0.01
eval.batches = 4
measure.batches = 2
measure.draws = 3
track.draws = 3
[[quick.sweep]]
name = 'all'
grid.target = ['parity', 'mean']
grid.seed = '0..2'
";

fn plan(text: &str, overrides: &[&str]) -> Plan {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    Plan::new(&Recipe::parse("tiny.toml", text).unwrap(), None, &overrides).unwrap()
}

fn run(plan: &Plan, folder: &Path, jobs: usize, stop: &Stop) -> Tally {
    run_on(&NetworkTrainer::cpu(), plan, folder, jobs, stop)
}

fn run_on(trainer: &NetworkTrainer, plan: &Plan, folder: &Path, jobs: usize, stop: &Stop) -> Tally {
    execute(plan, folder, jobs, trainer, &|_: &Event| {}, stop).unwrap()
}

/// Everything of every run but the time it took.
fn numbers(folder: &Path) -> Vec<(String, String, Vec<u8>)> {
    let runs = SweepFolder::open(folder).unwrap().runs().unwrap();
    let of = |run: &SweepRun| {
        let summary = run.summary.as_ref().expect("the run has ended");
        let mut metrics = run.folder.metrics().unwrap();
        metrics.iter_mut().for_each(|line| {
            line.remove("seconds");
        });
        let weights = std::fs::read(run.folder.weights_path()).unwrap();
        (format!("{:?} {:?}", summary.measures, summary.detail), format!("{metrics:?}"), weights)
    };
    runs.iter().map(of).collect()
}

#[test]
fn interrupted_or_not_on_one_thread_or_two_alone_or_in_company_the_numbers_are_bit_equal() {
    let plan = plan(TINY, &["track.every=20"]);
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(run(&plan, whole.path(), 1, &Stop::new()).remaining, 0);
    let mut wait = Duration::from_millis(5);
    let mut calls = 0;
    loop {
        let stop = Stop::new();
        let tally = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(wait);
                stop.request();
            });
            run_on(&NetworkTrainer::cpu().together(if calls % 2 == 0 { 3 } else { 1 }), &plan, parts.path(), 2, &stop)
        });
        calls += 1;
        // Longer and longer, so that a slow machine finishes too.
        wait = wait.mul_f64(1.3);
        if tally.remaining == 0 {
            break;
        }
    }
    assert!(calls > 1, "the sweep was interrupted");
    assert_eq!(numbers(whole.path()), numbers(parts.path()));
}

#[test]
fn every_measure_is_there() {
    let folder = tempfile::tempdir().unwrap();
    run(&plan(TINY, &["seed=0", "measure.set_size=8", "train.set_size=32"]), folder.path(), 2, &Stop::new());
    for run in SweepFolder::open(folder.path()).unwrap().runs().unwrap() {
        let summary = run.summary.unwrap();
        let expected = [
            "eval_loss",
            "eval_accuracy",
            "train_accuracy",
            "sharpness",
            "sharpness_std_error",
            "output_shift",
            "set_sharpness",
            "set_sharpness_std_error",
            "blowup",
            "blowup_std_error",
            "blowup_theory",
            "param_norm",
            "average_sensitivity",
        ];
        for name in expected {
            assert!(summary.measure(name).is_some(), "{name} is missing from {:?}", summary.measures);
        }
        assert!(summary.detail.contains_key("sensitivity") && summary.detail.contains_key("blowup"));
    }
}

/// The fast lane against the networks on burn: the same streams and weights, so the same numbers up to rounding.
#[test]
fn the_fast_lane_gives_the_reference_s_numbers() {
    let (fast, reference) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let overrides = ["train.steps=100", "n=4,6", "seed=0..2", "measure.set_size=8", "model.layers=1,2"];
    let plan = plan(TINY, &overrides);
    let trainer = NetworkTrainer::cpu();
    run_on(&trainer.clone().together(4), &plan, fast.path(), 1, &Stop::new());
    run_on(&trainer.reference(), &plan, reference.path(), 1, &Stop::new());
    let close =
        |fast: f64, reference: f64, relative: f64| (fast - reference).abs() <= relative * reference.abs() + 1e-7;
    let of = |folder: &Path| SweepFolder::open(folder).unwrap().runs().unwrap();
    for (fast, reference) in of(fast.path()).iter().zip(&of(reference.path())) {
        let label = reference.config.label();
        let losses = |run: &SweepRun| -> Vec<f64> {
            run.folder.metrics().unwrap().iter().map(|line| line["train_loss"].as_f64().unwrap()).collect()
        };
        let (ours, theirs) = (losses(fast), losses(reference));
        assert_eq!((ours.len(), theirs.len()), (100, 100));
        for (step, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert!(close(*ours, *theirs, 1e-4), "{label} step {step}: {ours} against {theirs}");
        }
        let (ours, theirs) = (fast.summary.as_ref().unwrap(), reference.summary.as_ref().unwrap());
        assert_eq!((ours.device.as_str(), theirs.device.as_str()), ("cpu", "cpu (burn)"));
        let names: Vec<&String> = ours.measures.keys().collect();
        assert_eq!(names, theirs.measures.keys().collect::<Vec<_>>());
        for name in names.iter().filter(|name| !name.ends_with("_std_error")) {
            let (ours, theirs) = (ours.measure(name).unwrap(), theirs.measure(name).unwrap());
            assert!(close(ours, theirs, 2e-3), "{label}: {name} {ours} against {theirs}");
        }
    }
}

/// In f64 rounding is out of the way: the same losses to nearly the last digit.
#[test]
fn in_f64_the_fast_lane_and_the_reference_give_the_same_numbers() {
    let (fast, reference) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(TINY, &["seed=0"]);
    let trainer = NetworkTrainer::cpu().precision(Precision::F64);
    run_on(&trainer, &plan, fast.path(), 1, &Stop::new());
    run_on(&trainer.reference(), &plan, reference.path(), 1, &Stop::new());
    let of = |folder: &Path| SweepFolder::open(folder).unwrap().runs().unwrap();
    for (fast, reference) in of(fast.path()).iter().zip(&of(reference.path())) {
        let device = |run: &SweepRun| run.summary.as_ref().unwrap().device.clone();
        assert_eq!((device(fast).as_str(), device(reference).as_str()), ("cpu (f64)", "cpu (burn, f64)"));
        for (ours, theirs) in fast.folder.metrics().unwrap().iter().zip(&reference.folder.metrics().unwrap()) {
            let (ours, theirs) = (ours["train_loss"].as_f64().unwrap(), theirs["train_loss"].as_f64().unwrap());
            assert!((ours - theirs).abs() <= 1e-6 * theirs, "{}: {ours} {theirs}", reference.config.label());
        }
    }
}

#[test]
fn a_loss_that_diverges_marks_the_run_failed_and_does_not_touch_its_company() {
    let alone = tempfile::tempdir().unwrap();
    run(&plan(TINY, &["target=parity", "seed=0"]), alone.path(), 1, &Stop::new());
    for trainer in [NetworkTrainer::cpu(), NetworkTrainer::cpu().together(2)] {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(TINY, &["train.lr=0.01,1e30", "target=parity", "seed=0"]);
        let tally = run_on(&trainer, &plan, folder.path(), 1, &Stop::new());
        assert_eq!((tally.failed, tally.converged + tally.discarded), (1, 1));
        let runs = SweepFolder::open(folder.path()).unwrap().runs().unwrap();
        let failed = runs[1].summary.as_ref().unwrap();
        assert_eq!(failed.outcome, Outcome::Failed);
        assert!(failed.problem.as_ref().unwrap().contains("at step 2"), "{failed:?}");
        let healthy = runs[0].summary.as_ref().unwrap();
        let expected = SweepFolder::open(alone.path()).unwrap().runs().unwrap().remove(0).summary.unwrap();
        assert_eq!(healthy.measures, expected.measures);
    }
}

const STAGES: &str = "
title = 'stages'
[quick.settings]
n = 4
model.d = 16
train.lr = 0.01
train.steps = 150
eval.batches = 1
measure.batches = 1
measure.draws = 2
[[quick.sweep]]
name = 'learn'
set.target = 'random:1'
set.train.set_size = 3
[[quick.sweep]]
name = 'refit'
follows = 'learn'
set.target = 'run:{id}'
set.train.steps = 1
[[quick.sweep]]
name = 'completion'
follows = 'learn'
set.target = 'completion:0:3:0:{target}'
set.train.steps = 1
";

#[test]
fn students_learn_what_their_teacher_says() {
    let folder = tempfile::tempdir().unwrap();
    let tally = run(&plan(STAGES, &[]), folder.path(), 2, &Stop::new());
    assert_eq!((tally.skipped, tally.remaining), (0, 0), "three strings are fitted exactly, so the student runs");
}

#[test]
fn the_scratchpad_runs_and_decodes() {
    let folder = tempfile::tempdir().unwrap();
    let overrides =
        ["model.kind=encoder-decoder", "target=parity", "seed=0", "train.steps=3", "measure.sensitivity_samples=0"];
    run(&plan(TINY, &overrides), folder.path(), 1, &Stop::new());
    let runs = SweepFolder::open(folder.path()).unwrap().runs().unwrap();
    let summary = runs[0].summary.as_ref().unwrap();
    assert!((0.0..=1.0).contains(&summary.measure("decode_accuracy").unwrap()));
    assert!(summary.measure("blowup_encoder").is_some() && summary.measure("blowup_decoder").is_some());
    assert!(summary.measure("average_sensitivity").is_none());
}
