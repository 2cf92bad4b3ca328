//! LayerNorm over rows, forward and backward, one fused pass each.

use pudica_nn::LAYER_NORM_EPS;

use super::passes::{dot, squares_about, total};
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
    let variance = squares_about(row, mean) / count;
    let factor = factor(variance);
    let (weight, bias, output) = (&weight[..d], &bias[..d], &mut output[..d]);
    for i in 0..d {
        row[i] = (row[i] - mean) * factor;
        output[i] = row[i] * weight[i] + bias[i];
    }
    variance
}

/// The gradient of one row, in place, from that of its output; `normalised` and `variance` are what [`normalise`] left.
#[inline(always)]
pub(crate) fn normalise_backward<T: Real>(gradient: &mut [T], normalised: &[T], variance: T, weight: &[T]) {
    let d = gradient.len();
    let count = T::of(d as f64);
    let (normalised, weight) = (&normalised[..d], &weight[..d]);
    for i in 0..d {
        gradient[i] *= weight[i];
    }
    let (mean, along, factor) = (total(gradient) / count, dot(gradient, normalised) / count, factor(variance));
    for i in 0..d {
        gradient[i] = factor * (gradient[i] - mean - normalised[i] * along);
    }
}
