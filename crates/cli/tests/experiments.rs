//! `pudica list`, `show`, `run` and `report` as a user runs them, on networks small enough for a test.

mod common;

use common::{events, json, measures, printed, pudica, refused, run_folders, text};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

const TINY: &str = r#"
title = "Tiny"
figures = "length-scaling"
[settings]
model.d = 8
train = { batch = 16, lr = 0.01 }
eval = { batches = 2, converged_below = 10.0 }
measure = { batches = 2, draws = 2 }
[quick.settings]
train.steps = 30
[[quick.sweep]]
name = "all"
grid.target = ["parity", "first"]
grid.n = [3, 4]
grid.seed = "0..2"
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
    folder
}

#[test]
fn a_sweep_ends_with_everything_in_its_folder_and_is_not_repeated() {
    let folder = folder();
    let first = pudica(folder.path(), &["run", "tiny.toml", "--out", "out"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("report: out/report.html"), "{}", text(&first.stdout));
    let out = folder.path().join("out");
    for name in ["report.html", "results.csv", "results.parquet", "summary.json", "figures"] {
        assert!(out.join(name).exists(), "{name}");
    }
    let fit = &json(&out.join("summary.json"))["fits"]["parity"];
    for key in ["slope", "intercept", "r", "p", "runs_kept", "runs_discarded"] {
        assert!(fit[key].is_number(), "{key} of {fit}");
    }
    assert_eq!(fit["runs_kept"], 4);
    let table = std::fs::read_to_string(out.join("results.csv")).unwrap();
    assert_eq!(table.lines().count(), 9, "a heading and eight runs");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("quick") && page.contains("pudica run tiny.toml"),
        "the page labels its scale and its command"
    );

    let again = pudica(folder.path(), &["run", "tiny.toml", "--out", "out", "--json"]);
    let events = events(&text(&again.stdout));
    assert_eq!(events[0]["event"], "sweep_started");
    assert_eq!(events[0]["finished"], 8);
    assert!(events.iter().all(|event| event["event"] != "run_started"), "a finished run was repeated");
    assert!(pudica(folder.path(), &["report", "out"]).status.success());
}

/// The figure one wants: of a recipe, of a folder that is there, and refused where there is no such name.
#[test]
fn plots_are_asked_for_by_recipe_and_by_flags() {
    let folder = folder();
    let recipe =
        TINY.replacen("[settings]", "plot = { x = \"n\", y = \"sharpness\", colour = \"target\" }\n[settings]", 1);
    std::fs::write(folder.path().join("plot.toml"), &recipe).unwrap();
    printed(folder.path(), &["run", "plot.toml", "train.steps=2", "--out", "out"]);
    let figures = || -> Vec<String> {
        let written = events(&printed(folder.path(), &["report", "out", "--json"]));
        let figures = written[0]["figures"].as_array().unwrap().iter();
        figures.map(|path| path.as_str().unwrap().trim_start_matches("out/figures/").to_string()).collect()
    };
    assert_eq!(figures()[0], "plot-1.svg");
    let flags = ["--x", "param_norm", "--y", "blowup", "--colour", "n", "--panel", "target"];
    let report = printed(folder.path(), &[&["report", "out"], &flags[..]].concat());
    assert!(report.contains("report: out/report.html"));
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("Blowup against param norm") && page.contains("target = parity"));

    let refusal = refused(folder.path(), &["report", "out", "--x", "n", "--y", "sharpnes"]);
    assert!(refusal.contains("did you mean `sharpness`?"), "{refusal}");
    let refusal = refused(folder.path(), &["report", "out", "--x", "n", "--y", "something"]);
    assert!(refusal.contains("settings: ") && refusal.contains("param_norm"), "{refusal}"); // all of them
    let refusal = refused(folder.path(), &["report", "out", "--x", "d", "--y", "sharpness"]);
    assert!(refusal.contains("did you mean `model.d`?"), "{refusal}");
    let refusal = refused(folder.path(), &["report", "out", "--x", "n"]);
    assert!(refusal.contains("--y"), "{refusal}");
    std::fs::write(folder.path().join("wrong.toml"), recipe.replace("sharpness\"", "sharpnes\"")).unwrap();
    let refusal = refused(folder.path(), &["show", "wrong.toml"]);
    assert!(refusal.contains("no y `sharpnes`; did you mean `sharpness`?"), "{refusal}");
}

