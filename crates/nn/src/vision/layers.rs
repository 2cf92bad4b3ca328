//! The layers image networks are made of: each a function of its name, whose parameters it looks up.

use burn::tensor::{Tensor, activation, module};
use serde::{Deserialize, Serialize};

use crate::NnError;
use crate::classifier::Parameters;
use crate::init::{Blueprint, Start};

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

/// `name.weight` [outputs, inputs] and `name.bias` \[outputs\], as `nn.Linear` starts them.
pub(super) fn linear_blueprints(name: &str, inputs: usize, outputs: usize) -> [Blueprint; 2] {
    [
        Blueprint::new(format!("{name}.weight"), &[outputs, inputs], Start::linear(inputs)),
        Blueprint::new(format!("{name}.bias"), &[outputs], Start::linear(inputs)),
    ]
}

/// x W^T + b: [.., inputs] -> [.., outputs]
pub(super) fn linear<const D: usize>(parameters: &Parameters, name: &str, x: Tensor<D>) -> Result<Tensor<D>, NnError> {
    let bias = parameters.get::<1>(&format!("{name}.bias"))?;
    Ok(multiply(x, parameters.get::<2>(&format!("{name}.weight"))?, Some(bias)))
}

/// x W^T + b of a weight [outputs, inputs], all rows at once: on more dimensions burn would multiply once for each image.
pub(super) fn multiply<const D: usize>(x: Tensor<D>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<D> {
    let mut shape = x.dims();
    let rows: Tensor<2> = x.reshape([-1, shape[D - 1] as i64]);
    let y = module::linear(rows, weight.transpose(), bias);
    shape[D - 1] = y.dims()[1];
    y.reshape(shape)
}
