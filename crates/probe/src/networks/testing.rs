//! Ensembles of small encoders for tests, one network after the other.

use pudica_data::{Target, Task};
use pudica_ensemble::{Engine, Member, one_by_one};
use pudica_nn::{Architecture, Device, EncoderConfig, TrainingState, Weights};

/// A small encoder of strings of n bits.
pub fn small(n: usize) -> EncoderConfig {
    EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(n) }
}

/// A seed and the weights a run of it starts from.
pub fn random(config: &EncoderConfig, seed: u64) -> (u64, Weights) {
    (seed, Architecture::Encoder(config.clone()).initial_weights(seed).unwrap())
}

/// Weights that make an encoder answer the same to everything: zero, but for the last bias.
pub fn constant(config: &EncoderConfig, answer: f32) -> (u64, Weights) {
    let mut weights = Architecture::Encoder(config.clone()).empty_weights().unwrap();
    weights.get_mut("head.bias").unwrap()[0] = answer;
    (0, weights)
}

/// The networks of these seeds and weights, all learning parity.
pub fn engine(config: &EncoderConfig, networks: Vec<(u64, Weights)>) -> Box<dyn Engine> {
    let task = Task::new(Target::parse("parity", config.n).unwrap());
    let member = |(seed, weights)| {
        let state = TrainingState::new(weights);
        Member { task: task.clone(), seed, adamw: Default::default(), state }
    };
    let members = networks.into_iter().map(member).collect();
    one_by_one(&Architecture::Encoder(config.clone()), 1, members, &Device::cpu()).unwrap()
}
