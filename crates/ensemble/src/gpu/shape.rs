//! Sizes, and where each parameter lies in a replica's vector.

use pudica_nn::{Embed, EncoderConfig};

use super::cuda::{largest_width, unusable};
use crate::cpu::{LayerAt, Layout};
use crate::{EnsembleError, Precision};

/// The sizes of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dims {
    pub(super) n: usize,
    pub(super) d: usize,
    pub(super) heads: usize,
    pub(super) ff: usize,
    pub(super) layers: usize,
    pub(super) concat: bool,
}

impl Dims {
    pub(super) fn of(config: &EncoderConfig, precision: Precision) -> Result<Self, EnsembleError> {
        config.check()?;
        let EncoderConfig { n, d, layers, heads, ff, embed, .. } = *config;
        let (largest, name) = (largest_width(precision), precision.name());
        if d > largest {
            let problem = format!("in {name}, widths beyond {largest} are not made for the GPU, and d = {d}");
            return Err(unusable(format!("{problem}; use --device cpu")));
        }
        Ok(Self { n, d, heads, ff, layers, concat: embed == Embed::Concat })
    }

    /// Width of a head.
    pub(super) fn head_width(&self) -> usize {
        self.d / self.heads
    }

    /// Columns of the mixing matrix of layer 1: for each head, every token.
    pub(super) fn mixed(&self) -> usize {
        self.heads * 2 * self.n
    }

    /// Whether layer 1's attention is computed without storing its weights: those of long inputs are many, and narrow networks need few
    /// operations for each (narrow.cu).
    pub(super) fn is_narrow(&self) -> bool {
        self.n > 32 && self.layers > 1 && self.d * self.heads <= 16
    }

    /// Whether layer 1 may be one kernel on tensor cores.
    pub(super) fn is_tiled(&self) -> bool {
        self.n <= 32 && self.d == 128 && self.ff == 128
    }

    /// Columns of the values of layer 1 as `first_layer` has them, of one head and from one row to the next.
    pub(super) fn value_columns(&self) -> (usize, usize) {
        let head = if self.n <= 16 { 32 } else { 64 };
        (head, (self.heads * head).next_multiple_of(64))
    }

    /// Positions computed in a layer: in the last only the last.
    pub(super) fn positions(&self, layer: usize) -> usize {
        if layer + 1 == self.layers { 1 } else { self.n }
    }

    /// Whether a layer is neither the first nor the last.
    pub(super) fn is_middle(&self, layer: usize) -> bool {
        layer > 0 && layer + 1 < self.layers
    }
}

/// Where the parameters of one layer begin. W: [3d, d] in-projection, [d, d] out-projection, [ff, d] and [d, ff] feed-forward.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerPlaces {
    pub(super) in_weight: usize,
    pub(super) in_bias: usize,
    pub(super) out_weight: usize,
    pub(super) out_bias: usize,
    pub(super) weight1: usize,
    pub(super) bias1: usize,
    pub(super) weight2: usize,
    pub(super) bias2: usize,
    pub(super) scale1: usize,
    pub(super) shift1: usize,
    pub(super) scale2: usize,
    pub(super) shift2: usize,
}

/// Where every parameter begins in the flat vector of [`pudica_nn::Weights::data`].
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) token: usize,
    pub(super) position: usize,
    /// Floats of the positional embedding.
    pub(super) position_size: usize,
    pub(super) layers: Vec<LayerPlaces>,
    pub(super) head: usize,
    pub(super) head_bias: usize,
    /// Parameters in all.
    pub(super) count: usize,
    /// Floats from one replica's parameters to the next's: a multiple of 32, since cuBLAS is fast only on aligned matrices.
    pub(super) total: usize,
    /// The LayerNorms' names in the order they are applied.
    pub(super) norms: Vec<String>,
}

impl Places {
    pub(super) fn of(config: &EncoderConfig) -> Result<Self, EnsembleError> {
        let layout = Layout::new(config)?;
        let layer = |at: &LayerAt| LayerPlaces {
            in_weight: at.in_weight.start,
            in_bias: at.in_bias.start,
            out_weight: at.out_weight.start,
            out_bias: at.out_bias.start,
            weight1: at.linear1_weight.start,
            bias1: at.linear1_bias.start,
            weight2: at.linear2_weight.start,
            bias2: at.linear2_bias.start,
            scale1: at.norm1_weight.start,
            shift1: at.norm1_bias.start,
            scale2: at.norm2_weight.start,
            shift2: at.norm2_bias.start,
        };
        let norms = (0..config.layers).flat_map(|layer| [1, 2].map(|norm| format!("enc.layers.{layer}.norm{norm}")));
        Ok(Self {
            token: layout.tokens.start,
            position: layout.positions.start,
            position_size: layout.positions.len(),
            layers: layout.layers.iter().map(layer).collect(),
            head: layout.head_weight.start,
            head_bias: layout.head_bias.start,
            count: layout.len,
            total: layout.len.next_multiple_of(32),
            norms: norms.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_nn::Architecture;

    #[test]
    fn parameters_begin_where_their_names_say() {
        let config = EncoderConfig { n: 5, d: 8, layers: 2, heads: 2, ff: 6, embed: Embed::Add, same_init: false };
        let places = Places::of(&config).unwrap();
        let weights = Architecture::Encoder(config).empty_weights().unwrap();
        let start = |name: &str| weights.layout().iter().find(|own| own.name == name).unwrap().range.start;
        assert_eq!([places.token, places.position], [start("tok.weight"), start("pos.weight")]);
        assert_eq!([places.head, places.head_bias], [start("head.weight"), start("head.bias")]);
        assert_eq!([places.position_size, places.count], [5 * 8, weights.data().len()]);
        for (index, at) in places.layers.iter().enumerate() {
            for (place, name) in [
                (at.in_weight, "self_attn.in_proj_weight"),
                (at.in_bias, "self_attn.in_proj_bias"),
                (at.out_weight, "self_attn.out_proj.weight"),
                (at.out_bias, "self_attn.out_proj.bias"),
                (at.weight1, "linear1.weight"),
                (at.bias1, "linear1.bias"),
                (at.weight2, "linear2.weight"),
                (at.bias2, "linear2.bias"),
                (at.scale1, "norm1.weight"),
                (at.shift1, "norm1.bias"),
                (at.scale2, "norm2.weight"),
                (at.shift2, "norm2.bias"),
            ] {
                assert_eq!(place, start(&format!("enc.layers.{index}.{name}")), "{name}");
            }
        }
    }
}
