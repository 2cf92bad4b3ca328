//! Matrices that are parts of slices, and their product by the `gemm` crate.

use super::real::Real;

/// A matrix in a slice: element (i, j) at `i * row_step + j * column_step`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Row-major [rows, columns] without gaps.
    pub(crate) fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        Self::with_step(data, rows, columns, columns)
    }

    /// Row-major [rows, columns], rows `row_step` apart.
    pub(crate) fn with_step(data: &'a [T], rows: usize, columns: usize, row_step: usize) -> Self {
        Self { data, rows, columns, row_step, column_step: 1 }
    }

    /// Rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Self {
            data: self.data,
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
        }
    }

    fn fits(&self) -> bool {
        self.rows > 0
            && self.columns > 0
            && (self.rows - 1) * self.row_step + (self.columns - 1) * self.column_step < self.data.len()
    }
}

/// A matrix in a slice that is written to: element (i, j) at `i * row_step + j`.
pub(crate) struct MatrixMut<'a, T> {
    data: &'a mut [T],
    rows: usize,
    columns: usize,
    row_step: usize,
}

impl<'a, T> MatrixMut<'a, T> {
    /// Row-major [rows, columns] without gaps.
    pub(crate) fn new(data: &'a mut [T], rows: usize, columns: usize) -> Self {
        Self::with_step(data, rows, columns, columns)
    }

    /// Row-major [rows, columns], rows `row_step` apart.
    pub(crate) fn with_step(data: &'a mut [T], rows: usize, columns: usize, row_step: usize) -> Self {
        Self { data, rows, columns, row_step }
    }
}

/// c = a b
pub(crate) fn multiply<T: Real>(c: MatrixMut<T>, a: Matrix<T>, b: Matrix<T>) {
    product(c, a, b, false);
}

/// c += a b
pub(crate) fn multiply_add<T: Real>(c: MatrixMut<T>, a: Matrix<T>, b: Matrix<T>) {
    product(c, a, b, true);
}

fn product<T: Real>(c: MatrixMut<T>, a: Matrix<T>, b: Matrix<T>, add: bool) {
    assert_eq!((c.rows, a.columns, b.columns), (a.rows, b.rows, c.columns), "shapes of a product");
    let c_fits = (c.rows - 1) * c.row_step + c.columns <= c.data.len() && c.columns <= c.row_step;
    assert!(a.fits() && b.fits() && c_fits, "matrices within their slices");
    let (old, new) = (if add { T::one() } else { T::zero() }, T::one());
    // SAFETY: every element of the three matrices lies in its slice, as just checked; c is borrowed exclusively, and its rows do
    // not overlap.
    unsafe {
        gemm::gemm(
            c.rows,
            c.columns,
            a.columns,
            c.data.as_mut_ptr(),
            1,
            c.row_step as isize,
            add,
            a.data.as_ptr(),
            a.column_step as isize,
            a.row_step as isize,
            b.data.as_ptr(),
            b.column_step as isize,
            b.row_step as isize,
            old,
            new,
            false,
            false,
            false,
            // Work is shared out above, in pieces that do not depend on the number of threads.
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_parts_of_slices() {
        let a = [1.0, 2.0, 9.0, 3.0, 4.0, 9.0];
        let b = [1.0, 0.0, 2.0, 1.0, 1.0, 1.0];
        let mut c = [0.0f64; 6];
        let left = Matrix::with_step(&a, 2, 2, 3);
        multiply(MatrixMut::new(&mut c, 2, 3), left, Matrix::new(&b, 2, 3));
        assert_eq!(c, [3.0, 2.0, 4.0, 7.0, 4.0, 10.0]);
        multiply_add(MatrixMut::new(&mut c[..4], 2, 2), left, Matrix::with_step(&b, 2, 2, 3).transposed());
        assert_eq!(c, [4.0, 5.0, 7.0, 14.0, 4.0, 10.0]);
    }

    #[test]
    #[should_panic(expected = "within their slices")]
    fn a_product_beyond_its_slices_is_refused() {
        multiply(MatrixMut::new(&mut [0.0f32; 4], 2, 2), Matrix::new(&[0.0; 3], 2, 2), Matrix::new(&[0.0; 4], 2, 2));
    }
}
