//! Theorem 6: sensitive transformers are sharp. Its lower bound beside measured sharpness.

use pudica_data::{Bits, Stream};
use pudica_nn::{EncoderConfig, Weights, is_positional};
use pudica_statistics::{Estimate, Moments};
use serde::Serialize;

use super::claim::{Checked, Claim};
use crate::exact::ExactEncoder;
use crate::{Result, TheoryError};

/// Sharpness at one size of noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sharpness {
    /// The noise on each weight, root mean square: radius / sqrt(weights). (The paper's experiments: 0.02.)
    pub rho: f64,
    /// The rho of Eq. 15: the radius of the sphere the noise lies on.
    pub radius: f64,
    /// L of Eq. 15: E (T with noise - T)^2 on the ±1 scale; its error is over noise draws.
    pub output_shift: Estimate,
}

/// The bound at this length, and sharpness at several sizes of noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Theorem6 {
    /// as_n / (2n), or as_n / n for outputs ±1, without the term L exp(-Omega(d)), whose constant the paper leaves open.
    pub bound: f64,
    /// Whether the outputs are ±1 (within 0.01), so that the factor 2 drops.
    pub boolean: bool,
    /// Whether d > 12 L, as the theorem demands.
    pub wide_enough: bool,
    /// From large noise to small.
    pub measured: Vec<Sharpness>,
}

/// What to measure with.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    /// Sizes of noise on each weight.
    pub rhos: Vec<f64>,
    /// Noise draws for each; at least 2, for a standard error.
    pub draws: usize,
    /// Uniform strings; all of them where that is fewer.
    pub strings: usize,
    /// Names strings and noise.
    pub seed: u64,
}

impl Theorem6 {
    /// Measures an encoder whose average sensitivity is `as_n`.
    pub fn of(config: &EncoderConfig, weights: &Weights, as_n: f64, noise: &Noise) -> Result<Self> {
        if let Some(rho) = noise.rhos.iter().find(|rho| !(rho.is_finite() && **rho > 0.0)) {
            return Err(TheoryError::argument(format!("a size of noise must be a positive number, not {rho}")));
        }
        if noise.draws < 2 {
            return Err(TheoryError::argument(format!(
                "a standard error needs at least 2 noise draws, not {}",
                noise.draws
            )));
        }
        let n = config.n;
        let strings = match n < 20 && 1 << n <= noise.strings {
            true => Bits::cube(n)?,
            false => Bits::uniform(noise.strings, n, &mut Stream::new(noise.seed, "theorem6", 0))?,
        };
        let plain = ExactEncoder::new(config, weights)?.outputs(&strings);
        let boolean = plain.iter().all(|output| ((2.0 * output - 1.0).abs() - 1.0).abs() < 0.01);
        let measure = |rho: &f64| -> Result<Sharpness> {
            let (mut shifts, mut radius) = (Moments::default(), 0.0);
            for draw in 0..noise.draws {
                let mut stream = Stream::new(noise.seed, "theorem6-noise", draw as u64);
                let touched;
                (touched, radius) = on_sphere(weights, *rho, &mut stream);
                let outputs = ExactEncoder::new(config, &touched)?.outputs(&strings);
                let squares = plain.iter().zip(&outputs).map(|(a, b)| 4.0 * (a - b).powi(2)).sum::<f64>();
                shifts.add(squares / plain.len() as f64);
            }
            Ok(Sharpness { rho: *rho, radius, output_shift: Estimate::sampled(&shifts) })
        };
        Ok(Self {
            bound: as_n / if boolean { n as f64 } else { 2.0 * n as f64 },
            boolean,
            wide_enough: config.d > 12 * config.layers,
            measured: noise.rhos.iter().map(measure).collect::<Result<_>>()?,
        })
    }

