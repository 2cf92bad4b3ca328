//! Everything `pudica spectrum` says about one network, in one object.

use serde::Serialize;

use super::architecture::{Architecture, Family, Kernel};
use super::cube::{CubeSpectrum, cube_spectrum};
use super::degrees::{Monotone, mean_degree};
use super::finite::{FiniteSpectrum, Summary, finite_spectrum, summarise};
use super::infinite::infinite_spectrum;
use super::networks::Size;
use crate::{Result, TheoryError};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which network.
    pub network: Architecture,
    /// Which kernel.
    pub kernel: Kernel,
    /// Whether the exact attention kernel is computed; None: where it takes seconds (d <= 10).
    pub exact: Option<bool>,
    /// Finite networks to compute beside it.
    pub empirical: Option<Empirical>,
}

/// Which finite networks.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Empirical {
    /// How many.
    pub networks: u64,
    /// The first one's seed; the others follow.
    pub seed: u64,
    /// Their size.
    #[serde(flatten)]
    pub size: Size,
}

/// What is answered; its JSON is the command's.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// The network's name.
    pub arch: String,
    /// The kernel.
    pub kernel: Kernel,
    /// Dimensions of the cube.
    pub dim: usize,
    /// Layers.
    pub depth: usize,
    /// Where mu and what follows from it come from.
    pub method: Method,
    /// Eigenvalue by degree; for finite networks E[chi_S K chi_S], averaged over |S| = k and over networks.
    pub mu: Vec<f64>,
    /// log10 of mu, also where mu is below the range of f64; null where mu is 0.
    pub log10_mu: Vec<f64>,
    /// Share of the variance by degree.
    pub fractional_variance: Vec<f64>,
    /// Whether Proposition 3.1's two chains hold.
    pub monotone: Monotone,
    /// The mean degree of the variance.
    pub mean_degree: f64,
    /// How exact mu is, for infinite width.
    pub accuracy: Option<Accuracy>,
    /// All settings of the network.
    pub network: Architecture,
    /// The exact attention kernel.
    pub exact: Option<CubeSpectrum>,
    /// Finite networks.
    pub empirical: Option<EmpiricalAnswer>,
}

/// Where eigenvalues come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A closed form in <x, y>.
    InfiniteWidth,
    /// The mean of finite networks.
    FiniteWidth,
}

/// How exact eigenvalues are.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Accuracy {
    /// The largest relative error of any mu that is not 0.
    pub relative_error: f64,
    /// Those given as 0 are below this power of ten.
    pub log10_resolution: f64,
    /// Bits carried.
    pub bits: usize,
}

/// Finite networks and what they say.
#[derive(Clone, Debug, Serialize)]
pub struct EmpiricalAnswer {
    /// Which networks.
    #[serde(flatten)]
    pub asked: Empirical,
    /// Weights and biases of each.
    pub parameters: usize,
    /// Means and standard errors.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The exact attention kernel is computed without being asked for up to this many bits.
const EXACT_UNASKED: usize = 10;
/// More networks than this are a typing mistake.
const MOST_NETWORKS: u64 = 10_000;

/// Answers a request; `progress` hears of every finite network that is done.
pub fn analyse(request: &Request, progress: &mut dyn FnMut(u64, u64)) -> Result<Analysis> {
    let Request { network, kernel, .. } = request;
    let infinite = match (network.has_closed_form(), &request.empirical) {
        (false, Some(_)) => None,
        _ => Some(infinite_spectrum(network, *kernel)?),
    };
    let unasked = network.family == Family::LinearAttention && network.dimension() <= EXACT_UNASKED;
    let exact = request.exact.unwrap_or(unasked).then(|| cube_spectrum(network, *kernel)).transpose()?;
    let empirical = request.empirical.map(|asked| empirical(network, *kernel, asked, progress)).transpose()?;

    let (mu, log10_mu, fractional_variance, monotone, accuracy) = match (infinite, &empirical) {
        (Some(infinite), _) => {
            let accuracy = Accuracy {
                relative_error: infinite.relative_error,
                log10_resolution: infinite.log10_resolution,
                bits: infinite.bits,
            };
            (infinite.mu, infinite.log10_mu, infinite.fractional_variance, infinite.monotone, Some(accuracy))
        }
        (None, Some(finite)) => {
            let means = |estimates: &[super::Estimate]| estimates.iter().map(|e| e.mean).collect::<Vec<f64>>();
            let (mu, shares) = (means(&finite.summary.mu), means(&finite.summary.fractional_variance));
            let logarithms = mu.iter().map(|mu| mu.log10()).collect();
            (mu, logarithms, shares, finite.summary.monotone.clone(), None)
        }
        (None, None) => return Err(TheoryError::argument("nothing was asked for")),
    };
    Ok(Analysis {
        arch: network.name.clone(),
        kernel: *kernel,
        dim: network.dimension(),
        depth: network.depth,
        method: if accuracy.is_some() { Method::InfiniteWidth } else { Method::FiniteWidth },
        mean_degree: mean_degree(&fractional_variance),
        mu,
        log10_mu,
        fractional_variance,
        monotone,
        accuracy,
        network: network.clone(),
        exact,
        empirical,
    })
}

fn empirical(
    network: &Architecture,
    kernel: Kernel,
    asked: Empirical,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<EmpiricalAnswer> {
    if !(1..=MOST_NETWORKS).contains(&asked.networks) {
        return Err(TheoryError::argument(format!(
            "--empirical {}: give the number of random networks, 1 to {MOST_NETWORKS}",
            asked.networks
        )));
    }
    let mut spectra: Vec<FiniteSpectrum> = Vec::new();
    for done in 0..asked.networks {
        spectra.push(finite_spectrum(network, asked.size, asked.seed.wrapping_add(done))?);
        progress(done + 1, asked.networks);
    }
    let parameters = spectra.first().map_or(0, |spectrum| spectrum.parameters);
    Ok(EmpiricalAnswer { asked, parameters, summary: summarise(&spectra, kernel) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str, dimension: usize) -> Request {
        let network = Architecture::named(name, dimension).unwrap();
        Request { network, kernel: Kernel::Ntk, exact: None, empirical: None }
    }

    #[test]
    fn each_network_gets_the_answers_there_are() {
        let mut count = 0;
        let mut count_up = |_: u64, _: u64| count += 1;
        let empirical = Some(Empirical { networks: 2, seed: 3, size: Size { width: 8, heads: 2 } });
        let mlp = analyse(&request("relu", 30), &mut count_up).unwrap();
        assert!(mlp.exact.is_none() && mlp.empirical.is_none() && mlp.accuracy.is_some());
        assert!(analyse(&request("linear-attention", 8), &mut count_up).unwrap().exact.is_some());
        assert!(analyse(&request("linear-attention", 12), &mut count_up).unwrap().exact.is_none());
        assert!(analyse(&request("lstm", 6), &mut count_up).unwrap_err().to_string().contains("--empirical"));
        let lstm = analyse(&Request { empirical, ..request("lstm", 6) }, &mut count_up).unwrap();
        assert_eq!((lstm.method, lstm.mu.len()), (Method::FiniteWidth, 7));
        assert_eq!(lstm.empirical.unwrap().summary.networks, 2);
        let none = Some(Empirical { networks: 0, seed: 0, size: Size { width: 8, heads: 2 } });
        assert!(analyse(&Request { empirical: none, ..request("relu", 6) }, &mut count_up).is_err());
        assert_eq!(count, 2);
    }
}
