//! The fast lane: R Boolean encoders of one shape, trained and probed at once by exact algebra.
//!
//! The networks are those of [`pudica_nn::EncoderConfig`], with the same weights, streams and numbers up to rounding; what differs
//! is how much work is done for them:
//!
//! - Layer 1 sees only 2n distinct tokens, so its queries, keys and values are tables of 2n rows.
//! - The last layer is read at one position, so keys and values fold into the query and the mixed vector.
//! - Strings that a batch repeats are computed once and weighted.
//! - Replicas are stacked: one launch, or one walk over the cores, for all of them.
//!
//! Gradients are derived by hand; `pudica_nn` stays as the readable reference and the oracle of the tests.
//!
//! An [`Engine`] is one such ensemble on one device.

mod cpu;
mod engine;
mod error;
mod gpu;
mod measure;
mod members;
mod precision;
mod reference;

pub use cpu::cpu;
pub use engine::{Engine, Member, Noise, NoisyResponse, NormSummary, Shape, StepWork, Strings};
pub use error::EnsembleError;
pub use gpu::{
    Ceilings, SCRATCHPADS_ON_GPU, ceilings, gpu, gpu_replicas, gpu_scratchpad, gpu_scratchpad_replicas,
    has_scratchpad_engine,
};
pub use measure::response;
pub use precision::Precision;
pub use reference::{one_by_one, reference};
