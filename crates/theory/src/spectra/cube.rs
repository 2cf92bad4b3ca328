//! The exact kernel of infinitely wide linear attention on the whole cube, by its token structure.
//!
//! The kernel depends on all <x_a, y_b>. Flipping bit u of every token of both inputs changes none of them, so of its 2^d x 2^d
//! matrix only the rows are needed in which the first token is all ones, and in the Walsh basis it falls into 2^w blocks (w bits in a
//! token): monomials chi_S and chi_S' mix only if S and S' have the same parity in each of the w columns.

use faer::Mat;
use rayon::prelude::*;
use serde::Serialize;

use super::architecture::{Architecture, Family, Kernel};
use super::degrees::{Monotone, multiplicities};
use super::eigen::{Eigen, Eigenvalue, decompose};
use super::recursion::{Layout, Variances, kernels, own_variances};
use crate::{Result, TheoryError};

/// The most bits whose cube is gone through.
pub const LARGEST_CUBE: usize = 14;
/// Blocks of up to 2^12 monomials are diagonalised.
const LARGEST_BLOCK: usize = 12;

/// The exact kernel seen from the monomials.
#[derive(Clone, Debug, Serialize)]
pub struct CubeSpectrum {
    /// Mean of E[chi_S K chi_S] over |S| = k: the eigenvalues of the nearest kernel that depends on <x, y> alone.
    pub mu: Vec<f64>,
    /// The smallest and the largest of E[chi_S K chi_S] over |S| = k.
    pub mu_range: Vec<[f64; 2]>,
    /// C(d, k) mu_k / sum.
    pub fractional_variance: Vec<f64>,
    /// Whether Proposition 3.1's chains hold for these mu.
    pub monotone: Monotone,
    /// How far the kernel is from one of <x, y> alone.
    pub distance: Distance,
    /// Eigenvalues and what their eigenfunctions are made of; None where blocks are too large.
    pub eigen: Option<Eigen>,
}

/// Shares of the squared Frobenius norm of the kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Distance {
    /// Not a function of <x, y>: the two below together. 0 would make the claim true.
    pub not_univariate: f64,
    /// Between different monomials: monomials are not eigenfunctions.
    pub off_diagonal: f64,
    /// Between monomials of one degree: their eigenvalues differ.
    pub within_degrees: f64,
}

/// The kernel in the Walsh basis: entry (s, p, s') of block p, s and s' the monomials' tokens after the first.
struct Blocks {
    network: Architecture,
    values: Vec<f64>,
}

/// Computes the exact kernel on the whole cube and takes it apart.
pub fn cube_spectrum(network: &Architecture, kernel: Kernel) -> Result<CubeSpectrum> {
    network.check()?;
    let dimension = network.dimension();
    if network.family != Family::LinearAttention {
        return Err(TheoryError::argument(
            "only linear attention has a kernel by tokens to compare with: leave --exact out",
        ));
    }
    if dimension > LARGEST_CUBE {
        return Err(TheoryError::argument(format!(
            "--dim {dimension}: the exact kernel needs all 2^{dimension} inputs; --exact works to {LARGEST_CUBE}"
        )));
    }
    let blocks = Blocks::compute(network, kernel);
    let counts = multiplicities(dimension);
    let mut sums = vec![0.0; dimension + 1];
    let mut squares = 0.0;
    let mut ranges = vec![[f64::INFINITY, f64::NEG_INFINITY]; dimension + 1];
    let whole: f64 = blocks.diagonal().map(|(_, value)| value).sum();
    for (degree, value) in blocks.diagonal() {
        // Double precision cannot tell these from 0.
        let value = if value.abs() < 1e-15 * whole { 0.0 } else { value };
        sums[degree] += value;
        squares += value * value;
        ranges[degree] = [ranges[degree][0].min(value), ranges[degree][1].max(value)];
    }
    let mu: Vec<f64> = sums.iter().zip(&counts).map(|(sum, count)| sum / count).collect();
    let total: f64 = sums.iter().sum();
    let everything: f64 = blocks.values.iter().map(|value| value * value).sum();
    let univariate: f64 = mu.iter().zip(&counts).map(|(mu, count)| count * mu * mu).sum();
    // What double precision makes of values of this size; the kernel's own error is of the same order.
    let rounding = 1e-13 * total.abs();
    Ok(CubeSpectrum {
        fractional_variance: sums.iter().map(|sum| sum / total).collect(),
        monotone: Monotone::of(&mu, rounding),
        mu,
        mu_range: ranges,
        distance: Distance {
            not_univariate: ((everything - univariate) / everything).max(0.0),
            off_diagonal: ((everything - squares) / everything).max(0.0),
            within_degrees: ((squares - univariate) / everything).max(0.0),
        },
        eigen: (blocks.order() <= 1 << LARGEST_BLOCK).then(|| blocks.eigen()).transpose()?,
    })
}

