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
//! A network of your own is a closure on batches. How often does noise on one 2x2 patch of its image change its label?
//!
//! ```
//! use pudica_probe::{Budget, LabelDiffers, PatchGrid, PatchNoise, ProbeError, respond};
//!
//! // Two classes from 4x4 grey images: is the upper half brighter than the lower? Yours would run a forward pass here.
//! let label = |image: &Vec<f32>| usize::from(image[..8].iter().sum::<f32>() > image[8..].iter().sum::<f32>());
//! let mut network = |batch: &[Vec<f32>]| Ok::<_, ProbeError>(batch.iter().map(label).collect());
//!
//! let images = (0..100).map(|i| (0..16).map(|pixel| ((i * 7 + pixel * 5) % 11) as f32 / 11.0).collect());
//! let nudge = PatchNoise { grid: PatchGrid::new([1, 4, 4], 2)?, variance: 1.0 };
//! let found = respond(&mut network, images, &nudge, &[&LabelDiffers], &Budget::new(5, 64, 0, "example"))?;
//!
//! let sensitivity = found[0].mean; // over images, patches and draws, with its standard error over images
//! assert!(sensitivity.mean > 0.1 && sensitivity.mean < 0.6 && sensitivity.std_error.unwrap() < 0.05);
//! assert_eq!((found[0].by_site.len(), found[0].by_input.len()), (4, 100));
//! # Ok::<_, ProbeError>(())
//! ```
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
mod parts;
mod respond;
mod response;
mod subject;

pub use error::ProbeError;
pub use exact::{Cut, LARGEST_EXACT, NetworkSensitivity, OutputSpread};
#[cfg(feature = "networks")]
pub use networks::*;
pub use nudge::*;
pub use parts::respond_in_parts;
pub use pudica_statistics::{Estimate, Moments, Precision};
pub use respond::{Budget, Looks, Profile, cautious, respond};
pub use response::{Crosses, LabelDiffers, RESPONSES, Response, ResponseEntry, SignDiffers, SquaredShift};
pub use subject::{NoiseName, Subject, Take, Touch, Touches};
