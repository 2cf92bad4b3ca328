//! BatchNorm by the batch's own statistics, with the ReLU behind it, as one step of the gradient graph.
//!
//! burn composes it of a dozen operations forwards and as many backwards, each a walk through all images, some of them copies with the
//! channels in front. On the CPU here are two walks each: one for a channel's sums, one to apply them. Other backends compute as burn does.

// burn marks its LibTorch backend deprecated; `device.rs` says why we use it.
#![cfg_attr(feature = "torch", allow(deprecated))]

mod loops;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use self::loops::{backward, forward};
use crate::cpu::by_dtype;

/// What BatchNorm makes of a batch.
pub(crate) struct Normalised {
    /// [batch, channels, height, width]
    pub(crate) output: Tensor<4>,
    /// Of each channel, without a history.
    pub(crate) mean: Tensor<1>,
    /// Of each channel, divided by the number of values, without a history.
    pub(crate) variance: Tensor<1>,
}

/// How a batch is normalised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm {
    /// Added to the variance.
    pub(crate) eps: f64,
    /// Whether a ReLU follows.
    pub(crate) rectified: bool,
}

/// (x - mean) / sqrt(variance + eps) * weight + bias for each channel of x [batch, channels, height, width].
pub(crate) fn normalise(x: Tensor<4>, weight: Tensor<1>, bias: Tensor<1>, norm: Norm) -> Normalised {
    let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
    let (output, mean, variance) = <Dispatch as BatchNorm>::normalise(x, weight, bias, norm);
    let (mean, variance) = (Tensor::from_dispatch(mean), Tensor::from_dispatch(variance));
    Normalised { output: Tensor::from_dispatch(output), mean, variance }
}

#[backend_extension(Flex, LibTorch: cfg(feature = "torch"), Autodiff)]
trait BatchNorm: Backend {
    /// The output, the mean and the variance.
    fn normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        norm: Norm,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// What the backward pass needs.
#[derive(Debug, Clone)]
struct Saved<T> {
    x: T,
    weight: T,
    bias: T,
    mean: T,
    variance: T,
    norm: Norm,
}

/// What a backend provides.
trait Kernels: BatchNorm {
    /// The gradients of x, weight and bias from that of the output.
    fn backward(saved: Saved<FloatTensor<Self>>, gradient: FloatTensor<Self>) -> [FloatTensor<Self>; 3];
}

impl BatchNorm for Flex {
    fn normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        norm: Norm,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        by_dtype!(x, forward(&x, &weight, &bias, norm))
    }
}

impl Kernels for Flex {
    fn backward(saved: Saved<FloatTensor<Self>>, gradient: FloatTensor<Self>) -> [FloatTensor<Self>; 3] {
        by_dtype!(gradient, backward(&saved, &gradient))
    }
}

#[cfg(feature = "torch")]
mod torch {
    use burn::backend::LibTorch;
    use burn::backend::ops::{ActivationOps, ModuleOps};

    use super::*;

    impl BatchNorm for LibTorch {
        fn normalise(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            norm: Norm,
        ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
            let found = Self::batch_norm_train(x, weight, bias, norm.eps);
            let output = if norm.rectified { Self::relu(found.output) } else { found.output };
            (output, found.mean, found.variance)
        }
    }

    impl Kernels for LibTorch {
        fn backward(saved: Saved<FloatTensor<Self>>, gradient: FloatTensor<Self>) -> [FloatTensor<Self>; 3] {
            let Saved { x, weight, bias, mean, variance, norm: Norm { eps, rectified } } = saved;
            let gradient = match rectified {
                true => {
                    let [x, weight, mean, variance] = [&x, &weight, &mean, &variance].map(Clone::clone);
                    Self::relu_backward(Self::batch_norm(x, weight, bias, mean, variance, eps), gradient)
                }
                false => gradient,
            };
            let found = Self::batch_norm_train_backward(x, weight, mean, variance, eps, gradient);
            [found.x_grad, found.gamma_grad, found.beta_grad]
        }
    }
}

