//! The second half of a layer, the same in all of them: norm, feed-forward, norm.
//!
//! x -> y1 = norm1(x), hidden = relu(linear1 y1), y2 = norm2(y1 + linear2 hidden).

use super::layout::{LayerAt, Layout, parts};
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::norm::{normalise, normalise_backward};
use super::passes::{add_column_sums, add_columns};
use super::prepared::Ready;
use super::real::Real;
use super::wide::wide;

/// What the second half keeps of a block of `rows` rows.
pub(crate) struct SecondHalf<T> {
    /// In: the attention's output with the residual [rows, d]. Then the same, normalised.
    pub(crate) input: Vec<T>,
    /// [rows]
    pub(crate) variance1: Vec<T>,
    /// [rows, d]
    y1: Vec<T>,
    /// [rows, ff]
    hidden: Vec<T>,
    /// The second norm's input, normalised [rows, d].
    normalised2: Vec<T>,
    /// [rows]
    pub(crate) variance2: Vec<T>,
    /// Out [rows, d].
    pub(crate) output: Vec<T>,
}

impl<T: Real> SecondHalf<T> {
    pub(crate) fn new(layout: &Layout, rows: usize) -> Self {
        let zeros = |columns: usize| vec![T::zero(); rows * columns];
        let Layout { d, ff, .. } = *layout;
        Self {
            input: zeros(d),
            variance1: zeros(1),
            y1: zeros(d),
            hidden: zeros(ff),
            normalised2: zeros(d),
            variance2: zeros(1),
            output: zeros(d),
        }
    }

    /// From `input` to `output`, the first `rows` rows.
    pub(crate) fn forward(&mut self, ready: &Ready<T>, at: &LayerAt, rows: usize) {
        let Layout { d, ff, .. } = *ready.layout;
        let (y1, hidden) = (&mut self.y1[..rows * d], &mut self.hidden[..rows * ff]);
        let (weight, bias) = (ready.of(&at.norm1_weight), ready.of(&at.norm1_bias));
        normalise_rows(&mut self.input[..rows * d], weight, bias, y1, &mut self.variance1);
        let linear1 = ready.transposed(&at.linear1_weight);
        multiply(MatrixMut::new(hidden, rows, ff), Matrix::new(y1, rows, d), Matrix::new(linear1, d, ff));
        add_bias_and_rectify(hidden, ready.of(&at.linear1_bias));
        let sum = &mut self.normalised2[..rows * d];
        let linear2 = ready.transposed(&at.linear2_weight);
        multiply(MatrixMut::new(sum, rows, d), Matrix::new(hidden, rows, ff), Matrix::new(linear2, ff, d));
        let bias2 = ready.of(&at.linear2_bias);
        let (weight, bias) = (ready.of(&at.norm2_weight), ready.of(&at.norm2_bias));
        add_and_normalise_rows(sum, bias2, y1, weight, bias, &mut self.output, &mut self.variance2);
    }

    /// From the gradient of `output` to that of `input`, in place in `flow` [rows, d]; adds to the parameters' gradient.
    /// `d_hidden` [rows, ff] is overwritten.
    pub(crate) fn backward(
        &self,
        ready: &Ready<T>,
        at: &LayerAt,
        flow: &mut [T],
        d_hidden: &mut [T],
        gradient: &mut [T],
    ) {
        let Layout { d, ff, .. } = *ready.layout;
        let rows = flow.len() / d;
        let (y1, hidden, d_hidden) = (&self.y1[..rows * d], &self.hidden[..rows * ff], &mut d_hidden[..rows * ff]);
        let [d_weight, d_bias, d_bias2] = parts(gradient, [&at.norm2_weight, &at.norm2_bias, &at.linear2_bias]);
        let weight = ready.of(&at.norm2_weight);
        normalise_rows_backward(flow, &self.normalised2, &self.variance2, weight, d_weight, d_bias, d_bias2);
        let linear2 = Matrix::new(ready.of(&at.linear2_weight), d, ff);
        multiply(MatrixMut::new(d_hidden, rows, ff), Matrix::new(flow, rows, d), linear2);
        let d_linear2 = MatrixMut::new(&mut gradient[at.linear2_weight.clone()], d, ff);
        multiply_add(d_linear2, Matrix::new(flow, rows, d).transposed(), Matrix::new(hidden, rows, ff));
        rectify_backward(d_hidden, hidden, &mut gradient[at.linear1_bias.clone()]);
        let d_linear1 = MatrixMut::new(&mut gradient[at.linear1_weight.clone()], ff, d);
        multiply_add(d_linear1, Matrix::new(d_hidden, rows, ff).transposed(), Matrix::new(y1, rows, d));
        let linear1 = Matrix::new(ready.of(&at.linear1_weight), ff, d);
        multiply_add(MatrixMut::new(flow, rows, d), Matrix::new(d_hidden, rows, ff), linear1);
        let [d_weight, d_bias, d_out_bias] = parts(gradient, [&at.norm1_weight, &at.norm1_bias, &at.out_bias]);
        let weight = ready.of(&at.norm1_weight);
        normalise_rows_backward(flow, &self.input, &self.variance1, weight, d_weight, d_bias, d_out_bias);
    }
}

