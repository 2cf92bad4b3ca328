//! Real (tiny) networks through the whole laboratory.

mod common;

use std::path::Path;
use std::time::Duration;

use common::{numbers, plan, plan_of, runs};
use pudica_lab::store::{RunFolder, SweepRun};
use pudica_lab::{Event, Machine, Outcome, Plan, Recipe, Stop, Tally, Trained, execute, trained_network};

const TINY: &str = "
title = 'tiny'
[quick.settings]
n = 5
model.d = 8
train = { batch = 16, steps = 60, lr = 0.01 }
eval.batches = 4
measure = { batches = 2, draws = 3 }
track.draws = 3
[[quick.sweep]]
name = 'all'
grid.target = ['parity', 'mean']
grid.seed = '0..2'
";

fn run(plan: &Plan, folder: &Path, jobs: usize, stop: &Stop) -> Tally {
    run_together(1, plan, folder, jobs, stop)
}

/// At most so many runs in lock-step.
fn run_together(together: usize, plan: &Plan, folder: &Path, jobs: usize, stop: &Stop) -> Tally {
    let machine = Machine { jobs: Some(jobs), together: Some(together), ..Machine::default() };
    execute(plan, folder, &machine, &|_: &Event| {}, stop).unwrap()
}

/// Runs a sweep again and again, each time stopped a little later, until it is finished: how often.
fn interrupted(first: Duration, run: impl Fn(usize, &Stop) -> Tally) -> usize {
    // Longer and longer, so that a slow machine finishes too.
    let mut wait = first;
    for call in 0.. {
        let stop = Stop::new();
        let tally = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(wait);
                stop.request();
            });
            run(call, &stop)
        });
        wait = wait.mul_f64(1.3);
        if tally.remaining == 0 {
            return call + 1;
        }
    }
    unreachable!("a sweep ends")
}

#[test]
fn interrupted_or_not_on_one_thread_or_two_alone_or_in_lock_step_the_numbers_are_bit_equal() {
    let plan = plan(TINY, &["track.every=20"]);
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(run(&plan, whole.path(), 1, &Stop::new()).remaining, 0);
    let calls = interrupted(Duration::from_millis(5), |call, stop| {
        run_together(if call % 2 == 0 { 3 } else { 1 }, &plan, parts.path(), 2, stop)
    });
    assert!(calls > 1, "the sweep was interrupted");
    assert_eq!(numbers(whole.path()), numbers(parts.path()));
}

#[test]
fn every_measure_is_there() {
    let folder = tempfile::tempdir().unwrap();
    run(&plan(TINY, &["seed=0", "measure.set_size=8", "train.set_size=32"]), folder.path(), 2, &Stop::new());
    for run in runs(folder.path()) {
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
            "output_std",
            "target_std",
        ];
        for name in expected {
            assert!(summary.measure(name).is_some(), "{name} is missing from {:?}", summary.measures);
        }
        assert!(summary.detail.contains_key("sensitivity") && summary.detail.contains_key("blowup"));
    }
}

/// On the whole cube (n = 4): the spread of PARITY is 1/2, that of MEAN sqrt(4/4)/4, and two functions' spreads differ by no more than the
/// root of their mean squared difference, the loss.
#[test]
fn outputs_spread_about_as_far_as_the_target() {
    let folder = tempfile::tempdir().unwrap();
    run(&plan(TINY, &["n=4", "seed=0"]), folder.path(), 1, &Stop::new());
    for (run, expected) in runs(folder.path()).iter().zip([0.5, 0.25]) {
        let summary = run.summary.as_ref().unwrap();
        let value = |name: &str| summary.measure(name).unwrap();
        assert!((value("target_std") - expected).abs() < 1e-7, "{}", run.record.label);
        assert!((value("output_std") - value("target_std")).abs() <= value("eval_loss").sqrt() + 1e-6);
        assert!(value("output_std") > 0.0);
    }
}

/// The tables of PARITY, as text, and of MEAN, as real numbers, of five bits.
fn own_tables(folder: &Path) -> [String; 2] {
    let (parity, mean) = (folder.join("parity.txt"), folder.join("mean.npy"));
    let ones = (0..32u32).map(|row| row.count_ones());
    let bits: String = ones.clone().map(|ones| if ones % 2 == 1 { '1' } else { '0' }).collect();
    std::fs::write(&parity, bits).unwrap();
    let mut npy = Vec::new();
    pudica_boolean::npy::write_f64(&mut npy, 32, ones.map(|ones| f64::from(ones) / 5.0)).unwrap();
    std::fs::write(&mean, npy).unwrap();
    [parity, mean].map(|path| format!("table:{}", path.display()))
}

