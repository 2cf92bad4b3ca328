//! Theorem 6: sensitive transformers are sharp. Its lower bound beside measured sharpness.

use std::borrow::Cow;

use pudica_data::{Bits, Stream};
use pudica_nn::{EncoderConfig, Weights};
use pudica_probe::{Budget, Response, WeightLaw, WeightNames, WeightNoise, Weighted, respond};
use pudica_statistics::Estimate;
use serde::Serialize;

use super::Sampling;
use super::claim::{Checked, Claim};
use crate::exact::ExactEncoder;
use crate::{Result, TheoryError};

/// Beyond it the weights are noise alone, and sums of their products are soon no numbers.
const LARGEST_NOISE: f64 = 1e6;

/// Sharpness at one size of noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SharpnessAt {
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
    pub measured: Vec<SharpnessAt>,
}

impl Theorem6 {
    /// Measures an encoder whose average sensitivity is `as_n`, on `strings` uniform strings; on all of them where that is fewer.
    pub fn of(
        config: &EncoderConfig,
        weights: &Weights,
        as_n: f64,
        strings: usize,
        sampling: &Sampling,
    ) -> Result<Self> {
        if let Some(rho) = sampling.rhos.iter().find(|rho| !(**rho > 0.0 && **rho <= LARGEST_NOISE)) {
            let problem = format!("a size of noise (rho) must be above 0 and at most {LARGEST_NOISE}, not {rho}");
            return Err(TheoryError::argument(problem));
        }
        if sampling.draws < 2 {
            return Err(TheoryError::argument(format!(
                "a standard error needs at least 2 noise draws, not {}",
                sampling.draws
            )));
        }
        let n = config.n;
        let strings = match n < 20 && 1 << n <= strings {
            true => Bits::cube(n)?,
            false => Bits::uniform(strings, n, &mut Stream::new(sampling.seed, "theorem6", 0))?,
        };
        let plain = ExactEncoder::new(config, weights)?.outputs(&strings);
        let boolean = plain.iter().all(|output| ((2.0 * output - 1.0).abs() - 1.0).abs() < 0.01);
        let mut outputs = |inputs: &[Weighted<&Bits>]| -> Result<Vec<Vec<f64>>> {
            let answer = |input: &Weighted<&Bits>| match &input.weights {
                Cow::Borrowed(_) => Ok(plain.clone()),
                Cow::Owned(touched) => Ok(ExactEncoder::new(config, touched)?.outputs(input.batch)),
            };
            inputs.iter().map(answer).collect()
        };
        let mut measure = |rho: &f64| -> Result<SharpnessAt> {
            let input = Weighted { weights: Cow::Borrowed(weights), batch: &strings };
            let nudge = WeightNoise { rho: *rho, law: WeightLaw::Sphere, names: WeightNames::DrawOnly };
            let budget = Budget::new(sampling.draws, 1, sampling.seed, "theorem6-noise");
            let found = respond(&mut outputs, [input], &nudge, &[&PlusMinusShift], &budget)?;
            Ok(SharpnessAt { rho: *rho, radius: weights.noise_radius(*rho), output_shift: found[0].total })
        };
        Ok(Self {
            bound: as_n / if boolean { n as f64 } else { 2.0 * n as f64 },
            boolean,
            wide_enough: config.d > 12 * config.layers,
            measured: sampling.rhos.iter().map(&mut measure).collect::<Result<_>>()?,
        })
    }

    /// The theorem as lines of the table: one for each size of noise.
    pub fn claims(&self) -> Vec<Claim> {
        let factor = if self.boolean { "as_n / n" } else { "as_n / 2n" };
        let claim = |found: &SharpnessAt| {
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

/// The mean squared shift of outputs near {0, 1}, on the ±1 scale.
struct PlusMinusShift;

impl Response<Vec<f64>> for PlusMinusShift {
    fn compare(&self, before: &Vec<f64>, after: &Vec<f64>) -> f64 {
        let squares = before.iter().zip(after).map(|(a, b)| 4.0 * (a - b).powi(2)).sum::<f64>();
        squares / before.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constructions::Construction;

    fn measure(config: &EncoderConfig, weights: &Weights, as_n: f64, rhos: &[f64], draws: usize) -> Result<Theorem6> {
        let sampling = Sampling { rhos: rhos.to_vec(), draws, seed: 1, ..Sampling::default() };
        Theorem6::of(config, weights, as_n, 64, &sampling)
    }

    /// Only the head's bias moves a network of zeros: T = bias, so L = 4 rho^2.
    #[test]
    fn a_network_of_zeros_has_the_sharpness_of_its_bias() {
        let config = EncoderConfig { d: 4, ff: 4, heads: 1, layers: 1, ..EncoderConfig::paper(3) };
        let weights = pudica_nn::Architecture::Encoder(config.clone()).empty_weights().unwrap();
        let found = measure(&config, &weights, 0.0, &[1e-3], 400).unwrap();
        let shift = found.measured[0].output_shift;
        assert!((shift.mean - 4e-6).abs() < 4.0 * shift.std_error.unwrap(), "{shift:?}");
    }

    #[test]
    fn small_noise_is_harmless_and_large_noise_is_not() {
        let config = Construction::Parity.default_config(6);
        let weights = Construction::Parity.build(&config, 6.0).unwrap();
        let measure = |rhos: &[f64], draws| measure(&config, &weights, 6.0, rhos, draws);
        let found = measure(&[0.1, 1e-6], 30).unwrap();
        assert!(found.boolean && found.bound == 1.0 && found.wide_enough);
        assert!(found.measured[0].output_shift.mean > 0.1 && found.measured[1].output_shift.mean < 1e-4);
        assert!(measure(&[-0.1], 30).unwrap_err().to_string().contains("must be above 0"));
        assert!(measure(&[0.1], 1).unwrap_err().to_string().contains("at least 2"));
    }
}
