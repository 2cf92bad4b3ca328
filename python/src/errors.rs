//! What went wrong, as exceptions, in the words of Python.

use pudica_measure::MeasureError;
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Options of the command that are parameters here.
const PARAMETERS: [&str; 16] = [
    "budget",
    "data",
    "label",
    "labels",
    "measures",
    "method",
    "normalise",
    "nudge",
    "out",
    "p",
    "precision",
    "response",
    "rho",
    "sample",
    "size",
    "text",
];

/// A sentence of the command without the dashes of its options; what `pudica ...` would be typed stays as it is.
fn in_python(sentence: &str) -> String {
    let part = |(place, part): (usize, &str)| {
        let name: String = part.chars().take_while(char::is_ascii_lowercase).collect();
        let dashes = place > 0 && !PARAMETERS.contains(&name.as_str());
        if dashes { format!("--{part}") } else { part.to_string() }
    };
    sentence.split("--").enumerate().map(part).collect()
}

/// What is wrong with what was given.
pub fn value_error(problem: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(in_python(&problem.to_string()))
}

/// Why something could not be measured.
pub fn measure_error(error: &MeasureError) -> PyErr {
    match error {
        MeasureError::Lab(pudica_lab::Error::Io { .. }) => PyOSError::new_err(error.to_string()),
        error => value_error(error),
    }
}

/// A model's own exception, with where it came: a note (`__notes__`) and the number of the input (`pudica_input`).
pub fn located(py: Python<'_>, error: PyErr, problem: Option<String>, input: Option<usize>) -> PyErr {
    let Some(problem) = problem.filter(|_| error.is_instance_of::<PyException>(py)) else { return error };
    let value = error.value(py);
    if value.call_method1("add_note", (&problem,)).is_err() {
        let _ = value.setattr("__notes__", vec![&problem]);
        let _ = tell_in_traceback(value, problem); // all else is as it was
    }
    let _ = value.setattr("pudica_input", input); // some classes have no room for it
    error
}

/// Python 3.10 prints no notes. It prints exceptions that came before, so one more stands before the first of them.
fn tell_in_traceback(error: &Bound<'_, PyAny>, problem: String) -> PyResult<()> {
    let mut first = error.clone();
    // What was raised by hand may be its own cause; nobody chains so many.
    for _ in 0..100 {
        let (cause, context) = (first.getattr("__cause__")?, first.getattr("__context__")?);
        match [cause, context].into_iter().find(|before| !before.is_none()) {
            Some(before) => first = before,
            None => return first.setattr("__context__", PyRuntimeError::new_err(problem).value(error.py())),
        }
    }
    Ok(())
}
