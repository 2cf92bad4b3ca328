//! LayerNorm as plain loops for the CPU: one row at a time, blocks of rows on all cores.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use crate::cpu::{Real, Values, share, tensor, total, total_product};

/// Rows of a LayerNorm whose weight gradients are summed before they are added to the others'; fixed, so that the sum does not
/// depend on how many cores there are.
const ROWS_A_BLOCK: usize = 128;

/// The output, the normalised input [batch, length, d] and 1/sqrt(var + eps) [batch, length, 1].
pub(super) fn forward<T: Real>([x, weight, bias]: [&FlexTensor; 3], eps: f64) -> [FlexTensor; 3] {
    let shape = x.shape();
    let (batch, length, d) = (shape[0], shape[1], shape[2]);
    let (x, weight, bias) = (Values::of(x), Values::of(weight), Values::of(bias));
    let (x, weight, bias): (&[T], &[T], &[T]) = (x.get(), weight.get(), bias.get());
    let mut output = vec![T::zero(); batch * length * d];
    let mut normalised = vec![T::zero(); batch * length * d];
    let mut factors = vec![T::zero(); batch * length];
    let (eps, count) = (T::from_elem(eps), T::from_elem(d as f64));
    let blocks = (
        x.par_chunks(ROWS_A_BLOCK * d),
        output.par_chunks_mut(ROWS_A_BLOCK * d),
        normalised.par_chunks_mut(ROWS_A_BLOCK * d),
        factors.par_chunks_mut(ROWS_A_BLOCK),
    );
    share(
        8 * batch * length * d,
        blocks.into_par_iter(),
        #[inline(always)]
        |(x, output, normalised, factors)| {
            let rows =
                x.chunks_exact(d).zip(output.chunks_exact_mut(d)).zip(normalised.chunks_exact_mut(d)).zip(factors);
            for (((x, output), normalised), factor) in rows {
                let mean = total(x) / count;
                for (centred, x) in normalised.iter_mut().zip(x) {
                    *centred = *x - mean;
                }
                *factor = (total_product(normalised, normalised) / count + eps).sqrt().recip();
                for (((y, x), w), b) in output.iter_mut().zip(normalised).zip(weight).zip(bias) {
                    *x *= *factor;
                    *y = *x * *w + *b;
                }
            }
        },
    );
    [tensor(output, &[batch, length, d]), tensor(normalised, &[batch, length, d]), tensor(factors, &[batch, length, 1])]
}

/// The gradients of x, weight and bias.
pub(super) fn backward<T: Real>(
    [normalised, factors, weight]: [&FlexTensor; 3],
    gradient: &FlexTensor,
) -> [FlexTensor; 3] {
    let shape = gradient.shape();
    let (batch, length, d) = (shape[0], shape[1], shape[2]);
    let (normalised, factors) = (Values::of(normalised), Values::of(factors));
    let (normalised, factors): (&[T], &[T]) = (normalised.get(), factors.get());
    let (weight, gradient) = (Values::of(weight), Values::of(gradient));
    let (weight, gradient): (&[T], &[T]) = (weight.get(), gradient.get());
    let count = T::from_elem(d as f64);
    let mut dx = vec![T::zero(); batch * length * d];
    let blocks = (batch * length).div_ceil(ROWS_A_BLOCK);
    // For each block of rows its own sums of the weight's and of the bias's gradient.
    let mut sums = vec![T::zero(); blocks * 2 * d];
    let pieces = (
        dx.par_chunks_mut(ROWS_A_BLOCK * d),
        sums.par_chunks_mut(2 * d),
        normalised.par_chunks(ROWS_A_BLOCK * d),
        gradient.par_chunks(ROWS_A_BLOCK * d),
        factors.par_chunks(ROWS_A_BLOCK),
    );
    share(
        12 * batch * length * d,
        pieces.into_par_iter(),
        #[inline(always)]
        |(dx, sums, normalised, gradient, factors)| {
            let (d_weight, d_bias) = sums.split_at_mut(d);
            let rows = normalised.chunks_exact(d).zip(gradient.chunks_exact(d));
            for (((x, g), dx), factor) in rows.zip(dx.chunks_exact_mut(d)).zip(factors) {
                for i in 0..d {
                    d_weight[i] += g[i] * x[i];
                    d_bias[i] += g[i];
                    dx[i] = g[i] * weight[i];
                }
                let (mean, along) = (total(dx) / count, total_product(dx, x) / count);
                for (dx, x) in dx.iter_mut().zip(x) {
                    *dx = *factor * (*dx - mean - *x * along);
                }
            }
        },
    );
    let mut both = vec![T::zero(); 2 * d];
    for block in sums.chunks_exact(2 * d) {
        both.iter_mut().zip(block).for_each(|(sum, x)| *sum += *x);
    }
    let d_bias = both.split_off(d);
    [tensor(dx, &[batch, length, d]), tensor(both, &[d]), tensor(d_bias, &[d])]
}
