//! Folders of one sweep, made on machines that share no disk, as one folder.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::atomic::{read_json, write_bytes, write_json};
use super::check::{DamagedRun, State, Weights};
use super::run::{RunFolder, RunSummary};
use super::sweep::{RunRecord, SweepFolder, SweepRecord, lock};
use super::{FORMAT, check_format};
use crate::error::{Error, Result};
use crate::kinds::Kind;
use crate::plan::{Plan, Request};
use crate::recipe::Recipe;

/// What [`merge`] did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// Finished runs that were copied.
    pub copied: usize,
    /// Finished runs that were there already, with equal numbers.
    pub kept: usize,
    /// Unfinished runs whose state was copied, so that they can go on here.
    pub begun: usize,
    /// What the user should know: runs that were left out because they are damaged.
    pub notices: Vec<String>,
    /// Finished runs by what made them: program and instruction set. Where there are several, last bits may differ.
    pub made_by: BTreeMap<String, usize>,
}

/// Copies the runs of `sources` into `into`, which may hold some of them already and may be one of the sources. All must be of one sweep: one
/// of them holds the runs of all, or their commands differ in the lists of values that they chose from the recipe's. A run that has ended in
/// several of them must have the same numbers in all; that is checked before anything is written. Weights are copied, and must be there,
/// unless they are to be left out. Interrupted, it goes on when it is called again.
pub fn merge(sources: &[PathBuf], into: &Path, with_weights: bool) -> Result<Merged> {
    let mut folders = sources.iter().map(|path| open(path)).collect::<Result<Vec<SweepFolder>>>()?;
    if into.join(".lock").exists() {
        drop(lock(into)?); // another process may be at it, and have got no further
    }
    if into.join("sweep.json").exists() {
        folders.push(open(into)?);
    } else if std::fs::read_dir(into).is_ok_and(|mut entries| entries.any(|entry| !is_own(entry))) {
        return Err(refusal(into, "is not empty and holds no sweep; give --into a new folder"));
    }
    let record = whole(&folders)?;
    let kind = Kind::find(&record.kind)?;
    let mut merged = Merged::default();
    let mut found: Vec<(RunRecord, Vec<Found>)> = Vec::new();
    for run in &record.runs {
        let mut copies = Vec::new();
        for folder in &folders {
            let own = folder.run(&run.id);
            match own.state(kind, if with_weights { Weights::Needed } else { Weights::Bytes })? {
                State::None => {}
                State::Begun(_) => copies.push(Found { folder: own, summary: None }),
                State::Ended(_, summary) => copies.push(Found { folder: own, summary: Some(*summary) }),
                State::Damaged(damage) => {
                    let left_out = format!("left out of {}", folder.path().display());
                    merged.notices.push(match damage.file {
                        "weights.safetensors" if !own.weights_path().exists() => {
                            let RunRecord { id, label, .. } = run;
                            format!("{left_out}: run {id} ({label}) has no weights; --without-weights takes such runs")
                        }
                        _ => format!("{left_out}: {}", DamagedRun { record: run.clone(), damage }),
                    });
                }
            }
        }
        let ended: Vec<&Found> = copies.iter().filter(|copy| copy.summary.is_some()).collect();
        for pair in ended.windows(2) {
            if let Some(difference) = difference(pair[0], pair[1])? {
                let path = pair[1].folder.path();
                let problem = format!(
                    "run {} ({}) has other numbers than in {} ({difference}); remove one of these two folders to keep the other",
                    run.id,
                    run.label,
                    pair[0].folder.path().display()
                );
                return Err(refusal(path, &problem));
            }
        }
        found.push((run.clone(), copies));
    }
    std::fs::create_dir_all(into).map_err(Error::io("create", into))?;
    let _lock = lock(into)?;
    std::fs::create_dir_all(into.join("runs")).map_err(Error::io("create", into))?;
    write_json(&into.join("sweep.json"), &record)?;
    for (run, copies) in &found {
        let target = RunFolder::new(into.join("runs").join(&run.id));
        let ended = copies.iter().find(|copy| copy.summary.is_some());
        match (ended, copies.first()) {
            _ if copies.iter().any(|copy| copy.summary.is_some() && same_place(copy.folder.path(), target.path())) => {
                merged.kept += 1;
            }
            (Some(copy), _) => {
                copy_run(&copy.folder, &target, with_weights)?;
                merged.copied += 1;
            }
            (None, Some(copy)) if !target.checkpoint_path().exists() && copy.folder.checkpoint_path().exists() => {
                copy_run(&copy.folder, &target, true)?;
                merged.begun += 1;
            }
            _ => {}
        }
        if let Some(made_by) = ended.and_then(|copy| copy.summary.as_ref()?.made_by.clone()) {
            *merged.made_by.entry(format!("{} on {}", made_by.program, made_by.instruction_set)).or_default() += 1;
        }
    }
    Ok(merged)
}

