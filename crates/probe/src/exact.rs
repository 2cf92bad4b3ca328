//! What a function of bits is like that is known on every string: every string and every flip, no sampling.

use pudica_boolean::real_sensitivity::real_sensitivity;
use pudica_boolean::{RealTable, Spectrum, TruthTable, sensitivity_profile};
use pudica_statistics::Estimate;
use serde::{Deserialize, Serialize};

use crate::ProbeError;

/// The longest strings for which every one of the 2^n is tried.
pub const LARGEST_EXACT: usize = 20;

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
}

impl NetworkSensitivity {
    /// From the outputs on every string of n bits, in the order of [`pudica_data::Bits::cube`].
    pub fn exact(outputs: &[f32], n: usize) -> Result<Self, ProbeError> {
        let rows = outputs.len() as u64;
        let table = cut(outputs, n)?;
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
        })
    }
}

/// The Boolean function of outputs on every string: which are above 1/2.
pub(crate) fn cut(outputs: &[f32], n: usize) -> Result<TruthTable, ProbeError> {
    let mut table = TruthTable::zeros(n)?;
    for (row, output) in outputs.iter().enumerate() {
        table.set(row as u64, *output > 0.5);
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
        assert_eq!(cut(&outputs, 7).unwrap(), target.table().unwrap());
    }
}
