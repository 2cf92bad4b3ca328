//! How sensitive the function is that a network has learnt.

use pudica_boolean::TruthTable;
use pudica_data::{Bits, Stream};
use pudica_ensemble::{Engine, Strings};
use pudica_nn::Network;
use rayon::prelude::*;

use crate::exact::cut;
use crate::{
    BitFlip, Budget, Each, LARGEST_EXACT, LabelDiffers, Moments, NetworkSensitivity, OfOne, ProbeError, Profile,
    Response, SquaredShift, Subject, respond,
};

/// Strings given to a network at once.
const BATCH: usize = 4096;

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
        return sampled_sensitivity(engine, n, samples, seeds);
    }
    let mut outputs = vec![Vec::with_capacity(1 << n); engine.replicas()];
    for strings in Bits::cube(n)?.pieces(BATCH) {
        for (all, piece) in outputs.iter_mut().zip(engine.predict(Strings::Shared(&strings))?) {
            all.extend(last_of_each(&piece, strings.rows()));
        }
    }
    let of_one = |outputs: &Vec<f32>| match outputs.iter().all(|output| output.is_finite()) {
        true => NetworkSensitivity::exact(outputs, n).map(Some),
        false => Ok(None),
    };
    outputs.par_iter().map(of_one).collect()
}

/// The same on `samples` uniform strings, however few there are in all.
pub fn sampled_sensitivity(
    engine: &mut dyn Engine,
    n: usize,
    samples: usize,
    seeds: &[u64],
) -> Result<Vec<Option<NetworkSensitivity>>, ProbeError> {
    let mut answers = |inputs: &[Each<Vec<u8>>]| {
        let own = |replica: usize| Bits::new(n, inputs.iter().flat_map(|Each(all)| all[replica].clone()).collect());
        let own: Vec<Bits> = (0..seeds.len()).map(own).collect::<Result<_, _>>()?;
        let outputs = engine.predict(Strings::Each(&own))?;
        let outputs: Vec<Vec<f32>> =
            outputs.iter().map(|outputs| last_of_each(outputs, inputs.len()).collect()).collect();
        let of_row = |row: usize| outputs.iter().map(|outputs| outputs[row]).collect();
        Ok::<_, ProbeError>((0..inputs.len()).map(of_row).collect())
    };
    let found = sampled(&mut answers, n, samples, seeds)?.into_iter();
    Ok(found.map(|found| Some(found).filter(|found| found.real.mean.is_finite())).collect())
}

/// The Boolean function a network has learnt: its answers on every string (the last output of each), cut at 1/2.
pub fn learnt_table(network: &Network, n: usize) -> Result<TruthTable, ProbeError> {
    let mut outputs = Vec::with_capacity(1 << n.min(LARGEST_EXACT));
    for strings in Bits::cube(n)?.pieces(BATCH) {
        outputs.extend(last_of_each(&network.predict(&strings)?, strings.rows()));
    }
    cut(&outputs, n)
}

/// The last output for each of `rows` strings.
fn last_of_each(outputs: &[f32], rows: usize) -> impl Iterator<Item = f32> {
    let each = outputs.len() / rows;
    outputs.chunks_exact(each).map(move |outputs| outputs[each - 1])
}

/// Some strings, every flip. All networks answer at once, each to a string of its own, and each has its own two responses.
fn sampled<S>(networks: &mut S, n: usize, samples: usize, seeds: &[u64]) -> Result<Vec<NetworkSensitivity>, ProbeError>
where
    S: Subject<Each<Vec<u8>>, BitFlip, Out = Vec<f32>, Error = ProbeError>,
{
    ProbeError::at_least_one("measure.sensitivity_samples", samples)?;
    let own: Vec<Bits> = seeds
        .iter()
        .map(|seed| Bits::uniform(samples, n, &mut Stream::new(*seed, "sensitivity", 0)))
        .collect::<Result<_, _>>()?;
    let inputs = (0..samples).map(|row| Each(own.iter().map(|strings| strings.row(row).to_vec()).collect()));
    let responses: Vec<(OfOne<SquaredShift>, OfOne<LabelDiffers>)> =
        (0..own.len()).map(|replica| (OfOne(replica, SquaredShift), OfOne(replica, LabelDiffers))).collect();
    let responses: Vec<&dyn Response<Vec<f32>>> =
        responses.iter().flat_map(|(shift, differs)| [shift as &dyn Response<_>, differs]).collect();
    // Flipping a bit takes no noise, so whose seed names it does not matter.
    let profiles = respond(networks, inputs, &BitFlip, &responses, &Budget::new(1, BATCH, 0, "sensitivity"))?;
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
        sampled(&mut answers, n, 500, &[1, 0]).unwrap().remove(1)
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
        let found =
            network_sensitivity(engine(&config, vec![constant(&config, 0.2), random(&config, 3)]).as_mut(), 7, 0, &[]);
        let found = found.unwrap().into_iter().map(Option::unwrap).collect::<Vec<_>>();
        assert_eq!((found[0].real.mean, found[0].histogram[0]), (0.0, 128));
        let architecture = Architecture::Encoder(config.clone());
        let network = Network::new(&architecture, random(&config, 3).1, &Device::cpu()).unwrap();
        let table = learnt_table(&network, 7).unwrap();
        assert_eq!(found[1].histogram, pudica_boolean::sensitivity_profile(&table).histogram());
        assert!(found[1].real.mean > 0.0 && found[1].real.exact);
    }
}
