//! The first layer's attention on strings, looked up in [`Tables`]: the shares of a row are exponentials of the table over
//! their sum, and the row of the output is the shares' mix of the table's values.

use super::layout::Layout;
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::passes::{add, join, scale, softmax};
use super::prepared::Ready;
use super::real::Real;
use super::tables::{LANES, TableGradient, Tables, padded};
use super::wide::wide;

/// What it keeps of a block of strings, computed at the last `positions` positions of each.
pub(crate) struct TableAttention<T> {
    positions: usize,
    /// [strings, positions, heads, n], and some room behind: rows are written and read in whole vectors, beyond their end.
    shares: Vec<T>,
    /// Of one string [2 bits, padded n]: whether the position has that bit, as 1 or 0; 0 in the padding.
    masks: Vec<T>,
    /// Those of one string: the values it looks up [heads, n, d], then their gradient.
    values: Vec<T>,
    /// Those of one string: the gradient of its shares [positions, heads, n], and some room behind.
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
            shares: zeros(strings * positions * heads * n + LANES),
            masks: zeros(2 * padded(n)),
            values: zeros(heads * n * d),
            d_shares: zeros(positions * heads * n + LANES),
        }
    }

    /// strings [strings, n] -> attention with the residual, output [strings, positions, d].
    pub(crate) fn forward(&mut self, ready: &Ready<T>, strings: &[u8], output: &mut [T]) {
        let Layout { n, d, heads, .. } = *ready.layout;
        let (tables, positions) = (&ready.prepared.tables, self.positions);
        let row = heads * n;
        for (s, (string, output)) in strings.chunks_exact(n).zip(output.chunks_exact_mut(positions * d)).enumerate() {
            fill_masks(&mut self.masks, string);
            let shares = &mut self.shares[s * positions * row..][..positions * row + LANES];
            look_up_shares(tables, string, &self.masks, heads, shares);
            for (row, token) in output.chunks_exact_mut(d).zip(query_tokens(string, positions)) {
                row.copy_from_slice(&tables.residual[token * d..][..d]);
            }
            look_up_values(tables, string, heads, d, &mut self.values);
            let shares = Matrix::new(shares, positions, row);
            multiply_add(MatrixMut::new(output, positions, d), shares, Matrix::new(&self.values, row, d));
        }
    }

    /// From the gradient of the output, flow [strings, positions, d], to that of the tables, which it is added to.
    pub(crate) fn backward(&mut self, ready: &Ready<T>, strings: &[u8], flow: &[T], gradient: &mut TableGradient<T>) {
        let Layout { n, d, heads, .. } = *ready.layout;
        let (tables, positions) = (&ready.prepared.tables, self.positions);
        let row = heads * n;
        for (s, (string, flow)) in strings.chunks_exact(n).zip(flow.chunks_exact(positions * d)).enumerate() {
            let shares = &self.shares[s * positions * row..][..positions * row + LANES];
            look_up_values(tables, string, heads, d, &mut self.values);
            let flowing = Matrix::new(flow, positions, d);
            let values = Matrix::new(&self.values, row, d);
            multiply(MatrixMut::new(&mut self.d_shares, positions, row), flowing, values.transposed());
            let kept = Matrix::new(shares, positions, row);
            multiply(MatrixMut::new(&mut self.values, row, d), kept.transposed(), flowing);
            add_at(&mut gradient.residual, string, flow, d);
            for (values, table) in self.values.chunks_exact(n * d).zip(gradient.values.chunks_exact_mut(2 * n * d)) {
                add_at(table, string, values, d);
            }
            fill_masks(&mut self.masks, string);
            add_score_gradients(&mut gradient.scores, string, &self.masks, heads, shares, &self.d_shares);
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

/// masks [2 bits, padded n] of one string.
fn fill_masks<T: Real>(masks: &mut [T], string: &[u8]) {
    let (zeros, ones) = masks.split_at_mut(padded(string.len()));
    for ((zero, one), bit) in zeros.iter_mut().zip(ones).zip(string) {
        (*zero, *one) = if *bit == 0 { (T::one(), T::zero()) } else { (T::zero(), T::one()) };
    }
}

wide! {
    /// Add rows [positions, d] to those of the string's last tokens in a table [2n, d].
    fn add_at<T: Real>(table: &mut [T], string: &[u8], rows: &[T], d: usize) {
        for (row, token) in rows.chunks_exact(d).zip(query_tokens(string, rows.len() / d)) {
            add(&mut table[token * d..][..d], row);
        }
    }
}

wide! {
    /// shares [positions, heads, n] of one string, then room for the last row's padding.
    fn look_up_shares<T: Real>(tables: &Tables<T>, string: &[u8], masks: &[T], heads: usize, shares: &mut [T]) {
        let (n, padded) = (string.len(), padded(string.len()));
        let ones = &masks[padded..];
        let mut at = 0;
        for token in query_tokens(string, (shares.len() - LANES) / (heads * n)) {
            for head in 0..heads {
                let from = (head * 2 * n + token) * 2 * padded..(head * 2 * n + token + 1) * 2 * padded;
                // Its padding, zeros, reaches into the next row, which is written after it.
                let row = &mut shares[at..][..padded];
                let sum = choose(&tables.exponentials[from.clone()], ones, row);
                // The comparison is false for NaN, which then stays.
                if sum < T::of(SMALLEST_SUM) {
                    choose(&tables.scores[from], ones, row);
                    softmax(&mut row[..n]);
                } else {
                    let inverse = T::one() / sum;
                    row.as_chunks_mut::<LANES>().0.iter_mut().for_each(|chunk| scale(chunk, inverse));
                }
                at += n;
            }
        }
    }
}

/// Of a table row [2, padded n], the entry of each position's bit; and their sum.
#[inline(always)]
fn choose<T: Real>(table: &[T], ones: &[T], row: &mut [T]) -> T {
    let (if_zero, if_one) = table.split_at(row.len());
    let table = if_zero.as_chunks::<LANES>().0.iter().zip(if_one.as_chunks::<LANES>().0);
    let rows = row.as_chunks_mut::<LANES>().0.iter_mut().zip(ones.as_chunks::<LANES>().0);
    let mut sum = [T::zero(); LANES];
    for ((row, ones), (if_zero, if_one)) in rows.zip(table) {
        for i in 0..LANES {
            row[i] = if ones[i] > T::zero() { if_one[i] } else { if_zero[i] };
            sum[i] += row[i];
        }
    }
    join(sum)
}

wide! {
    /// Add one string's part of the scores' gradient [heads, 2n, 2, padded n], from shares and d_shares [positions, heads, n] with
    /// room behind. What lies behind a row is masked by choosing, not by multiplying: it may be another replica's NaN.
    fn add_score_gradients<T: Real>(
        table: &mut [T],
        string: &[u8],
        masks: &[T],
        heads: usize,
        shares: &[T],
        d_shares: &[T],
    ) {
        let (n, padded) = (string.len(), padded(string.len()));
        let (is_zero, is_one) = masks.split_at(padded);
        let (is_zero, is_one) = (is_zero.as_chunks::<LANES>().0, is_one.as_chunks::<LANES>().0);
        let mut at = 0;
        for token in query_tokens(string, (shares.len() - LANES) / (heads * n)) {
            for head in 0..heads {
                let (p, g) = (&shares[at..][..padded], &d_shares[at..][..padded]);
                let (p, g) = (p.as_chunks::<LANES>().0, g.as_chunks::<LANES>().0);
                let mut along = [T::zero(); LANES];
                for c in 0..p.len() {
                    for i in 0..LANES {
                        let part = p[c][i] * g[c][i];
                        along[i] += if is_zero[c][i] + is_one[c][i] > T::zero() { part } else { T::zero() };
                    }
                }
                let along = join(along);
                let row = &mut table[(head * 2 * n + token) * 2 * padded..][..2 * padded];
                let (zeros, ones) = row.split_at_mut(padded);
                let (zeros, ones) = (zeros.as_chunks_mut::<LANES>().0, ones.as_chunks_mut::<LANES>().0);
                for c in 0..p.len() {
                    for i in 0..LANES {
                        let d_score = p[c][i] * (g[c][i] - along);
                        zeros[c][i] += if is_zero[c][i] > T::zero() { d_score } else { T::zero() };
                        ones[c][i] += if is_one[c][i] > T::zero() { d_score } else { T::zero() };
                    }
                }
                at += n;
            }
        }
    }
}
