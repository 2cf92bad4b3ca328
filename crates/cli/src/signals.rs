//! What Ctrl-C, a closed terminal and a cluster's scheduler send: save, end, and say how to continue.

use pudica_lab::Stop;
use std::io;

/// From now on SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGUSR1 request `stop`. A second signal of the same kind does not wait: it ends the
/// process with 128 + its number. Under `nohup`, SIGHUP stays ignored.
pub fn stop_on_signals(stop: Stop) -> io::Result<()> {
    imp::stop_on_signals(stop)
}

/// The exit code of a run that a signal ended: 128 + its number, as shells report it.
pub fn exit_code() -> u8 {
    imp::exit_code()
}

#[cfg(unix)]
mod imp {
    use pudica_lab::Stop;
    use std::io;
    use std::mem::MaybeUninit;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

    static STOP: OnceLock<Stop> = OnceLock::new();
    /// The signal that came first, 0 before.
    static FIRST: AtomicI32 = AtomicI32::new(0);
    /// Signals that came, one bit each.
    static CAME: AtomicU64 = AtomicU64::new(0);

    pub fn stop_on_signals(stop: Stop) -> io::Result<()> {
        if STOP.set(stop).is_err() {
            return Err(io::Error::other("signals are handled already"));
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1] {
            if !(signal == libc::SIGHUP && is_ignored(signal)?) {
                handle(signal)?;
            }
        }
        Ok(())
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
        if let Some(stop) = STOP.get() {
            stop.request();
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

    pub fn exit_code() -> u8 {
        130
    }
}
