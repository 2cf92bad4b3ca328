//! The forward pass of R networks at once; all tensors have a leading axis R.
//!
//! Only "=" is read, so it has the only query: the same for all pairs, and a head's score of a key is a fixed direction of what lies at
//! that position. Scores and values are then linear in the token there, and are taken from tables of p rows. Both are exact.

use burn::tensor::{Int, Tensor, TensorData, activation};
use pudica_data::Pairs;

use super::{Layers, ModularTransformer};
use crate::layers::to_vec;
use crate::params::Param;
use crate::{Device, NnError, Weights};

/// The parameters of R networks, as leaves whose gradients are asked for, or not.
pub(super) struct Parts {
    network: ModularTransformer,
    layers: Layers,
    /// [R, rows, columns] each, in the order of the layout
    leaves: Vec<Tensor<3>>,
}

/// What attention sees of the tokens: of each the score of every head, then its value.
pub(super) struct Tables {
    /// The map from vectors to their scores and values, what attention sees of them: [R, d, heads + d]
    key_value_map: Tensor<3>,
    /// Numbers in the first place: [R, p, heads + d]
    first: Tensor<3>,
    /// Numbers in the second place: [R, p, heads + d]
    second: Tensor<3>,
    /// "=": [R, 1, heads + d]
    equals: Tensor<3>,
}

/// As many pairs for each of R networks, on the device.
pub(super) struct Batch {
    /// One-hot: [R, pairs, p]. A product with it looks up rows of a table, and its gradient is a product too: in the same order every
    /// time, which sums by scattered addition on a GPU are not.
    pub a: Tensor<3>,
    /// One-hot: [R, pairs, p]
    pub b: Tensor<3>,
    /// One-hot: [R, pairs, p]
    pub results: Tensor<3>,
    /// [R, pairs, 1]
    pub labels: Tensor<3, Int>,
}

impl Batch {
    /// Puts the pairs of R networks on a device; all have as many.
    pub fn upload(sets: &[&Pairs], modulus: usize, device: &Device) -> Result<Self, NnError> {
        let count = sets.first().map_or(0, |set| set.count());
        let same = |set: &&Pairs| set.count() == count && set.a.len() == count && set.b.len() == count;
        if count == 0 || !sets.iter().all(same) {
            return Err(NnError::Batch("every network needs as many pairs as the others, and at least one".into()));
        }
        let largest = sets.iter().flat_map(|set| set.a.iter().chain(&set.b).chain(&set.results)).max();
        if largest.is_some_and(|largest| *largest >= modulus) {
            return Err(NnError::Batch(format!("it has numbers that are not below the modulus {modulus}")));
        }
        let shape = [sets.len(), count, modulus];
        let one_hot = |values: &dyn Fn(&Pairs) -> &[usize]| -> Tensor<3> {
            let mut rows = vec![0f32; sets.len() * count * modulus];
            let numbers = sets.iter().flat_map(|set| values(set));
            rows.chunks_exact_mut(modulus).zip(numbers).for_each(|(row, number)| row[*number] = 1.0);
            Tensor::from_data(TensorData::new(rows, shape), device.constant())
        };
        let labels: Vec<i64> = sets.iter().flat_map(|set| &set.results).map(|result| *result as i64).collect();
        Ok(Self {
            a: one_hot(&|set| &set.a),
            b: one_hot(&|set| &set.b),
            results: one_hot(&|set| &set.results),
            labels: Tensor::from_data(TensorData::new(labels, [sets.len(), count, 1]), device.integers()),
        })
    }
}

impl Parts {
    /// Cuts [R, parameters] into the parts of `layout`. With `recording`, gradients of what is computed from them are kept.
    pub fn new(network: ModularTransformer, flat: &Tensor<2>, layout: &Weights, recording: bool) -> Self {
        let [r, _] = flat.dims();
        let leaf = |parameter: &crate::Parameter| {
            let leaf = flat.clone().slice([0..r, parameter.range.clone()]);
            let leaf = leaf.reshape([r, parameter.shape[0], parameter.shape[1]]);
            if recording { leaf.autodiff().require_grad() } else { leaf }
        };
        Self { network, layers: network.build().0, leaves: layout.layout().iter().map(leaf).collect() }
    }

    /// The gradients of all parameters, [R, parameters].
    pub fn gradient(&self, mut gradients: burn::tensor::Gradients) -> Tensor<2> {
        let of = |leaf: &Tensor<3>| {
            let zero = || leaf.clone().without_autodiff().zeros_like();
            let [r, rows, columns] = leaf.dims();
            leaf.grad_remove(&mut gradients).unwrap_or_else(zero).reshape([r, rows * columns])
        };
        Tensor::cat(self.leaves.iter().map(of).collect(), 1)
    }

