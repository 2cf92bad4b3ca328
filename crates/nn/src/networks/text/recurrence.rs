//! One layer of an LSTM over packed sequences as one node of the gradient graph.
//!
//! A layer of 128 steps left to autodiff is thousands of nodes. Here it is one, with a backward pass by hand: the inputs' projection and
//! every gradient of a weight are single multiplications of all tokens at once, and a step multiplies its states only.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Slice, Tensor};

use crate::operation::{Computed, Floats, InputGradients, Operation, apply, take};

/// The parameters of one layer, gates in PyTorch's order: input, forget, cell, output.
#[derive(Clone)]
pub(super) struct LayerWeights {
    /// [4 hidden, inputs]
    pub(super) input: Tensor<2>,
    /// [4 hidden, hidden]
    pub(super) state: Tensor<2>,
    /// [4 hidden], PyTorch's two added.
    pub(super) bias: Tensor<1>,
}

/// Where sequences stand in one layer: hidden states and cells, each [sequences, hidden]. No gradient flows into them.
#[derive(Clone)]
pub(super) struct LayerState {
    pub(super) hidden: Tensor<2>,
    pub(super) cell: Tensor<2>,
}

/// The hidden states of one layer: inputs [tokens, inputs], packed as `sizes` says (sequences still going at each step, the longest
/// first) -> [tokens, hidden]. Sequences start at `start`, one row each, or at zero.
pub(super) fn lstm_layer(
    inputs: Tensor<2>,
    weights: LayerWeights,
    start: Option<LayerState>,
    sizes: &[usize],
) -> Tensor<2> {
    let start = start.unwrap_or_else(|| {
        let shape = [sizes[0], weights.state.dims()[1]];
        let inputs = inputs.clone().without_autodiff();
        let zeros = Tensor::zeros(shape, (&inputs.device(), inputs.dtype()));
        LayerState { hidden: zeros.clone(), cell: zeros }
    });
    compute(inputs, weights, start, sizes.to_vec()).0
}

/// The hidden states [tokens, hidden] of one layer, and where it stands at the end, of sequences of one length, without a gradient: inputs
/// [tokens, inputs], all first tokens before all second ones.
pub(super) fn lstm_advance(inputs: Tensor<2>, weights: LayerWeights, start: LayerState) -> (Tensor<2>, LayerState) {
    let (tokens, sequences) = (inputs.dims()[0], start.cell.dims()[0]);
    let sizes = vec![sequences; tokens / sequences];
    let (states, cell) = compute(inputs, weights, start, sizes);
    let hidden = states.clone().narrow(0, tokens - sequences, sequences);
    (states, LayerState { hidden, cell })
}

/// The hidden states of all tokens, and the cells after the last step.
fn compute(inputs: Tensor<2>, weights: LayerWeights, start: LayerState, sizes: Vec<usize>) -> (Tensor<2>, Tensor<2>) {
    let [inputs, input, state, hidden, cell] =
        [inputs, weights.input, weights.state, start.hidden, start.cell].map(Tensor::into_dispatch);
    let [states, cell] = apply(Lstm { sizes }, vec![inputs, input, state, weights.bias.into_dispatch(), hidden, cell]);
    (Tensor::from_dispatch(states), Tensor::from_dispatch(cell))
}

#[derive(Debug, Clone)]
struct Lstm {
    /// How many sequences each step has.
    sizes: Vec<usize>,
}

/// What one step keeps for the backward pass, each [sequences, hidden]: the gates' values, and the cell before and after, the latter
/// through tanh.
struct Step<T> {
    input: T,
    forget: T,
    new: T,
    output: T,
    cell_before: T,
    cell_tanh: T,
    hidden_before: T,
}

impl<T> Step<T> {
    fn parts(self) -> [T; 7] {
        [self.input, self.forget, self.new, self.output, self.cell_before, self.cell_tanh, self.hidden_before]
    }

    fn of([input, forget, new, output, cell_before, cell_tanh, hidden_before]: [T; 7]) -> Self {
        Self { input, forget, new, output, cell_before, cell_tanh, hidden_before }
    }
}

