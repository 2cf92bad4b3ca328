//! Sizes, and where each parameter lies in a replica's vector.

use pudica_nn::{Architecture, Embed, EncoderConfig, Weights};

use super::cuda::{largest_width, unusable};
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
        let head = (2 * self.n).next_multiple_of(16);
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

/// Where every parameter begins in the flat vector of [`Weights::data`].
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
        let weights = Architecture::Encoder(config.clone()).empty_weights()?;
        let range = |name: &str| find(&weights, name);
        let layer = |layer: usize| -> Result<LayerPlaces, EnsembleError> {
            let start = |name: &str| Ok::<_, EnsembleError>(range(&format!("enc.layers.{layer}.{name}"))?.start);
            Ok(LayerPlaces {
                in_weight: start("self_attn.in_proj_weight")?,
                in_bias: start("self_attn.in_proj_bias")?,
                out_weight: start("self_attn.out_proj.weight")?,
                out_bias: start("self_attn.out_proj.bias")?,
                weight1: start("linear1.weight")?,
                bias1: start("linear1.bias")?,
                weight2: start("linear2.weight")?,
                bias2: start("linear2.bias")?,
                scale1: start("norm1.weight")?,
                shift1: start("norm1.bias")?,
                scale2: start("norm2.weight")?,
                shift2: start("norm2.bias")?,
            })
        };
        let position = range("pos.weight")?;
        let norms = (0..config.layers).flat_map(|layer| [1, 2].map(|norm| format!("enc.layers.{layer}.norm{norm}")));
        Ok(Self {
            token: range("tok.weight")?.start,
            position: position.start,
            position_size: position.len(),
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            head: range("head.weight")?.start,
            head_bias: range("head.bias")?.start,
            count: weights.data().len(),
            total: weights.data().len().next_multiple_of(32),
            norms: norms.collect(),
        })
    }
}

fn find(weights: &Weights, name: &str) -> Result<std::ops::Range<usize>, EnsembleError> {
    let parameter = weights.layout().iter().find(|parameter| parameter.name == name);
    parameter
        .map(|parameter| parameter.range.clone())
        .ok_or_else(|| EnsembleError::Members(format!("the encoder has no parameter {name}")))
}
