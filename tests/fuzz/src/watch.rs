//! A watch over executions: panics, those that end the process, and those that never end. What was read then is written to a file.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An execution that lasts longer by the clock on the wall is given up.
pub const HANGS: Duration = Duration::from_secs(30);

/// What is being read, for the handler of a signal: the bytes, their number, and the name of the file to write them to.
static BYTES: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static NAME: AtomicPtr<libc::c_char> = AtomicPtr::new(null_mut());

/// When it began, in milliseconds; 0: nothing is being read.
static BEGUN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static PANIC: RefCell<(String, String)> = const { RefCell::new((String::new(), String::new())) };
    static NAMES: RefCell<HashMap<(&'static str, usize), CString>> = RefCell::new(HashMap::new());
}

/// Panics are noted instead of printed, and a process that ends itself (for want of memory or of stack) leaves what it was reading.
pub fn install() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let said = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
        let said: String = said.unwrap_or_default().chars().take(300).collect();
        PANIC.with(|last| *last.borrow_mut() = (place, said));
    }));
    let handler: extern "C" fn(libc::c_int) = on_abort;
    // SAFETY: the handler calls nothing but what signal handlers may.
    unsafe { libc::signal(libc::SIGABRT, handler as libc::sighandler_t) };
}

/// Where the last panic of this thread was, and what it said.
pub fn last_panic() -> (String, String) {
    PANIC.with(|last| last.borrow().clone())
}

extern "C" fn on_abort(_: libc::c_int) {
    write_down();
    // SAFETY: ends the process.
    unsafe { libc::_exit(134) };
}

/// Writes what is being read to its file.
fn write_down() {
    let (name, bytes) = (NAME.load(Ordering::SeqCst), BYTES.load(Ordering::SeqCst));
    if name.is_null() || bytes.is_null() {
        return;
    }
    // SAFETY: both live while something is being read, and are set back after.
    unsafe {
        let file = libc::open(name, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, 0o644);
        if file >= 0 {
            libc::write(file, bytes.cast(), LENGTH.load(Ordering::SeqCst));
            libc::close(file);
        }
    }
}

/// An execution under way.
pub struct Watched {
    begun: Duration,
}

/// Begins an execution: these bytes are read, and written to `failures` if the process does not survive that.
pub fn begin(target: &'static str, part: usize, bytes: &[u8], failures: &Path) -> Watched {
    let name = NAMES.with(|names| {
        let mut names = names.borrow_mut();
        let name = names.entry((target, part)).or_insert_with(|| {
            let path = failures.join(format!("{target}.{part}.end-{:08x}", std::process::id()));
            CString::new(path.into_os_string().into_vec()).unwrap_or_default()
        });
        name.as_ptr().cast_mut()
    });
    LENGTH.store(bytes.len(), Ordering::SeqCst);
    BYTES.store(bytes.as_ptr().cast_mut(), Ordering::SeqCst);
    NAME.store(name, Ordering::SeqCst);
    BEGUN.store(now(), Ordering::SeqCst);
    Watched { begun: processor_time() }
}

impl Watched {
    /// Ends it; the processor time that this thread has spent.
    pub fn end(self) -> Duration {
        BEGUN.store(0, Ordering::SeqCst);
        NAME.store(null_mut(), Ordering::SeqCst);
        processor_time().saturating_sub(self.begun)
    }
}

/// Ends the process if an execution lasts too long; called now and then by another thread.
pub fn check() {
    let begun = BEGUN.load(Ordering::SeqCst);
    if begun != 0 && now().saturating_sub(begun) > HANGS.as_millis() as u64 {
        eprintln!("an execution has not ended after {HANGS:?}");
        write_down();
        std::process::exit(134);
    }
}

fn now() -> u64 {
    static START: std::sync::OnceLock<(Instant, u64)> = std::sync::OnceLock::new();
    let (start, at) = START.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), since.as_millis() as u64)
    });
    at + start.elapsed().as_millis() as u64
}

/// What this thread has computed so far: other processes do not count.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills `time`, which is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
