//! Several processes in one folder: each run is made by one of them, what a dead one had is taken over, and one whose run was taken over
//! writes nothing more.

mod common;
mod fake;

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::{numbers, plan};
use fake::Fake;
use pudica_lab::store::{AtWork, Owner, Status};
use pudica_lab::{Event, Machine, Plan, Stop, Tally, Unit, execute_with};

fn recipe() -> String {
    fake::recipe(40, 10.0, "grid.seed = '0..12'")
}

/// Makes all runs as one of several processes would; the ids of those that ended here.
fn run(plan: &Plan, folder: &Path, step_time: u64, stale_after: u64) -> (Tally, Vec<String>) {
    let ended = Mutex::new(Vec::new());
    let note = |event: &Event| {
        if let Event::RunEnded { id, .. } = event {
            ended.lock().unwrap().push(id.clone());
        }
    };
    let machine = Machine {
        program: "test".into(),
        jobs: Some(2),
        unit: Some(Unit { part: 1, of: 1 }),
        stale_after: Some(Duration::from_millis(stale_after)),
        ..Machine::default()
    };
    let fake = Fake { step_time: Duration::from_micros(step_time), together: 2 };
    let tally = execute_with(&fake, plan, folder, &machine, &note, &Stop::new()).unwrap();
    (tally, ended.into_inner().unwrap())
}

/// What is left of a process of another machine that had claimed a run.
fn left_behind(folder: &Path, run: &str) -> AtWork {
    let owner = Owner { host: "elsewhere".into(), machine: "of its own".into(), job: None, ..Owner::this() };
    let work = folder.join(".work");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join(format!("{run}.0")), owner.id()).unwrap();
    let report = AtWork { owner, ..AtWork::default() };
    tell(folder, &report);
    report
}

fn tell(folder: &Path, report: &AtWork) {
    let path = folder.join(".work").join(format!("{}.json", report.owner.id()));
    let scratch = path.with_extension("new");
    std::fs::write(&scratch, serde_json::to_string(report).unwrap()).unwrap();
    std::fs::rename(scratch, path).unwrap();
}

#[test]
fn of_three_at_once_one_makes_each_run() {
    let (alone, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&recipe(), &[]);
    run(&plan, alone.path(), 0, 60_000);
    let made: Vec<(Tally, Vec<String>)> = std::thread::scope(|scope| {
        let three: Vec<_> = (0..3).map(|_| scope.spawn(|| run(&plan, shared.path(), 500, 60_000))).collect();
        three.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut ids: Vec<&String> = made.iter().flat_map(|(_, ids)| ids).collect();
    ids.sort();
    let mut planned: Vec<&String> = plan.runs.iter().map(|run| &run.id).collect();
    planned.sort();
    assert_eq!(ids, planned, "each once");
    assert!(made.iter().filter(|(_, ids)| !ids.is_empty()).count() > 1, "more than one had a part in it");
    assert_eq!(numbers(shared.path()), numbers(alone.path()));
    let left: Vec<String> = std::fs::read_dir(shared.path().join(".work"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left, Vec::<String>::new(), "nothing is left behind");
}

#[test]
fn what_a_silent_process_had_is_taken_over_and_what_a_living_one_has_is_not() {
    let plan = plan(&recipe(), &[]);
    let silent = tempfile::tempdir().unwrap();
    left_behind(silent.path(), &plan.runs[3].id);
    let begun = Instant::now();
    let (tally, _) = run(&plan, silent.path(), 0, 800);
    assert!(begun.elapsed() >= Duration::from_millis(800), "it was waited for");
    assert_eq!((tally.remaining, tally.elsewhere), (0, 0));

    let living = tempfile::tempdir().unwrap();
    let mut report = left_behind(living.path(), &plan.runs[3].id);
    let (tally, ids) = std::thread::scope(|scope| {
        let sweep = scope.spawn(|| run(&plan, living.path(), 0, 60_000));
        while !sweep.is_finished() {
            report.beat += 1;
            tell(living.path(), &report);
            std::thread::sleep(Duration::from_millis(50));
        }
        sweep.join().unwrap()
    });
    assert_eq!((tally.remaining, tally.elsewhere, ids.len()), (1, 1, 11));
    assert!(!ids.contains(&plan.runs[3].id));
    assert!(!living.path().join("runs").join(&plan.runs[3].id).exists(), "it was not touched");
}

#[test]
fn one_whose_run_was_taken_over_writes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&recipe(), &["seed=0", "train.steps=100000", "track.every=100"]);
    let run_folder = folder.path().join("runs").join(&plan.runs[0].id);
    let metrics = || std::fs::read(run_folder.join("metrics.jsonl")).unwrap_or_default();
    let (tally, ids) = std::thread::scope(|scope| {
        let frozen = scope.spawn(|| run(&plan, folder.path(), 50, 60_000));
        while metrics().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::write(folder.path().join(".work").join(format!("{}.1", plan.runs[0].id)), "somebody else").unwrap();
        std::thread::sleep(Duration::from_millis(300)); // a line that was being written
        let then = metrics();
        let ended = frozen.join().unwrap();
        assert_eq!(metrics(), then, "not a line more");
        ended
    });
    assert_eq!((tally.remaining, tally.errors.len(), ids.len()), (1, 0, 0));
    assert!(!run_folder.join("summary.json").exists() && !run_folder.join("checkpoint.safetensors").exists());
}

#[test]
fn the_status_is_told_by_files() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&recipe(), &["seed=0..3", "train.steps=3000", "train.lr=0.1,100"]);
    let seen = Mutex::new(None);
    std::thread::scope(|scope| {
        let sweep = scope.spawn(|| run(&plan, folder.path(), 1000, 60_000));
        while !sweep.is_finished() {
            std::thread::sleep(Duration::from_millis(100));
            if let Ok(status) = Status::of(folder.path())
                && status.processes.iter().any(|one| one.at.iter().any(|run| run.step > 0))
            {
                seen.lock().unwrap().get_or_insert(status);
            }
        }
    });
    let status = seen.into_inner().unwrap().expect("it was seen at work");
    let one = &status.processes[0];
    assert_eq!((one.owner.pid, one.unit.as_deref(), one.runs), (std::process::id(), Some("1/1"), 6));
    assert!(one.steps_per_second > 0.0 && one.at.iter().all(|run| run.steps == 3000), "{one:?}");
    assert!(
        status.at_work > 0 && status.finished + status.at_work + status.waiting + status.failed.len() == 6,
        "{status:?}"
    );
    let after = Status::of(folder.path()).unwrap();
    assert_eq!((after.finished, after.failed.len(), after.processes.len()), (3, 3, 0));
    assert!(after.is_complete() && after.failed[0].problem.contains("the loss became NaN"));
}
