//! One target, tried again and again.

use crate::case::Case;
use crate::memory;
use crate::mutate::mutate;
use crate::random::Random;
use crate::target::{Reader, Target};
use crate::watch;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Cases that are kept to go on from.
const MOST_KEPT: usize = 400;

/// Files become at most this much longer than the longest one that was given, and at least so long.
const LONGEST: usize = 16 << 10;

/// An execution that takes more processor time than this has failed.
const SLOW: Duration = Duration::from_secs(1);

/// What was found so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Times something was read.
    pub executions: u64,
    /// Those in which it was accepted.
    pub accepted: u64,
    /// Panics, of however few places.
    pub panics: u64,
    /// Executions that took more memory than the target may.
    pub greedy: u64,
    /// Executions of more than a second.
    pub slow: u64,
    /// The most memory in bytes, and the length of the file that took it.
    pub most_memory: (usize, usize),
    /// The longest execution.
    pub slowest: Duration,
    /// All of them.
    pub spent: Duration,
}

impl Tally {
    /// Whether anything is wrong.
    pub fn failures(&self) -> u64 {
        self.panics + self.greedy + self.slow
    }

    /// Executions in which something was refused in a sentence.
    pub fn refused(&self) -> u64 {
        self.executions.saturating_sub(self.accepted + self.panics)
    }

    /// Takes in another's.
    pub fn add(&mut self, other: &Self) {
        self.executions += other.executions;
        self.accepted += other.accepted;
        self.panics += other.panics;
        self.greedy += other.greedy;
        self.slow += other.slow;
        self.most_memory = self.most_memory.max(other.most_memory);
        self.slowest = self.slowest.max(other.slowest);
        self.spent += other.spent;
    }
}

/// A target being tried.
pub struct Fuzzer<'a> {
    /// The target.
    pub target: &'a Target,
    /// What was found.
    pub tally: Tally,
    reader: Reader,
    folder: PathBuf,
    failures: PathBuf,
    /// Sound cases first, then what led to sentences that were new.
    kept: Vec<Case>,
    seeds: usize,
    longest: usize,
    known: HashSet<u64>,
    random: Random,
}

impl<'a> Fuzzer<'a> {
    /// The numbers in `names` name what is tried: equal ones try the same. The reader may write into `folder`; what fails is written into
    /// `failures`.
    pub fn new(target: &'a Target, names: &[u64], folder: &Path, failures: &Path) -> std::io::Result<Self> {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder)?;
        let kept = (target.seeds)();
        let name = target.name.bytes().map(u64::from);
        Ok(Self {
            target,
            tally: Tally::default(),
            reader: (target.reader)(&folder),
            folder,
            failures: failures.into(),
            seeds: kept.len(),
            longest: kept.iter().map(|case| 2 * case.inside.len()).max().unwrap_or(0).max(LONGEST),
            kept,
            known: HashSet::new(),
            random: Random::new(&names.iter().copied().chain(name).collect::<Vec<u64>>()),
        })
    }

    /// Reads something new once.
    pub fn once(&mut self) {
        // The sound cases themselves come first: they show that the target reads what it should.
        let mut case = match self.kept.get(self.tally.executions as usize) {
            Some(sound) if self.tally.executions < self.seeds as u64 => sound.clone(),
            _ => {
                let end = if self.random.once_in(2) { self.seeds } else { self.kept.len() };
                // Of two the shorter one, which is read faster: more is tried in the same time.
                let (one, other) = (&self.kept[self.random.below(end)], &self.kept[self.random.below(end)]);
                let mut case = if one.inside.len() <= other.inside.len() { one.clone() } else { other.clone() };
                let other = self.random.below(self.kept.len());
                mutate(
                    &mut case.inside,
                    self.target.form,
                    &self.kept[other].inside,
                    self.target.words,
                    self.longest,
                    &mut self.random,
                );
                case
            }
        };
        let sentence = self.read(case.part, &case.bytes());
        // Digits and what is quoted from the file do not make a sentence new.
        let new = sentence.is_some_and(|sentence| self.known.insert(shape(&sentence)));
        if new || self.random.once_in(500) {
            case.inside.shrink_to_fit();
            match self.kept.len() < MOST_KEPT {
                true => self.kept.push(case),
                false => {
                    let at = self.seeds + self.random.below(self.kept.len() - self.seeds);
                    self.kept[at] = case;
                }
            }
        }
    }

    /// Reads these bytes; the sentence that refuses them.
    pub fn read(&mut self, part: usize, bytes: &[u8]) -> Option<String> {
        let watched = watch::begin(self.target.name, part, bytes, &self.failures);
        let reader = &mut self.reader;
        let (result, memory) = memory::most_during(|| catch_unwind(AssertUnwindSafe(|| reader(part, bytes))));
        let spent = watched.end();
        let tally = &mut self.tally;
        tally.executions += 1;
        tally.spent += spent;
        tally.slowest = tally.slowest.max(spent);
        tally.most_memory = tally.most_memory.max((memory, bytes.len()));
        if memory > self.target.memory.of(bytes.len()) {
            tally.greedy += 1;
            self.keep("memory", part, bytes, tally_name(memory), &format!("{memory} bytes of memory"));
        }
        if spent > SLOW {
            self.tally.slow += 1;
            self.keep("slow", part, bytes, 0, &format!("{spent:.1?} of processor time"));
        }
        match result {
            Ok(Ok(())) => {
                self.tally.accepted += 1;
                None
            }
            Ok(Err(sentence)) => Some(sentence),
            Err(_) => {
                self.tally.panics += 1;
                let (place, said) = watch::last_panic();
                self.keep("panic", part, bytes, hash(&place), &format!("{place}: {said}"));
                self.reader = (self.target.reader)(&self.folder); // what a panic has left is not looked at
                Some(place)
            }
        }
    }

    /// Writes down what failed, once for each place.
    fn keep(&self, what: &str, part: usize, bytes: &[u8], place: u64, words: &str) {
        let path = self.failures.join(format!("{}.{part}.{what}-{:08x}", self.target.name, place as u32));
        if !path.exists() {
            eprintln!("{}: {} ({} bytes): {words}", self.target.name, path.display(), bytes.len());
            if let Err(error) = std::fs::write(&path, bytes) {
                eprintln!("cannot write {}: {error}", path.display());
            }
        }
    }
}

/// Sizes of the same order are one finding.
fn tally_name(memory: usize) -> u64 {
    u64::from(memory.max(1).ilog2())
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A sentence without what differs from case to case: numbers, and what stands in quotes.
fn shape(sentence: &str) -> u64 {
    let mut plain = String::new();
    let mut quoted = false;
    for letter in sentence.chars().take(300) {
        quoted ^= matches!(letter, '"' | '\'' | '`');
        if !quoted && !letter.is_ascii_digit() {
            plain.push(letter);
        }
    }
    hash(&plain)
}
