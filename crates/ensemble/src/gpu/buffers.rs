//! What a pass over the networks keeps in GPU memory.

use super::cuda::{Cuda, Numbers, number_bytes};
use super::forward::tile_blocks;
use super::shape::Dims;
use crate::{EnsembleError, Precision};

/// Allocates memory for floats, or only counts how many bytes would be allocated.
pub(super) enum Allocator<'a> {
    Real(&'a Cuda),
    Counting(Precision, &'a mut usize),
}

impl Allocator<'_> {
    /// So many.
    pub(super) fn floats(&mut self, length: usize) -> Result<Floats, EnsembleError> {
        match self {
            Self::Real(cuda) => Ok(Floats(Some(cuda.numbers(length)?))),
            Self::Counting(precision, bytes) => {
                **bytes += number_bytes(*precision) * length.max(1);
                Ok(Floats(None))
            }
        }
    }

    /// For weights as they are computed with; nothing where they are kept so.
    fn widened(&mut self, length: usize) -> Result<Floats, EnsembleError> {
        let double = match self {
            Self::Real(cuda) => cuda.is_double(),
            Self::Counting(precision, _) => *precision == Precision::F64,
        };
        if double { self.floats(length) } else { Ok(Floats(None)) }
    }
}

/// Floats that networks are computed in, in GPU memory; nothing when only counted.
pub(super) struct Floats(Option<Numbers>);

impl Floats {
    /// Where they begin.
    pub(super) fn at(&self) -> u64 {
        self.0.as_ref().map_or(0, Numbers::pointer)
    }

    pub(super) fn memory(&self) -> Option<&Numbers> {
        self.0.as_ref()
    }
}

/// Everything the forward pass of R networks on B strings computes. m is the number of positions of a layer.
pub(super) struct Activations {
    pub(super) replicas: usize,
    pub(super) strings: usize,
    /// Parameters [R, P] as they are computed with, where that is not as they are kept.
    pub(super) parameters: Floats,
    /// Embedded tokens [R, 2n, d].
    pub(super) tokens: Floats,
    /// Their queries, keys and values [R, 2n, 3d].
    pub(super) token_qkv: Floats,
    /// Scores of layer 1 between tokens [R, heads, 2n, 2n].
    pub(super) scores: Floats,
    /// Values through the output projection [R, heads * 2n, d].
    pub(super) values: Floats,
    /// The largest of each row of them [R, heads, 2n], and exp(score - largest) [R, heads, 2n, 2n].
    pub(super) largest: Floats,
    pub(super) exponents: Floats,
    /// Strings as words, by position [sets, B, n / 32] and by string [sets, B / 32, n].
    pub(super) words: [Floats; 2],
    /// Attention of layer 1 by token [R, B * m, heads * 2n]; nothing in narrow networks.
    pub(super) mix: Floats,
    /// In these, what it adds by head [R, B * m, heads, d], and what its softmax subtracts and multiplies with [R, B * m, heads, 2].
    pub(super) narrow: Option<[Floats; 2]>,
    /// Matrices as tensor cores read them, with the powers of two they are scaled by.
    pub(super) images: Option<Images>,
    pub(super) layers: Vec<LayerActivations>,
    pub(super) middle: Vec<Option<MiddleActivations>>,
    pub(super) last: Option<LastActivations>,
    /// [R, B]
    pub(super) outputs: Floats,
}

/// The part all layers have: norm, feed-forward, norm. The norms' outputs are kept before scale and shift. In layer 1 norms and hidden
/// numbers may be halves, which fill one half of their arrays.
pub(super) struct LayerActivations {
    /// First norm [R, B * m, d] and the variance of its input [R, B * m].
    pub(super) norm1: Floats,
    pub(super) variance1: Floats,
    /// [R, B * m, ff]
    pub(super) hidden: Floats,
    /// Second norm, as the first.
    pub(super) norm2: Floats,
    pub(super) variance2: Floats,
    /// First feed-forward layer with the norm's scale and shift folded in: [R, ff, d] and [R, ff].
    pub(super) weight: Floats,
    pub(super) bias: Floats,
}

