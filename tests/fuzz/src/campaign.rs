//! Many processes over all targets: one that ends itself ends no other, and is started again.

use crate::fuzzer::{Fuzzer, Tally};
use crate::memory::KEEP;
use crate::target::Target;
use crate::watch;
use std::collections::HashMap;
use std::ffi::CString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A process turns to the next target after this time.
const SLICE: Duration = Duration::from_millis(100);

/// A target that has ended a process this often is left alone by it.
const MOST_ENDS: u64 = 10;

/// Set by the signals that ask to stop.
static STOP: AtomicBool = AtomicBool::new(false);

/// What is to be tried.
pub struct Campaign {
    /// The targets.
    pub targets: Vec<&'static Target>,
    /// Executions of each.
    pub executions: u64,
    /// Names them.
    pub seed: u64,
    /// Processes at a time.
    pub processes: usize,
    /// At most so long.
    pub time: Duration,
    /// Where what fails is written.
    pub failures: PathBuf,
    /// What earlier calls have found, in the order of the targets: it counts.
    pub before: Vec<Found>,
}

/// How often it is told what was found so far.
const TOLD: Duration = Duration::from_secs(15);

/// What was found of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// In all processes.
    pub tally: Tally,
    /// Times that a process did not survive it.
    pub ends: u64,
}

impl Found {
    /// Takes in another's.
    pub fn add(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.ends += other.ends;
    }
}

/// What one process has found, and what it is at.
#[derive(Default)]
struct Seen {
    /// Of processes that are gone, and of the one at work.
    found: HashMap<String, Found>,
    now: HashMap<String, Tally>,
    at: String,
}

impl Seen {
    /// What was found of a target so far.
    fn of(&self, name: &str) -> Found {
        let mut found = self.found.get(name).cloned().unwrap_or_default();
        if let Some(now) = self.now.get(name) {
            found.tally.add(now);
        }
        found
    }

    /// The process is gone.
    fn close(&mut self, has_failed: bool) {
        for (name, tally) in self.now.drain() {
            self.found.entry(name).or_default().tally.add(&tally);
        }
        if has_failed {
            self.found.entry(self.at.clone()).or_default().ends += 1;
        }
    }
}

impl Campaign {
    /// Tries all targets until each has its executions, the time is over or somebody asks to stop; what was found, in the order of the targets.
    /// `tell` is called with it now and then, and at the end.
    pub fn run(&self, tell: impl Fn(&[Found]) -> std::io::Result<()>) -> std::io::Result<Vec<Found>> {
        std::fs::create_dir_all(&self.failures)?;
        let handler: extern "C" fn(libc::c_int) = on_stop;
        // SAFETY: the handler sets a flag.
        unsafe {
            libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
            libc::signal(libc::SIGINT, handler as libc::sighandler_t);
        }
        let end = Instant::now() + self.time;
        let children: Vec<Mutex<Option<Child>>> = (0..self.processes).map(|_| Mutex::new(None)).collect();
        let seen: Vec<Mutex<Seen>> = (0..self.processes).map(|_| Mutex::default()).collect();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.processes)
                .map(|place| {
                    let (child, seen) = (&children[place], &seen[place]);
                    scope.spawn(move || self.supervise(place, child, seen, end))
                })
                .collect();
            let mut told = Instant::now();
            while !threads.iter().all(|thread| thread.is_finished()) {
                std::thread::sleep(Duration::from_millis(100));
                if Instant::now() > end {
                    STOP.store(true, Ordering::SeqCst);
                }
                if STOP.load(Ordering::SeqCst) {
                    children.iter().for_each(|child| {
                        if let Some(child) = lock(child).as_mut() {
                            _ = child.kill(); // one that has ended needs none
                        }
                    });
                }
                if told.elapsed() > TOLD {
                    told = Instant::now();
                    if let Err(error) = tell(&self.found(&seen)) {
                        eprintln!("{error}");
                    }
                }
            }
        });
        let found = self.found(&seen);
        tell(&found)?;
        Ok(found)
    }

    /// What all processes and earlier calls have found.
    fn found(&self, seen: &[Mutex<Seen>]) -> Vec<Found> {
        let of = |(target, before): (&&'static Target, &Found)| {
            let mut found = before.clone();
            seen.iter().for_each(|seen| found.add(&lock(seen).of(target.name)));
            found
        };
        self.targets.iter().zip(&self.before).map(of).collect()
    }

    /// Executions of each target that one of the processes has to make.
    fn shares(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let left = |before: &Found| self.executions.saturating_sub(before.tally.executions);
        let share = move |before: &Found| left(before).div_ceil(self.processes as u64);
        self.targets.iter().zip(&self.before).map(move |(target, before)| (target.name, share(before)))
    }

    /// Starts a process, and another one where it ends before its time.
    fn supervise(&self, place: usize, child: &Mutex<Option<Child>>, seen: &Mutex<Seen>, end: Instant) {
        for start in 0.. {
            let left: Vec<String> = self
                .shares()
                .map(|(name, share)| (name, share, lock(seen).of(name)))
                .filter(|(_, share, made)| made.tally.executions < *share && made.ends < MOST_ENDS)
                .map(|(name, share, made)| format!("{name}={}", share - made.tally.executions))
                .collect();
            if left.is_empty() || STOP.load(Ordering::SeqCst) || Instant::now() > end {
                return;
            }
            let names = [self.seed, place as u64, start].map(|name| name.to_string());
            let started = std::env::current_exe().and_then(|program| {
                let mut command = Command::new(program);
                command.arg("--worker").args(names).arg("--failures").arg(&self.failures).args(left);
                command
                    .env("RUST_BACKTRACE", "0")
                    .env(KEEP.0, KEEP.1)
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .spawn()
            });
            let mut started = match started {
                Ok(started) => started,
                Err(error) => return eprintln!("cannot start a process: {error}"),
            };
            let Some(lines) = started.stdout.take() else { return };
            let scratch = scratch(started.id());
            *lock(child) = Some(started);
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                let mut seen = lock(seen);
                match read_line(&line) {
                    Some((name, tally)) => _ = seen.now.insert(name, tally),
                    None => seen.at = line,
                }
            }
            let ended = lock(child).take().map(|mut child| child.wait());
            _ = std::fs::remove_dir_all(scratch); // gone already where it has ended as it should
            let has_failed = !matches!(&ended, Some(Ok(status)) if status.success()) && !STOP.load(Ordering::SeqCst);
            let mut seen = lock(seen);
            if has_failed {
                eprintln!("{}: a process did not survive it ({ended:?})", seen.at);
            }
            seen.close(has_failed);
        }
    }
}

