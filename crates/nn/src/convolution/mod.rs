//! Convolution of images as one node of the gradient graph.
//!
//! burn's convolution for the CPU multiplies in small pieces, and has no gradients of its own: it composes them of transposed convolutions
//! and others with the batch in place of the channels, which are several times slower than the multiplications in them. Here are
//! [dense] and [depthwise] convolutions in both directions for the CPU; other backends, and other convolutions, compute as burn does.

mod columns;
mod dense;
mod depthwise;
mod sizes;
#[cfg(test)]
mod tests;

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex};
use burn::tensor::Tensor;
use burn::tensor::ops::ConvOptions;

use self::sizes::Way;
use crate::cpu::by_dtype;
use crate::operation::{Computed, Floats, InputGradients, Operation, apply, take};

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
    let operation = Convolve { conv, biased: bias.is_some() };
    let inputs = [x.into_dispatch(), weight.into_dispatch()].into_iter().chain(bias.map(Tensor::into_dispatch));
    let [y] = apply(operation, inputs.collect());
    Tensor::from_dispatch(y)
}

#[derive(Debug, Clone)]
struct Convolve {
    conv: Conv,
    biased: bool,
}

/// Inputs and saved: x, weight and, where there is one, bias.
impl Operation for Convolve {
    fn differentiable(&self) -> usize {
        2 + usize::from(self.biased)
    }

    fn forward<B: Backend>(&self, inputs: Floats<B>, _: bool) -> Computed<FloatTensor<B>> {
        let saved = inputs.clone();
        let mut inputs = inputs.into_iter();
        let [x, weight] = take(&mut inputs);
        Computed { outputs: vec![B::conv2d(x, weight, inputs.next(), self.conv.options())], saved }
    }

    fn backward<B: Backend>(&self, saved: Floats<B>, gradient: FloatTensor<B>, wanted: &[bool]) -> InputGradients<B> {
        self.gradients::<B>(&saved, &gradient, wanted, |_| None)
    }

    fn forward_on_cpu(&self, inputs: Floats<Flex>, save: bool) -> Computed<FlexTensor> {
        let (x, weight, bias) = (&inputs[0], &inputs[1], inputs.get(2));
        let output = match Way::of(x, weight, self.conv) {
            Some(Way::Dense(geometry)) => by_dtype!(x, dense::outputs(x, weight, bias, geometry)),
            Some(Way::Depthwise(geometry)) => by_dtype!(x, depthwise::outputs(x, weight, bias, geometry)),
            None => return self.forward::<Flex>(inputs, save),
        };
        Computed { outputs: vec![output], saved: inputs }
    }

    fn backward_on_cpu(&self, saved: Floats<Flex>, gradient: FlexTensor, wanted: &[bool]) -> InputGradients<Flex> {
        let (x, weight) = (&saved[0], &saved[1]);
        self.gradients::<Flex>(&saved, &gradient, wanted, |input| {
            Some(match (input, Way::of(x, weight, self.conv)?) {
                (0, Way::Dense(geometry)) => by_dtype!(x, dense::inputs(weight, &gradient, geometry)),
                (0, Way::Depthwise(geometry)) => by_dtype!(x, depthwise::inputs(weight, &gradient, geometry)),
                (1, Way::Dense(geometry)) => by_dtype!(x, dense::weights(x, &gradient, geometry)),
                (1, Way::Depthwise(geometry)) => by_dtype!(x, depthwise::weights(x, &gradient, geometry)),
                _ => return None,
            })
        })
    }
}

impl Convolve {
    /// The gradients of the inputs that are wanted: by `own` loops where they have one, else as burn does. What nobody asks for is not
    /// computed: the gradient of the images themselves above all.
    fn gradients<B: Backend>(
        &self,
        saved: &[FloatTensor<B>],
        gradient: &FloatTensor<B>,
        wanted: &[bool],
        own: impl Fn(usize) -> Option<FloatTensor<B>>,
    ) -> InputGradients<B> {
        let (x, weight, options) = (|| saved[0].clone(), || saved[1].clone(), || self.conv.options());
        let of = |input: usize| match input {
            0 => B::conv2d_x_backward(x(), weight(), gradient.clone(), options()),
            1 => B::conv2d_weight_backward(x(), weight(), gradient.clone(), options()),
            _ => B::conv2d_bias_backward(x(), saved[input].clone(), gradient.clone()),
        };
        let wanted = wanted.iter().enumerate();
        wanted.map(|(input, wanted)| wanted.then(|| own(input).unwrap_or_else(|| of(input)))).collect()
    }
}