#[test]
fn own_functions_are_learnt_as_named_ones_are() {
    let (tables, own, named) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [parity, mean] = own_tables(tables.path());
    let targets = format!("target={parity},expr:x1 ^ x2 ^ x3 ^ x4 ^ x5,kparity:n,{mean}");
    let overrides = ["track.every=20", "measure.set_size=8"];
    run_together(3, &plan(TINY, &[&overrides[..], &[&targets]].concat()), own.path(), 2, &Stop::new());
    run(&plan(TINY, &overrides), named.path(), 1, &Stop::new());
    let (own, named) = (numbers(own.path()), numbers(named.path()));
    assert_eq!((own.len(), named.len()), (8, 4));
    for (place, run) in own.iter().enumerate() {
        let expected = if place < 6 { place % 2 } else { place - 4 };
        assert!(*run == named[expected], "run {place} differs from that of the named function");
    }
}

#[test]
fn own_functions_decide_n_and_their_tables_are_part_of_the_id() {
    let folder = tempfile::tempdir().unwrap();
    let [parity, mean] = own_tables(folder.path());
    let without_n = TINY.replace("n = 5\n", "");
    let planned = |text: &str, target: &str| plan(text, &[&format!("target={target}"), "seed=0"]).runs.remove(0);
    for (target, n) in [(parity.as_str(), 5), (&mean, 5), ("expr:x1 & x7", 7), ("address:2", 6), ("threshold:n/3", 10)]
    {
        assert_eq!(planned(&without_n, target).settings.number("n"), f64::from(n), "{target}");
    }
    // Blanks are no part of a run's identity, and n may be larger than an expression needs.
    let expression = planned(TINY, "expr:x1 & x2");
    assert_eq!(expression.settings.text("target"), "expr:x1&x2");
    assert_eq!((expression.label.as_str(), expression.settings.number("n")), ("expr:x1&x2 n=5 seed=0", 5.0));
    assert_eq!(expression.id, planned(TINY, "x1 && x2").id);

    let before = planned(TINY, &parity);
    let stored = before.settings.text("target");
    assert!(stored.starts_with(&format!("{parity}#")), "{stored}");
    assert_eq!(planned(TINY, &stored).id, before.id);
    std::fs::write(parity.trim_start_matches("table:"), "01".repeat(16)).unwrap();
    assert_ne!(planned(TINY, &parity).id, before.id, "another table under the same name is another run");

    let recipe = Recipe::parse("test.toml", TINY).unwrap();
    let refusal = |overrides: &[&str]| plan_of(&recipe, None, overrides).unwrap_err().to_string();
    for (overrides, part) in [
        (&[&*format!("target={parity}"), "n=4,5"][..], "the table has 2^5 rows, but n=4"),
        (&["target=expr:x1 & x6"], "target: the expression uses x6, but n=5"),
        (&["target=expr:x1 &"], "column 5"),
        (&["target=table:no.npy"], "target: cannot read no.npy"),
        (&[&*format!("target={stored}")], "it has changed since"),
        (&["target=threshold:n/0"], "divides by 0"),
        (&["target=run:abc", "n=21"], "kept up to n = 20"),
    ] {
        let sentence = refusal(overrides);
        assert!(sentence.contains(part), "{overrides:?}: {sentence}");
    }
}

