//! The first layer's `linear1` through the norm before it, by tables.
//!
//! A row r of the attention's output is a mix of table rows. Its norm is linear but for two numbers of the row, its mean m and its
//! factor s: y = s (r - m) w + b. So linear1 y + bias = s (r A - m a) + c with A = diag(w) W^T, a = the column sums of A and
//! c = W b + bias; and r A is the same mix of the table rows times A. Where a row is mixed from fewer table rows than it is
//! wide, mixing costs less than multiplying by A, forward and backward.

use super::layout::{Layout, parts};
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::passes::{add, add_bias, add_rows, dot, mix};
use super::real::Real;

/// A, a and c.
pub(crate) struct Folding<T> {
    /// A [d, ff]
    matrix: Vec<T>,
    /// a [ff]
    pub(crate) column: Vec<T>,
    /// c [ff]
    pub(crate) constant: Vec<T>,
    /// Table rows through A [1 + heads, 2n, ff].
    products: Vec<T>,
}

/// Room for [`Folding::backward`].
pub(crate) struct FoldingScratch<T> {
    /// [d, ff]
    d_matrix: Vec<T>,
    /// [1 + heads, 2n, ff]
    d_products: Vec<T>,
    /// [ff]
    sums: Vec<T>,
}

impl<T: Real> FoldingScratch<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        let Layout { n, d, heads, ff, .. } = *layout;
        let zeros = |len: usize| vec![T::zero(); len];
        Self { d_matrix: zeros(d * ff), d_products: zeros((1 + heads) * 2 * n * ff), sums: zeros(ff) }
    }
}

impl<T: Real> Folding<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        let Layout { n, d, heads, ff, .. } = *layout;
        let zeros = |len: usize| vec![T::zero(); len];
        Self {
            matrix: zeros(d * ff),
            column: zeros(ff),
            constant: zeros(ff),
            products: zeros((1 + heads) * 2 * n * ff),
        }
    }

    /// Compute A, a and c, and put the table rows [1 + heads, 2n, d] beside their products with A: wide rows
    /// [1 + heads, 2n, d + ff]. `linear1` [d, ff] is transposed.
    pub(crate) fn fill(&mut self, layout: &Layout, parameters: &[T], linear1: &[T], rows: &[T], wide_rows: &mut [T]) {
        let Layout { d, ff, .. } = *layout;
        let at = &layout.layers[0];
        let (weight, bias) = (&parameters[at.norm1_weight.clone()], &parameters[at.norm1_bias.clone()]);
        for ((to, from), w) in self.matrix.chunks_exact_mut(ff).zip(linear1.chunks_exact(ff)).zip(weight) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *w * *from);
        }
        self.column.fill(T::zero());
        add_rows(&mut self.column, &self.matrix);
        mix(&mut self.constant, bias, linear1);
        add(&mut self.constant, &parameters[at.linear1_bias.clone()]);
        let count = rows.len() / d;
        let products = MatrixMut::new(&mut self.products, count, ff);
        multiply(products, Matrix::new(rows, count, d), Matrix::new(&self.matrix, d, ff));
        let both = rows.chunks_exact(d).zip(self.products.chunks_exact(ff));
        for (wide, (row, product)) in wide_rows.chunks_exact_mut(d + ff).zip(both) {
            wide[..d].copy_from_slice(row);
            wide[d..].copy_from_slice(product);
        }
    }

    /// From the tables' gradient to that of the table rows, d_rows [1 + heads, 2n, d], and of the parameters, added to.
    pub(crate) fn backward(
        &self,
        layout: &Layout,
        (parameters, linear1): (&[T], &[T]),
        rows: &[T],
        tables: &super::tables::TableGradient<T>,
        (d_rows, scratch): (&mut [T], &mut FoldingScratch<T>),
        gradient: &mut [T],
    ) {
        let Layout { n, d, ff, .. } = *layout;
        let at = &layout.layers[0];
        let FoldingScratch { d_matrix, d_products, sums } = scratch;
        let both = d_rows.chunks_exact_mut(d).zip(d_products.chunks_exact_mut(ff));
        for (wide, (row, product)) in tables.wide_rows.chunks_exact(d + ff).zip(both) {
            row.copy_from_slice(&wide[..d]);
            product.copy_from_slice(&wide[d..]);
        }
        let count = rows.len() / d;
        let (of_rows, of_products) = (Matrix::new(rows, count, d), Matrix::new(d_products, count, ff));
        multiply(MatrixMut::new(d_matrix, d, ff), of_rows.transposed(), of_products);
        add_bias(d_matrix, &tables.column);
        let matrix = Matrix::new(&self.matrix, d, ff);
        multiply_add(MatrixMut::new(d_rows, count, d), of_products, matrix.transposed());

        // The output projection's bias is in the first 2n rows.
        sums.fill(T::zero());
        add_rows(sums, &d_products[..2 * n * ff]);
        let [d_weight, d_bias, d_out_bias, d_linear1, d_linear1_bias] =
            parts(gradient, [&at.norm1_weight, &at.norm1_bias, &at.out_bias, &at.linear1_weight, &at.linear1_bias]);
        let (weight, bias) = (&parameters[at.norm1_weight.clone()], &parameters[at.norm1_bias.clone()]);
        for k in 0..d {
            let [own, d_own, turned] = [&self.matrix, &*d_matrix, linear1].map(|matrix| &matrix[k * ff..][..ff]);
            d_out_bias[k] += dot(own, sums);
            d_weight[k] += dot(d_own, turned);
            d_bias[k] += dot(&tables.constant, turned);
            for (f, (d_own, d_constant)) in d_own.iter().zip(&tables.constant).enumerate() {
                d_linear1[f * d + k] += *d_own * weight[k] + *d_constant * bias[k];
            }
        }
        add(d_linear1_bias, &tables.constant);
    }
}
