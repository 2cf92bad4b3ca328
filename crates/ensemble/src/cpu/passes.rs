//! Small passes over rows that are in cache anyway, to be inlined into the functions that [`wide`] defines.

use super::real::Real;
use super::wide::wide;

/// Interleaved parts of a sum: independent additions that vectorise, in an order that does not depend on the processor.
const PARTS: usize = 32;
/// The same for what is left over.
const FEW_PARTS: usize = 8;

/// The sum of x.
#[inline(always)]
pub(crate) fn total<T: Real>(x: &[T]) -> T {
    sum_of(x, x, |x, _| x)
}

/// The sum of x y.
#[inline(always)]
pub(crate) fn dot<T: Real>(x: &[T], y: &[T]) -> T {
    sum_of(x, y, |x, y| x * y)
}

/// The sum of (x - mean)^2.
#[inline(always)]
pub(crate) fn squares_about<T: Real>(x: &[T], mean: T) -> T {
    sum_of(x, x, |x, _| (x - mean) * (x - mean))
}

#[inline(always)]
fn sum_of<T: Real>(x: &[T], y: &[T], term: impl Fn(T, T) -> T) -> T {
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<PARTS>(), y.as_chunks::<PARTS>());
    let mut total = T::zero();
    if !x.is_empty() {
        let mut parts = [T::zero(); PARTS];
        for (x, y) in x.iter().zip(y) {
            for i in 0..PARTS {
                parts[i] += term(x[i], y[i]);
            }
        }
        total = join(parts);
    }
    let ((x, x_rest), (y, y_rest)) = (x_rest.as_chunks::<FEW_PARTS>(), y_rest.as_chunks::<FEW_PARTS>());
    if !x.is_empty() {
        let mut parts = [T::zero(); FEW_PARTS];
        for (x, y) in x.iter().zip(y) {
            for i in 0..FEW_PARTS {
                parts[i] += term(x[i], y[i]);
            }
        }
        total += join(parts);
    }
    for (x, y) in x_rest.iter().zip(y_rest) {
        total += term(*x, *y);
    }
    total
}

/// The sum of a power of two of parts, halves upon halves.
#[inline(always)]
pub(crate) fn join<T: Real, const N: usize>(mut parts: [T; N]) -> T {
    let mut half = N / 2;
    while half > 0 {
        for i in 0..half {
            let other = parts[i + half];
            parts[i] += other;
        }
        half /= 2;
    }
    parts[0]
}

/// y [columns] = the sum of rows [.., columns] with these weights. Some columns at a time stay in registers.
#[inline(always)]
pub(crate) fn mix<T: Real>(y: &mut [T], weights: &[T], rows: &[T]) {
    let columns = y.len();
    let (chunks, rest) = y.as_chunks_mut::<PARTS>();
    let done = PARTS * chunks.len();
    for (chunk, y) in chunks.iter_mut().enumerate() {
        let mut sum = [T::zero(); PARTS];
        for (weight, row) in weights.iter().zip(rows.chunks_exact(columns)) {
            let row = &row[PARTS * chunk..][..PARTS];
            for i in 0..PARTS {
                sum[i] += *weight * row[i];
            }
        }
        *y = sum;
    }
    rest.fill(T::zero());
    for (weight, row) in weights.iter().zip(rows.chunks_exact(columns)) {
        add_scaled(rest, *weight, &row[done..]);
    }
}