/// Factors of halves for the kernels on tensor cores: those of one of them at a time.
pub(super) struct Images {
    pub(super) halves: Floats,
    /// Halves from one replica's to the next's.
    pub(super) stride: usize,
    /// [4, R, 2]
    pub(super) powers: Floats,
    /// What layer 1's attention adds to [R, 2n, d].
    pub(super) residuals: Floats,
    /// What no output of two folded matrices exceeds [2, R, d], and the bias of one of them [R, d].
    pub(super) bounds: Floats,
    pub(super) bias: Floats,
    /// Of what layer 1 keeps as halves [4, R]: what hidden numbers are multiplied by, the largest gradient of its output, and what sums of its
    /// two weights' gradients are multiplied by.
    pub(super) kept: Floats,
}

/// Attention of a layer between the first and the last.
pub(super) struct MiddleActivations {
    /// [R, B * n, d]
    pub(super) input: Floats,
    /// [R, B * n, 3d]
    pub(super) qkv: Floats,
    /// [R, B, heads, n, n]
    pub(super) weights: Floats,
    /// [R, B * n, d]
    pub(super) mixed: Floats,
}

/// Attention of the last layer at the last position.
pub(super) struct LastActivations {
    /// [R, B, d]
    pub(super) input: Floats,
    /// [R, B, d]
    pub(super) query: Floats,
    /// The query through the keys' weights [R, B, heads, d].
    pub(super) folded: Floats,
    /// [R, B, heads, n]
    pub(super) weights: Floats,
    /// Mean of the layer below before its scale and shift, and after [R, B, heads, d].
    pub(super) mean: Floats,
    pub(super) mixed: Floats,
    /// [R, B, d]
    pub(super) values: Floats,
}

impl Activations {
    pub(super) fn new(
        dims: &Dims,
        parameters: usize,
        (r, b): (usize, usize),
        mut allocator: Allocator,
    ) -> Result<Self, EnsembleError> {
        let Dims { n, d, heads, ff, layers, .. } = *dims;
        let parameters = allocator.widened(r * parameters)?;
        let mut give = |length| allocator.floats(length);
        let mut each = Vec::new();
        let mut middle = Vec::new();
        for layer in 0..layers {
            let rows = b * dims.positions(layer);
            each.push(LayerActivations {
                norm1: give(r * rows * d)?,
                variance1: give(r * rows)?,
                hidden: give(r * rows * ff)?,
                norm2: give(r * rows * d)?,
                variance2: give(r * rows)?,
                weight: give(r * ff * d)?,
                bias: give(r * ff)?,
            });
            middle.push(match dims.is_middle(layer) {
                true => Some(MiddleActivations {
                    input: give(r * rows * d)?,
                    qkv: give(r * rows * 3 * d)?,
                    weights: give(r * b * heads * n * n)?,
                    mixed: give(r * rows * d)?,
                }),
                false => None,
            });
        }
        let last = match layers > 1 {
            true => Some(LastActivations {
                input: give(r * b * d)?,
                query: give(r * b * d)?,
                folded: give(r * b * heads * d)?,
                weights: give(r * b * heads * n)?,
                mean: give(r * b * heads * d)?,
                mixed: give(r * b * heads * d)?,
                values: give(r * b * d)?,
            }),
            false => None,
        };
        let rows = b * dims.positions(0);
        Ok(Self {
            replicas: r,
            strings: b,
            parameters,
            tokens: give(r * 2 * n * d)?,
            token_qkv: give(r * 2 * n * 3 * d)?,
            scores: give(r * heads * 4 * n * n)?,
            values: give(r * dims.mixed() * d)?,
            largest: give(r * heads * 2 * n)?,
            exponents: give(r * heads * 4 * n * n)?,
            words: [give(r * b * n.div_ceil(32))?, give(r * b.div_ceil(32) * n)?],
            mix: give(if dims.is_narrow() { 0 } else { r * rows * dims.mixed() })?,
            narrow: match dims.is_narrow() {
                true => Some([give(r * rows * heads * d)?, give(r * rows * heads * 2)?]),
                false => None,
            },
            images: match dims.is_tiled() {
                true => {
                    // Two parts of two bytes are one number at least.
                    let stride = d * (dims.value_columns().1 + d + ff);
                    Some(Images {
                        halves: give(r * stride)?,
                        stride: 2 * stride,
                        powers: give(4 * r * 2)?,
                        residuals: give(r * 2 * n * d)?,
                        bounds: give(2 * r * d)?,
                        bias: give(r * d)?,
                        kept: give(4 * r)?,
                    })
                }
                false => None,
            },
            layers: each,
            middle,
            last,
            outputs: give(r * b)?,
        })
    }
}

