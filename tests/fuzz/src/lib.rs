//! Damaged and hostile files, texts and settings for every reader and parser: no panic, no hang, no memory out of proportion to the file.
//!
//! - [`TARGETS`]: what is tried, one row for each reader, in `targets/`.
//! - [`Case`]: a file; [`mutate`](mod@mutate): how it is changed. Sound files are changed, and whatever leads to a sentence not heard before is kept
//!   and changed further.
//! - [`Fuzzer`]: one target being tried: panics, processor time and memory of every execution.
//! - [`watch`]: what remains of an execution that ends the process.
//! - [`campaign`]: many processes over all targets, for hours; [`State`]: in several calls.

pub mod campaign;
mod case;
mod fuzzer;
mod memory;
pub mod mutate;
mod random;
mod state;
mod target;
mod targets;
pub mod watch;

pub use case::Case;
pub use fuzzer::{Fuzzer, Tally};
pub use mutate::Form;
pub use random::Random;
pub use state::State;
pub use target::{Memory, Reader, Target};
pub use targets::TARGETS;
