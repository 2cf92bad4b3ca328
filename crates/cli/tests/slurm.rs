//! `pudica run --engine slurm`, `stop` and `status` with stand-ins for Slurm's commands; `tests/slurm/run` has the real ones.

#![cfg(unix)]

mod common;

use common::{json, measures, run_folders, text, with_tiny};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A recipe, and commands that do as Slurm's: `sbatch` names job 77, `squeue` shows what is in the file `queue`, all note their arguments.
fn folder() -> tempfile::TempDir {
    let folder = with_tiny();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let here = folder.path().display();
    for (name, does) in [
        ("sbatch", "echo 77".into()),
        ("squeue", format!("case \"$*\" in *%T*) echo RUNNING;; *) cat {here}/queue 2>/dev/null;; esac; true")),
        ("scontrol", "echo 'MaxArraySize            = 4'".into()),
        ("scancel", "true".into()),
    ] {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho {name} \"$@\" >> {here}/asked\n{does}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pudica"));
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    command.args(arguments).current_dir(folder).env("PATH", path).env("XDG_CONFIG_HOME", folder.join("config"));
    for name in ["SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT"] {
        command.env_remove(name);
    }
    command
}

fn pudica(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = pudica(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = pudica(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

fn asked(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("asked")).unwrap_or_default()
}

const SUBMIT: [&str; 8] = ["run", "tiny.toml", "--out", "out", "--engine", "slurm", "--at-once", "3"];

#[test]
fn the_script_says_what_was_asked_for_and_nothing_is_written() {
    let folder = folder();
    std::fs::create_dir_all(folder.path().join("config/pudica")).unwrap();
    let file = folder.path().join("config/pudica/slurm.toml");
    std::fs::write(&file, "partition = \"cpu\"\nmem = \"2G\"\nsetup = \"module load this\"\n").unwrap();
    let script = printed(
        folder.path(),
        &[
            &SUBMIT[..],
            &["--partition", "gpu", "--time", "2:00:00", "--gpus", "1", "--sbatch", "--qos=long", "--dry-run"],
        ]
        .concat(),
    );
    for line in [
        "#SBATCH --array=1-3%3", // no more than an array can have here, no fewer than at once
        "#SBATCH --partition=gpu",
        "#SBATCH --mem=2G",
        "#SBATCH --time=2:00:00",
        "#SBATCH --gpus=1",
        "#SBATCH --qos=long",
        "#SBATCH --signal=B:USR1@180",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        "module load this",
    ] {
        assert!(script.lines().any(|found| found == line), "{line} in {script}");
    }
    assert!(script.contains("--unit \"$SLURM_ARRAY_TASK_ID/3\" --requeue") && script.contains("report "), "{script}");
    assert!(!folder.path().join("out").exists() && !asked(folder.path()).contains("sbatch"));

    std::fs::write(&file, "partitoin = \"cpu\"\n").unwrap();
    let sentence = refused(folder.path(), &SUBMIT);
    assert!(sentence.contains("slurm.toml") && sentence.contains("partitoin"), "{sentence}");
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = folder();
    for (arguments, words) in [
        (&["--partition", "gpu"][..], "--engine"),
        (&["--dry-run"], "--engine"),
        (&["--engine", "slurm", "--unit", "1/2"], "--unit"),
        (&["--engine", "slurm", "--time", "2h"], "2:00:00"),
        (&["--engine", "slurm", "--at-once", "0"], "--at-once"),
        (&["--engine", "pbs"], "slurm"),
        (&["--requeue"], "--unit"),
        (&["--unit", "1/2", "--requeue"], "within a Slurm job"),
    ] {
        let sentence = refused(folder.path(), &[&["run", "tiny.toml", "--out", "out"], arguments].concat());
        assert!(sentence.contains(words), "{arguments:?}: {sentence}");
        assert!(!folder.path().join("out").exists(), "{arguments:?}");
    }
    assert!(refused(folder.path(), &["stop", "."]).contains("no jobs were submitted"));
    std::fs::remove_dir_all(folder.path().join("bin")).unwrap();
    let output = command(folder.path(), &SUBMIT).env("PATH", "/nowhere").output().unwrap();
    assert!(text(&output.stderr).contains("is Slurm installed here?"), "{}", text(&output.stderr));
}

#[test]
fn only_what_is_left_is_submitted() {
    let folder = folder();
    let said = printed(folder.path(), &SUBMIT);
    assert!(said.contains("submitted: job 77, 3 tasks for 4 runs, 3 at once, and job 77 for the report"), "{said}");
    assert!(asked(folder.path()).contains("--dependency=afterany:77"), "{}", asked(folder.path()));
    assert_eq!(json(&folder.path().join("out/slurm/jobs.json"))["parts"], 3);
    // While all of it is in the queue, there is nothing to do; when one task has done its part and none is left there, the others are.
    std::fs::write(folder.path().join("queue"), "1\n2\n3\n").unwrap();
    assert!(printed(folder.path(), &SUBMIT).contains("nothing to submit: all that is left is in Slurm's queue"));
    std::fs::remove_file(folder.path().join("queue")).unwrap();
    printed(folder.path(), &["run", "tiny.toml", "--out", "out", "--unit", "2/3"]);
    printed(folder.path(), &SUBMIT);
    let script = std::fs::read_to_string(folder.path().join("out/slurm/task.sh")).unwrap();
    assert!(script.contains("--array=1,3%3"), "{script}");

    // The script itself does what it says.
    for task in ["1", "3"] {
        let mut bash = Command::new("bash");
        bash.arg(folder.path().join("out/slurm/task.sh"))
            .env("SLURM_ARRAY_JOB_ID", "77")
            .env("SLURM_ARRAY_TASK_ID", task);
        let output = bash.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    printed(folder.path(), &["run", "tiny.toml", "--out", "straight"]);
    assert_eq!(measures(&folder.path().join("out")), measures(&folder.path().join("straight")));
    assert!(folder.path().join("out/report.html").exists(), "the last one writes it");
    assert!(printed(folder.path(), &SUBMIT).contains("all its runs are there"));
    let status = printed(folder.path(), &["status", "out"]);
    assert_eq!(status, "4 runs: 4 finished\n");

    std::fs::write(folder.path().join("queue"), "77_1\n").unwrap();
    assert!(printed(folder.path(), &["stop", "out"]).contains("cancelled: 77"));
    assert!(asked(folder.path()).contains("scancel 77"));
}

#[test]
fn a_larger_sweep_waits_for_the_jobs_of_the_smaller_one() {
    let folder = folder();
    printed(folder.path(), &SUBMIT);
    std::fs::write(folder.path().join("queue"), "1\n").unwrap();
    let larger = [&SUBMIT[..], &["seed=0..9"]].concat();
    let sentence = refused(folder.path(), &larger);
    assert!(sentence.contains("are for fewer runs") && sentence.contains("pudica stop"), "{sentence}");
    std::fs::remove_file(folder.path().join("queue")).unwrap();
    let before = asked(folder.path()).len();
    let said = printed(folder.path(), &larger);
    assert!(said.starts_with("submitted: job 77, 3 tasks for "), "{said}");
    assert!(asked(folder.path())[before..].contains("sbatch"));
    // All of the smaller one is in the queue: the larger one's parts are not taken for them.
    assert!(refused(folder.path(), &SUBMIT).contains("runs that this command lacks"));
}

#[test]
fn damaged_runs_are_made_again_by_tasks() {
    let folder = folder();
    printed(folder.path(), &["run", "tiny.toml", "--out", "out"]);
    let first = run_folders(&folder.path().join("out")).remove(0);
    std::fs::remove_file(first.join("metrics.jsonl")).unwrap();
    assert!(refused(folder.path(), &SUBMIT).contains("1 run damaged and not counted"));
    printed(folder.path(), &[&SUBMIT[..], &["--repair"]].concat());
    let script = std::fs::read_to_string(folder.path().join("out/slurm/task.sh")).unwrap();
    let task = script.split("--array=").nth(1).unwrap().split('%').next().unwrap();
    let mut bash = Command::new("bash");
    bash.arg(folder.path().join("out/slurm/task.sh")).env("SLURM_ARRAY_JOB_ID", "77").env("SLURM_ARRAY_TASK_ID", task);
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(first.join("metrics.jsonl").exists() && folder.path().join("out/damaged").is_dir());
}

#[test]
fn status_tells_why_a_part_does_not_get_on() {
    let folder = folder();
    printed(folder.path(), &SUBMIT);
    let failures = folder.path().join("out/slurm/failures");
    std::fs::create_dir(&failures).unwrap();
    // Twice it got nowhere; the third time there is no recipe any more.
    let twice = "{\"part\": \"2/3\", \"starts\": 2, \"problem\": null, \"job\": \"77_2\"}";
    std::fs::write(failures.join("2-of-3.json"), twice).unwrap();
    std::fs::rename(folder.path().join("tiny.toml"), folder.path().join("away.toml")).unwrap();
    let task = || {
        let mut bash = Command::new("bash");
        bash.arg(folder.path().join("out/slurm/task.sh"))
            .env("SLURM_ARRAY_JOB_ID", "77")
            .env("SLURM_ARRAY_TASK_ID", "2");
        text(&bash.output().unwrap().stderr)
    };
    let log = task();
    assert!(log.contains("cannot read the recipe") && log.contains("it is left, until somebody submits it"), "{log}");
    std::fs::write(folder.path().join("out/slurm/77_2.log"), &log).unwrap();
    assert!(task().contains("part 2/3 was started 3 times without any progress and is left"));
    let status = printed(folder.path(), &["status", "out"]);
    let words = "unit 2/3, job 77_2: 3 starts without progress, and left; the last: cannot read the recipe";
    assert!(status.contains(words) && status.contains("log: out/slurm/77_2.log"), "{status}");
    let status: serde_json::Value =
        serde_json::from_str(&printed(folder.path(), &["status", "out", "--json"])).unwrap();
    assert_eq!(status["stuck"][0]["starts"], 3);
    // Submitted again, it may try again; what gets on is no longer told.
    std::fs::rename(folder.path().join("away.toml"), folder.path().join("tiny.toml")).unwrap();
    printed(folder.path(), &SUBMIT);
    task();
    assert!(!printed(folder.path(), &["status", "out"]).contains("not getting on"));
}

#[test]
fn a_task_that_is_told_to_end_asks_for_another_start_and_status_shows_it() {
    let folder = folder();
    let arguments = [
        "run",
        "tiny.toml",
        "train.steps=200000",
        "target=parity",
        "seed=0",
        "--out",
        "out",
        "--unit",
        "1/1",
        "--requeue",
    ];
    let start = || {
        let mut command = command(folder.path(), &arguments);
        command
            .env("SLURM_ARRAY_JOB_ID", "5")
            .env("SLURM_ARRAY_TASK_ID", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        common::started(&mut command, &folder.path().join("out"))
    };
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        for _ in 0..1200 {
            if is_so() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("waited in vain: {what}");
    };
    let mut task = start();
    let status = || -> serde_json::Value {
        serde_json::from_str(&printed(folder.path(), &["status", "out", "--json"])).unwrap()
    };
    wait("a step", &|| status()["processes"][0]["at"][0]["step"].as_u64().is_some_and(|step| step > 0));
    let shown = printed(folder.path(), &["status", "out"]);
    assert!(shown.starts_with("1 run: 0 finished, 1 at work\n") && shown.contains("unit 1/1 on "), "{shown}");
    assert!(shown.contains("job 5_1: 0 of 1 run, at ") && shown.contains(" of 200,000"), "{shown}");
    common::send("USR1", &task);
    wait("a request", &|| asked(folder.path()).contains("scontrol requeue 5_1"));
    assert!(run_folders(&folder.path().join("out"))[0].join("checkpoint.safetensors").exists(), "saved first");
    task.kill().unwrap(); // as Slurm does
    task.wait().unwrap();
    let shown = printed(folder.path(), &["status", "out"]);
    assert!(shown.starts_with("1 run: 0 finished, 1 interrupted\n"), "{shown}");

    // One that is killed over and over before it has made a step is left.
    let record = folder.path().join("out/slurm/failures/1-of-1.json");
    assert!(!record.exists(), "it had made progress");
    std::fs::create_dir_all(record.parent().unwrap()).unwrap();
    let thrice = "{\"part\": \"1/1\", \"starts\": 3, \"problem\": null, \"job\": \"5_1\"}";
    std::fs::write(&record, thrice).unwrap();
    let shown = printed(folder.path(), &["status", "out"]);
    assert!(shown.contains("3 starts without progress, and left; the last said nothing"), "{shown}");
    let mut command = command(folder.path(), &arguments);
    let output = command.env("SLURM_ARRAY_JOB_ID", "5").env("SLURM_ARRAY_TASK_ID", "1").output().unwrap();
    let sentence = text(&output.stderr);
    assert!(output.status.code() == Some(2) && sentence.contains("3 times without any progress"), "{sentence}");
    // Somebody who submits it again gives it another chance.
    printed(folder.path(), &["run", "tiny.toml", "train.steps=200000", "seed=0", "--out", "out", "--engine", "slurm"]);
    assert!(!record.exists());
}
