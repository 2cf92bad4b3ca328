//! Claims: while a process makes a run, no other one does, on whatever machine. They need no lock that NFS or Lustre may not have, only
//! that a name can be given to a file once.
//!
//! A claim is the file `DIR/.work/RUN.EPOCH` with the name of its owner. It is made by `link()`, whose answer may be lost on its way; what
//! the file says counts. An owner that has gone (its process is seen to be gone, Slurm says so, or it has not told anything for long by the
//! clock of who watches it) loses the run to who makes the claim of the next epoch first. At each write the owner looks whether its
//! claim stands, so that one who was frozen and wakes up writes nothing (`RunFolder::write`, `RunFolder::log`).

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pudica_boolean::atomic::remove_scratch;

use super::at_work::AtWork;
use super::atomic::write_bytes;
use super::owner::Owner;
use crate::error::{Error, Result};

/// An owner that cannot be seen counts as gone after this time without a beat.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(600);

/// What is asked again at most this often: whether an owner is gone may be a question to Slurm.
const ASK_EVERY: Duration = Duration::from_secs(10);

/// Makes claims for one process.
#[derive(Debug)]
pub(crate) struct Claims {
    sweep: PathBuf,
    own: Owner,
    id: String,
    stale_after: Duration,
    watched: Mutex<HashMap<String, Watched>>,
}

/// What was seen of another owner.
#[derive(Debug)]
struct Watched {
    /// Its last beat, and since when that is the last.
    beat: u64,
    since: Instant,
    /// Whether a beat was seen after the first look.
    has_beaten: bool,
    asked: Instant,
    standing: Standing,
}

/// How it stands with the owner of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It lives.
    AtWork,
    /// It has ended, or is taken to have.
    Gone,
    /// Not known yet; waiting will tell.
    Unknown,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The run is ours while the claim lives.
    Ours(Claim),
    /// Another process has it.
    Theirs(Standing),
}

impl Claims {
    /// For the process that `own` names; its report ([`AtWork`]) must be written already.
    pub fn new(sweep: &Path, own: &Owner, stale_after: Duration) -> Result<Claims> {
        let claims =
            Claims { sweep: sweep.into(), own: own.clone(), id: own.id(), stale_after, watched: Mutex::default() };
        write_bytes(&claims.name(), claims.id.as_bytes())?;
        Ok(claims)
    }

    /// The file that claims are further names of.
    fn name(&self) -> PathBuf {
        AtWork::claims_name(&self.sweep, &self.id)
    }

    fn path(&self, run: &str, epoch: u64) -> PathBuf {
        AtWork::folder(&self.sweep).join(format!("{run}.{epoch}"))
    }

    /// Asks for runs.
    pub fn ask(&self, runs: &[&str]) -> Result<Vec<Answer>> {
        let standing = self.standing_claims()?;
        runs.iter().map(|run| self.ask_one(run, standing.get(*run).map_or(&[], Vec::as_slice))).collect()
    }

