//! Attention of a layer that is neither first nor last: every position attends to every position, computed plainly.

use super::layout::{LayerAt, Layout};
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::passes::{add_bias, add_input_bias, scale_columns, softmax_rows, softmax_rows_backward};
use super::prepared::Ready;
use super::real::Real;

/// What it keeps of a block of strings.
pub(crate) struct MiddleAttention<T> {
    /// Scaled queries, keys, values [strings, n, 3 d].
    projected: Vec<T>,
    /// [strings, heads, n, n]
    shares: Vec<T>,
    /// All heads side by side [strings, n, d].
    joined: Vec<T>,
    /// Gradients of the same shapes; the shares' of one string and head only.
    d_projected: Vec<T>,
    d_shares: Vec<T>,
    d_joined: Vec<T>,
}

impl<T: Real> MiddleAttention<T> {
    pub(crate) fn new(layout: &Layout, strings: usize) -> Self {
        let Layout { n, d, heads, .. } = *layout;
        let zeros = |len: usize| vec![T::zero(); len];
        Self {
            projected: zeros(strings * n * 3 * d),
            shares: zeros(strings * heads * n * n),
            joined: zeros(strings * n * d),
            d_projected: zeros(strings * n * 3 * d),
            d_shares: zeros(n * n),
            d_joined: zeros(strings * n * d),
        }
    }

    /// x [strings, n, d] -> attention with the residual, output [strings, n, d].
    pub(crate) fn forward(&mut self, ready: &Ready<T>, at: &LayerAt, x: &[T], output: &mut [T]) {
        let Layout { n, d, heads, width, .. } = *ready.layout;
        let rows = x.len() / d;
        let projected = &mut self.projected[..rows * 3 * d];
        let in_turned = Matrix::new(ready.transposed(&at.in_weight), d, 3 * d);
        multiply(MatrixMut::new(projected, rows, 3 * d), Matrix::new(x, rows, d), in_turned);
        add_bias(projected, ready.of(&at.in_bias));
        scale_columns(projected, 3 * d, d, T::of(ready.layout.score_scale()));
        let strings = projected.chunks_exact(n * 3 * d).zip(self.joined.chunks_exact_mut(n * d));
        for ((projected, joined), shares) in strings.zip(self.shares.chunks_exact_mut(heads * n * n)) {
            for (head, shares) in shares.chunks_exact_mut(n * n).enumerate() {
                let [queries, keys, values] =
                    [0, d, 2 * d].map(|part| Matrix::with_step(&projected[part + head * width..], n, width, 3 * d));
                multiply(MatrixMut::new(shares, n, n), queries, keys.transposed());
                softmax_rows(shares, n);
                let joined = MatrixMut::with_step(&mut joined[head * width..], n, width, d);
                multiply(joined, Matrix::new(shares, n, n), values);
            }
        }
        let output = &mut output[..rows * d];
        output.copy_from_slice(x);
        add_bias(output, ready.of(&at.out_bias));
        let out = Matrix::new(ready.transposed(&at.out_weight), d, d);
        multiply_add(MatrixMut::new(output, rows, d), Matrix::new(&self.joined, rows, d), out);
    }

    /// From the gradient of the output to that of x, in place in flow [strings, n, d]; adds to the parameters' gradient (but for
    /// the output bias, which the norm after it sees to).
    pub(crate) fn backward(&mut self, ready: &Ready<T>, at: &LayerAt, x: &[T], flow: &mut [T], gradient: &mut [T]) {
        let Layout { n, d, heads, width, .. } = *ready.layout;
        let rows = flow.len() / d;
        let d_joined = &mut self.d_joined[..rows * d];
        let flowing = Matrix::new(flow, rows, d);
        let d_out = MatrixMut::new(&mut gradient[at.out_weight.clone()], d, d);
        multiply_add(d_out, flowing.transposed(), Matrix::new(&self.joined, rows, d));
        multiply(MatrixMut::new(d_joined, rows, d), flowing, Matrix::new(ready.of(&at.out_weight), d, d));

        let d_projected = &mut self.d_projected[..rows * 3 * d];
        let strings = self.projected.chunks_exact(n * 3 * d).zip(d_projected.chunks_exact_mut(n * 3 * d));
        let strings = strings.zip(d_joined.chunks_exact(n * d)).zip(self.shares.chunks_exact(heads * n * n));
        for (((projected, d_projected), d_joined), shares) in strings {
            for (head, shares) in shares.chunks_exact(n * n).enumerate() {
                let [queries, keys, values] =
                    [0, d, 2 * d].map(|part| Matrix::with_step(&projected[part + head * width..], n, width, 3 * d));
                let d_joined = Matrix::with_step(&d_joined[head * width..], n, width, d);
                multiply(MatrixMut::new(&mut self.d_shares, n, n), d_joined, values.transposed());
                softmax_rows_backward(&mut self.d_shares, shares, n);
                let d_scores = Matrix::new(&self.d_shares, n, n);
                let mut part = |part: usize, a, b| {
                    multiply(MatrixMut::with_step(&mut d_projected[part + head * width..], n, width, 3 * d), a, b);
                };
                part(0, d_scores, keys);
                part(d, d_scores.transposed(), queries);
                part(2 * d, Matrix::new(shares, n, n).transposed(), d_joined);
            }
        }
        scale_columns(d_projected, 3 * d, d, T::of(ready.layout.score_scale()));
        add_input_bias(&mut gradient[at.in_bias.clone()], d_projected);
        let d_projected = Matrix::new(d_projected, rows, 3 * d);
        let d_in = MatrixMut::new(&mut gradient[at.in_weight.clone()], 3 * d, d);
        multiply_add(d_in, d_projected.transposed(), Matrix::new(x, rows, d));
        let in_weight = Matrix::new(ready.of(&at.in_weight), 3 * d, d);
        multiply_add(MatrixMut::new(flow, rows, d), d_projected, in_weight);
    }
}
