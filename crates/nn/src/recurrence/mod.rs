//! One layer of an LSTM or a GRU over strings of one length as one node of the gradient graph: left to autodiff it is dozens of nodes per step.

mod loops;

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex, TensorMetadata};
use burn::tensor::{Shape, Slice, Tensor};
use serde::{Deserialize, Serialize};

use crate::cpu::by_dtype;
use crate::operation::{Computed, Floats, InputGradients, Operation, apply, take};

/// Which recurrent network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cell {
    /// Long short-term memory; gates in PyTorch's order: input, forget, cell, output.
    Lstm,
    /// Gated recurrent unit; gates in PyTorch's order: reset, update, new.
    Gru,
}

impl Cell {
    /// Its gates.
    pub(crate) fn gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Vectors of width d that a step keeps for the backward pass. LSTM: the four gates and the new cell. GRU: the three gates, and what the
    /// state gives to the gate `new`.
    fn kept(self) -> usize {
        match self {
            Self::Lstm => 5,
            Self::Gru => 4,
        }
    }
}

/// The states [batch, n, d] of one layer that starts at zero, from its projected inputs [batch, n, gates d], the states' weight [gates d, d] and
/// their bias [gates d].
pub(crate) fn recur(cell: Cell, projected: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    let inputs = vec![projected.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()];
    let [states] = apply(Recurrence { cell }, inputs);
    Tensor::from_dispatch(states)
}

#[derive(Debug, Clone)]
struct Recurrence {
    cell: Cell,
}

/// Inputs: projected inputs, weight, bias. Saved: weight, the states [batch, n, d], and what steps keep [batch, n, kept d].
impl Operation for Recurrence {
    fn differentiable(&self) -> usize {
        3
    }

    fn forward<B: Backend>(&self, inputs: Floats<B>, _: bool) -> Computed<FloatTensor<B>> {
        let [projected, weight, bias] = take(&mut inputs.into_iter());
        let shape = projected.shape();
        let (batch, n, d) = (shape[0], shape[1], shape[2] / self.cell.gates());
        let bias = B::float_reshape(bias, Shape::new([1, shape[2]]));
        let turned = B::float_swap_dims(weight.clone(), 0, 1);
        let zeros = B::float_zeros(Shape::new([batch, d]), &projected.device(), projected.dtype().into());
        let (mut hidden, mut cell) = (zeros.clone(), zeros);
        let (mut states, mut kept) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for t in 0..n {
            let given = step::<B>(&projected, t);
            let own = B::float_add(B::float_matmul(hidden.clone(), turned.clone()), bias.clone());
            let part = |x: &FloatTensor<B>, at: usize| columns::<B>(x, at * d..(at + 1) * d);
            let sum = |at: usize| B::float_add(part(&given, at), part(&own, at));
            let parts = match self.cell {
                Cell::Lstm => {
                    let (input, forget, output) = (B::sigmoid(sum(0)), B::sigmoid(sum(1)), B::sigmoid(sum(3)));
                    let new = B::float_tanh(sum(2));
                    cell = B::float_add(B::float_mul(forget.clone(), cell), B::float_mul(input.clone(), new.clone()));
                    hidden = B::float_mul(output.clone(), B::float_tanh(cell.clone()));
                    vec![input, forget, new, output, cell.clone()]
                }
                Cell::Gru => {
                    let (reset, update, from_state) = (B::sigmoid(sum(0)), B::sigmoid(sum(1)), part(&own, 2));
                    let gated = B::float_mul(reset.clone(), from_state.clone());
                    let new = B::float_tanh(B::float_add(part(&given, 2), gated));
                    let change = B::float_mul(update.clone(), B::float_sub(hidden, new.clone()));
                    hidden = B::float_add(new.clone(), change);
                    vec![reset, update, new, from_state]
                }
            };
            kept.push(unsqueeze::<B>(B::float_cat(parts, 1)));
            states.push(unsqueeze::<B>(hidden.clone()));
        }
        let states = B::float_cat(states, 1);
        Computed { outputs: vec![states.clone()], saved: vec![weight, states, B::float_cat(kept, 1)] }
    }

