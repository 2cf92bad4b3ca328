//! The first layer's attention on strings, looked up in [`Tables`]: the shares of a row are exponentials of the table over
//! their sum, and the row of the output is the shares' mix of the table's values.

use super::layout::Layout;
use super::matrix::{Matrix, MatrixMut, multiply, multiply_add};
use super::passes::{add, join, scale, softmax};
use super::prepared::Ready;
use super::real::Real;
use super::tables::{LANES, TableGradient, Tables, padded};
use super::wide::wide;

/// What it keeps of a block of strings, computed at the last `positions` positions of each. Rows of the tables and of the output
/// are `width` wide: d, or d + ff where `linear1` is folded in.
pub(crate) struct TableAttention<T> {
    positions: usize,
    width: usize,
    /// [strings, positions, heads, n], and some room behind: rows are written and read in whole vectors, beyond their end.
    shares: Vec<T>,
    /// Of one string [2 bits, padded n]: whether the position has that bit, as 1 or 0; 0 in the padding.
    masks: Vec<T>,
    /// Those of one string: the values it looks up [heads, n, width], then their gradient.
    values: Vec<T>,
    /// The same transposed [width, heads, n], and some room behind.
    turned: Vec<T>,
    /// Those of one string: the gradient of its shares [positions, heads, n], and some room behind.
    d_shares: Vec<T>,
}

/// Below this, a sum of exponentials has lost digits to underflow: the row's largest score is far below that of its table row.
const SMALLEST_SUM: f64 = 1e-20;

impl<T: Real> TableAttention<T> {
    pub(crate) fn new(layout: &Layout, strings: usize, positions: usize) -> Self {
        let Layout { n, heads, .. } = *layout;
        let width = layout.table_width();
        let zeros = |len: usize| vec![T::zero(); len];
        Self {
            positions,
            width,
            shares: zeros(strings * positions * heads * n + LANES),
            masks: zeros(2 * padded(n)),
            values: zeros(heads * n * width),
            turned: zeros(width * heads * n + LANES),
            d_shares: zeros(positions * heads * n + LANES),
        }
    }

    /// strings [strings, n] -> attention with the residual, output [strings, positions, width].
    pub(crate) fn forward(&mut self, ready: &Ready<T>, strings: &[u8], output: &mut [T]) {
        let Layout { n, heads, .. } = *ready.layout;
        let (tables, positions, width) = (&ready.prepared.tables, self.positions, self.width);
        let row = heads * n;
        for (s, (string, output)) in strings.chunks_exact(n).zip(output.chunks_exact_mut(positions * width)).enumerate()
        {
            fill_masks(&mut self.masks, string);
            let shares = &mut self.shares[s * positions * row..][..positions * row + LANES];
            look_up_shares(tables, string, &self.masks, heads, shares);
            for (row, token) in output.chunks_exact_mut(width).zip(query_tokens(string, positions)) {
                row.copy_from_slice(&tables.wide_rows[token * width..][..width]);
            }
            look_up_values(tables, string, heads, width, &mut self.values);
            let shares = Matrix::new(shares, positions, row);
            multiply_add(MatrixMut::new(output, positions, width), shares, Matrix::new(&self.values, row, width));
        }
    }

    /// From the gradient of the output, flow [strings, positions, width], to that of the tables, which it is added to.
    pub(crate) fn backward(&mut self, ready: &Ready<T>, strings: &[u8], flow: &[T], gradient: &mut TableGradient<T>) {
        let Layout { n, heads, .. } = *ready.layout;
        let (tables, positions, width) = (&ready.prepared.tables, self.positions, self.width);
        let row = heads * n;
        for (s, (string, flow)) in strings.chunks_exact(n).zip(flow.chunks_exact(positions * width)).enumerate() {
            let shares = &self.shares[s * positions * row..][..positions * row + LANES];
            fill_masks(&mut self.masks, string);
            look_up_turned(&tables.turned, &self.masks, n, &mut self.turned);
            let flowing = Matrix::new(flow, positions, width);
            let turned = Matrix::new(&self.turned, width, row);
            multiply(MatrixMut::new(&mut self.d_shares, positions, row), flowing, turned);
            let kept = Matrix::new(shares, positions, row);
            multiply(MatrixMut::new(&mut self.values, row, width), kept.transposed(), flowing);
            let (residual, heads_rows) = gradient.wide_rows.split_at_mut(2 * n * width);
            add_at(residual, string, flow, width);
            for (values, table) in self.values.chunks_exact(n * width).zip(heads_rows.chunks_exact_mut(2 * n * width)) {
                add_at(table, string, values, width);
            }
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

/// values [heads, n, width] of one string.
fn look_up_values<T: Real>(tables: &Tables<T>, string: &[u8], heads: usize, width: usize, values: &mut [T]) {
    let n = string.len();
    for head in 0..heads {
        let table = &tables.wide_rows[(1 + head) * 2 * n * width..][..2 * n * width];
        for (j, bit) in string.iter().enumerate() {
            let token = usize::from(*bit) * n + j;
            values[(head * n + j) * width..][..width].copy_from_slice(&table[token * width..][..width]);
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
    /// Add rows [positions, width] to those of the string's last tokens in a table [2n, width].
    fn add_at<T: Real>(table: &mut [T], string: &[u8], rows: &[T], width: usize) {
        for (row, token) in rows.chunks_exact(width).zip(query_tokens(string, rows.len() / width)) {
            add(&mut table[token * width..][..width], row);
        }
    }
}

wide! {
    /// turned [width, heads, n] of one string, then room for the last row's padding.
    fn look_up_turned<T: Real>(table: &[T], masks: &[T], n: usize, turned: &mut [T]) {
        for (index, row) in table.chunks_exact(2 * padded(n)).enumerate() {
            // As with shares, its padding reaches into the next row, which is written after it.
            choose(row, masks, &mut turned[index * n..][..padded(n)]);
        }
    }
}

wide! {
    /// shares [positions, heads, n] of one string, then room for the last row's padding.
    fn look_up_shares<T: Real>(tables: &Tables<T>, string: &[u8], masks: &[T], heads: usize, shares: &mut [T]) {
        let (n, padded) = (string.len(), padded(string.len()));
        let mut at = 0;
        for token in query_tokens(string, (shares.len() - LANES) / (heads * n)) {
            for head in 0..heads {
                let from = (head * 2 * n + token) * 2 * padded..(head * 2 * n + token + 1) * 2 * padded;
                // Its padding, zeros, reaches into the next row, which is written after it.
                let row = &mut shares[at..][..padded];
                choose(&tables.exponentials[from.clone()], masks, row);
                let mut parts = [T::zero(); LANES];
                row.as_chunks::<LANES>().0.iter().for_each(|chunk| add(&mut parts, chunk));
                let sum = join(parts);
                // The comparison is false for NaN, which then stays.
                if sum < T::of(SMALLEST_SUM) {
                    choose(&tables.scores[from], masks, row);
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

/// Of a table row [2 bits, padded n], the entry of each position's bit; zeros in the padding. A sum of products with masks
/// [2 bits, padded n] instead of a choice: as exact, and always vectorised.
#[inline(always)]
fn choose<T: Real>(table: &[T], masks: &[T], row: &mut [T]) {
    let padded = row.len();
    let [if_zero, if_one, is_zero, is_one] =
        [table, &table[padded..], masks, &masks[padded..]].map(|part| &part[..padded]);
    for j in 0..padded {
        row[j] = is_zero[j] * if_zero[j] + is_one[j] * if_one[j];
    }
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
