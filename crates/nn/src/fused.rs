//! Attention and LayerNorm as single steps of the gradient graph, with hand-written backward passes.
//!
//! Left to autodiff, a LayerNorm is ten operations and its gradient twenty, each a walk through memory, and attention multiplies
//! thousands of tiny matrices one call at a time; in small networks that is most of the time. Here each is one node. On the CPU
//! backend it runs the loops of [`kernels`](crate::kernels); on any other, the same formulas composed of that backend's operations.

// burn marks its LibTorch backend deprecated; `device.rs` says why we use it.
#![cfg_attr(feature = "torch", allow(deprecated))]

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

/// How attention's tensors are to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    /// Attention heads, side by side in the last dimension.
    pub(crate) count: usize,
    /// Whether a position may look at itself and before only. The last query is the last key's position.
    pub(crate) causal: bool,
}

/// softmax(q k^T) v for each string and head: q [batch, l, d], k and v [batch, m, d] -> [batch, l, d]. Scores are not scaled.
pub(crate) fn attend(q: Tensor<3>, k: Tensor<3>, v: Tensor<3>, heads: Heads) -> Tensor<3> {
    let [q, k, v] = [q, k, v].map(Tensor::into_dispatch);
    Tensor::from_dispatch(<Dispatch as Fused>::attend(q, k, v, heads.count, heads.causal))
}

/// (x - mean) / sqrt(var + eps) * weight + bias over the last dimension of x [batch, length, d].
pub(crate) fn layer_norm(x: Tensor<3>, weight: Tensor<1>, bias: Tensor<1>, eps: f64) -> Tensor<3> {
    let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(<Dispatch as Fused>::normalise(x, weight, bias, eps))
}

#[backend_extension(Flex, LibTorch: cfg(feature = "torch"), Autodiff)]
trait Fused: Backend {
    fn attend(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        heads: usize,
        causal: bool,
    ) -> FloatTensor<Self>;

    fn normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f64,
    ) -> FloatTensor<Self>;
}

/// What a backend provides: each step forward, with what its backward pass needs, and backward.
pub(crate) trait Kernels: Backend {
    /// The mixed values [batch, l, d] and the attention weights [batch, heads, l, m].
    fn attend_forward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        heads: Heads,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of q, k and v from that of the output.
    fn attend_backward(
        saved: [FloatTensor<Self>; 4],
        gradient: FloatTensor<Self>,
        heads: Heads,
    ) -> [FloatTensor<Self>; 3];

    /// The output, the normalised input [batch, length, d] and 1/sqrt(var + eps) [batch, length, 1].
    fn normalise_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f64,
    ) -> [FloatTensor<Self>; 3];

    /// The gradients of x, weight and bias from that of the output.
    fn normalise_backward(
        normalised: FloatTensor<Self>,
        factor: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> [FloatTensor<Self>; 3];
}

impl Fused for Flex {
    fn attend(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        heads: usize,
        causal: bool,
    ) -> FloatTensor<Self> {
        Self::attend_forward(q, k, v, Heads { count: heads, causal }).0
    }

    fn normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f64,
    ) -> FloatTensor<Self> {
        let [output, ..] = Self::normalise_forward(x, weight, bias, eps);
        output
    }
}

#[cfg(feature = "torch")]
mod torch {
    use burn::backend::LibTorch;

    use super::*;
    use crate::composed;

    impl Fused for LibTorch {
        fn attend(
            q: FloatTensor<Self>,
            k: FloatTensor<Self>,
            v: FloatTensor<Self>,
            heads: usize,
            causal: bool,
        ) -> FloatTensor<Self> {
            composed::attend_forward::<Self>(q, k, v, Heads { count: heads, causal }).0
        }

        fn normalise(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            eps: f64,
        ) -> FloatTensor<Self> {
            let [output, ..] = composed::normalise_forward::<Self>(x, weight, bias, eps);
            output
        }
    }

    impl Kernels for LibTorch {
        fn attend_forward(
            q: FloatTensor<Self>,
            k: FloatTensor<Self>,
            v: FloatTensor<Self>,
            heads: Heads,
        ) -> (FloatTensor<Self>, FloatTensor<Self>) {
            composed::attend_forward::<Self>(q, k, v, heads)
        }

        fn attend_backward(
            saved: [FloatTensor<Self>; 4],
            gradient: FloatTensor<Self>,
            heads: Heads,
        ) -> [FloatTensor<Self>; 3] {
            composed::attend_backward::<Self>(saved, gradient, heads)
        }

        fn normalise_forward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            eps: f64,
        ) -> [FloatTensor<Self>; 3] {
            composed::normalise_forward::<Self>(x, weight, bias, eps)
        }

        fn normalise_backward(
            normalised: FloatTensor<Self>,
            factor: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            gradient: FloatTensor<Self>,
        ) -> [FloatTensor<Self>; 3] {
            composed::normalise_backward::<Self>(normalised, factor, weight, gradient)
        }
    }
}

