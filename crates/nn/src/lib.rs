//! What learns: architectures on burn, weights in and out, training.
//!
//! - [`Architecture`]: what a network is; [`Network`]: one with weights on a [`Device`], for prediction.
//! - [`ParamList`]: the parameters of a network, each declared, initialised and named once, by the layer that has it.
//! - [`Weights`]: parameters as plain numbers under PyTorch's names; safetensors files.
//! - [`classifier`]: networks that tell classes apart, on images and texts.
//! - [`vision`]: the networks on images.
//! - [`text`]: those on token sequences: RoBERTa, GPT-2, LSTM.
//! - [`grokking`]: one attention layer on modular arithmetic, many trained at once.
//! - [`token_attention`]: one attention layer on synthetic tokens, with its gradient by hand.
//! - [`Trainer`]: a network being trained with [`AdamW`], one batch at a time, resumable to the bit.

mod adamw;
mod attention;
mod autodiff;
mod batch_norm;
pub mod classifier;
mod convolution;
mod cpu;
mod device;
mod error;
mod layer_norm;
mod layers;
#[cfg(feature = "torch")]
mod libtorch;
#[cfg(feature = "torch")]
mod native;
mod network;
mod networks;
mod noise;
mod operation;
mod parameters;
mod params;
mod product;
mod recurrence;
mod scan;
mod state;
mod train;
mod weights;

pub use adamw::{AdamW, AdamWConfig};
pub use device::Device;
pub use error::NnError;
pub use layers::{LAYER_NORM_EPS, Nonlinearity, NormFactors};
pub use network::{Architecture, Network, Placed, is_positional};
pub use networks::{
    Eigenvalues, Embed, EncoderConfig, EncoderDecoderConfig, MlpConfig, Normalisation, Position, Read, RecurrentConfig,
    Span, StateSpaceConfig, TransformerConfig, Variant, grokking, text, token_attention, vision,
};
pub use noise::add_noise;
pub use parameters::Parameters;
pub use params::{Buffer, Init, Param, ParamList, Scope};
pub use recurrence::Cell;
pub use state::TrainingState;
pub use train::{Trainer, loss_and_gradient};
pub use weights::{Parameter, Weights};
