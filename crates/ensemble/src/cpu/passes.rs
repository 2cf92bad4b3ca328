//! Small passes over rows that are in cache anyway. All are inlined into a [`wide`] caller, which compiles them for the widest
//! vectors of this processor.

use super::real::Real;

/// Do some work compiled for the widest vectors this processor has.
#[inline(always)]
pub(crate) fn wide<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// Interleaved parts of a sum: independent additions that vectorise, in an order that does not depend on the processor.
const PARTS: usize = 32;

/// The sum of x.
#[inline(always)]
pub(crate) fn total<T: Real>(x: &[T]) -> T {
    let (chunks, rest) = x.as_chunks::<PARTS>();
    let mut parts = [T::zero(); PARTS];
    for chunk in chunks {
        for i in 0..PARTS {
            parts[i] += chunk[i];
        }
    }
    let mut total = join(parts);
    for x in rest {
        total += *x;
    }
    total
}

/// The sum of x y.
#[inline(always)]
pub(crate) fn dot<T: Real>(x: &[T], y: &[T]) -> T {
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<PARTS>(), y.as_chunks::<PARTS>());
    let mut parts = [T::zero(); PARTS];
    for (x, y) in x.iter().zip(y) {
        for i in 0..PARTS {
            parts[i] += x[i] * y[i];
        }
    }
    let mut total = join(parts);
    for (x, y) in x_rest.iter().zip(y_rest) {
        total += *x * *y;
    }
    total
}

#[inline(always)]
fn join<T: Real>(mut parts: [T; PARTS]) -> T {
    let mut half = PARTS / 2;
    while half > 0 {
        for i in 0..half {
            let other = parts[i + half];
            parts[i] += other;
        }
        half /= 2;
    }
    parts[0]
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

/// sums [columns] += the column sums of rows [.., columns].
#[inline(always)]
pub(crate) fn add_rows<T: Real>(sums: &mut [T], rows: &[T]) {
    for row in rows.chunks_exact(sums.len()) {
        add(sums, row);
    }
}

/// Add `bias` to every row of rows [.., columns].
#[inline(always)]
pub(crate) fn add_bias<T: Real>(rows: &mut [T], bias: &[T]) {
    for row in rows.chunks_exact_mut(bias.len()) {
        add(row, bias);
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
    values.iter().fold(T::neg_infinity(), |largest, value| if *value > largest { *value } else { largest })
}

/// The softmax's gradient, in place: g -> p (g - sum p g).
#[inline(always)]
pub(crate) fn softmax_backward<T: Real>(gradient: &mut [T], shares: &[T]) {
    let along = dot(gradient, shares);
    for (g, p) in gradient.iter_mut().zip(shares) {
        *g = *p * (*g - along);
    }
}

/// to [columns, rows] = from [rows, columns] transposed, in tiles that stay in cache.
pub(crate) fn transpose<T: Real>(from: &[T], to: &mut [T], rows: usize, columns: usize) {
    const TILE: usize = 16;
    for row in (0..rows).step_by(TILE) {
        for column in (0..columns).step_by(TILE) {
            for j in column..(column + TILE).min(columns) {
                for i in row..(row + TILE).min(rows) {
                    to[j * rows + i] = from[i * columns + j];
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
        for length in [0, 1, 31, 32, 33, 100] {
            let x: Vec<f64> = (0..length).map(|i| i as f64 - 3.0).collect();
            assert_eq!(total(&x), x.iter().sum::<f64>());
            assert_eq!(dot(&x, &x), x.iter().map(|x| x * x).sum::<f64>());
        }
    }

    #[test]
    fn a_transpose_of_odd_size() {
        let from: Vec<f32> = (0..35 * 18).map(|i| i as f32).collect();
        let mut to = vec![0.0; from.len()];
        transpose(&from, &mut to, 35, 18);
        assert!((0..35).all(|i| (0..18).all(|j| to[j * 35 + i] == from[i * 18 + j])));
    }
}
