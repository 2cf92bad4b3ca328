//! What a function of bits is like that is known on every string: every string and every flip, no sampling.

use pudica_boolean::real_sensitivity::real_sensitivity;
use pudica_boolean::{RealTable, Spectrum, TruthTable, sensitivity_profile};
use pudica_statistics::Estimate;
use serde::{Deserialize, Serialize};

use crate::ProbeError;

/// The longest strings for which every one of the 2^n is tried.
pub const LARGEST_EXACT: usize = 20;

/// Where real outputs are cut to make a Boolean function of them: above it they are 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cut {
    /// At 1/2, between the labels 0 and 1: for networks that were trained on these.
    #[default]
    Half,
    /// At 0, as a sign.
    Zero,
    /// At the median of the outputs: half of all strings are 1, whatever the last layer's bias and scale are.
    Median,
}

impl Cut {
    /// The number above which outputs are 1. Of an even number of outputs it lies between the two in the middle, so that half of them are above
    /// it, and none of them is at it: a string that is would count flips for sensitive that barely move its output.
    pub(crate) fn at(self, outputs: &[f32]) -> f32 {
        match self {
            Cut::Half => 0.5,
            Cut::Zero => 0.0,
            Cut::Median if outputs.is_empty() => 0.0,
            Cut::Median => {
                let mut sorted = outputs.to_vec();
                let middle = (sorted.len() - 1) / 2;
                let (_, lower, above) = sorted.select_nth_unstable_by(middle, f32::total_cmp);
                let lower = *lower;
                let upper = above.iter().copied().min_by(f32::total_cmp).filter(|_| outputs.len().is_multiple_of(2));
                // Where no number lies between them, the lower one parts them as well.
                let between = upper.map(|upper| lower + (upper - lower) / 2.0).filter(|cut| Some(*cut) < upper);
                between.unwrap_or(lower)
            }
        }
    }
}

/// How the outputs of a network spread over strings and degrees: free of where they are cut, and of their scale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OutputSpread {
    /// Their variance, on the ±1 scale.
    pub variance: f64,
    /// as_n over the variance, which by Eq. 17 of Hahn & Rofin is the mean degree of the Fourier weight that is not constant: 1 for a linear
    /// function, n for PARITY.
    pub mean_degree: Estimate,
    /// The fraction of the variance that is at degree 1.
    pub degree_one: Estimate,
}

/// The sensitivity of what a network computes, on the ±1 scale of the theory: the network's outputs near {0, 1} count as
/// 1 - 2 * output, so that as_n = E sum_i (1/4) (f(x) - f(x with bit i flipped))^2 is the number of flips that change a bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkSensitivity {
    /// as_n of the outputs as they are, real numbers.
    pub real: Estimate,
    /// as_n of the outputs cut at 1/2, a Boolean function.
    pub boolean: Estimate,
    /// Of the Boolean function: for each bit, how often flipping it changes the value.
    pub influences: Vec<f64>,
    /// Of the Boolean function: how many of the inputs tried are sensitive to 0, 1, .. n of their bits.
    pub histogram: Vec<u64>,
    /// Of the Boolean function, when all inputs were tried: the Fourier weight at degree 0, 1, .. n; sums to 1.
    pub degree_profile: Option<Vec<f64>>,
    /// Of the outputs as they are (as 1 - 2 * output), when all inputs were tried.
    pub real_degree_profile: Option<Vec<f64>>,
    /// How the outputs spread, where it was asked for and there is any spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<OutputSpread>,
}

impl NetworkSensitivity {
    /// From the outputs on every string of n bits, in the order of [`pudica_data::Bits::cube`].
    pub fn exact(outputs: &[f32], n: usize) -> Result<Self, ProbeError> {
        Self::exact_at(outputs, n, Cut::Half)
    }

    /// The same with the outputs cut elsewhere.
    pub fn exact_at(outputs: &[f32], n: usize, at: Cut) -> Result<Self, ProbeError> {
        let rows = outputs.len() as u64;
        let table = cut(outputs, n, at.at(outputs))?;
        let profile = sensitivity_profile(&table);
        // Bit 0 is +1 and bit 1 is -1 in pudica-boolean, so an output counts as 1 - 2 * output; only squares are read off.
        let values: Vec<f64> = outputs.iter().map(|output| 1.0 - 2.0 * f64::from(*output)).collect();
        let real = RealTable::new(n, values[..].into(), f64::from(f32::EPSILON))?;
        Ok(Self {
            real: Estimate::exact(real_sensitivity(&real).average_sensitivity(), rows),
            boolean: Estimate::exact(profile.average_sensitivity(), rows),
            influences: profile.influences(),
            histogram: profile.histogram(),
            degree_profile: Some(Spectrum::of(&table)?.degree_profile().to_vec()),
            real_degree_profile: Some(Spectrum::of_real(real)?.degree_profile().to_vec()),
            spread: None,
        })
    }

    /// The same with how the outputs spread, read off the degrees; of outputs that are all equal there is nothing to tell.
    pub fn with_spread(mut self) -> Self {
        let Some(degrees) = &self.real_degree_profile else { return self };
        let variance: f64 = degrees[1..].iter().sum();
        let exact = |value: f64| Estimate::exact(value, self.real.samples);
        self.spread = (variance > 0.0).then(|| OutputSpread {
            variance,
            mean_degree: exact(self.real.mean / variance),
            degree_one: exact(degrees[1] / variance),
        });
        self
    }

