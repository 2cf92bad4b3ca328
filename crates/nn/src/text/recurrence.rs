//! One layer of an LSTM over packed sequences as one step of the gradient graph.
//!
//! A layer of 128 steps left to autodiff is thousands of nodes. Here it is one, with a backward pass by hand: the inputs' projection and
//! every gradient of a weight are single multiplications of all tokens at once, and a step multiplies its states only. On LibTorch the layer
//! is LibTorch's own, which is cuDNN's on a GPU.

// burn marks its LibTorch backend deprecated; `device.rs` says why we use it.
#![cfg_attr(feature = "torch", allow(deprecated))]

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Shape, Slice, Tensor};

/// The hidden states of one layer: inputs [tokens, inputs], packed as `sizes` says (sequences still going at each step, the longest
/// first), weights `[4 hidden, inputs]` and `[4 hidden, hidden]` and a bias [4 hidden] in PyTorch's order of gates -> [tokens, hidden].
/// States start at zero.
pub(super) fn lstm_layer(
    inputs: Tensor<2>,
    input_weight: Tensor<2>,
    state_weight: Tensor<2>,
    bias: Tensor<1>,
    sizes: &[usize],
) -> Tensor<2> {
    let (inputs, bias) = (inputs.into_dispatch(), bias.into_dispatch());
    let (input_weight, state_weight) = (input_weight.into_dispatch(), state_weight.into_dispatch());
    Tensor::from_dispatch(<Dispatch as Recur>::recur(inputs, input_weight, state_weight, bias, sizes.to_vec()))
}

#[backend_extension(Flex, LibTorch: cfg(feature = "torch"), Autodiff)]
trait Recur: Backend {
    fn recur(
        inputs: FloatTensor<Self>,
        input_weight: FloatTensor<Self>,
        state_weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        sizes: Vec<usize>,
    ) -> FloatTensor<Self>;
}

/// What a backend provides. The four tensors are inputs, weight of the inputs, weight of the states, and bias.
trait Layer: Backend {
    /// The hidden states, and what the backward pass needs.
    fn layer_forward(given: [FloatTensor<Self>; 4], sizes: &[usize]) -> (FloatTensor<Self>, Vec<FloatTensor<Self>>);

    /// The gradients of the four.
    fn layer_backward(
        saved: Vec<FloatTensor<Self>>,
        gradient: FloatTensor<Self>,
        sizes: &[usize],
    ) -> [FloatTensor<Self>; 4];
}

impl Recur for Flex {
    fn recur(
        inputs: FloatTensor<Self>,
        input_weight: FloatTensor<Self>,
        state_weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        sizes: Vec<usize>,
    ) -> FloatTensor<Self> {
        forward::<Self>([inputs, input_weight, state_weight, bias], &sizes).0
    }
}

impl Layer for Flex {
    fn layer_forward(given: [FloatTensor<Self>; 4], sizes: &[usize]) -> (FloatTensor<Self>, Vec<FloatTensor<Self>>) {
        forward::<Self>(given, sizes)
    }

    fn layer_backward(
        saved: Vec<FloatTensor<Self>>,
        gradient: FloatTensor<Self>,
        sizes: &[usize],
    ) -> [FloatTensor<Self>; 4] {
        backward::<Self>(saved, gradient, sizes)
    }
}

#[cfg(feature = "torch")]
mod torch {
    use burn::backend::LibTorch;
    use tch::Tensor;

    use super::*;

    impl Recur for LibTorch {
        fn recur(
            inputs: FloatTensor<Self>,
            input_weight: FloatTensor<Self>,
            state_weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            sizes: Vec<usize>,
        ) -> FloatTensor<Self> {
            let [inputs, input_weight, state_weight, bias] =
                [inputs, input_weight, state_weight, bias].map(|given| given.tensor);
            FloatTensor::<Self>::new(lstm(&inputs, &input_weight, &state_weight, &bias, &sizes, false))
        }
    }

    /// LibTorch's own layer. It wants two biases and first states.
    fn lstm(inputs: &Tensor, input_weight: &Tensor, state_weight: &Tensor, bias: &Tensor, sizes: &[usize], train: bool) -> Tensor {
        let steps: Vec<i64> = sizes.iter().map(|size| *size as i64).collect();
        let state = inputs.new_zeros([1, steps[0], state_weight.size()[1]], (inputs.kind(), inputs.device()));
        let second_bias = bias.detach().zeros_like();
        let parameters = [input_weight, state_weight, bias, &second_bias];
        let (states, _, _) = Tensor::lstm_data(
            inputs, &Tensor::from_slice(&steps), &[&state, &state], &parameters, true, 1, 0.0, train, false,
        );
        states
    }

