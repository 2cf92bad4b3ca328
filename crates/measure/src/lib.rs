//! Any model, any inputs, any nudge: how it responds.
//!
//! - [`InputSet`]: what a model is asked about: pictures, arrays, tables, texts, bits, read one at a time.
//! - [`results`]: what was found, as `summary.json` and `details.json` state it and the page shows it.

mod error;
pub mod inputs;
pub mod results;

pub use error::{MeasureError, MeasureResult};
pub use inputs::{AboutInputs, InputSet, InputsRequest, Labelled};
