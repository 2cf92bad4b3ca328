//! Kernels of finite networks on the whole cube, by their Jacobians.
//!
//! With J(x, p) the derivative of the output for input x by parameter p, the tangent kernel is J J^T, and the conjugate kernel the
//! same over the readout's parameters alone. E[chi_S K chi_S] is then the sum over parameters of the squared Walsh coefficient of
//! J(., p) at S: no 2^d x 2^d matrix is needed for the spectrum by degree.

use faer::{Accum, Mat, MatRef, Par};
use pudica_boolean::memory::{available, human_bytes};
use pudica_statistics::{Estimate, brief};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::architecture::{Architecture, Kernel};
use super::degrees::{Monotone, mean_degree, multiplicities, share_up_to};
use super::eigen::{Eigen, decompose};
use super::networks::{Network, Size, parameter_count};
use crate::{Result, TheoryError};

/// The most bits whose cube is gone through.
pub const LARGEST_CUBE: usize = 12;
/// The most bits for which the kernel itself is made and diagonalised.
pub const LARGEST_EIGEN: usize = 10;
/// The most entries of a Jacobian: 4 GiB.
const LARGEST_JACOBIAN: usize = 1 << 29;

/// Refuses a network whose Jacobian is too large, or larger than the memory that is there; nothing is allocated.
pub fn check_size(architecture: &Architecture, size: Size) -> Result<()> {
    let dimension = architecture.dimension();
    if dimension > LARGEST_CUBE {
        return Err(TheoryError::argument(format!(
            "--dim {dimension}: kernels of finite networks need all 2^{dimension} inputs; --empirical works to {LARGEST_CUBE}"
        )));
    }
    let parameters = parameter_count(architecture, size)?;
    let entries = parameters.saturating_mul(1 << dimension);
    let free = available().unwrap_or(u64::MAX);
    if entries > LARGEST_JACOBIAN || 8 * entries as u64 > free {
        let (needed, most) = (human_bytes((entries as u64).saturating_mul(8)), human_bytes(free.min(4 << 30)));
        return Err(TheoryError::argument(format!(
            "2^{dimension} inputs x {parameters} parameters need {needed}, and they may have {most}: lower the width, depth or dim"
        )));
    }
    Ok(())
}

/// Both kernels of one finite network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FiniteSpectrum {
    /// Which random weights.
    pub seed: u64,
    /// Weights and biases of the network.
    pub parameters: usize,
    /// Conjugate kernel.
    pub ck: KernelByDegree,
    /// Neural tangent kernel.
    pub ntk: KernelByDegree,
}

/// A kernel by degree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KernelByDegree {
    /// Mean of E[chi_S K chi_S] over |S| = k.
    pub mu: Vec<f64>,
    /// C(d, k) mu_k / sum.
    pub fractional_variance: Vec<f64>,
    /// Share of the squared Frobenius norm between different monomials; None above d = 10.
    pub off_diagonal: Option<f64>,
    /// Eigenvalues and the degrees of their eigenfunctions; None above d = 10.
    pub eigen: Option<Eigen>,
}

impl FiniteSpectrum {
    /// One of the kernels.
    pub fn kernel(&self, kernel: Kernel) -> &KernelByDegree {
        match kernel {
            Kernel::Ck => &self.ck,
            Kernel::Ntk => &self.ntk,
        }
    }
}

/// The kernels of one network with random weights.
pub fn finite_spectrum(architecture: &Architecture, size: Size, seed: u64) -> Result<FiniteSpectrum> {
    check_size(architecture, size)?;
    let dimension = architecture.dimension();
    let network = Network::random(architecture, size, seed)?;
    let (inputs, parameters) = (1usize << dimension, network.parameter_count());
    let mut jacobian = vec![0.0; inputs * parameters];
    jacobian.par_chunks_mut(parameters).enumerate().for_each(|(x, row)| {
        let bits: Vec<f64> = (0..dimension).map(|i| if x >> i & 1 == 0 { 1.0 } else { -1.0 }).collect();
        network.jacobian_row(&bits, row);
    });
    let first_of_readout = parameters - network.readout_count();
    let (body, readout) = (0..first_of_readout, first_of_readout..parameters);
    let [body, readout] = [body, readout].map(|columns| Part::of(&jacobian, parameters, columns, dimension));
    let (ntk, ck) = (body.plus(&readout).by_degree(dimension)?, readout.by_degree(dimension)?);
    Ok(FiniteSpectrum { seed, parameters, ck, ntk })
}

