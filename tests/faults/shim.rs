//! Stands between a program and the file system (LD_PRELOAD): counts, logs, refuses or ends at what it writes under one folder. Built by
//! `rustc --crate-type cdylib`, with nothing but the standard library. See tests/faults/writes.py.
//!
//! ```text
//! FAULTS_FOLDER   what lies under it is watched
//! FAULTS_LOG      a file to which a line is added for each operation: its number, the time, what and where, bytes as hexadecimal digits
//! FAULTS_AT       the number of an operation, from 1: it fails with FAULTS_ERROR, or the process is killed before it, or stops
//! FAULTS_ERROR    28 (no space), 5 (input/output error), 13 (permission denied), kill, stop (before it) or stop-after (before it is logged)
//! FAULTS_LINKS    none: the file system has no hard links
//! FAULTS_MACHINE  the process takes itself to be on a machine of this name: others cannot see whether it lives
//! ```

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::fmt::Write as _;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

const AT_FDCWD: c_int = -100;
const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;
const O_ACCMODE: c_int = 3;
const O_CREAT: c_int = 0o100;
const O_TRUNC: c_int = 0o1000;
const O_APPEND: c_int = 0o2000;
const SIGKILL: c_int = 9;
const SIGSTOP: c_int = 19;

#[repr(C)]
pub struct Part {
    base: *const u8,
    length: usize,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
    fn kill(process: c_int, signal: c_int) -> c_int;
    fn getpid() -> c_int;
    fn raise(signal: c_int) -> c_int;
    fn lseek(file: c_int, offset: i64, whence: c_int) -> i64;
}

/// What was asked for.
struct Asked {
    folder: String,
    log: Option<c_int>,
    at: u64,
    fault: Fault,
    has_links: bool,
}

/// What befalls the operation that is named.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Error(c_int),
    Kill,
    Stop,
    StopAfter,
}

static COUNT: AtomicU64 = AtomicU64::new(0);
/// One operation at a time, so that the order in the log is the order on the disk.
static ORDER: Mutex<()> = Mutex::new(());

fn asked() -> &'static Asked {
    static ASKED: OnceLock<Asked> = OnceLock::new();
    ASKED.get_or_init(|| {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let log = variable("FAULTS_LOG").map(|path| {
            let path = std::ffi::CString::new(path).unwrap_or_default();
            let open: Open = real("open64\0");
            unsafe { open(path.as_ptr(), 1 | O_CREAT | O_APPEND, 0o644) }
        });
        Asked {
            folder: variable("FAULTS_FOLDER").unwrap_or_else(|| "/nowhere".into()),
            log,
            at: variable("FAULTS_AT").and_then(|text| text.parse().ok()).unwrap_or(0),
            fault: match variable("FAULTS_ERROR").as_deref() {
                Some("stop") => Fault::Stop,
                Some("stop-after") => Fault::StopAfter,
                text => text.and_then(|text| text.parse().ok()).map_or(Fault::Kill, Fault::Error),
            },
            has_links: variable("FAULTS_LINKS").as_deref() != Some("none"),
        }
    })
}

/// The function that is stood before.
fn real<F: Copy>(name: &'static str) -> F {
    // SAFETY: `F` is the C type of the function of this name; dlsym finds it in libc, which is always there.
    unsafe {
        let found = dlsym(RTLD_NEXT, name.as_ptr().cast());
        assert!(!found.is_null() && size_of::<F>() == size_of::<*mut c_void>());
        std::mem::transmute_copy(&found)
    }
}

/// Where a path leads, as an absolute path, `.` and `..` left as they are.
fn absolute(folder: c_int, path: *const c_char) -> String {
    // SAFETY: what the caller gives is a path that ends with a zero.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
    if path.starts_with('/') {
        return path;
    }
    let parent = if folder == AT_FDCWD {
        std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
    } else {
        of_file(folder)
    };
    format!("{parent}/{}", path.trim_start_matches("./"))
}

/// The path of an open file.
fn of_file(file: RawFd) -> String {
    let link = format!("/proc/self/fd/{file}\0");
    let mut buffer = [0u8; 4096];
    let real: ReadLink = real("readlink\0");
    // SAFETY: both are valid for their lengths.
    let length = unsafe { real(link.as_ptr().cast(), buffer.as_mut_ptr().cast(), buffer.len()) };
    String::from_utf8_lossy(&buffer[..length.max(0) as usize]).into_owned()
}

/// The path below the folder that is watched.
fn below(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(asked().folder.as_str())?;
    if rest.is_empty() { Some(".") } else { rest.strip_prefix('/') }
}