    /// The epochs of each run that is claimed, rising. Only the last one counts; others were left by who was ended while it took the run over.
    fn standing_claims(&self) -> Result<HashMap<String, Vec<u64>>> {
        let folder = AtWork::folder(&self.sweep);
        let mut claims: HashMap<String, Vec<u64>> = HashMap::new();
        for entry in std::fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
            let name = entry.map_err(Error::io("read", &folder))?.file_name().to_string_lossy().into_owned();
            if let Some((run, epoch)) = name.split_once('.').filter(|(run, _)| !run.is_empty())
                && let Ok(epoch) = epoch.parse::<u64>()
            {
                claims.entry(run.into()).or_default().push(epoch);
            }
        }
        claims.values_mut().for_each(|epochs| epochs.sort_unstable());
        Ok(claims)
    }

    /// Removes these claims of a run, given in rising order. The oldest goes first: its owner, if it wakes up, finds it gone or followed.
    fn remove_all(&self, run: &str, epochs: &[u64]) -> Result<()> {
        epochs.iter().try_for_each(|epoch| remove(&self.path(run, *epoch)))
    }

    /// Removes the claims of these runs, which have ended, where their owners are gone: nobody will ask for them again.
    pub fn clear(&self, ended: impl Fn(&str) -> bool) -> Result<()> {
        for (run, epochs) in self.standing_claims()?.into_iter().filter(|(run, _)| ended(run)) {
            let last = epochs.last().map(|last| read(&self.path(&run, *last))).transpose()?.flatten();
            if let Some(owner) = last
                && self.standing(&owner)? == Standing::Gone
            {
                self.remove_all(&run, &epochs)?;
            }
        }
        Ok(())
    }

    fn ask_one(&self, run: &str, standing: &[u64]) -> Result<Answer> {
        let Some(latest) = standing.last() else { return self.make(run, 0) };
        let Some(owner) = read(&self.path(run, *latest))? else { return Ok(Answer::Theirs(Standing::Unknown)) }; // just given up
        if owner == self.id {
            return Ok(Answer::Theirs(Standing::AtWork)); // another thread of ours
        }
        match self.standing(&owner)? {
            Standing::Gone => {
                let answer = self.make(run, latest + 1)?;
                if let Answer::Ours(_) = answer {
                    remove_scratch(&self.sweep.join("runs").join(run)); // what it has not put into place yet, it will not
                    self.remove_all(run, standing)?;
                    if let Some(report) = AtWork::of(&self.sweep, &owner)?.filter(|report| report.errors.is_empty()) {
                        report.remove(&self.sweep); // if it wakes up, it tells again
                    }
                }
                Ok(answer)
            }
            standing => Ok(Answer::Theirs(standing)),
        }
    }

    /// Gives our file one more name. Whoever does so first has the run.
    fn make(&self, run: &str, epoch: u64) -> Result<Answer> {
        let path = &self.path(run, epoch);
        let mut linked = std::fs::hard_link(self.name(), path);
        if matches!(&linked, Err(error) if error.kind() == ErrorKind::NotFound) {
            // Who took this process for dead has removed it.
            write_bytes(&self.name(), self.id.as_bytes())?;
            linked = std::fs::hard_link(self.name(), path);
        }
        if let Err(error) = &linked
            && matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied)
        {
            // A file system without links: a new file is as good, but for the moment in which it is empty.
            use std::io::Write;
            let new = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
            match new.and_then(|mut file| file.write_all(self.id.as_bytes())) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(Error::io("write", path)(error)),
                _ => {}
            }
        }
        match (read(path)?, linked) {
            (Some(owner), _) if owner == self.id => {
                let (path, next) = (path.clone(), self.path(run, epoch + 1));
                Ok(Answer::Ours(Claim { run: run.into(), path, next, owner }))
            }
            (Some(_), _) => Ok(Answer::Theirs(Standing::Unknown)),
            (None, Err(error)) if error.kind() != ErrorKind::AlreadyExists => Err(Error::io("link", path)(error)),
            (None, _) => Ok(Answer::Theirs(Standing::Unknown)),
        }
    }

    /// How it stands with an owner: what can be seen or asked, and otherwise what its beats say.
    fn standing(&self, owner: &str) -> Result<Standing> {
        let Some(report) = AtWork::of(&self.sweep, owner)? else { return Ok(Standing::Gone) }; // it had one while it lived
        if report.has_ended {
            return Ok(Standing::Gone);
        }
        let mut watched = self.watched.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = Instant::now();
        let is_new = !watched.contains_key(owner);
        let seen = watched.entry(owner.into()).or_insert(Watched {
            beat: report.beat,
            since: now,
            has_beaten: false,
            asked: now,
            standing: Standing::Unknown,
        });
        if report.beat != seen.beat {
            (seen.beat, seen.since, seen.has_beaten) = (report.beat, now, true);
        }
        if is_new || now.duration_since(seen.asked) > ASK_EVERY {
            seen.asked = now;
            seen.standing = match self.own.knows_gone(&report.owner) {
                Some(true) => Standing::Gone,
                Some(false) => Standing::AtWork,
                None => Standing::Unknown,
            };
        }
        Ok(match seen.standing {
            Standing::Unknown if now.duration_since(seen.since) > self.stale_after => Standing::Gone,
            Standing::Unknown if seen.has_beaten => Standing::AtWork,
            known => known,
        })
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.name()); // a leftover is small and harms nobody
    }
}