/// A recipe of the papers ends with its verdicts; somebody's own has none.
#[test]
fn verdicts_end_a_run() {
    let folder = folder();
    let quick = ["run", "hahn/length-scaling", "train.steps=2", "n=4,5", "seed=0..2", "--out", "out"];
    let output = printed(folder.path(), &quick);
    assert!(output.contains("published, and here:") && output.contains("Do PARITY's minima get sharper"), "{output}");
    assert!(output.contains("cannot tell") && output.contains("not the published settings"), "{output}");
    let written = events(&printed(folder.path(), &["report", "out", "--json"]));
    let verdicts = written[0]["verdicts"].as_array().unwrap();
    assert_eq!(verdicts[0]["verdict"], "cannot_tell");
    assert_eq!(json(&folder.path().join("out/summary.json"))["verdicts"], written[0]["verdicts"]);
    assert!(!printed(folder.path(), &["run", "tiny.toml", "train.steps=2"]).contains("published"));
}

/// An own function, from its file to its page.
#[test]
fn own_functions_are_swept_resumed_and_refused_when_their_tables_change() {
    let folder = folder();
    let table = folder.path().join("my own.txt");
    std::fs::write(&table, "01101001").unwrap();
    let recipe =
        TINY.replace("[\"parity\", \"first\"]", "[\"expr:maj(x1, x2, x3)\", \"table:my own.txt\", \"threshold:n-1\"]");
    std::fs::write(folder.path().join("own.toml"), recipe.replace("grid.n = [3, 4]", "grid.n = 3")).unwrap();
    let shown = printed(folder.path(), &["show", "own.toml", "--no-estimate"]);
    assert!(shown.contains("target = expr:maj(x1,x2,x3), table:my own.txt#"), "{shown}");
    let arguments = ["run", "own.toml", "--out", "out"];
    let first = printed(folder.path(), &arguments);
    for part in ["6 runs: 6 finished", "expr:maj(x1,x2,x3) seed=0", "table:my own.txt#", "threshold:n-1 seed=1"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("expr:maj(x1,x2,x3)") && page.contains("threshold:n-1"));
    let runs = run_folders(&folder.path().join("out"));
    for name in runs.iter().map(|run| run.file_name().unwrap().to_string_lossy()) {
        assert!(name.len() == 12 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    }
    // What a network has learnt can be analysed.
    let run = &runs[0];
    let learnt = format!("run:{}", run.display());
    let analysed: Value = serde_json::from_str(&printed(folder.path(), &["boolean", &learnt, "--json"])).unwrap();
    let summary = json(&run.join("summary.json"));
    assert_eq!((analysed["n"].as_u64(), analysed["method"].as_str()), (Some(3), Some("exact")));
    assert_eq!(analysed["average_sensitivity"], summary["measures"]["average_sensitivity"]);
    // Two ways of writing the majority of three bits are learnt alike.
    let results = std::fs::read_to_string(folder.path().join("out/results.csv")).unwrap();
    let losses = |target: &str| -> Vec<String> {
        let heading: Vec<&str> = results.lines().next().unwrap().split(',').collect();
        let from_end = heading.len() - heading.iter().position(|name| *name == "eval_loss").unwrap();
        let cell = |line: &str| line.rsplit(',').nth(from_end - 1).unwrap().to_string();
        results.lines().filter(|line| line.contains(target)).map(cell).collect()
    };
    assert_eq!(losses("maj(").len(), 2);
    assert_eq!(losses("maj("), losses("threshold:n-1"));

    let again = printed(folder.path(), &[&arguments[..], &["--json"]].concat());
    assert_eq!(events(&again)[0]["finished"], 6);
    std::fs::write(&table, "01101000").unwrap();
    let sentence = refused(folder.path(), &arguments);
    assert!(sentence.contains("such as the table of a target or own data, has changed since"), "{sentence}");
    std::fs::remove_file(&table).unwrap();
    for command in ["run", "show"] {
        let sentence = refused(folder.path(), &[command, "own.toml"]);
        assert!(sentence.contains("target: cannot read my own.txt: No such file or directory"), "{sentence}");
    }
    assert!(pudica(folder.path(), &["report", "out"]).status.success(), "a report needs no table");
}

/// Files that were cut behind its back: `run`, `report` and `status` name the run and do not count it, and `--repair` makes it again.
#[test]
fn a_damaged_run_is_named_and_made_again_on_request() {
    let folder = folder();
    let run = ["run", "tiny.toml", "target=parity", "n=3", "--out", "out"];
    printed(folder.path(), &run);
    let out = folder.path().join("out");
    let (runs, expected) = (run_folders(&out), measures(&out));
    let id = runs[0].file_name().unwrap().to_string_lossy().into_owned();
    let metrics = runs[0].join("metrics.jsonl");
    let whole = std::fs::read(&metrics).unwrap();
    for damaged in [Some(&whole[..whole.len() / 2]), Some(b"garbage"), None] {
        match damaged {
            Some(bytes) => std::fs::write(&metrics, bytes).unwrap(),
            None => std::fs::remove_file(&metrics).unwrap(),
        }
        let report = pudica(folder.path(), &["report", "out"]);
        let sentence = text(&report.stderr);
        assert!(sentence.contains(&format!("run {id} (")) && sentence.contains("metrics.jsonl has "), "{sentence}");
        assert!(sentence.contains("with --repair makes it again"), "{sentence}");
        assert!(text(&report.stdout).contains("1 damaged"), "{}", text(&report.stdout));
        let status = printed(folder.path(), &["status", "out"]);
        assert!(status.contains("1 damaged") && status.contains(&id), "{status}");
        let again = pudica(folder.path(), &run);
        let sentence = text(&again.stderr);
        assert_eq!(again.status.code(), Some(2), "{sentence}");
        assert!(
            sentence.contains("pudica: 1 run damaged and not counted; run the same command with --repair"),
            "{sentence}"
        );
        let repaired = pudica(folder.path(), &[&run[..], &["--repair"]].concat());
        let sentence = text(&repaired.stderr);
        assert!(
            repaired.status.success() && sentence.contains("it is made again, and what was there is in"),
            "{sentence}"
        );
        assert_eq!(measures(&out), expected);
    }
    assert_eq!(std::fs::read_dir(out.join("damaged")).unwrap().count(), 3);
    let weights = runs[1].join("weights.safetensors");
    let kept = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, &kept[..100]).unwrap();
    let sentence = text(&pudica(folder.path(), &run).stderr);
    assert!(sentence.contains("weights.safetensors has 100 of its"), "{sentence}");
    printed(folder.path(), &[&run[..], &["--repair"]].concat());
    assert!(std::fs::read(&weights).unwrap() == kept);
    // Weights that somebody deleted for their size are not missed.
    std::fs::remove_file(&weights).unwrap();
    let again = pudica(folder.path(), &[&run[..], &["--json"]].concat());
    assert!(events(&text(&again.stdout)).iter().all(|event| event["event"] != "run_started"));
}

