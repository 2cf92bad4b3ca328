//! Any model, any inputs, any nudge: how it responds.
//!
//! - [`InputSet`]: what a model is asked about: pictures, arrays, tables, texts, bits, read one at a time.
//! - [`nudges`]: what is done to inputs and weights, by name; [`Compared`]: what is compared before and after.
//! - [`measure`]: asks every model about every nudge, into a folder that can be continued.
//! - [`results`]: what was found, as `summary.json` and `details.json` state it and the page shows it.

mod asked;
mod attack;
mod curvature;
mod error;
mod exact;
mod found;
pub mod inputs;
mod measure;
mod nudged;
pub mod nudges;
mod own_runs;
mod responses;
pub mod results;
mod table;
mod weights;
mod work;

pub use error::{MeasureError, MeasureResult};
pub use exact::MOST_BITS;
pub use inputs::{AboutInputs, Held, InputSet, InputsRequest, Labelled};
pub use measure::{Finding, Question, measure};
pub use nudged::Enough;
pub use own_runs::open_model;
pub use pudica_probe::InputKind;
pub use responses::{Answer, Compared, RESPONSES};
