//! How sensitive the function is that a network has learnt.

use pudica_boolean::real_sensitivity::real_sensitivity;
use pudica_boolean::{RealTable, Spectrum, TruthTable, sensitivity_profile};
use pudica_data::{Bits, Stream};
use pudica_ensemble::{Engine, Strings};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Estimate, Model, Moments, Nudge, Plan, ProbeError, Profile, Response, respond};

/// The longest strings for which every one of the 2^n is tried.
pub const LARGEST_EXACT: usize = 20;

/// Strings given to a network at once.
const PACK: usize = 4096;

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

/// Measure it for every network of an ensemble: exactly up to n = [`LARGEST_EXACT`], else on `samples` uniform strings (each network's
/// own, named by its run's seed) with standard errors over them. Of a network with several outputs, the last one counts; a network
/// whose outputs are not all finite numbers computes no function, and has none.
pub fn network_sensitivity(
    engine: &mut dyn Engine,
    n: usize,
    samples: usize,
    seeds: &[u64],
) -> Result<Vec<Option<NetworkSensitivity>>, ProbeError> {
    if n > LARGEST_EXACT {
        let found = sampled(engine, n, samples, seeds)?.into_iter();
        return Ok(found.map(|found| Some(found).filter(|found| found.real.mean.is_finite())).collect());
    }
    let mut outputs = vec![Vec::with_capacity(1 << n); engine.replicas()];
    for strings in Bits::cube(n)?.pieces(PACK) {
        for (all, piece) in outputs.iter_mut().zip(engine.predict(Strings::Shared(&strings))?) {
            all.extend(last_of_each(&piece, strings.rows()));
        }
    }
    let of_one = |outputs: &Vec<f32>| match outputs.iter().all(|output| output.is_finite()) {
        true => exact(outputs, n).map(Some),
        false => Ok(None),
    };
    outputs.par_iter().map(of_one).collect()
}

/// What a network answers on every string [2^n], in the order of [`Bits::cube`]; the last output of each.
pub fn cube_outputs<M: Model>(model: &M, n: usize) -> Result<Vec<f32>, ProbeError> {
    let mut outputs = Vec::with_capacity(1 << n.min(LARGEST_EXACT));
    for strings in Bits::cube(n)?.pieces(PACK) {
        outputs.extend(last_of_each(&model.predict(&strings)?, strings.rows()));
    }
    Ok(outputs)
}

/// The Boolean function a network has learnt: its answers on every string, cut at 1/2.
pub fn learnt_table<M: Model>(model: &M, n: usize) -> Result<TruthTable, ProbeError> {
    cut(&cube_outputs(model, n)?, n)
}

fn cut(outputs: &[f32], n: usize) -> Result<TruthTable, ProbeError> {
    let mut table = TruthTable::zeros(n)?;
    for (row, output) in outputs.iter().enumerate() {
        table.set(row as u64, *output > 0.5);
    }
    Ok(table)
}

/// The last output for each of `rows` strings.
fn last_of_each(outputs: &[f32], rows: usize) -> impl Iterator<Item = f32> {
    let each = outputs.len() / rows;
    outputs.chunks_exact(each).map(move |outputs| outputs[each - 1])
}

/// Every string and every flip.
fn exact(outputs: &[f32], n: usize) -> Result<NetworkSensitivity, ProbeError> {
    let rows = outputs.len() as u64;
    let table = cut(outputs, n)?;
    let profile = sensitivity_profile(&table);
    // Bit 0 is +1 and bit 1 is -1 in pudica-boolean, so an output counts as 1 - 2 * output; only squares are read off.
    let values: Vec<f64> = outputs.iter().map(|output| 1.0 - 2.0 * f64::from(*output)).collect();
    let real = RealTable::new(n, values[..].into(), f64::from(f32::EPSILON))?;
    Ok(NetworkSensitivity {
        real: Estimate::exact(real_sensitivity(&real).average_sensitivity(), rows),
        boolean: Estimate::exact(profile.average_sensitivity(), rows),
        influences: profile.influences(),
        histogram: profile.histogram(),
        degree_profile: Some(Spectrum::of(&table)?.degree_profile().to_vec()),
        real_degree_profile: Some(Spectrum::of_real(real)?.degree_profile().to_vec()),
    })
}