    impl Layer for LibTorch {
        /// Recorded by LibTorch's own autograd. `given` and the output are kept as burn's tensors too, so that burn does not overwrite
        /// values the record refers to.
        fn layer_forward(
            given: [FloatTensor<Self>; 4],
            sizes: &[usize],
        ) -> (FloatTensor<Self>, Vec<FloatTensor<Self>>) {
            let leaves = given.clone().map(|given| given.tensor.detach().set_requires_grad(true));
            let [inputs, input_weight, state_weight, bias] = &leaves;
            let states = tch::with_grad(|| lstm(inputs, input_weight, state_weight, bias, sizes, true));
            let output = FloatTensor::<Self>::new(states.detach());
            let recorded = leaves.into_iter().chain([states]).map(FloatTensor::<Self>::new);
            let saved = recorded.chain(given).chain([output.clone()]).collect();
            (output, saved)
        }

        fn layer_backward(
            saved: Vec<FloatTensor<Self>>,
            gradient: FloatTensor<Self>,
            _: &[usize],
        ) -> [FloatTensor<Self>; 4] {
            let leaves = [0, 1, 2, 3].map(|at| &saved[at].tensor);
            let along = tch::with_grad(|| (&saved[4].tensor * &gradient.tensor).sum(None));
            let mut gradients = Tensor::run_backward(&[along], &leaves, false, false).into_iter();
            [(); 4].map(|()| FloatTensor::<Self>::new(gradients.next().expect("one gradient for each leaf")))
        }
    }
}

impl<B: Layer, C: CheckpointStrategy> Recur for Autodiff<B, C> {
    fn recur(
        inputs: FloatTensor<Self>,
        input_weight: FloatTensor<Self>,
        state_weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        sizes: Vec<usize>,
    ) -> FloatTensor<Self> {
        let parents = [inputs.node(), input_weight.node(), state_weight.node(), bias.node()];
        let given = [inputs, input_weight, state_weight, bias].map(|tensor| tensor.into_primitive());
        match Lstm.prepare::<C>(parents).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let (output, saved) = B::layer_forward(given, &sizes);
                prepared.finish((saved, sizes), output)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(B::layer_forward(given, &sizes).0),
        }
    }
}

#[derive(Debug)]
struct Lstm;

impl<B: Layer> Backward<B, 4> for Lstm {
    type State = (Vec<FloatTensor<B>>, Vec<usize>);

