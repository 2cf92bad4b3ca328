//! The laboratory: recipe -> plan -> runs -> store -> statistics.
//!
//! - [`config`]: the settings of one run, their defaults and rules; the run's id is their hash.
//! - [`recipe`]: experiments as TOML files, with two scales each; overrides as typed on the command line.
//! - [`plan`]: the ordered list of runs a recipe means.
//! - [`execute`]: makes the runs of a plan on several threads, telling [`Event`]s; running again continues.
//! - [`store`]: runs as folders.
//! - [`networks`]: the real training and measuring; [`trainer`]: what the rest needs of it.
//! - [`statistics`]: what is computed from many runs.

pub mod config;
mod error;
mod estimate;
pub mod events;
mod execute;
pub mod networks;
pub mod plan;
pub mod recipe;
mod results;
mod run_one;
pub mod statistics;
pub mod store;
pub mod trainer;
mod work;

pub use config::RunConfig;
pub use error::{Error, Result};
pub use estimate::{TimeEstimate, estimate};
pub use events::{Event, Observer, Tally};
pub use execute::execute;
pub use networks::NetworkTrainer;
pub use plan::Plan;
pub use recipe::Recipe;
pub use results::write_results;
pub use store::{Outcome, RunSummary, SweepFolder};
pub use trainer::{Stop, Trainer, Training};
pub use work::Work;
