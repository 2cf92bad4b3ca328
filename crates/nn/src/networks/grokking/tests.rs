//! Against plain PyTorch (`tests/golden/grokking.py`), and against itself among other replicas.

use burn::tensor::{Tensor, TensorData};
use pudica_data::{ModularTask, Pairs, Stream};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use super::forward::{Batch, Parts};
use super::loss::cross_entropy;
use super::*;
use crate::Device;
use crate::classifier::Optimiser;
use crate::layers::to_vec;
use crate::weights::store;

const GOLDEN: &[u8] = include_bytes!("../../../../../tests/golden/grokking.safetensors");
const TINY: ModularTransformer = ModularTransformer { modulus: 7, d: 8, heads: 2, mlp: 12 };
const TRAIN: usize = 9;

fn golden(name: &str) -> Vec<f64> {
    let file = SafeTensors::deserialize(GOLDEN).unwrap();
    let view = file.tensor(name).unwrap();
    match view.dtype() {
        Dtype::F64 => view.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
        _ => view.data().chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect(),
    }
}

fn golden_weights(network: usize, what: &str) -> Vec<f64> {
    let layout = TINY.empty_weights().unwrap();
    layout.layout().iter().flat_map(|part| golden(&format!("{network}.{what}.{}", part.name))).collect()
}

/// The training and the test pairs of a network of the golden file.
fn golden_pairs(network: usize) -> (Pairs, Pairs) {
    let numbers = |name: &str| golden(&format!("{network}.{name}")).iter().map(|x| *x as usize).collect::<Vec<_>>();
    let (a, b) = (numbers("a"), numbers("b"));
    let pairs = |range: std::ops::Range<usize>| Pairs {
        a: a[range.clone()].to_vec(),
        b: b[range.clone()].to_vec(),
        results: range.map(|at| (a[at] + b[at]) % 7).collect(),
    };
    (pairs(0..TRAIN), pairs(TRAIN..49))
}

fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "{found} {expected}");
    }
}

#[test]
fn scores_gradients_and_the_effect_of_noise_equal_pytorch() {
    let device = Device::cpu().double();
    let layout = TINY.empty_weights().unwrap();
    let weights: Vec<f32> = (0..2).flat_map(|r| golden_weights(r, "weights")).map(|w| w as f32).collect();
    let flat: Tensor<2> = Tensor::from_data(TensorData::new(weights, [2, layout.data().len()]), device.constant());
    let parts = Parts::new(TINY, &flat, &layout, true);
    let (first, second) = (golden_pairs(0).0, golden_pairs(1).0);
    let batch = Batch::upload(&[&first, &second], 7, &device).unwrap();
    let tables = parts.tables();
    let [a, b] = tables.look_up(&batch);
    let scores = parts.scores(a.clone(), b.clone(), &tables);
    close(&to_vec(scores.clone()).unwrap(), &[golden("0.scores"), golden("1.scores")].concat(), 1e-12);

    let losses = cross_entropy(scores, &batch.results).mean_dim(1);
    close(&to_vec(losses.clone()).unwrap(), &[golden("0.losses")[0], golden("1.losses")[0]], 1e-12);
    let gradient: Vec<f64> = to_vec(parts.gradient(losses.sum().backward())).unwrap();
    close(&gradient, &[golden_weights(0, "gradients"), golden_weights(1, "gradients")].concat(), 1e-12);

    // The noise of the golden file is [pairs, 2, d]: of a, then of b.
    let noise = TensorData::new([golden("0.noise"), golden("1.noise")].concat(), [2, TRAIN, 2, 8]);
    let noise: Tensor<4> = Tensor::from_data(noise, device.constant());
    let of = |place: usize| noise.clone().slice([0..2, 0..TRAIN, place..place + 1, 0..8]).reshape([2, TRAIN, 8]);
    let noisy = parts.scores(a + tables.see(of(0)), b + tables.see(of(1)), &tables);
    close(&to_vec(noisy).unwrap(), &[golden("0.noisy"), golden("1.noisy")].concat(), 1e-12);
}

