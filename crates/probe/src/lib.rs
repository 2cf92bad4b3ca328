//! Nudges, responses, aggregation: how functions and networks answer when they are touched.
//!
//! A measure of sensitivity is a nudge (what is touched, where), a response (what is compared) and averages with standard errors:
//!
//! - [`sharpness`]: noise on the weights; the loss rises, the outputs shift.
//! - [`network_sensitivity`]: a bit flips; the output shifts, the label changes.
//! - [`ReplaceToken`] and [`SignDiffers`]: a token is replaced; the sign of the output changes.
//!
//! Beside them stand plain averages over inputs: [`evaluate`] (loss and accuracy) and [`blowup`] (LayerNorm factors), and the
//! [`parameter_norm`].
//!
//! These measures are taken of a whole [`pudica_ensemble::Engine`] at once and give one result for each of its networks, in order. The engine
//! computes; what is averaged over what, and how far off it may be, is decided here. Those of networks
//! on images and texts are in [`classifier`]. Where inputs are nudged, the one loop is [`respond`], with any [`Nudge`] and [`Response`].

mod blowup;
pub mod classifier;
mod error;
mod evaluate;
mod model;
mod network_sensitivity;
mod norms;
#[cfg(test)]
mod plain;
mod respond;
mod sharpness;
mod tokens;

pub use blowup::{Blowup, BlowupTotals, Blowups, NormBlowup, blowup};
pub use error::ProbeError;
pub use evaluate::{Evaluation, evaluate};
pub use model::Model;
pub use network_sensitivity::{
    BitFlip, LARGEST_EXACT, LabelDiffers, NetworkSensitivity, SquaredShift, cube_outputs, learnt_table,
    network_sensitivity,
};
pub use norms::parameter_norm;
pub use pudica_statistics::{Estimate, Moments};
pub use respond::{Nudge, Plan, Profile, Response, respond};
pub use sharpness::{Sharpness, SharpnessConfig, sharpness};
pub use tokens::{ReplaceToken, SignDiffers};
