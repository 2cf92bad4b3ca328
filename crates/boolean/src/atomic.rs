//! Writing a file so that it is there completely or not at all. Every file of the workspace that takes the place of an older one is
//! written here.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Lets `write` fill a file under a scratch name beside `path`, syncs it and renames it to `path`, so that a crash leaves the old file
/// or the new one. A file that was there keeps its permissions, a symbolic link stays one (its target is replaced), and what is no regular
/// file (a device, a pipe) is written into, never replaced.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    write_atomically_if(path, write, || Ok(()))
}

/// [`write_atomically`], unless a last look, when the new file lies beside the old one and only has to be renamed, finds that it must not be.
pub fn write_atomically_if(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    last_look: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    if !LASTING.get() {
        last_look()?;
        return flushed(File::create(path)?, write).map(drop);
    }
    let old = match fs::metadata(path) {
        Ok(old) if !old.is_file() => return flushed(File::create(path)?, write).map(drop),
        Ok(old) => Some(old.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let path = target(path)?;
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    remove_abandoned(folder, path.file_name());
    let (scratch, file) = create_scratch(&path)?;
    let finish = || -> io::Result<()> {
        if let Some(permissions) = old {
            file.set_permissions(permissions)?;
        }
        let file = flushed(file, write)?; // held until it is renamed: its lock goes with it
        file.sync_all()?;
        last_look()?;
        fs::rename(&scratch, &path)
    };
    finish().inspect_err(|_| {
        let _ = fs::remove_file(&scratch); // the first error is the one to tell
    })?;
    // The rename itself reaches the disk with the folder. Not every filesystem can sync one; losing the name is then the same as not
    // having written yet.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

thread_local! {
    static LASTING: Cell<bool> = const { Cell::new(true) };
}

/// Does `work`, whose files end with this process anyway: what this thread writes meanwhile goes straight into the files, neither synced nor
/// renamed, which would take milliseconds per file.
pub fn writing_in_place<T>(work: impl FnOnce() -> T) -> T {
    /// Also where `work` panics.
    struct Again(bool);
    impl Drop for Again {
        fn drop(&mut self) {
            LASTING.set(self.0);
        }
    }
    let _again = Again(LASTING.replace(false));
    work()
}

/// What the system said, with what to do about it where that is known.
pub fn sentence(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "the disk is full; free some space and run the same command again".into()
        }
        _ => error.to_string(),
    }
}

fn flushed(file: File, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<File> {
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    write(&mut writer)?;
    writer.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Where a path leads: itself, or what a symbolic link names, even if that is not there yet.
fn target(path: &Path) -> io::Result<PathBuf> {
    /// As many links in a row as Linux follows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next), // an absolute one replaces all
            Err(_) => return Ok(path),                                            // no link, or not there
        }
    }
    Err(io::Error::other("too many symbolic links in a row"))
}

/// This machine's name, of characters that file names have everywhere; empty where it is not known.
pub fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let told = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        told.unwrap_or_default().trim().chars().take(40).map(plain).collect()
    })
}

/// `.NAME.PID-COUNTER@HOST.scratch`: nobody else's. It is locked while its process lives.
fn create_scratch(path: &Path) -> io::Result<(PathBuf, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it names no file"))?;
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let mut unique = scratch_prefix(name);
        unique.push(format!("{}-{count}@{}{SCRATCH}", std::process::id(), host()));
        let scratch = path.with_file_name(unique);
        let file = match OpenOptions::new().write(true).create_new(true).open(&scratch) {
            Ok(file) => file,
            // Of another machine's process with this number, or of one before a restart.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        let _ = file.lock(); // where locks are not known, abandoned files stay
        // Somebody who tidied up between creation and lock took it for abandoned.
        if scratch.exists() {
            return Ok((scratch, file));
        }
    }
}

const SCRATCH: &str = ".scratch";

