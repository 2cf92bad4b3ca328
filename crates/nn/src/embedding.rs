//! Embeddings of tokens and positions.

use burn::tensor::{Int, Tensor, TensorData, module};
use serde::{Deserialize, Serialize};

use crate::Device;

/// How a token's and a position's embedding become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Embed {
    /// Side by side, d/2 each: what the paper's code does.
    Concat,
    /// The sum of two vectors of width d: what the paper's text says.
    Add,
}

impl Embed {
    /// The width of each of the two embeddings.
    pub(crate) fn width(self, d: usize) -> usize {
        match self {
            Self::Concat => d / 2,
            Self::Add => d,
        }
    }
}

/// Tokens at positions, embedded. There are only vocabulary x n different pairs, so they are embedded (and, by the first layer,
/// projected) once each in a table, and a batch is looked up in it.
pub(crate) struct Embedded {
    /// [n * vocabulary, d]: row `position * vocabulary + token`.
    pub(crate) table: Tensor<2>,
    /// Rows of the table [batch, n].
    rows: Tensor<2, Int>,
}

impl Embedded {
    /// Embed `tokens` [batch, length] at positions 0.. with a token table [vocabulary, width] and a position table [n, width].
    pub(crate) fn new(
        tokens: &[u8],
        length: usize,
        embed: Embed,
        token: Tensor<2>,
        position: Tensor<2>,
        device: &Device,
    ) -> Self {
        let ([vocabulary, width], [n, _]) = (token.dims(), position.dims());
        let token: Tensor<3> = token.unsqueeze_dim::<3>(0).expand([n, vocabulary, width]);
        let position: Tensor<3> = position.unsqueeze_dim::<3>(1).expand([n, vocabulary, width]);
        let pairs = match embed {
            Embed::Concat => Tensor::cat(vec![token, position], 2),
            Embed::Add => token + position,
        };
        let [_, _, d] = pairs.dims();
        let rows: Vec<i32> = tokens
            .chunks_exact(length)
            .flat_map(|string| string.iter().enumerate().map(|(i, token)| (i * vocabulary) as i32 + i32::from(*token)))
            .collect();
        let data = TensorData::new(rows, [tokens.len() / length, length]);
        Self { table: pairs.reshape([n * vocabulary, d]), rows: Tensor::from_data(data, device.integers()) }
    }

    /// Look a table of as many rows up for the batch: [n * vocabulary, d] -> [batch, length, d].
    pub(crate) fn look_up(&self, table: Tensor<2>) -> Tensor<3> {
        module::embedding(table, self.rows.clone())
    }
}