    fn backward<B: Backend>(&self, saved: Floats<B>, gradient: FloatTensor<B>, _: &[bool]) -> InputGradients<B> {
        let [weight, states, kept] = take(&mut saved.into_iter());
        let shape = states.shape();
        let (batch, n, d) = (shape[0], shape[1], shape[2]);
        // The slopes of tanh and sigmoid where their values are y: 1 - y^2 and y (1 - y).
        let one_minus = |y: FloatTensor<B>| B::float_add_scalar(B::float_neg(y), 1.0.into());
        let tanh_slope = |y: FloatTensor<B>| one_minus(B::float_mul(y.clone(), y));
        let sigmoid_slope = |y: FloatTensor<B>| B::float_mul(y.clone(), one_minus(y));
        let product = |x: &FloatTensor<B>, y: FloatTensor<B>, slope: FloatTensor<B>| {
            B::float_mul(B::float_mul(x.clone(), y), slope)
        };
        let zeros = B::float_zeros(Shape::new([batch, d]), &states.device(), states.dtype().into());
        let (mut d_hidden, mut d_cell) = (zeros.clone(), zeros.clone());
        let (mut d_given, mut d_own) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut before = Vec::with_capacity(n);
        for t in (0..n).rev() {
            let kept_now = step::<B>(&kept, t);
            let part = |at: usize| columns::<B>(&kept_now, at * d..(at + 1) * d);
            let hidden_before = if t == 0 { zeros.clone() } else { step::<B>(&states, t - 1) };
            let dh = B::float_add(step::<B>(&gradient, t), d_hidden);
            let (given, own) = match self.cell {
                Cell::Lstm => {
                    let [input, forget, new, output, cell] = [0, 1, 2, 3, 4].map(part);
                    let tanh = B::float_tanh(cell);
                    let cell_before = match t {
                        0 => zeros.clone(),
                        _ => columns::<B>(&step::<B>(&kept, t - 1), 4 * d..5 * d),
                    };
                    let dc = B::float_add(product(&dh, output.clone(), tanh_slope(tanh.clone())), d_cell);
                    let given = B::float_cat(
                        vec![
                            product(&dc, new.clone(), sigmoid_slope(input.clone())),
                            product(&dc, cell_before, sigmoid_slope(forget.clone())),
                            product(&dc, input, tanh_slope(new)),
                            product(&dh, tanh, sigmoid_slope(output)),
                        ],
                        1,
                    );
                    d_cell = B::float_mul(dc, forget);
                    d_hidden = B::float_matmul(given.clone(), weight.clone());
                    (given.clone(), given)
                }
                Cell::Gru => {
                    let [reset, update, new, from_state] = [0, 1, 2, 3].map(part);
                    let d_update =
                        product(&dh, B::float_sub(hidden_before.clone(), new.clone()), sigmoid_slope(update.clone()));
                    let d_new = product(&dh, one_minus(update.clone()), tanh_slope(new));
                    let d_reset = product(&d_new, from_state, sigmoid_slope(reset.clone()));
                    let own = vec![d_reset.clone(), d_update.clone(), B::float_mul(d_new.clone(), reset)];
                    let own = B::float_cat(own, 1);
                    d_hidden = B::float_matmul(own.clone(), weight.clone());
                    d_hidden = B::float_add(d_hidden, B::float_mul(dh, update));
                    (B::float_cat(vec![d_reset, d_update, d_new], 1), own)
                }
            };
            d_given.push(unsqueeze::<B>(given));
            d_own.push(own);
            before.push(hidden_before);
        }
        d_given.reverse();
        let d_own = B::float_cat(d_own, 0);
        let d_weight = B::float_matmul(B::float_swap_dims(d_own.clone(), 0, 1), B::float_cat(before, 0));
        let width = d_own.shape()[1];
        let d_bias = B::float_reshape(B::float_sum_dim(d_own, 0), Shape::new([width]));
        [B::float_cat(d_given, 1), d_weight, d_bias].map(Some).into()
    }

    fn forward_on_cpu(&self, inputs: Floats<Flex>, _: bool) -> Computed<FlexTensor> {
        let [projected, weight, bias] = take(&mut inputs.into_iter());
        let [states, kept] = by_dtype!(projected, loops::forward([&projected, &weight, &bias], self.cell));
        Computed { outputs: vec![states.clone()], saved: vec![weight, states, kept] }
    }

    fn backward_on_cpu(&self, saved: Floats<Flex>, gradient: FlexTensor, _: &[bool]) -> InputGradients<Flex> {
        let [weight, states, kept] = take(&mut saved.into_iter());
        by_dtype!(gradient, loops::backward([&weight, &states, &kept], &gradient, self.cell)).map(Some).into()
    }
}

/// Step t of x [batch, n, width]: [batch, width]
fn step<B: Backend>(x: &FloatTensor<B>, t: usize) -> FloatTensor<B> {
    let shape = x.shape();
    let all = |at: usize| Slice::from(0..shape[at]);
    let one = B::float_slice(x.clone(), &[all(0), Slice::from(t..t + 1), all(2)]);
    B::float_reshape(one, Shape::new([shape[0], shape[2]]))
}

fn columns<B: Backend>(x: &FloatTensor<B>, range: std::ops::Range<usize>) -> FloatTensor<B> {
    B::float_slice(x.clone(), &[Slice::from(0..x.shape()[0]), Slice::from(range)])
}

/// [batch, width] -> [batch, 1, width]
fn unsqueeze<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let shape = x.shape();
    B::float_reshape(x, Shape::new([shape[0], 1, shape[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::check::{assert_the_loops_are_composed, random};

    /// One step and several, fewer strings than a block and more.
    #[test]
    fn the_loops_are_the_composed_operations() {
        for cell in [Cell::Lstm, Cell::Gru] {
            for (batch, n, d) in [(3, 1, 5), (2, 4, 3), (70, 3, 9), (150, 5, 16)] {
                let width = cell.gates() * d;
                let inputs = [random("x", &[batch, n, width]), random("w", &[width, d]), random("b", &[width])];
                assert_the_loops_are_composed(&Recurrence { cell }, &inputs, random("g", &[batch, n, d]));
            }
        }
    }
}
