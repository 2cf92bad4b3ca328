//! The layers image networks are made of: each a function of its name, by which it finds its parameters.

use burn::tensor::{Tensor, activation, module};
use serde::{Deserialize, Serialize};

use crate::batch_norm::{Norm, normalise};
use crate::classifier::{Parameters, Pass, Statistics};
pub(super) use crate::convolution::Conv;
use crate::convolution::convolve;
#[cfg(feature = "torch")]
use crate::native;
use crate::{LAYER_NORM_EPS, NnError};

/// BatchNorm's epsilon, PyTorch's default.
const BATCH_NORM_EPS: f64 = 1e-5;

/// What stands between linear layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// x, or x/100 where x is negative.
    #[default]
    LeakyRelu,
    /// 1 / (1 + exp(-x)).
    Sigmoid,
}

impl Activation {
    /// Of each value.
    pub(super) fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::LeakyRelu => activation::leaky_relu(x, 0.01),
            Self::Sigmoid => activation::sigmoid(x),
        }
    }
}

/// x Phi(x) of each value, Phi the normal distribution function.
pub(crate) fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    // The clone keeps a reference, so LibTorch does not reuse x's buffer in place (and copy it first for the gradient).
    activation::gelu(x.clone())
}

/// x W^T + b: [.., inputs] -> [.., outputs]
pub(crate) fn linear<const D: usize>(parameters: &Parameters, name: &str, x: Tensor<D>) -> Result<Tensor<D>, NnError> {
    let bias = parameters.get::<1>(&format!("{name}.bias"))?;
    Ok(multiply(x, parameters.get::<2>(&format!("{name}.weight"))?, Some(bias)))
}

/// x W^T + b of a weight [outputs, inputs], all rows at once: on more dimensions burn would multiply once for each image.
pub(crate) fn multiply<const D: usize>(x: Tensor<D>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<D> {
    #[cfg(feature = "torch")]
    if let Some(y) = native::linear(&x, &weight, bias.as_ref()) {
        return y;
    }
    let mut shape = x.dims();
    let rows: Tensor<2> = x.reshape([-1, shape[D - 1] as i64]);
    let y = module::linear(rows, weight.transpose(), bias);
    shape[D - 1] = y.dims()[1];
    y.reshape(shape)
}

impl Conv {
    /// Every pixel, no zeros around.
    pub(super) const PLAIN: Self = Self { stride: 1, padding: 0, groups: 1 };

    /// Every pixel of the image with this many zeros around.
    pub(super) fn padded(padding: usize) -> Self {
        Self { padding, ..Self::PLAIN }
    }

    /// [batch, inputs, height, width] -> [batch, outputs, height', width'] by `name.weight` alone.
    pub(super) fn apply(self, parameters: &Parameters, name: &str, x: Tensor<4>) -> Result<Tensor<4>, NnError> {
        Ok(convolve(x, parameters.get(&format!("{name}.weight"))?, None, self))
    }

    /// The same with `name.bias` added.
    pub(super) fn apply_with_bias(
        self,
        parameters: &Parameters,
        name: &str,
        x: Tensor<4>,
    ) -> Result<Tensor<4>, NnError> {
        let (weight, bias) = (parameters.get(&format!("{name}.weight"))?, parameters.get(&format!("{name}.bias"))?);
        Ok(convolve(x, weight, Some(bias), self))
    }
}

/// LayerNorm over the last dimension of x [batch, length, d].
pub(crate) fn layer_norm(parameters: &Parameters, name: &str, x: Tensor<3>) -> Result<Tensor<3>, NnError> {
    let (weight, bias) = (parameters.get(&format!("{name}.weight"))?, parameters.get(&format!("{name}.bias"))?);
    #[cfg(feature = "torch")]
    if let Some(y) = native::layer_norm(&x, &weight, &bias, LAYER_NORM_EPS) {
        return Ok(y);
    }
    Ok(crate::layer_norm::layer_norm(x, weight, bias, LAYER_NORM_EPS))
}

/// BatchNorm of x [batch, channels, height, width], each channel by itself: by the batch's own statistics in training, which the
/// running ones take in or which are recorded for them, by the running ones in prediction.
pub(super) fn batch_norm(
    parameters: &Parameters,
    name: &str,
    x: Tensor<4>,
    pass: &mut Pass,
) -> Result<Tensor<4>, NnError> {
    normalised(parameters, name, x, pass, false)
}

/// ReLU of [`batch_norm`].
pub(super) fn batch_norm_relu(
    parameters: &Parameters,
    name: &str,
    x: Tensor<4>,
    pass: &mut Pass,
) -> Result<Tensor<4>, NnError> {
    normalised(parameters, name, x, pass, true)
}

fn normalised(
    parameters: &Parameters,
    name: &str,
    x: Tensor<4>,
    pass: &mut Pass,
    rectified: bool,
) -> Result<Tensor<4>, NnError> {
    let (weight, bias) = (parameters.get(&format!("{name}.weight"))?, parameters.get(&format!("{name}.bias"))?);
    let mean = parameters.buffer(&format!("{name}.running_mean"))?;
    let variance = parameters.buffer(&format!("{name}.running_var"))?;
    let finish = |y: Tensor<4>| Ok(if rectified { activation::relu(y) } else { y });
    if !pass.is_training() {
        #[cfg(feature = "torch")]
        if let Some(y) = native::batch_norm_by(&x, [&weight, &bias, &mean, &variance], BATCH_NORM_EPS) {
            return finish(y);
        }
        // As one factor and one shift for each channel: two walks through the image instead of four.
        let factor: Tensor<1> = weight / variance.add_scalar(BATCH_NORM_EPS).sqrt();
        let shift: Tensor<1> = bias - mean * factor.clone();
        let channels = factor.dims()[0];
        return finish(x * factor.reshape([1, channels, 1, 1]) + shift.reshape([1, channels, 1, 1]));
    }
    let [batch, _, height, width] = x.dims();
    let values = (batch * height * width) as f64;
    if values < 2.0 {
        let problem =
            format!("{name} has one value for each channel, of which it cannot take a variance; use more images");
        return Err(NnError::Batch(problem));
    }
    #[cfg(feature = "torch")]
    if let Some(y) = native::batch_norm(&x, [&weight, &bias, &mean, &variance], pass.share(), BATCH_NORM_EPS) {
        return finish(y);
    }
    let found = normalise(x, weight, bias, Norm { eps: BATCH_NORM_EPS, rectified });
    let variance = found.variance.mul_scalar(values / (values - 1.0));
    pass.record(Statistics { name: name.to_string(), mean: found.mean, variance });
    Ok(found.output)
}

/// The mean over all pixels: [batch, channels, height, width] -> [batch, channels]
pub(super) fn mean_pixel(x: Tensor<4>) -> Tensor<2> {
    let [batch, channels, height, width] = x.dims();
    let flat: Tensor<3> = x.reshape([batch, channels, height * width]);
    flat.mean_dim(2).reshape([batch, channels])
}
