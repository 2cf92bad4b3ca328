//! The second half of the first layer where `linear1` comes from tables ([`super::folding`]): otherwise [`super::second_half`].
//!
//! Given a row r of the attention's output and z = r A: y1 = norm1(r), hidden = relu(s (z - m a) + c), y2 = norm2(y1 + linear2 hidden).

use super::folding::Folding;
use super::layout::{LayerAt, Layout, parts};
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::norm::{factor, normalise};
use super::passes::{add, add_columns, dot, total};
use super::prepared::Ready;
use super::real::Real;
use super::second_half::{add_and_normalise_rows, normalise_rows_backward};
use super::tables::TableGradient;
use super::wide::wide;

/// What it keeps of a block of `rows` rows.
pub(crate) struct FoldedHalf<T> {
    /// In: rows of r and z [rows, d + ff]. Then r normalised, and hidden.
    pub(crate) input: Vec<T>,
    /// [rows]
    mean1: Vec<T>,
    /// [rows]
    pub(crate) variance1: Vec<T>,
    /// [rows, d]
    y1: Vec<T>,
    /// The second norm's input, normalised [rows, d].
    normalised2: Vec<T>,
    /// [rows]
    pub(crate) variance2: Vec<T>,
    /// Out [rows, d].
    pub(crate) output: Vec<T>,
    /// The gradient of `input` [rows, d + ff].
    pub(crate) d_input: Vec<T>,
}

impl<T: Real> FoldedHalf<T> {
    pub(crate) fn new(layout: &Layout, rows: usize) -> Self {
        let zeros = |columns: usize| vec![T::zero(); rows * columns];
        let Layout { d, ff, .. } = *layout;
        Self {
            input: zeros(d + ff),
            mean1: zeros(1),
            variance1: zeros(1),
            y1: zeros(d),
            normalised2: zeros(d),
            variance2: zeros(1),
            output: zeros(d),
            d_input: zeros(d + ff),
        }
    }

    /// From `input` to `output`, the first `rows` rows.
    pub(crate) fn forward(&mut self, ready: &Ready<T>, at: &LayerAt, rows: usize) {
        let folding = folding(ready);
        let Layout { d, ff, .. } = *ready.layout;
        let (input, y1) = (&mut self.input[..rows * (d + ff)], &mut self.y1[..rows * d]);
        let norm1 = [&at.norm1_weight, &at.norm1_bias].map(|range| ready.of(range));
        finish_rows(input, norm1, folding, y1, &mut self.mean1, &mut self.variance1);
        let hidden = Matrix::with_step(&input[d..], rows, ff, d + ff);
        let sum = &mut self.normalised2[..rows * d];
        let linear2 = ready.transposed(&at.linear2_weight);
        multiply(MatrixMut::new(sum, rows, d), hidden, Matrix::new(linear2, ff, d));
        let bias2 = ready.of(&at.linear2_bias);
        let (weight, bias) = (ready.of(&at.norm2_weight), ready.of(&at.norm2_bias));
        add_and_normalise_rows(sum, bias2, y1, weight, bias, &mut self.output, &mut self.variance2);
    }

    /// From the gradient of `output`, flow [rows, d], which is used up, to `d_input`; adds to the gradient of the parameters and of
    /// the folding.
    pub(crate) fn backward(
        &mut self,
        ready: &Ready<T>,
        at: &LayerAt,
        flow: &mut [T],
        gradient: &mut [T],
        tables: &mut TableGradient<T>,
    ) {
        let folding = folding(ready);
        let Layout { d, ff, .. } = *ready.layout;
        let rows = flow.len() / d;
        let [d_weight, d_bias, d_bias2] = parts(gradient, [&at.norm2_weight, &at.norm2_bias, &at.linear2_bias]);
        let weight = ready.of(&at.norm2_weight);
        normalise_rows_backward(flow, &self.normalised2, &self.variance2, weight, d_weight, d_bias, d_bias2);
        let flowing = Matrix::new(flow, rows, d);
        let d_hidden = MatrixMut::with_step(&mut self.d_input[d..], rows, ff, d + ff);
        multiply(d_hidden, flowing, Matrix::new(ready.of(&at.linear2_weight), d, ff));
        let hidden = Matrix::with_step(&self.input[d..], rows, ff, d + ff);
        let d_linear2 = MatrixMut::new(&mut gradient[at.linear2_weight.clone()], d, ff);
        multiply_add(d_linear2, flowing.transposed(), hidden);
        let norm1 = parts(gradient, [&at.norm1_weight, &at.norm1_bias, &at.out_bias]);
        let kept = Kept { rows: &self.input, means: &self.mean1, variances: &self.variance1 };
        let weight = ready.of(&at.norm1_weight);
        finish_rows_backward(flow, &mut self.d_input, kept, weight, folding, norm1, tables);
    }
}

