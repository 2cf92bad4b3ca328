//! Products of matrices that are parts of slices, by the `gemm` crate.

use crate::cpu::Real;

/// A matrix in a slice: element (i, j) at `i * row_step + j`, or, where it is turned, at `i + j * row_step`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    data: &'a [T],
    row_step: usize,
    turned: bool,
}

impl<'a, T> Matrix<'a, T> {
    /// Rows that begin `row_step` apart.
    pub(crate) fn new(data: &'a [T], row_step: usize) -> Self {
        Self { data, row_step, turned: false }
    }

    /// Rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Self { turned: !self.turned, ..self }
    }

    /// How far apart columns and rows are.
    fn steps(&self) -> (usize, usize) {
        if self.turned { (self.row_step, 1) } else { (1, self.row_step) }
    }

    fn holds(&self, rows: usize, columns: usize) -> bool {
        let (column_step, row_step) = self.steps();
        (rows - 1) * row_step + (columns - 1) * column_step < self.data.len()
    }
}

/// c = a b, or with `add` c += a b, of a [rows, depth] and b [depth, columns]; c's rows begin `c_step` apart.
pub(crate) fn product<T: Real>(
    [rows, columns, depth]: [usize; 3],
    c: &mut [T],
    c_step: usize,
    a: Matrix<T>,
    b: Matrix<T>,
    add: bool,
) {
    let c_holds = (rows - 1) * c_step + columns <= c.len() && columns <= c_step;
    assert!(a.holds(rows, depth) && b.holds(depth, columns) && c_holds, "matrices within their slices");
    let ((a_columns, a_rows), (b_columns, b_rows)) = (a.steps(), b.steps());
    let old = if add { T::one() } else { T::zero() };
    // SAFETY: every element of the three matrices lies in its slice, as just checked; c is borrowed exclusively, and its rows do not overlap.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            c.as_mut_ptr(),
            1,
            c_step as isize,
            add,
            a.data.as_ptr(),
            a_columns as isize,
            a_rows as isize,
            b.data.as_ptr(),
            b_columns as isize,
            b_rows as isize,
            old,
            T::one(),
            false,
            false,
            false,
            // Work is shared out above, in pieces that do not depend on the number of threads.
            gemm::Parallelism::None,
        );
    }
}
