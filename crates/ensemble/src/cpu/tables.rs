//! The first layer's attention on all 2n distinct tokens.
//!
//! Token t = x n + j is bit x at position j. Queries, keys and values of a token, the score of a pair of tokens, and what a
//! token's value adds to the output (its value through the output projection) do not depend on the string they stand in.

use pudica_nn::Embed;

use super::folding::{Folding, FoldingScratch};
use super::layout::{Layout, parts};
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::passes::{add, add_all, add_bias, add_input_bias, largest, scale_columns, transpose};
use super::real::Real;
use super::wide::wide;

/// The tables.
pub(crate) struct Tables<T> {
    /// Embedded tokens [2n, d].
    embedded: Vec<T>,
    /// Scaled queries, keys, values [2n, 3 d].
    projected: Vec<T>,
    /// Scores [heads, 2n queries, 2 bits, padded n keys]; see [`padded`].
    pub(crate) scores: Vec<T>,
    /// e^(score - largest of its row [2, n]), in the same order; zero in the padding.
    pub(crate) exponentials: Vec<T>,
    /// What a row of the output starts from and is mixed from, of the tokens [1 + heads, 2n, d]: their embeddings plus the output
    /// projection's bias, then for each head their values through the output projection.
    rows: Vec<T>,
    /// The same, each row followed by what it is through `linear1` where that is folded in [1 + heads, 2n, table width].
    pub(crate) wide_rows: Vec<T>,
    /// The heads' wide rows transposed [table width, heads, 2 bits, padded n].
    pub(crate) turned: Vec<T>,
    /// Where `linear1` is folded in.
    pub(crate) folding: Option<Folding<T>>,
}

/// Numbers that are worked on at once in rows of a score table.
pub(crate) const LANES: usize = 16;