extern "C" fn on_stop(_: libc::c_int) {
    STOP.store(true, Ordering::SeqCst);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What one process does: all these targets in turn, each for a while, until each has its executions. It tells on its standard output.
pub fn work(targets: &[(&'static Target, u64)], names: &[u64], failures: &Path) -> std::io::Result<()> {
    watch::install();
    // All work of libraries in this thread, whose memory and time are counted.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    pool.map_err(std::io::Error::other)?;
    let scratch = scratch(std::process::id());
    std::fs::create_dir_all(&scratch)?;
    let mut fuzzers = Vec::new();
    for (target, executions) in targets {
        tell(target.name)?;
        fuzzers.push((Fuzzer::new(target, names, &scratch, failures)?, *executions, Duration::ZERO));
    }
    // The one that has had the least time comes next: one execution of some takes longer than a slice.
    while let Some((fuzzer, executions, used)) = fuzzers.iter_mut().min_by_key(|(_, _, used)| *used) {
        tell(fuzzer.target.name)?;
        let begun = Instant::now();
        while begun.elapsed() < SLICE && fuzzer.tally.executions < *executions {
            fuzzer.once();
        }
        *used += begun.elapsed();
        tell(&line(fuzzer.target.name, &fuzzer.tally))?;
        fuzzers.retain(|(fuzzer, executions, _)| fuzzer.tally.executions < *executions);
    }
    std::fs::remove_dir_all(&scratch)
}

/// A folder for a process, in memory where there is enough of it: files are written for almost every execution.
fn scratch(process: u32) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let folder = if free(memory) > 2 << 30 { memory.into() } else { std::env::temp_dir() };
    folder.join(format!("pudica-fuzz-{process}"))
}

/// Bytes that can be written to a folder.
fn free(folder: &Path) -> u64 {
    let Ok(name) = CString::new(folder.as_os_str().as_encoded_bytes()) else { return 0 };
    // SAFETY: all zeros are a value of this type, which the call fills; the name ends in a zero.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(name.as_ptr(), &mut found) != 0 {
            return 0;
        }
        found.f_bavail * found.f_frsize
    }
}

fn tell(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// A tally as a line.
fn line(name: &str, tally: &Tally) -> String {
    let Tally { executions, accepted, panics, greedy, slow, most_memory: (memory, length), slowest, spent } = tally;
    let (slowest, spent) = (slowest.as_micros(), spent.as_micros());
    format!("{name} {executions} {accepted} {panics} {greedy} {slow} {memory} {length} {slowest} {spent}")
}

fn read_line(line: &str) -> Option<(String, Tally)> {
    let (name, numbers) = line.split_once(' ')?;
    let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let [executions, accepted, panics, greedy, slow, memory, length, slowest, spent] = numbers[..] else { return None };
    let tally = Tally {
        executions,
        accepted,
        panics,
        greedy,
        slow,
        most_memory: (memory as usize, length as usize),
        slowest: Duration::from_micros(slowest),
        spent: Duration::from_micros(spent),
    };
    Some((name.into(), tally))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_is_told_and_understood() {
        let tally = Tally {
            executions: 1,
            accepted: 2,
            panics: 3,
            greedy: 4,
            slow: 5,
            most_memory: (6, 7),
            slowest: Duration::from_micros(8),
            spent: Duration::from_micros(9),
        };
        assert_eq!(read_line(&line("table", &tally)), Some(("table".into(), tally)));
        assert_eq!(read_line("table"), None);
    }
}