/// A kernel as the sum over some parameters, in the Walsh basis.
struct Part {
    /// E[chi_S K chi_S] for every S.
    diagonal: Vec<f64>,
    /// The whole kernel, where it is small enough.
    matrix: Option<Mat<f64>>,
}

/// Columns of the Jacobian that are gathered and transformed together.
const TILE: usize = 16;

impl Part {
    fn of(jacobian: &[f64], parameters: usize, columns: std::ops::Range<usize>, dimension: usize) -> Part {
        let inputs = 1 << dimension;
        let keep = dimension <= LARGEST_EIGEN;
        let tiles: Vec<usize> = columns.clone().step_by(TILE).collect();
        // Each tile gives its share of the diagonal, and its Walsh coefficients if they are needed again.
        let transform = |first: usize| {
            let count = TILE.min(columns.end - first);
            let mut tile = vec![0.0; count * inputs];
            for (x, row) in jacobian.chunks_exact(parameters).enumerate() {
                row[first..first + count].iter().enumerate().for_each(|(c, value)| tile[c * inputs + x] = *value);
            }
            let mut diagonal = vec![0.0; inputs];
            for column in tile.chunks_exact_mut(inputs) {
                pudica_boolean::walsh::transform(column);
                column.iter_mut().zip(&mut diagonal).for_each(|(coefficient, sum)| {
                    *coefficient /= inputs as f64;
                    *sum += *coefficient * *coefficient;
                });
            }
            (diagonal, if keep { tile } else { Vec::new() })
        };
        let transformed: Vec<(Vec<f64>, Vec<f64>)> = tiles.into_par_iter().map(transform).collect();
        let mut diagonal = vec![0.0; inputs];
        let mut coefficients = Vec::new();
        for (share, tile) in transformed {
            diagonal.iter_mut().zip(share).for_each(|(sum, value)| *sum += value);
            coefficients.extend(tile);
        }
        let matrix = keep.then(|| {
            let by_column = MatRef::from_column_major_slice(&coefficients, inputs, columns.len());
            let mut product = Mat::zeros(inputs, inputs);
            faer::linalg::matmul::matmul(&mut product, Accum::Replace, by_column, by_column.transpose(), 1.0, Par::Seq);
            product
        });
        Part { diagonal, matrix }
    }

    fn plus(&self, other: &Part) -> Part {
        let diagonal = self.diagonal.iter().zip(&other.diagonal).map(|(a, b)| a + b).collect();
        let matrix = self.matrix.as_ref().zip(other.matrix.as_ref()).map(|(a, b)| a + b);
        Part { diagonal, matrix }
    }

    fn by_degree(self, dimension: usize) -> Result<KernelByDegree> {
        let degrees: Vec<usize> = (0..1usize << dimension).map(|s| s.count_ones() as usize).collect();
        let mut sums = vec![0.0; dimension + 1];
        self.diagonal.iter().zip(&degrees).for_each(|(value, degree)| sums[*degree] += value);
        let total: f64 = sums.iter().sum();
        let off_diagonal = self.matrix.as_ref().map(|matrix| {
            let on: f64 = self.diagonal.iter().map(|value| value * value).sum();
            (1.0 - on / matrix.squared_norm_l2()).max(0.0)
        });
        let eigen = self.matrix.map(|matrix| decompose(matrix, &degrees, dimension, 1).map(Eigen::of)).transpose()?;
        Ok(KernelByDegree {
            mu: sums.iter().zip(multiplicities(dimension)).map(|(sum, count)| sum / count).collect(),
            fractional_variance: sums.iter().map(|sum| sum / total).collect(),
            off_diagonal,
            eigen,
        })
    }
}

/// What several networks with different random weights have in common.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// How many networks.
    pub networks: usize,
    /// mu by degree.
    #[serde(with = "brief")]
    pub mu: Vec<Estimate>,
    /// Share of the variance by degree.
    #[serde(with = "brief")]
    pub fractional_variance: Vec<Estimate>,
    /// Whether Proposition 3.1's chains hold for the means of mu.
    pub monotone: Monotone,
    /// The mean degree of the variance.
    #[serde(with = "brief")]
    pub mean_degree: Estimate,
    /// Of the variance that is not constant, the shares at degree 1, degrees to 2, and degrees to 3.
    #[serde(with = "brief")]
    pub low_degree_share: [Estimate; 3],
    /// Share of the squared Frobenius norm between different monomials.
    #[serde(with = "brief")]
    pub off_diagonal: Option<Estimate>,
    /// The largest eigenvalues, each over the sum of all.
    #[serde(with = "brief")]
    pub eigenvalue_shares: Option<Vec<Estimate>>,
    /// The mean degrees of their eigenfunctions.
    #[serde(with = "brief")]
    pub eigenfunction_degrees: Option<Vec<Estimate>>,
}