/// The length of a row of n numbers that is padded to whole vectors.
pub(crate) fn padded(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

/// The gradient of the tables that strings are looked up in.
pub(crate) struct TableGradient<T> {
    /// [heads, 2n, 2, padded n]
    pub(crate) scores: Vec<T>,
    /// [1 + heads, 2n, table width]
    pub(crate) wide_rows: Vec<T>,
    /// Of [`Folding`]'s column and constant [ff]; empty where nothing is folded.
    pub(crate) column: Vec<T>,
    pub(crate) constant: Vec<T>,
}

impl<T: Real> Tables<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        let Layout { n, d, heads, .. } = *layout;
        let zeros = |len: usize| vec![T::zero(); len];
        Self {
            embedded: zeros(2 * n * d),
            projected: zeros(2 * n * 3 * d),
            scores: zeros(heads * 2 * n * 2 * padded(n)),
            exponentials: zeros(heads * 2 * n * 2 * padded(n)),
            rows: zeros((1 + heads) * 2 * n * d),
            wide_rows: zeros((1 + heads) * 2 * n * layout.table_width()),
            turned: zeros(layout.table_width() * heads * 2 * padded(n)),
            folding: layout.folds_linear1().then(|| Folding::new(layout)),
        }
    }

    /// Compute them from the parameters; `linear1` [d, ff] is the first layer's, transposed.
    pub(crate) fn fill(&mut self, layout: &Layout, parameters: &[T], linear1: &[T]) {
        let Layout { n, d, heads, width, .. } = *layout;
        let (tokens, at) = (2 * n, &layout.layers[0]);
        self.embed(layout, parameters);
        let residual = &mut self.rows[..tokens * d];
        residual.copy_from_slice(&self.embedded);
        add_bias(residual, &parameters[at.out_bias.clone()]);
        let in_weight = Matrix::new(&parameters[at.in_weight.clone()], 3 * d, d).transposed();
        let projected = MatrixMut::new(&mut self.projected, tokens, 3 * d);
        multiply(projected, Matrix::new(&self.embedded, tokens, d), in_weight);
        add_bias(&mut self.projected, &parameters[at.in_bias.clone()]);
        scale_columns(&mut self.projected, 3 * d, d, T::of(layout.score_scale()));
        for head in 0..heads {
            let [queries, values] =
                [0, 2 * d].map(|part| projection(layout, &self.projected, part + head * width, 0, tokens));
            for bit in 0..2 {
                let keys = projection(layout, &self.projected, d + head * width, bit * n, n);
                let scores = &mut self.scores[(head * tokens * 2 + bit) * padded(n)..];
                multiply(MatrixMut::with_step(scores, tokens, n, 2 * padded(n)), queries, keys.transposed());
            }
            let out = Matrix::with_step(&parameters[at.out_weight.clone()][head * width..], d, width, d);
            let through = &mut self.rows[(1 + head) * tokens * d..][..tokens * d];
            multiply(MatrixMut::new(through, tokens, d), values, out.transposed());
        }
        exponentiate(&self.scores, &mut self.exponentials, n);
        match &mut self.folding {
            Some(folding) => folding.fill(layout, parameters, linear1, &self.rows, &mut self.wide_rows),
            None => self.wide_rows.copy_from_slice(&self.rows),
        }
        let columns = layout.table_width();
        let of_heads = self.wide_rows[tokens * columns..].chunks_exact(n * columns);
        for (index, rows) in of_heads.enumerate() {
            transpose(rows, &mut self.turned[index * padded(n)..], n, columns, heads * 2 * padded(n));
        }
    }

    fn embed(&mut self, layout: &Layout, parameters: &[T]) {
        let Layout { n, d, .. } = *layout;
        let (tokens, positions) = (&parameters[layout.tokens.clone()], &parameters[layout.positions.clone()]);
        for (t, row) in self.embedded.chunks_exact_mut(d).enumerate() {
            let (bit, position) = (t / n, t % n);
            match layout.embed {
                Embed::Concat => {
                    let (left, right) = row.split_at_mut(d / 2);
                    left.copy_from_slice(&tokens[bit * (d / 2)..][..d / 2]);
                    right.copy_from_slice(&positions[position * (d / 2)..][..d / 2]);
                }
                Embed::Add => {
                    row.copy_from_slice(&tokens[bit * d..][..d]);
                    add(row, &positions[position * d..][..d]);
                }
            }
        }
    }

    /// From the tables' gradient to that of the parameters, which it is added to. (Of the output projection's bias only what
    /// `linear1` contributes: the rest is the sum over all rows, which the norm after it has at hand.)
    pub(crate) fn backward(
        &self,
        layout: &Layout,
        (parameters, linear1): (&[T], &[T]),
        tables: &TableGradient<T>,
        scratch: &mut TableScratch<T>,
        gradient: &mut [T],
    ) {
        let Layout { n, d, heads, width, .. } = *layout;
        let (tokens, at) = (2 * n, &layout.layers[0]);
        let TableScratch { d_projected, d_rows, folding: scratch } = scratch;
        match (&self.folding, scratch) {
            (Some(folding), Some(scratch)) => {
                folding.backward(layout, (parameters, linear1), &self.rows, tables, (d_rows, scratch), gradient);
            }
            _ => d_rows.copy_from_slice(&tables.wide_rows),
        }
        for head in 0..heads {
            let [queries, values] =
                [0, 2 * d].map(|part| projection(layout, &self.projected, part + head * width, 0, tokens));
            let d_through = Matrix::new(&d_rows[(1 + head) * tokens * d..][..tokens * d], tokens, d);
            let out = Matrix::with_step(&parameters[at.out_weight.clone()][head * width..], d, width, d);
            for bit in 0..2 {
                let d_scores = &tables.scores[(head * tokens * 2 + bit) * padded(n)..];
                let d_scores = Matrix::with_step(d_scores, tokens, n, 2 * padded(n));
                let keys = projection(layout, &self.projected, d + head * width, bit * n, n);
                let d_queries = MatrixMut::with_step(&mut d_projected[head * width..], tokens, width, 3 * d);
                match bit {
                    0 => multiply(d_queries, d_scores, keys),
                    _ => multiply_add(d_queries, d_scores, keys),
                }
                let d_keys = &mut d_projected[bit * n * 3 * d + d + head * width..];
                multiply(MatrixMut::with_step(d_keys, n, width, 3 * d), d_scores.transposed(), queries);
            }
            let d_values = MatrixMut::with_step(&mut d_projected[2 * d + head * width..], tokens, width, 3 * d);
            multiply(d_values, d_through, out);
            let d_out = &mut gradient[at.out_weight.clone()][head * width..];
            multiply_add(MatrixMut::with_step(d_out, d, width, d), d_through.transposed(), values);
        }
        scale_columns(d_projected, 3 * d, d, T::of(layout.score_scale()));
        add_input_bias(&mut gradient[at.in_bias.clone()], d_projected);
        let d_in = MatrixMut::new(&mut gradient[at.in_weight.clone()], 3 * d, d);
        let d_projected = Matrix::new(d_projected, tokens, 3 * d);
        multiply_add(d_in, d_projected.transposed(), Matrix::new(&self.embedded, tokens, d));
        let in_weight = Matrix::new(&parameters[at.in_weight.clone()], 3 * d, d);
        let d_embedded = &mut d_rows[..tokens * d];
        multiply_add(MatrixMut::new(d_embedded, tokens, d), d_projected, in_weight);
        embed_backward(layout, d_embedded, gradient);
    }
}

