//! Long work without the interpreter, which Ctrl-C ends the wait for.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Does `work` on a thread of its own, with the interpreter released. After Ctrl-C its result is dropped: the work itself cannot be ended.
pub fn wait_for<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    std::thread::spawn(move || {
        let _ = sender.send(work()); // nobody waits any more
    });
    loop {
        let (answer, back) = py.detach(move || (receiver.recv_timeout(Duration::from_millis(50)), receiver));
        receiver = back;
        match answer {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("pudica met a mistake of its own; the lines above say where"));
            }
        }
    }
}
