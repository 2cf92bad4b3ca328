//! LayerNorm, RMSNorm and BatchNorm with their parameters.

use burn::tensor::{Tensor, activation};

use super::to_vec;
use crate::batch_norm::{self, normalise};
use crate::classifier::{Pass, Statistics};
use crate::layer_norm::layer_norm;
use crate::networks::Normalisation;
use crate::params::{Buffer, Init, Param, Scope};
use crate::{NnError, Parameters};

/// LayerNorm's epsilon, PyTorch's default.
pub const LAYER_NORM_EPS: f64 = 1e-5;

/// BatchNorm's epsilon, PyTorch's default.
const BATCH_NORM_EPS: f64 = 1e-5;

/// One normalisation's factors on one batch: 1 / (standard deviation over features) of what the LayerNorm was given.
#[derive(Debug, Clone, PartialEq)]
pub struct NormFactors {
    /// PyTorch's name of the LayerNorm, such as `enc.layers.0.norm1`.
    pub name: String,
    /// Positions computed for each string: all of them, or only the last (in an encoder's last layer).
    pub positions: usize,
    /// The paper's code: 1/std with the unbiased std and no epsilon; row-major [rows, positions].
    pub unbiased: Vec<f32>,
    /// The theory's N = 1/sqrt(var + eps) with the biased variance; row-major [rows, positions].
    pub theory: Vec<f32>,
}

/// Collects what LayerNorms were given, when somebody asks.
pub(crate) type Recorder<'a> = Option<&'a mut Vec<NormFactors>>;

/// `nn.LayerNorm` over the last dimension.
pub(crate) struct LayerNorm {
    name: String,
    /// [d]
    weight: Param<1>,
    /// [d]
    bias: Param<1>,
    eps: f64,
}

impl LayerNorm {
    /// With PyTorch's default epsilon.
    pub(crate) fn new(params: Scope, width: usize) -> Self {
        Self::with_eps(params, width, LAYER_NORM_EPS)
    }

    pub(crate) fn with_eps(mut params: Scope, width: usize, eps: f64) -> Self {
        Self {
            eps,
            name: params.name().to_string(),
            weight: params.add("weight", [width], Init::Ones),
            bias: params.add("bias", [width], Init::Zeros),
        }
    }

    /// [batch, length, d] -> [batch, length, d]
    pub(crate) fn forward(&self, p: &Parameters, x: Tensor<3>) -> Tensor<3> {
        let (weight, bias) = (p.get(self.weight), p.get(self.bias));
        #[cfg(feature = "torch")]
        if let Some(y) = crate::native::layer_norm(&x, &weight, &bias, self.eps) {
            return y;
        }
        layer_norm(x, weight, bias, self.eps)
    }

    /// [`LayerNorm::forward`], with what it was given recorded where somebody asks.
    pub(crate) fn recorded(&self, p: &Parameters, x: Tensor<3>, recorder: &mut Recorder) -> Result<Tensor<3>, NnError> {
        if let Some(records) = recorder {
            records.push(self.factors(x.clone())?);
        }
        Ok(self.forward(p, x))
    }

    fn factors(&self, x: Tensor<3>) -> Result<NormFactors, NnError> {
        let [_, positions, d] = x.dims();
        let variance = to_vec::<3, f64>(x.var_bias(2))?;
        let unbiasing = d as f64 / (d as f64 - 1.0);
        let inverse_root = |v: f64| (1.0 / v.sqrt()) as f32;
        Ok(NormFactors {
            name: self.name.clone(),
            positions,
            unbiased: variance.iter().map(|v| inverse_root(v * unbiasing)).collect(),
            theory: variance.iter().map(|v| inverse_root(v + self.eps)).collect(),
        })
    }
}

/// `nn.RMSNorm` over the last dimension: x / sqrt(mean of x^2 + eps) times a weight.
pub(crate) struct RmsNorm {
    name: String,
    /// \[d\]
    weight: Param<1>,
}

impl RmsNorm {
    pub(crate) fn new(mut params: Scope, width: usize) -> Self {
        Self { name: params.name().to_string(), weight: params.add("weight", [width], Init::Ones) }
    }

    fn forward(&self, p: &Parameters, x: Tensor<3>) -> Tensor<3> {
        let weight = p.get(self.weight);
        let width = weight.dims()[0];
        let root = x.clone().square().mean_dim(2).add_scalar(LAYER_NORM_EPS).sqrt();
        x / root * weight.reshape([1, 1, width])
    }

    /// Without a mean to take away, both definitions of the factor are about the root of the mean square.
    fn factors(&self, x: Tensor<3>) -> Result<NormFactors, NnError> {
        let positions = x.dims()[1];
        let squares = to_vec::<3, f64>(x.square().mean_dim(2))?;
        let inverse_root = |square: f64| (1.0 / square.sqrt()) as f32;
        Ok(NormFactors {
            name: self.name.clone(),
            positions,
            unbiased: squares.iter().map(|square| inverse_root(*square)).collect(),
            theory: squares.iter().map(|square| inverse_root(square + LAYER_NORM_EPS)).collect(),
        })
    }
}

/// A norm of a transformer.
pub(crate) enum Norm {
    Layer(LayerNorm),
    Rms(RmsNorm),
}

