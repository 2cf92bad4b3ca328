//! `pudica run --engine slurm` and `pudica stop`: a sweep as one job array. Slurm schedules, throttles and requeues; each task is
//! `pudica run ... --unit K/N` in the same folder.

mod defaults;
mod jobs;
mod script;
mod task;

pub use task::{Stuck, Task};

use crate::Ending;
use crate::arguments::{repeated, whole};
use crate::experiments::Outcome;
use crate::text::{counted, seconds};
use clap::{Args, ValueEnum};
use jobs::{Jobs, Submitted};
use pudica_lab::plan::PlannedRun;
use pudica_lab::store::{Failure, RunFolder, Status};
use pudica_lab::{Machine, Plan, SweepFolder, estimate, open};
use script::{Script, TimeLimit};
use serde_json::json;
use std::collections::HashSet;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Reads the configuration file as submitting does; for `tests/fuzz`.
pub fn read_defaults() -> Result<(), String> {
    defaults::filled_in(&Options::default(), true).map(|_| ())
}

/// Where the runs are made.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Engine {
    /// As jobs of a Slurm cluster
    Slurm,
}

/// How a sweep becomes jobs. Each can also stand in ~/.config/pudica/slurm.toml, under the same name.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "On a cluster (docs/cluster.md)")]
pub struct Options {
    /// Submit the runs as one Slurm job array, and return at once
    #[arg(long, value_enum, conflicts_with_all = ["unit", "requeue"])]
    pub engine: Option<Engine>,
    /// The partition
    #[arg(long, value_name = "NAME", requires = "engine")]
    pub partition: Option<String>,
    /// The account
    #[arg(long, value_name = "NAME", requires = "engine")]
    pub account: Option<String>,
    /// GPUs per task, as sbatch takes them: 1, or h100:1
    #[arg(long, value_name = "GPUS", requires = "engine")]
    pub gpus: Option<String>,
    /// CPU cores per task
    #[arg(long, value_name = "N", requires = "engine", value_parser = whole::<u32>(1..=u64::from(u32::MAX)))]
    pub cpus: Option<u32>,
    /// Memory per task, such as 16G
    #[arg(long, value_name = "SIZE", requires = "engine")]
    pub mem: Option<String>,
    /// Time limit per task, such as 2:00:00; a task that needs more is saved, requeued and goes on
    #[arg(long, value_name = "TIME", requires = "engine")]
    pub time: Option<String>,
    /// Tasks at work at the same time, at most
    #[arg(long, value_name = "N", requires = "engine", value_parser = whole::<u32>(1..=u64::from(u32::MAX)))]
    pub at_once: Option<u32>,
    /// Further options for sbatch, such as "--qos=long --constraint=a100"
    #[arg(long, value_name = "OPTIONS", requires = "engine", allow_hyphen_values = true)]
    pub sbatch: Option<String>,
    /// A shell command before pudica starts, such as "module load cuda"
    #[arg(long, value_name = "COMMAND", requires = "engine")]
    pub setup: Option<String>,
    /// Print the job scripts; submit nothing, write nothing
    #[arg(long, requires = "engine")]
    pub dry_run: bool,
}

impl Options {
    /// What goes into a line of the job script must be one word, or at least one line.
    fn check(&self) -> Result<(), String> {
        let Options { partition, account, gpus, mem, sbatch, setup, .. } = self;
        for (flag, value) in [("partition", partition), ("account", account), ("gpus", gpus), ("mem", mem)] {
            if let Some(value) = value.as_ref().filter(|value| value.is_empty() || value.contains(char::is_whitespace))
            {
                let value = repeated(value);
                return Err(format!("--{flag} '{value}': give one word, as sbatch takes it, or leave it out"));
            }
        }
        if setup.as_ref().is_some_and(|command| command.trim().is_empty()) {
            return Err("--setup has no command: give one, or leave it out".into());
        }
        let mut words = sbatch.iter().flat_map(|options| options.split_whitespace());
        let own = |word: &&str| {
            OWN.iter().any(|own| word.split('=').next() == Some(own))
                || word.starts_with("-a")
                || word.starts_with("-o")
        };
        if let Some(word) = words.find(own) {
            let word = repeated(word);
            return Err(format!("--sbatch '{word}': pudica sets this itself; --at-once, --time and --out decide it"));
        }
        match sbatch.as_ref().filter(|options| !options.trim_start().starts_with('-') || options.contains('\n')) {
            Some(options) => {
                Err(format!("--sbatch '{}': give sbatch's options on one line, as in --qos=long", repeated(options)))
            }
            None => Ok(()),
        }
    }
}