/// The fast lane against the networks on burn: the same streams and weights, so the same numbers up to rounding.
#[test]
fn the_fast_lane_gives_the_reference_s_numbers() {
    let (fast, reference) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let overrides = ["train.steps=100", "n=4,6", "seed=0..2", "measure.set_size=8", "model.layers=1,2"];
    run_together(4, &plan(TINY, &overrides), fast.path(), 1, &Stop::new());
    let on_burn = [&overrides[..], &["compute.engine=reference"]].concat();
    run(&plan(TINY, &on_burn), reference.path(), 1, &Stop::new());
    let close =
        |fast: f64, reference: f64, relative: f64| (fast - reference).abs() <= relative * reference.abs() + 1e-7;
    for (fast, reference) in runs(fast.path()).iter().zip(&runs(reference.path())) {
        let label = reference.record.label.clone();
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
    run(&plan(TINY, &["seed=0", "compute.dtype=f64"]), fast.path(), 1, &Stop::new());
    let on_burn = ["seed=0", "compute.dtype=f64", "compute.engine=reference"];
    run(&plan(TINY, &on_burn), reference.path(), 1, &Stop::new());
    for (fast, reference) in runs(fast.path()).iter().zip(&runs(reference.path())) {
        let device = |run: &SweepRun| run.summary.as_ref().unwrap().device.clone();
        assert_eq!((device(fast).as_str(), device(reference).as_str()), ("cpu (f64)", "cpu (burn, f64)"));
        for (ours, theirs) in fast.folder.metrics().unwrap().iter().zip(&reference.folder.metrics().unwrap()) {
            let (ours, theirs) = (ours["train_loss"].as_f64().unwrap(), theirs["train_loss"].as_f64().unwrap());
            assert!((ours - theirs).abs() <= 1e-6 * theirs, "{}: {ours} {theirs}", reference.record.label.clone());
        }
    }
}

#[test]
fn a_loss_that_diverges_marks_the_run_failed_and_does_not_affect_its_group() {
    let alone = tempfile::tempdir().unwrap();
    run(&plan(TINY, &["target=parity", "seed=0"]), alone.path(), 1, &Stop::new());
    for together in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(TINY, &["train.lr=0.01,1e30", "target=parity", "seed=0"]);
        let tally = run_together(together, &plan, folder.path(), 1, &Stop::new());
        assert_eq!((tally.failed, tally.converged + tally.discarded), (1, 1));
        let runs = runs(folder.path());
        let failed = runs[1].summary.as_ref().unwrap();
        assert_eq!(failed.outcome, Outcome::Failed);
        assert!(failed.problem.as_ref().unwrap().contains("at step 2"), "{failed:?}");
        let healthy = runs[0].summary.as_ref().unwrap();
        let expected = common::runs(alone.path()).remove(0).summary.unwrap();
        assert_eq!(healthy.measures, expected.measures);
    }
}

const STAGES: &str = "
title = 'stages'
[quick.settings]
n = 4
model.d = 16
train = { lr = 0.01, steps = 150 }
eval.batches = 1
measure = { batches = 1, draws = 2 }
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
    let runs = runs(folder.path());
    let summary = runs[0].summary.as_ref().unwrap();
    assert!((0.0..=1.0).contains(&summary.measure("decode_accuracy").unwrap()));
    assert!(summary.measure("blowup_encoder").is_some() && summary.measure("blowup_decoder").is_some());
    assert!(summary.measure("average_sensitivity").is_none());
}

/// The network of a finished run.
fn trained(sweep: &Path, id: &str) -> Trained {
    trained_network(&RunFolder::new(sweep.join("runs").join(id)), None).unwrap()
}

/// Networks that burn computes: of each its settings, and whether it has norms.
const BEYOND: [(&[&str], bool); 10] = [
    (&["model.kind=mlp", "model.activation=gelu"], false),
    (&["model.kind=lstm"], false),
    (&["model.kind=gru", "model.read=mean"], false),
    (&["model.kind=ssm", "model.eigenvalues=signed", "model.norm=pre"], true),
    (&["model.kind=ssm", "model.norm=none", "model.ff=4"], false),
    (&["model.norm=rms", "model.position=rotary", "model.attention=causal", "model.init_scale=0.5"], true),
    (&["model.norm=none", "model.position=sinusoidal", "model.read=mean"], false),
    (&["model.positions=9", "model.activation=gelu"], true),
    (&["model.positions=9", "train.lengths=1 to n", "eval.lengths=n/2 n 9"], true),
    (&["model.kind=lstm", "train.lengths=n/2 to n", "eval.lengths=2n 4n"], false),
];

