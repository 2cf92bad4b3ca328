//! The first layer's attention on all 2n distinct tokens.
//!
//! Token t = x n + j is bit x at position j. Queries, keys and values of a token, the score of a pair of tokens, and what a
//! token's value adds to the output (its value through the output projection) do not depend on the string they stand in.

use pudica_nn::Embed;

use super::layout::{Layout, parts};
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::passes::{add, add_bias, add_rows, largest, scale};
use super::real::Real;

/// The tables.
pub(crate) struct Tables<T> {
    /// Embedded tokens [2n, d].
    embedded: Vec<T>,
    /// The same plus the output projection's bias: what a row of the output starts from [2n, d].
    pub(crate) residual: Vec<T>,
    /// Scaled queries, keys, values [2n, 3 d].
    projected: Vec<T>,
    /// Scores [heads, 2n queries, 2n keys].
    pub(crate) scores: Vec<T>,
    /// e^(score - largest of its row), in the same order.
    pub(crate) exponentials: Vec<T>,
    /// Values through the output projection [heads, 2n, d].
    pub(crate) values: Vec<T>,
}

/// The gradient of the tables that strings are looked up in.
pub(crate) struct TableGradient<T> {
    /// Of `residual` [2n, d].
    pub(crate) residual: Vec<T>,
    /// [heads, 2n, 2n]
    pub(crate) scores: Vec<T>,
    /// [heads, 2n, d]
    pub(crate) values: Vec<T>,
}

impl<T: Real> Tables<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        let Layout { n, d, heads, .. } = *layout;
        let zeros = |len: usize| vec![T::zero(); len];
        Self {
            embedded: zeros(2 * n * d),
            residual: zeros(2 * n * d),
            projected: zeros(2 * n * 3 * d),
            scores: zeros(heads * 4 * n * n),
            exponentials: zeros(heads * 4 * n * n),
            values: zeros(heads * 2 * n * d),
        }
    }

    /// Compute them from the parameters.
    pub(crate) fn fill(&mut self, layout: &Layout, parameters: &[T]) {
        let Layout { n, d, heads, width, .. } = *layout;
        let (tokens, at) = (2 * n, &layout.layers[0]);
        self.embed(layout, parameters);
        self.residual.copy_from_slice(&self.embedded);
        add_bias(&mut self.residual, &parameters[at.out_bias.clone()]);
        let in_weight = Matrix::new(&parameters[at.in_weight.clone()], 3 * d, d).transposed();
        let projected = MatrixMut::new(&mut self.projected, tokens, 3 * d);
        multiply(projected, Matrix::new(&self.embedded, tokens, d), in_weight);
        add_bias(&mut self.projected, &parameters[at.in_bias.clone()]);
        for row in self.projected.chunks_exact_mut(3 * d) {
            scale(&mut row[..d], T::of(layout.score_scale()));
        }
        for head in 0..heads {
            let [queries, keys, values] = [0, d, 2 * d]
                .map(|part| Matrix::with_step(&self.projected[part + head * width..], tokens, width, 3 * d));
            let scores = &mut self.scores[head * tokens * tokens..][..tokens * tokens];
            multiply(MatrixMut::new(scores, tokens, tokens), queries, keys.transposed());
            let out = Matrix::with_step(&parameters[at.out_weight.clone()][head * width..], d, width, d);
            let through = &mut self.values[head * tokens * d..][..tokens * d];
            multiply(MatrixMut::new(through, tokens, d), values, out.transposed());
        }
        let rows = self.scores.chunks_exact(tokens).zip(self.exponentials.chunks_exact_mut(tokens));
        for (scores, exponentials) in rows {
            let largest = largest(scores);
            for (e, score) in exponentials.iter_mut().zip(scores) {
                *e = (*score - largest).fast_exp();
            }
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

    /// From the tables' gradient to that of the parameters, which it is added to. The tables' is used up. (The output projection's
    /// bias is not among them: its gradient is the sum over all rows, which the norm after it has at hand.)
    pub(crate) fn backward(
        &self,
        layout: &Layout,
        parameters: &[T],
        tables: &mut TableGradient<T>,
        scratch: &mut TableScratch<T>,
        gradient: &mut [T],
    ) {
        let Layout { n, d, heads, width, .. } = *layout;
        let (tokens, at) = (2 * n, &layout.layers[0]);
        let d_projected = &mut scratch.d_projected;
        for head in 0..heads {
            let [queries, keys, values] = [0, d, 2 * d]
                .map(|part| Matrix::with_step(&self.projected[part + head * width..], tokens, width, 3 * d));
            let d_scores = Matrix::new(&tables.scores[head * tokens * tokens..][..tokens * tokens], tokens, tokens);
            let d_through = Matrix::new(&tables.values[head * tokens * d..][..tokens * d], tokens, d);
            let out = Matrix::with_step(&parameters[at.out_weight.clone()][head * width..], d, width, d);
            let mut part = |part: usize, a, b| {
                multiply(MatrixMut::with_step(&mut d_projected[part + head * width..], tokens, width, 3 * d), a, b);
            };
            part(0, d_scores, keys);
            part(d, d_scores.transposed(), queries);
            part(2 * d, d_through, out);
            let d_out = &mut gradient[at.out_weight.clone()][head * width..];
            multiply_add(MatrixMut::with_step(d_out, d, width, d), d_through.transposed(), values);
        }
        for row in d_projected.chunks_exact_mut(3 * d) {
            scale(&mut row[..d], T::of(layout.score_scale()));
        }
        add_rows(&mut gradient[at.in_bias.clone()], d_projected);
        let d_in = MatrixMut::new(&mut gradient[at.in_weight.clone()], 3 * d, d);
        let d_projected = Matrix::new(d_projected, tokens, 3 * d);
        multiply_add(d_in, d_projected.transposed(), Matrix::new(&self.embedded, tokens, d));
        let in_weight = Matrix::new(&parameters[at.in_weight.clone()], 3 * d, d);
        multiply_add(MatrixMut::new(&mut tables.residual, tokens, d), d_projected, in_weight);
        embed_backward(layout, &tables.residual, gradient);
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
        Self { residual: zeros(2 * n * d), scores: zeros(heads * 4 * n * n), values: zeros(heads * 2 * n * d) }
    }

    pub(crate) fn clear(&mut self) {
        for part in [&mut self.residual, &mut self.scores, &mut self.values] {
            part.fill(T::zero());
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.residual, &other.residual);
        add(&mut self.scores, &other.scores);
        add(&mut self.values, &other.values);
    }
}

/// Room for [`Tables::backward`].
pub(crate) struct TableScratch<T> {
    /// [2n, 3 d]
    d_projected: Vec<T>,
}

impl<T: Real> TableScratch<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { d_projected: vec![T::zero(); 2 * layout.n * 3 * layout.d] }
    }
}
