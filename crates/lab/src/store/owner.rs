//! Which process: unlike any other on any machine that sees the folder, and whether it still lives, as far as that can be told.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::Command;

use serde::{Deserialize, Serialize};

/// A process that works in a sweep's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The machine's name.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// When it began, in ticks of its machine: numbers of processes come again. 0 where that is not known.
    pub born: u64,
    /// What else tells it from all others.
    pub random: String,
    /// The machine since its last start, and which processes it sees; empty where that is not known.
    pub machine: String,
    /// Its Slurm job: `1234_5` or `1234`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// How often Slurm has started this job again.
    #[serde(default)]
    pub restarts: u32,
}

impl Owner {
    /// This process.
    pub fn this() -> Owner {
        let pid = std::process::id();
        let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or_default();
        let boot = read("/proc/sys/kernel/random/boot_id");
        let processes = std::fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
        let machine = match (boot.is_empty(), processes) {
            (false, Ok(processes)) => format!("{boot} {processes}"),
            _ => String::new(),
        };
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let task = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
        let job = task.map(|(job, task)| format!("{job}_{task}")).or_else(|| variable("SLURM_JOB_ID"));
        Owner {
            host: pudica_boolean::atomic::host().into(),
            pid,
            born: born(pid).unwrap_or(0),
            random: format!("{:012x}", RandomState::new().build_hasher().finish() >> 16),
            machine,
            job,
            restarts: variable("SLURM_RESTART_COUNT").and_then(|text| text.parse().ok()).unwrap_or(0),
        }
    }

    /// Its name in files.
    pub fn id(&self) -> String {
        format!("{}-{}-{}", self.host, self.pid, self.random)
    }

    /// Whether this process sees the other one among its own.
    fn sees(&self, other: &Owner) -> bool {
        !self.machine.is_empty() && self.machine == other.machine
    }

    /// Whether another process has ended, where this one can see it; `None`: it cannot.
    pub fn sees_gone(&self, other: &Owner) -> Option<bool> {
        self.sees(other).then(|| born(other.pid).is_none_or(|born| born != other.born))
    }

    /// Whether the other is an earlier start of this job: Slurm ends a job before it starts it again.
    pub(crate) fn follows(&self, other: &Owner) -> bool {
        self.job.is_some() && self.job == other.job && self.restarts > other.restarts
    }

    /// Whether another process has ended, Slurm asked where need be; `None`: that cannot be told from here.
    pub(crate) fn knows_gone(&self, other: &Owner) -> Option<bool> {
        if self.follows(other) {
            return Some(true);
        }
        if let Some(gone) = self.sees_gone(other) {
            return Some(gone);
        }
        let job = other.job.as_ref().filter(|job| self.job.as_ref() != Some(job))?;
        match state_of_job(job)?.as_str() {
            // Not among the jobs any more, or waiting to be started again.
            "" | "PENDING" | "REQUEUED" | "REQUEUE_HOLD" => Some(true),
            "CANCELLED" | "COMPLETED" | "FAILED" | "TIMEOUT" | "NODE_FAIL" | "PREEMPTED" | "OUT_OF_MEMORY"
            | "BOOT_FAIL" | "DEADLINE" => Some(true),
            _ => None, // at work, perhaps as a later start: its beats tell
        }
    }
}

/// When a process of this machine began, in ticks since the machine's start; `None` if there is none of this number (a dead one that
/// nobody has asked for yet counts as none).
fn born(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything; the fields after it are the state and, 19 later, the start.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

/// What Slurm says about a job, empty if it does not know it any more; `None` if there is no answer.
fn state_of_job(job: &str) -> Option<String> {
    let answer = Command::new("squeue").args(["-h", "-j", job, "-o", "%T"]).output().ok()?;
    if !answer.status.success() {
        let is_unknown = String::from_utf8_lossy(&answer.stderr).contains("Invalid job id");
        return is_unknown.then(String::new);
    }
    Some(String::from_utf8_lossy(&answer.stdout).lines().next().unwrap_or_default().trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_others_and_its_end_is_noticed() {
        let (own, again) = (Owner::this(), Owner::this());
        assert_ne!(own.id(), again.id());
        assert!(own.id().chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        if own.machine.is_empty() {
            return; // no /proc here: nothing can be told
        }
        assert_eq!(own.knows_gone(&again), Some(false));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let other = Owner { pid: child.id(), born: born(child.id()).unwrap(), ..Owner::this() };
        assert_eq!(own.knows_gone(&other), Some(false));
        assert_eq!(
            own.knows_gone(&Owner { born: other.born + 1, ..other.clone() }),
            Some(true),
            "its number came again"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(own.knows_gone(&other), Some(true));
        let elsewhere = Owner { machine: "another".into(), ..other };
        assert_eq!(own.knows_gone(&elsewhere), None, "another machine's processes are not seen");
        let before = Owner { job: Some("7_1".into()), ..elsewhere };
        let after = Owner { restarts: 1, ..Owner { job: Some("7_1".into()), ..own } };
        assert_eq!(after.knows_gone(&before), Some(true), "Slurm has started the job again");
    }
}
