//! `pudica status`: how a sweep stands, from its files, on any machine that sees them.

use crate::Ending;
use crate::experiments::Outcome;
use crate::slurm::{self, Stuck};
use crate::text::{counted, grouped, number, seconds};
use clap::Args;
use pudica_lab::SweepFolder;
use pudica_lab::store::{AtWork, Failure, Status};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tell how a sweep stands: what is finished, at work (where, how far, how long still), waiting and failed
///
/// It reads the files of the folder only, so it can be asked on any machine that sees them, while processes or jobs work there.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A folder that `pudica run` writes
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Tell again every two seconds until nothing is left to be made
    #[arg(long)]
    watch: bool,
    /// Print one JSON object, or one per line with --watch
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pudica status runs/hahn/tradeoff-paper
  pudica status /shared/tradeoff --watch";

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// More than this are counted, not listed.
const LISTED: usize = 20;

pub fn run(arguments: &Arguments) -> Outcome {
    loop {
        let status = Status::of(&arguments.folder)?;
        if arguments.json {
            println!("{}", object(&arguments.folder, &status)?);
        } else {
            print!("{}", words(&arguments.folder, &status)?);
        }
        if !arguments.watch || status.is_complete() {
            return Ok(Ending::Done);
        }
        std::thread::sleep(LOOK_EVERY);
        if !arguments.json {
            println!();
        }
    }
}

/// For programs.
fn object(folder: &Path, status: &Status) -> Result<Value, Box<dyn std::error::Error>> {
    let sweep = SweepFolder::open(folder)?;
    let mut object = json!({"folder": folder, "recipe": sweep.record().recipe, "scale": sweep.record().scale});
    if let (Some(object), Value::Object(found)) = (object.as_object_mut(), serde_json::to_value(status)?) {
        object.extend(found);
    }
    let stuck = Stuck::all(folder)
        .into_iter()
        .map(|one| json!({"unit": one.part, "starts": one.starts, "problem": one.problem, "job": one.job}));
    object["stuck"] = stuck.collect();
    for list in ["processes", "silent", "ended", "stuck"] {
        let Some(processes) = object[list].as_array_mut() else { continue };
        for process in processes {
            let log = process["job"].as_str().and_then(|job| log_of(folder, job));
            process["log"] = log.map_or(Value::Null, |log| json!(log));
        }
    }
    Ok(object)
}

/// Where a job writes its log.
fn log_of(folder: &Path, job: &str) -> Option<PathBuf> {
    let log = folder.join("slurm").join(format!("{job}.log"));
    log.is_file().then_some(log)
}

/// For people.
fn words(folder: &Path, status: &Status) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let counts = [
        (status.finished, "finished"),
        (status.failed.len(), "failed"),
        (status.skipped, "skipped"),
        (status.damaged.len(), "damaged"),
        (status.at_work, "at work"),
        (status.interrupted, "interrupted"),
        (status.waiting, "waiting"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, what)| *count > 0 || *what == "finished")
        .map(|(count, what)| format!("{} {what}", grouped(*count as u64)))
        .collect();
    writeln!(text, "{}: {}", counted(status.runs, "run"), counts.join(", "))?;
    if let Some(queue) = (!status.is_complete()).then(|| slurm::in_queue(folder)).flatten() {
        writeln!(text, "tasks: {queue}")?;
    }
    list(&mut text, "at work", &status.processes, at_work)?;
    list(&mut text, "silent (killed, or their machine is)", &status.silent, |one| {
        format!("{}, last heard of {} ago{}", place(one), seconds(one.age()), log(folder, one))
    })?;
    list(&mut text, "ended with an error", &status.ended, |one| {
        let errors = one.errors.first().cloned().unwrap_or_default();
        let more = if one.errors.len() > 1 { format!(" (and {} more)", one.errors.len() - 1) } else { String::new() };
        format!("{}: {errors}{more}{}", place(one), log(folder, one))
    })?;
    let stuck = if status.is_complete() { Vec::new() } else { Stuck::all(folder) };
    list(&mut text, "not getting on", &stuck, |one| {
        let log = log_of(folder, &one.job).map_or(String::new(), |log| format!("; log: {}", log.display()));
        format!("unit {}, job {}: {}{log}", one.part, one.job, one.words())
    })?;
    let line = |run: &Failure| format!("{} ({}): {}", run.id, run.label, run.problem);
    list(&mut text, "failed", &status.failed, line)?;
    list(&mut text, "damaged, made again by the same `pudica run` with --repair", &status.damaged, line)?;
    Ok(text)
}

fn list<T>(text: &mut String, title: &str, items: &[T], line: impl Fn(&T) -> String) -> std::fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(text, "{title}:")?;
    for item in items.iter().take(LISTED) {
        writeln!(text, "  {}", line(item))?;
    }
    if items.len() > LISTED {
        writeln!(text, "  and {} more; --json lists all", items.len() - LISTED)?;
    }
    Ok(())
}

/// "unit 3/12 on node7, job 812_3".
fn place(one: &AtWork) -> String {
    let unit = one.unit.as_ref().map_or(String::new(), |unit| format!("unit {unit} "));
    let process = match &one.owner.job {
        Some(job) => format!("job {job}"),
        None => format!("process {}", one.owner.pid),
    };
    format!("{unit}on {}, {process}", one.owner.host)
}

fn log(folder: &Path, one: &AtWork) -> String {
    let log = one.owner.job.as_ref().and_then(|job| log_of(folder, job));
    log.map_or(String::new(), |log| format!("; log: {}", log.display()))
}

fn at_work(one: &AtWork) -> String {
    let mut text = format!("{}: {} of {}", place(one), grouped(one.ended as u64), counted(one.runs, "run"));
    if let Some(first) = one.at.first() {
        let others = if one.at.len() > 1 { format!(" and {} more", one.at.len() - 1) } else { String::new() };
        text += &format!(", at {}{others}", first.label);
        if first.steps > 0 {
            text += &format!(", step {} of {}", grouped(first.step), grouped(first.steps));
        }
    }
    if one.steps_per_second > 0.0 {
        text += &format!(", {} steps/s", number((one.steps_per_second * 10.0).round() / 10.0));
    }
    if let Some(left) = one.seconds_left {
        text += &format!(", {} left", seconds(left.max(1.0)));
    }
    text
}