impl Blocks {
    fn compute(network: &Architecture, kernel: Kernel) -> Blocks {
        let (tokens, width, dimension) = (network.tokens, network.token_width, network.dimension());
        let layout = Layout::every_pair(network);
        let mask = (1u32 << width) - 1;
        let token = |x: u32, place: usize| x >> (place * width) & mask;
        let covariances = |x: u32, y: u32| -> Vec<f64> {
            let pairs = (0..tokens).flat_map(|a| (0..tokens).map(move |b| (a, b)));
            let agree = |(a, b)| width as f64 - 2.0 * f64::from((token(x, a) ^ token(y, b)).count_ones());
            pairs.map(|pair| agree(pair) / width as f64).collect()
        };
        let own = |x: u32| own_variances(network, &layout, covariances(x, x));
        let variances: Vec<Variances<f64>> = (0..1u32 << dimension).into_par_iter().map(own).collect();
        // All ones is the string of zero bits; the same flips in every token of y are g in all places.
        let everywhere = |g: u32| (0..tokens).fold(0, |all, place| all | g << (place * width));
        let rest = 1u32 << (dimension - width);
        let row = |x: u32| {
            (0..1u32 << width)
                .flat_map(move |g| (0..rest).map(move |y| y << width ^ everywhere(g)))
                .map(move |y| (x, y))
        };
        let value = |(x, y): (u32, u32)| {
            let both = kernels(network, &layout, covariances(x, y), &variances[x as usize], &variances[y as usize]);
            if kernel == Kernel::Ck { both.ck } else { both.ntk }
        };
        let mut values: Vec<f64> =
            (0..rest).into_par_iter().flat_map_iter(|x| row(x << width).map(value).collect::<Vec<f64>>()).collect();
        // One transform of the flat array transforms all three of its axes: rows, flips and columns.
        pudica_boolean::walsh::transform(&mut values);
        let scale = 1.0 / values.len() as f64;
        values.iter_mut().for_each(|value| *value *= scale);
        Blocks { network: network.clone(), values }
    }

    /// Monomials in a block.
    fn order(&self) -> usize {
        1 << (self.network.dimension() - self.network.token_width)
    }

    fn block_count(&self) -> usize {
        1 << self.network.token_width
    }

    fn entry(&self, block: usize, row: usize, column: usize) -> f64 {
        self.values[(row * self.block_count() + block) * self.order() + column]
    }

    /// The degree of monomial `place` of a block. Its first token is what gives its columns the block's parities.
    fn degree(&self, block: usize, place: usize) -> usize {
        let (width, mask) = (self.network.token_width, self.block_count() - 1);
        let first =
            (0..self.network.tokens - 1).fold(block, |parity, token| parity ^ (place >> (token * width) & mask));
        (place.count_ones() + first.count_ones()) as usize
    }

    /// Degree of S and E[chi_S K chi_S], for every S.
    fn diagonal(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        (0..self.block_count()).flat_map(move |block| {
            (0..self.order()).map(move |place| (self.degree(block, place), self.entry(block, place, place)))
        })
    }

