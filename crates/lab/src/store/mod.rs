//! Runs are folders. No server, no database: JSON, JSON lines and safetensors, as any tool reads them.
//!
//! ```text
//! DIR/sweep.json                 what was asked for: recipe, scale, overrides, the ids of all runs
//! DIR/.lock                      held while a process works here
//! DIR/runs/<id>/config.json      the run's settings, complete
//!               data.json        of studies: how much data was found
//!               metrics.jsonl    one line for each logged step
//!               checkpoint.safetensors   while unfinished: weights, optimiser state, step
//!               weights.safetensors      the trained network, under PyTorch's names
//!               summary.json     the outcome; written last, so its presence means the run is finished
//! ```
//!
//! Every file is written under a scratch name, synced to the disk and renamed, so that a crash leaves the old file or the
//! new one, never half of one. Only metrics.jsonl grows in place; what is in it beyond the checkpoint is dropped on resuming.

mod atomic;
mod run;
mod sweep;

pub(crate) use atomic::{read_json, write_json};
pub use atomic::{write_atomically, write_bytes};
pub use run::{Outcome, RunFolder, RunSummary};
pub use sweep::{SweepFolder, SweepRecord, SweepRun};

/// The version of the folder layout; folders of another one are refused, not misread.
pub const FORMAT: u32 = 1;
