//! One block of strings through the network and back, in buffers small enough to stay in a core's cache.

use super::folded_half::FoldedHalf;
use super::last_attention::LastAttention;
use super::layout::{Layout, parts};
use super::middle_attention::MiddleAttention;
use super::passes::{add_scaled, dot};
use super::prepared::Ready;
use super::real::Real;
use super::second_half::SecondHalf;
use super::table_attention::TableAttention;
use super::tables::TableGradient;
use super::wide::wide;

/// One layer's buffers: its attention and what follows it.
enum Layer<T> {
    /// The first, by tables, `linear1` included.
    Folded(TableAttention<T>, FoldedHalf<T>),
    /// The first, by tables.
    Table(TableAttention<T>, SecondHalf<T>),
    /// Neither first nor last.
    Middle(MiddleAttention<T>, SecondHalf<T>),
    /// The last, at the last position only.
    Last(LastAttention<T>, SecondHalf<T>),
}

impl<T: Real> Layer<T> {
    fn new(layout: &Layout, index: usize, strings: usize) -> Self {
        let is_last = index + 1 == layout.layers.len();
        let positions = if is_last { 1 } else { layout.n };
        let half = || SecondHalf::new(layout, strings * positions);
        let table = || TableAttention::new(layout, strings, positions);
        match index {
            0 if layout.folds_linear1() => Self::Folded(table(), FoldedHalf::new(layout, strings * positions)),
            0 => Self::Table(table(), half()),
            _ if is_last => Self::Last(LastAttention::new(layout, strings), half()),
            _ => Self::Middle(MiddleAttention::new(layout, strings), half()),
        }
    }

    /// What it gives [strings, positions, d].
    fn output(&self) -> &[T] {
        match self {
            Self::Folded(_, half) => &half.output,
            Self::Table(_, half) | Self::Middle(_, half) | Self::Last(_, half) => &half.output,
        }
    }

    /// The variances of the rows its two norms were given [strings, positions].
    fn variances(&self) -> [&[T]; 2] {
        match self {
            Self::Folded(_, half) => [&half.variance1, &half.variance2],
            Self::Table(_, half) | Self::Middle(_, half) | Self::Last(_, half) => [&half.variance1, &half.variance2],
        }
    }
}

/// Buffers for a block of strings.
pub(crate) struct Block<T> {
    layers: Vec<Layer<T>>,
    /// Strings it has room for.
    strings: usize,
    /// [strings]; on the way back, their gradient.
    outputs: Vec<T>,
    /// The gradient on its way back: at the last position [strings, d], at all of them [strings, n, d].
    flow_last: Vec<T>,
    flow: Vec<T>,
    /// [strings, n, ff]
    d_hidden: Vec<T>,
}

/// A gradient being added up: of the parameters, and of the first layer's tables, which leads to more of the parameters'.
pub(crate) struct Gradient<T> {
    pub(crate) parameters: Vec<T>,
    pub(crate) tables: TableGradient<T>,
}

impl<T: Real> Gradient<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { parameters: vec![T::zero(); layout.len], tables: TableGradient::new(layout) }
    }

    pub(crate) fn clear(&mut self) {
        self.parameters.fill(T::zero());
        self.tables.clear();
    }
}

/// Numbers of activations that a block may keep: about what fits in 1 MiB of L2 beside the weights in use.
const CACHE: usize = 230_000;

/// Strings in a block.
pub(crate) fn block_strings(layout: &Layout) -> usize {
    let Layout { n, d, ff, heads, .. } = *layout;
    // Six buffers of width d, two of width ff (see `SecondHalf`), and the shares.
    let numbers = n * (6 * d + 2 * ff + heads * n);
    (CACHE / numbers).max(1)
}

