//! Eigenvalues of a kernel written in the Walsh basis, and the degrees of their eigenfunctions.

use faer::{Mat, Side};
use serde::{Deserialize, Serialize};

use super::degrees::mean_degree;
use crate::{Result, TheoryError};

/// The true eigen-decomposition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Eigen {
    /// The largest eigenvalues, largest first.
    pub largest: Vec<Eigenvalue>,
    /// The mean, weighted by eigenvalue, of the largest share of an eigenfunction at one degree: 1 if each has a degree.
    pub purity: f64,
}

/// An eigenvalue and its eigenfunction by degree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Eigenvalue {
    /// The eigenvalue.
    pub value: f64,
    /// How many eigenfunctions share it.
    pub copies: usize,
    /// The squared Walsh coefficients of its eigenfunctions, by degree; their mean where several share it.
    pub degrees: Vec<f64>,
    /// Their mean degree.
    pub mean_degree: f64,
}

/// How many different eigenvalues are kept, the largest ones.
const KEPT: usize = 24;
/// Eigenvalues closer than this part of the largest are taken for equal.
const EQUAL: f64 = 1e-10;

/// All eigenvalues of a symmetric matrix whose rows are monomials of the given degrees, up to `dimension`.
pub(super) fn decompose(
    matrix: Mat<f64>,
    degrees: &[usize],
    dimension: usize,
    copies: usize,
) -> Result<Vec<Eigenvalue>> {
    // On some kernels of low rank the solver does not converge. Away from 0 it does; a shift of the kernel's own size changes
    // eigenvalues by no more than rounding does.
    let size = matrix.norm_l2();
    let shifted = |by: f64| {
        let moved = Mat::from_fn(matrix.nrows(), matrix.ncols(), |row, column| {
            matrix[(row, column)] + if row == column { by } else { 0.0 }
        });
        moved.self_adjoint_eigen(Side::Lower).map(|solved| (solved, by))
    };
    let (solved, shift) = shifted(0.0)
        .or_else(|_| shifted(size))
        .or_else(|_| shifted(1.25 * size))
        .map_err(|error| TheoryError::argument(format!("the kernel could not be diagonalised: {error:?}")))?;
    let (values, functions) = (solved.S().column_vector(), solved.U());
    let eigenvalue = |place: usize| {
        let mut shares = vec![0.0; dimension + 1];
        degrees.iter().enumerate().for_each(|(row, degree)| shares[*degree] += functions[(row, place)].powi(2));
        Eigenvalue { value: values[place] - shift, copies, mean_degree: mean_degree(&shares), degrees: shares }
    };
    Ok((0..degrees.len()).map(eigenvalue).collect())
}

impl Eigen {
    /// Sums up the eigenvalues of all parts of a kernel.
    pub(super) fn of(mut all: Vec<Eigenvalue>) -> Eigen {
        let total: f64 = all.iter().map(|e| e.copies as f64 * e.value).sum();
        let purest = |e: &Eigenvalue| e.degrees.iter().copied().fold(0.0, f64::max);
        let purity = all.iter().map(|e| e.copies as f64 * e.value * purest(e)).sum::<f64>() / total;
        all.sort_by(|a, b| b.value.total_cmp(&a.value));
        let mut largest: Vec<Eigenvalue> = Vec::new();
        for next in all {
            let close = EQUAL * largest.first().map_or(0.0, |first| first.value);
            let found = largest.len();
            match largest.last_mut() {
                Some(last) if last.value - next.value <= close => last.join(&next),
                _ if found == KEPT => break,
                _ => largest.push(next),
            }
        }
        Eigen { largest, purity }
    }
}

impl Eigenvalue {
    /// Joins an equal eigenvalue to this one: any mixture of their eigenfunctions is one too.
    fn join(&mut self, other: &Eigenvalue) {
        let share = other.copies as f64 / (self.copies + other.copies) as f64;
        for (mine, theirs) in self.degrees.iter_mut().zip(&other.degrees) {
            *mine += share * (theirs - *mine);
        }
        self.copies += other.copies;
        self.mean_degree = mean_degree(&self.degrees);
    }
}