/// The right to make a run; given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    run: String,
    path: PathBuf,
    /// The name of the claim that would follow.
    next: PathBuf,
    owner: String,
}

impl Claim {
    /// An error if another process has taken the run over.
    pub fn check(&self) -> Result<()> {
        // Opened, so that a client of NFS asks for the names in it anew: those it remembers may be half a minute old.
        if let Some(folder) = self.path.parent() {
            let _ = File::open(folder); // where it cannot be opened, what follows says so
        }
        let stands = read(&self.path)?.is_some_and(|owner| owner == self.owner) && !self.next.exists();
        if stands { Ok(()) } else { Err(Error::TakenOver { run: self.run.clone() }) }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.check().is_ok() {
            let _ = std::fs::remove_file(&self.path); // left behind, its owner's end tells
        }
    }
}

fn read(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        // Stale: a client of NFS remembers the name, and the file behind it is removed.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::StaleNetworkFileHandle) => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_boolean::atomic::write_atomically_if;
    use std::io::Write;

    /// A process of another machine that nobody sees, at work in the folder.
    fn elsewhere(sweep: &Path, name: &str) -> (AtWork, Claims) {
        let owner = Owner { host: name.into(), machine: name.into(), job: None, ..Owner::this() };
        let mut report = AtWork { owner, ..AtWork::default() };
        report.write(sweep).unwrap();
        let claims = Claims::new(sweep, &report.owner, Duration::from_millis(300)).unwrap();
        (report, claims)
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(AtWork::folder(folder.path())).unwrap();
        folder
    }

    fn ask(claims: &Claims, run: &str) -> Answer {
        claims.ask(&[run]).unwrap().remove(0)
    }

    fn ours(answer: Answer) -> Claim {
        match answer {
            Answer::Ours(claim) => claim,
            Answer::Theirs(standing) => panic!("it is theirs, {standing:?}"),
        }
    }

    #[test]
    fn one_has_it_until_it_is_given_up() {
        let folder = folder();
        let ((_, a), (mut report, b)) = (elsewhere(folder.path(), "a"), elsewhere(folder.path(), "b"));
        let claim = ours(ask(&b, "run"));
        assert!(matches!(ask(&a, "run"), Answer::Theirs(Standing::Unknown)));
        report.write(folder.path()).unwrap();
        assert!(matches!(ask(&a, "run"), Answer::Theirs(Standing::AtWork)), "it has told something since");
        assert!(claim.check().is_ok());
        ours(ask(&a, "another"));
        drop(claim);
        assert!(ours(ask(&a, "run")).check().is_ok());
    }

    #[test]
    fn a_silent_owner_loses_it_to_one_and_does_not_get_it_back() {
        let folder = folder();
        let (mut report, frozen) = elsewhere(folder.path(), "frozen");
        let claim = ours(ask(&frozen, "run"));
        let others: Vec<(AtWork, Claims)> = (0..4).map(|i| elsewhere(folder.path(), &format!("other{i}"))).collect();
        assert!(others.iter().all(|(_, other)| matches!(ask(other, "run"), Answer::Theirs(Standing::Unknown))));
        std::thread::sleep(Duration::from_millis(400));
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let asked: Vec<_> = others.iter().map(|(_, other)| scope.spawn(|| ask(other, "run"))).collect();
            asked.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut won: Vec<Claim> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                Answer::Ours(claim) => Some(claim),
                Answer::Theirs(_) => None,
            })
            .collect();
        assert_eq!(won.len(), 1, "one of four");
        // It wakes up.
        report.write(folder.path()).unwrap();
        assert!(matches!(claim.check(), Err(Error::TakenOver { .. })));
        drop(claim);
        let winner = won.remove(0);
        assert!(winner.check().is_ok(), "what a loser gives up is not the winner's");
        assert!(!matches!(ask(&frozen, "run"), Answer::Ours(_)));
        drop(winner);
        assert!(ours(ask(&frozen, "run")).check().is_ok(), "free again");
    }

    /// Frozen between its last look and the renaming, the worst moment.
    #[test]
    fn what_a_frozen_owner_was_about_to_put_into_place_never_comes() {
        let folder = folder();
        let run = folder.path().join("runs").join("run");
        std::fs::create_dir_all(&run).unwrap();
        let (mut report, frozen) = elsewhere(folder.path(), "frozen");
        let claim = ours(ask(&frozen, "run"));
        let (_, other) = elsewhere(folder.path(), "other");
        let mut taken = None;
        let (path, write) = (run.join("summary.json"), |file: &mut dyn Write| file.write_all(b"late"));
        let late = write_atomically_if(
            &path,
            |file| write(file),
            || {
                claim.check().map_err(std::io::Error::other)?;
                report.has_ended = true;
                report.write(folder.path()).map_err(std::io::Error::other)?;
                taken = Some(ours(ask(&other, "run")));
                Ok(())
            },
        );
        assert!(late.is_err() && taken.is_some() && !path.exists());
    }

    #[test]
    fn an_owner_without_a_report_or_with_its_last_one_is_gone() {
        let folder = folder();
        let ((mut ended, a), (removed, b)) = (elsewhere(folder.path(), "a"), elsewhere(folder.path(), "b"));
        let (_, other) = elsewhere(folder.path(), "other");
        let (one, two) = (ours(ask(&a, "one")), ours(ask(&b, "two")));
        ended.has_ended = true;
        ended.write(folder.path()).unwrap();
        removed.remove(folder.path());
        let taken = other.ask(&["one", "two"]).unwrap();
        assert!(taken.iter().all(|answer| matches!(answer, Answer::Ours(_))), "{taken:?}");
        assert!(one.check().is_err() && two.check().is_err());
    }

    /// Found by killing sweeps at random: the claim that was taken over stayed for ever, and its owner, had it woken up, would have believed it.
    #[test]
    fn a_taking_over_that_was_cut_short_leaves_nothing() {
        let folder = folder();
        let (frozen_report, frozen) = elsewhere(folder.path(), "frozen");
        let claim = ours(ask(&frozen, "run"));
        frozen_report.remove(folder.path());
        let first = AtWork::folder(folder.path()).join("run.0");
        let (killed_report, killed) = elsewhere(folder.path(), "killed");
        let taken = ours(ask(&killed, "run"));
        std::fs::write(&first, &claim.owner).unwrap(); // it was ended just before it removed this
        std::mem::forget(taken);
        killed_report.remove(folder.path());
        assert!(claim.check().is_err());

        let (_, last) = elsewhere(folder.path(), "last");
        let own = ours(ask(&last, "run"));
        assert!(own.check().is_ok() && claim.check().is_err(), "a run has one owner");
        drop(own);
        drop(claim);
        assert!(last.standing_claims().unwrap().is_empty());

        // The same of a run that has ended: whoever looks at it next clears up.
        for epoch in 3..5 {
            std::fs::write(last.path("run", epoch), &killed.id).unwrap();
        }
        last.clear(|run| run == "another").unwrap();
        assert_eq!(last.standing_claims().unwrap()["run"], [3, 4]);
        last.clear(|run| run == "run").unwrap();
        assert!(last.standing_claims().unwrap().is_empty());
    }

    #[test]
    fn of_many_at_once_each_run_goes_to_one() {
        let folder = folder();
        let all: Vec<(AtWork, Claims)> = (0..8).map(|i| elsewhere(folder.path(), &format!("m{i}"))).collect();
        let runs: Vec<String> = (0..100).map(|run| format!("run{run}")).collect();
        let names: Vec<&str> = runs.iter().map(String::as_str).collect();
        let counts: Vec<Vec<Answer>> = std::thread::scope(|scope| {
            let asked: Vec<_> = all.iter().map(|(_, claims)| scope.spawn(|| claims.ask(&names).unwrap())).collect();
            asked.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for run in 0..100 {
            assert_eq!(counts.iter().filter(|answers| matches!(answers[run], Answer::Ours(_))).count(), 1);
        }
    }
}
