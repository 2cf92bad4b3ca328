//! Theory made runnable: bounds and their constants, hand-built transformers, and spectra of kernels on the cube.

mod error;

pub use error::{Result, TheoryError};