/// Means and standard errors over networks of one kind.
pub fn summarise(spectra: &[FiniteSpectrum], kernel: Kernel) -> Summary {
    let kernels: Vec<&KernelByDegree> = spectra.iter().map(|spectrum| spectrum.kernel(kernel)).collect();
    let over = |value: &dyn Fn(&KernelByDegree) -> f64| {
        Estimate::of_values(&kernels.iter().map(|kernel| value(kernel)).collect::<Vec<f64>>())
    };
    let degrees = kernels.first().map_or(0, |kernel| kernel.mu.len());
    let total = |kernel: &KernelByDegree| -> f64 {
        kernel.mu.iter().zip(multiplicities(degrees - 1)).map(|(mu, count)| mu * count).sum()
    };
    let eigen = |value: &dyn Fn(&KernelByDegree, &Eigen, usize) -> f64| -> Option<Vec<Estimate>> {
        let found: Option<Vec<&Eigen>> = kernels.iter().map(|kernel| kernel.eigen.as_ref()).collect();
        let kept = found.as_ref()?.iter().map(|eigen| eigen.largest.len()).min()?;
        let at = |place: usize| over(&|kernel| kernel.eigen.as_ref().map_or(f64::NAN, |e| value(kernel, e, place)));
        Some((0..kept).map(at).collect())
    };
    let mu: Vec<Estimate> = (0..degrees).map(|k| over(&|kernel| kernel.mu[k])).collect();
    Summary {
        networks: spectra.len(),
        monotone: Monotone::of(&mu.iter().map(|mu| mu.mean).collect::<Vec<f64>>(), 0.0),
        mu,
        fractional_variance: (0..degrees).map(|k| over(&|kernel| kernel.fractional_variance[k])).collect(),
        mean_degree: over(&|kernel| mean_degree(&kernel.fractional_variance)),
        low_degree_share: [1, 2, 3].map(|k| over(&|kernel| share_up_to(&kernel.fractional_variance, k))),
        off_diagonal: kernels
            .iter()
            .map(|kernel| kernel.off_diagonal)
            .collect::<Option<Vec<f64>>>()
            .map(|shares| Estimate::of_values(&shares)),
        eigenvalue_shares: eigen(&|kernel, eigen, place| eigen.largest[place].value / total(kernel)),
        eigenfunction_degrees: eigen(&|_, eigen, place| eigen.largest[place].mean_degree),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spectra::recursion::{Layout, kernels, own_variances};

    /// The spectrum by Walsh transforms and dense algebra, against the kernel made entry by entry.
    #[test]
    fn spectra_are_those_of_the_kernel() {
        let architecture = Architecture::named("lstm", 4).unwrap();
        let size = Size { width: 3, heads: 1 };
        let network = Network::random(&architecture, size, 9).unwrap();
        let rows: Vec<Vec<f64>> = (0..16)
            .map(|x: usize| {
                let bits: Vec<f64> = (0..4).map(|i| 1.0 - 2.0 * (x >> i & 1) as f64).collect();
                let mut row = vec![0.0; network.parameter_count()];
                network.jacobian_row(&bits, &mut row);
                row
            })
            .collect();
        let kernel = Mat::from_fn(16, 16, |x, y| rows[x].iter().zip(&rows[y]).map(|(a, b)| a * b).sum::<f64>() / 16.0);
        let spectrum = finite_spectrum(&architecture, size, 9).unwrap();
        let mut expected = kernel.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        expected.reverse();
        let ours = &spectrum.ntk.eigen.as_ref().unwrap().largest;
        assert!(ours.iter().zip(&expected).all(|(a, b)| (a.value - b).abs() < 1e-13));
        let chi = |s: usize, x: usize| if (s & x).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        for degree in 0..=4u32 {
            let sets = (0..16usize).filter(|s| s.count_ones() == degree);
            let sum: f64 = sets
                .map(|s| {
                    (0..256).map(|xy| chi(s, xy / 16) * chi(s, xy % 16) * kernel[(xy / 16, xy % 16)]).sum::<f64>()
                        / 16.0
                })
                .sum();
            let mu = sum / multiplicities(4)[degree as usize];
            assert!((mu - spectrum.ntk.mu[degree as usize]).abs() < 1e-13);
        }
        assert!((spectrum.ntk.fractional_variance.iter().sum::<f64>() - 1.0).abs() < 1e-13);
        // The output is linear in the readout, whose features are 3 numbers and a bias that is not used: rank 3.
        let ranks = &spectrum.ck.eigen.as_ref().unwrap().largest;
        assert!(ranks[2].value > 1e-6 && ranks[3].value.abs() < 1e-15);
    }

    /// Analytic kernels against wide random networks: the mean over seeds of K(x, y), to five standard errors.
    #[test]
    fn wide_networks_have_the_analytic_kernels() {
        let cases = [("relu", 2, 1, 96, 24), ("erf", 2, 1, 96, 24), ("linear-attention", 1, 2, 192, 48)];
        for (name, depth, tokens, width, seeds) in cases {
            let network = Architecture { depth, bias_variance: 0.2, ..Architecture::named(name, 8).unwrap() };
            let network = Architecture { tokens, token_width: 8 / tokens, ..network };
            let layout = Layout::every_pair(&network);
            let covariances = |x: &[f64], y: &[f64]| -> Vec<f64> {
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / a.len() as f64;
                let rows = x.chunks(8 / tokens);
                rows.flat_map(|a| y.chunks(8 / tokens).map(move |b| dot(a, b))).collect()
            };
            let own = |x: &[f64]| own_variances(&network, &layout, covariances(x, x));
            for differing in [0, 2, 5, 8] {
                let x = [1.0, 1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0];
                let y: Vec<f64> = (0..8).map(|i| if i < differing { -x[i] } else { x[i] }).collect();
                let expected = kernels(&network, &layout, covariances(&x, &y), &own(&x), &own(&y));
                let (mut ck, mut ntk) = (Vec::new(), Vec::new());
                for seed in 0..seeds {
                    let random = Network::random(&network, Size { width, heads: 16 }, seed).unwrap();
                    let (count, first) = (random.parameter_count(), random.parameter_count() - random.readout_count());
                    let (mut a, mut b) = (vec![0.0; count], vec![0.0; count]);
                    random.jacobian_row(&x, &mut a);
                    random.jacobian_row(&y, &mut b);
                    let dot = |from: usize| a[from..].iter().zip(&b[from..]).map(|(a, b)| a * b).sum::<f64>();
                    ck.push(dot(first));
                    ntk.push(dot(0));
                }
                for (what, values, expected) in [("ck", ck, expected.ck), ("ntk", ntk, expected.ntk)] {
                    let estimate = Estimate::of_values(&values);
                    // A finite width biases the mean by a part in `width`, beside its standard error.
                    let allowed = 5.0 * estimate.std_error.unwrap() + 4.0 / width as f64 * expected.abs();
                    assert!(
                        (estimate.mean - expected).abs() < allowed,
                        "{name} {what} at {differing}: {estimate:?}, expected {expected}"
                    );
                    assert!(
                        allowed < 0.5 * (expected.abs() + 0.5),
                        "{name} {what} at {differing} is too noisy: {estimate:?}"
                    );
                }
            }
        }
    }

    /// A kernel of low rank on which the eigensolver does not converge without help.
    #[test]
    fn kernels_of_low_rank_are_diagonalised() {
        let network = Architecture::named("linear-attention", 8).unwrap().with_tokens(8).unwrap();
        let spectrum = finite_spectrum(&network, Size { width: 64, heads: 8 }, 4).unwrap();
        let largest = spectrum.ntk.eigen.unwrap().largest;
        let by_degree: Vec<f64> = spectrum.ntk.mu.iter().zip(multiplicities(8)).map(|(mu, count)| mu * count).collect();
        let trace: f64 = by_degree.iter().sum();
        let kept: f64 = largest.iter().map(|found| found.value * found.copies as f64).sum();
        assert!(kept > 0.9 * trace && kept < (1.0 + 1e-9) * trace, "{kept} of {trace}");
        // Eigenfunctions are right if their degrees, weighted by eigenvalue, add up to the kernel's own.
        for (degree, expected) in by_degree.iter().enumerate() {
            let sum: f64 = largest.iter().map(|found| found.value * found.copies as f64 * found.degrees[degree]).sum();
            assert!((expected - sum).abs() < trace - kept + 1e-9 * trace, "degree {degree}: {sum} of {expected}");
        }
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        let size = Size { width: 8, heads: 2 };
        let refused = |name: &str, dimension, size| {
            let architecture = Architecture::named(name, dimension).unwrap();
            finite_spectrum(&architecture, size, 0).unwrap_err().to_string()
        };
        assert!(refused("relu", 13, size).contains("to 12"));
        assert!(refused("lstm", 12, Size { width: 4096, heads: 1 }).contains("lower the width"));
    }
}
