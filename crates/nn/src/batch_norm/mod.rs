//! BatchNorm by the batch's own statistics, with the ReLU behind it, as one node of the gradient graph.
//!
//! burn composes it of a dozen operations forwards and as many backwards, each a walk through all images, some of them copies with the
//! channels in front. On the CPU here are two walks each: one for a channel's sums, one to apply them. Other backends compute as burn does.

mod loops;

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex};
use burn::tensor::Tensor;

use crate::cpu::by_dtype;
use crate::operation::{Computed, Floats, InputGradients, Operation, apply, take};

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
    let [output, mean, variance] = apply(norm, vec![x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()]);
    let (mean, variance) = (Tensor::from_dispatch(mean), Tensor::from_dispatch(variance));
    Normalised { output: Tensor::from_dispatch(output), mean, variance }
}

/// Inputs: x, weight, bias. Outputs: the normalised x, mean and variance. Saved: x, weight, bias, mean, variance.
impl Operation for Norm {
    fn differentiable(&self) -> usize {
        3
    }

    fn forward<B: Backend>(&self, inputs: Floats<B>, _: bool) -> Computed<FloatTensor<B>> {
        let [x, weight, bias] = take(&mut inputs.into_iter());
        let found = B::batch_norm_train(x.clone(), weight.clone(), bias.clone(), self.eps);
        let output = if self.rectified { B::relu(found.output) } else { found.output };
        computed(output, [x, weight, bias], [found.mean, found.variance])
    }

    fn backward<B: Backend>(&self, saved: Floats<B>, gradient: FloatTensor<B>, _: &[bool]) -> InputGradients<B> {
        let [x, weight, bias, mean, variance] = take(&mut saved.into_iter());
        let gradient = match self.rectified {
            true => {
                let [x, weight, mean, variance] = [&x, &weight, &mean, &variance].map(Clone::clone);
                B::relu_backward(B::batch_norm(x, weight, bias, mean, variance, self.eps), gradient)
            }
            false => gradient,
        };
        let found = B::batch_norm_train_backward(x, weight, mean, variance, self.eps, gradient);
        [found.x_grad, found.gamma_grad, found.beta_grad].map(Some).into()
    }

    fn forward_on_cpu(&self, inputs: Floats<Flex>, _: bool) -> Computed<FlexTensor> {
        let [x, weight, bias] = take(&mut inputs.into_iter());
        let [output, mean, variance] = by_dtype!(x, loops::forward([&x, &weight, &bias], *self));
        computed(output, [x, weight, bias], [mean, variance])
    }

    fn backward_on_cpu(&self, saved: Floats<Flex>, gradient: FlexTensor, _: &[bool]) -> InputGradients<Flex> {
        let [x, weight, bias, mean, variance] = take(&mut saved.into_iter());
        let saved = [&x, &weight, &bias, &mean, &variance];
        by_dtype!(gradient, loops::backward(saved, &gradient, *self)).map(Some).into()
    }
}

fn computed<T: Clone>(output: T, [x, weight, bias]: [T; 3], [mean, variance]: [T; 2]) -> Computed<T> {
    let saved = vec![x, weight, bias, mean.clone(), variance.clone()];
    Computed { outputs: vec![output, mean, variance], saved }
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
