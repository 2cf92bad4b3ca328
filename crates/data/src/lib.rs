//! What is learnt: targets, samplers and named random streams.
//!
//! - [`Stream`]: random numbers named by (run seed, purpose, step), never by a stored generator state.
//! - [`Bits`]: a batch of bit strings, and how such batches are drawn.
//! - [`Target`]: the function a network is asked to learn, from a batch of strings to their labels.
//! - [`ModularTask`]: a table of modular arithmetic, of which a part is seen.
//! - [`TokenTask`]: sequences of synthetic tokens with a label.
//! - [`Split`]: the part of a data set that networks are trained on, or tested on.
//! - [`Divided`], [`Division`], [`digest`], [`identity`]: own data in two parts, divided by seed where they are not, and their identity.
//! - [`Task`]: a target, where its strings come from, and what is asked about them.
//! - [`corruptions`]: those of CIFAR-10-C, seeded.
//! - [`sources`]: where the data sets are published.
//! - [`images`]: labelled images, the files they come in, and the known data sets.
//! - [`text`]: labelled texts, the files they come in, and their tokens (feature `text`).

mod bits;
pub mod corruptions;
mod error;
pub mod images;
mod modular;
mod own;
pub mod sources;
mod split;
mod stream;
mod tables;
mod target;
mod task;
#[cfg(feature = "text")]
pub mod text;
mod tokens;
mod training_set;

pub use bits::Bits;
pub use error::{DataError, FileError, FileResult};
pub use modular::{LARGEST_MODULUS, ModularTask, Pairs, Polynomial};
pub use own::{Divided, Division, digest, entries, identity, name_of};
pub use split::Split;
pub use stream::Stream;
pub use target::{Target, Written, prefix_parities};
pub use task::{Batch, Task};
pub use tokens::{TokenKind, TokenSet, TokenTask};
pub use training_set::TrainingSet;
