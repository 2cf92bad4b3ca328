//! Long work without the interpreter, which Ctrl-C ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pudica_boolean::stop::until;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often signals are looked for.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a computation that is to end is waited for.
const FAREWELL: Duration = Duration::from_secs(2);

/// Does `work` on threads of its own, with the interpreter released. Ctrl-C ends it.
pub fn wait_for<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let heeded = stop.clone();
    std::thread::spawn(move || {
        if let Some(result) = until(&heeded, work) {
            let _ = sender.send(result); // nobody waits any more
        }
    });
    loop {
        let (answer, back) = py.detach(move || (receiver.recv_timeout(PAUSE), receiver));
        receiver = back;
        match answer {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    stop.store(true, Ordering::Relaxed);
                    py.detach(move || drop(receiver.recv_timeout(FAREWELL)));
                    return Err(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("pudica met a mistake of its own; the lines above say where"));
            }
        }
    }
}
