//! The layers networks are made of. A layer declares its parameters where it is made, and finds their tensors in [`Parameters`] when it is
//! used.

mod conv;
mod norm;

use burn::tensor::{Element, Tensor, activation, module};
use serde::{Deserialize, Serialize};

use crate::params::{Init, Param, Scope};
use crate::{NnError, Parameters};

pub(crate) use conv::{Conv2d, channels_last};
pub(crate) use norm::{BatchNorm2d, LayerNorm, Norm, Recorder};
pub use norm::{LAYER_NORM_EPS, NormFactors};

/// `nn.Linear`: y = x W^T + b.
pub(crate) struct Linear {
    /// [outputs, inputs], as PyTorch stores it.
    weight: Param<2>,
    /// \[outputs\]
    bias: Option<Param<1>>,
}

impl Linear {
    /// With PyTorch's default initial values.
    pub(crate) fn new(params: Scope, inputs: usize, outputs: usize) -> Self {
        Self::with_init(params, [outputs, inputs], Init::linear(inputs), Init::linear(inputs))
    }

    /// With a weight of this shape [outputs, inputs], and other initial values.
    pub(crate) fn with_init(mut params: Scope, shape: [usize; 2], weight: Init, bias: Init) -> Self {
        Self { weight: params.add("weight", shape, weight), bias: Some(params.add("bias", [shape[0]], bias)) }
    }

    /// `nn.Linear(bias=False)`.
    pub(crate) fn without_bias(mut params: Scope, inputs: usize, outputs: usize) -> Self {
        Self { weight: params.add("weight", [outputs, inputs], Init::linear(inputs)), bias: None }
    }

    /// [.., inputs] -> [.., outputs]
    pub(crate) fn forward<const D: usize>(&self, p: &Parameters, x: Tensor<D>) -> Tensor<D> {
        let (weight, bias) = self.tensors(p);
        multiply(x, weight, bias)
    }

    /// Weight [outputs, inputs] and bias \[outputs\].
    pub(crate) fn tensors(&self, p: &Parameters) -> (Tensor<2>, Option<Tensor<1>>) {
        (p.get(self.weight), self.bias.map(|bias| p.get(bias)))
    }
}

/// x W^T + b of a weight [outputs, inputs], all rows at once: on more dimensions burn would multiply once for each image or string.
pub(crate) fn multiply<const D: usize>(x: Tensor<D>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<D> {
    #[cfg(feature = "torch")]
    if let Some(y) = crate::native::linear(&x, &weight, bias.as_ref()) {
        return y;
    }
    let mut shape = x.dims();
    let rows: Tensor<2> = x.reshape([-1, shape[D - 1] as i64]);
    let y = module::linear(rows, weight.transpose(), bias);
    shape[D - 1] = y.dims()[1];
    y.reshape(shape)
}

/// What stands between the linear layers of a transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nonlinearity {
    /// x Phi(x), Phi the normal distribution function.
    #[default]
    Gelu,
    /// The same with Phi approximated by tanh (`gelu_new` in Python's `transformers`).
    GeluByTanh,
    /// max(x, 0)
    Relu,
}

impl Nonlinearity {
    /// Of each value.
    pub(crate) fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Gelu => gelu(x),
            Self::GeluByTanh => gelu_by_tanh(x),
            Self::Relu => activation::relu(x),
        }
    }
}

/// x Phi(x) of each value, Phi the normal distribution function.
pub(crate) fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    // The clone keeps a reference, so LibTorch does not reuse x's buffer in place (and copy it first for the gradient).
    activation::gelu(x.clone())
}

/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 of each value.
pub(crate) fn gelu_by_tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "torch")]
    if let Some(y) = crate::native::gelu_by_tanh(&x) {
        return y;
    }
    activation::gelu_approximate(x)
}

/// Whether a setting that must not be 0 is not.
pub(crate) fn at_least_one(setting: &'static str, size: usize) -> Result<(), NnError> {
    match size {
        0 => Err(NnError::setting(setting, "must be at least 1, but is 0")),
        _ => Ok(()),
    }
}

/// Whether heads of equal width make up the width d.
pub(crate) fn check_heads(d: usize, heads: usize) -> Result<(), NnError> {
    if heads == 0 || !d.is_multiple_of(heads) {
        return Err(NnError::setting("model.heads", format!("heads must divide d = {d}, but heads = {heads}")));
    }
    Ok(())
}

/// Whether a dropout rate is one.
pub(crate) fn check_dropout(setting: &'static str, rate: f64) -> Result<(), NnError> {
    match (0.0..1.0).contains(&rate) {
        true => Ok(()),
        false => Err(NnError::setting(setting, format!("must be at least 0 and below 1, but is {rate}"))),
    }
}

/// A tensor's values on the host.
pub(crate) fn to_vec<const D: usize, E: Element>(x: Tensor<D>) -> Result<Vec<E>, NnError> {
    x.try_into_vec_as::<E>().map_err(|e| NnError::Computation(e.to_string()))
}
