//! Norms of matrices.

use faer::Mat;

use crate::{Result, TheoryError};

/// The largest singular value of a row-major matrix of `columns` columns.
pub(crate) fn spectral_norm(values: &[f64], columns: usize) -> Result<f64> {
    let matrix = Mat::from_fn(values.len() / columns, columns, |row, column| values[row * columns + column]);
    let singular = matrix.singular_values();
    let singular = singular.map_err(|_| {
        TheoryError::argument("a weight matrix has no singular values: not all of its entries are finite")
    })?;
    Ok(singular.into_iter().fold(0.0, f64::max))
}

/// The largest sum of absolute values of a column.
pub(crate) fn one_norm(values: &[f64], columns: usize) -> f64 {
    (0..columns).map(|c| values.iter().skip(c).step_by(columns).map(|v| v.abs()).sum()).fold(0.0, f64::max)
}

/// A^T B of row-major matrices of equally many rows and `columns` columns each: [columns, columns].
pub(crate) fn transposed_product(a: &[f64], b: &[f64], columns: usize) -> Vec<f64> {
    let mut product = vec![0.0; columns * columns];
    for (a, b) in a.chunks_exact(columns).zip(b.chunks_exact(columns)) {
        for (i, a) in a.iter().enumerate().filter(|(_, a)| **a != 0.0) {
            product[i * columns..(i + 1) * columns].iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_norms() {
        // [[3, 0], [4, 5]] has singular values sqrt(45) and sqrt(5).
        let matrix = [3.0, 0.0, 4.0, 5.0];
        assert!((spectral_norm(&matrix, 2).unwrap() - 45f64.sqrt()).abs() < 1e-12);
        assert_eq!(one_norm(&matrix, 2), 7.0);
        assert_eq!(transposed_product(&matrix, &matrix, 2), [25.0, 20.0, 20.0, 25.0]);
        assert!((spectral_norm(&[1.0, 2.0, 2.0], 3).unwrap() - 3.0).abs() < 1e-12);
        assert!(spectral_norm(&[f64::NAN; 4], 2).is_err());
    }
}
