//! Nudges: what is touched, and where.

mod bits;
mod each;
mod names;
mod patches;
mod text;
mod tokens;

use pudica_data::Stream;

use crate::NoiseName;

pub use bits::BitFlip;
pub use each::{Each, OfOne};
pub use names::{InputKind, NUDGES, NudgeEntry, NudgeName};
pub use patches::{PatchGrid, PatchNoise, PatchReplacement};
pub use text::{EmbeddingNoise, Sequence, TokenTouch, WordReplacement};
pub use tokens::ReplaceToken;

/// What is touched, and where it can be touched.
pub trait Nudge<In>: Sync {
    /// The places where `input` can be touched, each on its own.
    fn sites(&self, input: &In) -> usize;

    /// `input` after one touch at one site; a nudge that is random takes its randomness from `noise`.
    fn apply(&self, input: &In, site: usize, noise: &mut Stream) -> In;

    /// The stream a touch takes its randomness from.
    fn stream(&self, name: &NoiseName) -> Stream {
        name.stream()
    }
}
