//! Embeddings of tokens and positions.

use burn::tensor::{Int, Tensor, TensorData, module};
use serde::{Deserialize, Serialize};

use crate::Parameters;
use crate::params::{Init, Param, Scope};

/// How a token's and a position's embedding become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Embed {
    /// Side by side, d/2 each: what the paper's code does.
    Concat,
    /// The sum of two vectors of width d: what the paper's text says.
    Add,
}

/// A table of tokens and one of positions.
pub(super) struct TokenEmbedding {
    embed: Embed,
    /// [vocabulary, width]
    token: Param<2>,
    /// [n, width]
    position: Param<2>,
}

impl TokenEmbedding {
    /// Of vectors of width d, under `prefix` + `tok` and `pos`.
    pub(super) fn new(params: &mut Scope, prefix: &str, [vocabulary, n]: [usize; 2], d: usize, embed: Embed) -> Self {
        let width = match embed {
            Embed::Concat => d / 2,
            Embed::Add => d,
        };
        Self {
            embed,
            token: params.add(format_args!("{prefix}tok.weight"), [vocabulary, width], Init::Normal),
            position: params.add(format_args!("{prefix}pos.weight"), [n, width], Init::Normal),
        }
    }

    /// Embeds `tokens` [batch, length] at positions 0 and on.
    pub(super) fn forward(&self, p: &Parameters, tokens: &[u8], length: usize) -> Embedded {
        let (token, position) = (p.get(self.token), p.get(self.position));
        let ([vocabulary, width], [n, _]) = (token.dims(), position.dims());
        let token: Tensor<3> = token.unsqueeze_dim::<3>(0).expand([n, vocabulary, width]);
        let position: Tensor<3> = position.unsqueeze_dim::<3>(1).expand([n, vocabulary, width]);
        let pairs = match self.embed {
            Embed::Concat => Tensor::cat(vec![token, position], 2),
            Embed::Add => token + position,
        };
        let [_, _, d] = pairs.dims();
        let rows: Vec<i32> = tokens
            .chunks_exact(length)
            .flat_map(|string| string.iter().enumerate().map(|(i, token)| (i * vocabulary) as i32 + i32::from(*token)))
            .collect();
        let data = TensorData::new(rows, [tokens.len() / length, length]);
        Embedded { table: pairs.reshape([n * vocabulary, d]), rows: Tensor::from_data(data, p.device().integers()) }
    }
}

/// Tokens at positions, embedded. There are only vocabulary x n different pairs, so they are embedded (and, by the first layer,
/// projected) once each in a table, and a batch is looked up in it.
pub(super) struct Embedded {
    /// [n * vocabulary, d]: row `position * vocabulary + token`.
    pub(super) table: Tensor<2>,
    /// Rows of the table [batch, n].
    rows: Tensor<2, Int>,
}

impl Embedded {
    /// Look a table of as many rows up for the batch: [n * vocabulary, d] -> [batch, length, d].
    pub(super) fn look_up(&self, table: Tensor<2>) -> Tensor<3> {
        module::embedding(table, self.rows.clone())
    }
}
