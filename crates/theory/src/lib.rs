//! Theory made runnable: bounds and their constants, hand-built transformers, spectra of kernels on the cube, and predictors of synthetic
//! tokens.

pub mod automata;
pub mod bounds;
pub mod constructions;
mod error;
mod exact;
mod file;
pub mod spectra;
pub mod tokens;

pub use error::{Result, TheoryError};
pub use exact::{ExactEncoder, FirstLayer, NormTrace, Trace};
pub use file::{load_encoder, load_run_encoder, save_encoder, shortened};
// The command needs their names, and may not use pudica-nn itself.
pub use pudica_nn::{EncoderConfig, Weights};
