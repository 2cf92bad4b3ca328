//! LayerNorm as one node of the gradient graph.

mod loops;

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex, TensorMetadata};
use burn::tensor::{Shape, Tensor};

use crate::cpu::by_dtype;
use crate::operation::{Computed, Floats, InputGradients, Operation, apply, take};

/// (x - mean) / sqrt(var + eps) * weight + bias over the last dimension of x [batch, length, d].
pub(crate) fn layer_norm(x: Tensor<3>, weight: Tensor<1>, bias: Tensor<1>, eps: f64) -> Tensor<3> {
    let [y] = apply(Normalise { eps }, vec![x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()]);
    Tensor::from_dispatch(y)
}

#[derive(Debug, Clone)]
struct Normalise {
    eps: f64,
}

/// Inputs: x, weight, bias. Saved: the normalised input [batch, length, d], 1/sqrt(var + eps) [batch, length, 1] and the weight.
impl Operation for Normalise {
    fn differentiable(&self) -> usize {
        3
    }

    fn forward<B: Backend>(&self, inputs: Floats<B>, _: bool) -> Computed<FloatTensor<B>> {
        let [x, weight, bias] = take(&mut inputs.into_iter());
        let mean = B::float_mean_dim(x.clone(), 2);
        let centred = B::float_sub(x, mean);
        let variance = B::float_mean_dim(B::float_mul(centred.clone(), centred.clone()), 2);
        let factor = B::float_recip(B::float_sqrt(B::float_add_scalar(variance, self.eps.into())));
        let normalised = B::float_mul(centred, factor.clone());
        let output = B::float_add(B::float_mul(normalised.clone(), row::<B>(weight.clone())), row::<B>(bias));
        Computed { outputs: vec![output], saved: vec![normalised, factor, weight] }
    }

    fn backward<B: Backend>(&self, saved: Floats<B>, gradient: FloatTensor<B>, _: &[bool]) -> InputGradients<B> {
        let [normalised, factor, weight] = take(&mut saved.into_iter());
        let d_weight = over_rows::<B>(B::float_mul(gradient.clone(), normalised.clone()));
        let d_bias = over_rows::<B>(gradient.clone());
        let scaled = B::float_mul(gradient, row::<B>(weight));
        let mean = B::float_mean_dim(scaled.clone(), 2);
        let along = B::float_mean_dim(B::float_mul(scaled.clone(), normalised.clone()), 2);
        let dx = B::float_sub(B::float_sub(scaled, mean), B::float_mul(normalised, along));
        [B::float_mul(dx, factor), d_weight, d_bias].map(Some).into()
    }

    fn forward_on_cpu(&self, inputs: Floats<Flex>, _: bool) -> Computed<FlexTensor> {
        let [x, weight, bias] = take(&mut inputs.into_iter());
        let [output, normalised, factor] = by_dtype!(x, loops::forward([&x, &weight, &bias], self.eps));
        Computed { outputs: vec![output], saved: vec![normalised, factor, weight] }
    }

    fn backward_on_cpu(&self, saved: Floats<Flex>, gradient: FlexTensor, _: &[bool]) -> InputGradients<Flex> {
        let [normalised, factor, weight] = take(&mut saved.into_iter());
        by_dtype!(gradient, loops::backward([&normalised, &factor, &weight], &gradient)).map(Some).into()
    }
}

/// [d] -> [1, 1, d]
fn row<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let d = x.shape()[0];
    B::float_reshape(x, Shape::new([1, 1, d]))
}

/// The sum over all but the last dimension: [batch, length, d] -> [d]
fn over_rows<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let shape = x.shape();
    let (rows, d) = (shape[0] * shape[1], shape[2]);
    let sum = B::float_sum_dim(B::float_reshape(x, Shape::new([rows, d])), 0);
    B::float_reshape(sum, Shape::new([d]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::check::{assert_the_loops_are_composed, random};

    #[test]
    fn the_loops_are_the_composed_operations() {
        for (batch, length, d) in [(2, 3, 5), (4, 1, 16), (60, 20, 33)] {
            let inputs = [random("x", &[batch, length, d]), random("w", &[d]), random("b", &[d])];
            assert_the_loops_are_composed(&Normalise { eps: 1e-5 }, &inputs, random("g", &[batch, length, d]));
        }
    }
}