/// Everything the backward pass needs beside.
pub(super) struct Gradients {
    /// [R, P]
    pub(super) parameters: Floats,
    /// [R, B]
    pub(super) outputs: Floats,
    /// Each string's part of the head's gradients [R, B, d + 1].
    pub(super) by_string: Floats,
    pub(super) layers: Vec<LayerGradients>,
    /// By token [R, 2n, d]: of the embedded tokens in layer 1; elsewhere only its sum is used.
    pub(super) tokens: Floats,
    pub(super) token_qkv: Floats,
    pub(super) scores: Floats,
    pub(super) values: Floats,
    pub(super) mix: Floats,
    /// Of a middle layer's attention: [R, B * n, d], [R, B * n, 3d] and [R, B, heads, n, n].
    pub(super) middle: Option<[Floats; 3]>,
    pub(super) last: Option<LastGradients>,
    /// Sums over parts of the rows, on their way to sums over all; and those of work beside other work.
    pub(super) parts: Floats,
    pub(super) parts_beside: Floats,
    /// The same of the kernel feed_forward_backward [2, R, blocks, 128].
    pub(super) tile_parts: Floats,
    /// Small sums over all rows [R, 3d + 1].
    pub(super) sums: Floats,
}

/// Of one layer: of the input of its second norm, of its hidden layer, and of the input of its first norm. Where layer 1's hidden numbers are kept
/// as halves, `hidden` has as halves both its gradients and those of the second norm's input.
pub(super) struct LayerGradients {
    pub(super) after: Floats,
    pub(super) hidden: Floats,
    pub(super) before: Floats,
}

/// Of the last layer's attention; the shapes are those of [`LastActivations`].
pub(super) struct LastGradients {
    pub(super) values: Floats,
    pub(super) mixed: Floats,
    pub(super) weights: Floats,
    pub(super) folded: Floats,
    pub(super) query: Floats,
    /// Each string's part of the gradients below [R, B, 3, d].
    pub(super) below: Floats,
}

impl Gradients {
    pub(super) fn new(
        dims: &Dims,
        parameters: usize,
        [parts, parts_beside]: [usize; 2],
        (r, b): (usize, usize),
        mut allocator: Allocator,
    ) -> Result<Self, EnsembleError> {
        let Dims { n, d, heads, ff, layers, .. } = *dims;
        let mut give = |length| allocator.floats(length);
        let mut each = Vec::new();
        for layer in 0..layers {
            let rows = b * dims.positions(layer);
            each.push(LayerGradients {
                after: give(r * rows * d)?,
                hidden: give(r * rows * ff)?,
                before: give(r * rows * d)?,
            });
        }
        let middle = match layers > 2 {
            true => Some([give(r * b * n * d)?, give(r * b * n * 3 * d)?, give(r * b * heads * n * n)?]),
            false => None,
        };
        let last = match layers > 1 {
            true => Some(LastGradients {
                values: give(r * b * d)?,
                mixed: give(r * b * heads * d)?,
                weights: give(r * b * heads * n)?,
                folded: give(r * b * heads * d)?,
                query: give(r * b * d)?,
                below: give(r * b * 3 * d)?,
            }),
            false => None,
        };
        Ok(Self {
            parameters: give(r * parameters)?,
            outputs: give(r * b)?,
            by_string: give(r * b * (d + 1))?,
            layers: each,
            tokens: give(r * 2 * n * d)?,
            token_qkv: give(r * 2 * n * 3 * d)?,
            scores: give(r * heads * 4 * n * n)?,
            values: give(r * dims.mixed() * d)?,
            mix: give(if dims.is_narrow() { 0 } else { r * b * dims.positions(0) * dims.mixed() })?,
            middle,
            last,
            parts: give(parts)?,
            parts_beside: give(parts_beside)?,
            tile_parts: give(2 * r * tile_blocks(b * dims.positions(0)) * d.max(ff))?,
            sums: give(r * (3 * d + 1))?,
        })
    }
}
