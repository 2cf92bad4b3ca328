//! A task of a job array: what it does when it is told to end, and when it fails.

use super::jobs::requeue;
use crate::experiments::Outcome;
use crate::progress::Progress;
use pudica_lab::store::{Owner, read_json, write_json};
use pudica_lab::{Event, Observer, Unit};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// After so many starts without progress a part is left alone, until somebody submits it again.
const MOST_STARTS: u32 = 3;

/// How long a task waits for Slurm to end it.
const WAIT_FOR_THE_END: Duration = Duration::from_secs(30);

/// A part of a sweep within a Slurm job that may start itself again.
pub struct Task<'a> {
    progress: &'a Progress,
    job: String,
    /// Counts the starts without progress.
    record: PathBuf,
    made_progress: AtomicBool,
    began: Mutex<HashMap<String, u64>>,
}

impl<'a> Task<'a> {
    /// This process, as a task for `unit` in `folder`; refused where the part has failed too often. `progress` is told everything.
    pub fn start(folder: &Path, unit: Unit, progress: &'a Progress) -> Result<Task<'a>, Box<dyn Error>> {
        let job = Owner::this().job.ok_or("--requeue is for a process within a Slurm job; leave it out elsewhere")?;
        let record = failures(folder).join(format!("{}-of-{}.json", unit.part, unit.of));
        let before = starts(&record);
        if before >= MOST_STARTS {
            return Err(format!(
                "part {unit} was started {before} times without any progress and is left; its log says why: {}",
                folder.join("slurm").join(format!("{job}.log")).display()
            )
            .into());
        }
        std::fs::create_dir_all(failures(folder))?;
        write_json(&record, &(before + 1))?; // until it has made progress, this start is one without
        Ok(Task { progress, job, record, made_progress: AtomicBool::new(false), began: Mutex::default() })
    }

    fn note_progress(&self) {
        if !self.made_progress.swap(true, SeqCst) {
            let _ = std::fs::remove_file(&self.record); // what it counts is over
        }
    }

    /// What a task that was told to end, or failed, ends with: Slurm is asked for another start, if there is reason to hope, as this one
    /// made progress or was not yet one too many.
    pub fn end(&self, ended: Outcome) -> Outcome {
        let starts = starts(&self.record);
        if starts >= MOST_STARTS {
            eprintln!("this was start {starts} without any progress: it is left, until somebody submits it again");
            return ended;
        }
        if let Err(problem) = &ended {
            eprintln!("pudica: {problem}");
        }
        match requeue(&self.job) {
            // Slurm ends this process now; a job that ends by itself first would count as done.
            Ok(true) => {
                eprintln!("asked Slurm to start job {} again", self.job);
                std::thread::sleep(WAIT_FOR_THE_END);
            }
            Ok(false) => eprintln!("job {} was cancelled", self.job),
            Err(problem) => eprintln!("pudica: {problem}; run the same command again later"),
        }
        ended
    }
}

/// Starts without progress so far; none where the record cannot be read.
fn starts(record: &Path) -> u32 {
    read_json(record).ok().flatten().unwrap_or(0)
}

fn failures(folder: &Path) -> PathBuf {
    folder.join("slurm").join("failures")
}

/// Every part may be tried again: somebody has submitted it.
pub fn forget_failures(folder: &Path) -> Result<(), Box<dyn Error>> {
    match std::fs::remove_dir_all(failures(folder)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

impl Observer for Task<'_> {
    fn notice(&self, event: &Event) {
        let mut began = self.began.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match event {
            Event::RunStarted { id, from_step, .. } => drop(began.insert(id.clone(), *from_step)),
            Event::Progress { id, step, .. } if began.get(id).is_some_and(|from| step > from) => self.note_progress(),
            Event::RunEnded { .. } => self.note_progress(),
            _ => {}
        }
        drop(began);
        self.progress.notice(event);
    }
}