/// Inputs: inputs, their weight, the states' weight and the bias, which have a gradient; hidden states and cells at the start, which have none.
/// Outputs: the hidden states of all tokens, and the cells after the last step. Saved: inputs, both weights, and the parts of every [`Step`].
impl Operation for Lstm {
    fn differentiable(&self) -> usize {
        4
    }

    fn forward<B: Backend>(&self, inputs: Floats<B>, save: bool) -> Computed<FloatTensor<B>> {
        let [inputs, input_weight, state_weight, bias, mut hidden, mut cell] = take(&mut inputs.into_iter());
        let mut saved = vec![inputs.clone(), input_weight.clone(), state_weight.clone()];
        let width = state_weight.shape()[1];
        let projected = B::float_matmul(inputs, B::float_swap_dims(input_weight, 0, 1));
        let projected = B::float_add(projected, B::float_reshape(bias, Shape::new([1, 4 * width])));
        let state_weight = B::float_swap_dims(state_weight, 0, 1);
        let mut outputs = Vec::with_capacity(self.sizes.len());
        let mut start = 0;
        for size in self.sizes.iter().copied() {
            let (hidden_before, cell_before) = (rows::<B>(&hidden, 0..size), rows::<B>(&cell, 0..size));
            let from_states = B::float_matmul(hidden_before.clone(), state_weight.clone());
            let gates = B::float_add(rows::<B>(&projected, start..start + size), from_states);
            start += size;
            let gate = |at: usize| columns::<B>(&gates, at * width..(at + 1) * width);
            let (input, forget, output) = (B::sigmoid(gate(0)), B::sigmoid(gate(1)), B::sigmoid(gate(3)));
            let new = B::float_tanh(gate(2));
            let kept = B::float_mul(forget.clone(), cell_before.clone());
            cell = B::float_add(kept, B::float_mul(input.clone(), new.clone()));
            let cell_tanh = B::float_tanh(cell.clone());
            hidden = B::float_mul(output.clone(), cell_tanh.clone());
            outputs.push(hidden.clone());
            if save {
                saved.extend(Step { input, forget, new, output, cell_before, cell_tanh, hidden_before }.parts());
            }
        }
        Computed { outputs: vec![B::float_cat(outputs, 0), cell], saved }
    }

    fn backward<B: Backend>(&self, saved: Floats<B>, gradient: FloatTensor<B>, _: &[bool]) -> InputGradients<B> {
        let mut saved = saved.into_iter();
        let [inputs, input_weight, state_weight] = take(&mut saved);
        let steps: Vec<Step<FloatTensor<B>>> = self.sizes.iter().map(|_| Step::of(take(&mut saved))).collect();
        // The slopes of tanh and sigmoid where their values are y: 1 - y^2 and y (1 - y).
        let tanh_slope = |y: FloatTensor<B>| B::float_add_scalar(B::float_neg(B::float_mul(y.clone(), y)), 1.0.into());
        let sigmoid_slope = |y: FloatTensor<B>| B::float_sub(y.clone(), B::float_mul(y.clone(), y));
        let product =
            |x: FloatTensor<B>, y: FloatTensor<B>, slope: FloatTensor<B>| B::float_mul(B::float_mul(x, y), slope);
        let mut end: usize = self.sizes.iter().sum();
        let (mut d_hidden, mut d_cell): (Option<FloatTensor<B>>, Option<FloatTensor<B>>) = (None, None);
        let (mut d_gates, mut hidden_before) =
            (Vec::with_capacity(self.sizes.len()), Vec::with_capacity(self.sizes.len()));
        for (step, size) in steps.into_iter().zip(&self.sizes).rev() {
            let start = end - size;
            // Sequences that end here have no gradient from a later step.
            let dh = add_rows::<B>(rows::<B>(&gradient, start..end), d_hidden);
            let dc = product(dh.clone(), step.output.clone(), tanh_slope(step.cell_tanh.clone()));
            let dc = add_rows::<B>(dc, d_cell);
            let d_input = product(dc.clone(), step.new.clone(), sigmoid_slope(step.input.clone()));
            let d_forget = product(dc.clone(), step.cell_before, sigmoid_slope(step.forget.clone()));
            let d_new = product(dc.clone(), step.input, tanh_slope(step.new));
            let d_output = product(dh, step.cell_tanh, sigmoid_slope(step.output));
            let gates = B::float_cat(vec![d_input, d_forget, d_new, d_output], 1);
            d_hidden = Some(B::float_matmul(gates.clone(), state_weight.clone()));
            d_cell = Some(B::float_mul(dc, step.forget));
            d_gates.push(gates);
            hidden_before.push(step.hidden_before);
            end = start;
        }
        d_gates.reverse();
        hidden_before.reverse();
        let d_gates = B::float_cat(d_gates, 0);
        let transposed = B::float_swap_dims(d_gates.clone(), 0, 1);
        let d_state_weight = B::float_matmul(transposed.clone(), B::float_cat(hidden_before, 0));
        let d_input_weight = B::float_matmul(transposed, inputs);
        let d_bias = B::float_reshape(B::float_sum_dim(d_gates.clone(), 0), Shape::new([d_gates.shape()[1]]));
        [B::float_matmul(d_gates, input_weight), d_input_weight, d_state_weight, d_bias].map(Some).into()
    }

