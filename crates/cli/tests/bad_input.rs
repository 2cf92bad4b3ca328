//! The rows of `tests/bad-input/*.txt`: what was typed, and exactly what the command says about it.

#![cfg(unix)]

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// No command of the lists may take longer, or more than 4 GB.
const SECONDS: u64 = 10;
const KILOBYTES: u64 = 4 << 20;
/// No message may be longer, in bytes.
const LONGEST: usize = 1500;

/// A row of a list: a block of lines. Its format is explained in tests/bad-input/README.md.
struct Row {
    /// File and line.
    place: String,
    /// What is typed before, to prepare files.
    before: Vec<String>,
    /// What is tried.
    typed: String,
    /// All that it says on standard error; `...` stands for any text.
    told: String,
    code: i32,
    /// Files and folders that it may write.
    writes: Vec<String>,
}

fn rows(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    let (mut rows, mut block, mut start) = (Vec::new(), Vec::new(), 1);
    for (at, line) in text.lines().chain([""]).enumerate() {
        match line {
            "" if block.is_empty() => {}
            "" => rows.push(row(std::mem::take(&mut block), format!("{name}:{start}"))),
            line if line.starts_with('#') && block.is_empty() => {}
            line => {
                start = if block.is_empty() { at + 1 } else { start };
                block.push(line);
            }
        }
    }
    rows
}

fn row(block: Vec<&str>, place: String) -> Row {
    let (mut commands, mut told, mut code, mut writes) = (Vec::new(), Vec::new(), 2, Vec::new());
    for line in block {
        if let Some(command) = line.strip_prefix("$ ") {
            assert!(told.is_empty(), "{place}: an empty line is missing before `{line}`");
            commands.push(command.to_string());
        } else if let Some(number) = line.strip_prefix("(exit ").and_then(|rest| rest.strip_suffix(')')) {
            code = number.parse().unwrap_or_else(|_| panic!("{place}: {line}"));
        } else if let Some(names) = line.strip_prefix("(writes ").and_then(|rest| rest.strip_suffix(')')) {
            writes.extend(names.split(' ').map(str::to_string));
        } else {
            told.push(line);
        }
    }
    let typed = commands.pop().unwrap_or_else(|| panic!("{place}: no line begins with `$ `"));
    Row { place, before: commands, typed, told: told.join("\n"), code, writes }
}

/// The bench that rows are tried on: good files, and where the program is found.
struct Bench {
    given: PathBuf,
    path: String,
}

impl Bench {
    fn shell(&self, folder: &Path, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {KILOBYTES}; ulimit -c 0; {line}")]).current_dir(folder);
        command.env("PATH", &self.path).env("HOME", folder).env("LC_ALL", "C").stdin(Stdio::null());
        for name in ["PUDICA_DATA", "XDG_CONFIG_HOME", "RAYON_NUM_THREADS", "RUST_BACKTRACE", "COLUMNS"] {
            command.env_remove(name);
        }
        command
    }

    /// What is wrong with how a row ends; nothing if it ends as it says.
    fn problem(&self, row: &Row) -> Option<String> {
        let place = tempfile::tempdir().unwrap();
        // Deep enough that `../..` is still no place of anybody else's.
        let folder = place.path().join("some/where");
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(&self.given, folder.join("given")).unwrap();
        for line in &row.before {
            let ready = self.shell(&folder, line).output().unwrap();
            assert!(ready.status.success(), "{}: {line}: {ready:?}", row.place);
        }
        let before = listing(place.path());
        let said = place.path().join("said");
        let mut child = self
            .shell(&folder, &row.typed)
            .stdout(Stdio::null())
            .stderr(File::create(&said).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        let started = Instant::now();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break Some(status),
                None if started.elapsed() > Duration::from_secs(SECONDS) => {
                    // SAFETY: ends the group of processes that was started above and has not been waited for.
                    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
                    child.wait().unwrap();
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let told = String::from_utf8_lossy(&fs::read(&said).unwrap()).trim_end().to_string();
        // What a command does is said after a second, "planning x ...", so on some machines only.
        let told = told
            .lines()
            .filter(|line| line.starts_with("pudica: ") || !line.ends_with(" ..."))
            .collect::<Vec<_>>()
            .join("\n");
        fs::remove_file(&said).unwrap();
        let Some(status) = status else { return Some(format!("takes longer than {SECONDS} s")) };
        let block = || format!("it ends with exit code {:?} and says\n{told}", status.code());
        if let Some(signal) = status.signal() {
            return Some(format!("ended by signal {signal}: {told}"));
        }
        if told.contains("panicked") || told.contains("stack backtrace") || told.contains("met a bug") {
            return Some(block());
        }
        if told.starts_with("pudica: ") && told.len() > LONGEST {
            return Some(format!("says too much: {} bytes", told.len()));
        }
        if status.code() != Some(row.code) || !matches(&row.told, &told) {
            return Some(block());
        }
        let may_write = |path: &str| row.writes.iter().any(|own| path == own || path.starts_with(&format!("{own}/")));
        let written = listing(place.path());
        let new = written.iter().find(|entry| {
            !before.contains(entry) && !may_write(entry.0.strip_prefix("some/where/").unwrap_or(&entry.0))
        });
        let gone = before.iter().find(|entry| !written.iter().any(|other| other.0 == entry.0));
        new.map(|entry| format!("writes {}", entry.0)).or(gone.map(|entry| format!("removes {}", entry.0)))
    }
}

/// Every file below a folder, with its size and when it was written.
fn listing(folder: &Path) -> Vec<(String, u64, Option<SystemTime>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            let about = entry.metadata().unwrap(); // of a symbolic link itself
            if about.is_dir() {
                folders.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(folder).unwrap().display().to_string();
                found.push((name, about.len(), about.modified().ok()));
            }
        }
    }
    found.sort();
    found
}

/// Whether a text is as expected, where `...` stands for anything.
fn matches(expected: &str, text: &str) -> bool {
    let parts: Vec<&str> = expected.split("...").collect();
    let [first, middle @ .., last] = parts.as_slice() else { return expected == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn every_row_ends_as_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let lists = root.join("tests/bad-input");
    let mut files: Vec<PathBuf> = fs::read_dir(&lists).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    files.sort();
    let rows: Vec<Row> = files.iter().flat_map(|path| rows(path)).collect();
    assert!(rows.len() >= 300, "{} rows in {}", rows.len(), lists.display());

    let place = tempfile::tempdir().unwrap();
    let (given, programs) = (place.path().join("given"), place.path().join("bin"));
    fs::create_dir_all(&given).unwrap();
    fs::create_dir_all(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pudica"), programs.join("pudica")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let bench = Bench { given, path };
    let made =
        bench.shell(&bench.given, &format!("'{}/given' '{}'", lists.display(), root.display())).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let before = listing(&bench.given);

    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let at_once = std::thread::available_parallelism().map_or(2, |cores| cores.get()) + 1;
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(problem) = bench.problem(row) {
                        let row = format!("{}\n$ {}\n{}", row.place, row.typed, row.told);
                        wrong.lock().unwrap().push(format!("{row}\n--- but {problem}\n"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} rows:\n\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert_eq!(listing(&bench.given), before, "a row changed what is given to all");
}

#[test]
fn dots_stand_for_anything() {
    assert!(matches("a", "a") && matches("a...", "abc") && matches("...c", "abc") && matches("a...c...e", "abcde"));
    assert!(!matches("a", "ab") && !matches("a...x", "abc") && !matches("b...", "abc") && !matches("a...c...a", "abc"));
}