/// Whether an entry of a folder is what an interrupted [`merge`] leaves that had not written `sweep.json` yet.
fn is_own(entry: std::io::Result<std::fs::DirEntry>) -> bool {
    entry.is_ok_and(|entry| match entry.file_name().to_string_lossy().as_ref() {
        ".lock" => true,
        "runs" => std::fs::read_dir(entry.path()).is_ok_and(|mut runs| runs.next().is_none()),
        name => name.starts_with(".sweep.json."),
    })
}

fn refusal(path: &Path, problem: &str) -> Error {
    Error::Folder { path: path.into(), problem: problem.into() }
}

fn open(path: &Path) -> Result<SweepFolder> {
    if !path.is_dir() {
        return Err(refusal(path, "there is no such folder"));
    }
    let folder = SweepFolder::open(path)?;
    check_format(path, folder.record().format)?;
    match folder.record().format {
        FORMAT => Ok(folder),
        _ => Err(refusal(
            path,
            "was written by an earlier pudica; run its command there once, which brings it up to date",
        )),
    }
}

/// The record that holds the runs of all; they must be of one recipe.
fn whole(folders: &[SweepFolder]) -> Result<SweepRecord> {
    // Of several equal ones the first: what is refused is what comes later.
    let Some(largest) = folders.iter().rev().max_by_key(|folder| folder.record().runs.len()) else {
        return Err(Error::Other("there is no folder to merge".into()));
    };
    let ids: HashSet<&str> = largest.record().runs.iter().map(|run| run.id.as_str()).collect();
    for folder in folders {
        let (one, all) = (folder.record(), largest.record());
        if one.recipe_text != all.recipe_text || one.kind != all.kind {
            let problem =
                format!("holds another sweep ({}) than {} ({})", one.recipe, largest.path().display(), all.recipe);
            return Err(refusal(folder.path(), &problem));
        }
    }
    for folder in folders {
        let (one, all) = (folder.record(), largest.record());
        let foreign = one.runs.iter().filter(|run| !ids.contains(run.id.as_str())).count();
        if foreign > 0 {
            if let Some(record) = without_lists(folders, all) {
                return Ok(record);
            }
            let problem = format!(
                "{foreign} of its {} runs are not among those of {}: they have other settings (`{}` and `{}`); merge folders of one command, or of commands that differ in which of the recipe's values they list",
                one.runs.len(),
                largest.path().display(),
                one.command,
                all.command
            );
            return Err(refusal(folder.path(), &problem));
        }
    }
    Ok(largest.record().clone())
}

/// Of the command without what some of the folders' commands have and others have not, if that makes all their runs.
fn without_lists(folders: &[SweepFolder], of: &SweepRecord) -> Option<SweepRecord> {
    let records = || folders.iter().map(SweepFolder::record);
    if records().any(|record| record.scale != of.scale || record.flags != of.flags) {
        return None;
    }
    let is_common = |text: &&String| records().all(|record| record.overrides.contains(text));
    let request = Request {
        scale: Some(of.scale.clone()),
        overrides: of.overrides.iter().filter(is_common).cloned().collect(),
        flags: of.flags.clone(),
        ..Request::default()
    };
    let plan = Plan::new(&Recipe::parse(&of.recipe, &of.recipe_text).ok()?, &request).ok()?;
    let ids: HashSet<&str> = plan.runs.iter().map(|run| run.id.as_str()).collect();
    let has_all = records().flat_map(|record| &record.runs).all(|run| ids.contains(run.id.as_str()));
    has_all.then(|| SweepRecord::of(&plan, &of.program))
}

