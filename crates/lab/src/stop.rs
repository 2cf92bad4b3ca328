//! Requests to stop, and the progress of long computations.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::error::{Error, Result};

/// A request to stop, shared by all that hold a clone of it; Ctrl-C requests it.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Its own flag, then those of its parents.
    flags: Vec<Arc<AtomicBool>>,
}

impl Default for Stop {
    fn default() -> Self {
        Stop { flags: vec![Arc::default()] }
    }
}

impl Stop {
    /// Not requested yet.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// A new request that is also made whenever this one is, but not the other way round.
    pub fn child(&self) -> Stop {
        let mut new = Stop::new();
        new.flags.extend(self.flags.iter().cloned());
        new
    }

    /// Asks everyone to stop.
    pub fn request(&self) {
        self.flags[0].store(true, Ordering::SeqCst);
    }

    /// Whether stopping was requested.
    pub fn requested(&self) -> bool {
        self.flags.iter().any(|flag| flag.load(Ordering::SeqCst))
    }

    /// An error if stopping was requested; long computations call this every now and then.
    pub fn check(&self) -> Result<()> {
        if self.requested() { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// What a long computation reports to, and how it hears that it should stop.
pub struct Progress<'a> {
    stop: &'a Stop,
    done: Arc<Mutex<f64>>,
    /// Work of one tick.
    unit: f64,
    /// Hears the work done since this progress was made.
    hear: &'a (dyn Fn(f64) + Sync),
}

impl<'a> Progress<'a> {
    /// Nothing is done yet; `hear` is told the sum of all ticks.
    pub fn new(stop: &'a Stop, hear: &'a (dyn Fn(f64) + Sync)) -> Self {
        Progress { stop, done: Arc::default(), unit: 1.0, hear }
    }

    /// The same progress, told in ticks that are each so much work.
    pub fn in_units(&self, unit: f64) -> Progress<'a> {
        Progress { stop: self.stop, done: Arc::clone(&self.done), unit: self.unit * unit, hear: self.hear }
    }

    /// This much more work is done, in the unit of [`Work`](crate::experiment::Work); an error if stopping was requested.
    pub fn tick(&self, work: f64) -> Result<()> {
        let mut done = self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *done += self.unit * work;
        (self.hear)(*done);
        self.stop.check()
    }

    /// Whether stopping was requested.
    pub fn stopped(&self) -> bool {
        self.stop.requested()
    }
}

/// Does work that cannot be interrupted and has nothing to save, on a thread of its own; when stopping is requested, that thread is left
/// behind, to end with the process.
pub(crate) fn unless_stopped<T: Send + 'static>(
    progress: &Progress,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    const LOOK: Duration = Duration::from_millis(50);
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::Builder::new().spawn(move || {
        let _ = sender.send(work()); // nobody listens any more where stopping was requested
    });
    let worker = worker.map_err(|error| Error::Other(format!("cannot start a thread: {error}")))?;
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Timeout) => progress.stop.check()?,
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(Error::Other("a thread ended without a result".into())),
            },
        }
    }
}

/// For tests and timings: nobody listens, nobody stops.
pub fn without_progress<T>(compute: impl FnOnce(&Progress) -> T) -> T {
    compute(&Progress::new(&Stop::new(), &|_| ()))
}