impl<T: Real> Block<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        let strings = block_strings(layout);
        let depth = layout.layers.len();
        let (n, d, ff) = (layout.n, layout.d, layout.ff);
        let positions = if depth == 1 { 1 } else { n };
        Self {
            layers: (0..depth).map(|index| Layer::new(layout, index, strings)).collect(),
            strings,
            outputs: vec![T::zero(); strings],
            flow_last: vec![T::zero(); strings * d],
            flow: vec![T::zero(); if depth == 1 { 0 } else { strings * n * d }],
            d_hidden: vec![T::zero(); strings * positions * ff],
        }
    }

    /// Put strings [strings, n] through the network; no more than [`block_strings`].
    pub(crate) fn forward(&mut self, ready: &Ready<T>, strings: &[u8]) {
        let layout = ready.layout;
        let (count, d) = (strings.len() / layout.n, layout.d);
        for index in 0..self.layers.len() {
            let (before, own) = self.layers.split_at_mut(index);
            let at = &layout.layers[index];
            // Every layer before the last gives all positions.
            let x = before.last().map_or(&[][..], |layer| &layer.output()[..count * layout.n * d]);
            let rows = if index + 1 == layout.layers.len() { count } else { count * layout.n };
            match &mut own[0] {
                Layer::Folded(attention, half) => {
                    attention.forward(ready, strings, &mut half.input);
                    half.forward(ready, at, rows);
                }
                Layer::Table(attention, half) => {
                    attention.forward(ready, strings, &mut half.input);
                    half.forward(ready, at, rows);
                }
                Layer::Middle(attention, half) => {
                    attention.forward(ready, at, x, &mut half.input);
                    half.forward(ready, at, rows);
                }
                Layer::Last(attention, half) => {
                    attention.forward(ready, at, x, &mut half.input);
                    half.forward(ready, at, rows);
                }
            }
        }
        let (weight, bias) = (ready.of(&layout.head_weight), ready.of(&layout.head_bias)[0]);
        if let Some(layer) = self.layers.last() {
            read_out(layer.output(), weight, bias, &mut self.outputs[..count]);
        }
    }

    /// After [`Block::forward`]: the outputs of its first `count` strings.
    pub(crate) fn outputs(&self, count: usize) -> &[T] {
        &self.outputs[..count]
    }

    /// After [`Block::forward`] on the same strings: add what the outputs' gradient makes of the parameters'. `d_output` gives the
    /// gradient of one output, from its row in the block and the output.
    pub(crate) fn backward(
        &mut self,
        ready: &Ready<T>,
        strings: &[u8],
        gradient: &mut Gradient<T>,
        mut d_output: impl FnMut(usize, T) -> T,
    ) {
        let layout = ready.layout;
        let (count, d) = (strings.len() / layout.n, layout.d);
        let depth = self.layers.len();
        let (flow_last, flow) = (&mut self.flow_last[..count * d], &mut self.flow);
        let Gradient { parameters, tables } = gradient;
        for (row, output) in self.outputs[..count].iter_mut().enumerate() {
            *output = d_output(row, *output);
        }
        let [d_weight, d_bias] = parts(parameters, [&layout.head_weight, &layout.head_bias]);
        let (output, weight) = (self.layers[depth - 1].output(), ready.of(&layout.head_weight));
        read_out_backward(output, weight, &self.outputs[..count], d_weight, d_bias, flow_last);
        let d_hidden = &mut self.d_hidden;
        for index in (0..depth).rev() {
            let (before, own) = self.layers.split_at_mut(index);
            let at = &layout.layers[index];
            let x = before.last().map_or(&[][..], |layer| &layer.output()[..count * layout.n * d]);
            let own_flow = if index + 1 == depth { &mut *flow_last } else { &mut flow[..count * layout.n * d] };
            match &mut own[0] {
                Layer::Folded(attention, half) => {
                    half.backward(ready, at, own_flow, parameters, tables);
                    attention.backward(ready, strings, &half.d_input, tables);
                }
                Layer::Table(attention, half) => {
                    half.backward(ready, at, own_flow, d_hidden, parameters);
                    attention.backward(ready, strings, own_flow, tables);
                }
                Layer::Middle(attention, half) => {
                    half.backward(ready, at, own_flow, d_hidden, parameters);
                    attention.backward(ready, at, x, own_flow, parameters);
                }
                Layer::Last(attention, half) => {
                    half.backward(ready, at, own_flow, d_hidden, parameters);
                    attention.backward(ready, at, x, flow_last, flow, parameters);
                }
            }
        }
    }

    /// After [`Block::forward`]: for each LayerNorm in the order they are applied, the variances of the rows it was given
    /// [strings, positions], and the positions.
    pub(crate) fn variances(&self) -> impl Iterator<Item = (&[T], usize)> {
        let norms = self.layers.iter().flat_map(Layer::variances);
        norms.map(|variances| (variances, variances.len() / self.strings))
    }
}

wide! {
    /// The head: outputs [strings] = rows [strings, d] . weight + bias.
    fn read_out<T: Real>(rows: &[T], weight: &[T], bias: T, outputs: &mut [T]) {
        for (output, row) in outputs.iter_mut().zip(rows.chunks_exact(weight.len())) {
            *output = dot(row, weight) + bias;
        }
    }
}

wide! {
    /// From the gradient of the outputs [strings] to those of weight and bias, added to, and of the rows, written into flow
    /// [strings, d].
    fn read_out_backward<T: Real>(
        rows: &[T],
        weight: &[T],
        d_outputs: &[T],
        d_weight: &mut [T],
        d_bias: &mut [T],
        flow: &mut [T],
    ) {
        let d = weight.len();
        for ((row, flow), g) in rows.chunks_exact(d).zip(flow.chunks_exact_mut(d)).zip(d_outputs) {
            add_scaled(d_weight, *g, row);
            d_bias[0] += *g;
            for (flow, weight) in flow.iter_mut().zip(weight) {
                *flow = *g * *weight;
            }
        }
    }
}
