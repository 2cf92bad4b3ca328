//! Theory made runnable: bounds and their constants, hand-built transformers, and spectra of kernels on the cube.

pub mod automata;
pub mod bounds;
pub mod constructions;
mod error;
mod exact;
mod file;
pub mod spectra;

pub use error::{Result, TheoryError};
pub use exact::{ExactEncoder, NormTrace, Trace};
pub use file::{load_encoder, save_encoder};
