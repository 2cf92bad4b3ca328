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
    /// How many symmetric copies it has.
    pub copies: usize,
    /// The squared Walsh coefficients of its eigenfunction, by degree.
    pub degrees: Vec<f64>,
    /// Their mean degree.
    pub mean_degree: f64,
}

/// How many of the largest eigenvalues are kept.
const KEPT: usize = 24;

/// All eigenvalues of a symmetric matrix whose rows are monomials of the given degrees, up to `dimension`.
pub(super) fn decompose(
    matrix: Mat<f64>,
    degrees: &[usize],
    dimension: usize,
    copies: usize,
) -> Result<Vec<Eigenvalue>> {
    let solved = matrix
        .self_adjoint_eigen(Side::Lower)
        .map_err(|error| TheoryError::argument(format!("the kernel could not be diagonalised: {error:?}")))?;
    let (values, functions) = (solved.S().column_vector(), solved.U());
    let eigenvalue = |place: usize| {
        let mut shares = vec![0.0; dimension + 1];
        degrees.iter().enumerate().for_each(|(row, degree)| shares[*degree] += functions[(row, place)].powi(2));
        Eigenvalue { value: values[place], copies, mean_degree: mean_degree(&shares), degrees: shares }
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
        all.truncate(KEPT);
        Eigen { largest: all, purity }
    }
}