fn same_place(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// A run as it lies in one of the folders.
struct Found {
    folder: RunFolder,
    /// If it has ended.
    summary: Option<RunSummary>,
}

impl Found {
    /// Everything that decides whether two copies are the same run: no times, and not what it was computed on.
    fn numbers(&self) -> Result<Vec<(&'static str, Value)>> {
        let lines = self.folder.metrics()?.into_iter().map(|mut line| {
            line.remove("seconds");
            Value::Object(line)
        });
        let Some(summary) = &self.summary else { return Ok(Vec::new()) };
        let mut ending = Map::new();
        ending.insert("outcome".into(), format!("{:?}", summary.outcome).into());
        ending.insert("steps".into(), summary.steps.into());
        ending.extend(summary.measures.clone());
        let data: Option<Value> = read_json(&self.folder.path().join("data.json"))?;
        Ok(vec![
            ("summary.json", Value::Object(ending)),
            ("detail", Value::Object(summary.detail.clone())),
            ("metrics.jsonl", Value::from_iter(lines)),
            ("data.json", data.unwrap_or_default()),
        ])
    }
}

/// What differs between two copies of a run that has ended, if anything. Weights that were deleted for their size differ from nothing.
fn difference(one: &Found, other: &Found) -> Result<Option<String>> {
    if same_place(one.folder.path(), other.folder.path()) {
        return Ok(None);
    }
    for ((name, a), (_, b)) in one.numbers()?.into_iter().zip(other.numbers()?) {
        if a != b {
            let own = a.as_object().zip(b.as_object());
            let differing = own.and_then(|(a, b)| a.iter().find(|(key, value)| b.get(*key) != Some(value)));
            let (key, here) = differing.map_or((name, String::new()), |(key, value)| (key.as_str(), value.to_string()));
            let there = b.get(key).map_or(String::new(), Value::to_string);
            let numbers = if here.len() + there.len() < 80 { format!("{key}: {there} and {here}") } else { key.into() };
            let sets: Vec<&str> = [other, one]
                .iter()
                .filter_map(|copy| {
                    copy.summary.as_ref()?.made_by.as_ref().map(|made_by| made_by.instruction_set.as_str())
                })
                .collect();
            return Ok(Some(format!("{numbers}; made on {}", sets.join(" and "))));
        }
    }
    let weights = [one, other].map(|copy| std::fs::read(copy.folder.weights_path()).ok());
    Ok(match weights {
        [Some(a), Some(b)] if a != b => Some("weights.safetensors".into()),
        _ => None,
    })
}

/// Copies the files of a run. What says how far it is (summary or checkpoint) is written last, so that an interruption leaves a run that
/// is to be copied again. A checkpoint is read first: metrics that are read later reach at least as far, and what is beyond is dropped.
fn copy_run(from: &RunFolder, to: &RunFolder, with_weights: bool) -> Result<()> {
    std::fs::create_dir_all(to.path()).map_err(Error::io("create", to.path()))?;
    let has_ended = from.has_ended();
    let last = if has_ended { "summary.json" } else { "checkpoint.safetensors" };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(from.path()).map_err(Error::io("read", from.path()))? {
        let entry = entry.map_err(Error::io("read", from.path()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_passing = has_ended && name == "checkpoint.safetensors";
        let is_unwanted = !with_weights && entry.path() == from.weights_path();
        if entry.path().is_file() && !name.starts_with('.') && !is_passing && !is_unwanted && name != last {
            names.push(name);
        }
    }
    let read = |name: &str| {
        let source = from.path().join(name);
        std::fs::read(&source).map_err(Error::io("read", &source))
    };
    let state = if from.path().join(last).is_file() { Some(read(last)?) } else { None };
    for name in &names {
        write_bytes(&to.path().join(name), &read(name)?)?;
    }
    if let Some(state) = state {
        write_bytes(&to.path().join(last), &state)?;
    }
    if has_ended { to.remove_checkpoint() } else { Ok(()) }
}
