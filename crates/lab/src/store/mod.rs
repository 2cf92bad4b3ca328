//! Runs are folders. No server, no database: JSON, JSON lines and safetensors, as any tool reads them.
//!
//! ```text
//! DIR/sweep.json                 what was asked for: recipe, scale, overrides, the ids and labels of all runs
//! DIR/.lock                      held while a process makes the whole sweep here
//! DIR/.work/                     who is at work here and how far (one file per process), and who makes which run
//! DIR/damaged/                   runs that `--repair` has moved aside
//! DIR/runs/<id>/config.json      the run's settings, complete
//!               data.json        where a data set was read: how much of it was found
//!               metrics.jsonl    one line for each logged step
//!               checkpoint.safetensors   while unfinished: weights, optimiser state, step
//!               weights.safetensors      the trained network, under PyTorch's names
//!               summary.json     the outcome; written last, so its presence means the run is finished
//! ```
//!
//! Every file is written under a scratch name, synced to the disk and renamed, so that a crash leaves the old file or the
//! new one, never half of one. Only metrics.jsonl grows in place; what is in it beyond the checkpoint is dropped on resuming.

mod at_work;
mod atomic;
mod check;
mod claim;
mod merge;
mod owner;
mod run;
mod status;
mod sweep;
mod take_over;

pub use at_work::{AtWork, RunAt};
pub use atomic::{read_json, write_atomically, write_bytes, write_json};
pub use check::{Damage, DamagedRun, Files};
pub use merge::{Merged, merge};
pub use owner::Owner;
pub use run::{MadeBy, Outcome, RunFolder, RunSummary};
pub use status::{Failure, Status};
pub use sweep::{RunRecord, SweepFolder, SweepRecord, SweepRun, lock};

pub(crate) use at_work::{BEAT, Presence};
pub(crate) use check::{State, Weights};
pub(crate) use claim::{Answer, Claim, Claims, STALE_AFTER, Standing};

use std::path::Path;

use crate::error::{Error, Result};

/// The version of the folder layout; folders of a later one are refused, not misread. In format 1 a run's id did not cover what it was
/// computed on, and kinds `synthetic` and `spectra` had no run folders.
pub const FORMAT: u32 = 2;

fn check_format(path: &Path, format: u32) -> Result<()> {
    match format {
        1..=FORMAT => Ok(()),
        _ => {
            let problem = format!(
                "was written in format {format} by another pudica, and this one reads formats 1 to {FORMAT}; use that one"
            );
            Err(Error::Folder { path: path.into(), problem })
        }
    }
}
