//! Spectra of infinitely wide networks whose kernel is a function of <x, y> alone.
//!
//! For an MLP that is a theorem. For linear attention it is the claim of Vasudeva et al. (Proposition 3.1), and true only of one
//! token: in general K needs all the <x_a, y_b>. Here every token pair is given its mean over all inputs with that <x, y>: tokens at
//! equal places correlate as c = <x, y> / d, others not at all. That is exact for one token, and for typical inputs as tokens grow
//! wide. What the kernel really is: [`super::cube`].

use rayon::prelude::*;
use serde::Serialize;

use super::architecture::{Architecture, Kernel};
use super::degrees::Monotone;
use super::krawtchouk::{binomials, eigenvalues};
use super::real::{Big, Real};
use super::recursion::{Kernels, Layout, Variances, kernels, own_variances};
use crate::{Result, TheoryError};

/// The kernel of a network as a function of c = <x, y> / d.
pub struct Univariate<'a, R> {
    network: &'a Architecture,
    layout: Layout,
    variances: Variances<R>,
}

impl<'a, R: Real> Univariate<'a, R> {
    /// Prepares the kernel, in the precision of `one`, which is 1.
    pub fn new(network: &'a Architecture, one: &R) -> Self {
        let layout = Layout::alike(network);
        let variances = own_variances(network, &layout, vec![one.clone(), one.constant(0.0)]);
        Univariate { network, layout, variances }
    }

    /// Both kernels at c.
    pub fn at(&self, c: R) -> Kernels<R> {
        let zero = c.constant(0.0);
        kernels(self.network, &self.layout, vec![c, zero], &self.variances, &self.variances)
    }
}

/// Eigenvalues by degree, with the accuracy they were computed to.
#[derive(Clone, Debug, Serialize)]
pub struct InfiniteSpectrum {
    /// mu_k, one for each degree 0 ... d; 0 where it is below the range of f64 or below the resolution.
    pub mu: Vec<f64>,
    /// log10 of mu_k, also where mu_k is below the range of f64; null (minus infinity) where mu_k is 0.
    pub log10_mu: Vec<f64>,
    /// C(d, k) mu_k / sum.
    pub fractional_variance: Vec<f64>,
    /// Whether the two chains of Proposition 3.1 hold.
    pub monotone: Monotone,
    /// The largest relative error of any mu_k that is not 0.
    pub relative_error: f64,
    /// log10 of the smallest eigenvalue that would have been seen: those given as 0 are below it.
    pub log10_resolution: f64,
    /// Bits carried.
    pub bits: usize,
}

/// Relative accuracy of every eigenvalue; smaller ones than can be known so well are given as 0. With the bits carried here that
/// is below 10^-60, and below 10^-500 in 512 dimensions, where the smallest that matter are of size 2^-512 = 10^-154.
const WANTED_LOG10: f64 = -15.0;

/// The spectrum of an infinitely wide network.
pub fn infinite_spectrum(network: &Architecture, kernel: Kernel) -> Result<InfiniteSpectrum> {
    network.check()?;
    if !network.has_closed_form() {
        return Err(TheoryError::argument(format!(
            "{} has no infinitely wide kernel in closed form here: add --empirical R for that of R finite networks",
            network.name
        )));
    }
    at_precision(network, kernel, 3 * network.dimension() + 256)
}

/// The spectrum with kernel values of this many bits.
fn at_precision(network: &Architecture, kernel: Kernel, bits: usize) -> Result<InfiniteSpectrum> {
    let dimension = network.dimension();
    let rough = values(network, kernel, bits);
    let psi = values(network, kernel, bits + 64);
    // How much the values move with 64 bits more is what rounding did to the rough ones; the fine ones are better by 2^-64, but
    // only the rough ones' error is claimed. It covers the sums' own rounding too.
    let largest = psi.iter().map(Big::abs).fold(Big::new(0.0, 64), |a, b| if b > a { b } else { a });
    let sums = largest.clone().times_power_of_two(8 - bits as i32);
    let error = rough.iter().zip(&psi).map(|(a, b)| (a - b).abs()).fold(sums, |a, b| if b > a { b } else { a });
    if largest.to_f64().is_nan() || error.to_f64().is_nan() {
        return Err(TheoryError::argument(
            "the kernel is not a number: its variances leave the range of numbers; choose variances nearer to 1",
        ));
    }

    let exact = eigenvalues(&psi);
    let smallest = error.log10() - WANTED_LOG10;
    let zero = Big::new(0.0, bits);
    let mu: Vec<Big> = exact.iter().map(|m| if m.log10() < smallest { zero.clone() } else { m.clone() }).collect();
    let weights: Vec<Big> = binomials(dimension, bits).iter().zip(&mu).map(|(count, m)| count * m).collect();
    let total = weights.iter().fold(zero, |sum, weight| &sum + weight);
    let twice = error.clone().times_power_of_two(1);
    let violations = (2..mu.len()).filter(|k| exact[*k] > &exact[*k - 2] + &twice).collect();
    let smallest_kept = mu.iter().filter(|m| !m.is_zero()).map(Big::log10).fold(f64::INFINITY, f64::min);
    Ok(InfiniteSpectrum {
        log10_mu: mu.iter().map(Big::log10).collect(),
        fractional_variance: weights.iter().map(|weight| (weight / &total).to_f64()).collect(),
        mu: mu.iter().map(Big::to_f64).collect(),
        monotone: Monotone::from_violations(violations),
        // The conversion to f64 rounds once more.
        relative_error: 10f64.powf(error.log10() - smallest_kept) + f64::EPSILON,
        log10_resolution: smallest,
        bits,
    })
}