impl Norm {
    /// The norm of this kind, if it is one.
    pub(crate) fn new(params: Scope, width: usize, kind: Normalisation) -> Option<Self> {
        match kind {
            Normalisation::Post | Normalisation::Pre => Some(Self::Layer(LayerNorm::new(params, width))),
            Normalisation::Rms => Some(Self::Rms(RmsNorm::new(params, width))),
            Normalisation::None => None,
        }
    }

    /// `norm1` and `norm2` of a layer.
    pub(crate) fn pair(params: &mut Scope, width: usize, kind: Normalisation) -> Option<[Self; 2]> {
        let first = Self::new(params.at("norm1"), width, kind)?;
        Some([first, Self::new(params.at("norm2"), width, kind)?])
    }

    /// [batch, length, d] -> [batch, length, d]
    pub(crate) fn forward(&self, p: &Parameters, x: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Layer(norm) => norm.forward(p, x),
            Self::Rms(norm) => norm.forward(p, x),
        }
    }

    /// [`Norm::forward`], with what it was given recorded where somebody asks.
    pub(crate) fn recorded(&self, p: &Parameters, x: Tensor<3>, recorder: &mut Recorder) -> Result<Tensor<3>, NnError> {
        if let Some(records) = recorder {
            records.push(self.factors(x.clone())?);
        }
        Ok(self.forward(p, x))
    }

    pub(crate) fn factors(&self, x: Tensor<3>) -> Result<NormFactors, NnError> {
        match self {
            Self::Layer(norm) => norm.factors(x),
            Self::Rms(norm) => norm.factors(x),
        }
    }
}

/// `nn.BatchNorm2d`: each channel by itself, in training by the batch's own statistics, in prediction by the running ones.
pub(crate) struct BatchNorm2d {
    name: String,
    /// \[channels\]
    weight: Param<1>,
    /// \[channels\]
    bias: Param<1>,
    /// \[channels\]
    running_mean: Buffer,
    /// \[channels\]
    running_var: Buffer,
}

impl BatchNorm2d {
    pub(crate) fn new(mut params: Scope, channels: usize) -> Self {
        Self {
            name: params.name().to_string(),
            weight: params.add("weight", [channels], Init::Ones),
            bias: params.add("bias", [channels], Init::Zeros),
            running_mean: params.add_buffer("running_mean", channels, Init::Zeros),
            running_var: params.add_buffer("running_var", channels, Init::Ones),
        }
    }

    /// x [batch, channels, height, width] normalised. In training, the batch's statistics are recorded for the running ones.
    pub(crate) fn forward(&self, p: &Parameters, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        self.normalised(p, x, pass, false)
    }

    /// ReLU of [`BatchNorm2d::forward`].
    pub(crate) fn forward_relu(&self, p: &Parameters, x: Tensor<4>, pass: &mut Pass) -> Result<Tensor<4>, NnError> {
        self.normalised(p, x, pass, true)
    }

    /// What prediction multiplies each channel by, and what it then adds: \[channels\] each.
    pub(crate) fn factor_and_shift(&self, p: &Parameters) -> (Tensor<1>, Tensor<1>) {
        let factor = p.get(self.weight) / p.buffer(self.running_var).add_scalar(BATCH_NORM_EPS).sqrt();
        let shift = p.get(self.bias) - p.buffer(self.running_mean) * factor.clone();
        (factor, shift)
    }

    fn normalised(&self, p: &Parameters, x: Tensor<4>, pass: &mut Pass, rectified: bool) -> Result<Tensor<4>, NnError> {
        let (weight, bias) = (p.get(self.weight), p.get(self.bias));
        #[cfg(feature = "torch")]
        let (mean, variance) = (p.buffer(self.running_mean), p.buffer(self.running_var));
        let finish = |y: Tensor<4>| Ok(if rectified { activation::relu(y) } else { y });
        if !pass.is_training() {
            #[cfg(feature = "torch")]
            if let Some(y) = crate::native::batch_norm_by(&x, [&weight, &bias, &mean, &variance], BATCH_NORM_EPS) {
                return finish(y);
            }
            // As one factor and one shift for each channel: two walks through the image instead of four.
            let (factor, shift) = self.factor_and_shift(p);
            let channels = factor.dims()[0];
            return finish(x * factor.reshape([1, channels, 1, 1]) + shift.reshape([1, channels, 1, 1]));
        }
        let [batch, _, height, width] = x.dims();
        let values = (batch * height * width) as f64;
        if values < 2.0 {
            return Err(NnError::Batch(format!(
                "{} has one value for each channel, of which it cannot take a variance; use more images",
                self.name
            )));
        }
        #[cfg(feature = "torch")]
        {
            let all = [&weight, &bias, &mean, &variance];
            if let Some(y) = crate::native::batch_norm(&x, all, pass.share(), BATCH_NORM_EPS) {
                return finish(y);
            }
        }
        let found = normalise(x, weight, bias, batch_norm::Norm { eps: BATCH_NORM_EPS, rectified });
        let variance = found.variance.mul_scalar(values / (values - 1.0));
        pass.record(Statistics { mean: (self.running_mean, found.mean), variance: (self.running_var, variance) });
        Ok(found.output)
    }
}
