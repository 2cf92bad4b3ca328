//! Sensitivity of networks on modular arithmetic (grokking, Vasudeva et al. 2024): both numbers of a pair get noise, the result changes.
//!
//! In training, [`pudica_nn::grokking::Replicas`] measures the same at every epoch without leaving its device. Here it is by the loop that
//! all measures have, of one network with given weights.

use pudica_data::{Pairs, Stream};
use pudica_nn::classifier::predicted;
use pudica_nn::grokking::ModularTransformer;
use pudica_nn::{Device, Weights};
use pudica_statistics::Estimate;

use crate::{Budget, NoiseName, Nudge, ProbeError, Response, respond};

/// Pairs of numbers, and what is added to the embeddings of both.
#[derive(Debug, Clone)]
pub struct NumberPairs<'a> {
    /// The pairs.
    pub pairs: &'a Pairs,
    /// [pairs, 2, d]; nothing where `None`.
    pub noise: Option<Vec<f32>>,
}

/// Adds noise to the embeddings of both numbers of all pairs at once: one site. Its stream is (seed, purpose, epoch).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberNoise {
    /// Standard deviation.
    pub deviation: f64,
    /// Features of an embedding.
    pub width: usize,
    /// The epoch it belongs to.
    pub epoch: u64,
}

impl<'a> Nudge<NumberPairs<'a>> for NumberNoise {
    fn sites(&self, _: &NumberPairs<'a>) -> usize {
        1
    }

    fn apply(&self, input: &NumberPairs<'a>, _: usize, noise: &mut Stream) -> NumberPairs<'a> {
        let count = input.pairs.count() * 2 * self.width;
        let noise = (0..count).map(|_| noise.normal_f32() * self.deviation as f32).collect();
        NumberPairs { noise: Some(noise), ..*input }
    }

    fn stream(&self, name: &NoiseName) -> Stream {
        Stream::new(name.seed, name.purpose, self.epoch)
    }
}

/// The share of pairs whose predicted result changes.
struct ShareChanged;

impl Response<Vec<usize>> for ShareChanged {
    fn compare(&self, before: &Vec<usize>, after: &Vec<usize>) -> f64 {
        let changed = before.iter().zip(after).filter(|(before, after)| before != after).count();
        changed as f64 / before.len() as f64
    }

    fn most(&self) -> f64 {
        1.0
    }
}

/// The share of pairs whose predicted result changes under noise, one draw for all pairs. `seed` is the network's own.
pub fn modular_sensitivity(
    network: &ModularTransformer,
    weights: &Weights,
    pairs: &Pairs,
    noise: &NumberNoise,
    seed: u64,
    device: &Device,
) -> Result<Estimate, ProbeError> {
    let mut results = |inputs: &[NumberPairs]| -> Result<Vec<Vec<usize>>, ProbeError> {
        let result = |input: &NumberPairs| {
            let scores = network.scores(weights, input.pairs, input.noise.as_deref(), device)?;
            Ok(predicted(&scores, network.modulus))
        };
        inputs.iter().map(result).collect()
    };
    let budget = Budget::new(1, 1, seed, "embedding-noise");
    let found = respond(&mut results, [NumberPairs { pairs, noise: None }], noise, &[&ShareChanged], &budget)?;
    Ok(found[0].total)
}

#[cfg(test)]
mod tests {
    use pudica_data::ModularTask;
    use pudica_nn::classifier::Optimiser;
    use pudica_nn::grokking::{Grokking, Replica, Replicas};

    use super::*;

    /// Two networks, at every epoch of a short training: what they measured on their device is what the loop measures of their weights.
    #[test]
    fn the_measure_in_training_is_the_loops() {
        let network = ModularTransformer { modulus: 7, d: 8, heads: 2, mlp: 12 };
        let task = ModularTask { modulus: 7, operation: "a+b".parse().unwrap() };
        let splits = [3, 4].map(|seed| task.split(0.5, &mut Stream::new(seed, "pairs", 0)).unwrap());
        let replica = |(seed, (train, test))| Replica { seed, train, test, checkpoint: None };
        let members: Vec<Replica> = (3..).zip(splits.iter().map(|(train, test)| (train, test))).map(replica).collect();
        let settings = Grokking { optimiser: Optimiser::adamw(0.1), lr: 0.02, noise: 0.4 };
        let device = Device::cpu();
        let mut replicas = Replicas::new(network, settings, &members, &device).unwrap();
        let mut some_changed = false;
        for epoch in 0..12 {
            let weights = [0, 1].map(|at| replicas.weights(at).unwrap());
            replicas.advance().unwrap();
            let measured = replicas.collect().unwrap().remove(0);
            for (at, weights) in weights.iter().enumerate() {
                let noise = NumberNoise { deviation: 0.4, width: 8, epoch };
                let (train, seed) = (&splits[at].0, 3 + at as u64);
                let found = modular_sensitivity(&network, weights, train, &noise, seed, &device).unwrap();
                assert!((found.mean - measured[at].sensitivity).abs() < 1e-6, "{found:?} {:?}", measured[at]);
                some_changed |= found.mean > 0.1;
            }
        }
        assert!(some_changed);
    }
}