/// Counts an operation on a path that is watched, then does it, unless it is the one to fail; logs what succeeded.
fn operate<T: Copy + PartialEq>(path: &str, what: impl FnOnce() -> String, failed: T, act: impl FnOnce() -> T) -> T {
    if below(path).is_none() {
        return act();
    }
    let _order = ORDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let asked = asked();
    let number = COUNT.fetch_add(1, SeqCst) + 1;
    let fault = (number == asked.at).then_some(asked.fault);
    match fault {
        // SAFETY: a thread's own error number.
        Some(Fault::Error(error)) => unsafe {
            *__errno_location() = error;
            return failed;
        },
        Some(Fault::Kill) => unsafe {
            kill(getpid(), SIGKILL);
            loop {
                std::hint::spin_loop();
            }
        },
        // All threads, until somebody lets them go on.
        Some(Fault::Stop) => unsafe {
            raise(SIGSTOP);
        },
        Some(Fault::StopAfter) | None => {}
    }
    // Before it: a process that is stopped just after it has done it must not seem to do it when it wakes up.
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    let result = act();
    if fault == Some(Fault::StopAfter) {
        unsafe { raise(SIGSTOP) };
    }
    if result != failed && asked.log.is_some() {
        // SAFETY: a thread's own error number, kept from what logging does.
        let error = unsafe { *__errno_location() };
        note(&format!("{number} {time:.6} {}\n", what()));
        unsafe { *__errno_location() = error };
    }
    result
}

fn note(line: &str) {
    if let Some(log) = asked().log {
        let write: WriteTo = real("write\0");
        // SAFETY: `line` is valid for its length.
        unsafe { write(log, line.as_ptr().cast(), line.len()) };
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A name in the log: no spaces.
fn named(path: &str) -> String {
    below(path).unwrap_or(path).replace(' ', "%20")
}

/// The name of an open file, when it was written to: another process may have put another one in its place since it was opened, and then it
/// is a deleted one.
fn name_of_file(file: RawFd) -> String {
    named(&of_file(file))
}

type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint) -> c_int;
type WriteTo = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;
type WriteAt = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;
type WriteParts = unsafe extern "C" fn(c_int, *const Part, c_int) -> isize;
type ReadLink = unsafe extern "C" fn(*const c_char, *mut c_char, usize) -> isize;
type OnFile = unsafe extern "C" fn(c_int) -> c_int;
type OnPath = unsafe extern "C" fn(*const c_char) -> c_int;
type OnPathAt = unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int;
type OnTwoPaths = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
type OnTwoPathsAt = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char) -> c_int;

/// Opening counts if it makes or empties a file, or is for writing.
fn opened(path: String, flags: c_int, act: impl FnOnce() -> c_int) -> c_int {
    if flags & O_ACCMODE == 0 && flags & O_CREAT == 0 {
        return act();
    }
    let what = || format!("open {} {}", named(&path), if flags & O_TRUNC != 0 { "empty" } else { "-" });
    operate(&path, what, -1, act)
}

macro_rules! opens {
    ($($name:ident $at:ident),*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
            let real: Open = real(concat!(stringify!($name), "\0"));
            opened(absolute(AT_FDCWD, path), flags, || unsafe { real(path, flags, mode) })
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $at(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
            let real: OpenAt = real(concat!(stringify!($at), "\0"));
            opened(absolute(folder, path), flags, || unsafe { real(folder, path, flags, mode) })
        }
    )*};
}
opens!(open openat, open64 openat64);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, bytes: *const c_void, count: usize) -> isize {
    let real: WriteTo = real("write\0");
    let path = of_file(file);
    // SAFETY: the caller gives `count` bytes.
    let what = || unsafe {
        let end = lseek(file, 0, 1);
        format!(
            "write {} {} {}",
            name_of_file(file),
            end - count as i64,
            hex(std::slice::from_raw_parts(bytes.cast(), count))
        )
    };
    operate(&path, what, -1, || unsafe { real(file, bytes, count) })
}

macro_rules! writes_at {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(file: c_int, bytes: *const c_void, count: usize, offset: i64) -> isize {
            let real: WriteAt = real(concat!(stringify!($name), "\0"));
            let path = of_file(file);
            let what = || unsafe {
                format!("write {} {offset} {}", name_of_file(file), hex(std::slice::from_raw_parts(bytes.cast(), count)))
            };
            operate(&path, what, -1, || unsafe { real(file, bytes, count, offset) })
        }
    )*};
}
writes_at!(pwrite, pwrite64);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(file: c_int, parts: *const Part, count: c_int) -> isize {
    let real: WriteParts = real("writev\0");
    let path = of_file(file);
    let what = || unsafe {
        let parts = std::slice::from_raw_parts(parts, count as usize);
        let bytes: Vec<u8> =
            parts.iter().flat_map(|part| std::slice::from_raw_parts(part.base, part.length)).copied().collect();
        format!("write {} {} {}", name_of_file(file), lseek(file, 0, 1) - bytes.len() as i64, hex(&bytes))
    };
    operate(&path, what, -1, || unsafe { real(file, parts, count) })
}

