//! The networks, one file or folder each.

mod embedding;
mod encoder;
mod encoder_decoder;
pub mod grokking;
mod mlp;
mod recurrent;
mod recurrent_mixer;
mod rotary;
pub mod text;
pub mod token_attention;
mod transformer;
mod variants;
pub mod vision;

pub use embedding::Embed;
pub(crate) use encoder::Encoder;
pub use encoder::{EncoderConfig, StateSpaceConfig, TransformerConfig};
pub(crate) use encoder_decoder::EncoderDecoder;
pub use encoder_decoder::EncoderDecoderConfig;
pub(crate) use mlp::Mlp;
pub use mlp::MlpConfig;
pub(crate) use recurrent::Recurrent;
pub use recurrent::RecurrentConfig;
pub use variants::{Eigenvalues, Normalisation, Position, Read, Span, Variant};
