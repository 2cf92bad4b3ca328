//! Sizes of the network and where each parameter lies in the flat vector of all of them.

use std::ops::Range;

use pudica_nn::{Architecture, Embed, EncoderConfig, NnError, Parameter};

/// Where the parameters of one encoder layer lie.
#[derive(Debug, Clone)]
pub(crate) struct LayerAt {
    /// [3 d, d]: query, key, value
    pub(crate) in_weight: Range<usize>,
    /// [3 d]
    pub(crate) in_bias: Range<usize>,
    /// [d, d]
    pub(crate) out_weight: Range<usize>,
    /// [d]
    pub(crate) out_bias: Range<usize>,
    /// [ff, d]
    pub(crate) linear1_weight: Range<usize>,
    /// [ff]
    pub(crate) linear1_bias: Range<usize>,
    /// [d, ff]
    pub(crate) linear2_weight: Range<usize>,
    /// [d]
    pub(crate) linear2_bias: Range<usize>,
    /// [d]
    pub(crate) norm1_weight: Range<usize>,
    /// [d]
    pub(crate) norm1_bias: Range<usize>,
    /// [d]
    pub(crate) norm2_weight: Range<usize>,
    /// [d]
    pub(crate) norm2_bias: Range<usize>,
}

/// The network's sizes and the places of its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Bits in a string.
    pub(crate) n: usize,
    /// Width of the residual stream.
    pub(crate) d: usize,
    /// Attention heads.
    pub(crate) heads: usize,
    /// Width of one head, d / heads.
    pub(crate) width: usize,
    /// Width of the feed-forward layer.
    pub(crate) ff: usize,
    /// How token and position are joined.
    pub(crate) embed: Embed,
    /// [2, d/2] or [2, d]
    pub(crate) tokens: Range<usize>,
    /// [n, d/2] or [n, d]
    pub(crate) positions: Range<usize>,
    pub(crate) layers: Vec<LayerAt>,
    /// [d]
    pub(crate) head_weight: Range<usize>,
    /// [1]
    pub(crate) head_bias: Range<usize>,
    /// All parameters by name, in order.
    pub(crate) parameters: Vec<Parameter>,
    /// Numbers in all of them.
    pub(crate) len: usize,
}

impl Layout {
    pub(crate) fn new(config: &EncoderConfig) -> Result<Self, NnError> {
        let weights = Architecture::Encoder(config.clone()).empty_weights()?;
        let at = |name: &str| {
            let parameter = weights.layout().iter().find(|parameter| parameter.name == name);
            parameter.map(|parameter| parameter.range.clone()).ok_or_else(|| NnError::Layout(format!("no {name}")))
        };
        let layer = |index: usize| {
            let of = |name: &str| at(&format!("enc.layers.{index}.{name}"));
            Ok(LayerAt {
                in_weight: of("self_attn.in_proj_weight")?,
                in_bias: of("self_attn.in_proj_bias")?,
                out_weight: of("self_attn.out_proj.weight")?,
                out_bias: of("self_attn.out_proj.bias")?,
                linear1_weight: of("linear1.weight")?,
                linear1_bias: of("linear1.bias")?,
                linear2_weight: of("linear2.weight")?,
                linear2_bias: of("linear2.bias")?,
                norm1_weight: of("norm1.weight")?,
                norm1_bias: of("norm1.bias")?,
                norm2_weight: of("norm2.weight")?,
                norm2_bias: of("norm2.bias")?,
            })
        };
        Ok(Self {
            n: config.n,
            d: config.d,
            heads: config.heads,
            width: config.d / config.heads,
            ff: config.ff,
            embed: config.embed,
            tokens: at("tok.weight")?,
            positions: at("pos.weight")?,
            layers: (0..config.layers).map(layer).collect::<Result<_, NnError>>()?,
            head_weight: at("head.weight")?,
            head_bias: at("head.bias")?,
            parameters: weights.layout().to_vec(),
            len: weights.data().len(),
        })
    }

    /// Whether the first layer's `linear1` is computed by tables too (see [`super::folding`]): where many rows are mixed from fewer
    /// table rows than a row is wide.
    pub(crate) fn folds_linear1(&self) -> bool {
        self.layers.len() > 1 && self.heads * self.n < self.d
    }

    /// The width of a row of the first layer's tables: d, and ff more when `linear1` is folded in.
    pub(crate) fn table_width(&self) -> usize {
        if self.folds_linear1() { self.d + self.ff } else { self.d }
    }

    /// 1 / sqrt(width of a head): what scores are scaled by.
    pub(crate) fn score_scale(&self) -> f64 {
        1.0 / (self.width as f64).sqrt()
    }
}

/// Several parameters' parts of a gradient at once.
pub(crate) fn parts<'a, T, const N: usize>(gradient: &'a mut [T], ranges: [&Range<usize>; N]) -> [&'a mut [T]; N] {
    match gradient.get_disjoint_mut(ranges.map(Range::clone)) {
        Ok(parts) => parts,
        Err(error) => unreachable!("parameters do not overlap: {error}"),
    }
}