    /// LibTorch's own layer, which is cuDNN's on a GPU.
    #[cfg(feature = "torch")]
    #[allow(deprecated)] // burn marks its LibTorch backend deprecated; `device.rs` says why we use it
    fn forward_on_torch(&self, inputs: Floats<burn::backend::LibTorch>) -> Floats<burn::backend::LibTorch> {
        let [inputs, input_weight, state_weight, bias, hidden, cell] = take(&mut inputs.into_iter());
        let given = [input_weight, state_weight, bias].map(|given| given.tensor);
        // cuDNN wants all parameters in one piece, PyTorch's second bias, which is zero here, at its end; else it copies them and complains.
        let [input_weight, state_weight, bias] = &given;
        let zeros = bias.detach().zeros_like();
        let parts = [input_weight, state_weight, bias, &zeros];
        let joined = tch::Tensor::cat(&parts.map(|part| part.reshape([-1])), 0);
        let lengths = parts.map(|part| part.numel() as i64);
        let views = joined.split_with_sizes(lengths, 0);
        let views: Vec<tch::Tensor> = views.iter().zip(parts).map(|(view, part)| view.view_as(part)).collect();
        let start = [hidden, cell].map(|state| state.tensor.unsqueeze(0));
        let sizes: Vec<i64> = self.sizes.iter().map(|size| *size as i64).collect();
        let sizes = tch::Tensor::from_slice(&sizes);
        let recorded = inputs.tensor.requires_grad() || joined.requires_grad();
        let (states, _, cell) =
            tch::Tensor::lstm_data(&inputs.tensor, &sizes, &start, &views, true, 1, 0.0, recorded, false);
        vec![states, cell.squeeze_dim(0)].into_iter().map(burn::backend::libtorch::TchTensor::new).collect()
    }
}

fn rows<B: Backend>(x: &FloatTensor<B>, range: std::ops::Range<usize>) -> FloatTensor<B> {
    match range.start == 0 && range.end == x.shape()[0] {
        true => x.clone(),
        false => B::float_slice(x.clone(), &[Slice::from(range)]),
    }
}

fn columns<B: Backend>(x: &FloatTensor<B>, range: std::ops::Range<usize>) -> FloatTensor<B> {
    let all = Slice::from(0..x.shape()[0]);
    B::float_slice(x.clone(), &[all, Slice::from(range)])
}

/// x with `first` added to its first rows.
fn add_rows<B: Backend>(x: FloatTensor<B>, first: Option<FloatTensor<B>>) -> FloatTensor<B> {
    let Some(first) = first else { return x };
    let count = first.shape()[0];
    if count == x.shape()[0] {
        return B::float_add(x, first);
    }
    let sum = B::float_add(rows::<B>(&x, 0..count), first);
    B::float_cat(vec![sum, rows::<B>(&x, count..x.shape()[0])], 0)
}