    /// The theorem as lines of the table: one for each size of noise.
    pub fn claims(&self) -> Vec<Claim> {
        let factor = if self.boolean { "as_n / n" } else { "as_n / 2n" };
        let claim = |found: &Sharpness| {
            let statement =
                format!("sharpness at rho = {} per weight (radius {:.3}) beside {factor}", found.rho, found.radius);
            let claim = Claim::at_least("Theorem 6", statement, found.output_shift.mean, self.bound, Checked::Beside);
            let width = if self.wide_enough { "" } else { " d > 12 L is not given here." };
            let error = found.output_shift.std_error.unwrap_or(f64::NAN);
            claim.note(format!("± {error:.2e}, {} draws.{width}", found.output_shift.samples))
        };
        let mut claims: Vec<Claim> = self.measured.iter().map(claim).collect();
        if let Some(last) = claims.last_mut() {
            last.note += " The theorem is about n to infinity first, rho to 0 after: no finite n decides it.";
        }
        claims
    }
}

/// Weights moved by a uniformly random vector of root mean square `rho`, positional embeddings excepted; and that vector's length.
fn on_sphere(weights: &Weights, rho: f64, stream: &mut Stream) -> (Weights, f64) {
    let mut touched = weights.clone();
    let ranges = weights.layout().iter().filter(|parameter| !is_positional(&parameter.name)).map(|p| p.range.clone());
    let sites: Vec<usize> = ranges.flatten().collect();
    let normals: Vec<f64> = sites.iter().map(|_| stream.normal()).collect();
    let radius = rho * (sites.len() as f64).sqrt();
    let scale = radius / crate::exact::norm(&normals);
    for (site, normal) in sites.iter().zip(&normals) {
        touched.data_mut()[*site] += (scale * normal) as f32;
    }
    (touched, radius)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constructions::Construction;

    fn noise(rhos: &[f64]) -> Noise {
        Noise { rhos: rhos.to_vec(), draws: 30, strings: 64, seed: 1 }
    }

    #[test]
    fn noise_lies_on_the_sphere_and_spares_positions() {
        let config = Construction::First.default_config(4);
        let weights = Construction::First.build(&config, 1.0).unwrap();
        let (touched, radius) = on_sphere(&weights, 0.05, &mut Stream::new(0, "sphere", 0));
        let moved: Vec<f64> = touched.data().iter().zip(weights.data()).map(|(a, b)| f64::from(a - b)).collect();
        assert!((crate::exact::norm(&moved) / radius - 1.0).abs() < 1e-4);
        assert_eq!(touched.get("pos.weight"), weights.get("pos.weight"));
    }

    /// Only the head's bias moves a network of zeros: T = bias, so L = 4 rho^2.
    #[test]
    fn a_network_of_zeros_has_the_sharpness_of_its_bias() {
        let config = EncoderConfig { d: 4, ff: 4, heads: 1, layers: 1, ..EncoderConfig::paper(3) };
        let weights = pudica_nn::Architecture::Encoder(config.clone()).empty_weights().unwrap();
        let found = Theorem6::of(&config, &weights, 0.0, &Noise { draws: 400, ..noise(&[1e-3]) }).unwrap();
        let shift = found.measured[0].output_shift;
        assert!((shift.mean - 4e-6).abs() < 4.0 * shift.std_error.unwrap(), "{shift:?}");
    }

    #[test]
    fn small_noise_is_harmless_and_large_noise_is_not() {
        let config = Construction::Parity.default_config(6);
        let weights = Construction::Parity.build(&config, 6.0).unwrap();
        let found = Theorem6::of(&config, &weights, 6.0, &noise(&[0.1, 1e-6])).unwrap();
        assert!(found.boolean && found.bound == 1.0 && found.wide_enough);
        assert!(found.measured[0].output_shift.mean > 0.1 && found.measured[1].output_shift.mean < 1e-4);
        assert!(
            Theorem6::of(&config, &weights, 6.0, &noise(&[-0.1])).unwrap_err().to_string().contains("positive number")
        );
        let few = Noise { draws: 1, ..noise(&[0.1]) };
        assert!(Theorem6::of(&config, &weights, 6.0, &few).unwrap_err().to_string().contains("at least 2"));
    }
}