/// How the golden networks are trained.
const GOLDEN_TRAINING: Grokking = Grokking {
    optimiser: Optimiser::Adam { betas: (0.9, 0.98), eps: 1e-8, weight_decay: 1.0, decoupled: true },
    lr: 1e-2,
    noise: 0.1,
};

#[test]
fn five_epochs_of_two_networks_equal_pytorch() {
    let empty = TINY.empty_weights().unwrap();
    let checkpoint = |network: usize| {
        let weights = golden_weights(network, "weights").iter().map(|w| *w as f32).collect();
        let weights = empty.with_data(weights).unwrap();
        store(&[("weights.", &weights), ("memory.0.", &empty), ("memory.1.", &empty)], &[("epoch", 0)]).unwrap()
    };
    let (pairs, checkpoints) = ([golden_pairs(0), golden_pairs(1)], [checkpoint(0), checkpoint(1)]);
    let members: Vec<Replica> = (0..2)
        .map(|at| Replica {
            seed: at as u64,
            train: &pairs[at].0,
            test: &pairs[at].1,
            checkpoint: Some(&checkpoints[at]),
        })
        .collect();
    let mut replicas = Replicas::new(TINY, GOLDEN_TRAINING, &members, &Device::cpu().double()).unwrap();
    (0..5).for_each(|_| replicas.advance().unwrap());
    replicas.measure();
    assert_eq!(replicas.epoch(), 5);
    let measured = replicas.collect().unwrap();
    assert_eq!(measured.len(), 6);
    for network in 0..2 {
        let curve = |of: fn(&Measures) -> f64| measured.iter().map(|all| of(&all[network])).collect::<Vec<_>>();
        close(&curve(|m| m.train_loss), &golden(&format!("{network}.losses")), 1e-9);
        close(&curve(|m| m.test_loss), &golden(&format!("{network}.tests")), 1e-9);
        close(&curve(|m| m.weight_norm), &golden(&format!("{network}.norms")), 1e-9);
    }
    assert!(replicas.collect().unwrap().is_empty());
}

fn splits(seeds: &[u64]) -> Vec<(Pairs, Pairs)> {
    let task = ModularTask { modulus: 7, operation: "a+b".parse().unwrap() };
    seeds.iter().map(|seed| task.split(0.5, &mut Stream::new(*seed, "pairs", 0)).unwrap()).collect()
}

/// Trains some seeds together for some epochs, from checkpoints if given.
fn train(seeds: &[u64], epochs: usize, checkpoints: Option<&[Vec<u8>]>) -> (Vec<Vec<Measures>>, Replicas) {
    let pairs = splits(seeds);
    let member = |at: usize| Replica {
        seed: seeds[at],
        train: &pairs[at].0,
        test: &pairs[at].1,
        checkpoint: checkpoints.map(|all| all[at].as_slice()),
    };
    let members: Vec<Replica> = (0..seeds.len()).map(member).collect();
    let mut replicas = Replicas::new(TINY, GOLDEN_TRAINING, &members, &Device::cpu()).unwrap();
    (0..epochs).for_each(|_| replicas.advance().unwrap());
    (replicas.collect().unwrap(), replicas)
}

#[test]
fn a_network_does_not_depend_on_its_company() {
    let (together, replicas) = train(&[3, 4, 5], 30, None);
    for (place, seed) in [3, 4, 5].into_iter().enumerate() {
        let (alone, own) = train(&[seed], 30, None);
        for (alone, together) in alone.iter().zip(&together) {
            let (alone, together) = (alone[0], together[place]);
            close(&[alone.train_loss, alone.test_loss], &[together.train_loss, together.test_loss], 1e-4);
            assert!((alone.sensitivity - together.sensitivity).abs() < 0.09, "at most a pair or two at the edge");
        }
        let values = |weights: Weights| weights.data().iter().map(|w| f64::from(*w)).collect::<Vec<_>>();
        close(&values(own.weights(0).unwrap()), &values(replicas.weights(place).unwrap()), 1e-3);
    }
    assert_ne!(together[0][0], together[0][1]);
}

