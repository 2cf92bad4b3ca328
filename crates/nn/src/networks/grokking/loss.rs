//! Cross-entropy that stays exact when a network is very sure.

use burn::tensor::Tensor;

/// The cross-entropy of scores [R, pairs, p] at one-hot results [R, pairs, p]: [R, pairs, 1].
///
/// Grokking goes on long after the loss is below 1e-7, where f32's log-softmax can only be 0 or a multiple of 1.2e-7 and its gradient is
/// rounding noise. With s the sum of exp(score - right score) over the wrong classes, the loss is log(1 + s): no digits are lost. M, the
/// largest exponent if above 0, keeps it finite: log(1 + s) = M + log(1 + (exp(-M) - 1) + s exp(-M)), whatever M is.
pub(super) fn cross_entropy(scores: Tensor<3>, results: &Tensor<3>) -> Tensor<3> {
    let right = (scores.clone() * results.clone()).sum_dim(2);
    let wrong = (scores - right).mask_fill(results.clone().greater_elem(0.5), f32::NEG_INFINITY);
    let largest = wrong.clone().detach().max_dim(2).clamp_min(0.0);
    let sum = (wrong - largest.clone()).exp().sum_dim(2);
    largest.clone() + (sum + largest.neg().exp().sub_scalar(1.0)).log1p()
}