/// Options of sbatch that decide which parts are made, where their logs are and when they save; the first two have a letter as well.
const OWN: [&str; 3] = ["--array", "--output", "--signal"];

/// Parts where nothing says how many.
const DEFAULT_PARTS: usize = 8;

/// A part takes about this fraction of the time limit, so that little waits for the last one.
const FRACTION_OF_LIMIT: f64 = 0.25;

/// Submits what is left of a sweep.
pub fn submit(options: &Options, plan: &Plan, machine: &Machine, folder: &Path, is_json: bool) -> Outcome {
    // On a login node there is no GPU: what needs one is found out by the tasks.
    let here = plan.runs.iter().all(|run| run.settings.compute().is_some_and(|compute| compute.device == "cpu"));
    let options = defaults::filled_in(options, !here)?;
    options.check()?;
    let limit = options.time.as_deref().map(str::parse::<TimeLimit>).transpose()?;
    let most = jobs::most_tasks(options.dry_run)?;
    let experiment = if here { Some(open(plan, machine)?) } else { None };
    let folder = absolute(folder)?;
    let is_new = !folder.exists();
    SweepFolder::check(&folder, plan, machine)?;
    let mut jobs = Jobs::read(&folder)?;
    let damaged = before(&folder, plan, machine, &mut jobs)?;
    let parts = match jobs.parts {
        0 => {
            let by_time = match (&experiment, limit) {
                (Some(experiment), Some(limit)) => {
                    let time = estimate(plan, experiment.as_ref(), machine)?;
                    (time.seconds / (FRACTION_OF_LIMIT * limit.seconds())).ceil() as usize
                }
                (_, Some(_)) => 1, // not known here, and the runs of a GPU go together
                (_, None) => DEFAULT_PARTS,
            };
            by_time.max(options.at_once.map_or(DEFAULT_PARTS, |count| count as usize))
        }
        parts => parts,
    };
    let parts = parts.clamp(1, plan.runs.len().clamp(1, most));
    let queued = jobs.queued()?;
    let is_missing =
        |run: &PlannedRun| damaged.contains(&run.id) || !RunFolder::new(folder.join("runs").join(&run.id)).has_ended();
    let mut is_left = vec![experiment.is_none(); parts]; // not known here: a task with nothing to do ends at once
    if let Some(experiment) = &experiment {
        for (run, part) in plan.runs.iter().zip(pudica_lab::parts(plan, experiment.as_ref(), parts)?) {
            is_left[part] |= is_missing(run);
        }
    }
    let left: Vec<usize> = (1..=parts).filter(|part| is_left[part - 1] && !queued.contains(part)).collect();
    let missing = plan.runs.iter().filter(|run| is_missing(run)).count();
    if missing == 0 || left.is_empty() {
        if is_json {
            println!("{}", json!({"event": "nothing_to_submit", "folder": folder, "missing": missing}));
            return Ok(Ending::Done);
        }
        let why = if missing == 0 { "all its runs are there" } else { "all that is left is in Slurm's queue" };
        println!("nothing to submit: {why}; `pudica status {}` tells how it stands", folder.display());
        return Ok(Ending::Done);
    }
    let script = Script { options: &options, limit, plan, machine, folder: &folder, parts };
    let (task, report) = (script.task(&left)?, script.report()?);
    if options.dry_run && is_json {
        println!("{}", json!({"event": "dry_run", "folder": folder, "task": task, "report": report}));
        return Ok(Ending::Done);
    }
    if options.dry_run {
        println!("# {}/slurm/task.sh\n{task}\n# {}/slurm/report.sh\n{report}", folder.display(), folder.display());
        return Ok(Ending::Done);
    }
    let mut notices = Vec::new();
    SweepFolder::announce(&folder, plan, machine, &mut notices)?;
    notices.iter().for_each(|text| eprintln!("{text}"));
    task::forget_failures(&folder)?;
    let array = jobs::sbatch(&folder, "task.sh", &task, &[]).inspect_err(|_| {
        if is_new {
            unmake(&folder);
        }
    })?;
    let after = format!("--dependency=afterany:{array}");
    let last = jobs::sbatch(&folder, "report.sh", &report, &[&after]);
    jobs.parts = parts;
    jobs.submitted.push(Submitted { array: array.clone(), report: last.as_ref().ok().cloned(), parts: left.clone() });
    jobs.write(&folder)?;
    if is_json {
        let report = last.as_ref().ok();
        println!(
            "{}",
            json!({"event": "submitted", "folder": folder, "job": array, "report": report, "parts": left, "runs": missing})
        );
        return last.map(|_| Ending::Done);
    }
    let at_once = options.at_once.map_or(String::new(), |count| format!(", {count} at once"));
    println!(
        "submitted: job {array}, {} for {}{at_once}{}",
        counted(left.len(), "task"),
        counted(missing, "run"),
        last.as_ref().map_or(String::new(), |job| format!(", and job {job} for the report"))
    );
    println!("  pudica status {}    how far it is, with --watch again and again", folder.display());
    println!("  pudica stop {}      ends it; the same command goes on with what is left", folder.display());
    println!("  {}/slurm/           the tasks' logs", folder.display());
    if let Some(limit) = limit {
        println!("A task that reaches the time limit ({}) saves, is requeued and goes on.", seconds(limit.seconds()));
    }
    last.map(|_| Ending::Done)
}

