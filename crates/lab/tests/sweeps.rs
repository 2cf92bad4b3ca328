//! Sweeps end with the same numbers however they are interrupted, and trouble in one run does not touch the others.

mod common;
mod fake;

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::{numbers, plan, plan_of, runs};
use fake::{Fake, execute};
use pudica_lab::store::Status;
use pudica_lab::{Event, Machine, Outcome, Plan, Recipe, Request, Stop, SweepFolder, Tally, execute_with};

fn recipe() -> String {
    fake::recipe(200, 0.1, "grid.seed = '0..6'")
}

fn run(plan: &Plan, folder: &Path, jobs: usize) -> Tally {
    execute(plan, folder, jobs, &Fake::default(), &|_: &Event| {}, &Stop::new()).unwrap()
}

#[test]
fn threads_do_not_change_the_numbers_and_finished_runs_are_not_repeated() {
    let (one, three) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&recipe(), &[]);
    let tally = run(&plan, one.path(), 1);
    assert_eq!((tally.runs, tally.converged, tally.remaining), (6, 6, 0));
    run(&plan, three.path(), 3);
    assert_eq!(numbers(one.path()), numbers(three.path()));

    let started = Mutex::new(0);
    let count = |event: &Event| {
        if matches!(event, Event::RunStarted { .. }) {
            *started.lock().unwrap() += 1;
        }
    };
    execute(&plan, one.path(), 2, &Fake::default(), &count, &Stop::new()).unwrap();
    assert_eq!(*started.lock().unwrap(), 0);
}

#[test]
fn lock_step_does_not_change_the_numbers() {
    let (alone, together) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&recipe(), &["n=4,5", "target=parity,first"]);
    run(&plan, alone.path(), 1);
    let begun = Mutex::new(Vec::new());
    let note = |event: &Event| {
        if let Event::RunStarted { label, .. } = event {
            begun.lock().unwrap().push(label.clone());
        }
    };
    // 12 runs may go together at each length: at most 8 at once makes two groups of 6.
    let trainer = Fake { together: 8, ..Default::default() };
    let tally = execute(&plan, together.path(), 1, &trainer, &note, &Stop::new()).unwrap();
    assert_eq!((tally.runs, tally.remaining), (24, 0));
    let lengths: Vec<bool> = begun.into_inner().unwrap().iter().map(|label| label.contains("n=4")).collect();
    assert_eq!(lengths[..6], [true; 6], "the runs of one length begin together: {lengths:?}");
    assert_eq!(numbers(alone.path()), numbers(together.path()));
}

#[test]
fn an_interrupted_sweep_continues_to_the_same_numbers() {
    for (together, overrides) in [(1, &[][..]), (1, &["track.every=7"]), (4, &[]), (4, &["track.every=7"])] {
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let plan = plan(&recipe(), overrides);
        run(&plan, whole.path(), 2);
        let trainer = Fake { step_time: Duration::from_micros(300), together };
        let mut calls = 0;
        let mut resumed = false;
        loop {
            let stop = Stop::new();
            let from_steps = Mutex::new(Vec::new());
            let note = |event: &Event| {
                if let Event::RunStarted { from_step, .. } = event {
                    from_steps.lock().unwrap().push(*from_step);
                }
            };
            let tally = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(60));
                    stop.request();
                });
                execute(&plan, parts.path(), 2, &trainer, &note, &stop).unwrap()
            });
            resumed |= from_steps.lock().unwrap().iter().any(|step| *step > 0);
            calls += 1;
            if tally.remaining == 0 {
                break;
            }
            assert!(tally.stopped && calls < 100);
        }
        assert!(calls > 2 && resumed, "the sweep was interrupted in the middle of runs ({calls} calls)");
        assert_eq!(numbers(whole.path()), numbers(parts.path()));
    }
}