/// For tests of interruptions, times can be set by the environment; what is no time is refused.
#[test]
fn times_of_the_environment_are_read_or_refused() {
    let folder = folder();
    let run = |seconds: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pudica"));
        command.args(["run", "tiny.toml", "target=parity", "n=3", "--out", "out"]).current_dir(folder.path());
        command.env("PUDICA_CHECKPOINT_SECONDS", seconds).output().unwrap()
    };
    for seconds in ["soon", "-1", "1e99"] {
        let sentence = text(&run(seconds).stderr);
        assert!(
            sentence.contains(&format!("PUDICA_CHECKPOINT_SECONDS={seconds}: give a number of seconds")),
            "{sentence}"
        );
    }
    assert!(run("0.01").status.success() && run("").status.success());
}

/// What a crash leaves: a group killed at any moment, with whatever was on the disk then.
#[cfg(unix)]
#[test]
fn a_killed_group_continues_to_the_same_numbers() {
    let folder = folder();
    let arguments = |out: &'static str| {
        ["run", "tiny.toml", "train.steps=3000", "n=3", "--out", out, "--jobs", "1", "--together", "4"]
    };
    for wait in [150, 400] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pudica"))
            .args(arguments("killed"))
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let _ = child.kill(); // SIGKILL; it may have ended already
        child.wait().unwrap();
    }
    assert!(pudica(folder.path(), &arguments("killed")).status.success());
    assert!(pudica(folder.path(), &["run", "tiny.toml", "train.steps=3000", "n=3", "--out", "alone"]).status.success());
    let [killed, alone] = ["killed", "alone"].map(|out| measures(&folder.path().join(out)));
    assert_eq!(killed.len(), 4);
    assert_eq!(killed, alone);
}

