//! What Ctrl-C, a closed terminal and a cluster's scheduler send: save, end, and say how to continue.

use pudica_lab::Stop;
use std::io;
use std::thread;
use std::time::Duration;

/// From now on SIGINT (Ctrl-C), SIGTERM and SIGHUP end the process at once, with a word and with 128 + the signal's number: nothing is
/// there yet that has to be saved. Under `nohup`, SIGHUP stays ignored.
pub fn end_on_signals() -> io::Result<()> {
    imp::end_on_signals()
}

/// From now on SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGUSR1 request `stop`; where this was said before, nothing changes. A second signal
/// of the same kind does not wait: it ends the process with 128 + its number. Under `nohup`, SIGHUP stays ignored.
pub fn stop_on_signals(stop: Stop) -> io::Result<()> {
    imp::stop_on_signals(stop)
}

/// Does something when `stop` was requested and the process has not ended a moment later.
pub fn if_it_takes_long(stop: Stop, then: impl FnOnce() + Send + 'static) {
    const LOOK: Duration = Duration::from_millis(50);
    const MOMENT: Duration = Duration::from_millis(1200);
    // Without a thread more, only this courtesy is missing.
    let _ = thread::Builder::new().spawn(move || {
        while !stop.requested() {
            thread::sleep(LOOK);
        }
        thread::sleep(MOMENT);
        then();
    });
}

/// Ends the process at once, with the code of the signal that came.
pub fn leave() -> ! {
    imp::leave()
}

/// The exit code of a run that a signal ended: 128 + its number, as shells report it.
pub fn exit_code() -> u8 {
    imp::exit_code()
}

#[cfg(unix)]
mod imp {
    use pudica_lab::Stop;
    use std::io::{self, IsTerminal};
    use std::mem::MaybeUninit;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};

    static STOP: OnceLock<Stop> = OnceLock::new();
    /// The signal that came first, 0 before.
    static FIRST: AtomicI32 = AtomicI32::new(0);
    /// Signals that came, one bit each.
    static CAME: AtomicU64 = AtomicU64::new(0);
    /// Whether standard error is a terminal, which has just shown `^C` in the middle of a line.
    static ON_TERMINAL: AtomicBool = AtomicBool::new(false);

    pub fn end_on_signals() -> io::Result<()> {
        ON_TERMINAL.store(io::stderr().is_terminal(), SeqCst);
        handle_all(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
    }

    pub fn stop_on_signals(stop: Stop) -> io::Result<()> {
        let _ = STOP.set(stop); // the first one counts
        handle_all(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1])
    }

    fn handle_all(signals: &[libc::c_int]) -> io::Result<()> {
        for signal in signals {
            if !(*signal == libc::SIGHUP && is_ignored(*signal)?) {
                handle(*signal)?;
            }
        }
        Ok(())
    }

    pub fn leave() -> ! {
        // SAFETY: ends the process, without destructors.
        unsafe { libc::_exit(exit_code().into()) }
    }

    pub fn exit_code() -> u8 {
        match FIRST.load(SeqCst) {
            0 => 130,
            signal => 128 + signal as u8,
        }
    }

    /// Interrupts any thread at any place, so it touches only atomics.
    extern "C" fn on_signal(signal: libc::c_int) {
        let bit = 1 << signal;
        if CAME.fetch_or(bit, SeqCst) & bit != 0 {
            // SAFETY: ends the process, without destructors.
            unsafe { libc::_exit(128 + signal) };
        }
        let _ = FIRST.compare_exchange(0, signal, SeqCst, SeqCst); // only the first counts
        match STOP.get() {
            Some(stop) => stop.request(),
            None => {
                let word = if ON_TERMINAL.load(SeqCst) { &b"\npudica: stopped\n"[..] } else { b"pudica: stopped\n" };
                // SAFETY: writes bytes that live for ever; what cannot be written is not missed.
                unsafe { libc::write(libc::STDERR_FILENO, word.as_ptr().cast(), word.len()) };
                leave();
            }
        }
    }

    fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
        let mut now = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only asks; `now` is valid for writing and, all integers and pointers, valid when zero.
        match unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) } {
            0 => Ok(unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn handle(signal: libc::c_int) -> io::Result<()> {
        // SAFETY: an empty mask and a handler that is safe at any moment; calls it interrupts are restarted.
        let result = unsafe {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(signal, &action, std::ptr::null_mut())
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Elsewhere there is only Ctrl-C.
#[cfg(not(unix))]
mod imp {
    use pudica_lab::Stop;
    use std::io;

    pub fn stop_on_signals(stop: Stop) -> io::Result<()> {
        ctrlc::set_handler(move || {
            if stop.requested() {
                std::process::exit(130);
            }
            stop.request();
        })
        .map_err(io::Error::other)
    }

    pub fn end_on_signals() -> io::Result<()> {
        Ok(()) // as the system does it
    }

    pub fn exit_code() -> u8 {
        130
    }

    pub fn leave() -> ! {
        std::process::exit(130)
    }
}
