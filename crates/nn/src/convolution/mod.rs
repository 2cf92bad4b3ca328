//! Convolution of images as one step of the gradient graph.
//!
//! burn's convolution for the CPU multiplies in small pieces, and has no gradients of its own: it composes them of transposed convolutions
//! and others with the batch in place of the channels, which are several times slower than the multiplications in them. Here are
//! [dense] and [depthwise] convolutions in both directions for the CPU; other backends, and other convolutions, compute as burn does.

// burn marks its LibTorch backend deprecated; `device.rs` says why we use it.
#![cfg_attr(feature = "torch", allow(deprecated))]

mod columns;
mod dense;
mod depthwise;
mod product;
mod sizes;
#[cfg(test)]
mod tests;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;
use burn::tensor::ops::ConvOptions;

use self::sizes::Way;

/// How a convolution moves over the image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conv {
    pub(crate) stride: usize,
    /// Rows and columns of zeros put around the image.
    pub(crate) padding: usize,
    /// Parts the channels are split into, each convolved by itself.
    pub(crate) groups: usize,
}

impl Conv {
    fn options(self) -> ConvOptions<2> {
        ConvOptions::new([self.stride; 2], [self.padding; 2], [1; 2], self.groups)
    }
}

/// x [batch, inputs, height, width] by a weight [outputs, inputs / groups, k, k] and a bias \[outputs\] -> [batch, outputs, height', width'].
pub(crate) fn convolve(x: Tensor<4>, weight: Tensor<4>, bias: Option<Tensor<1>>, conv: Conv) -> Tensor<4> {
    let (x, weight, biased) = (x.into_dispatch(), weight.into_dispatch(), bias.is_some());
    // The macro knows no optional tensors: any tensor stands for one that is not there.
    let bias = bias.map_or_else(|| weight.clone(), Tensor::into_dispatch);
    Tensor::from_dispatch(<Dispatch as Convolve>::convolve(x, weight, bias, biased, conv))
}

#[backend_extension(Flex, LibTorch: cfg(feature = "torch"), Autodiff)]
trait Convolve: Backend {
    fn convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        biased: bool,
        conv: Conv,
    ) -> FloatTensor<Self>;
}

/// What a backend has of its own; `None`: burn's operations do.
trait Kernels: Backend {
    fn forward(_: &Saved<FloatTensor<Self>>) -> Option<FloatTensor<Self>> {
        None
    }

    fn input_gradient(_: &Saved<FloatTensor<Self>>, _: &FloatTensor<Self>) -> Option<FloatTensor<Self>> {
        None
    }

    fn weight_gradient(_: &Saved<FloatTensor<Self>>, _: &FloatTensor<Self>) -> Option<FloatTensor<Self>> {
        None
    }
}

#[cfg(feature = "torch")]
impl Kernels for burn::backend::LibTorch {}

impl Kernels for Flex {
    fn forward(saved: &Saved<FloatTensor<Self>>) -> Option<FloatTensor<Self>> {
        let Saved { x, weight, bias, .. } = saved;
        Some(match Way::of(saved)? {
            Way::Dense(geometry) => dense::forward(x, weight, bias.as_ref(), geometry),
            Way::Depthwise(geometry) => depthwise::forward(x, weight, bias.as_ref(), geometry),
        })
    }

    fn input_gradient(saved: &Saved<FloatTensor<Self>>, gradient: &FloatTensor<Self>) -> Option<FloatTensor<Self>> {
        Some(match Way::of(saved)? {
            Way::Dense(geometry) => dense::input_gradient(&saved.weight, gradient, geometry),
            Way::Depthwise(geometry) => depthwise::input_gradient(&saved.weight, gradient, geometry),
        })
    }

    fn weight_gradient(saved: &Saved<FloatTensor<Self>>, gradient: &FloatTensor<Self>) -> Option<FloatTensor<Self>> {
        Some(match Way::of(saved)? {
            Way::Dense(geometry) => dense::weight_gradient(&saved.x, gradient, geometry),
            Way::Depthwise(geometry) => depthwise::weight_gradient(&saved.x, gradient, geometry),
        })
    }
}

/// What a convolution is computed from, in both directions.
#[derive(Debug, Clone)]
struct Saved<T> {
    x: T,
    weight: T,
    bias: Option<T>,
    conv: Conv,
}

fn forward<B: Kernels>(saved: Saved<FloatTensor<B>>) -> FloatTensor<B> {
    B::forward(&saved).unwrap_or_else(|| B::conv2d(saved.x, saved.weight, saved.bias, saved.conv.options()))
}

impl Convolve for Flex {
    fn convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        biased: bool,
        conv: Conv,
    ) -> FloatTensor<Self> {
        forward::<Self>(Saved { x, weight, bias: biased.then_some(bias), conv })
    }
}

#[cfg(feature = "torch")]
impl Convolve for burn::backend::LibTorch {
    fn convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        biased: bool,
        conv: Conv,
    ) -> FloatTensor<Self> {
        forward::<Self>(Saved { x, weight, bias: biased.then_some(bias), conv })
    }
}

impl<B: Kernels, C: CheckpointStrategy> Convolve for Autodiff<B, C> {
    fn convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        biased: bool,
        conv: Conv,
    ) -> FloatTensor<Self> {
        let parents = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        let saved = Saved { x, weight, bias: biased.then_some(bias), conv };
        match biased {
            true => record::<B, C, 3>(parents, saved),
            false => {
                let [x, weight, _] = parents;
                record::<B, C, 2>([x, weight], saved)
            }
        }
    }
}

/// The convolution as a step of the graph that comes from these parents: input, weight and, where it has one, bias.
fn record<B: Kernels, C: CheckpointStrategy, const N: usize>(
    parents: [NodeGuard; N],
    saved: Saved<FloatTensor<B>>,
) -> FloatTensor<Autodiff<B, C>> {
    match Step.prepare::<C>(parents).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(saved.clone(), forward::<B>(saved)),
        OpsKind::UnTracked(prepared) => prepared.finish(forward::<B>(saved)),
    }
}

#[derive(Debug)]
struct Step;

impl<B: Kernels, const N: usize> Backward<B, N> for Step {
    type State = Saved<FloatTensor<B>>;

    fn backward(self, ops: Ops<Self::State, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let saved = ops.state;
        let (x, weight, options) = (|| saved.x.clone(), || saved.weight.clone(), || saved.conv.options());
        for (at, parent) in ops.parents.iter().enumerate() {
            // What nobody asks for is not computed: the gradient of the images themselves above all.
            let Some(parent) = parent else { continue };
            let computed = match (at, &saved.bias) {
                (0, _) => B::input_gradient(&saved, &gradient)
                    .unwrap_or_else(|| B::conv2d_x_backward(x(), weight(), gradient.clone(), options())),
                (1, _) => B::weight_gradient(&saved, &gradient)
                    .unwrap_or_else(|| B::conv2d_weight_backward(x(), weight(), gradient.clone(), options())),
                (_, Some(bias)) => B::conv2d_bias_backward(x(), bias.clone(), gradient.clone()),
                (_, None) => continue,
            };
            gradients.register::<B>(parent.id, computed);
        }
    }
}
