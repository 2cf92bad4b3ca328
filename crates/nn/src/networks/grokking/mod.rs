//! The network that groks modular arithmetic, and many of them trained at once.
//!
//! Tokens "a b =", one attention layer and one MLP, no LayerNorm and no biases, read at "=" (Nanda et al. 2023, as Vasudeva et al. use it):
//!
//! ```text
//! x_0 = E[a] + P_0,  x_1 = E[b] + P_1,  x_2 = E[=] + P_2
//! y   = x_2 + W_O concat_h sum_t softmax_t(<W_Q^h x_2, W_K^h x_t> / sqrt(d/heads)) W_V^h x_t
//! z   = y + W_down relu(W_up y),   scores = U z
//! ```
//!
//! - [`ModularTransformer`]: its sizes, and the weights it starts from.
//! - [`Replicas`]: several of them, each with its own seed and its own split of the pairs, trained in lock-step.

mod forward;
mod loss;
mod replicas;
#[cfg(test)]
mod tests;

use pudica_data::LARGEST_MODULUS;

use crate::params::{Init, Param, ParamList};
use crate::{NnError, Weights};

pub use replicas::{Grokking, Measures, Replica, Replicas};

/// The sizes of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModularTransformer {
    /// p: numbers, and classes. The vocabulary has one token more, "=".
    pub modulus: usize,
    /// Width of the residual stream.
    pub d: usize,
    /// Attention heads, each of width d / heads.
    pub heads: usize,
    /// Width of the MLP.
    pub mlp: usize,
}

impl ModularTransformer {
    /// Whether such a network can be built.
    pub fn check(&self) -> Result<(), NnError> {
        let sizes =
            [("model.d", self.d, 4096), ("model.mlp", self.mlp, 16384), ("modulus", self.modulus, LARGEST_MODULUS)];
        for (setting, size, most) in sizes {
            if !(1..=most).contains(&size) {
                return Err(NnError::setting(setting, format!("must be from 1 to {most}, but is {size}")));
            }
        }
        if self.heads == 0 || !self.d.is_multiple_of(self.heads) {
            let problem = format!("must divide the width {}, but is {}", self.d, self.heads);
            return Err(NnError::setting("model.heads", problem));
        }
        Ok(())
    }

    /// The weights a run of this seed starts from: N(0, 1/d), the unembedding N(0, 1/p), as Nanda et al. have it.
    pub fn initial_weights(&self, seed: u64) -> Result<Weights, NnError> {
        self.check()?;
        Ok(self.build().1.draw(seed))
    }

    /// Names and shapes of the weights, all zero.
    pub fn empty_weights(&self) -> Result<Weights, NnError> {
        self.check()?;
        Ok(self.build().1.empty())
    }

    /// The weights in the bytes of a safetensors file.
    pub fn read_weights(&self, bytes: &[u8]) -> Result<Weights, NnError> {
        self.check()?;
        self.build().1.read(bytes)
    }

    /// The network's layers, and the list of their parameters.
    fn build(&self) -> (Layers, ParamList) {
        let Self { modulus, d, mlp, .. } = *self;
        let normal = |precision: usize| Init::ScaledNormal(1.0 / (precision as f32).sqrt());
        ParamList::of(|mut params| {
            let mut matrix = |name: &str, shape: [usize; 2], init: Init| params.at(name).add("weight", shape, init);
            Layers {
                embed: matrix("embed", [modulus + 1, d], normal(d)),
                pos: matrix("pos", [3, d], normal(d)),
                query: matrix("attention.query", [d, d], normal(d)),
                key: matrix("attention.key", [d, d], normal(d)),
                value: matrix("attention.value", [d, d], normal(d)),
                out: matrix("attention.out", [d, d], normal(d)),
                up: matrix("mlp.up", [mlp, d], normal(d)),
                down: matrix("mlp.down", [d, mlp], normal(d)),
                unembed: matrix("unembed", [modulus, d], normal(modulus)),
            }
        })
    }
}

/// The network's parameters; a linear layer's weight is [out, in].
struct Layers {
    embed: Param<2>,
    pos: Param<2>,
    query: Param<2>,
    key: Param<2>,
    value: Param<2>,
    out: Param<2>,
    up: Param<2>,
    down: Param<2>,
    unembed: Param<2>,
}
