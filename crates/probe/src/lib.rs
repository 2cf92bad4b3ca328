//! Nudges, responses, aggregation: how functions and networks answer when they are touched.
//!
//! Everything measured is a [`Subject`] (what answers), a [`Nudge`] (what is touched, where), a [`Response`] (what is compared) and averages
//! with standard errors. The one loop is [`respond`], to a [`Budget`]:
//!
//! - [`BitFlip`]: a bit flips; the label changes ([`LabelDiffers`]), the output shifts ([`SquaredShift`]).
//! - [`ReplaceToken`]: a token is replaced; the sign of the output changes ([`SignDiffers`]).
//! - [`PatchNoise`], [`PatchReplacement`]: a patch of an image gets noise, or is replaced.
//! - [`EmbeddingNoise`], [`WordReplacement`]: an embedding of a text gets noise, or a word is replaced.
//! - `WeightNoise`: the weights get noise; the loss rises, the outputs shift, the label changes.
//!
//! [`NUDGES`] lists them by the names that settings know. Where a function of bits is known on every string nothing is sampled
//! ([`NetworkSensitivity::exact`]).
//!
//! So far nothing here needs a network of ours: subjects are whatever somebody brings. With the feature `networks` come the measures of
//! those of `pudica_nn`: of a whole `pudica_ensemble::Engine` at once (`sharpness`, `network_sensitivity`, `evaluate`, `blowup`, with one
//! result for each of its networks, in order), of classifiers of images and texts (`classifier`), and the `parameter_norm`.

mod error;
mod exact;
#[cfg(feature = "networks")]
mod networks;
mod nudge;
mod respond;
mod response;
mod subject;

pub use error::ProbeError;
pub use exact::{Cut, LARGEST_EXACT, NetworkSensitivity, OutputSpread};
#[cfg(feature = "networks")]
pub use networks::*;
pub use nudge::*;
pub use pudica_statistics::{Estimate, Moments, Precision};
pub use respond::{Budget, Looks, Profile, cautious, respond};
pub use response::{Crosses, LabelDiffers, RESPONSES, Response, ResponseEntry, SignDiffers, SquaredShift};
pub use subject::{NoiseName, Subject, Touch, Touches};
