//! One path for all kinds of experiment: own recipes, run folders, a lock, an owner, tables, resuming, and no flag that is ignored.

mod common;

use common::{events, json, printed, pudica, refused, run_folders, send, started, text};
use pudica_data::images::{Images, Shape, write_npy};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Of each kind a tiny recipe of two runs that differ in a setting of their own: kind, settings, the axis, and a word of its page.
const KINDS: [(&str, &str, &str, &str); 5] = [
    (
        "boolean",
        "n = 3\nmodel.d = 8\ntrain = { batch = 8, steps = 20, lr = 0.01 }\neval.batches = 1\nmeasure = { batches = 1, draws = 2 }",
        "grid.model.d = [8, 16]",
        "sharpness",
    ),
    (
        "classifier",
        "data.name = 'pictures'\nmodel = { kind = 'mlp', hidden = '8' }\ntrain = { batch = 10, epochs = 2 }\nmeasure = { every = 1, draws = 1, inputs = 5 }",
        "grid.train.lr = [0.1, 0.2]",
        "sensitivity",
    ),
    (
        "grokking",
        "modulus = 5\nmodel = { d = 8, heads = 2, mlp = 8 }\ntrain.epochs = 30",
        "grid.modulus = [5, 7]",
        "lag between the halves",
    ),
    (
        "tokens",
        "length = 20\ntrain = { set_size = 20, batch = 10, epochs = 2 }\neval.sequences = 10\nmeasure = { every = 1, simulated = 50 }",
        "grid.data = ['3:5:1:16:59', '1:7:7:10:75']",
        "predictors that use one kind of token",
    ),
    ("spectra", "dim = 4\nwidth = 4\nheads = 2", "grid.architecture = ['relu', 'lstm']", "degree"),
];

/// A folder with a recipe of each kind, called KIND.toml, and 40 images of two classes: dark ones and bright ones.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (kind, settings, axis, _) in KINDS {
        let recipe = format!(
            "title = \"Tiny\"\nkind = \"{kind}\"\n[settings]\n{settings}\n[quick]\n[[quick.sweep]]\nname = \"all\"\n{axis}\n"
        );
        std::fs::write(folder.path().join(format!("{kind}.toml")), recipe).unwrap();
    }
    for split in ["train", "test"] {
        let own = folder.path().join("pictures").join(split);
        std::fs::create_dir_all(&own).unwrap();
        let labels: Vec<u8> = (0..40).map(|index| index % 2).collect();
        let pixels = labels.iter().flat_map(|label| (0..64).map(move |at| 100 * label + at)).collect();
        let images = Images::new(Shape { height: 8, width: 8, channels: 1 }, pixels, labels).unwrap();
        write_npy(&images, &own.join("images.npy"), &own.join("labels.npy")).unwrap();
    }
    folder
}

/// Of every run its id, its measures, its metrics without times, and a digest of its weights.
fn numbers(folder: &Path, out: &str) -> Vec<(String, Value, String, u64)> {
    let of = |run: std::path::PathBuf| {
        let summary = json(&run.join("summary.json"));
        let weights = std::fs::read(run.join("weights.safetensors")).unwrap_or_default();
        let digest = weights.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let mut metrics = events(&std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default());
        metrics.iter_mut().for_each(|line| line["seconds"] = Value::Null);
        let id = run.file_name().unwrap().to_string_lossy().into_owned();
        (id, summary["measures"].clone(), Value::from(metrics).to_string(), digest)
    };
    run_folders(&folder.join(out)).into_iter().map(of).collect()
}