/// `rows` tokens' projections from token `first` on, in the columns of one head from `column` on [rows, width].
fn projection<'a, T>(layout: &Layout, projected: &'a [T], column: usize, first: usize, rows: usize) -> Matrix<'a, T> {
    let step = 3 * layout.d;
    Matrix::with_step(&projected[first * step + column..], rows, layout.width, step)
}

wide! {
    /// e^(score - largest of its row) for rows [.., 2, padded n].
    fn exponentiate<T: Real>(scores: &[T], exponentials: &mut [T], n: usize) {
        let row = 2 * padded(n);
        for (scores, exponentials) in scores.chunks_exact(row).zip(exponentials.chunks_exact_mut(row)) {
            let [zeros, ones] = [0, padded(n)].map(|at| largest(&scores[at..][..n]));
            let largest = if ones > zeros { ones } else { zeros };
            for at in [0, padded(n)] {
                for (e, score) in exponentials[at..][..n].iter_mut().zip(&scores[at..][..n]) {
                    *e = (*score - largest).fast_exp();
                }
            }
        }
    }
}

/// From the gradient of the embedded tokens [2n, d] to that of the embeddings.
fn embed_backward<T: Real>(layout: &Layout, embedded: &[T], gradient: &mut [T]) {
    let Layout { n, d, .. } = *layout;
    let [tokens, positions] = parts(gradient, [&layout.tokens, &layout.positions]);
    for (t, row) in embedded.chunks_exact(d).enumerate() {
        let (bit, position) = (t / n, t % n);
        let (left, right) = match layout.embed {
            Embed::Concat => row.split_at(d / 2),
            Embed::Add => (row, row),
        };
        add(&mut tokens[bit * left.len()..][..left.len()], left);
        add(&mut positions[position * right.len()..][..right.len()], right);
    }
}

impl<T: Real> TableGradient<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        let Layout { n, d, heads, .. } = *layout;
        let zeros = |len: usize| vec![T::zero(); len];
        let (width, folded) = (layout.table_width(), layout.table_width() - d);
        Self {
            scores: zeros(heads * 2 * n * 2 * padded(n)),
            wide_rows: zeros((1 + heads) * 2 * n * width),
            column: zeros(folded),
            constant: zeros(folded),
        }
    }

    fn parts(&mut self) -> [&mut Vec<T>; 4] {
        [&mut self.scores, &mut self.wide_rows, &mut self.column, &mut self.constant]
    }

    pub(crate) fn clear(&mut self) {
        self.parts().into_iter().for_each(|part| part.fill(T::zero()));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let others = [&other.scores, &other.wide_rows, &other.column, &other.constant];
        self.parts().into_iter().zip(others).for_each(|(part, other)| add_all(part, other));
    }
}

/// Room for [`Tables::backward`].
pub(crate) struct TableScratch<T> {
    /// [2n, 3 d]
    d_projected: Vec<T>,
    /// [1 + heads, 2n, d]
    d_rows: Vec<T>,
    folding: Option<FoldingScratch<T>>,
}

impl<T: Real> TableScratch<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        let Layout { n, d, heads, .. } = *layout;
        Self {
            d_projected: vec![T::zero(); 2 * n * 3 * d],
            d_rows: vec![T::zero(); (1 + heads) * 2 * n * d],
            folding: layout.folds_linear1().then(|| FoldingScratch::new(layout)),
        }
    }
}
