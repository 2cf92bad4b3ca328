//! `pudica run`: the runs of a plan, or a part of them, and their report.

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Args;
use pudica_lab::store::SweepFolder;
use pudica_lab::{Observer, Plan, Stop, Tally, Unit, execute_with, open};

use super::report::{print_tally, write_report};
use super::{Outcome, What};
use crate::progress::Progress;
use crate::signals::{if_it_takes_long, stop_on_signals};
use crate::text::counted;
use crate::{Ending, slurm, tell_fast_build};

/// Run an experiment and write its report
///
/// Running the same command again continues: finished runs are kept, interrupted ones go on from their last checkpoint and end with
/// the same numbers. Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 save and end.
#[derive(Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    what: What,
    /// Folder for runs and report; by default runs/RECIPE-SCALE, with other settings in its name
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Make only one part of the runs: 3/12 is the third of twelve parts of about equal cost (docs/cluster.md)
    #[arg(long, value_name = "K/N", allow_hyphen_values = true)]
    unit: Option<Unit>,
    /// In a Slurm job: when it is told to end, or fails, ask Slurm to start it again, unless three starts made no progress
    #[arg(long, requires = "unit")]
    requeue: bool,
    /// Make damaged runs again; what was there is moved to DIR/damaged
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    slurm: slurm::Options,
    /// Print one JSON object per line for each event
    #[arg(long)]
    json: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  pudica run hahn/length-scaling                          quick scale: minutes on two CPU cores
  pudica run hahn/length-scaling --scale paper            the published settings, nothing changed
  pudica run hahn/length-scaling --device cuda            as many runs at once as fit on an NVIDIA GPU
  pudica run hahn/length-scaling model.d=64 seed=0..10    settings changed, as Hydra users type them
  pudica run vasudeva/mnist --data DIR                    networks on real images; `pudica data fetch` gets them
  pudica run my-experiment.toml --out results/mine        your own recipe; `pudica show` explains it first
  pudica run hahn/tradeoff --out DIR --unit 3/12          one of twelve parts; `pudica merge` joins folders";

impl Run {
    /// What it does before it tells of itself, for who waits.
    pub fn doing(&self) -> String {
        format!("planning {}, and trying whether data and networks are there", self.what.recipe)
    }
}

/// Runs a plan, or what is left of it, and writes its report.
pub fn run(arguments: &Run) -> Outcome {
    let stop = Stop::new();
    if arguments.requeue {
        stop_on_signals(stop.clone())?; // from the beginning: a job that is told to end asks to be started again
    }
    let progress = Progress::new(arguments.json);
    // Of a submitted sweep, a task whose plan or data cannot be had is one that failed, too.
    let submitted = arguments.out.as_ref().filter(|folder| folder.join("sweep.json").is_file());
    let mut task = start(arguments, submitted.map(PathBuf::as_path), &progress)?;
    // Who asks Slurm for GPUs wants the runs to compute there.
    let (plan, mut machine) = match (arguments.what.plan(arguments.slurm.gpus.is_some()), &task) {
        (Err(problem), Some(task)) => return task.end(Err(problem)),
        (plan, _) => plan?,
    };
    (machine.unit, machine.repair) = (arguments.unit, arguments.repair);
    let folder = arguments.out.clone().unwrap_or_else(|| plan.default_folder());
    if arguments.slurm.engine.is_some() {
        return slurm::submit(&arguments.slurm, &plan, &machine, &folder, arguments.json);
    }
    if task.is_none() {
        task = start(arguments, Some(&folder), &progress)?;
    }
    let observer: &dyn Observer = match &task {
        Some(task) => task,
        None => &progress,
    };
    let ended = make(&plan, &folder, &machine, observer, &progress, &stop);
    match task {
        Some(task) if matches!(ended, Ok(Ending::Done)) => {
            task.note_progress(); // there may have been nothing to make
            ended
        }
        Some(task) => task.end(ended),
        None => ended,
    }
}

/// The task of Slurm that this process is, in a folder that is known.
fn start<'a>(
    arguments: &Run,
    folder: Option<&Path>,
    progress: &'a Progress,
) -> Result<Option<slurm::Task<'a>>, Box<dyn Error>> {
    match (arguments.unit.filter(|_| arguments.requeue), folder) {
        (Some(unit), Some(folder)) => slurm::Task::start(folder, unit, progress).map(Some),
        _ => Ok(None),
    }
}

/// Makes the runs of a plan, or of a part of it, and writes the report once all are there.
fn make(
    plan: &Plan,
    folder: &Path,
    machine: &pudica_lab::Machine,
    observer: &dyn Observer,
    progress: &Progress,
    stop: &Stop,
) -> Outcome {
    let experiment = open(plan, machine)?;
    // Until here nothing was written, and a signal ends it at once; from here on there is something to save.
    stop_on_signals(stop.clone())?;
    if_it_takes_long(stop.clone(), || {
        eprintln!("stopping: the step at work is finished and saved first; the same signal again ends it at once");
    });
    tell_fast_build();
    let tally = execute_with(experiment.as_ref(), plan, folder, machine, observer, stop)?;
    if tally.stopped && tally.remaining > 0 {
        eprintln!("stopped with {} to go, all saved; the same command continues", counted(tally.remaining, "run"));
        return Ok(Ending::Interrupted);
    }
    if tally.elsewhere > 0 {
        let (count, folder) = (counted(tally.elsewhere, "run"), folder.display());
        eprintln!("{count} left to other processes that are making them in this folder: `pudica status {folder}`");
    }
    let missing = match machine.unit {
        Some(_) => SweepFolder::open(folder)?.missing(),
        None => 0,
    };
    match missing {
        0 => drop(write_report(folder, progress, &[])?), // `execute` has told what is damaged
        _ => print_part(&tally, missing, folder, progress),
    }
    if tally.damaged > 0 {
        let damaged = counted(tally.damaged, "run");
        return Err(format!(
            "{damaged} damaged and not counted; run the same command with --repair to make them again"
        )
        .into());
    }
    match tally.errors.len() {
        0 => Ok(Ending::Done),
        errors => Err(format!(
            "{} met an error and wait for the same command ({}); the first: {}",
            counted(tally.remaining, "run"),
            counted(errors, "error"),
            tally.errors[0]
        )
        .into()),
    }
}

/// What a part of a sweep ends with: the page is for the whole.
fn print_part(tally: &Tally, missing: usize, folder: &Path, progress: &Progress) {
    if matches!(progress, Progress::Json) {
        return; // its last event is the tally
    }
    print_tally(tally);
    println!(
        "{} of the sweep not here yet; the page is written with the last of them, by `pudica merge`, or now by `pudica report {}`",
        counted(missing, "run"),
        folder.display()
    );
}