#[test]
fn a_loss_that_is_no_number_fails_one_run_and_the_sweep_goes_on() {
    let folder = folder();
    let output = pudica(folder.path(), &["run", "tiny.toml", "train.lr=1e30", "n=3", "--out", "out"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("4 failed"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("step"), "{}", text(&output.stderr));
}

/// Whether there is a GPU here or not: nothing falls back silently, and nothing is left behind.
#[test]
fn a_gpu_is_used_or_missed() {
    let folder = folder();
    let output = pudica(folder.path(), &["run", "tiny.toml", "n=3", "--device", "cuda", "--out", "out"]);
    let message = text(&output.stderr);
    assert!(!message.contains("panicked"), "{message}");
    match output.status.code() {
        Some(0) => {
            for run in std::fs::read_dir(folder.path().join("out/runs")).unwrap() {
                let device = json(&run.unwrap().path().join("summary.json"))["device"].to_string();
                assert!(device.contains("cuda"), "{device}");
            }
        }
        code => {
            assert_eq!(code, Some(2), "{message}");
            assert!(message.contains("cuda"), "{message}");
            assert!(!folder.path().join("out").exists());
        }
    }
}

#[test]
fn list_and_show() {
    let folder = folder();
    let list = text(&pudica(folder.path(), &["list"]).stdout);
    for name in [
        "length-scaling",
        "long-lengths",
        "tradeoff",
        "tradeoff-lengths",
        "dynamics",
        "dynamics-long",
        "generalization",
        "scratchpad",
    ] {
        assert!(list.contains(&format!("hahn/{name} ")), "{name}");
    }
    let paper = pudica(folder.path(), &["show", "hahn/length-scaling", "--scale", "paper", "--no-estimate", "--json"]);
    let plan: Value = serde_json::from_slice(&paper.stdout).unwrap();
    assert_eq!(plan["runs"].as_array().unwrap().len(), 1080);
    let tiny = printed(folder.path(), &["show", "tiny.toml"]);
    assert!(tiny.contains("time here") && tiny.contains("8, 240 training steps"), "{tiny}");
    assert!(tiny.contains("target = parity, first") && tiny.contains("n = 3, 4"), "{tiny}");
}

#[test]
fn bad_input_gets_one_sentence() {
    let folder = folder();
    std::fs::write(folder.path().join("wrong.toml"), TINY.replace("lr = 0.01", "learning_rate = 0.01")).unwrap();
    for (arguments, part) in [
        (&["run", "hahn/length-scalin"][..], "did you mean `hahn/length-scaling`"),
        (&["run", "tiny.toml", "model.head=3"], "did you mean `model.heads`"),
        (&["run", "tiny.toml", "model.heads=3"], "heads"),
        (&["run", "tiny.toml", "n=0"], "n"),
        (&["run", "tiny.toml", "train.batch=0"], "batch"),
        (&["run", "tiny.toml", "target=parit"], "parity"),
        (&["run", "tiny.toml", "nonsense"], "key=value"),
        (&["run", "tiny.toml", "--scale", "huge"], "huge"),
        (&["run", "wrong.toml"], "train.learning_rate"),
        (&["run", "missing.toml"], "missing.toml"),
        (&["run", "tiny.toml", "--device", "cuda", "--reference"], "--features torch"),
        (
            &["run", "hahn/scratchpad", "--device", "cuda"],
            "the encoder-decoder computes on a GPU only through LibTorch, or in tf32 (--dtype tf32)",
        ),
        (
            &["run", "hahn/scratchpad", "--device", "cuda", "--dtype", "tf32", "model.d=16"],
            "the encoder-decoder has tf32 only as in the paper: d = 32",
        ),
        (&["run", "tiny.toml", "--dtype", "f16"], "tf32"),
        (&["run", "tiny.toml", "--dtype", "tf32"], "tf32 is a GPU's"),
        (&["run", "tiny.toml", "--device", "cuda", "--dtype", "tf32", "--reference"], "have no tf32"),
        (&["run", "tiny.toml", "--precision", "f64"], "--dtype f64"),
        (&["run", "vasudeva/grokking", "--dtype", "f64"], "have f32 or tf32, not f64"),
        (&["run", "hahn/scratchpad", "--reference"], "leave --reference out"),
        (&["run", "tiny.toml", "model.d=1000000000"], "model.d: must be at most 65536"),
        (&["run", "tiny.toml", "model.layers=1024", "model.d=65536"], "this process may have"),
        (&["run", "tiny.toml", "measure.draws=1000000000000"], "at most 1000000"),
        (&["run", "vasudeva/grokking", "operation=sin(a)"], "such as a+b"),
        (&["show", "vasudeva/grokking", "modulus=1000"], "from 2 to 300"),
        (&["run", "vasudeva/synthetic", "data=3:5:1:16:20"], "vocabulary of at least 34"),
        (&["run", "vasudeva/synthetic", "seeds=3"], "did you mean `seed`?"),
        (&["run", "synthetic"], "did you mean `vasudeva/synthetic`?"),
        (&["run", "vasudeva/mnist"], "pudica data fetch mnist"),
        (&["run", "tiny.toml", "--together", "0"], "0"),
        (&["run", "tiny.toml", "--jobs", "0"], "0"),
        (&["report", "nowhere"], "nowhere"),
    ] {
        let output = pudica(folder.path(), arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
        assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    }
}