#[test]
fn stopping_is_quick_and_keeps_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&recipe(), &["train.steps=1000000", "seed=0..2"]);
    let trainer = Fake { step_time: Duration::from_millis(1), ..Default::default() };
    let stop = Stop::new();
    let (tally, waited) = std::thread::scope(|scope| {
        let sweep = scope.spawn(|| execute(&plan, folder.path(), 2, &trainer, &|_: &Event| {}, &stop).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        stop.request();
        (sweep.join().unwrap(), asked.elapsed())
    });
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    assert!(tally.stopped && tally.remaining == 2);
    let sweep = SweepFolder::open(folder.path()).unwrap();
    assert!(plan.runs.iter().all(|run| sweep.run(&run.id).checkpoint().unwrap().is_some()));
}

#[test]
fn a_diverging_run_is_marked_failed_alone_or_in_lock_step_and_the_others_go_on() {
    let healthy = tempfile::tempdir().unwrap();
    run(&plan(&recipe(), &["train.lr=0.001", "seed=0..2"]), healthy.path(), 1);
    for together in [1, 4] {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(&recipe(), &["train.lr=0.001,100", "seed=0..2"]);
        let trainer = Fake { together, ..Default::default() };
        let tally = execute(&plan, folder.path(), 1, &trainer, &|_: &Event| {}, &Stop::new()).unwrap();
        assert_eq!((tally.converged, tally.failed), (2, 2));
        let runs = runs(folder.path());
        let failed =
            runs.iter().find(|run| run.settings.number("train.lr") == 100.0).unwrap().summary.as_ref().unwrap();
        assert_eq!((failed.outcome, failed.steps), (Outcome::Failed, 7));
        assert!(failed.problem.as_ref().unwrap().contains("became NaN at step 7"));
        let undisturbed =
            numbers(folder.path()).into_iter().zip(&runs).filter(|(_, run)| run.settings.number("train.lr") < 1.0);
        assert_eq!(undisturbed.map(|(numbers, _)| numbers).collect::<Vec<_>>(), numbers(healthy.path()));
    }
}

/// After a kill the checkpoints of a group may be of different steps: those runs then go on in different groups.
#[test]
fn checkpoints_of_different_steps_continue_apart() {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&recipe(), &["seed=0..4", "train.steps=2000"]);
    let trainer = Fake { together: 4, ..Default::default() };
    execute(&plan, whole.path(), 1, &trainer, &|_: &Event| {}, &Stop::new()).unwrap();

    // Stop a group in the middle, then set two of its runs back to where another interruption left them.
    let interrupted = || {
        let slow = Fake { step_time: Duration::from_millis(1), together: 4 };
        let stop = Stop::new();
        let stop_soon = |event: &Event| {
            if matches!(event, Event::Progress { step, .. } if *step > 0) {
                stop.request();
            }
        };
        execute(&plan, killed.path(), 1, &slow, &stop_soon, &stop).unwrap()
    };
    assert_eq!(interrupted().remaining, 4);
    let sweep = SweepFolder::open(killed.path()).unwrap();
    let early: Vec<Vec<u8>> = (0..2).map(|i| sweep.run(&plan.runs[i].id).checkpoint().unwrap().unwrap()).collect();
    assert_eq!(interrupted().remaining, 4);
    for (run, checkpoint) in plan.runs.iter().zip(&early) {
        sweep.run(&run.id).save_checkpoint(checkpoint).unwrap();
    }

    let starts = Mutex::new(std::collections::BTreeSet::new());
    let note = |event: &Event| {
        if let Event::RunStarted { from_step, .. } = event {
            starts.lock().unwrap().insert(*from_step);
        }
    };
    execute(&plan, killed.path(), 1, &trainer, &note, &Stop::new()).unwrap();
    assert_eq!(starts.into_inner().unwrap().len(), 2, "two groups, each from its own step");
    assert_eq!(numbers(whole.path()), numbers(killed.path()));
}