    fn backward(self, ops: Ops<Self::State, 4>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let (saved, sizes) = ops.state;
        let computed = B::layer_backward(saved, gradient, &sizes);
        for (parent, gradient) in ops.parents.into_iter().zip(computed) {
            if let Some(parent) = parent {
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}

/// What one step keeps for the backward pass, each [sequences, hidden].
#[derive(Clone)]
struct Step<T> {
    input: T,
    forget: T,
    cell_input: T,
    output: T,
    cell: T,
    cell_tanh: T,
}

impl<T> Step<T> {
    const PARTS: usize = 6;

    fn parts(self) -> [T; 6] {
        [self.input, self.forget, self.cell_input, self.output, self.cell, self.cell_tanh]
    }

    fn of(parts: [T; 6]) -> Self {
        let [input, forget, cell_input, output, cell, cell_tanh] = parts;
        Self { input, forget, cell_input, output, cell, cell_tanh }
    }
}

/// The layer composed of a backend's operations. Saved: the four given tensors, the output, and the parts of every step.
fn forward<B: Backend>(
    given: [FloatTensor<B>; 4],
    sizes: &[usize],
) -> (FloatTensor<B>, Vec<FloatTensor<B>>) {
    let [inputs, input_weight, state_weight, bias] = given.clone();
    let hidden = state_weight.shape()[1];
    let projected = B::float_matmul(inputs, B::float_swap_dims(input_weight, 0, 1));
    let projected = B::float_add(projected, B::float_reshape(bias, Shape::new([1, 4 * hidden])));
    let state_weight = B::float_swap_dims(state_weight, 0, 1);
    let (mut state, mut cell): (Option<FloatTensor<B>>, Option<FloatTensor<B>>) = (None, None);
    let (mut outputs, mut steps) = (Vec::with_capacity(sizes.len()), Vec::with_capacity(sizes.len()));
    let mut start = 0;
    for size in sizes.iter().copied() {
        let mut gates = rows::<B>(&projected, start..start + size);
        start += size;
        if let Some(state) = &state {
            gates = B::float_add(gates, B::float_matmul(rows::<B>(state, 0..size), state_weight.clone()));
        }
        let gate = |at: usize| columns::<B>(&gates, at * hidden..(at + 1) * hidden);
        let (input, forget, output) = (B::sigmoid(gate(0)), B::sigmoid(gate(1)), B::sigmoid(gate(3)));
        let cell_input = B::float_tanh(gate(2));
        let mut new = B::float_mul(input.clone(), cell_input.clone());
        if let Some(cell) = &cell {
            new = B::float_add(B::float_mul(forget.clone(), rows::<B>(cell, 0..size)), new);
        }
        let cell_tanh = B::float_tanh(new.clone());
        let next = B::float_mul(output.clone(), cell_tanh.clone());
        outputs.push(next.clone());
        (state, cell) = (Some(next), Some(new.clone()));
        steps.extend(Step { input, forget, cell_input, output, cell: new, cell_tanh }.parts());
    }
    let output = B::float_cat(outputs, 0);
    let saved = given.into_iter().chain([output.clone()]).chain(steps).collect();
    (output, saved)
}

fn backward<B: Backend>(
    saved: Vec<FloatTensor<B>>,
    gradient: FloatTensor<B>,
    sizes: &[usize],
) -> [FloatTensor<B>; 4] {
    let mut saved = saved.into_iter();
    let mut next = || saved.next().expect("as many tensors as the forward pass saved");
    let [inputs, input_weight, state_weight, _, states] = [(); 5].map(|()| next());
    let steps: Vec<Step<FloatTensor<B>>> =
        sizes.iter().map(|_| Step::of([(); Step::<()>::PARTS].map(|()| next()))).collect();
    // 1 - y^2 and y (1 - y): the slopes of tanh and sigmoid at outputs y.
    let tanh_slope = |y: FloatTensor<B>| B::float_add_scalar(B::float_neg(B::float_mul(y.clone(), y)), 1.0.into());
    let sigmoid_slope = |y: FloatTensor<B>| B::float_sub(y.clone(), B::float_mul(y.clone(), y));
    let mut end: usize = sizes.iter().sum();
    let (mut d_state, mut d_cell): (Option<FloatTensor<B>>, Option<FloatTensor<B>>) = (None, None);
    let mut d_gates = Vec::with_capacity(sizes.len());
    let mut befores = Vec::with_capacity(sizes.len());
    for (at, size) in sizes.iter().copied().enumerate().rev() {
        let Step { input, forget, cell_input, output, cell_tanh, .. } = steps[at].clone();
        end -= size;
        // Sequences that end here have no gradient from a later step.
        let dh = add_rows::<B>(rows::<B>(&gradient, end..end + size), d_state.take());
        let dc = B::float_mul(B::float_mul(dh.clone(), output.clone()), tanh_slope(cell_tanh.clone()));
        let dc = add_rows::<B>(dc, d_cell.take());
        let d_output = B::float_mul(B::float_mul(dh, cell_tanh), sigmoid_slope(output));
        let d_input = B::float_mul(B::float_mul(dc.clone(), cell_input.clone()), sigmoid_slope(input.clone()));
        let d_cell_input = B::float_mul(B::float_mul(dc.clone(), input), tanh_slope(cell_input));
        let d_forget = match at.checked_sub(1) {
            Some(before) => {
                let cell = rows::<B>(&steps[before].cell, 0..size);
                B::float_mul(B::float_mul(dc.clone(), cell), sigmoid_slope(forget.clone()))
            }
            None => B::float_mul_scalar(forget.clone(), 0.0.into()),
        };
        let gates = B::float_cat(vec![d_input, d_forget, d_cell_input, d_output], 1);
        if at > 0 {
            d_state = Some(B::float_matmul(gates.clone(), state_weight.clone()));
            d_cell = Some(B::float_mul(dc, forget));
            befores.push(rows::<B>(&states, end - sizes[at - 1]..end - sizes[at - 1] + size));
        }
        d_gates.push(gates);
    }
    d_gates.reverse();
    befores.reverse();
    let d_gates = B::float_cat(d_gates, 0);
    let transposed = B::float_swap_dims(d_gates.clone(), 0, 1);
    let d_state_weight = match befores.is_empty() {
        true => B::float_mul_scalar(state_weight, 0.0.into()),
        false => {
            let later = columns::<B>(&transposed, sizes[0]..sizes.iter().sum());
            B::float_matmul(later, B::float_cat(befores, 0))
        }
    };
    let d_input_weight = B::float_matmul(transposed, inputs);
    let d_bias = B::float_sum_dim(d_gates.clone(), 0);
    let d_bias = B::float_reshape(d_bias, Shape::new([d_gates.shape()[1]]));
    [B::float_matmul(d_gates, input_weight), d_input_weight, d_state_weight, d_bias]
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