fn folding<'a, T>(ready: &Ready<'a, T>) -> &'a Folding<T> {
    let Some(folding) = &ready.prepared.tables.folding else {
        unreachable!("a folded half is made only with a folding")
    };
    folding
}

wide! {
    /// rows [rows, d + ff] of r and z -> r normalised and hidden, in place; y [rows, d] = weight r + bias; means and variances [rows].
    fn finish_rows<T: Real>(
        rows: &mut [T],
        norm1: [&[T]; 2],
        folding: &Folding<T>,
        y: &mut [T],
        means: &mut [T],
        variances: &mut [T],
    ) {
        let [weight, bias] = norm1;
        let (d, ff) = (weight.len(), folding.column.len());
        let (column, constant) = (&folding.column[..ff], &folding.constant[..ff]);
        let numbers = means.iter_mut().zip(variances);
        for ((row, y), (m, variance)) in rows.chunks_exact_mut(d + ff).zip(y.chunks_exact_mut(d)).zip(numbers) {
            let (r, z) = row.split_at_mut(d);
            let mean = total(r) / T::of(d as f64);
            *m = mean;
            *variance = normalise(r, weight, bias, y);
            let (factor, z) = (factor(*variance), &mut z[..ff]);
            for f in 0..ff {
                let sum = factor * (z[f] - mean * column[f]) + constant[f];
                // Not `max`: NaN must stay NaN.
                z[f] = if sum < T::zero() { T::zero() } else { sum };
            }
        }
    }
}

/// What [`finish_rows`] left.
struct Kept<'a, T> {
    rows: &'a [T],
    means: &'a [T],
    variances: &'a [T],
}

wide! {
    /// The gradients of [`finish_rows`]. `flow` [rows, d] is that of y; d_rows [rows, d + ff] has that of hidden in its last ff
    /// columns and is overwritten. Adds to those of the norm's weight and bias, of the output projection's bias, of a and c.
    ///
    /// The norm sees the gradient g w + A h for g of y and h of hidden. Only its mean and its part along the normalised row need
    /// A h, and those are a h and h (hidden - c), since only h where hidden > 0 is left. What A h adds to r itself comes through
    /// z, by the tables.
    fn finish_rows_backward<T: Real>(
        flow: &[T],
        d_rows: &mut [T],
        kept: Kept<T>,
        weight: &[T],
        folding: &Folding<T>,
        norm1: [&mut [T]; 3],
        tables: &mut TableGradient<T>,
    ) {
        /// Rows that stay in the innermost cache between the passes over them.
        const FEW: usize = 8;
        let (d, ff) = (weight.len(), folding.column.len());
        let [d_weight, d_bias, d_out_bias] = norm1;
        let (column, constant) = (&folding.column[..ff], &folding.constant[..ff]);
        let (d_column, d_constant) = (&mut tables.column[..ff], &mut tables.constant[..ff]);
        let count = T::of(d as f64);
        for (group, flow) in flow.chunks(FEW * d).enumerate() {
            let at = group * FEW;
            add_columns(flow, d_bias, &kept.rows[at * (d + ff)..], d + ff, d_weight);
            for (i, g) in flow.chunks_exact(d).enumerate() {
                let own = (at + i) * (d + ff)..(at + i + 1) * (d + ff);
                let (normalised, hidden) = kept.rows[own.clone()].split_at(d);
                let (d_r, h) = d_rows[own].split_at_mut(d);
                let (hidden, h) = (&hidden[..ff], &mut h[..ff]);
                let (mean, factor) = (kept.means[at + i], factor(kept.variances[at + i]));
                for f in 0..ff {
                    h[f] = if hidden[f] > T::zero() { h[f] } else { T::zero() };
                }
                for k in 0..d {
                    d_r[k] = g[k] * weight[k];
                }
                let level = (total(d_r) + dot(h, column)) / count;
                let along = (dot(d_r, normalised) + dot(h, hidden) - dot(h, constant)) / count;
                for k in 0..d {
                    d_r[k] = factor * (d_r[k] - level - normalised[k] * along);
                }
                add(d_out_bias, d_r);
                for f in 0..ff {
                    let d_z = factor * h[f];
                    d_constant[f] += h[f];
                    d_column[f] -= mean * d_z;
                    h[f] = d_z;
                }
            }
        }
    }
}