wide! {
    /// x [rows, d], normalised in place; y [rows, d] = weight x + bias; variances [rows].
    fn normalise_rows<T: Real>(x: &mut [T], weight: &[T], bias: &[T], y: &mut [T], variances: &mut [T]) {
        let d = weight.len();
        for ((x, y), variance) in x.chunks_exact_mut(d).zip(y.chunks_exact_mut(d)).zip(variances) {
            *variance = normalise(x, weight, bias, y);
        }
    }
}

wide! {
    /// [`normalise_rows`] of x + earlier_bias + residual.
    pub(crate) fn add_and_normalise_rows<T: Real>(
        x: &mut [T],
        earlier_bias: &[T],
        residual: &[T],
        weight: &[T],
        bias: &[T],
        y: &mut [T],
        variances: &mut [T],
    ) {
        let d = weight.len();
        let rows = x.chunks_exact_mut(d).zip(residual.chunks_exact(d)).zip(y.chunks_exact_mut(d));
        for (((x, residual), y), variance) in rows.zip(variances) {
            for ((x, b), r) in x.iter_mut().zip(earlier_bias).zip(residual) {
                *x += *b + *r;
            }
            *variance = normalise(x, weight, bias, y);
        }
    }
}

wide! {
    /// The gradient of [`normalise_rows`], in place; adds to those of weight, bias and earlier bias.
    pub(crate) fn normalise_rows_backward<T: Real>(
        flow: &mut [T],
        normalised: &[T],
        variances: &[T],
        weight: &[T],
        d_weight: &mut [T],
        d_bias: &mut [T],
        d_earlier_bias: &mut [T],
    ) {
        /// Rows that stay in the innermost cache between the passes over them.
        const FEW: usize = 8;
        let d = weight.len();
        let groups = flow.chunks_mut(FEW * d).zip(normalised.chunks(FEW * d)).zip(variances.chunks(FEW));
        for ((flow, normalised), variances) in groups {
            add_columns(flow, d_bias, normalised, d, d_weight);
            for ((g, x), variance) in flow.chunks_exact_mut(d).zip(normalised.chunks_exact(d)).zip(variances) {
                normalise_backward(g, x, *variance, weight);
            }
            add_column_sums(flow, d_earlier_bias);
        }
    }
}

wide! {
    /// x [rows, ff] -> relu(x + bias)
    fn add_bias_and_rectify<T: Real>(x: &mut [T], bias: &[T]) {
        for x in x.chunks_exact_mut(bias.len()) {
            for (x, b) in x.iter_mut().zip(bias) {
                let sum = *x + *b;
                // Not `max`: NaN must stay NaN.
                *x = if sum < T::zero() { T::zero() } else { sum };
            }
        }
    }
}

wide! {
    /// The gradient of [`add_bias_and_rectify`], in place; `hidden` is what it gave. Adds to that of the bias.
    fn rectify_backward<T: Real>(flow: &mut [T], hidden: &[T], d_bias: &mut [T]) {
        let ff = d_bias.len();
        for (g, x) in flow.chunks_exact_mut(ff).zip(hidden.chunks_exact(ff)) {
            for ((g, x), d_bias) in g.iter_mut().zip(x).zip(d_bias.iter_mut()) {
                let passed = if *x > T::zero() { *g } else { T::zero() };
                *g = passed;
                *d_bias += passed;
            }
        }
    }
}