#[test]
fn every_network_is_trained_measured_and_resumed_to_the_same_bits() {
    for (settings, has_norms) in BEYOND {
        let overrides = [settings, &["target=parity", "seed=0", "track.every=20"]].concat();
        let plan = plan(TINY, &overrides);
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(run(&plan, whole.path(), 1, &Stop::new()).remaining, 0, "{settings:?}");
        let summary = runs(whole.path())[0].summary.clone().unwrap();
        for name in ["eval_loss", "sharpness", "output_shift", "param_norm", "average_sensitivity"] {
            assert!(summary.measure(name).is_some_and(f64::is_finite), "{settings:?}: {name}");
        }
        assert_eq!(summary.measure("blowup").is_some(), has_norms, "{settings:?}");
        assert_eq!(summary.device, "cpu (burn)");
        interrupted(Duration::from_millis(20), |_, stop| run(&plan, parts.path(), 1, stop));
        assert_eq!(numbers(whole.path()), numbers(parts.path()), "{settings:?}");
        let Trained::Bits { network, n } = trained(whole.path(), &plan.runs[0].id) else {
            panic!("{settings:?}: a run on bits has a network on bits");
        };
        let table = pudica_probe::learnt_table(&network, n).unwrap();
        let average =
            (0..32u64).map(|x| (0..5).filter(|i| table.get(x) != table.get(x ^ 1 << i)).count()).sum::<usize>();
        assert_eq!(summary.measure("average_sensitivity"), Some(average as f64 / 32.0), "{settings:?}");
    }
}

/// What is measured at other lengths, counted again on all strings by the network that is left on the disk.
#[test]
fn networks_are_tested_at_other_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["target=majority", "seed=0", "train.steps=200", "model.positions=10", "model.attention=causal"];
    let lengths = ["train.lengths=2 to n", "eval.lengths=2n 3", "eval.batches=64"];
    let plan = plan(TINY, &[&settings[..], &lengths[..]].concat());
    run(&plan, folder.path(), 1, &Stop::new());
    let summary = runs(folder.path())[0].summary.clone().unwrap();
    let stored = RunFolder::new(folder.path().join("runs").join(&plan.runs[0].id));
    let Ok(Trained::Bits { network, .. }) = trained_network(&stored, None) else {
        panic!("the network of the run is there");
    };
    for length in [3, 10] {
        let strings = pudica_data::Bits::cube(length).unwrap();
        let outputs = network.predict(&strings).unwrap();
        let rows = outputs.len();
        let says = |row: usize| outputs[row] > 0.5;
        let is = |row: usize| 2 * row.count_ones() as usize > length;
        let accuracy = (0..rows).filter(|row| says(*row) == is(*row)).count() as f64 / rows as f64;
        let flips = |row: usize| (0..length).filter(|bit| says(row) != says(row ^ 1 << bit)).count();
        let sensitivity = (0..rows).map(flips).sum::<usize>() as f64 / rows as f64;
        let loss = (0..rows).map(|row| (f64::from(outputs[row]) - f64::from(u8::from(is(row)))).powi(2)).sum::<f64>();
        let found = |name: &str| summary.measure(&format!("{name}_at_{length}")).unwrap();
        assert!((found("accuracy") - accuracy).abs() < 1e-12, "{length}: {} {accuracy}", found("accuracy"));
        assert!((found("average_sensitivity") - sensitivity).abs() < 1e-12);
        assert!((found("loss") - loss / rows as f64).abs() < 1e-6);
    }
    assert_eq!(summary.detail["train_lengths"], serde_json::json!([2, 5]));
    assert_eq!(summary.detail["lengths"].as_array().unwrap().len(), 2);
}

/// At initialisation, on the fast lane and on burn: the scale multiplies matrices, and leaves everything else.
#[test]
fn networks_are_measured_at_initialisation_at_any_scale() {
    for kind in ["encoder", "mlp", "lstm", "ssm"] {
        let kind = format!("model.kind={kind}");
        let overrides = [kind.as_str(), "target=parity", "seed=0", "train.steps=0", "model.init_scale=1,2"];
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(TINY, &overrides);
        run(&plan, folder.path(), 1, &Stop::new());
        let weights = |run: &pudica_lab::plan::PlannedRun| match trained(folder.path(), &run.id) {
            Trained::Bits { network, .. } => network.weights().clone(),
            _ => unreachable!("a run on bits has a network on bits"),
        };
        let (plain, scaled) = (weights(&plan.runs[0]), weights(&plan.runs[1]));
        for parameter in plain.layout() {
            let factor = if parameter.shape.len() > 1 { 2.0 } else { 1.0 };
            let expected: Vec<f32> = plain.data()[parameter.range.clone()].iter().map(|x| x * factor).collect();
            assert_eq!(scaled.data()[parameter.range.clone()], expected, "{kind}: {}", parameter.name);
        }
    }
}