    fn eigen(&self) -> Result<Eigen> {
        let (order, width) = (self.order(), self.network.token_width);
        let copies = multiplicities(width);
        // Exchanging columns maps a block to any other with as many odd columns: one of each is enough.
        let solve = |odd: usize| {
            let block = (1 << odd) - 1;
            let matrix = Mat::from_fn(order, order, |row, column| self.entry(block, row, column));
            let degrees: Vec<usize> = (0..order).map(|place| self.degree(block, place)).collect();
            decompose(matrix, &degrees, self.network.dimension(), copies[odd] as usize)
        };
        let parts: Vec<Vec<Eigenvalue>> = (0..=width).into_par_iter().map(solve).collect::<Result<_>>()?;
        Ok(Eigen::of(parts.into_iter().flatten().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spectra::architecture::Readout;
    use crate::spectra::infinite_spectrum;
    use faer::Side;

    fn network(dimension: usize, tokens: usize) -> Architecture {
        Architecture::named("linear-attention", dimension).unwrap().with_tokens(tokens).unwrap()
    }

    /// The whole 2^d x 2^d matrix, diagonalised with no use of its structure, and its Walsh diagonal by the definition.
    #[test]
    fn blocks_are_the_whole_kernel() {
        for (tokens, readout) in [(3, Readout::Flatten), (2, Readout::Mean), (6, Readout::Mean)] {
            let network = Architecture { readout, bias_variance: 0.2, depth: 2, ..network(6, tokens) };
            let spectrum = cube_spectrum(&network, Kernel::Ntk).unwrap();
            let (width, layout) = (network.token_width, Layout::every_pair(&network));
            let bit = |x: usize, place: usize| 1.0 - 2.0 * (x >> place & 1) as f64;
            let covariances = |x: usize, y: usize| -> Vec<f64> {
                let dot = |a: usize, b: usize| -> f64 {
                    (0..width).map(|u| bit(x, a * width + u) * bit(y, b * width + u)).sum::<f64>() / width as f64
                };
                (0..tokens * tokens).map(|pair| dot(pair / tokens, pair % tokens)).collect()
            };
            let own: Vec<_> = (0..64).map(|x| own_variances(&network, &layout, covariances(x, x))).collect();
            let matrix =
                Mat::from_fn(64, 64, |x, y| kernels(&network, &layout, covariances(x, y), &own[x], &own[y]).ntk / 64.0);
            let mut values = matrix.self_adjoint_eigenvalues(Side::Lower).unwrap();
            values.reverse();
            let mut ours = spectrum.eigen.unwrap().largest.into_iter().flat_map(|e| vec![e.value; e.copies]);
            let largest = values[0];
            for value in values.iter().take(24) {
                let ours = ours.next().unwrap();
                assert!((value - ours).abs() < 1e-12 * largest, "{tokens} tokens: {value} {ours}");
            }
            let chi = |s: usize, x: usize| if (s & x).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
            let mut mu = [0.0; 7];
            for s in 0..64usize {
                let sum: f64 =
                    (0..64 * 64).map(|xy| chi(s, xy / 64) * chi(s, xy % 64) * matrix[(xy / 64, xy % 64)]).sum();
                mu[s.count_ones() as usize] += sum / 64.0 / multiplicities(6)[s.count_ones() as usize];
            }
            for (expected, ours) in mu.iter().zip(&spectrum.mu) {
                assert!((expected - ours).abs() < 1e-13 * largest, "{mu:?} {:?}", spectrum.mu);
            }
        }
    }

    #[test]
    fn one_token_is_what_the_paper_claims() {
        let network = Architecture { bias_variance: 0.1, ..network(8, 1) };
        let (exact, claimed) =
            (cube_spectrum(&network, Kernel::Ck).unwrap(), infinite_spectrum(&network, Kernel::Ck).unwrap());
        for (exact, claimed) in exact.mu.iter().zip(&claimed.mu) {
            assert!((exact - claimed).abs() < 1e-14, "{exact} {claimed}");
        }
        assert!(exact.distance.not_univariate < 1e-12, "{:?}", exact.distance);
        assert!(exact.eigen.unwrap().purity > 1.0 - 1e-9);
    }

    #[test]
    fn several_tokens_are_not() {
        let exact = cube_spectrum(&network(8, 4), Kernel::Ck).unwrap();
        assert!(exact.distance.not_univariate > 0.01, "{:?}", exact.distance);
        let sum = exact.distance.off_diagonal + exact.distance.within_degrees;
        assert!((sum - exact.distance.not_univariate).abs() < 1e-12);
        assert!(cube_spectrum(&network(16, 4), Kernel::Ck).unwrap_err().to_string().contains("to 14"));
    }
}