/// sums [columns] += the column sums of x [.., columns]; products [columns] += those of x y, where rows of y start `y_step` apart.
/// Some columns at a time stay in registers.
#[inline(always)]
pub(crate) fn add_columns<T: Real>(x: &[T], sums: &mut [T], y: &[T], y_step: usize, products: &mut [T]) {
    let columns = sums.len();
    let ((sum_chunks, sum_rest), (product_chunks, product_rest)) =
        (sums.as_chunks_mut::<PARTS>(), products.as_chunks_mut::<PARTS>());
    let done = PARTS * sum_chunks.len();
    for (chunk, (sums, products)) in sum_chunks.iter_mut().zip(product_chunks).enumerate() {
        let (mut sum, mut product) = (*sums, *products);
        for (x, y) in x.chunks_exact(columns).zip(y.chunks_exact(y_step)) {
            let (x, y) = (&x[PARTS * chunk..][..PARTS], &y[PARTS * chunk..][..PARTS]);
            for i in 0..PARTS {
                sum[i] += x[i];
                product[i] += x[i] * y[i];
            }
        }
        (*sums, *products) = (sum, product);
    }
    for (x, y) in x.chunks_exact(columns).zip(y.chunks_exact(y_step)) {
        let (x, y) = (&x[done..], &y[done..columns]);
        for ((x, y), (sum, product)) in x.iter().zip(y).zip(sum_rest.iter_mut().zip(product_rest.iter_mut())) {
            *sum += *x;
            *product += *x * *y;
        }
    }
}

/// sums [columns] += the column sums of rows [.., columns], likewise.
#[inline(always)]
pub(crate) fn add_column_sums<T: Real>(rows: &[T], sums: &mut [T]) {
    let columns = sums.len();
    let (chunks, rest) = sums.as_chunks_mut::<PARTS>();
    let done = PARTS * chunks.len();
    for (chunk, sums) in chunks.iter_mut().enumerate() {
        let mut sum = *sums;
        for row in rows.chunks_exact(columns) {
            let row = &row[PARTS * chunk..][..PARTS];
            for i in 0..PARTS {
                sum[i] += row[i];
            }
        }
        *sums = sum;
    }
    for row in rows.chunks_exact(columns) {
        add(rest, &row[done..]);
    }
}

/// y += x
#[inline(always)]
pub(crate) fn add<T: Real>(y: &mut [T], x: &[T]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += *x;
    }
}

/// y += a x
#[inline(always)]
pub(crate) fn add_scaled<T: Real>(y: &mut [T], a: T, x: &[T]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * *x;
    }
}

/// y *= a
#[inline(always)]
pub(crate) fn scale<T: Real>(y: &mut [T], a: T) {
    for y in y.iter_mut() {
        *y *= a;
    }
}

wide! {
    /// sums [columns] += the column sums of rows [.., columns].
    pub(crate) fn add_rows<T: Real>(sums: &mut [T], rows: &[T]) {
        add_column_sums(rows, sums);
    }
}

/// Add to the gradient [3 d] of attention's input bias those of queries, keys and values, rows [.., 3 d]. That of the keys' bias is
/// exactly 0, since it drops out of the softmax; AdamW would scale its rounding up to full steps.
pub(crate) fn add_input_bias<T: Real>(sums: &mut [T], rows: &[T]) {
    add_rows(sums, rows);
    let d = sums.len() / 3;
    sums[d..2 * d].fill(T::zero());
}

wide! {
    /// Add `bias` to every row of rows [.., columns].
    pub(crate) fn add_bias<T: Real>(rows: &mut [T], bias: &[T]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            add(row, bias);
        }
    }
}

wide! {
    /// y *= a
    pub(crate) fn scale_all<T: Real>(y: &mut [T], a: T) {
        scale(y, a);
    }
}

wide! {
    /// [`softmax`] of every row of rows [.., columns].
    pub(crate) fn softmax_rows<T: Real>(rows: &mut [T], columns: usize) {
        rows.chunks_exact_mut(columns).for_each(softmax);
    }
}

wide! {
    /// [`softmax_backward`] of every row of rows [.., columns].
    pub(crate) fn softmax_rows_backward<T: Real>(gradient: &mut [T], shares: &[T], columns: usize) {
        for (g, p) in gradient.chunks_exact_mut(columns).zip(shares.chunks_exact(columns)) {
            softmax_backward(g, p);
        }
    }
}

wide! {
    /// Scale the first `width` columns of rows [.., columns].
    pub(crate) fn scale_columns<T: Real>(rows: &mut [T], columns: usize, width: usize, factor: T) {
        for row in rows.chunks_exact_mut(columns) {
            scale(&mut row[..width], factor);
        }
    }
}