#[test]
fn an_own_recipe_of_every_kind_is_shown_run_reported_and_not_repeated() {
    let folder = folder();
    for (kind, _, axis, word) in KINDS {
        let recipe = format!("{kind}.toml");
        let swept = axis.trim_start_matches("grid.").split(' ').next().unwrap();
        let shown = printed(folder.path(), &["show", &recipe]);
        assert!(shown.contains(&format!("{swept} = ")) && shown.contains("time here"), "{shown}");
        let first = printed(folder.path(), &["run", &recipe, "--out", kind]);
        assert!(first.contains("2 runs: ") && first.contains(&format!("report: {kind}/report.html")), "{first}");
        let out = folder.path().join(kind);
        for name in ["sweep.json", "results.csv", "results.parquet", "summary.json", "report.html"] {
            assert!(out.join(name).is_file(), "{kind}: {name}");
        }
        let page = std::fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.contains(word) && page.contains(&format!("pudica run {recipe}")), "{kind}: {word}");
        let table = std::fs::read_to_string(out.join("results.csv")).unwrap();
        let heading: Vec<&str> = table.lines().next().unwrap().split(',').collect();
        let place =
            |name: &str| heading.iter().position(|cell| *cell == name).unwrap_or_else(|| panic!("{kind}: no {name}"));
        assert!(
            place(swept) < place("outcome")
                && place("outcome") < place("seconds")
                && place("seconds") < place("device")
        );
        assert_eq!(table.lines().count(), 3, "{kind}");
        // Whatever is measured can be plotted: its name is among those that the kind knows.
        let known = pudica_lab::Kind::find(kind).unwrap().measures;
        let is_known = |name: &str| {
            known.iter().any(|own| own.strip_suffix('*').map_or(*own == name, |beginning| name.starts_with(beginning)))
        };
        for (_, measures, ..) in numbers(folder.path(), kind) {
            let names: Vec<&String> = measures.as_object().unwrap().keys().collect();
            assert!(!names.is_empty(), "{kind}");
            let unknown = names.iter().find(|name| !name.ends_with("_std_error") && !is_known(name));
            assert!(unknown.is_none(), "{kind}: {unknown:?}");
        }
        assert!(page.contains("All runs") && page.contains("href=\"runs/"), "{kind}");
        let run = std::fs::read_dir(out.join("runs")).unwrap().next().unwrap().unwrap().path();
        let record = &json(&run.join("summary.json"))["made_by"];
        for name in ["program", "dtype", "engine", "instruction_set"] {
            assert!(record[name].as_str().is_some_and(|text| !text.is_empty()), "{kind}: {name}");
        }

        let again = events(&printed(folder.path(), &["run", &recipe, "--out", kind, "--json"]));
        let names: Vec<&str> = again.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!((names[0], &again[0]["finished"]), ("sweep_started", &2.into()), "{kind}");
        assert_eq!(names[names.len() - 2..], ["sweep_ended", "report_written"], "{kind}");
        assert!(!names.contains(&"run_started"), "{kind}: a finished run was repeated");
        let report = events(&printed(folder.path(), &["report", kind, "--json"]));
        assert_eq!((report.len(), &report[0]["event"]), (1, &"report_written".into()));

        // Without one run, only that one is made again, to the same numbers.
        let before = numbers(folder.path(), kind);
        std::fs::remove_dir_all(&run).unwrap();
        printed(folder.path(), &["run", &recipe, "--out", kind]);
        assert!(numbers(folder.path(), kind) == before, "{kind}");
    }
}

#[test]
fn a_folder_of_every_kind_has_a_lock_and_an_owner() {
    let folder = folder();
    printed(folder.path(), &["run", "spectra.toml", "--out", "spectra"]);
    for (kind, ..) in KINDS.into_iter().filter(|(kind, ..)| *kind != "spectra") {
        let refusal = refused(folder.path(), &["run", &format!("{kind}.toml"), "--out", "spectra"]);
        assert!(refusal.contains(&format!("holds a sweep of spectra.toml, not of {kind}.toml")), "{refusal}");
    }
    for (kind, ..) in KINDS {
        let recipe = format!("{kind}.toml");
        let lock = std::fs::create_dir_all(folder.path().join("locked").join(kind))
            .and_then(|()| std::fs::File::create(folder.path().join("locked").join(kind).join(".lock")));
        let lock = lock.unwrap();
        lock.lock().unwrap();
        let refusal = refused(folder.path(), &["run", &recipe, "--out", &format!("locked/{kind}")]);
        assert!(refusal.contains("another pudica is running in this folder"), "{kind}: {refusal}");
        // Other settings go elsewhere by default, and are refused where another sweep lies.
        if kind != "spectra" {
            printed(folder.path(), &["run", &recipe, "--out", kind]);
        }
        let refusal = refused(folder.path(), &["run", &recipe, "seed=7", "--out", kind]);
        assert!(refusal.contains("choose another --out"), "{kind}: {refusal}");
        printed(folder.path(), &["run", &recipe, "seed=7"]);
        assert!(folder.path().join("runs").join(format!("{kind}-quick+seed=7/report.html")).is_file(), "{kind}");
    }
}

