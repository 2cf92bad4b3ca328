//! The folder of a sweep: what was asked for, and the folders of its runs.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::atomic::{read_json, write_json};
use super::check::{DamagedRun, State, Weights};
use super::run::{RunFolder, RunSummary};
use super::{FORMAT, check_format, take_over};
use crate::compute::{Machine, recorded};
use crate::error::{Error, Result};
use crate::kinds::Kind;
use crate::plan::{Plan, PlannedRun, Request, labels, varying};
use crate::recipe::{FIGURES, Recipe};
use crate::settings::Settings;

/// What was asked for, as stored in `sweep.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// The folder layout's version.
    pub format: u32,
    /// The program that wrote it.
    pub program: String,
    /// The recipe's name.
    pub recipe: String,
    /// What its runs are.
    #[serde(default)]
    pub kind: String,
    /// Its title.
    pub title: String,
    /// Which figures and tables of which paper.
    pub source: String,
    /// What the experiment shows.
    pub about: String,
    /// The figures the report draws.
    pub figures: String,
    /// The scale.
    pub scale: String,
    /// The overrides as typed.
    pub overrides: Vec<String>,
    /// Settings that flags changed: the flag as typed, and the same as an override. Earlier programs did not record them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<(String, String)>,
    /// The command that repeats it.
    pub command: String,
    /// The settings that were given different values, in the order of definition.
    #[serde(default)]
    pub swept: Vec<String>,
    /// The recipe's text.
    pub recipe_text: String,
    /// The runs, in order.
    pub runs: Vec<RunRecord>,
}

impl SweepRecord {
    /// Of a plan that a program is to make.
    pub(crate) fn of(plan: &Plan, program: &str) -> SweepRecord {
        SweepRecord {
            format: FORMAT,
            program: program.into(),
            recipe: plan.recipe.name.clone(),
            kind: plan.kind().name.into(),
            title: plan.recipe.title.clone(),
            source: plan.recipe.source.clone(),
            about: plan.recipe.about.clone(),
            figures: plan.recipe.figures.clone(),
            scale: plan.scale.clone(),
            overrides: plan.request.overrides.clone(),
            flags: plan.request.flags.clone(),
            command: plan.command(),
            swept: plan.swept.clone(),
            recipe_text: plan.recipe.text.clone(),
            runs: plan.runs.iter().map(RunRecord::of).collect(),
        }
    }

    /// Whether its runs have the settings of the published experiment; some seeds may be missing.
    pub fn has_published_settings(&self) -> bool {
        crate::recipe::builtin(&self.recipe).is_some() && self.scale == "paper" && self.has_own_settings()
    }

    /// Whether its runs have the settings that the recipe gives this scale: overrides chose seeds at most.
    pub fn has_own_settings(&self) -> bool {
        self.overrides.iter().all(|text| text.starts_with("seed="))
    }
}

/// A run's place in the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's id.
    pub id: String,
    /// The recipe's sweep it belongs to.
    pub sweep: String,
    /// The run it was made for, where its sweep follows another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How a person names it among the others: what differs.
    #[serde(default)]
    pub label: String,
}

impl RunRecord {
    /// Of a run in a plan.
    pub(crate) fn of(run: &PlannedRun) -> RunRecord {
        RunRecord { id: run.id.clone(), sweep: run.sweep.clone(), parent: run.parent.clone(), label: run.label.clone() }
    }
}

/// A run as found in a sweep folder.
#[derive(Clone, Debug)]
pub struct SweepRun {
    /// Its place in the sweep.
    pub record: RunRecord,
    /// Its settings.
    pub settings: Settings,
    /// Its outcome, if it has ended.
    pub summary: Option<RunSummary>,
    /// Its folder.
    pub folder: RunFolder,
}

impl SweepRun {
    /// Its lines of metrics, in order.
    pub fn lines(&self) -> Result<Vec<Map<String, Value>>> {
        self.folder.metrics()
    }
}

/// The folder of a sweep. While one made by [`SweepFolder::claim`] lives, no other process can claim it.
#[derive(Debug)]
pub struct SweepFolder {
    path: PathBuf,
    record: SweepRecord,
    _lock: Option<File>,
}

impl SweepFolder {
    /// Makes or continues the sweep of `plan` in `path`, and locks it against other processes that make the whole of it. A folder that
    /// holds runs which are not of this plan is refused: its report would be replaced. `notices` gets what the user should know.
    pub fn claim(path: &Path, plan: &Plan, machine: &Machine, notices: &mut Vec<String>) -> Result<SweepFolder> {
        SweepFolder::begin(path, plan, machine, true, notices)
    }

