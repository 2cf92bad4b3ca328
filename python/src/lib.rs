//! `pudica._pudica`: what the Python package `pudica` stands on. Its Python half (`python/pudica`) has the words for users; here arrays come
//! in and go out, and the interpreter is released while Rust works.

mod batch;
mod boolean;
mod edits;
mod errors;
mod measure;
mod model;
mod wait;

// As in the command: networks allocate and free large tensors all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The extension module.
#[pyo3::pymodule]
mod _pudica {
    use pudica_statistics::{Estimate, Mean};
    use pyo3::prelude::*;
    use std::ffi::OsString;

    #[pymodule_export]
    use crate::boolean::Function;
    #[pymodule_export]
    use crate::measure::{measure, write_page};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("PROGRAM", pudica::PROGRAM)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// The `pudica` command with these arguments, the program's name first: its exit code. Once per process.
    #[pyfunction]
    fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| pudica::main_with(arguments))
    }

    /// The 95 % interval (Student's) of a mean of so many independent values with this standard error.
    #[pyfunction]
    fn interval(mean: f64, std_error: f64, samples: u64) -> (f64, f64) {
        let found = Mean::of_estimate(&Estimate { mean, std_error: Some(std_error), samples, exact: false });
        (found.low, found.high)
    }
}
