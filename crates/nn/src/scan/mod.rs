//! The recurrence of a diagonal state-space model as one node of the gradient graph.

mod loops;

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex, TensorMetadata};
use burn::tensor::{Slice, Tensor};

use crate::cpu::by_dtype;
use crate::networks::Eigenvalues;
use crate::operation::{Computed, Floats, InputGradients, Operation, apply, take};

/// States h_t = a_t h_(t-1) + b_t [batch, n, d] that start at zero, from b [batch, n, d] and a = sigmoid(gate), stretched to [-1, 1] where the
/// eigenvalues are signed.
pub(crate) fn scan(gate: Tensor<3>, input: Tensor<3>, eigenvalues: Eigenvalues) -> Tensor<3> {
    let signed = eigenvalues == Eigenvalues::Signed;
    let [states] = apply(Scan { signed }, vec![gate.into_dispatch(), input.into_dispatch()]);
    Tensor::from_dispatch(states)
}

#[derive(Debug, Clone)]
struct Scan {
    signed: bool,
}

/// Inputs: gate, input. Saved: the sigmoid of the gate and the states, each [batch, n, d].
impl Operation for Scan {
    fn differentiable(&self) -> usize {
        2
    }

    fn forward<B: Backend>(&self, inputs: Floats<B>, _: bool) -> Computed<FloatTensor<B>> {
        let [gate, input] = take(&mut inputs.into_iter());
        let sigmoid = B::sigmoid(gate);
        let eigenvalues = self.stretched::<B>(sigmoid.clone());
        let n = input.shape()[1];
        let mut states = vec![step::<B>(&input, 0)];
        for t in 1..n {
            let carried = B::float_mul(step::<B>(&eigenvalues, t), states[t - 1].clone());
            states.push(B::float_add(carried, step::<B>(&input, t)));
        }
        let states = B::float_cat(states, 1);
        Computed { outputs: vec![states.clone()], saved: vec![sigmoid, states] }
    }

    fn backward<B: Backend>(&self, saved: Floats<B>, gradient: FloatTensor<B>, _: &[bool]) -> InputGradients<B> {
        let [sigmoid, states] = take(&mut saved.into_iter());
        let eigenvalues = self.stretched::<B>(sigmoid.clone());
        let n = states.shape()[1];
        let mut d_input = vec![step::<B>(&gradient, n - 1)];
        for t in (1..n).rev() {
            let later = d_input[n - 1 - t].clone();
            let carried = B::float_mul(step::<B>(&eigenvalues, t), later);
            d_input.push(B::float_add(carried, step::<B>(&gradient, t - 1)));
        }
        d_input.reverse();
        let first = B::float_mul_scalar(step::<B>(&states, 0), 0.0.into());
        let before = std::iter::once(first).chain((1..n).map(|t| step::<B>(&states, t - 1))).collect();
        let d_input = B::float_cat(d_input, 1);
        let slope = B::float_sub(sigmoid.clone(), B::float_mul(sigmoid.clone(), sigmoid));
        let slope = if self.signed { B::float_mul_scalar(slope, 2.0.into()) } else { slope };
        let d_gate = B::float_mul(B::float_mul(d_input.clone(), B::float_cat(before, 1)), slope);
        vec![Some(d_gate), Some(d_input)]
    }

    fn forward_on_cpu(&self, inputs: Floats<Flex>, _: bool) -> Computed<FlexTensor> {
        let [gate, input] = take(&mut inputs.into_iter());
        let [sigmoid, states] = by_dtype!(input, loops::forward([&gate, &input], self.signed));
        Computed { outputs: vec![states.clone()], saved: vec![sigmoid, states] }
    }

    fn backward_on_cpu(&self, saved: Floats<Flex>, gradient: FlexTensor, _: &[bool]) -> InputGradients<Flex> {
        let [sigmoid, states] = take(&mut saved.into_iter());
        by_dtype!(gradient, loops::backward([&sigmoid, &states], &gradient, self.signed)).map(Some).into()
    }
}

impl Scan {
    /// From [0, 1] to the range of the eigenvalues.
    fn stretched<B: Backend>(&self, sigmoid: FloatTensor<B>) -> FloatTensor<B> {
        match self.signed {
            true => B::float_add_scalar(B::float_mul_scalar(sigmoid, 2.0.into()), (-1.0).into()),
            false => sigmoid,
        }
    }
}

/// Step t of x [batch, n, d]: [batch, 1, d]
fn step<B: Backend>(x: &FloatTensor<B>, t: usize) -> FloatTensor<B> {
    let shape = x.shape();
    B::float_slice(x.clone(), &[Slice::from(0..shape[0]), Slice::from(t..t + 1), Slice::from(0..shape[2])])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::check::{assert_the_loops_are_composed, random};

    #[test]
    fn the_loops_are_the_composed_operations() {
        for (signed, batch, n, d) in [(false, 3, 1, 5), (true, 2, 4, 3), (false, 70, 7, 9), (true, 150, 5, 16)] {
            let inputs = [random("a", &[batch, n, d]), random("b", &[batch, n, d])];
            assert_the_loops_are_composed(&Scan { signed }, &inputs, random("g", &[batch, n, d]));
        }
    }
}
