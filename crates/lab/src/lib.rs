//! The laboratory: recipe -> plan -> runs -> store -> tables.
//!
//! - [`kinds`]: the kinds of experiment, one folder each: their settings, and how their runs begin, advance and are measured.
//! - [`settings`]: the settings of one run by dotted names; the run's id is their hash.
//! - [`recipe`]: experiments as TOML files, with two scales each; overrides as typed on the command line.
//! - [`plan`]: the ordered list of runs a recipe means.
//! - [`execute()`]: makes the runs of a plan of any kind, in lock-step where they may train together, telling [`Event`]s; running again
//!   continues. What it needs of a kind is an [`experiment::Experiment`].
//! - [`parts`]: a plan cut for several machines, each of which makes its [`Unit`].
//! - [`store`]: runs as folders; [`write_results`]: sweeps as tables; [`Table`]: any table as CSV and Parquet.

mod clock;
mod compute;
mod cores;
mod error;
mod estimate;
pub mod events;
mod execute;
pub mod experiment;
mod group;
pub mod kinds;
pub mod plan;
pub mod recipe;
mod results;
pub mod settings;
mod size;
mod stop;
pub mod store;
mod trained;
mod units;

pub use compute::{Abilities, Compute, Machine};
pub use error::{Error, Result};
pub use estimate::{TimeEstimate, estimate};
pub use events::{Event, Observer, Tally};
pub use execute::{execute, execute_with, open};
pub use kinds::{KINDS, Kind};
pub use plan::{Plan, Request};
pub use recipe::Recipe;
pub use results::{Cells, Table, write_results, write_table};
pub use settings::Settings;
pub use stop::{Progress, Stop};
pub use store::{Outcome, RunSummary, SweepFolder};
pub use trained::{Trained, trained_network};
pub use units::{Unit, parts};
