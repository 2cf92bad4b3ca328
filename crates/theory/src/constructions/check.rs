//! Whether a hand-built transformer computes its function: on every string, or on strings of every number of ones.

use pudica_data::{Bits, Stream, Target};
use pudica_nn::{Architecture, Device, Network};
use serde::Serialize;

use super::Construction;
use crate::exact::ExactEncoder;
use crate::{Result, TheoryError};

/// The longest strings all of which are tried.
pub const LARGEST_EXHAUSTIVE: usize = 16;

/// Strings computed at once; long strings fewer at once, as attention takes n^2 numbers for each.
const POSITIONS_AT_ONCE: usize = 1 << 14;

/// How a transformer did on a set of strings, in both precisions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// Bits in a string.
    pub n: usize,
    /// The amplification by weights.
    pub gain: f64,
    /// Strings tried.
    pub strings: u64,
    /// Whether they are all there are.
    pub exhaustive: bool,
    /// Computed in f64.
    pub double: Accuracy,
    /// Computed in f32, as networks are trained.
    pub single: Accuracy,
}

/// How predictions compare with labels in {0, 1}.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accuracy {
    /// Predictions on the label's side of 1/2.
    pub correct: u64,
    /// The largest |prediction - label|: 0 is perfect, 1/2 is a wrong label.
    pub worst_error: f64,
    /// A string that has it.
    pub worst_string: String,
}

/// Tries the transformer on all strings up to n = [`LARGEST_EXHAUSTIVE`]; on longer ones on `samples` random strings whose numbers
/// of ones are spread evenly over 0..=n (uniform strings would all have about n/2).
pub fn check(construction: Construction, n: usize, gain: f64, samples: usize, seed: u64) -> Result<Check> {
    let config = construction.default_config(n);
    let weights = construction.build(&config, gain)?;
    let target = Target::parse(construction.name(), n)?;
    let exhaustive = n <= LARGEST_EXHAUSTIVE;
    let strings = if exhaustive { Bits::cube(n)? } else { spread(n, samples, seed)? };
    let encoder = ExactEncoder::new(&config, &weights)?;
    let network = Network::new(&Architecture::Encoder(config), weights, &Device::cpu())?;
    let (mut double, mut single) = (Accuracy::none(), Accuracy::none());
    for strings in strings.pieces((POSITIONS_AT_ONCE / n).max(1)) {
        let labels = target.labels(&strings)?;
        let in_single: Vec<f64> = network.predict(&strings)?.into_iter().map(f64::from).collect();
        double.add(&strings, &labels, &encoder.outputs(&strings));
        single.add(&strings, &labels, &in_single);
    }
    Ok(Check { n, gain, strings: strings.rows() as u64, exhaustive, double, single })
}

/// Random strings, the number of ones going evenly from 0 to n.
fn spread(n: usize, samples: usize, seed: u64) -> Result<Bits> {
    if samples < 2 {
        return Err(TheoryError::argument(format!(
            "n = {n} is sampled, which needs at least 2 samples, not {samples}"
        )));
    }
    let mut data = Vec::with_capacity(samples * n);
    for sample in 0..samples {
        let mut string = vec![0; n];
        string[..sample * n / (samples - 1)].fill(1);
        Stream::new(seed, "construction-strings", sample as u64).shuffle(&mut string);
        data.extend(string);
    }
    Ok(Bits::new(n, data)?)
}

impl Accuracy {
    fn none() -> Self {
        Self { correct: 0, worst_error: 0.0, worst_string: String::new() }
    }

    fn add(&mut self, strings: &Bits, labels: &[f32], outputs: &[f64]) {
        for ((string, label), output) in strings.iter().zip(labels).zip(outputs) {
            self.correct += u64::from((*output > 0.5) == (*label > 0.5));
            let error = (output - f64::from(*label)).abs();
            // Not a number is the worst error there is.
            if error.is_nan() || error >= self.worst_error {
                self.worst_error = error;
                self.worst_string = string.iter().map(|bit| if *bit == 1 { '1' } else { '0' }).collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_strings_have_every_share_of_ones() {
        let strings = spread(20, 41, 0).unwrap();
        let ones: Vec<usize> = strings.iter().map(|s| s.iter().map(|b| usize::from(*b)).sum()).collect();
        assert_eq!((ones[0], ones[20], ones[40]), (0, 10, 20));
        assert!(check(Construction::First, 17, 1.0, 1, 0).unwrap_err().to_string().contains("at least 2 samples"));
    }
}