/// What a run is computed on decides its numbers: in one folder, f32 and f64 are different runs, and none answers for the other.
#[test]
fn runs_in_f32_and_f64_live_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(TINY, &["target=parity", "seed=0", "compute.dtype=f32,f64", "train.steps=20"]);
    assert_eq!(run(&plan, folder.path(), 1, &Stop::new()).remaining, 0);
    let runs = runs(folder.path());
    let device = |run: &SweepRun| run.summary.as_ref().unwrap().device.clone();
    assert_eq!(runs.iter().map(device).collect::<Vec<_>>(), ["cpu", "cpu (f64)"]);
    let record = runs[1].summary.as_ref().unwrap().made_by.as_ref().unwrap();
    assert_eq!((record.dtype.as_str(), record.engine.as_str()), ("f64", "standard"));
    assert_ne!(runs[0].summary.as_ref().unwrap().measures, runs[1].summary.as_ref().unwrap().measures);
    assert_eq!(runs[1].record.label, "dtype=f64");
}

/// A folder of format 1, whose ids did not cover the number type, is taken over under true identities.
#[test]
fn folders_of_format_1_are_read_and_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let f64_plan = plan(TINY, &["target=parity", "seed=0..2", "compute.dtype=f64", "train.steps=20"]);
    run(&f64_plan, folder.path(), 1, &Stop::new());
    let before = numbers(folder.path());
    // As format 1 left it: ids without the number type, settings without `compute`, one run unfinished.
    let plain = plan(TINY, &["target=parity", "seed=0..2", "train.steps=20"]);
    let edit = |path: &Path, change: &dyn Fn(&mut serde_json::Value)| {
        let mut value: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        change(&mut value);
        std::fs::write(path, value.to_string()).unwrap();
    };
    for (now, then) in f64_plan.runs.iter().zip(&plain.runs) {
        let own = folder.path().join("runs").join(&then.id);
        std::fs::rename(folder.path().join("runs").join(&now.id), &own).unwrap();
        edit(&own.join("config.json"), &|config| {
            config.as_object_mut().unwrap().remove("compute");
        });
        edit(&own.join("summary.json"), &|summary| {
            (summary["format"], summary["id"]) = (1.into(), then.id.clone().into());
            summary.as_object_mut().unwrap().remove("made_by");
            summary.as_object_mut().unwrap().remove("files"); // no digests then
        });
    }
    edit(&folder.path().join("sweep.json"), &|sweep| {
        sweep["format"] = 1.into();
        sweep.as_object_mut().unwrap().remove("swept");
        for (run, then) in sweep["runs"].as_array_mut().unwrap().iter_mut().zip(&plain.runs) {
            run["id"] = then.id.clone().into();
            run.as_object_mut().unwrap().remove("label");
        }
    });
    // Read as it is, it says what it was computed in.
    assert_eq!(numbers(folder.path()), before);
    assert_eq!(runs(folder.path())[0].settings.text("compute.dtype"), "f64");
    // In f32 these are other runs, and the folder is not theirs.
    let machine = Machine { jobs: Some(1), ..Machine::default() };
    let refusal = execute(&plain, folder.path(), &machine, &|_: &Event| {}, &Stop::new()).unwrap_err().to_string();
    assert!(refusal.contains("choose another --out"), "{refusal}");
    // In f64 nothing is made again, and an unfinished run begins again.
    let unfinished = folder.path().join("runs").join(&plain.runs[1].id);
    std::fs::remove_file(unfinished.join("summary.json")).unwrap();
    let told = std::sync::Mutex::new(Vec::new());
    let note = |event: &Event| match event {
        Event::RunStarted { id, .. } => told.lock().unwrap().push(id.clone()),
        Event::Notice { text } => told.lock().unwrap().push(text.clone()),
        _ => {}
    };
    execute(&f64_plan, folder.path(), &machine, &note, &Stop::new()).unwrap();
    let told = told.into_inner().unwrap();
    assert!(told[0].contains("1 finished runs") && told[1].contains("1 unfinished runs"), "{told:?}");
    assert_eq!(told[2..], [f64_plan.runs[1].id.clone()]);
    assert_eq!(numbers(folder.path()), before);
}