/// A file that cannot be written (a full disk, say) ends the sweep with that error, after everything else is saved.
#[test]
fn an_error_in_one_run_saves_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&recipe(), &["seed=0..4", "train.steps=2000"]);
    let trainer = Fake { step_time: Duration::from_micros(200), together: 4 };
    let spoil = |event: &Event| {
        if let Event::Progress { id, .. } = event {
            let metrics = folder.path().join("runs").join(id).join("metrics.jsonl");
            if metrics.is_file() && *id == plan.runs[2].id {
                std::fs::remove_file(&metrics).unwrap();
                std::fs::create_dir(&metrics).unwrap();
            }
        }
    };
    let error = execute(&plan, folder.path(), 1, &trainer, &spoil, &Stop::new()).unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains(&plan.runs[2].id), "{error}");
    let sweep = SweepFolder::open(folder.path()).unwrap();
    // Its own state is not saved: that counts on metrics which cannot be read.
    assert!(sweep.run(&plan.runs[2].id).checkpoint().unwrap().is_none());
    for run in plan.runs.iter().filter(|run| run.id != plan.runs[2].id) {
        let saved = String::from_utf8(sweep.run(&run.id).checkpoint().unwrap().expect("it is saved")).unwrap();
        let step: u64 = saved.split(' ').next().unwrap().parse().unwrap();
        assert!(step > 0 && step < 2000, "{saved}");
    }
}

fn stages() -> String {
    fake::stages("grid.target = ['random:0', 'random:1']", "grid.seed = '0..2'")
}

#[test]
fn students_wait_for_their_teachers_and_skip_useless_ones() {
    let folder = tempfile::tempdir().unwrap();
    // The fake network does not fit the training set of random:1, so its two students are skipped.
    let tally = run(&plan(&stages(), &[]), folder.path(), 4);
    assert_eq!((tally.runs, tally.discarded, tally.skipped), (6, 4, 2));
    let runs = runs(folder.path());
    let skipped = runs[4].summary.as_ref().unwrap();
    assert!(skipped.problem.as_ref().unwrap().contains("does not fit its training set exactly"));
}

#[test]
fn a_teacher_that_is_not_in_the_sweep_is_an_error() {
    let recipe = Recipe::parse("test.toml", &recipe()).unwrap();
    let request = Request { overrides: vec!["target=run:0123456789ab".into()], ..Request::default() };
    let refusal = Plan::new(&recipe, &request).unwrap_err();
    assert_eq!(refusal.to_string(), "target: run:0123456789ab is not a run of this sweep");
}

#[test]
fn folders_of_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&recipe(), &[]);
    run(&plan, folder.path(), 2);
    let refuse = |plan: &Plan| {
        execute(plan, folder.path(), 2, &Fake::default(), &|_: &Event| {}, &Stop::new()).unwrap_err().to_string()
    };

    let claimed = SweepFolder::claim(folder.path(), &plan, &Machine::default(), &mut Vec::new()).unwrap();
    assert!(refuse(&plan).contains("another pudica is running in this folder"));
    drop(claimed);

    let other = plan_of(&Recipe::parse("other.toml", &recipe()).unwrap(), None, &[]).unwrap();
    assert!(refuse(&other).contains("holds a sweep of test.toml, not of other.toml"));

    let path = folder.path().join("sweep.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("\"format\": 2", "\"format\": 99");
    std::fs::write(&path, text).unwrap();
    assert!(refuse(&plan).contains("was written in format 99 by another pudica, and this one reads formats 1 to 2"));

    let nowhere = SweepFolder::open(&folder.path().join("runs")).unwrap_err().to_string();
    assert!(nowhere.contains("is not a sweep folder"));
}