fn scratch_prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// Removes scratch files of `name`, or of any name, whose process was killed: those of this machine that nobody holds a lock on. Whether
/// somebody elsewhere holds one cannot be told on every file system that machines share.
pub fn remove_abandoned(folder: &Path, name: Option<&OsStr>) {
    for (path, of) in scratch_files(folder, name) {
        let of = of.as_encoded_bytes();
        let at = of.iter().rposition(|byte| *byte == b'@');
        if at.is_some_and(|at| &of[at + 1..] != host().as_bytes()) {
            continue;
        }
        if let Ok(file) = OpenOptions::new().write(true).open(&path)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes all scratch files of a folder, also those of processes that live: they will not replace anything there.
pub fn remove_scratch(folder: &Path) {
    for (path, _) in scratch_files(folder, None) {
        let _ = fs::remove_file(path);
    }
}

/// The scratch files of `name`, or of any name, each with what its name says beside that.
fn scratch_files(folder: &Path, name: Option<&OsStr>) -> Vec<(PathBuf, OsString)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let prefix = name.map_or_else(|| OsString::from("."), scratch_prefix);
    let of = |entry: fs::DirEntry| {
        let found = entry.file_name();
        let rest = found.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes())?;
        let rest = rest.strip_suffix(SCRATCH.as_bytes())?;
        Some((entry.path(), String::from_utf8_lossy(rest).into_owned().into()))
    };
    entries.flatten().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn put(path: &Path, text: &str) -> io::Result<()> {
        write_atomically(path, |file| file.write_all(text.as_bytes()))
    }

    #[test]
    fn files_that_do_not_last_are_written_plainly() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("short-lived.txt");
        writing_in_place(|| put(&path, "first, and longer").and_then(|()| put(&path, "second"))).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        let refused = writing_in_place(|| write_atomically_if(&path, |_| Ok(()), || Err(io::Error::other("not now"))));
        assert_eq!(refused.unwrap_err().to_string(), "not now");
        assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path()).len()), ("second".into(), 1));
        assert!(LASTING.get(), "only meanwhile");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.txt");
        let fail = || {
            write_atomically(&path, |file| {
                file.write_all(b"half of it")?;
                Err(io::Error::other("power cut"))
            })
        };
        assert_eq!(fail().unwrap_err().to_string(), "power cut");
        assert!(names(folder.path()).is_empty());
        put(&path, "whole").unwrap();
        assert!(fail().is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(names(folder.path()), ["kept.txt"]);
        assert!(put(Path::new("/no/such/folder/x"), "").is_err());
        assert!(put(Path::new("/"), "").is_err());
        assert!(put(folder.path(), "").is_err(), "a folder is not replaced");
    }

    #[test]
    fn a_plain_name_is_in_the_working_folder() {
        let name = format!("atomic-test-{}.txt", std::process::id());
        put(Path::new(&name), "here").unwrap();
        assert_eq!(fs::read_to_string(&name).unwrap(), "here");
        fs::remove_file(&name).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_pipes_are_written_into() {
        use std::os::unix::fs::FileTypeExt;
        put(Path::new("/dev/null"), "gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let full = put(Path::new("/dev/full"), "no room").unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        assert!(sentence(&full).starts_with("the disk is full; free some space"), "{full}");
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());

        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        put(&pipe, "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(names(folder.path()), ["pipe"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("elsewhere")).unwrap();
        symlink("elsewhere/real.txt", at("link.txt")).unwrap();
        symlink("link.txt", at("link-to-link.txt")).unwrap();
        for text in ["made through a link that led nowhere", "and again"] {
            put(&at("link-to-link.txt"), text).unwrap();
            assert_eq!(fs::read_to_string(at("elsewhere/real.txt")).unwrap(), text);
            assert!(at("link.txt").is_symlink() && at("link-to-link.txt").is_symlink());
            fs::set_permissions(at("elsewhere/real.txt"), fs::Permissions::from_mode(0o640)).unwrap();
        }
        put(&at("link.txt"), "third").unwrap();
        assert_eq!(fs::metadata(at("elsewhere/real.txt")).unwrap().permissions().mode() & 0o777, 0o640);
        symlink("round", at("round")).unwrap();
        assert!(put(&at("round"), "").is_err());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(folder.path().join(".a.json.99-0.scratch"), "abandoned").unwrap();
        fs::write(folder.path().join(format!(".a.json.98-0@{}.scratch", host())), "abandoned here").unwrap();
        fs::write(folder.path().join(".a.json.98-0@another.scratch"), "of another machine").unwrap();
        fs::write(folder.path().join(".b.json.99-0.scratch"), "of another file").unwrap();
        write_atomically(&path, |outer| {
            outer.write_all(b"outer")?;
            put(&path, "inner") // another writer of the same file, while this one is at work
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "outer");
        let mut left = names(folder.path());
        left.sort();
        assert_eq!(left, [".a.json.98-0@another.scratch", ".b.json.99-0.scratch", "a.json"]);
    }
}
