//! The last layer's attention, read at the last position only.
//!
//! Keys fold into the query, score_j = q (W_k x_j + b_k) = (W_k^T q) x_j + a constant that the softmax drops; values fold into
//! the mix, sum_j p_j (W_v x_j + b_v) = W_v (sum_j p_j x_j) + b_v. So no key or value is ever computed.

use super::layout::{LayerAt, Layout};
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::passes::{add_all, add_bias, add_rows, dot, mix, scale_all, softmax, softmax_backward};
use super::prepared::Ready;
use super::real::Real;
use super::wide::wide;

/// What it keeps of a block of strings.
pub(crate) struct LastAttention<T> {
    /// Scaled [strings, d].
    queries: Vec<T>,
    /// W_k^T q [strings, heads, d].
    folded: Vec<T>,
    /// [strings, heads, n]
    shares: Vec<T>,
    /// sum_j p_j x_j [strings, heads, d].
    mixed: Vec<T>,
    /// All heads side by side [strings, d].
    joined: Vec<T>,
    /// Gradients of the same shapes.
    d_queries: Vec<T>,
    d_folded: Vec<T>,
    d_mixed: Vec<T>,
    d_joined: Vec<T>,
    /// Of one string [heads, n].
    d_scores: Vec<T>,
}

impl<T: Real> LastAttention<T> {
    pub(crate) fn new(layout: &Layout, strings: usize) -> Self {
        let Layout { n, d, heads, .. } = *layout;
        let zeros = |columns: usize| vec![T::zero(); strings * columns];
        Self {
            queries: zeros(d),
            folded: zeros(heads * d),
            shares: zeros(heads * n),
            mixed: zeros(heads * d),
            joined: zeros(d),
            d_queries: zeros(d),
            d_folded: zeros(heads * d),
            d_mixed: zeros(heads * d),
            d_joined: zeros(d),
            d_scores: vec![T::zero(); heads * n],
        }
    }

    /// x [strings, n, d] -> attention with the residual at the last position, output [strings, d].
    pub(crate) fn forward(&mut self, ready: &Ready<T>, at: &LayerAt, x: &[T], output: &mut [T]) {
        let Layout { n, d, heads, width, .. } = *ready.layout;
        let strings = x.len() / (n * d);
        let (in_turned, in_weight) = (ready.transposed(&at.in_weight), ready.of(&at.in_weight));
        let in_bias = ready.of(&at.in_bias);
        let last = Matrix::with_step(&x[(n - 1) * d..], strings, d, n * d);
        let queries = &mut self.queries[..strings * d];
        multiply(MatrixMut::new(queries, strings, d), last, Matrix::with_step(in_turned, d, d, 3 * d));
        add_bias(queries, &in_bias[..d]);
        scale_all(queries, T::of(ready.layout.score_scale()));
        for head in 0..heads {
            let keys = Matrix::new(&in_weight[(d + head * width) * d..][..width * d], width, d);
            let query = Matrix::with_step(&queries[head * width..], strings, width, d);
            multiply(MatrixMut::with_step(&mut self.folded[head * d..], strings, d, heads * d), query, keys);
        }
        let strings_of_block = x.chunks_exact(n * d).zip(self.folded.chunks_exact(heads * d));
        let kept = self.shares.chunks_exact_mut(heads * n).zip(self.mixed.chunks_exact_mut(heads * d));
        for ((x, folded), (shares, mixed)) in strings_of_block.zip(kept) {
            attend(x, folded, shares, mixed, d);
        }
        let joined = &mut self.joined[..strings * d];
        for head in 0..heads {
            let mixed = Matrix::with_step(&self.mixed[head * d..], strings, d, heads * d);
            let values = Matrix::with_step(&in_turned[2 * d + head * width..], d, width, 3 * d);
            multiply(MatrixMut::with_step(&mut joined[head * width..], strings, width, d), mixed, values);
        }
        add_bias(joined, &in_bias[2 * d..]);
        let output = &mut output[..strings * d];
        for (output, x) in output.chunks_exact_mut(d).zip(x.chunks_exact(n * d)) {
            output.copy_from_slice(&x[(n - 1) * d..]);
        }
        add_bias(output, ready.of(&at.out_bias));
        let out = Matrix::new(ready.transposed(&at.out_weight), d, d);
        multiply_add(MatrixMut::new(output, strings, d), Matrix::new(joined, strings, d), out);
    }