impl<B: Kernels, C: CheckpointStrategy> BatchNorm for Autodiff<B, C> {
    fn normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        norm: Norm,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let parents = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        let (output, mean, variance) = B::normalise(x.clone(), weight.clone(), bias.clone(), norm);
        let output = match Step.prepare::<C>(parents).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let saved = Saved { x, weight, bias, mean: mean.clone(), variance: variance.clone(), norm };
                prepared.finish(saved, output)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(output),
        };
        (output, FloatTensor::<Self>::new(mean), FloatTensor::<Self>::new(variance))
    }
}

#[derive(Debug)]
struct Step;

impl<B: Kernels> Backward<B, 3> for Step {
    type State = Saved<FloatTensor<B>>;

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let computed = B::backward(ops.state, gradient);
        for (parent, gradient) in ops.parents.into_iter().zip(computed) {
            if let Some(parent) = parent {
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{TensorData, activation, module};
    use pudica_data::Stream;

    use super::*;
    use crate::Device;

    fn random<const D: usize>(purpose: &str, shape: [usize; D], device: &Device) -> Tensor<D> {
        let mut stream = Stream::new(0, purpose, 0);
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| 0.5 + stream.normal()).collect();
        Tensor::from_data(TensorData::new(values, shape), device.constant())
    }

    /// The output, the mean, the variance and the gradients of x, weight and bias of a sum of the outputs with random factors.
    fn results(
        shape: [usize; 4],
        device: &Device,
        norm: impl Fn(Tensor<4>, Tensor<1>, Tensor<1>) -> Normalised,
    ) -> Vec<TensorData> {
        let x = random("x", shape, device).autodiff().require_grad();
        let weight = random("weight", [shape[1]], device).autodiff().require_grad();
        let bias = random("bias", [shape[1]], device).autodiff().require_grad();
        let Normalised { output, mean, variance } = norm(x.clone(), weight.clone(), bias.clone());
        let mut gradients = (output.clone() * random("factors", shape, device).autodiff()).sum().backward();
        vec![
            output.into_data(),
            mean.into_data(),
            variance.into_data(),
            x.grad_remove(&mut gradients).unwrap().into_data(),
            weight.grad_remove(&mut gradients).unwrap().into_data(),
            bias.grad_remove(&mut gradients).unwrap().into_data(),
        ]
    }

    #[test]
    fn outputs_statistics_and_gradients_are_those_of_burn() {
        let device = Device::cpu().double();
        let shapes = [[2, 3, 5, 7], [1, 4, 3, 3], [5, 2, 1, 1], [40, 17, 12, 12]];
        for (shape, rectified) in shapes.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
            let norm = Norm { eps: 1e-5, rectified };
            let found = results(shape, &device, |x, weight, bias| normalise(x, weight, bias, norm));
            let expected = results(shape, &device, |x, weight, bias| {
                let found = module::batch_norm_train(x, weight, bias, norm.eps);
                let output = if rectified { activation::relu(found.output) } else { found.output };
                Normalised { output, mean: found.mean, variance: found.variance }
            });
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.shape(), expected.shape());
                let (found, expected) = (found.as_slice::<f64>().unwrap(), expected.as_slice::<f64>().unwrap());
                let largest = expected.iter().fold(1.0f64, |largest, x| largest.max(x.abs()));
                for (found, expected) in found.iter().zip(expected) {
                    assert!((found - expected).abs() < 1e-12 * largest, "{shape:?}: {found}, burn has {expected}");
                }
            }
        }
    }

    #[test]
    fn the_same_bits_on_any_number_of_threads() {
        let norm = Norm { eps: 1e-5, rectified: true };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                results([40, 17, 12, 12], &Device::cpu(), |x, weight, bias| normalise(x, weight, bias, norm))
            })
        };
        let alone = on(1);
        assert!(alone == on(2) && alone == on(5));
    }
}
