//! Convolutions with their parameters.

use burn::tensor::Tensor;

use crate::Parameters;
use crate::convolution::{Conv, convolve};
use crate::params::{Init, Param, Scope};

/// `nn.Conv2d` with PyTorch's default initial values.
pub(crate) struct Conv2d {
    /// [outputs, inputs / groups, k, k]
    weight: Param<4>,
    /// \[outputs\]
    bias: Option<Param<1>>,
    conv: Conv,
}

impl Conv2d {
    /// With a weight of this shape [outputs, inputs / groups, k, k] and a bias.
    pub(crate) fn new(mut params: Scope, shape: [usize; 4], conv: Conv) -> Self {
        let weight = params.add("weight", shape, init(shape));
        Self { weight, bias: Some(params.add("bias", [shape[0]], init(shape))), conv }
    }

    /// `nn.Conv2d(bias=False)`.
    pub(crate) fn without_bias(mut params: Scope, shape: [usize; 4], conv: Conv) -> Self {
        Self { weight: params.add("weight", shape, init(shape)), bias: None, conv }
    }

    /// [batch, inputs, height, width] -> [batch, outputs, height', width']
    pub(crate) fn forward(&self, p: &Parameters, x: Tensor<4>) -> Tensor<4> {
        convolve(x, p.get(self.weight), self.bias.map(|bias| p.get(bias)), self.conv)
    }

    /// A convolution without bias, of which each output channel is then multiplied by a factor and shifted.
    pub(crate) fn forward_scaled(
        &self,
        p: &Parameters,
        x: Tensor<4>,
        (factor, shift): (Tensor<1>, Tensor<1>),
    ) -> Tensor<4> {
        let outputs = factor.dims()[0];
        convolve(x, p.get(self.weight) * factor.reshape([outputs, 1, 1, 1]), Some(shift), self.conv)
    }
}

/// The same images, on a GPU with the channels of a pixel beside each other in memory, as its convolutions are fastest. What is computed from
/// them lies so, too.
pub(crate) fn channels_last(x: Tensor<4>) -> Tensor<4> {
    #[cfg(feature = "torch")]
    if let Some(x) = crate::native::channels_last(&x) {
        return x;
    }
    x
}

fn init(shape: [usize; 4]) -> Init {
    Init::linear(shape[1..].iter().product())
}
