//! LayerNorm over rows, forward and backward, one fused pass each.

use pudica_nn::LAYER_NORM_EPS;

use super::passes::{add, dot, total};
use super::real::Real;

/// 1 / sqrt(variance + eps)
#[inline(always)]
pub(crate) fn factor<T: Real>(variance: T) -> T {
    T::one() / (variance + T::of(LAYER_NORM_EPS)).sqrt()
}

/// Normalise one row in place and put weight * row + bias into `output`; gives the row's (biased) variance.
#[inline(always)]
pub(crate) fn normalise<T: Real>(row: &mut [T], weight: &[T], bias: &[T], output: &mut [T]) -> T {
    let d = row.len();
    let count = T::of(d as f64);
    let mean = total(row) / count;
    for x in row.iter_mut() {
        *x -= mean;
    }
    let variance = dot(row, row) / count;
    let factor = factor(variance);
    let (weight, bias, output) = (&weight[..d], &bias[..d], &mut output[..d]);
    for i in 0..d {
        row[i] *= factor;
        output[i] = row[i] * weight[i] + bias[i];
    }
    variance
}

/// The gradient of one row, in place, from that of its output; `normalised` and `variance` are what [`normalise`] left.
/// Adds to the gradients of weight, bias, and of a bias that was added to the row before.
#[inline(always)]
pub(crate) fn normalise_backward<T: Real>(
    gradient: &mut [T],
    normalised: &[T],
    variance: T,
    weight: &[T],
    [d_weight, d_bias, d_earlier_bias]: [&mut [T]; 3],
) {
    let d = gradient.len();
    let (normalised, weight) = (&normalised[..d], &weight[..d]);
    let (d_weight, d_bias) = (&mut d_weight[..d], &mut d_bias[..d]);
    for i in 0..d {
        let g = gradient[i];
        d_weight[i] += g * normalised[i];
        d_bias[i] += g;
        gradient[i] = g * weight[i];
    }
    let count = T::of(d as f64);
    let (mean, along, factor) = (total(gradient) / count, dot(gradient, normalised) / count, factor(variance));
    for i in 0..d {
        gradient[i] = factor * (gradient[i] - mean - normalised[i] * along);
    }
    add(d_earlier_bias, gradient);
}
