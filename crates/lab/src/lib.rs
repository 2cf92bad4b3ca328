//! The laboratory: recipe -> plan -> runs -> store -> statistics.
//!
//! - [`config`]: the settings of one run, their defaults and rules; the run's id is their hash.
//! - [`recipe`]: experiments as TOML files, with two scales each; overrides as typed on the command line.
//! - [`plan`]: the ordered list of runs a recipe means.

pub mod config;
mod error;
pub mod plan;
pub mod recipe;

pub use config::RunConfig;
pub use error::{Error, Result};
pub use plan::Plan;
pub use recipe::Recipe;