/// What is to be known of a folder that holds runs already: which of them are damaged and to be made again. Refused where that is not asked
/// for, and where the tasks in the queue know of fewer runs than the plan has: they would find a sweep that is not theirs.
fn before(folder: &Path, plan: &Plan, machine: &Machine, jobs: &mut Jobs) -> Result<HashSet<String>, Box<dyn Error>> {
    let Ok(sweep) = SweepFolder::open(folder) else { return Ok(HashSet::new()) };
    let folder = folder.display();
    let damaged = Status::of(sweep.path())?.damaged;
    if let Some(first) = damaged.first().filter(|_| !machine.repair) {
        let (count, Failure { id, label, problem }) = (counted(damaged.len(), "run"), first);
        let problem = format!("{count} damaged and not counted (run {id} ({label}): {problem})");
        return Err(
            format!("{folder}: {problem}; the same command with --repair submits what is to be made again").into()
        );
    }
    if !sweep.record().runs.iter().map(|run| &run.id).eq(plan.runs.iter().map(|run| &run.id)) {
        if !jobs.living()?.is_empty() {
            let problem = "its jobs in Slurm's queue are for fewer runs than this command has";
            return Err(format!("{folder}: {problem}; wait for them, or end them by `pudica stop {folder}`").into());
        }
        jobs.parts = 0; // cut anew
    }
    Ok(damaged.into_iter().map(|run| run.id).collect())
}

/// Nothing is left of a folder that was made for jobs which Slurm refused.
fn unmake(folder: &Path) {
    let logs = folder.join("slurm");
    for file in [logs.join("task.sh"), folder.join("sweep.json")] {
        let _ = std::fs::remove_file(file);
    }
    for empty in [logs, folder.join("runs"), folder.into()] {
        let _ = std::fs::remove_dir(empty); // not where somebody else has put something
    }
}

fn absolute(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let folder = std::path::absolute(folder)?;
    match folder.to_str() {
        Some(text) if !text.contains(['\n', '"', '\\']) => Ok(folder),
        _ => Err(format!("{}: Slurm cannot take such a folder's name; choose another --out", folder.display()).into()),
    }
}

/// Cancel the jobs of a sweep; what they have made stays, and running its command again goes on
#[derive(Args)]
pub struct Stop {
    /// A folder that `pudica run --engine slurm` writes
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Cancels the jobs of a sweep that are still in the queue.
pub fn stop(arguments: &Stop) -> Outcome {
    if !arguments.folder.is_dir() {
        return Err(format!("{}: there is no such folder", arguments.folder.display()).into());
    }
    let jobs = Jobs::read(&arguments.folder)?;
    if jobs.submitted.is_empty() {
        let problem = "no jobs were submitted for this folder; a process that runs here ends by Ctrl-C or SIGTERM";
        return Err(format!("{}: {problem}", arguments.folder.display()).into());
    }
    let ids = jobs.living()?;
    if ids.is_empty() {
        println!("none of its jobs is in Slurm's queue any more");
        return Ok(Ending::Done);
    }
    jobs::cancel(&ids)?;
    println!("cancelled: {}", ids.join(", "));
    Ok(Ending::Done)
}

/// What Slurm says about the jobs of a folder, in words; nothing where there are none or it does not answer.
pub fn in_queue(folder: &Path) -> Option<String> {
    let states = Jobs::read(folder).ok()?.states();
    let counts: Vec<String> = states.iter().map(|(state, count)| format!("{count} {}", state.to_lowercase())).collect();
    (!counts.is_empty()).then(|| format!("{} (as Slurm says)", counts.join(", ")))
}
