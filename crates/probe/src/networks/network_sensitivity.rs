//! How sensitive the function is that a network has learnt.

use pudica_boolean::TruthTable;
use pudica_data::{Bits, Stream};
use pudica_ensemble::{Engine, Strings};
use pudica_nn::Network;
use rayon::prelude::*;

use crate::exact::cut;
use crate::{
    BitFlip, Budget, Crosses, Cut, Each, Estimate, LARGEST_EXACT, Moments, NetworkSensitivity, OfOne, OutputSpread,
    ProbeError, Profile, Response, SquaredShift, Subject, respond,
};

/// Strings given to a network at once.
const BATCH: usize = 4096;

/// How sensitivity is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SensitivityConfig {
    /// Strings that are sampled where the whole cube is too large.
    pub samples: usize,
    /// Where outputs are cut to make a Boolean function of them.
    pub cut: Cut,
    /// Whether it is told how the outputs spread.
    pub spread: bool,
    /// Every string is tried up to this length, [`LARGEST_EXACT`] at most.
    pub largest_exact: usize,
}

impl SensitivityConfig {
    /// So many strings, cut at 1/2.
    pub fn new(samples: usize) -> Self {
        Self { samples, cut: Cut::Half, spread: false, largest_exact: LARGEST_EXACT }
    }
}

/// Measure it for every network of an ensemble: exactly up to `largest_exact` bits, else on uniform strings (each network's own, named by
/// its run's seed) with standard errors over them. Of a network with several outputs, the last one counts; a network whose outputs are
/// not all finite numbers computes no function, and has none.
pub fn network_sensitivity(
    engine: &mut dyn Engine,
    n: usize,
    config: &SensitivityConfig,
    seeds: &[u64],
) -> Result<Vec<Option<NetworkSensitivity>>, ProbeError> {
    if n > config.largest_exact.min(LARGEST_EXACT) {
        let mut answers = |inputs: &[Each<Vec<u8>>]| {
            let own = |replica: usize| Bits::new(n, inputs.iter().flat_map(|Each(all)| all[replica].clone()).collect());
            let own: Vec<Bits> = (0..seeds.len()).map(own).collect::<Result<_, _>>()?;
            let outputs = engine.predict(Strings::Each(&own))?;
            let outputs: Vec<Vec<f32>> =
                outputs.iter().map(|outputs| last_of_each(outputs, inputs.len()).collect()).collect();
            let of_row = |row: usize| outputs.iter().map(|outputs| outputs[row]).collect();
            Ok::<_, ProbeError>((0..inputs.len()).map(of_row).collect())
        };
        let found = sampled(&mut answers, n, config, seeds)?.into_iter();
        return Ok(found.map(|found| Some(found).filter(|found| found.real.mean.is_finite())).collect());
    }
    let of_one = |outputs: &Vec<f32>| match outputs.iter().all(|output| output.is_finite()) {
        true => exact_sensitivity(outputs, n, config).map(Some),
        false => Ok(None),
    };
    answers_on_cube(engine, n)?.par_iter().map(of_one).collect()
}

/// The sensitivity of a network that gives these finite outputs on every string.
pub fn exact_sensitivity(
    outputs: &[f32],
    n: usize,
    config: &SensitivityConfig,
) -> Result<NetworkSensitivity, ProbeError> {
    let found = NetworkSensitivity::exact_at(outputs, n, config.cut)?;
    Ok(if config.spread { found.with_spread() } else { found })
}

/// What each network of an ensemble answers to every string of n bits, in the order of [`Bits::cube`]: the last output of each.
pub fn answers_on_cube(engine: &mut dyn Engine, n: usize) -> Result<Vec<Vec<f32>>, ProbeError> {
    let mut outputs = vec![Vec::with_capacity(1 << n); engine.replicas()];
    for strings in Bits::cube(n)?.pieces(BATCH) {
        for (all, piece) in outputs.iter_mut().zip(engine.predict(Strings::Shared(&strings))?) {
            all.extend(last_of_each(&piece, strings.rows()));
        }
    }
    Ok(outputs)
}

