//! Run folders: what is read again by status, report, resuming and measuring.

use super::{said, write};
use crate::case::Case;
use crate::mutate::Form;
use crate::target::{Memory, Target};
use pudica_lab::experiment::RunStart;
use pudica_lab::store::{Status, SweepFolder};
use pudica_lab::{Machine, Plan, Recipe, Request, open};
use pudica_report::Drawing;
use serde_json::{Map, Value};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The folders that fuzzing begins from; `tests/fuzz/corpus/make` makes them.
const FOLDERS: &[u8] = super::file!("tests/fuzz/corpus/folders.tar");

/// Their files, in order, and what is in them. The second run of each sweep has no digests, as those of earlier programs: what is changed in it
/// is not refused for that, but read.
pub fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let mut archive = tar::Archive::new(FOLDERS);
    let mut files = Vec::new();
    for mut entry in archive.entries().expect("an archive").flatten() {
        let path = entry.path().expect("a name").into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("a whole archive");
        if entry.header().entry_type().is_file() {
            files.push((path, bytes));
        }
    }
    let of_runs = files.iter_mut().filter(|(path, _)| path.ends_with("summary.json") && path.iter().count() == 5);
    for (_, summary) in of_runs.skip(1).step_by(2) {
        let mut read: Map<String, Value> = serde_json::from_slice(summary).expect("a summary");
        read.remove("files");
        *summary = Value::from(read).to_string().into_bytes();
    }
    files
}

/// Those files that lie in this folder and have these names, each as a case of its own number.
pub fn cases_of(folder: &str, names: &[&str]) -> Vec<Case> {
    let files = files();
    let wanted = files.iter().enumerate().filter(|(_, (path, _))| {
        path.starts_with(folder) && path.file_name().is_some_and(|name| names.iter().any(|wanted| name == *wanted))
    });
    wanted
        .flat_map(|(place, (path, bytes))| match path.extension().is_some_and(|ending| ending == "safetensors") {
            true => Case::safetensors(place, bytes),
            false => vec![Case::new(place, bytes.clone())],
        })
        .collect()
}

/// The folders in a scratch folder, of which one file at a time is another.
pub struct Folders {
    root: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Folders {
    pub fn unpack(root: &Path) -> Self {
        let files = files();
        for (path, bytes) in &files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(root)).expect("a scratch folder");
            write(&path, bytes);
        }
        Self { root: root.into(), files }
    }

    /// Does something with the folder in which the file of this number lies, while it holds these bytes: the folder is the file's ancestor of this
    /// many names.
    pub fn with<T>(&self, number: usize, bytes: &[u8], names: usize, work: impl FnOnce(&Path) -> T) -> T {
        let (path, sound) = &self.files[number % self.files.len()];
        let folder: PathBuf = path.iter().take(names).collect();
        write(&self.root.join(path), bytes);
        let result = work(&self.root.join(folder));
        write(&self.root.join(path), sound);
        result
    }
}

const NAMES: [&str; 5] = ["sweep.json", "config.json", "summary.json", "metrics.jsonl", "data.json"];

const WORDS: &[&str] = &[
    "\"format\": 1",
    "\"format\": 2",
    "\"kind\"",
    "\"runs\"",
    "\"id\"",
    "\"measures\"",
    "\"detail\"",
    "\"step\"",
    "\"outcome\"",
    "\"finished\"",
    "\"failed\"",
    "\"mean\"",
    "\"std_error\"",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "1e308",
    "-1e308",
    "\"boolean\"",
    "\"tokens\"",
    "\"figures\"",
    "\"swept\"",
    "\"model.d\"",
    "\"converged\"",
    "\"device\"",
];

pub const SWEEP: Target = Target {
    name: "sweep",
    about: "run folders of every kind: sweep.json, config.json, summary.json, metrics.jsonl, data.json, reports of processes; all runs and their status",
    form: Form::Json,
    words: WORDS,
    memory: Memory { constant: 8, factor: 200 },
    seeds: || {
        let mut cases = cases_of("sweeps", &NAMES);
        let process = r#"{"host": "a", "pid": 7, "born": 3, "random": "0123456789ab", "machine": "", "job": "12_3", "restarts": 1, "unit": "3/12", "program": "pudica",
"instruction_set": "avx2", "beat": 4, "written": 1.5e9, "seconds": 3.0, "runs": 4, "ended": 1, "done": 0.25, "steps_per_second": 10.0, "seconds_left": 9.0,
"at": [{"id": "0123456789ab", "label": "n=4", "step": 3, "steps": 10}], "errors": ["it broke"], "has_ended": false}"#;
        cases.push(Case::new(AT_WORK, process));
        cases
    },
    reader: |folder| {
        let folders = Folders::unpack(folder);
        let at_work = folder.join("sweeps/boolean/.work");
        std::fs::create_dir_all(&at_work).expect("a scratch folder");
        let mut turn = false;
        Box::new(move |part, bytes| {
            turn = !turn; // half of all are asked how they stand, half are read
            if part == AT_WORK {
                write(&at_work.join("a-7-0123456789ab.json"), bytes);
                return folders.with(0, &folders.files[0].1, 0, |root| said(Status::of(&root.join("sweeps/boolean"))));
            }
            folders.with(part, bytes, 2, |folder| {
                if turn {
                    return said(Status::of(folder));
                }
                let sweep = SweepFolder::open(folder).map_err(|error| error.to_string())?;
                _ = sweep.missing();
                let runs = sweep.runs().map_err(|error| error.to_string())?;
                runs.iter().try_for_each(|run| said(run.lines()))
            })
        })
    },
    short: 500,
};