/// Some strings, every flip. All networks answer at once: an input is one string for each network, a flip is the same bit in all of
/// them, and each network has its own two responses.
fn sampled(
    engine: &mut dyn Engine,
    n: usize,
    samples: usize,
    seeds: &[u64],
) -> Result<Vec<NetworkSensitivity>, ProbeError> {
    ProbeError::at_least_one("measure.sensitivity_samples", samples)?;
    let own: Vec<Bits> = seeds
        .iter()
        .map(|seed| Bits::uniform(samples, n, &mut Stream::new(*seed, "sensitivity", 0)))
        .collect::<Result<_, _>>()?;
    let inputs = (0..samples).map(|row| Ok(own.iter().map(|strings| strings.row(row).to_vec()).collect::<Vec<_>>()));
    let predict = |inputs: &[Vec<Vec<u8>>]| {
        let strings = |replica: usize| Bits::new(n, inputs.iter().flat_map(|input| input[replica].clone()).collect());
        let strings: Vec<Bits> = (0..own.len()).map(strings).collect::<Result<_, _>>()?;
        let outputs = engine.predict(Strings::Each(&strings))?;
        let outputs: Vec<Vec<f32>> =
            outputs.iter().map(|outputs| last_of_each(outputs, inputs.len()).collect()).collect();
        Ok::<_, ProbeError>((0..inputs.len()).map(|row| outputs.iter().map(|outputs| outputs[row]).collect()).collect())
    };
    let responses: Vec<(Of<SquaredShift>, Of<LabelDiffers>)> =
        (0..own.len()).map(|replica| (Of(replica, SquaredShift), Of(replica, LabelDiffers))).collect();
    let responses: Vec<&dyn Response<Vec<f32>>> =
        responses.iter().flat_map(|(shift, differs)| [shift as &dyn Response<_>, differs]).collect();
    // Flipping a bit takes no noise, so whose seed names it does not matter.
    let plan = Plan { draws: 1, pack: PACK, seed: 0, purpose: "sensitivity" };
    let profiles = respond(inputs, predict, &BitFlip, &responses, &plan)?;
    let of_one = |profiles: &[Profile]| {
        let (real, boolean) = (&profiles[0], &profiles[1]);
        let mut histogram = vec![0; n + 1];
        for sensitive in &boolean.by_input {
            histogram[sensitive.round() as usize] += 1;
        }
        NetworkSensitivity {
            real: real.total,
            boolean: boolean.total,
            influences: boolean.by_site.iter().map(Moments::mean).collect(),
            histogram,
            degree_profile: None,
            real_degree_profile: None,
        }
    };
    Ok(profiles.chunks_exact(2).map(of_one).collect())
}

/// Flip bit i of the strings, one for each network; the sites are the bits.
#[derive(Debug, Clone, Copy)]
pub struct BitFlip;

impl Nudge<Vec<Vec<u8>>> for BitFlip {
    fn sites(&self, strings: &Vec<Vec<u8>>) -> usize {
        strings.first().map_or(0, Vec::len)
    }

    fn touch(&self, strings: &Vec<Vec<u8>>, site: usize, _: &mut Stream) -> Vec<Vec<u8>> {
        let mut touched = strings.clone();
        for string in &mut touched {
            string[site] ^= 1;
        }
        touched
    }
}

/// How one of several networks responds.
struct Of<R>(usize, R);

impl<R: Response<f32>> Response<Vec<f32>> for Of<R> {
    fn compare(&self, before: &Vec<f32>, after: &Vec<f32>) -> f64 {
        self.1.compare(&before[self.0], &after[self.0])
    }
}

/// The squared shift of the output.
#[derive(Debug, Clone, Copy)]
pub struct SquaredShift;

impl Response<f32> for SquaredShift {
    fn compare(&self, before: &f32, after: &f32) -> f64 {
        f64::from(after - before).powi(2)
    }
}

/// 1 when the label differs, else 0. The label is the output's side of 1/2, or the class itself.
#[derive(Debug, Clone, Copy)]
pub struct LabelDiffers;

impl Response<usize> for LabelDiffers {
    fn compare(&self, before: &usize, after: &usize) -> f64 {
        f64::from(before != after)
    }
}

impl Response<f32> for LabelDiffers {
    fn compare(&self, before: &f32, after: &f32) -> f64 {
        f64::from((*before > 0.5) != (*after > 0.5))
    }
}

#[cfg(test)]
mod tests {
    use pudica_data::{Target, Task};
    use pudica_nn::{NnError, Weights};

    use super::*;
    use crate::plain::{Plain, Subject};

    /// Answers as a target does.
    struct Oracle(Target, Weights);

    impl Oracle {
        fn new(name: &str, n: usize) -> Self {
            Self(Target::parse(name, n).unwrap(), Weights::zeros([]))
        }
    }

    impl Model for Oracle {
        fn weights(&self) -> &Weights {
            &self.1
        }
        fn with_weights(&self, weights: Weights) -> Result<Self, NnError> {
            Ok(Self(self.0.clone(), weights))
        }
        fn predict(&self, strings: &Bits) -> Result<Vec<f32>, NnError> {
            Ok(self.0.labels(strings).unwrap())
        }
    }

    /// Beside another function, which must not be mixed up with it.
    fn measure(name: &str, n: usize) -> NetworkSensitivity {
        let task = Task::new(Target::parse(name, n).unwrap());
        let subject = |name, seed| Subject { model: Oracle::new(name, n), task: task.clone(), seed };
        let mut engine = Plain(vec![subject("first", 1), subject(name, 0)]);
        network_sensitivity(&mut engine, n, 2000, &[1, 0]).unwrap().remove(1).unwrap()
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
    fn beyond_twenty_bits_it_is_sampled_with_an_error() {
        let parity = measure("parity", 21);
        assert_eq!((parity.boolean.mean, parity.boolean.std_error, parity.boolean.exact), (21.0, Some(0.0), false));
        let majority = measure("majority", 21);
        // n C(n-1, (n-1)/2) / 2^(n-1)
        let expected = 21.0 * 184_756.0 / 1_048_576.0;
        let error = majority.boolean.std_error.unwrap();
        assert!((majority.boolean.mean - expected).abs() < 4.0 * error && error > 0.0, "{:?}", majority.boolean);
        assert_eq!(majority.histogram.iter().sum::<u64>(), 2000);
        assert!(majority.degree_profile.is_none());
    }

    #[test]
    fn the_learnt_table_is_what_the_network_answers() {
        let table = learnt_table(&Oracle::new("random:5", 7), 7).unwrap();
        assert_eq!(table, Target::parse("random:5", 7).unwrap().table().unwrap());
    }
}