/// The Boolean function a network has learnt: its answers on every string (the last output of each), cut at 1/2.
pub fn learnt_table(network: &Network, n: usize) -> Result<TruthTable, ProbeError> {
    let mut outputs = Vec::with_capacity(1 << n.min(LARGEST_EXACT));
    for strings in Bits::cube(n)?.pieces(BATCH) {
        outputs.extend(last_of_each(&network.predict(&strings)?, strings.rows()));
    }
    cut(&outputs, n, 0.5)
}

/// The last output for each of `rows` strings.
fn last_of_each(outputs: &[f32], rows: usize) -> impl Iterator<Item = f32> {
    let each = outputs.len() / rows;
    outputs.chunks_exact(each).map(move |outputs| outputs[each - 1])
}

/// Some strings, every flip. All networks answer at once, each to a string of its own, and each has its own two responses.
fn sampled<S>(
    networks: &mut S,
    n: usize,
    config: &SensitivityConfig,
    seeds: &[u64],
) -> Result<Vec<NetworkSensitivity>, ProbeError>
where
    S: Subject<Each<Vec<u8>>, BitFlip, Out = Vec<f32>, Error = ProbeError>,
{
    let samples = config.samples;
    ProbeError::at_least_one("measure.sensitivity_samples", samples)?;
    let own: Vec<Bits> = seeds
        .iter()
        .map(|seed| Bits::uniform(samples, n, &mut Stream::new(*seed, "sensitivity", 0)))
        .collect::<Result<_, _>>()?;
    let inputs = || (0..samples).map(|row| Each(own.iter().map(|strings| strings.row(row).to_vec()).collect()));
    // The outputs on the strings themselves, [replica][row], and where they are cut.
    let mut outputs: Vec<Vec<f32>> = vec![Vec::new(); own.len()];
    if config.cut == Cut::Median || config.spread {
        outputs = answered(networks, inputs(), own.len())?;
    }
    let mut cuts: Vec<f32> = outputs.iter().map(|own| config.cut.at(own)).collect();
    if config.cut == Cut::Median {
        // With each string its complement, so that every bit is 1 in half of them: a network that follows one bit is then cut between its
        // two answers, as on the whole cube, and not inside one of them.
        let opposite = |Each(strings): Each<Vec<u8>>| Each(strings.iter().map(|string| complement(string)).collect());
        let others = answered(networks, inputs().map(opposite), own.len())?;
        let both = |(own, others): (&Vec<f32>, Vec<f32>)| config.cut.at(&[own.as_slice(), &others].concat());
        cuts = outputs.iter().zip(others).map(both).collect();
    }
    let responses: Vec<(OfOne<SquaredShift>, OfOne<Crosses>)> = cuts
        .iter()
        .enumerate()
        .map(|(replica, cut)| (OfOne(replica, SquaredShift), OfOne(replica, Crosses(*cut))))
        .collect();
    let responses: Vec<&dyn Response<Vec<f32>>> =
        responses.iter().flat_map(|(shift, crosses)| [shift as &dyn Response<_>, crosses]).collect();
    // Flipping a bit takes no noise, so whose seed names it does not matter.
    let profiles = respond(networks, inputs(), &BitFlip, &responses, &Budget::new(1, BATCH, 0, "sensitivity"))?;
    let of_one = |((profiles, outputs), strings): ((&[Profile], &Vec<f32>), &Bits)| {
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
            spread: if config.spread { spread(outputs, strings, &real.by_input) } else { None },
        }
    };
    Ok(profiles.chunks_exact(2).zip(&outputs).zip(&own).map(of_one).collect())
}

/// What networks answer to strings of their own, [replica][row].
fn answered<S>(
    networks: &mut S,
    inputs: impl Iterator<Item = Each<Vec<u8>>>,
    replicas: usize,
) -> Result<Vec<Vec<f32>>, ProbeError>
where
    S: Subject<Each<Vec<u8>>, BitFlip, Out = Vec<f32>, Error = ProbeError>,
{
    let mut outputs = vec![Vec::new(); replicas];
    for group in inputs.collect::<Vec<_>>().chunks(BATCH) {
        for answers in networks.answer(group)? {
            outputs.iter_mut().zip(answers).for_each(|(outputs, answer): (&mut Vec<f32>, f32)| outputs.push(answer));
        }
    }
    Ok(outputs)
}

