//! Weights on a device, where gradients are asked for.

use std::collections::HashMap;

use burn::tensor::{Element, Gradients, Tensor, TensorData};

use crate::layers::to_vec;
use crate::{Device, NnError, Weights};

/// The parameters of a network as tensors on a device: the leaves of the graph gradients flow through.
///
/// Attention's in-projection [3d, d] becomes three leaves (query, key, value), which saves slicing it in every step; since the
/// three lie one after the other in the flat data, the order of values is not changed by that.
pub(crate) struct Leaves {
    leaves: Vec<Leaf>,
    by_name: HashMap<String, std::ops::Range<usize>>,
}

enum Leaf {
    Vector(Tensor<1>),
    Matrix(Tensor<2>),
}

impl Leaves {
    /// Put weights on a device; on a recording device their gradients are kept.
    pub(crate) fn upload(weights: &Weights, device: &Device, with_gradients: bool) -> Result<Self, NnError> {
        let mut leaves = Vec::with_capacity(weights.layout().len() + 8);
        let mut by_name = HashMap::with_capacity(weights.layout().len());
        for parameter in weights.layout() {
            let parts = if parameter.name.contains("in_proj_") { 3 } else { 1 };
            let values = &weights.data()[parameter.range.clone()];
            let first = leaves.len();
            for part in values.chunks(values.len().div_ceil(parts).max(1)) {
                leaves.push(match parameter.shape[..] {
                    [_] => {
                        let data = TensorData::new(part.to_vec(), [part.len()]);
                        Leaf::Vector(Tensor::from_data(data, device.constant()).set_require_grad(with_gradients))
                    }
                    [_, columns] => {
                        let data = TensorData::new(part.to_vec(), [part.len() / columns.max(1), columns]);
                        Leaf::Matrix(Tensor::from_data(data, device.constant()).set_require_grad(with_gradients))
                    }
                    _ => return Err(NnError::Layout(format!("{} is neither a vector nor a matrix", parameter.name))),
                });
            }
            by_name.insert(parameter.name.clone(), first..leaves.len());
        }
        Ok(Self { leaves, by_name })
    }

    /// The matrix of this name, in `N` equal parts.
    pub(crate) fn matrices<const N: usize>(&self, name: &str) -> Result<[Tensor<2>; N], NnError> {
        let matrix = |leaf: &Leaf| match leaf {
            Leaf::Matrix(tensor) => Some(tensor.clone()),
            Leaf::Vector(_) => None,
        };
        self.find(name, "matrix", matrix)
    }

    /// The vector of this name, in `N` equal parts.
    pub(crate) fn vectors<const N: usize>(&self, name: &str) -> Result<[Tensor<1>; N], NnError> {
        let vector = |leaf: &Leaf| match leaf {
            Leaf::Vector(tensor) => Some(tensor.clone()),
            Leaf::Matrix(_) => None,
        };
        self.find(name, "vector", vector)
    }

    fn find<T, const N: usize>(
        &self,
        name: &str,
        kind: &str,
        get: impl Fn(&Leaf) -> Option<T>,
    ) -> Result<[T; N], NnError> {
        let parts = self.by_name.get(name).map_or(&[][..], |range| &self.leaves[range.clone()]);
        let found: Vec<T> = parts.iter().filter_map(get).collect();
        found.try_into().map_err(|_| NnError::Layout(format!("there is no {kind} {name}")))
    }

    /// The gradients of all leaves as one vector, in the order of [`Weights::data`]; zero where a leaf played no part.
    /// They are joined on the device, so that a GPU sends them in one piece.
    pub(crate) fn gradients<E: Element>(&self, mut gradients: Gradients) -> Result<Vec<E>, NnError> {
        let flat = |leaf: &Leaf| -> Tensor<1> {
            match leaf {
                Leaf::Vector(x) => {
                    x.grad_remove(&mut gradients).unwrap_or_else(|| x.clone().without_autodiff().zeros_like())
                }
                Leaf::Matrix(x) => {
                    let gradient =
                        x.grad_remove(&mut gradients).unwrap_or_else(|| x.clone().without_autodiff().zeros_like());
                    gradient.reshape([-1])
                }
            }
        };
        to_vec(Tensor::cat(self.leaves.iter().map(flat).collect(), 0))
    }
}
