//! What networks on bits may differ in, beside their sizes.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::Nonlinearity;

/// Which normalisation a layer has, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// LayerNorm after each block's sum (Vaswani et al. 2017; the paper's).
    #[default]
    Post,
    /// LayerNorm before each block, and one after the last layer (`norm_first=True` in PyTorch).
    Pre,
    /// None.
    None,
    /// As `Pre`, with RMSNorm.
    Rms,
}

impl Normalisation {
    /// Whether it stands before the blocks.
    pub(crate) fn comes_first(self) -> bool {
        matches!(self, Self::Pre | Self::Rms)
    }
}

/// How a transformer knows where a token stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// A learnt vector for each position.
    #[default]
    Learned,
    /// Fixed sines and cosines (Vaswani et al. 2017).
    Sinusoidal,
    /// Queries and keys are turned by angles that grow with the position (RoPE, Su et al. 2021).
    Rotary,
    /// It does not, but for what a causal mask tells.
    None,
}

/// Which tokens a token attends to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// All tokens.
    #[default]
    Full,
    /// Itself and those before it.
    Causal,
}

/// Where the answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// At the last position.
    #[default]
    Last,
    /// In the mean over positions.
    Mean,
}

impl Read {
    /// What is read of x [batch, length, d]: [batch, d]
    pub(crate) fn of(self, x: Tensor<3>) -> Tensor<2> {
        let length = x.dims()[1];
        match self {
            Self::Last => x.narrow(1, length - 1, 1).squeeze_dim(1),
            Self::Mean => x.mean_dim(1).squeeze_dim(1),
        }
    }
}

/// The range of the eigenvalues of a diagonal state-space model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eigenvalues {
    /// [0, 1]: a state decays.
    #[default]
    Positive,
    /// [-1, 1]: it may change its sign at each step.
    Signed,
}

/// What a stack of layers is beside its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Which normalisation, and where.
    pub norm: Normalisation,
    /// Between the two linear layers of the feed-forward block.
    pub activation: Nonlinearity,
    /// Where the answer is read.
    pub read: Read,
}

impl Default for Variant {
    /// The paper's.
    fn default() -> Self {
        Self { norm: Normalisation::Post, activation: Nonlinearity::Relu, read: Read::Last }
    }
}
