//! The layers the networks are made of, written out by hand: fewer operations than the stock ones, PyTorch's numbers.

use burn::tensor::{Element, Tensor, activation, module};

use crate::NnError;
use crate::attention::{Mask, attend_apart};
use crate::layer_norm::layer_norm;
use crate::leaves::Leaves;

/// LayerNorm's epsilon, PyTorch's default.
pub const LAYER_NORM_EPS: f64 = 1e-5;

/// y = x W^T + b.
pub(crate) struct Linear {
    /// [out, in], as PyTorch stores it.
    weight: Tensor<2>,
    /// [out]
    bias: Tensor<1>,
}

impl Linear {
    /// The layer stored under `name.weight` and `name.bias`.
    pub(crate) fn new(leaves: &Leaves, name: &str) -> Result<Self, NnError> {
        let [weight] = leaves.matrices(&format!("{name}.weight"))?;
        let [bias] = leaves.vectors(&format!("{name}.bias"))?;
        Ok(Self { weight, bias })
    }

    /// [.., in] -> [.., out]
    pub(crate) fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let mut shape = x.dims();
        // One multiplication of all rows; on more dimensions burn would do one for each string.
        let rows: Tensor<2> = x.reshape([-1, shape[D - 1] as i64]);
        let y = module::linear(rows, self.weight.clone().transpose(), Some(self.bias.clone()));
        shape[D - 1] = y.dims()[1];
        y.reshape(shape)
    }
}

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

/// LayerNorm over the last dimension, affine.
pub(crate) struct LayerNorm {
    name: String,
    /// [d]
    weight: Tensor<1>,
    /// [d]
    bias: Tensor<1>,
}

impl LayerNorm {
    /// The layer stored under `name.weight` and `name.bias`.
    pub(crate) fn new(leaves: &Leaves, name: &str) -> Result<Self, NnError> {
        let [weight] = leaves.vectors(&format!("{name}.weight"))?;
        let [bias] = leaves.vectors(&format!("{name}.bias"))?;
        Ok(Self { name: name.to_string(), weight, bias })
    }

    /// [batch, length, d] -> [batch, length, d]
    pub(crate) fn forward(&self, x: Tensor<3>, recorder: &mut Recorder) -> Result<Tensor<3>, NnError> {
        if let Some(records) = recorder {
            records.push(self.factors(x.clone())?);
        }
        Ok(layer_norm(x, self.weight.clone(), self.bias.clone(), LAYER_NORM_EPS))
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
            theory: variance.iter().map(|v| inverse_root(v + LAYER_NORM_EPS)).collect(),
        })
    }
}

/// Multi-head attention with biases, PyTorch's `nn.MultiheadAttention` without dropout.
pub(crate) struct Attention {
    heads: usize,
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
}

impl Attention {
    /// The layer stored under `name.in_proj_weight`, `name.in_proj_bias`, `name.out_proj.weight` and `name.out_proj.bias`.
    pub(crate) fn new(leaves: &Leaves, name: &str, heads: usize) -> Result<Self, NnError> {
        let [query, key, value] = leaves.matrices(&format!("{name}.in_proj_weight"))?;
        let [query_bias, key_bias, value_bias] = leaves.vectors(&format!("{name}.in_proj_bias"))?;
        // The scores' factor 1/sqrt(d/heads) goes into the query's parameters, the smallest place it can go.
        let scale = (heads as f64 / query.dims()[1] as f64).sqrt();
        Ok(Self {
            heads,
            query: Linear { weight: query.mul_scalar(scale), bias: query_bias.mul_scalar(scale) },
            // A key bias adds the same number to all scores of a query, which the softmax takes out again: its gradient is 0. Computed in
            // f32 it would be rounding noise, which AdamW scales up to full steps: 2e-4 of a loss after 80 of them at width 128.
            key: Linear { weight: key, bias: key_bias.detach() },
            value: Linear { weight: value, bias: value_bias },
            out: Linear::new(leaves, &format!("{name}.out_proj"))?,
        })
    }

    /// The scaled queries of x [.., d].
    pub(crate) fn queries<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.query.forward(x)
    }

    /// The keys and values of x [.., d].
    pub(crate) fn keys_values<const D: usize>(&self, x: Tensor<D>) -> (Tensor<D>, Tensor<D>) {
        (self.key.forward(x.clone()), self.value.forward(x))
    }

    /// Attend from queries [batch, l, d] to keys and values [batch, m, d]: [batch, l, d]. `causal`: to positions up to the query's
    /// own only.
    pub(crate) fn attend(&self, queries: Tensor<3>, keys_values: (Tensor<3>, Tensor<3>), causal: bool) -> Tensor<3> {
        let (keys, values) = keys_values;
        let mask = if causal { Mask::Causal } else { Mask::None };
        self.out.forward(attend_apart(queries, keys, values, self.heads, mask))
    }
}

/// The two linear layers with a ReLU between them.
pub(crate) struct FeedForward {
    linear1: Linear,
    linear2: Linear,
}

impl FeedForward {
    /// The layers stored under `name.linear1` and `name.linear2`.
    pub(crate) fn new(leaves: &Leaves, name: &str) -> Result<Self, NnError> {
        let part = |part: &str| Linear::new(leaves, &format!("{name}.{part}"));
        Ok(Self { linear1: part("linear1")?, linear2: part("linear2")? })
    }

    /// [.., d] -> [.., d]
    pub(crate) fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.linear2.forward(activation::relu(self.linear1.forward(x)))
    }
}

/// A tensor's values on the host.
pub(crate) fn to_vec<const D: usize, E: Element>(x: Tensor<D>) -> Result<Vec<E>, NnError> {
    x.try_into_vec_as::<E>().map_err(|e| NnError::Computation(e.to_string()))
}
