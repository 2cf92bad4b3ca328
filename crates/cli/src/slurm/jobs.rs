//! Which jobs were submitted for a folder, and what Slurm says about them.

use pudica_lab::store::{read_json, write_bytes, write_json};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::path::Path;
use std::process::Command;

/// `DIR/slurm/jobs.json`.
#[derive(Default, Serialize, Deserialize)]
pub struct Jobs {
    /// Into how many parts the plan is cut; 0 before the first submission.
    pub parts: usize,
    /// One for each time something was submitted.
    pub submitted: Vec<Submitted>,
}

/// A job array and the job after it.
#[derive(Serialize, Deserialize)]
pub struct Submitted {
    /// The array's id.
    pub array: String,
    /// The id of the job that writes the report.
    pub report: Option<String>,
    /// The parts that its tasks make.
    pub parts: Vec<usize>,
}

impl Jobs {
    pub fn read(folder: &Path) -> Result<Jobs, Box<dyn Error>> {
        let path = folder.join("slurm").join("jobs.json");
        match read_json(&path) {
            Err(pudica_lab::Error::Damaged { problem, .. }) => Err(format!(
                "{} is damaged ({problem}); remove it: jobs that are still in the queue go on, and `squeue --me` lists them",
                path.display()
            )
            .into()),
            jobs => Ok(jobs?.unwrap_or_default()),
        }
    }

    pub fn write(&self, folder: &Path) -> Result<(), Box<dyn Error>> {
        Ok(write_json(&folder.join("slurm").join("jobs.json"), self)?)
    }

    /// Parts whose tasks wait or are at work.
    pub fn queued(&self) -> Result<HashSet<usize>, Box<dyn Error>> {
        let mut parts = HashSet::new();
        for one in &self.submitted {
            let tasks = queue(&one.array, "%K")?;
            parts.extend(tasks.iter().filter_map(|task| task.parse::<usize>().ok()));
        }
        Ok(parts)
    }

    /// How many tasks are in which state, as far as Slurm answers.
    pub fn states(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for state in self.submitted.iter().flat_map(|one| queue(&one.array, "%T").unwrap_or_default()) {
            *counts.entry(state).or_default() += 1;
        }
        counts
    }

    /// The jobs that Slurm still has.
    pub fn living(&self) -> Result<Vec<String>, Box<dyn Error>> {
        let mut ids = Vec::new();
        for id in self.submitted.iter().flat_map(|one| [Some(&one.array), one.report.as_ref()]).flatten() {
            if !queue(id, "%i")?.is_empty() {
                ids.push(id.clone());
            }
        }
        Ok(ids)
    }
}

/// What squeue says about a job, one line per task; nothing where it is no longer known.
fn queue(job: &str, format: &str) -> Result<Vec<String>, Box<dyn Error>> {
    match said("squeue", &["-h", "-r", "-j", job, "-o", format]) {
        Ok(text) => Ok(text.lines().map(|line| line.trim().to_string()).filter(|line| !line.is_empty()).collect()),
        Err(error) if error.to_string().contains("Invalid job id") => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The most tasks that an array can have here: numbers go from 1 to this.
pub fn most_tasks(dry_run: bool) -> Result<usize, Box<dyn Error>> {
    let config = match said("scontrol", &["show", "config"]) {
        Err(_) if dry_run => return Ok(1000), // Slurm's own default; a script can be looked at anywhere
        // The first question of all: where it fails, nothing else can work.
        config => config.map_err(|error| {
            format!("Slurm does not answer here, so nothing was submitted: submit from a machine where `scontrol show config` works, or leave --engine slurm out ({error})")
        })?,
    };
    let size = config
        .lines()
        .find_map(|line| line.strip_prefix("MaxArraySize")?.split('=').nth(1)?.trim().parse::<usize>().ok());
    Ok(size.unwrap_or(1001).saturating_sub(1).max(1))
}

/// Submits a script of this name, after writing it under `DIR/slurm`; the job's id.
pub fn sbatch(folder: &Path, name: &str, script: &str, options: &[&str]) -> Result<String, Box<dyn Error>> {
    let logs = folder.join("slurm");
    std::fs::create_dir_all(&logs).map_err(|error| format!("cannot create {}: {error}", logs.display()))?;
    let path = logs.join(name);
    write_bytes(&path, script.as_bytes())?;
    let path = path.to_string_lossy();
    let answer = said("sbatch", &[&["--parsable"], options, &[&path]].concat())?;
    // "123", or "123;cluster".
    let id = answer.trim().split(';').next().unwrap_or_default().to_string();
    if id.is_empty() { Err(format!("sbatch answered `{answer}`, not with a job's id").into()) } else { Ok(id) }
}

/// Cancels jobs.
pub fn cancel(ids: &[String]) -> Result<(), Box<dyn Error>> {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    said("scancel", &ids).map(|_| ())
}

/// Asks Slurm to end this job and start it again; not if somebody has cancelled it, which a request would undo.
pub fn requeue(job: &str) -> Result<bool, Box<dyn Error>> {
    let states = queue(job, "%T")?;
    let is_running = states.iter().any(|state| !["COMPLETING", "CANCELLED"].contains(&state.as_str()));
    if is_running {
        said("scontrol", &["requeue", job])?;
    }
    Ok(is_running)
}

/// What one of Slurm's commands prints.
fn said(program: &str, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let answer = Command::new(program).args(arguments).output().map_err(|error| {
        let hint = "is Slurm installed here? `--unit` needs none (docs/cluster.md)";
        format!("cannot start {program}: {error}; {hint}")
    })?;
    if !answer.status.success() {
        let words = String::from_utf8_lossy(&answer.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        return Err(format!("{program} refused: {words}").into());
    }
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
}
