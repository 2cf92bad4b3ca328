//! Printing that cannot panic. These macros take the place of the standard ones in the whole crate: a full disk behind standard output is
//! told once, at the end, by [`finish`], and what standard error cannot take is dropped.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[allow(unused_macros)] // it is there for who wants it, as the standard one is
macro_rules! print {
    ($($text:tt)*) => { $crate::out::to_stdout(format_args!($($text)*)) };
}
macro_rules! println {
    () => { $crate::out::to_stdout(format_args!("\n")) };
    ($($text:tt)*) => { $crate::out::to_stdout(format_args!("{}\n", format_args!($($text)*))) };
}
macro_rules! eprint {
    ($($text:tt)*) => { $crate::out::to_stderr(format_args!($($text)*)) };
}
macro_rules! eprintln {
    () => { $crate::out::to_stderr(format_args!("\n")) };
    ($($text:tt)*) => { $crate::out::to_stderr(format_args!("{}\n", format_args!($($text)*))) };
}

/// Whether anything was printed so far.
static SPOKE: AtomicBool = AtomicBool::new(false);

/// After this time without a word, a command says what it does.
const PATIENCE: Duration = Duration::from_secs(1);

/// Says what is being done if nothing else is said within a second.
pub fn say_if_silent(doing: String) {
    if doing.is_empty() {
        return;
    }
    // Without a thread more, only this courtesy is missing.
    let _ = thread::Builder::new().spawn(move || {
        thread::sleep(PATIENCE);
        if !SPOKE.load(SeqCst) {
            eprintln!("{doing} ...");
        }
    });
}

/// Something is seen: a bar, say.
pub fn spoke() {
    SPOKE.store(true, SeqCst);
}

/// What standard output refused, the first time it did.
static PROBLEM: OnceLock<String> = OnceLock::new();

/// `print!` and `println!`. After a first refusal nothing more is tried: a text with holes misleads.
pub fn to_stdout(text: fmt::Arguments) {
    spoke();
    if PROBLEM.get().is_none() {
        note(io::stdout().lock().write_fmt(text));
    }
}

/// `eprint!` and `eprintln!`.
pub fn to_stderr(text: fmt::Arguments) {
    spoke();
    let _ = io::stderr().lock().write_fmt(text); // there is no further place to complain
}

/// Remembers a problem with standard output. A reader that left is none: `pudica ... | head` ends as other commands do.
pub fn note(result: io::Result<()>) {
    if let Err(error) = result {
        if error.kind() == io::ErrorKind::BrokenPipe {
            end_by_broken_pipe();
        }
        let _ = PROBLEM.set(pudica_boolean::atomic::sentence(&error)); // the first one counts
    }
}

/// Hands on everything printed so far; what went wrong with it, if anything did.
pub fn finish() -> Option<&'static str> {
    note(io::stdout().lock().flush());
    PROBLEM.get().map(String::as_str)
}

/// Ends as the signal would that Rust programs ignore. It is not switched on for the whole program: `pudica measure` also writes to
/// programs that may have ended, and has to tell so.
fn end_by_broken_pipe() -> ! {
    // SAFETY: restores a signal's default action and sends it to this process, which ends.
    #[cfg(unix)]
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::raise(libc::SIGPIPE);
    }
    std::process::exit(0)
}