    /// What attention sees of every token in every place.
    pub fn tables(&self) -> Tables {
        let ModularTransformer { modulus, d, heads, .. } = self.network;
        let Layers { embed, pos, query, key, value, .. } = self.layers;
        let [embed, pos, query, key, value] = [embed, pos, query, key, value].map(|param| self.get(param));
        let r = embed.dims()[0];
        let equals = row(embed, modulus) + row(pos, 2);
        let scale = (heads as f64 / d as f64).sqrt();
        let query = query.clone().matmul(equals.swap_dims(1, 2)).mul_scalar(scale); // [R, d, 1]
        let scores = (key.clone() * query).reshape([r, heads, d / heads, d]).sum_dim(2).reshape([r, heads, d]);
        let key_value_map = Tensor::cat(vec![scores, value.clone()], 1).swap_dims(1, 2); // [R, d, heads + d]
        let tokens = embed.clone().matmul(key_value_map.clone());
        let places = pos.clone().matmul(key_value_map.clone());
        let numbers = tokens.clone().slice([0..r, 0..modulus]);
        Tables {
            first: numbers.clone() + row(&places, 0),
            second: numbers + row(&places, 1),
            equals: row(&tokens, modulus) + row(&places, 2),
            key_value_map,
        }
    }

    /// The scores [R, pairs, p] of pairs from what attention sees at their two places, both [R, pairs, heads + d].
    pub fn scores(&self, first: Tensor<3>, second: Tensor<3>, tables: &Tables) -> Tensor<3> {
        let ModularTransformer { modulus, d, heads, .. } = self.network;
        let Layers { embed, pos, out, up, down, unembed, .. } = self.layers;
        let [embed, pos, out, up, down, unembed] = [embed, pos, out, up, down, unembed].map(|param| self.get(param));
        let [r, pairs, _] = first.dims();
        let equals = tables.equals.clone().expand([r, pairs, heads + d]);
        let seen: Tensor<4> = Tensor::stack(vec![first, second, equals], 2); // [R, pairs, 3, heads + d]
        let weights = activation::softmax(seen.clone().slice([0..r, 0..pairs, 0..3, 0..heads]), 2);
        let values = seen.slice([0..r, 0..pairs, 0..3, heads..heads + d]).reshape([r, pairs, 3, heads, d / heads]);
        let mixed = (values * weights.unsqueeze_dim::<5>(4)).sum_dim(2).reshape([r, pairs, d]);
        let residual = row(embed, modulus) + row(pos, 2) + linear(mixed, out);
        let hidden = activation::relu(linear(residual.clone(), up));
        linear(residual + linear(hidden, down), unembed)
    }

    /// A parameter of all networks.
    fn get(&self, param: Param<2>) -> &Tensor<3> {
        &self.leaves[param.leaf]
    }
}

impl ModularTransformer {
    /// The scores of pairs, row-major [pairs, p], of one network with these weights; `noise` [pairs, 2, d] is added to the embeddings of both
    /// numbers.
    pub fn scores(
        &self,
        weights: &Weights,
        pairs: &Pairs,
        noise: Option<&[f32]>,
        device: &Device,
    ) -> Result<Vec<f32>, NnError> {
        self.empty_weights()?.check_same_layout(weights)?;
        let (count, width) = (pairs.count(), 2 * self.d);
        if let Some(noise) = noise.filter(|noise| noise.len() != count * width) {
            return Err(NnError::Batch(format!("{} values of noise for {count} pairs of {width}", noise.len())));
        }
        let parts =
            Parts::new(*self, &device.floats(weights.data().to_vec(), [1, weights.data().len()]), weights, false);
        let tables = parts.tables();
        let [mut first, mut second] = tables.look_up(&Batch::upload(&[pairs], self.modulus, device)?);
        if let Some(noise) = noise {
            let noise = device.floats(noise.to_vec(), [1, count, width]);
            first = first + tables.see(noise.clone().slice([0..1, 0..count, 0..self.d]));
            second = second + tables.see(noise.slice([0..1, 0..count, self.d..width]));
        }
        to_vec(parts.scores(first, second, &tables))
    }
}

impl Tables {
    /// What attention sees of both numbers of pairs, each [R, pairs, heads + d].
    pub fn look_up(&self, batch: &Batch) -> [Tensor<3>; 2] {
        [batch.a.clone().matmul(self.first.clone()), batch.b.clone().matmul(self.second.clone())]
    }

    /// What it sees more when vectors [R, pairs, d] are added to an embedding.
    pub fn see(&self, added: Tensor<3>) -> Tensor<3> {
        added.matmul(self.key_value_map.clone())
    }
}

/// x [R, rows, in] through a layer [R, out, in].
fn linear(x: Tensor<3>, weight: &Tensor<3>) -> Tensor<3> {
    x.matmul(weight.clone().swap_dims(1, 2))
}

/// One row of each table, [R, 1, columns].
fn row(table: &Tensor<3>, at: usize) -> Tensor<3> {
    let [r, _, columns] = table.dims();
    table.clone().slice([0..r, at..at + 1, 0..columns])
}
