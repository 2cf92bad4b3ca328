//! A task of a job array: what it does when it is told to end, and when it fails.

use super::jobs::requeue;
use crate::experiments::Outcome;
use crate::progress::Progress;
use crate::text::counted;
use pudica_boolean::shortened;
use pudica_lab::store::{Owner, read_json, write_json};
use pudica_lab::{Event, Observer, Unit};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// After so many starts without progress a part is left alone, until somebody submits it again.
const MOST_STARTS: u32 = 3;

/// Of a problem so many characters are kept.
const LONGEST_PROBLEM: usize = 1000;

/// How long a task waits for Slurm to end it.
const WAIT_FOR_THE_END: Duration = Duration::from_secs(30);

/// What is kept of a part that has made no progress yet, in `DIR/slurm/failures`.
#[derive(Default, Serialize, Deserialize)]
pub struct Stuck {
    /// Which part, as in 3/12.
    pub part: String,
    /// So often it was started.
    pub starts: u32,
    /// What its last start ended with; nothing while that is at work, or was killed.
    pub problem: Option<String>,
    /// The job of its last start.
    pub job: String,
}

impl Stuck {
    fn read(record: &Path) -> Option<Stuck> {
        read_json(record).ok().flatten() // one that cannot be read says nothing
    }

    /// Those of a folder whose last start has ended with a problem, or that were started too often, in order.
    pub fn all(folder: &Path) -> Vec<Stuck> {
        let entries = std::fs::read_dir(failures(folder)).into_iter().flatten().flatten();
        let mut all: Vec<Stuck> = entries.filter_map(|entry| Stuck::read(&entry.path())).collect();
        all.retain(|one| one.problem.is_some() || one.starts >= MOST_STARTS);
        all.sort_by_key(|one| one.part.split('/').next().and_then(|part| part.parse::<u64>().ok()));
        all
    }

    /// What became of it, in words: "3 starts without progress, and left; the last: ...".
    pub fn words(&self) -> String {
        let left = if self.starts >= MOST_STARTS { ", and left" } else { ", and requeued" };
        let last = self.problem.as_ref().map_or(" said nothing (killed?)".into(), |problem| format!(": {problem}"));
        format!("{} without progress{left}; the last{last}", counted(self.starts as usize, "start"))
    }
}

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
        let before = Stuck::read(&record).map_or(0, |stuck| stuck.starts);
        if before >= MOST_STARTS {
            return Err(format!(
                "part {unit} was started {before} times without any progress and is left; its log says why: {}",
                folder.join("slurm").join(format!("{job}.log")).display()
            )
            .into());
        }
        std::fs::create_dir_all(failures(folder))?;
        // Until it has made progress, this start is one without.
        write_json(&record, &Stuck { part: unit.to_string(), starts: before + 1, problem: None, job: job.clone() })?;
        Ok(Task { progress, job, record, made_progress: AtomicBool::new(false), began: Mutex::default() })
    }

    /// It gets on: what was counted is over.
    pub fn note_progress(&self) {
        if !self.made_progress.swap(true, SeqCst) {
            let _ = std::fs::remove_file(&self.record);
        }
    }

    /// What a task that was told to end, or failed, ends with: Slurm is asked for another start, if there is reason to hope, as this one
    /// made progress or was not yet one too many.
    pub fn end(&self, ended: Outcome) -> Outcome {
        let stuck = Stuck::read(&self.record);
        let starts = stuck.as_ref().map_or(0, |stuck| stuck.starts);
        if let (Some(stuck), Err(problem)) = (stuck, &ended) {
            let problem = Some(shortened(&problem.to_string(), LONGEST_PROBLEM));
            let _ = write_json(&self.record, &Stuck { problem, ..stuck }); // the log has it, too
        }
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
