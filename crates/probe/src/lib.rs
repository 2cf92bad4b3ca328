//! Nudges, responses, aggregation: how functions and networks answer when they are touched.
//!
//! Every measure of sensitivity here is one [`Nudge`] (what is touched, where), one [`Response`] (what is compared) and the one
//! loop [`respond`] (which averages, with standard errors):
//!
//! - [`sharpness`]: noise on the weights; the loss rises, the outputs shift.
//! - [`network_sensitivity`]: a bit flips; the output shifts, the label changes.
//!
//! Beside them stand plain averages over inputs: [`evaluate`] (loss and accuracy) and [`blowup`] (LayerNorm factors), and the
//! [`parameter_norm`].

mod blowup;
mod error;
mod estimate;
mod evaluate;
mod model;
mod network_sensitivity;
mod norms;
mod respond;
mod sharpness;

pub use blowup::{Blowup, BlowupTotals, Blowups, NormBlowup, blowup};
pub use error::ProbeError;
pub use estimate::{Estimate, Moments};
pub use evaluate::{Evaluation, evaluate};
pub use model::Model;
pub use network_sensitivity::{
    BitFlip, LARGEST_EXACT, LabelDiffers, NetworkSensitivity, SquaredShift, cube_outputs, learnt_table,
    network_sensitivity,
};
pub use norms::parameter_norm;
pub use respond::{Nudge, Plan, Profile, Response, respond};
pub use sharpness::{Case, LossRise, Outcome, OutputShift, Sharpness, SharpnessConfig, WeightNoise, sharpness};
