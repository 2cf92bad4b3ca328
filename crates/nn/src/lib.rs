//! What learns: architectures on burn, weights in and out, training.
//!
//! - [`Architecture`]: what a network is; [`Network`]: one with weights on a [`Device`], for prediction.
//! - [`Weights`]: parameters as plain numbers under PyTorch's names; safetensors files.
//! - [`classifier`]: networks that tell classes apart, on images and texts.
//! - [`vision`]: the networks on images.
//! - [`text`]: those on token sequences: RoBERTa, GPT-2, LSTM.
//! - [`grokking`]: one attention layer on modular arithmetic, many trained at once.
//! - [`token_attention`]: one attention layer on synthetic tokens, with its gradient by hand.
//! - [`Trainer`]: a network being trained with [`AdamW`], one batch at a time, resumable to the bit.

mod adamw;
mod attention;
mod batch_norm;
pub mod classifier;
mod convolution;
mod cpu;
mod device;
mod embedding;
mod encoder;
mod encoder_decoder;
mod error;
pub mod grokking;
mod init;
mod layer_norm;
mod layers;
mod leaves;
#[cfg(feature = "torch")]
mod native;
mod network;
mod networks;
mod operation;
mod state;
pub mod text;
mod train;
pub mod vision;
mod weights;

pub use adamw::{AdamW, AdamWConfig};
pub use device::Device;
pub use embedding::Embed;
pub use encoder::EncoderConfig;
pub use encoder_decoder::EncoderDecoderConfig;
pub use error::NnError;
pub use init::{Init, ParamSpec};
pub use layers::{LAYER_NORM_EPS, NormFactors};
pub use network::{Architecture, Network, is_positional};
pub use networks::token_attention;
pub use state::TrainingState;
pub use train::{Trainer, loss_and_gradient};
pub use weights::{Parameter, Weights};
