//! The first layer's attention on strings, looked up in [`Tables`]: the shares of a row are exponentials of the table over
//! their sum, and the row of the output is the shares' mix of the table's values.

use super::layout::Layout;
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::passes::{add, scale, softmax, softmax_backward, total, wide};
use super::prepared::Ready;
use super::real::Real;
use super::tables::{TableGradient, Tables};

/// What it keeps of a block of strings, computed at the last `positions` positions of each.
pub(crate) struct TableAttention<T> {
    positions: usize,
    /// [strings, positions, heads, n]
    shares: Vec<T>,
    /// Those of one string: the values it looks up [heads, n, d], then their gradient.
    values: Vec<T>,
    /// Those of one string: the gradient of its shares [positions, heads, n].
    d_shares: Vec<T>,
}

/// Below this, a sum of exponentials has lost digits to underflow: the row's largest score is far below that of its table row.
const SMALLEST_SUM: f64 = 1e-20;

impl<T: Real> TableAttention<T> {
    pub(crate) fn new(layout: &Layout, strings: usize, positions: usize) -> Self {
        let Layout { n, d, heads, .. } = *layout;
        let zeros = |len: usize| vec![T::zero(); len];
        Self {
            positions,
            shares: zeros(strings * positions * heads * n),
            values: zeros(heads * n * d),
            d_shares: zeros(positions * heads * n),
        }
    }

    /// strings [strings, n] -> attention with the residual, output [strings, positions, d].
    pub(crate) fn forward(&mut self, ready: &Ready<T>, strings: &[u8], output: &mut [T]) {
        let Layout { n, d, heads, .. } = *ready.layout;
        let (tables, positions) = (&ready.prepared.tables, self.positions);
        let pieces = strings.chunks_exact(n).zip(self.shares.chunks_exact_mut(positions * heads * n));
        for ((string, shares), output) in pieces.zip(output.chunks_exact_mut(positions * d)) {
            wide(|| {
                look_up_shares(tables, string, heads, shares);
                for (row, token) in output.chunks_exact_mut(d).zip(query_tokens(string, positions)) {
                    row.copy_from_slice(&tables.residual[token * d..][..d]);
                }
            });
            look_up_values(tables, string, heads, d, &mut self.values);
            let shares = Matrix::new(shares, positions, heads * n);
            multiply_add(MatrixMut::new(output, positions, d), shares, Matrix::new(&self.values, heads * n, d));
        }
    }

    /// From the gradient of the output, flow [strings, positions, d], to that of the tables, which it is added to.
    pub(crate) fn backward(&mut self, ready: &Ready<T>, strings: &[u8], flow: &[T], gradient: &mut TableGradient<T>) {
        let Layout { n, d, heads, .. } = *ready.layout;
        let (tables, positions) = (&ready.prepared.tables, self.positions);
        let pieces = strings.chunks_exact(n).zip(self.shares.chunks_exact(positions * heads * n));
        for ((string, shares), flow) in pieces.zip(flow.chunks_exact(positions * d)) {
            look_up_values(tables, string, heads, d, &mut self.values);
            let flowing = Matrix::new(flow, positions, d);
            let values = Matrix::new(&self.values, heads * n, d);
            multiply(MatrixMut::new(&mut self.d_shares, positions, heads * n), flowing, values.transposed());
            let kept = Matrix::new(shares, positions, heads * n);
            multiply(MatrixMut::new(&mut self.values, heads * n, d), kept.transposed(), flowing);
            wide(|| {
                for (row, token) in flow.chunks_exact(d).zip(query_tokens(string, positions)) {
                    add(&mut gradient.residual[token * d..][..d], row);
                }
                for (head, values) in self.values.chunks_exact(n * d).enumerate() {
                    let table = &mut gradient.values[head * 2 * n * d..][..2 * n * d];
                    for (value, token) in values.chunks_exact(d).zip(query_tokens(string, n)) {
                        add(&mut table[token * d..][..d], value);
                    }
                }
                add_score_gradients(&mut gradient.scores, string, heads, shares, &mut self.d_shares);
            });
        }
    }
}

/// The tokens of the last `positions` positions of a string.
#[inline(always)]
fn query_tokens(string: &[u8], positions: usize) -> impl Iterator<Item = usize> {
    let n = string.len();
    (n - positions..n).map(move |j| usize::from(string[j]) * n + j)
}

/// values [heads, n, d] of one string.
fn look_up_values<T: Real>(tables: &Tables<T>, string: &[u8], heads: usize, d: usize, values: &mut [T]) {
    let n = string.len();
    for head in 0..heads {
        let table = &tables.values[head * 2 * n * d..][..2 * n * d];
        for (j, bit) in string.iter().enumerate() {
            let token = usize::from(*bit) * n + j;
            values[(head * n + j) * d..][..d].copy_from_slice(&table[token * d..][..d]);
        }
    }
}

/// shares [positions, heads, n] of one string.
#[inline(always)]
fn look_up_shares<T: Real>(tables: &Tables<T>, string: &[u8], heads: usize, shares: &mut [T]) {
    let n = string.len();
    let positions = shares.len() / (heads * n);
    for (rows, token) in shares.chunks_exact_mut(heads * n).zip(query_tokens(string, positions)) {
        for (head, row) in rows.chunks_exact_mut(n).enumerate() {
            let at = (head * 2 * n + token) * 2 * n;
            choose(&tables.exponentials[at..][..2 * n], string, row);
            let sum = total(row);
            // The comparison is false for NaN, which then stays.
            if sum < T::of(SMALLEST_SUM) {
                choose(&tables.scores[at..][..2 * n], string, row);
                softmax(row);
            } else {
                scale(row, T::one() / sum);
            }
        }
    }
}

/// Of a table row [2, n], the entry of each position's bit.
#[inline(always)]
fn choose<T: Real>(table: &[T], string: &[u8], row: &mut [T]) {
    let n = row.len();
    let (zeros, ones) = table.split_at(n);
    let (ones, string) = (&ones[..n], &string[..n]);
    for j in 0..n {
        row[j] = if string[j] != 0 { ones[j] } else { zeros[j] };
    }
}

/// Add one string's part of the scores' gradient [heads, 2n, 2n]. `d_shares` [positions, heads, n] becomes that of its scores.
#[inline(always)]
fn add_score_gradients<T: Real>(table: &mut [T], string: &[u8], heads: usize, shares: &[T], d_shares: &mut [T]) {
    let n = string.len();
    let positions = shares.len() / (heads * n);
    let rows = d_shares.chunks_exact_mut(heads * n).zip(shares.chunks_exact(heads * n));
    for ((d_rows, rows), token) in rows.zip(query_tokens(string, positions)) {
        for (head, (g, p)) in d_rows.chunks_exact_mut(n).zip(rows.chunks_exact(n)).enumerate() {
            softmax_backward(g, p);
            let (zeros, ones) = table[(head * 2 * n + token) * 2 * n..][..2 * n].split_at_mut(n);
            let (ones, string) = (&mut ones[..n], &string[..n]);
            for j in 0..n {
                let (zero, one) = if string[j] != 0 { (T::zero(), g[j]) } else { (g[j], T::zero()) };
                zeros[j] += zero;
                ones[j] += one;
            }
        }
    }
}