/// All bits flipped.
fn complement(string: &[u8]) -> Vec<u8> {
    string.iter().map(|bit| 1 - bit).collect()
}

/// How outputs on sampled strings spread, whose sensitivities are these: nothing where they are all equal.
fn spread(outputs: &[f32], strings: &Bits, sensitivities: &[f64]) -> Option<OutputSpread> {
    /// Parts of the strings whose estimates of the weight at degree 1 tell its error.
    const PARTS: usize = 16;
    // On the ±1 scale.
    let values: Vec<f64> = outputs.iter().map(|output| 1.0 - 2.0 * f64::from(*output)).collect();
    let moments: Moments = values.iter().copied().collect();
    let variance = moments.variance().filter(|variance| *variance > 0.0)?;
    let squares = values.iter().map(|value| (value - moments.mean()).powi(2));
    // A ratio of two means over the same strings.
    let pairs: Vec<(f64, f64)> = sensitivities.iter().copied().zip(squares).collect();
    let part = values.len().div_ceil(PARTS).max(2);
    let weights = values.chunks(part).zip(strings.pieces(part)).filter(|(values, _)| values.len() == part);
    let weights = weights.map(|(values, strings)| degree_one(values, moments.mean(), &strings) / variance);
    Some(OutputSpread {
        variance,
        mean_degree: Estimate::clustered(&pairs),
        degree_one: Estimate::sampled(&weights.collect()),
    })
}

/// The Fourier weight at degree 1, without bias: the sum over bits of the mean over pairs of different strings x, y of f(x) x_i f(y) y_i,
/// where `mean` is taken from f first, which changes no coefficient of degree 1 and makes their estimates less noisy.
fn degree_one(values: &[f64], mean: f64, strings: &Bits) -> f64 {
    let count = values.len() as f64;
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let squares: f64 = centred.iter().map(|value| value * value).sum();
    let of_bit = |bit: usize| {
        let signed = centred.iter().zip(strings.iter()).map(|(v, x)| if x[bit] == 1 { -v } else { *v });
        (signed.sum::<f64>().powi(2) - squares) / (count * (count - 1.0))
    };
    (0..strings.n()).map(of_bit).sum()
}

#[cfg(test)]
mod tests {
    use pudica_data::Target;
    use pudica_nn::{Architecture, Device};

    use super::super::testing::{constant, engine, random, small};
    use super::*;

    /// A target beside another one, which must not be mixed up with it.
    fn measure(name: &str, n: usize) -> NetworkSensitivity {
        let targets = ["first", name].map(|name| Target::parse(name, n).unwrap());
        let mut answers = |inputs: &[Each<Vec<u8>>]| {
            let label = |target: &Target, x: &Vec<u8>| target.labels(&Bits::new(n, x.clone()).unwrap()).unwrap()[0];
            let labels = |Each(own): &Each<Vec<u8>>| targets.iter().zip(own).map(|(t, x)| label(t, x)).collect();
            Ok::<_, ProbeError>(inputs.iter().map(labels).collect())
        };
        let config = SensitivityConfig { spread: true, ..SensitivityConfig::new(500) };
        sampled(&mut answers, n, &config, &[1, 0]).unwrap().remove(1)
    }

    #[test]
    fn sampled_sensitivity_has_an_error() {
        let parity = measure("parity", 21);
        assert_eq!((parity.boolean.mean, parity.boolean.std_error, parity.boolean.exact), (21.0, Some(0.0), false));
        let majority = measure("majority", 21);
        // n C(n-1, (n-1)/2) / 2^(n-1)
        let expected = 21.0 * 184_756.0 / 1_048_576.0;
        let error = majority.boolean.std_error.unwrap();
        assert!((majority.boolean.mean - expected).abs() < 4.0 * error && error > 0.0, "{:?}", majority.boolean);
        assert_eq!(majority.histogram.iter().sum::<u64>(), 500);
        assert!(majority.degree_profile.is_none());
    }