/// The number of the report of a process, which is none of the files.
const AT_WORK: usize = 1_000_000;

pub const REPORT: Target = Target {
    name: "report",
    about: "the same folders as tables, figures (drawn, not as pixels) and pages",
    form: Form::Json,
    words: WORDS,
    memory: Memory { constant: 512, factor: 4000 },
    seeds: || cases_of("sweeps", &NAMES),
    reader: |folder| {
        let folders = Folders::unpack(folder);
        let mut turn = 0;
        Box::new(move |part, bytes| {
            turn += 1;
            folders.with(part, bytes, 2, |folder| {
                let drawing = Drawing::new(folder, &[]).map_err(|error| error.to_string())?;
                _ = drawing.summary();
                if turn % 16 == 0 {
                    _ = drawing.page(); // takes as long as all the rest
                }
                Ok(())
            })
        })
    },
    short: 300,
};

/// A recipe of each kind that can be begun without data, with a run of few weights.
const BEGUN: [&str; 4] = [
    "kind = 'boolean'\n[quick]\nsettings = { model.d = 4, model.layers = 1, train.batch = 4, n = 3, train.steps = 100 }",
    "kind = 'grokking'\n[quick]\nsettings = { modulus = 5, model.d = 4, model.heads = 1, model.mlp = 4 }",
    "kind = 'tokens'\n[quick]\nsettings = { data = '1:2:1:3:12', length = 12, model.width = 3, train.set_size = 20, train.batch = 10, eval.sequences = 5, measure.simulated = 5 }",
    "kind = 'boolean'\n[quick]\nsettings = { model.kind = 'lstm', model.d = 4, model.layers = 1, train.batch = 4, n = 3, train.steps = 100 }",
];

fn begun(place: usize) -> Plan {
    let text = format!("title = 't'\n{}\n[[quick.sweep]]\nname = 'all'\n", BEGUN[place % BEGUN.len()]);
    Recipe::parse("fuzz.toml", &text).and_then(|recipe| Plan::new(&recipe, &Request::default())).expect("a plan")
}

pub const CHECKPOINT: Target = Target {
    name: "checkpoint",
    about: "checkpoints of every kind, from which a run goes on by a step",
    form: Form::Json,
    words: TENSORS,
    memory: Memory { constant: 32, factor: 100 },
    seeds: || {
        let mut cases = Vec::new();
        for place in 0..BEGUN.len() {
            let plan = begun(place);
            let experiment = open(&plan, &Machine::default()).expect("an experiment without data");
            let start =
                RunStart { settings: &plan.runs[0].settings, teacher: None, checkpoint: None, lines: Vec::new() };
            let checkpoint = experiment.begin(&[start]).and_then(|mut training| {
                training.advance(1)?;
                training.checkpoint(0)
            });
            cases.extend(Case::safetensors(place, &checkpoint.expect("a checkpoint")));
        }
        cases
    },
    reader: |_| {
        let plans: Vec<Plan> = (0..BEGUN.len()).map(begun).collect();
        let experiments: Vec<_> =
            plans.iter().map(|plan| open(plan, &Machine::default()).expect("an experiment without data")).collect();
        Box::new(move |part, bytes| {
            let (plan, experiment) = (&plans[part % plans.len()], &experiments[part % plans.len()]);
            let settings = &plan.runs[0].settings;
            let step = experiment.step_of(settings, bytes).map_err(|error| error.to_string())?;
            let start = RunStart { settings, teacher: None, checkpoint: Some(bytes.to_vec()), lines: Vec::new() };
            let mut training = experiment.begin(&[start]).map_err(|error| error.to_string())?;
            if step < 50 { said(training.advance(1)) } else { Ok(()) }
        })
    },
    short: 300,
};

/// Words of safetensors files.
pub const TENSORS: &[&str] = &[
    "\"dtype\":\"F32\"",
    "\"dtype\":\"F64\"",
    "\"BF16\"",
    "\"F16\"",
    "\"I64\"",
    "\"BOOL\"",
    "\"shape\":[",
    "\"data_offsets\":[",
    "\"__metadata__\"",
    "\"step\"",
    "\"heads\"",
    "[0,0]",
    "[1]",
    "[]",
    "{",
    "}",
    "\"weight\"",
    "0",
    "4294967296",
];

pub const WEIGHTS: Target = Target {
    name: "weights",
    about: "networks of finished runs of every kind, asked about one input",
    form: Form::Json,
    words: TENSORS,
    memory: Memory { constant: 64, factor: 400 },
    seeds: || cases_of("sweeps", &["weights.safetensors", "config.json", "data.json"]),
    reader: |folder| {
        let folders = Folders::unpack(folder);
        Box::new(move |part, bytes| folders.with(part, bytes, 4, super::models::ask))
    },
    short: 300,
};

#[test]
fn there_are_folders_of_every_kind() {
    for kind in pudica_lab::KINDS {
        let cases = cases_of(&format!("sweeps/{}", kind.name), &NAMES);
        assert!(cases.len() > 5, "{}", kind.name);
    }
}