#[test]
fn an_interrupted_cohort_ends_with_the_same_bits() {
    let (whole, at_end) = train(&[0, 1], 12, None);
    let (first, half) = train(&[0, 1], 5, None);
    let checkpoints = [half.checkpoint(0).unwrap(), half.checkpoint(1).unwrap()];
    let (second, end) = train(&[0, 1], 7, Some(&checkpoints));
    assert_eq!(whole, [first, second].concat());
    for member in 0..2 {
        assert_eq!(end.checkpoint(member).unwrap(), at_end.checkpoint(member).unwrap());
    }
}

/// log(1 + s) at scores where log-softmax in f32 gives 0: the loss and its slope keep their digits.
#[test]
fn the_loss_of_a_sure_network_is_exact() {
    let device = Device::cpu();
    let tensor = |values: [f32; 3]| -> Tensor<3> {
        Tensor::from_data(TensorData::new(values.to_vec(), [1, 1, 3]), device.constant())
    };
    for (scores, expected) in [
        ([30.0, 5.0, 3.0], (1.0 + (-2f64).exp()) * (-25f64).exp()),
        ([0.0, 200.0, 1.0], 200.0),
        ([1.0, 1.0, 1.0], 3f64.ln()),
    ] {
        let input = tensor(scores).autodiff().require_grad();
        let loss = cross_entropy(input.clone(), &tensor([1.0, 0.0, 0.0]));
        let mut gradients = loss.clone().sum().backward();
        let slope: Vec<f64> = to_vec(input.grad_remove(&mut gradients).unwrap()).unwrap();
        let loss: Vec<f64> = to_vec(loss.without_autodiff()).unwrap();
        assert!((loss[0] / expected - 1.0).abs() < 1e-5, "{} {expected}", loss[0]);
        let right = (-expected).exp_m1(); // the softmax of the right one, less 1
        assert!((slope[0] - right).abs() <= 1e-5 * right.abs(), "{} {right}", slope[0]);
        assert!(slope.iter().sum::<f64>().abs() <= 1e-6 * slope[0].abs());
    }
}

#[test]
fn sensitivity_is_0_without_noise_and_large_with_much() {
    let measured = |noise: f64| {
        let pairs = splits(&[0]);
        let members = [Replica { seed: 0, train: &pairs[0].0, test: &pairs[0].1, checkpoint: None }];
        let settings = Grokking { noise, ..GOLDEN_TRAINING };
        let mut replicas = Replicas::new(TINY, settings, &members, &Device::cpu()).unwrap();
        replicas.measure();
        replicas.collect().unwrap()[0][0].sensitivity
    };
    assert_eq!(measured(0.0), 0.0);
    assert!(measured(100.0) > 0.3);
}

#[test]
fn what_does_not_fit_is_refused() {
    let network = ModularTransformer { heads: 3, ..TINY };
    assert!(network.check().unwrap_err().to_string().contains("heads: must divide the width 8"));
    assert!(ModularTransformer { mlp: 0, ..TINY }.check().is_err());
    let (train, test) = splits(&[0]).remove(0);
    let replicas = |members: &[Replica]| match Replicas::new(TINY, GOLDEN_TRAINING, members, &Device::cpu()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let member = |train, test, checkpoint| Replica { seed: 0, train, test, checkpoint };
    assert!(replicas(&[]).contains("at least one"));
    assert!(replicas(&[member(&train, &test, None), member(&test, &test, None)]).contains("as many pairs"));
    let large = Pairs { a: vec![7; 24], ..train.clone() };
    assert!(replicas(&[member(&large, &test, None)]).contains("below the modulus 7"));
    assert!(replicas(&[member(&train, &test, Some(b"no"))]).contains("safetensors"));
}