    /// [`SweepFolder::claim`] for one of several processes that make parts of it in this folder: there is no lock, runs are claimed one
    /// by one.
    pub fn announce(path: &Path, plan: &Plan, machine: &Machine, notices: &mut Vec<String>) -> Result<SweepFolder> {
        SweepFolder::begin(path, plan, machine, false, notices)
    }

    /// Refuses a folder that [`SweepFolder::announce`] would refuse; nothing is written.
    pub fn check(path: &Path, plan: &Plan, machine: &Machine) -> Result<()> {
        old_record(path, plan, machine, &mut Vec::new()).map(|_| ())
    }

    fn begin(
        path: &Path,
        plan: &Plan,
        machine: &Machine,
        alone: bool,
        notices: &mut Vec<String>,
    ) -> Result<SweepFolder> {
        let old = old_record(path, plan, machine, notices)?;
        std::fs::create_dir_all(path.join("runs")).map_err(Error::io("create", path))?;
        let is_old = old.as_ref().is_some_and(|old| old.format < FORMAT);
        let lock = if alone || is_old { Some(lock(path)?) } else { None };
        if is_old {
            take_over::take_over(path, plan, notices)?;
        }
        let record = SweepRecord::of(plan, &machine.program);
        if old.as_ref() != Some(&record) {
            write_json(&path.join("sweep.json"), &record)?;
        }
        Ok(SweepFolder { path: path.into(), record, _lock: lock.filter(|_| alone) })
    }