wide! {
    /// y += x
    pub(crate) fn add_all<T: Real>(y: &mut [T], x: &[T]) {
        add(y, x);
    }
}

/// Scores to shares, in place.
#[inline(always)]
pub(crate) fn softmax<T: Real>(scores: &mut [T]) {
    let largest = largest(scores);
    for score in scores.iter_mut() {
        *score = (*score - largest).fast_exp();
    }
    let inverse = T::one() / total(scores);
    scale(scores, inverse);
}

/// The largest of these values.
#[inline(always)]
pub(crate) fn largest<T: Real>(values: &[T]) -> T {
    let larger = |a: T, b: T| if b > a { b } else { a };
    let (chunks, rest) = values.as_chunks::<PARTS>();
    let mut parts = [T::neg_infinity(); PARTS];
    for chunk in chunks {
        for i in 0..PARTS {
            parts[i] = larger(parts[i], chunk[i]);
        }
    }
    parts.iter().chain(rest).fold(T::neg_infinity(), |largest, value| larger(largest, *value))
}

/// The softmax's gradient, in place: g -> p (g - sum p g).
#[inline(always)]
pub(crate) fn softmax_backward<T: Real>(gradient: &mut [T], shares: &[T]) {
    let along = dot(gradient, shares);
    for (g, p) in gradient.iter_mut().zip(shares) {
        *g = *p * (*g - along);
    }
}

/// from [rows, columns] transposed: to [columns, rows], rows of which start `step` apart; in tiles that stay in cache.
pub(crate) fn transpose<T: Real>(from: &[T], to: &mut [T], rows: usize, columns: usize, step: usize) {
    const TILE: usize = 16;
    for row in (0..rows).step_by(TILE) {
        for column in (0..columns).step_by(TILE) {
            for j in column..(column + TILE).min(columns) {
                for i in row..(row + TILE).min(rows) {
                    to[j * step + i] = from[i * columns + j];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_dots_of_any_length() {
        for length in [0, 1, 9, 31, 32, 33, 45, 100] {
            let x: Vec<f64> = (0..length).map(|i| i as f64 - 3.0).collect();
            assert_eq!(total(&x), x.iter().sum::<f64>());
            assert_eq!(dot(&x, &x), x.iter().map(|x| x * x).sum::<f64>());
            assert_eq!(squares_about(&x, 2.0), x.iter().map(|x| (x - 2.0).powi(2)).sum::<f64>());
        }
    }

    #[test]
    fn columns_of_any_number() {
        for columns in [1, 31, 32, 70] {
            let rows: Vec<f64> = (0..3 * columns).map(|i| (i % 13) as f64).collect();
            let expected = |weights: [f64; 3], power: i32| -> Vec<f64> {
                let at = |i: usize, j: usize| weights[i] * rows[i * columns + j].powi(power);
                (0..columns).map(|j| (0..3).map(|i| at(i, j)).sum()).collect()
            };
            let mut y = vec![9.0; columns];
            mix(&mut y, &[1.0, 2.0, -1.0], &rows);
            assert_eq!(y, expected([1.0, 2.0, -1.0], 1));
            let (mut sums, mut squares, mut others) = (vec![0.0; columns], vec![0.0; columns], vec![0.0; columns]);
            add_columns(&rows, &mut sums, &rows, columns, &mut squares);
            add_rows(&mut others, &rows);
            assert_eq!((&sums, &squares), (&expected([1.0; 3], 1), &expected([1.0; 3], 2)));
            assert_eq!(sums, others);
        }
    }

    #[test]
    fn a_transpose_of_odd_size() {
        let from: Vec<f32> = (0..35 * 18).map(|i| i as f32).collect();
        let mut to = vec![0.0; from.len()];
        transpose(&from, &mut to, 35, 18, 35);
        assert!((0..35).all(|i| (0..18).all(|j| to[j * 35 + i] == from[i * 18 + j])));
    }
}