macro_rules! on_files {
    ($($name:ident $word:literal),*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(file: c_int) -> c_int {
            let real: OnFile = real(concat!(stringify!($name), "\0"));
            let path = of_file(file);
            operate(&path, || format!(concat!($word, " {}"), name_of_file(file)), -1, || unsafe { real(file) })
        }
    )*};
}
on_files!(fsync "sync", fdatasync "sync");

macro_rules! on_paths {
    ($($name:ident $word:literal),*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char) -> c_int {
            let real: OnPath = real(concat!(stringify!($name), "\0"));
            let named_path = absolute(AT_FDCWD, path);
            operate(&named_path, || format!(concat!($word, " {}"), named(&named_path)), -1, || unsafe { real(path) })
        }
    )*};
}
on_paths!(unlink "unlink", rmdir "rmdir");

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    let real: OnPathAt = real("unlinkat\0");
    let named_path = absolute(folder, path);
    operate(&named_path, || format!("unlink {}", named(&named_path)), -1, || unsafe { real(folder, path, flags) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdir(path: *const c_char, mode: c_uint) -> c_int {
    let real: unsafe extern "C" fn(*const c_char, c_uint) -> c_int = real("mkdir\0");
    let named_path = absolute(AT_FDCWD, path);
    operate(&named_path, || format!("mkdir {}", named(&named_path)), -1, || unsafe { real(path, mode) })
}

macro_rules! truncates {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(file: c_int, length: i64) -> c_int {
            let real: unsafe extern "C" fn(c_int, i64) -> c_int = real(concat!(stringify!($name), "\0"));
            let path = of_file(file);
            operate(&path, || format!("truncate {} {length}", name_of_file(file)), -1, || unsafe { real(file, length) })
        }
    )*};
}
truncates!(ftruncate, ftruncate64);

/// An operation with two names; it is told by where it leads to.
fn twice(word: &str, from: String, to: String, act: impl FnOnce() -> c_int) -> c_int {
    if word == "link" && !asked().has_links && below(&to).is_some() {
        // SAFETY: a thread's own error number.
        unsafe { *__errno_location() = 1 }; // not permitted, as FAT says it
        return -1;
    }
    operate(&to, || format!("{word} {} {}", named(&from), named(&to)), -1, act)
}

macro_rules! on_two_paths {
    ($($name:ident $word:literal),*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(from: *const c_char, to: *const c_char) -> c_int {
            let real: OnTwoPaths = real(concat!(stringify!($name), "\0"));
            twice($word, absolute(AT_FDCWD, from), absolute(AT_FDCWD, to), || unsafe { real(from, to) })
        }
    )*};
}
on_two_paths!(rename "rename", link "link", symlink "symlink");

#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(a: c_int, from: *const c_char, b: c_int, to: *const c_char) -> c_int {
    let real: OnTwoPathsAt = real("renameat\0");
    twice("rename", absolute(a, from), absolute(b, to), || unsafe { real(a, from, b, to) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn linkat(a: c_int, from: *const c_char, b: c_int, to: *const c_char, flags: c_int) -> c_int {
    let real: unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, c_int) -> c_int = real("linkat\0");
    twice("link", absolute(a, from), absolute(b, to), || unsafe { real(a, from, b, to, flags) })
}

/// What tells a process which others it sees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    let real: ReadLink = real("readlink\0");
    // SAFETY: a path that ends with a zero, and a buffer of `size` bytes.
    unsafe {
        let machine = std::env::var("FAULTS_MACHINE").ok().filter(|_| CStr::from_ptr(path) == c"/proc/self/ns/pid");
        let Some(machine) = machine else { return real(path, buffer, size) };
        let length = machine.len().min(size);
        std::ptr::copy_nonoverlapping(machine.as_ptr(), buffer.cast(), length);
        length as isize
    }
}

/// Ways to write that pudica does not use: a test must not miss them if it ever does.
macro_rules! not_expected {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_long {
            note(concat!("0 0 unexpected ", stringify!($name), "\n"));
            unsafe { *__errno_location() = 38 }; // not implemented: std falls back to read and write
            -1
        }
    )*};
}
not_expected!(copy_file_range, sendfile, sendfile64, pwritev, pwritev64, renameat2);