    /// From the gradient of the output, flow [strings, d], to that of x, written into d_x [strings, n, d]; adds to the
    /// parameters' gradient (but for the output bias, which the norm after it sees to).
    pub(crate) fn backward(
        &mut self,
        ready: &Ready<T>,
        at: &LayerAt,
        x: &[T],
        flow: &[T],
        d_x: &mut [T],
        gradient: &mut [T],
    ) {
        let Layout { n, d, heads, width, .. } = *ready.layout;
        let strings = x.len() / (n * d);
        let in_weight = ready.of(&at.in_weight);
        let (d_joined, d_queries) = (&mut self.d_joined[..strings * d], &mut self.d_queries[..strings * d]);

        let flowing = Matrix::new(flow, strings, d);
        let d_out = MatrixMut::new(&mut gradient[at.out_weight.clone()], d, d);
        multiply_add(d_out, flowing.transposed(), Matrix::new(&self.joined, strings, d));
        multiply(MatrixMut::new(d_joined, strings, d), flowing, Matrix::new(ready.of(&at.out_weight), d, d));

        add_rows(&mut gradient[at.in_bias.clone()][2 * d..], d_joined);
        for head in 0..heads {
            let row = 2 * d + head * width;
            let d_joined = Matrix::with_step(&d_joined[head * width..], strings, width, d);
            let mixed = Matrix::with_step(&self.mixed[head * d..], strings, d, heads * d);
            let d_values = &mut gradient[at.in_weight.clone()][row * d..][..width * d];
            multiply_add(MatrixMut::new(d_values, width, d), d_joined.transposed(), mixed);
            let d_mixed = MatrixMut::with_step(&mut self.d_mixed[head * d..], strings, d, heads * d);
            multiply(d_mixed, d_joined, Matrix::new(&in_weight[row * d..][..width * d], width, d));
        }

        let d_x = &mut d_x[..strings * n * d];
        for (s, (x, d_x)) in x.chunks_exact(n * d).zip(d_x.chunks_exact_mut(n * d)).enumerate() {
            let (per_head, per_share) = (s * heads * d..(s + 1) * heads * d, s * heads * n..(s + 1) * heads * n);
            let (folded, d_mixed) = (&self.folded[per_head.clone()], &self.d_mixed[per_head.clone()]);
            let (shares, d_folded) = (&self.shares[per_share], &mut self.d_folded[per_head]);
            attend_backward(x, [folded, shares], d_mixed, &mut self.d_scores, d_folded, d_x, d);
            add_all(&mut d_x[(n - 1) * d..], &flow[s * d..][..d]);
        }

        for head in 0..heads {
            let row = d + head * width;
            let d_folded = Matrix::with_step(&self.d_folded[head * d..], strings, d, heads * d);
            let queries = Matrix::with_step(&self.queries[head * width..], strings, width, d);
            let d_keys = &mut gradient[at.in_weight.clone()][row * d..][..width * d];
            multiply_add(MatrixMut::new(d_keys, width, d), queries.transposed(), d_folded);
            let keys = Matrix::with_step(&ready.transposed(&at.in_weight)[row..], d, width, 3 * d);
            multiply(MatrixMut::with_step(&mut d_queries[head * width..], strings, width, d), d_folded, keys);
        }
        scale_all(d_queries, T::of(ready.layout.score_scale()));
        add_rows(&mut gradient[at.in_bias.clone()][..d], d_queries);
        let d_queries = Matrix::new(d_queries, strings, d);
        let last = Matrix::with_step(&x[(n - 1) * d..], strings, d, n * d);
        let d_query_weight = &mut gradient[at.in_weight.clone()][..d * d];
        multiply_add(MatrixMut::new(d_query_weight, d, d), d_queries.transposed(), last);
        let d_last = MatrixMut::with_step(&mut d_x[(n - 1) * d..], strings, d, n * d);
        multiply_add(d_last, d_queries, Matrix::new(&in_weight[..d * d], d, d));
    }
}

wide! {
    /// One string: x [n, d] and folded queries [heads, d] -> shares [heads, n] and mixed vectors [heads, d].
    fn attend<T: Real>(x: &[T], folded: &[T], shares: &mut [T], mixed: &mut [T], d: usize) {
        let n = x.len() / d;
        let heads = folded.chunks_exact(d).zip(shares.chunks_exact_mut(n)).zip(mixed.chunks_exact_mut(d));
        for ((folded, shares), mixed) in heads {
            for (score, x) in shares.iter_mut().zip(x.chunks_exact(d)) {
                *score = dot(folded, x);
            }
            softmax(shares);
            mix(mixed, shares, x);
        }
    }
}

wide! {
    /// The gradients of [`attend`], which gave these shares: from that of the mixed vectors to those of the folded queries and of x, both overwritten.
    fn attend_backward<T: Real>(
        x: &[T],
        kept: [&[T]; 2],
        d_mixed: &[T],
        d_scores: &mut [T],
        d_folded: &mut [T],
        d_x: &mut [T],
        d: usize,
    ) {
        let [folded, shares] = kept;
        let n = x.len() / d;
        let heads = d_mixed.chunks_exact(d).zip(shares.chunks_exact(n));
        let gradients = d_scores.chunks_exact_mut(n).zip(d_folded.chunks_exact_mut(d));
        for ((d_mixed, shares), (d_scores, d_folded)) in heads.zip(gradients) {
            for (g, x) in d_scores.iter_mut().zip(x.chunks_exact(d)) {
                *g = dot(d_mixed, x);
            }
            softmax_backward(d_scores, shares);
            mix(d_folded, d_scores, x);
        }
        for (j, d_x) in d_x.chunks_exact_mut(d).enumerate() {
            d_x.fill(T::zero());
            for (head, (folded, d_mixed)) in folded.chunks_exact(d).zip(d_mixed.chunks_exact(d)).enumerate() {
                let (share, d_score) = (shares[head * n + j], d_scores[head * n + j]);
                for ((d_x, f), g) in d_x.iter_mut().zip(folded).zip(d_mixed) {
                    *d_x += share * *g + d_score * *f;
                }
            }
        }
    }
}
