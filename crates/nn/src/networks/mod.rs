//! The networks, one file or folder each.

mod embedding;
mod encoder;
mod encoder_decoder;
pub mod grokking;
pub mod text;
pub mod token_attention;
mod transformer;
pub mod vision;

pub use embedding::Embed;
pub(crate) use encoder::Encoder;
pub use encoder::EncoderConfig;
pub(crate) use encoder_decoder::EncoderDecoder;
pub use encoder_decoder::EncoderDecoderConfig;
