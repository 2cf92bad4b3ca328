//! The second half of a layer, the same in all of them: norm, feed-forward, norm.
//!
//! x -> y1 = norm1(x), hidden = relu(linear1 y1), y2 = norm2(y1 + linear2 hidden).

use super::layout::{LayerAt, Layout, parts};
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::norm::{normalise, normalise_backward};
use super::passes::{add, wide};
use super::prepared::Ready;
use super::real::Real;

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
        wide(|| {
            let rows = self.input.chunks_exact_mut(d).zip(y1.chunks_exact_mut(d)).zip(&mut self.variance1);
            for ((x, y), variance) in rows {
                *variance = normalise(x, weight, bias, y);
            }
        });
        let linear1 = ready.transposed(&at.linear1_weight);
        multiply(MatrixMut::new(hidden, rows, ff), Matrix::new(y1, rows, d), Matrix::new(linear1, d, ff));
        let bias1 = ready.of(&at.linear1_bias);
        wide(|| {
            for hidden in hidden.chunks_exact_mut(ff) {
                for (x, b) in hidden.iter_mut().zip(bias1) {
                    let sum = *x + *b;
                    // Not `max`: NaN must stay NaN.
                    *x = if sum < T::zero() { T::zero() } else { sum };
                }
            }
        });
        let sum = &mut self.normalised2[..rows * d];
        let linear2 = ready.transposed(&at.linear2_weight);
        multiply(MatrixMut::new(sum, rows, d), Matrix::new(hidden, rows, ff), Matrix::new(linear2, ff, d));
        let bias2 = ready.of(&at.linear2_bias);
        let (weight, bias) = (ready.of(&at.norm2_weight), ready.of(&at.norm2_bias));
        wide(|| {
            let rows = sum.chunks_exact_mut(d).zip(y1.chunks_exact(d)).zip(self.output.chunks_exact_mut(d));
            for (((x, y1), y), variance) in rows.zip(&mut self.variance2) {
                add(x, bias2);
                add(x, y1);
                *variance = normalise(x, weight, bias, y);
            }
        });
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
        let weight = ready.of(&at.norm2_weight);
        wide(|| {
            let [d_weight, d_bias, d_bias2] = parts(gradient, [&at.norm2_weight, &at.norm2_bias, &at.linear2_bias]);
            let rows = flow.chunks_exact_mut(d).zip(self.normalised2.chunks_exact(d)).zip(&self.variance2);
            for ((g, x), variance) in rows {
                normalise_backward(g, x, *variance, weight, [&mut *d_weight, &mut *d_bias, &mut *d_bias2]);
            }
        });
        let linear2 = Matrix::new(ready.of(&at.linear2_weight), d, ff);
        multiply(MatrixMut::new(d_hidden, rows, ff), Matrix::new(flow, rows, d), linear2);
        let d_linear2 = MatrixMut::new(&mut gradient[at.linear2_weight.clone()], d, ff);
        multiply_add(d_linear2, Matrix::new(flow, rows, d).transposed(), Matrix::new(hidden, rows, ff));
        wide(|| {
            let d_bias1 = &mut gradient[at.linear1_bias.clone()];
            for (g, x) in d_hidden.chunks_exact_mut(ff).zip(hidden.chunks_exact(ff)) {
                for (g, x) in g.iter_mut().zip(x) {
                    *g = if *x > T::zero() { *g } else { T::zero() };
                }
                add(d_bias1, g);
            }
        });
        let d_linear1 = MatrixMut::new(&mut gradient[at.linear1_weight.clone()], ff, d);
        multiply_add(d_linear1, Matrix::new(d_hidden, rows, ff).transposed(), Matrix::new(y1, rows, d));
        let linear1 = Matrix::new(ready.of(&at.linear1_weight), ff, d);
        multiply_add(MatrixMut::new(flow, rows, d), Matrix::new(d_hidden, rows, ff), linear1);
        let weight = ready.of(&at.norm1_weight);
        wide(|| {
            let [d_weight, d_bias, d_out_bias] = parts(gradient, [&at.norm1_weight, &at.norm1_bias, &at.out_bias]);
            let rows = flow.chunks_exact_mut(d).zip(self.input.chunks_exact(d)).zip(&self.variance1);
            for ((g, x), variance) in rows {
                normalise_backward(g, x, *variance, weight, [&mut *d_weight, &mut *d_bias, &mut *d_out_bias]);
            }
        });
    }
}