    /// Opens a sweep folder for reading, finished or not.
    pub fn open(path: &Path) -> Result<SweepFolder> {
        let record = read_record(path)?.ok_or_else(|| Error::Folder {
            path: path.into(),
            problem: match is_of_format_1(path) {
                true => {
                    "holds results of an earlier pudica without run folders; its report.html stands as it is".into()
                }
                false => "is not a sweep folder (it has no sweep.json); give the folder that `pudica run` named".into(),
            },
        })?;
        Ok(SweepFolder { path: path.into(), record, _lock: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was asked for.
    pub fn record(&self) -> &SweepRecord {
        &self.record
    }

    /// The folder of one run.
    pub fn run(&self, id: &str) -> RunFolder {
        RunFolder::new(self.path.join("runs").join(id))
    }

    /// How many of its runs have not ended.
    pub fn missing(&self) -> usize {
        self.record.runs.iter().filter(|run| !self.run(&run.id).has_ended()).count()
    }

    /// All runs that have at least begun and are whole, in the order of the sweep, each under its true identity.
    pub fn runs(&self) -> Result<Vec<SweepRun>> {
        Ok(self.read()?.0)
    }

    /// [`SweepFolder::runs`], and the damaged ones beside.
    pub fn read(&self) -> Result<(Vec<SweepRun>, Vec<DamagedRun>)> {
        let kind = Kind::find(&self.record.kind)?;
        let (mut runs, mut damaged) = (Vec::new(), Vec::new());
        for record in &self.record.runs {
            let folder = self.run(&record.id);
            let (settings, summary) = match folder.state(kind, Weights::Bytes)? {
                State::None => continue,
                State::Begun(settings) => (settings, None),
                State::Ended(settings, summary) => (settings, Some(*summary)),
                State::Damaged(damage) => {
                    damaged.push(DamagedRun { record: record.clone(), damage });
                    continue;
                }
            };
            let device = summary.as_ref().map_or("", |summary| &summary.device);
            let settings = match settings.compute() {
                Some(_) => settings,
                None => {
                    let compute = recorded(device, &settings, &kind.abilities);
                    settings.with_compute(&compute)
                }
            };
            runs.push(SweepRun { record: record.clone(), settings, summary, folder });
        }
        if self.record.format < FORMAT {
            name_runs(kind, &self.record, &mut runs);
        }
        Ok((runs, damaged))
    }
}

/// What is recorded in a folder that is to hold the sweep of `plan`; refused if it holds something else.
fn old_record(path: &Path, plan: &Plan, machine: &Machine, notices: &mut Vec<String>) -> Result<Option<SweepRecord>> {
    let old = match read_record(path) {
        // Its runs are found by their ids; the record is that of the plan.
        Err(Error::Damaged { problem, .. }) if machine.repair => {
            notices.push(format!("sweep.json is damaged ({problem}); it is written anew"));
            None
        }
        old => old?,
    };
    if let Some(old) = &old {
        check_owner(path, old, plan)?;
    } else if is_of_format_1(path) {
        let problem = "holds results of an earlier pudica that had no run folders; choose another --out";
        return Err(Error::Folder { path: path.into(), problem: problem.into() });
    }
    Ok(old)
}

/// Labels for runs whose record has none.
fn name_runs(kind: &Kind, record: &SweepRecord, runs: &mut [SweepRun]) {
    let all: Vec<&Settings> = runs.iter().map(|run| &run.settings).collect();
    let request =
        Request { scale: Some(record.scale.clone()), overrides: record.overrides.clone(), ..Request::default() };
    let plan = Recipe::parse(&record.recipe, &record.recipe_text).and_then(|recipe| Plan::new(&recipe, &request));
    let keys = plan.map_or_else(|_| varying(&all), |plan| plan.swept);
    let labels = labels(kind, &all, &keys);
    runs.iter_mut().zip(labels).for_each(|(run, label)| run.record.label = label);
}

/// Refuses to put a plan into a folder that holds something else.
fn check_owner(path: &Path, old: &SweepRecord, plan: &Plan) -> Result<()> {
    let refuse = |problem: String| Err(Error::Folder { path: path.into(), problem });
    if old.recipe != plan.recipe.name {
        return refuse(format!("holds a sweep of {}, not of {}; choose another --out", old.recipe, plan.recipe.name));
    }
    let kept: HashSet<String> = match old.format {
        FORMAT => plan.runs.iter().map(|run| run.id.clone()).collect(),
        _ => take_over::ids_of_format_1(path, old, plan)?,
    };
    let foreign = old.runs.iter().filter(|run| !kept.contains(&run.id)).count();
    if foreign > 0 {
        let what = if foreign == old.runs.len() {
            "other runs".into()
        } else {
            format!("{foreign} run{} that this command lacks", if foreign == 1 { "" } else { "s" })
        };
        if old.command == plan.command() && old.recipe_text == plan.recipe.text {
            return refuse(format!(
                "holds {what}: a file that the settings name, such as the table of a target or own data, has changed since; bring the old \
                 one back, or choose another --out"
            ));
        }
        return refuse(format!(
            "holds {what} (made by `{}`); choose another --out, or leave it out: other settings get a folder of their own",
            old.command
        ));
    }
    Ok(())
}

/// Whether kinds `synthetic` or `spectra` of format 1 wrote here.
fn is_of_format_1(path: &Path) -> bool {
    ["synthetic.json", "spectra.json"].iter().any(|file| path.join(file).is_file())
}

fn read_record(path: &Path) -> Result<Option<SweepRecord>> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let file = path.join("sweep.json");
    if path.exists() && !path.is_dir() {
        return Err(Error::Folder { path: path.into(), problem: "is not a folder".into() });
    }
    // The version is read on its own first: a record of a later version may have other fields.
    if let Some(Version { format }) = read_json(&file)? {
        check_format(path, format)?;
    }
    let mut record: Option<SweepRecord> = read_json(&file)?;
    if let Some(record) = &mut record
        && !FIGURES.contains(&record.figures.as_str())
    {
        record.figures = Kind::find(&record.kind)?.figures.into();
    }
    if let Some(problem) = record.as_ref().and_then(|record| wrong_runs(&record.runs)) {
        return Err(Error::damaged(&file, problem));
    }
    Ok(record)
}

/// What is wrong with the runs that a record names, if anything: each is the name of a folder, and there once.
fn wrong_runs(runs: &[RunRecord]) -> Option<String> {
    let mut seen = HashSet::new();
    let is_name = |id: &str| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let wrong = runs.iter().find(|run| !is_name(&run.id) || !seen.insert(run.id.as_str()))?;
    let id = pudica_boolean::shortened(&wrong.id, 80);
    Some(if is_name(&wrong.id) { format!("it names run {id} twice") } else { format!("'{id}' is no id of a run") })
}

/// Holds a folder against other processes while the file lives.
pub fn lock(path: &Path) -> Result<File> {
    let file = path.join(".lock");
    let lock =
        OpenOptions::new().create(true).truncate(false).write(true).open(&file).map_err(Error::io("create", &file))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::Folder {
            path: path.into(),
            problem: "another pudica is running in this folder; wait for it or choose another --out".into(),
        }),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", &file)(error)),
    }
}