    /// The least and the most sensitive of the inputs tried, of the Boolean function.
    pub fn extremes(&self) -> Option<(usize, usize)> {
        let tried = |count: &u64| *count > 0;
        self.histogram.iter().position(tried).zip(self.histogram.iter().rposition(tried))
    }
}

/// The Boolean function of outputs on every string: which are above a number.
pub(crate) fn cut(outputs: &[f32], n: usize, at: f32) -> Result<TruthTable, ProbeError> {
    let mut table = TruthTable::zeros(n)?;
    for (row, output) in outputs.iter().enumerate() {
        table.set(row as u64, *output > at);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use pudica_data::{Bits, Target};

    use super::*;

    fn measure(name: &str, n: usize) -> NetworkSensitivity {
        let outputs = Target::parse(name, n).unwrap().labels(&Bits::cube(n).unwrap()).unwrap();
        NetworkSensitivity::exact(&outputs, n).unwrap()
    }

    #[test]
    fn parity_is_sensitive_to_every_bit() {
        let found = measure("parity", 9);
        assert_eq!((found.real.mean, found.boolean.mean), (9.0, 9.0));
        assert_eq!(found.histogram[9], 512);
        assert_eq!(found.degree_profile.unwrap()[9], 1.0);
        assert!(found.real.exact);
    }

    #[test]
    fn first_and_majority_have_their_closed_forms() {
        let first = measure("first", 6);
        assert_eq!((first.boolean.mean, first.influences), (1.0, vec![1.0, 0.0, 0.0, 0.0, 0.0, 0.0]));
        // Majority of five: 5 * C(4, 2) / 2^4.
        let majority = measure("majority", 5);
        assert_eq!(majority.boolean.mean, 5.0 * 6.0 / 16.0);
        assert_eq!(majority.histogram, [12, 0, 0, 20, 0, 0]);
    }

    /// MEAN shifts by 1/n at each of n flips: as_n = 1/n. The spectrum gives the same number (Eq. 17).
    #[test]
    fn the_real_values_of_mean_give_one_over_n() {
        let found = measure("mean", 8);
        assert!((found.real.mean - 1.0 / 8.0).abs() < 1e-6);
        let profile = found.real_degree_profile.unwrap();
        let by_spectrum: f64 = profile.iter().enumerate().map(|(degree, weight)| degree as f64 * weight).sum();
        assert!((by_spectrum - found.real.mean).abs() < 1e-6);
    }

    #[test]
    fn degrees_and_flips_agree_for_a_random_function() {
        let found = measure("random:3", 10);
        let profile = found.degree_profile.unwrap();
        let by_spectrum: f64 = profile.iter().enumerate().map(|(degree, weight)| degree as f64 * weight).sum();
        assert!((by_spectrum - found.boolean.mean).abs() < 1e-9);
        assert!((profile.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_table_is_what_the_outputs_say() {
        let target = Target::parse("random:5", 7).unwrap();
        let outputs = target.labels(&Bits::cube(7).unwrap()).unwrap();
        assert_eq!(cut(&outputs, 7, 0.5).unwrap(), target.table().unwrap());
    }

    /// Outputs of some other scale and bias are the same function once they are cut at their median, and have the same mean degree.
    #[test]
    fn the_median_forgets_scale_and_bias() {
        let labels = Target::parse("random:5", 8).unwrap().labels(&Bits::cube(8).unwrap()).unwrap();
        // Distinct, so that exactly half are above the median.
        let outputs: Vec<f32> = labels.iter().enumerate().map(|(row, label)| label + 1e-3 * row as f32).collect();
        let moved: Vec<f32> = outputs.iter().map(|output| 0.125 * output - 3.0).collect();
        let [own, other] =
            [&outputs, &moved].map(|o| NetworkSensitivity::exact_at(o, 8, Cut::Median).unwrap().with_spread());
        assert_eq!((&own.histogram, own.boolean), (&other.histogram, other.boolean));
        let degrees = [own, other].map(|found| found.spread.unwrap().mean_degree.mean);
        assert!((degrees[0] - degrees[1]).abs() < 1e-4, "{degrees:?}");
        let ones = moved.iter().filter(|output| **output > Cut::Median.at(&moved)).count();
        assert_eq!((ones, Cut::Zero.at(&moved), Cut::Half.at(&moved)), (128, 0.0, 0.5));
    }

    #[test]
    fn spreads_and_extremes_are_those_of_known_functions() {
        let spread = |name: &str, n: usize| measure(name, n).with_spread().spread.unwrap();
        assert_eq!((spread("parity", 7).mean_degree.mean, spread("parity", 7).degree_one.mean), (7.0, 0.0));
        let mean = spread("mean", 7);
        assert!((mean.mean_degree.mean - 1.0).abs() < 1e-6 && (mean.degree_one.mean - 1.0).abs() < 1e-6);
        assert!((mean.variance - 1.0 / 7.0).abs() < 1e-6);
        // AND of six: one string with six sensitive bits, six with one, all others with none.
        assert_eq!(measure("and", 6).extremes(), Some((0, 6)));
        assert_eq!(measure("first", 6).extremes(), Some((1, 1)));
        assert_eq!(NetworkSensitivity::exact(&[0.25; 16], 4).unwrap().with_spread().spread, None);
    }
}
