//! The fused steps composed of a backend's own operations: for backends without hand-written loops, and to test those that have.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, TensorData};

use crate::fused::Heads;

/// [`Kernels::attend_forward`](crate::fused::Kernels)
pub(crate) fn attend_forward<B: Backend>(
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    v: FloatTensor<B>,
    heads: Heads,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let [q, k, v] = [q, k, v].map(|x| split::<B>(x, heads.count));
    let mut scores = B::float_matmul(q, B::float_swap_dims(k, 2, 3));
    if heads.causal {
        let (device, shape) = (scores.device(), scores.shape());
        let (l, m) = (shape[2], shape[3]);
        let mask = (0..l * m).map(|i| if i % m > i / m + m - l { f32::NEG_INFINITY } else { 0.0 }).collect();
        let mask = TensorData::new::<f32, _>(mask, [1, 1, l, m]).convert_dtype(scores.dtype());
        scores = B::float_add(scores, B::float_from_data(mask, &device));
    }
    let mixture = B::softmax(scores, 3);
    (join::<B>(B::float_matmul(mixture.clone(), v)), mixture)
}

/// [`Kernels::attend_backward`](crate::fused::Kernels)
pub(crate) fn attend_backward<B: Backend>(
    [q, k, v, mixture]: [FloatTensor<B>; 4],
    gradient: FloatTensor<B>,
    heads: Heads,
) -> [FloatTensor<B>; 3] {
    let transposed = |x: &FloatTensor<B>| B::float_swap_dims(x.clone(), 2, 3);
    let [q, k, v, gradient] = [q, k, v, gradient].map(|x| split::<B>(x, heads.count));
    let dv = B::float_matmul(transposed(&mixture), gradient.clone());
    let d_mixture = B::float_matmul(gradient, transposed(&v));
    // The softmax's gradient: p (g - sum p g).
    let weighted = B::float_mul(mixture.clone(), d_mixture);
    let total = B::float_sum_dim(weighted.clone(), 3);
    let d_scores = B::float_sub(weighted, B::float_mul(mixture, total));
    let dq = B::float_matmul(d_scores.clone(), k);
    let dk = B::float_matmul(transposed(&d_scores), q);
    [dq, dk, dv].map(join::<B>)
}

/// [`Kernels::normalise_forward`](crate::fused::Kernels)
pub(crate) fn normalise_forward<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    eps: f64,
) -> [FloatTensor<B>; 3] {
    let mean = B::float_mean_dim(x.clone(), 2);
    let centred = B::float_sub(x, mean);
    let variance = B::float_mean_dim(B::float_mul(centred.clone(), centred.clone()), 2);
    let factor = B::float_recip(B::float_sqrt(B::float_add_scalar(variance, eps.into())));
    let normalised = B::float_mul(centred, factor.clone());
    let output = B::float_add(B::float_mul(normalised.clone(), row::<B>(weight)), row::<B>(bias));
    [output, normalised, factor]
}

/// [`Kernels::normalise_backward`](crate::fused::Kernels)
pub(crate) fn normalise_backward<B: Backend>(
    normalised: FloatTensor<B>,
    factor: FloatTensor<B>,
    weight: FloatTensor<B>,
    gradient: FloatTensor<B>,
) -> [FloatTensor<B>; 3] {
    let d_weight = over_rows::<B>(B::float_mul(gradient.clone(), normalised.clone()));
    let d_bias = over_rows::<B>(gradient.clone());
    let scaled = B::float_mul(gradient, row::<B>(weight));
    let mean = B::float_mean_dim(scaled.clone(), 2);
    let along = B::float_mean_dim(B::float_mul(scaled.clone(), normalised.clone()), 2);
    let dx = B::float_sub(B::float_sub(scaled, mean), B::float_mul(normalised, along));
    [B::float_mul(dx, factor), d_weight, d_bias]
}

/// [batch, length, d] -> [batch, heads, length, d/heads]
fn split<B: Backend>(x: FloatTensor<B>, heads: usize) -> FloatTensor<B> {
    let shape = x.shape();
    let shape = Shape::new([shape[0], shape[1], heads, shape[2] / heads]);
    B::float_swap_dims(B::float_reshape(x, shape), 1, 2)
}

/// [batch, heads, length, d/heads] -> [batch, length, d]
fn join<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let shape = x.shape();
    let shape = Shape::new([shape[0], shape[2], shape[1] * shape[3]]);
    B::float_reshape(B::float_swap_dims(x, 1, 2), shape)
}

/// [d] -> [1, 1, d]
fn row<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let d = x.shape()[0];
    B::float_reshape(x, Shape::new([1, 1, d]))
}

/// The sum over all but the last dimension: [batch, length, d] -> [d]
fn over_rows<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let shape = x.shape();
    let (rows, d) = (shape[0] * shape[1], shape[2]);
    let sum = B::float_sum_dim(B::float_reshape(x, Shape::new([rows, d])), 0);
    B::float_reshape(sum, Shape::new([d]))
}