    /// Networks as engines answer: on all strings what the learnt table says; beyond twenty bits, to the bits of commit 0f23b66.
    #[test]
    fn networks_of_an_engine_are_told_apart() {
        let config = small(7);
        let found = network_sensitivity(
            engine(&config, vec![constant(&config, 0.2), random(&config, 3)]).as_mut(),
            7,
            &SensitivityConfig::new(0),
            &[],
        );
        let found = found.unwrap().into_iter().map(Option::unwrap).collect::<Vec<_>>();
        assert_eq!((found[0].real.mean, found[0].histogram[0]), (0.0, 128));
        let architecture = Architecture::Encoder(config.clone());
        let network = Network::new(&architecture, random(&config, 3).1, &Device::cpu()).unwrap();
        let table = learnt_table(&network, 7).unwrap();
        assert_eq!(found[1].histogram, pudica_boolean::sensitivity_profile(&table).histogram());
        assert!(found[1].real.mean > 0.0 && found[1].real.exact);
    }

    /// Sampled spreads are within their errors of what the spectra say: PARITY is all at degree n, MAJORITY has about 2/pi at degree 1.
    #[test]
    fn sampled_spreads_have_errors() {
        let parity = measure("parity", 21).spread.unwrap();
        assert!((parity.mean_degree.mean - 21.0).abs() < 0.5, "{parity:?}");
        let near = |found: &Estimate, expected: f64| {
            let error = found.std_error.unwrap();
            assert!((found.mean - expected).abs() < 4.0 * error && error > 0.0, "{found:?} {expected}");
        };
        near(&parity.degree_one, 0.0);
        let majority = measure("majority", 21).spread.unwrap();
        let coefficient = 184_756.0f64 / 1_048_576.0;
        near(&majority.degree_one, 21.0 * coefficient * coefficient);
        near(&majority.mean_degree, 21.0 * coefficient);
    }

    /// FIRST with a little of MEAN: cut between its two answers, only the first bit matters, however many of the strings begin with 1.
    #[test]
    fn a_sample_is_cut_where_the_whole_cube_is() {
        let mut answers = |inputs: &[Each<Vec<u8>>]| {
            let label = |x: &Vec<u8>| f32::from(x[0]) + 0.01 * x.iter().map(|bit| f32::from(*bit)).sum::<f32>();
            Ok::<_, ProbeError>(inputs.iter().map(|Each(own)| own.iter().map(label).collect()).collect())
        };
        let config = SensitivityConfig { cut: Cut::Median, ..SensitivityConfig::new(33) };
        for seed in 0..5 {
            assert_eq!(sampled(&mut answers, 30, &config, &[seed]).unwrap()[0].boolean.mean, 1.0, "{seed}");
        }
    }

    /// Cut at their median, random networks are 1 on half of all strings, so that as_n is at least 1; sampled, about that.
    #[test]
    fn random_networks_are_cut_at_their_median() {
        let (config, settings) = (small(9), SensitivityConfig { cut: Cut::Median, ..SensitivityConfig::new(200) });
        let mut sensitive = 0;
        for seed in 0..6 {
            let (seed, mut weights) = random(&config, seed);
            weights.data_mut().iter_mut().for_each(|weight| *weight *= 4.0); // small weights follow one bit, exactly
            let mut engine = engine(&config, vec![(seed, weights)]);
            let mut find = |how| network_sensitivity(engine.as_mut(), 9, &how, &[7]).unwrap().remove(0).unwrap();
            let exact = find(settings);
            // Half of them are above, but for outputs that equal the median.
            assert!(exact.boolean.exact && exact.boolean.mean > 0.999, "{:?}", exact.boolean);
            assert!(exact.degree_profile.unwrap()[0] < 1e-3);
            let sampled = find(SensitivityConfig { largest_exact: 8, ..settings }).boolean;
            let (apart, error) = ((sampled.mean - exact.boolean.mean).abs(), sampled.std_error.unwrap());
            assert!(apart <= 5.0 * error, "{sampled:?}, exactly {:?}", exact.boolean);
            sensitive += usize::from(exact.boolean.mean > 1.3 && error > 0.0);
        }
        assert!(sensitive >= 2, "the networks of this test follow one bit each");
    }
}