#[test]
fn progress_only_grows_and_ends_complete() {
    let folder = tempfile::tempdir().unwrap();
    let trainer = Fake { step_time: Duration::from_millis(2), ..Default::default() };
    let seen = Mutex::new(Vec::new());
    let note = |event: &Event| match event {
        Event::Progress { done, .. } | Event::RunEnded { done, .. } => seen.lock().unwrap().push(*done),
        _ => {}
    };
    execute(&plan(&recipe(), &["seed=0..3"]), folder.path(), 1, &trainer, &note, &Stop::new()).unwrap();
    let seen = seen.into_inner().unwrap();
    assert!(seen.len() > 6 && seen.is_sorted(), "{seen:?}");
    assert!((seen.last().unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn the_estimate_of_time_is_about_right() {
    let fake = Fake { step_time: Duration::from_millis(2), ..Default::default() };
    let machine = Machine { jobs: Some(2), ..Machine::default() };
    let estimate = pudica_lab::estimate(&plan(&recipe(), &[]), &fake, &machine).unwrap();
    // 6 runs of 200 steps of at least 2 ms, two at a time; a busy machine takes much longer.
    assert!((0.6..15.0).contains(&estimate.seconds), "{estimate:?}");
    assert_eq!((estimate.groups, estimate.groups_measured, estimate.jobs), (1, 1, 2));
}

/// Other settings into the folder of a sweep would replace its report; more of the same settings extend it.
#[test]
fn other_runs_do_not_get_into_a_folder_and_more_runs_do() {
    let folder = tempfile::tempdir().unwrap();
    run(&plan(&recipe(), &["seed=0..3"]), folder.path(), 1);
    let before = numbers(folder.path());
    for overrides in [&["seed=0..2"][..], &["seed=0..3", "train.lr=0.5"]] {
        let refused =
            execute(&plan(&recipe(), overrides), folder.path(), 1, &Fake::default(), &|_: &Event| {}, &Stop::new());
        let sentence = refused.unwrap_err().to_string();
        assert!(sentence.contains("choose another --out") && sentence.contains("seed=0..3"), "{sentence}");
    }
    assert_eq!(numbers(folder.path()), before);
    let more = run(&plan(&recipe(), &["seed=0..5"]), folder.path(), 1);
    assert_eq!((more.runs, more.converged), (5, 5));
    assert_eq!(numbers(folder.path())[..3], before);
}

/// A bug or an error in one group leaves its runs for the next time; the other runs are made.
#[test]
fn a_bug_in_one_run_leaves_it_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&recipe(), &["train.lr=0.001,77", "seed=0..2"]);
    let tally = run(&plan, folder.path(), 1);
    assert_eq!((tally.converged, tally.remaining, tally.errors.len()), (2, 2, 2));
    assert!(tally.errors[0].contains("a bug of the fake"), "{:?}", tally.errors);
}

/// What a run's folder holds is checked: a damaged run is named, does not count, and is made again on request, alone.
#[test]
fn damaged_run_folders_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&recipe(), &["seed=0..2", "track.every=7"]);
    run(&plan, folder.path(), 1);
    let (whole, id) = (numbers(folder.path()), plan.runs[0].id.as_str());
    let own = folder.path().join("runs").join(id);
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let swap = |from: &'static str, to: &'static str| {
        move |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains(from), "{text}");
            text.replacen(from, to, 1).into_bytes()
        }
    };
    let id_of_other = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(id, &plan.runs[1].id).into_bytes();
    type Harm<'a> = Box<dyn Fn(Vec<u8>) -> Vec<u8> + 'a>;
    let harms: [(&str, Harm, &str); 14] = [
        ("config.json", Box::new(swap("\"seed\": 0", "\"seed\": 70")), "config.json has the settings of a run"),
        ("config.json", Box::new(swap("\"seed\": 0", "\"seed\": \"x\"")), "config.json has settings that no run has"),
        ("config.json", Box::new(cut), "config.json cannot be read"),
        ("summary.json", Box::new(id_of_other), "summary.json is the summary of run"),
        (
            "summary.json",
            Box::new(swap("\"train_accuracy\": 1.0", "\"train_accuracy\": \"x\"")),
            "which is not a number",
        ),
        (
            "summary.json",
            Box::new(swap("\"train_accuracy\": 1.0", "\"train_accuracy\": 0.5")),
            "summary.json was changed",
        ),
        ("summary.json", Box::new(swap("\"steps\": 200", "\"steps\": 201")), "summary.json was changed"),
        ("summary.json", Box::new(cut), "summary.json cannot be read"),
        ("summary.json", Box::new(|_| vec![0xff; 40]), "summary.json cannot be read"),
        ("metrics.jsonl", Box::new(cut), "metrics.jsonl has 14 of its 28 lines"),
        ("metrics.jsonl", Box::new(|_| b"garbage".to_vec()), "metrics.jsonl has 0 of its 28 lines"),
        ("metrics.jsonl", Box::new(swap("\"loss\":0.", "\"loss\":1.")), "metrics.jsonl was changed"),
        ("metrics.jsonl", Box::new(|bytes| [bytes, b"{\"step\":9}\n".to_vec()].concat()), "metrics.jsonl was changed"),
        ("weights.safetensors", Box::new(cut), "weights.safetensors has"),
    ];
    for (file, harm, expected) in &harms {
        let (path, good) = (own.join(file), std::fs::read(own.join(file)).unwrap());
        let checkpoint = own.join("checkpoint.safetensors");
        std::fs::write(&path, harm(good)).unwrap();
        let (runs, damaged) = SweepFolder::open(folder.path()).unwrap().read().unwrap();
        assert_eq!((runs.len(), damaged.len()), (1, 1), "{file} {expected}");
        let sentence = damaged[0].to_string();
        assert!(sentence.starts_with(&format!("run {id} (")) && sentence.contains(expected), "{sentence}");
        let status = Status::of(folder.path()).unwrap();
        assert_eq!((status.finished, status.damaged.len()), (1, 1), "{sentence}");

        // It is left as it is, and does not count.
        let tally = run(&plan, folder.path(), 1);
        assert_eq!((tally.converged, tally.damaged, tally.remaining), (1, 1, 0));
        assert_eq!(tally.damage, [sentence]);
        std::fs::write(&checkpoint, "left behind").unwrap();
        assert_eq!(repair(&plan, folder.path()), [id], "only that one is made again");
        assert_eq!(numbers(folder.path()), whole);
        assert!(!checkpoint.exists());
    }
    let aside: Vec<_> = std::fs::read_dir(folder.path().join("damaged")).unwrap().collect();
    assert_eq!(aside.len(), harms.len(), "nothing is thrown away");

    // What is the same length only the digest tells, which the status does not look at; weights that are gone are found by a repair.
    let weights = own.join("weights.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let (_, damaged) = SweepFolder::open(folder.path()).unwrap().read().unwrap();
    assert!(damaged[0].to_string().contains("weights.safetensors was changed after the run had ended"), "{damaged:?}");
    assert_eq!(run(&plan, folder.path(), 1).damaged, 1);
    assert!(Status::of(folder.path()).unwrap().damaged.is_empty());
    assert_eq!(repair(&plan, folder.path()), [id]);
    std::fs::remove_file(&weights).unwrap();
    assert_eq!(run(&plan, folder.path(), 1).damaged, 0, "weights may be deleted for their size");
    assert_eq!(repair(&plan, folder.path()), [id]);
    std::fs::remove_file(own.join("metrics.jsonl")).unwrap();
    assert_eq!(repair(&plan, folder.path()), [id]);
    assert_eq!(repair(&plan, folder.path()), [] as [String; 0], "all is well");
    assert_eq!(numbers(folder.path()), whole);

    // A record of the sweep that cannot be read is written anew.
    let record = folder.path().join("sweep.json");
    let good = std::fs::read(&record).unwrap();
    std::fs::write(&record, &good[..good.len() / 2]).unwrap();
    let refusal = execute(&plan, folder.path(), 1, &Fake::default(), &|_: &Event| {}, &Stop::new()).unwrap_err();
    assert!(refusal.to_string().contains("sweep.json is damaged"), "{refusal}");
    assert_eq!(repair(&plan, folder.path()), [] as [String; 0]);
    assert_eq!(std::fs::read(&record).unwrap(), good);
}