impl<B: Kernels, C: CheckpointStrategy> Fused for Autodiff<B, C> {
    fn attend(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        heads: usize,
        causal: bool,
    ) -> FloatTensor<Self> {
        let heads = Heads { count: heads, causal };
        let parents = [q.node(), k.node(), v.node()];
        let [q, k, v] = [q, k, v].map(|tensor| tensor.into_primitive());
        match Attend.prepare::<C>(parents).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let (output, mixture) = B::attend_forward(q.clone(), k.clone(), v.clone(), heads);
                prepared.finish(([q, k, v, mixture], heads), output)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(B::attend_forward(q, k, v, heads).0),
        }
    }

    fn normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f64,
    ) -> FloatTensor<Self> {
        let parents = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        match Normalise.prepare::<C>(parents).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let [output, normalised, factor] = B::normalise_forward(x, weight.clone(), bias, eps);
                prepared.finish([normalised, factor, weight], output)
            }
            OpsKind::UnTracked(prepared) => {
                let [output, ..] = B::normalise_forward(x, weight, bias, eps);
                prepared.finish(output)
            }
        }
    }
}

#[derive(Debug)]
struct Attend;

impl<B: Kernels> Backward<B, 3> for Attend {
    type State = ([FloatTensor<B>; 4], Heads);

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let (saved, heads) = ops.state;
        let computed = B::attend_backward(saved, gradient, heads);
        for (parent, gradient) in ops.parents.into_iter().zip(computed) {
            if let Some(parent) = parent {
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}

#[derive(Debug)]
struct Normalise;

impl<B: Kernels> Backward<B, 3> for Normalise {
    type State = [FloatTensor<B>; 3];

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let [normalised, factor, weight] = ops.state;
        let computed = B::normalise_backward(normalised, factor, weight, gradient);
        for (parent, gradient) in ops.parents.into_iter().zip(computed) {
            if let Some(parent) = parent {
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, TensorData};
    use pudica_data::Stream;

    use super::*;
    use crate::composed;

    fn random(purpose: &str, shape: &[usize]) -> FloatTensor<Flex> {
        let mut stream = Stream::new(0, purpose, 0);
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| stream.normal()).collect();
        FloatTensor::<Flex>::from_data(TensorData::new(values, shape.to_vec()))
    }

    #[track_caller]
    fn assert_equal(found: FloatTensor<Flex>, expected: FloatTensor<Flex>) {
        let (found, expected) = (found.into_data(), expected.into_data());
        assert_eq!((found.shape(), found.dtype()), (expected.shape(), DType::F64));
        for (found, expected) in found.as_slice::<f64>().unwrap().iter().zip(expected.as_slice::<f64>().unwrap()) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    /// Sizes that are no multiple of eight, fewer queries than keys, with and without a mask, small and large enough to be shared
    /// among cores.
    #[test]
    fn the_loops_are_the_composed_operations() {
        for (batch, l, m, d, count, causal) in
            [(3, 5, 5, 6, 2, false), (2, 1, 7, 12, 3, false), (4, 9, 9, 10, 1, true), (64, 17, 17, 32, 2, true)]
        {
            let heads = Heads { count, causal };
            let (q, k, v) = (random("q", &[batch, l, d]), random("k", &[batch, m, d]), random("v", &[batch, m, d]));
            let gradient = random("g", &[batch, l, d]);
            let (output, mixture) = Flex::attend_forward(q.clone(), k.clone(), v.clone(), heads);
            let (expected, expected_mixture) = composed::attend_forward::<Flex>(q.clone(), k.clone(), v.clone(), heads);
            assert_equal(output, expected);
            assert_equal(mixture.clone(), expected_mixture);
            let saved = [q, k, v, mixture];
            let found = Flex::attend_backward(saved.clone(), gradient.clone(), heads);
            let expected = composed::attend_backward::<Flex>(saved, gradient, heads);
            found.into_iter().zip(expected).for_each(|(found, expected)| assert_equal(found, expected));
        }
        for (batch, length, d) in [(2, 3, 5), (4, 1, 16), (60, 20, 33)] {
            let (x, gradient) = (random("x", &[batch, length, d]), random("g", &[batch, length, d]));
            let (weight, bias) = (random("w", &[d]), random("b", &[d]));
            let found = Flex::normalise_forward(x.clone(), weight.clone(), bias.clone(), 1e-5);
            let expected = composed::normalise_forward::<Flex>(x, weight.clone(), bias, 1e-5);
            let [_, normalised, factor] = found.clone();
            found.into_iter().zip(expected).for_each(|(found, expected)| assert_equal(found, expected));
            let found = Flex::normalise_backward(normalised.clone(), factor.clone(), weight.clone(), gradient.clone());
            let expected = composed::normalise_backward::<Flex>(normalised, factor, weight, gradient);
            found.into_iter().zip(expected).for_each(|(found, expected)| assert_equal(found, expected));
        }
    }
}
