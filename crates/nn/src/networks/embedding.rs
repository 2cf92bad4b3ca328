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

/// A table of tokens, and what is known of their positions.
pub(super) struct TokenEmbedding {
    embed: Embed,
    /// [vocabulary, width]
    token: Param<2>,
    position: Positions,
}

/// Vectors of positions.
pub(super) enum Positions {
    /// A table [positions, width].
    Learned(Param<2>),
    /// Sines and cosines, so many.
    Sinusoidal(usize),
    /// There are none.
    None,
}

impl TokenEmbedding {
    /// Of vectors of width d, under `prefix` + `tok` and `pos`.
    pub(super) fn new(params: &mut Scope, prefix: &str, [vocabulary, n]: [usize; 2], d: usize, embed: Embed) -> Self {
        let width = embed.width(d);
        Self {
            embed,
            token: params.add(format_args!("{prefix}tok.weight"), [vocabulary, width], Init::Normal),
            position: Positions::Learned(params.add(format_args!("{prefix}pos.weight"), [n, width], Init::Normal)),
        }
    }

    /// Bits of width d with sines and cosines for positions.
    pub(super) fn sinusoidal(params: &mut Scope, d: usize, embed: Embed) -> Self {
        let width = embed.width(d);
        let token = params.add("tok.weight", [2, width], Init::Normal);
        Self { embed, token, position: Positions::Sinusoidal(width) }
    }

    /// Bits of width d wherever they stand.
    pub(super) fn of_bits(params: &mut Scope, d: usize) -> Self {
        let token = params.add("tok.weight", [2, d], Init::Normal);
        Self { embed: Embed::Add, token, position: Positions::None }
    }

    /// Embeds `tokens` [batch, length] at positions `offset` and on.
    pub(super) fn forward(&self, p: &Parameters, tokens: &[u8], length: usize, offset: usize) -> Embedded {
        let token = p.get(self.token);
        let [vocabulary, width] = token.dims();
        let position = match &self.position {
            Positions::Learned(table) => {
                let table = p.get(*table);
                let whole = table.dims()[0] == length;
                if whole { table } else { table.narrow(0, offset, length) }
            }
            Positions::Sinusoidal(width) => {
                let data = TensorData::new(sinusoids(offset, length, *width), [length, *width]);
                Tensor::from_data(data, p.device().constant())
            }
            Positions::None => {
                let rows = tokens.iter().map(|token| i32::from(*token)).collect();
                return Embedded { table: token, rows: numbers(p, rows, length) };
            }
        };
        let n = length;
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
        Embedded { table: pairs.reshape([n * vocabulary, d]), rows: numbers(p, rows, length) }
    }
}

impl Embed {
    /// The width of either embedding where the whole is d wide.
    fn width(self, d: usize) -> usize {
        match self {
            Self::Concat => d / 2,
            Self::Add => d,
        }
    }
}

/// Row-major [batch, length].
fn numbers(p: &Parameters, values: Vec<i32>, length: usize) -> Tensor<2, Int> {
    let batch = values.len() / length;
    Tensor::from_data(TensorData::new(values, [batch, length]), p.device().integers())
}

/// sin(i / 10000^(2k/width)) and the cosine in columns 2k and 2k + 1 of the rows of positions i: row-major [length, width].
fn sinusoids(offset: usize, length: usize, width: usize) -> Vec<f64> {
    let value = |at: usize| {
        let (position, column) = (offset + at / width, at % width);
        let angle = position as f64 / 10_000f64.powf((column / 2 * 2) as f64 / width as f64);
        if column % 2 == 0 { angle.sin() } else { angle.cos() }
    };
    (0..length * width).map(value).collect()
}

/// Tokens at positions, embedded. There are only vocabulary x n different pairs, so they are embedded (and, by the first layer,
/// projected) once each in a table, and a batch is looked up in it.
pub(super) struct Embedded {
    /// [n * vocabulary, d]: row `position * vocabulary + token`; where nothing is known of positions [vocabulary, d].
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
