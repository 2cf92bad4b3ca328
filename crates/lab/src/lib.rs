//! The laboratory: recipe -> plan -> runs -> store -> statistics.
//!
//! - [`config`]: the settings of one run, their defaults and rules; the run's id is their hash.
//! - [`recipe`]: experiments as TOML files, with two scales each; overrides as typed on the command line.
//! - [`plan`]: the ordered list of runs a recipe means.
//! - [`execute`]: makes the runs of a plan, in lock-step where they [may train together](company), telling [`Event`]s; running again
//!   continues.
//! - [`store`]: runs as folders.
//! - [`spectra`]: the one experiment that trains nothing; [`synthetic`]: one attention layer on synthetic tokens.
//! - [`study`]: classifiers of images and texts, followed through training.
//! - [`networks`]: the real training and measuring; [`trainer`]: what the rest needs of it.
//! - [`statistics`]: what is computed from many runs.

mod company;
pub mod config;
mod cores;
mod error;
mod estimate;
pub mod events;
mod execute;
pub mod grokking;
mod group;
pub mod networks;
pub mod plan;
pub mod recipe;
mod results;
pub mod spectra;
pub mod store;
pub mod study;
pub mod synthetic;
pub mod table;
mod timing;
pub mod trainer;
mod work;

pub use company::company;
pub use config::{Configuration, RunConfig};
pub use error::{Error, Result};
pub use estimate::{TimeEstimate, estimate};
pub use events::{Event, Observer, Tally};
pub use execute::execute;
pub use networks::{NetworkTrainer, Precision};
pub use plan::Plan;
pub use pudica_statistics as statistics;
pub use recipe::Recipe;
pub use results::{write_results, write_study_results};
pub use store::{Outcome, RunSummary, SweepFolder};
pub use timing::{Rates, Timing, time};
pub use trainer::{Stop, Trainer, Training};
pub use work::{Passes, Work};