/// Every pair of a flag and a kind: honoured (the run says so), or refused in one sentence that names the flag; never ignored.
#[test]
fn no_flag_is_ignored_by_any_kind() {
    let folder = folder();
    // Flags, whether each kind honours them, and what a refusal must name. A GPU may or may not be there: missing, it is named.
    let flags: [(&[&str], [bool; 5], &str); 10] = [
        (&["--device", "cpu"], [true, true, true, true, true], ""),
        (&["--device", "torch"], [false, false, false, false, false], "torch"), // this build has no LibTorch
        (&["--dtype", "f32"], [true, true, true, false, false], "dtype"),
        (&["--dtype", "f64"], [true, false, false, true, true], "dtype"),
        (&["--dtype", "tf32"], [false, false, false, false, false], "tf32"),
        (&["--reference"], [true, false, false, false, false], "--reference"),
        (&["--jobs", "2"], [true, false, false, true, true], "--jobs"),
        (&["--together", "2"], [true, false, true, false, false], "--together"),
        (&["--data", "pictures"], [false, true, false, false, false], "--data"),
        (&["--precision", "f64"], [false, false, false, false, false], "--dtype f64"),
    ];
    for (flag, honoured, named) in flags {
        for ((kind, ..), honoured) in KINDS.into_iter().zip(honoured) {
            let recipe = format!("{kind}.toml");
            let out = format!("flags/{kind}{}", flag.join(""));
            let run = [&["run", &recipe, "--out", &out], flag].concat();
            let show = [&["show", &recipe, "--json"], flag].concat();
            if !honoured {
                for arguments in [&run, &show] {
                    let sentence = refused(folder.path(), arguments);
                    assert!(
                        sentence.contains(named) && sentence.trim().lines().count() == 1,
                        "{arguments:?}: {sentence}"
                    );
                }
                assert!(!folder.path().join(&out).exists(), "{run:?} left a folder behind");
                continue;
            }
            let plan: Value = serde_json::from_str(&printed(folder.path(), &show)).unwrap();
            printed(folder.path(), &run);
            let of_run =
                std::fs::read_dir(folder.path().join(&out).join("runs")).unwrap().next().unwrap().unwrap().path();
            let compute = &json(&of_run.join("config.json"))["compute"];
            let (made_by, device) = {
                let summary = json(&of_run.join("summary.json"));
                (summary["made_by"].clone(), summary["device"].as_str().unwrap().to_string())
            };
            match flag {
                ["--device", name] => assert!(compute["device"] == **name && device.starts_with(name), "{kind}"),
                ["--dtype", name] => assert!(compute["dtype"] == **name && made_by["dtype"] == **name, "{kind}"),
                ["--reference"] => assert!(compute["engine"] == "reference" && device.contains("burn"), "{device}"),
                ["--jobs", _] => assert_eq!(plan["jobs"], 2, "{kind}"),
                ["--together", _] => {
                    assert!(plan["together"].as_u64().is_some_and(|most| most <= 2), "{kind}")
                }
                ["--data", _] => {
                    assert!(plan["command"].as_str().unwrap().contains("--data pictures"), "the command repeats it")
                }
                _ => unreachable!("{flag:?}"),
            }
        }
    }
    for (kind, ..) in KINDS {
        let recipe = format!("{kind}.toml");
        let quick: Value =
            serde_json::from_str(&printed(folder.path(), &["show", &recipe, "--json", "--no-estimate"])).unwrap();
        assert!(quick["seconds"].is_null() && quick["runs"].as_array().unwrap().len() == 2, "{kind}");
        let timed: Value = serde_json::from_str(&printed(folder.path(), &["show", &recipe, "--json"])).unwrap();
        assert!(timed["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{kind}");
        for (words, part) in
            [(&["sede=3"][..], "did you mean `seed`?"), (&["seed"], "key=value"), (&["--scale", "huge"], "huge")]
        {
            let sentence = refused(folder.path(), &[&["run", &recipe], words].concat());
            assert!(sentence.contains(part), "{kind}: {sentence}");
        }
        let figures = std::fs::read_to_string(folder.path().join(&recipe)).unwrap();
        std::fs::write(
            folder.path().join("figures.toml"),
            figures.replacen("kind", "figures = \"clasifier\"\nkind", 1),
        )
        .unwrap();
        let sentence = refused(folder.path(), &["show", "figures.toml"]);
        assert!(sentence.contains("did you mean 'classifier'?"), "{sentence}");
    }
}

/// `--unit` is honoured by every kind: two machines make a half each, and `merge` joins them to what one machine makes.
#[test]
fn units_of_every_kind_are_made_apart_and_merged_to_the_same_numbers() {
    let folder = folder();
    for (kind, ..) in KINDS {
        let recipe = format!("{kind}.toml");
        let name = |part: &str| format!("units/{kind}-{part}");
        printed(folder.path(), &["run", &recipe, "--out", &name("whole")]);
        for (part, unit) in [("a", "1/2"), ("b", "2/2")] {
            let said = printed(folder.path(), &["run", &recipe, "--out", &name(part), "--unit", unit]);
            assert!(said.contains("1 run of the sweep not here yet"), "{kind}: {said}");
            assert_eq!(numbers(folder.path(), &name(part)).len(), 1, "{kind}");
            assert!(!folder.path().join(name(part)).join("report.html").exists(), "{kind}: half a page");
        }
        let said = printed(folder.path(), &["merge", &name("a"), &name("b"), "--into", &name("both")]);
        assert!(said.contains("2 runs: ") && said.contains("report.html"), "{kind}: {said}");
        assert!(numbers(folder.path(), &name("both")) == numbers(folder.path(), &name("whole")), "{kind}");
    }
    let sentence = refused(folder.path(), &["run", "spectra.toml", "--out", "none", "--unit", "3/2"]);
    assert!(sentence.contains("such as 3/12") && !folder.path().join("none").exists(), "{sentence}");
}

/// What users have stored: a kind's former name still means it.
#[test]
fn former_names_of_kinds_are_understood_and_wrong_ones_are_not() {
    let folder = folder();
    let recipe = std::fs::read_to_string(folder.path().join("classifier.toml")).unwrap();
    std::fs::write(folder.path().join("old.toml"), recipe.replace("\"classifier\"", "\"study\"")).unwrap();
    assert!(printed(folder.path(), &["show", "old.toml", "--no-estimate"]).contains("classifier"));
    std::fs::write(folder.path().join("wrong.toml"), recipe.replace("\"classifier\"", "\"clasifier\"")).unwrap();
    assert!(refused(folder.path(), &["show", "wrong.toml"]).contains("did you mean 'classifier'?"));
}

#[test]
fn settings_are_printed_for_people_and_programs_and_the_page_is_true() {
    let folder = tempfile::tempdir().unwrap();
    let all: Value = serde_json::from_str(&printed(folder.path(), &["settings", "--json"])).unwrap();
    assert_eq!(all.as_object().unwrap().len(), 5);
    for (kind, ..) in KINDS {
        let settings = all[kind]["settings"].as_array().unwrap();
        assert!(settings.iter().all(|one| one["meaning"].as_str().is_some_and(|text| text.len() > 10)), "{kind}");
        assert!(settings.iter().all(|one| !one["default"].is_null()), "{kind}");
        assert!(printed(folder.path(), &["settings", kind]).contains("compute.dtype"));
    }
    assert!(refused(folder.path(), &["settings", "bolean"]).contains("did you mean 'boolean'?"));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    let stored = std::fs::read_to_string(page).unwrap();
    assert_eq!(
        printed(folder.path(), &["settings", "--markdown"]),
        stored,
        "make it again: cargo run -- settings --markdown > docs/settings.md"
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_runs_of_every_kind_and_the_same_command_continues_to_the_same_numbers() {
    let longer: [(&str, &[&str]); 4] = [
        ("boolean", &["train.steps=20000", "model.d=8"]),
        ("classifier", &["train.epochs=1500", "measure.every=500", "train.lr=0.1"]),
        ("grokking", &["train.epochs=3000", "modulus=7"]),
        ("tokens", &["train.epochs=400", "measure.every=100", "data=3:5:1:16:59"]),
    ];
    let folder = folder();
    for (kind, overrides) in longer {
        let recipe = format!("{kind}.toml");
        let arguments = |out: &'static str| [&["run", recipe.as_str(), "--out", out], overrides].concat();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pudica"));
        command.args(arguments("stopped")).current_dir(folder.path()).stderr(Stdio::null());
        let mut child = started(&mut command, &folder.path().join("stopped"));
        send("INT", &child);
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(130), "{kind}: stopped before the end, with its own code");
        let resumed = pudica(folder.path(), &arguments("stopped"));
        assert!(resumed.status.success(), "{kind}: {}", text(&resumed.stderr));
        printed(folder.path(), &arguments("straight"));
        assert!(numbers(folder.path(), "stopped") == numbers(folder.path(), "straight"), "{kind}");
        for out in ["stopped", "straight"] {
            std::fs::remove_dir_all(folder.path().join(out)).unwrap();
        }
    }
}