/// Psi_j for j = 0 ... d differing bits: c = 1 - 2 j / d.
fn values(network: &Architecture, kernel: Kernel, bits: usize) -> Vec<Big> {
    let dimension = network.dimension();
    let one = Big::new(1.0, bits);
    let psi = Univariate::new(network, &one);
    let value = |differing: usize| {
        let c = one.constant(dimension as f64 - 2.0 * differing as f64) / one.constant(dimension as f64);
        let both = psi.at(c);
        if kernel == Kernel::Ck { both.ck } else { both.ntk }
    };
    (0..=dimension).into_par_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spectra::activation::Activation;
    use crate::spectra::degrees::multiplicities;

    fn spectrum(name: &str, dimension: usize, kernel: Kernel) -> InfiniteSpectrum {
        infinite_spectrum(&Architecture::named(name, dimension).unwrap(), kernel).unwrap()
    }

    #[test]
    fn variances_sum_to_the_kernel_on_the_diagonal() {
        for (name, kernel) in [("relu", Kernel::Ck), ("erf", Kernel::Ntk), ("linear-attention", Kernel::Ntk)] {
            let network = Architecture { depth: 3, bias_variance: 0.2, ..Architecture::named(name, 40).unwrap() };
            let spectrum = infinite_spectrum(&network, kernel).unwrap();
            let both = Univariate::new(&network, &1.0).at(1.0);
            let diagonal = if kernel == Kernel::Ck { both.ck } else { both.ntk };
            let sum: f64 = multiplicities(40).iter().zip(&spectrum.mu).map(|(count, mu)| count * mu).sum();
            assert!((sum / diagonal - 1.0).abs() < 1e-12, "{name}: {sum} {diagonal}");
            assert!((spectrum.fractional_variance.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn relu_without_bias_has_no_odd_degrees_above_one() {
        let spectrum = spectrum("relu", 20, Kernel::Ck);
        for degree in 0..=20 {
            assert_eq!(spectrum.mu[degree] == 0.0, degree % 2 == 1 && degree > 1, "degree {degree}");
        }
        assert!(spectrum.monotone.even && spectrum.monotone.odd);
        assert!(spectrum.relative_error < 1e-14 && spectrum.log10_resolution < -60.0);
    }

    /// One linear attention layer claims c^3: E[x1 s^3] / d^3 = (3 d - 2) / d^3 and E[x1 x2 x3 s^3] / d^3 = 6 / d^3.
    #[test]
    fn the_claimed_attention_kernel_is_cubic() {
        for dimension in [12, 512] {
            let network = Architecture::named("linear-attention", dimension).unwrap();
            let network = Architecture { activation: Activation::Identity, weight_variance: 1.0, ..network };
            let mu = infinite_spectrum(&network, Kernel::Ck).unwrap().mu;
            let d = dimension as f64;
            assert!((mu[1] / ((3.0 * d - 2.0) / d.powi(3)) - 1.0).abs() < 1e-14);
            assert!((mu[3] / (6.0 / d.powi(3)) - 1.0).abs() < 1e-14);
            assert!(mu.iter().enumerate().all(|(k, mu)| k == 1 || k == 3 || *mu == 0.0));
        }
    }

    /// The precise kernels rounded, against the same recursion in f64 and f32.
    #[test]
    fn machine_precisions_agree() {
        for name in ["relu", "erf", "linear-attention"] {
            let network = Architecture { depth: 3, bias_variance: 0.3, ..Architecture::named(name, 24).unwrap() };
            let one = Big::new(1.0, 256);
            let (big, double, single) =
                (Univariate::new(&network, &one), Univariate::new(&network, &1f64), Univariate::new(&network, &1f32));
            for differing in 0..=24 {
                let c = 1.0 - f64::from(differing) / 12.0;
                let (a, b, e) = (big.at(one.constant(c)), double.at(c), single.at(c as f32));
                for (a, b, e) in [(a.ck, b.ck, e.ck), (a.ntk, b.ntk, e.ntk)] {
                    let size = a.abs().to_f64() + 1.0;
                    assert!((a.to_f64() - b).abs() < 1e-12 * size, "{name} f64 at {c}: {} {b}", a.to_f64());
                    assert!((a.to_f64() - f64::from(e)).abs() < 2e-4 * size, "{name} f32 at {c}: {} {e}", a.to_f64());
                }
            }
        }
    }
}