/// Makes damaged runs again; the ids of the runs that were made.
fn repair(plan: &Plan, folder: &Path) -> Vec<String> {
    let machine = Machine { program: "test".into(), repair: true, ..Machine::default() };
    let made = Mutex::new(Vec::new());
    let note = |event: &Event| {
        if let Event::RunEnded { id, .. } = event {
            made.lock().unwrap().push(id.clone());
        }
    };
    let tally = execute_with(&Fake::default(), plan, folder, &machine, &note, &Stop::new()).unwrap();
    assert_eq!((tally.damaged, tally.remaining), (0, 0));
    made.into_inner().unwrap()
}

/// An interrupted run whose metrics have lost lines that it will not log again waits for a repair: otherwise its curve would have a gap.
#[test]
fn metrics_lost_before_a_checkpoint_are_named_and_repaired() {
    let (whole, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&recipe(), &["seed=0", "train.steps=400", "track.every=5"]);
    run(&plan, whole.path(), 1);
    let own = folder.path().join("runs").join(&plan.runs[0].id);
    let trainer = Fake { step_time: Duration::from_millis(1), ..Default::default() };
    let stop = Stop::new();
    let stop_soon = |event: &Event| {
        if matches!(event, Event::Progress { step, .. } if *step > 20) {
            stop.request();
        }
    };
    execute(&plan, folder.path(), 1, &trainer, &stop_soon, &stop).unwrap();
    let (metrics, checkpoint) = (own.join("metrics.jsonl"), own.join("checkpoint.safetensors"));
    let (lines, state) = (std::fs::read(&metrics).unwrap(), std::fs::read(&checkpoint).unwrap());
    assert!(lines.len() > 100);
    for bytes in [&lines[..lines.len() / 2], b"", &[lines.as_slice(), b"{\"step\":"].concat()] {
        std::fs::write(&metrics, bytes).unwrap();
        std::fs::write(&checkpoint, &state).unwrap();
        let (_, damaged) = SweepFolder::open(folder.path()).unwrap().read().unwrap();
        if bytes.len() > lines.len() {
            assert!(damaged.is_empty(), "what a crash leaves behind the lines is dropped");
            assert_eq!(run(&plan, folder.path(), 1).damaged, 0);
            break;
        }
        assert!(damaged[0].to_string().contains("metrics.jsonl has lost lines that were logged before"), "{damaged:?}");
        assert_eq!(run(&plan, folder.path(), 1).damaged, 1);
    }
    assert_eq!(numbers(folder.path()), numbers(whole.path()));
    std::fs::remove_file(own.join("summary.json")).unwrap();
    std::fs::write(&metrics, b"").unwrap();
    std::fs::write(&checkpoint, &state).unwrap();
    assert_eq!(repair(&plan, folder.path()), [plan.runs[0].id.as_str()]);
    assert_eq!(numbers(folder.path()), numbers(whole.path()));
}

/// An interrupted run whose state cannot be read waits for a repair; the others are made.
#[test]
fn a_damaged_checkpoint_is_named_and_repaired() {
    let (whole, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&recipe(), &["seed=0..2"]);
    run(&plan, whole.path(), 1);
    let sweep = SweepFolder::claim(folder.path(), &plan, &Machine::default(), &mut Vec::new()).unwrap();
    let own = sweep.run(&plan.runs[1].id);
    drop(sweep);
    own.create(&plan.runs[1].settings).unwrap();
    own.save_checkpoint(b"no state").unwrap();
    let tally = run(&plan, folder.path(), 1);
    assert_eq!((tally.converged, tally.damaged), (1, 1));
    assert!(tally.damage[0].contains("checkpoint.safetensors cannot be read"), "{:?}", tally.damage);
    assert_eq!(repair(&plan, folder.path()), [plan.runs[1].id.clone()]);
    assert_eq!(numbers(folder.path()), numbers(whole.path()));
}
