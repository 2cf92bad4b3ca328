//! The hand-derived gradients against autodiff and against finite differences.

use pudica_data::{Batch, Stream, Target, Task, TrainingSet};
use pudica_nn::{Architecture, Device, Embed, EncoderConfig, Weights, loss_and_gradient};

use super::gradient::{Pool, StepScratch, Threads};
use super::layout::Layout;
use super::real::Real;

/// Shapes that reach every branch: each kind of attention, heads, both embeddings, ff other than d, odd sizes, n = 1, strings
/// that fill many blocks and lanes, `linear1` folded and not.
fn shapes() -> Vec<(EncoderConfig, usize)> {
    let shape = |n, d, layers, heads, ff, embed| EncoderConfig { n, d, layers, heads, ff, embed, same_init: false };
    vec![
        (shape(6, 8, 1, 2, 12, Embed::Concat), 50),
        (shape(12, 8, 2, 1, 8, Embed::Concat), 64),
        (shape(5, 12, 2, 4, 7, Embed::Add), 100),
        (shape(7, 8, 3, 2, 5, Embed::Concat), 40),
        (shape(4, 9, 3, 3, 10, Embed::Add), 30),
        (shape(1, 4, 2, 2, 3, Embed::Concat), 10),
        (shape(1, 6, 1, 1, 6, Embed::Add), 1),
        (shape(3, 8, 2, 2, 10, Embed::Concat), 20),
        (shape(3, 10, 3, 1, 6, Embed::Add), 30),
        (shape(20, 64, 2, 2, 48, Embed::Concat), 500),
        (shape(70, 16, 2, 2, 16, Embed::Concat), 30),
    ]
}

/// Weights where nothing is special: no bias is zero, no norm is the identity.
fn weights(config: &EncoderConfig) -> Weights {
    let mut weights = Architecture::Encoder(config.clone()).initial_weights(3).unwrap();
    let mut stream = Stream::new(5, "shift", 0);
    weights.data_mut().iter_mut().for_each(|w| *w += 0.2 * stream.normal_f32());
    weights
}

fn batch(config: &EncoderConfig, rows: usize) -> Batch {
    Task::new(Target::parse("majority", config.n).unwrap()).train_batch(rows, 0, 0).unwrap()
}

/// The loss and its gradient as the engine computes them.
fn ours<T: Real>(config: &EncoderConfig, parameters: &[T], batch: &Batch) -> (f64, Vec<T>) {
    let layout = Layout::new(config).unwrap();
    let mut scratch = StepScratch::new(&layout);
    scratch.distinct.fill(batch);
    let loss = scratch.compute(&layout, parameters, &Pool::new(), Threads::One);
    let mut gradient = vec![T::zero(); layout.len];
    for lane in &scratch.lanes {
        gradient.iter_mut().zip(&lane.gradient.parameters).for_each(|(sum, part)| *sum += *part);
    }
    (loss, gradient)
}

fn widened(weights: &Weights) -> Vec<f64> {
    weights.data().iter().map(|w| f64::from(*w)).collect()
}

/// The largest error of a parameter's gradient, relative to the largest gradient of that parameter (or, where that parameter
/// hardly matters, to a thousandth of the largest gradient of all).
fn worst_error(weights: &Weights, found: &[f64], expected: &[f64]) -> (f64, String) {
    let largest = |values: &[f64]| values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let overall = largest(expected);
    let error = |parameter: &pudica_nn::Parameter| {
        let (found, expected) = (&found[parameter.range.clone()], &expected[parameter.range.clone()]);
        let differences: Vec<f64> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
        assert!(differences.iter().all(|difference| difference.is_finite()), "{}", parameter.name);
        (largest(&differences) / largest(expected).max(1e-3 * overall), parameter.name.clone())
    };
    weights.layout().iter().map(error).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

#[test]
fn gradients_equal_autodiff() {
    for (config, rows) in shapes() {
        let (architecture, weights, batch) =
            (Architecture::Encoder(config.clone()), weights(&config), batch(&config, rows));
        let reference = |device: Device| {
            loss_and_gradient::<f64>(&architecture, &weights, &batch.strings, &batch.labels, &device).unwrap()
        };
        let (expected_loss, expected) = reference(Device::cpu().double());
        let (loss, gradient) = ours(&config, &widened(&weights), &batch);
        let error = worst_error(&weights, &gradient, &expected);
        assert!(error.0 < 1e-10, "f64, {config:?}: {error:?}");
        assert!((loss - expected_loss).abs() < 1e-12 * expected_loss.max(1.0), "{loss} {expected_loss}");

        let (_, expected) =
            loss_and_gradient::<f32>(&architecture, &weights, &batch.strings, &batch.labels, &Device::cpu()).unwrap();
        let (loss, gradient) = ours(&config, weights.data(), &batch);
        let [gradient, expected] = [gradient, expected].map(|g| g.iter().map(|g| f64::from(*g)).collect::<Vec<_>>());
        let error = worst_error(&weights, &gradient, &expected);
        assert!(error.0 < 1e-5, "f32, {config:?}: {error:?}");
        assert!((loss - expected_loss).abs() < 1e-5 * expected_loss, "{loss} {expected_loss}");
    }
}

#[test]
fn gradients_equal_finite_differences() {
    for (config, rows) in shapes() {
        // A large step through many ReLUs would cross their kinks; the reference's test covers the large shapes.
        if config.d * rows > 2000 {
            continue;
        }
        let (parameters, batch) = (widened(&weights(&config)), batch(&config, rows));
        let (_, gradient) = ours(&config, &parameters, &batch);
        for draw in 0..3 {
            let mut stream = Stream::new(0, "direction", draw);
            let direction: Vec<f64> = parameters.iter().map(|_| stream.normal()).collect();
            let h = 1e-6;
            let loss_at = |sign: f64| {
                let moved: Vec<f64> = parameters.iter().zip(&direction).map(|(w, v)| w + sign * h * v).collect();
                ours(&config, &moved, &batch).0
            };
            let found = (loss_at(1.0) - loss_at(-1.0)) / (2.0 * h);
            let predicted: f64 = gradient.iter().zip(&direction).map(|(g, v)| g * v).sum();
            assert!((found - predicted).abs() < 1e-6 * predicted.abs().max(0.1), "{config:?}: {found} {predicted}");
        }
    }
}

/// Scores so far apart that exponentials of the table underflow: the row's own largest score must be subtracted.
#[test]
fn extreme_scores_are_no_problem() {
    let config = EncoderConfig { n: 6, d: 8, layers: 2, heads: 2, ff: 8, embed: Embed::Concat, same_init: false };
    let mut weights = weights(&config);
    weights.get_mut("enc.layers.0.self_attn.in_proj_weight").unwrap().iter_mut().for_each(|w| *w *= 20.0);
    let batch = batch(&config, 64);
    let architecture = Architecture::Encoder(config.clone());
    let (expected_loss, expected) =
        loss_and_gradient::<f64>(&architecture, &weights, &batch.strings, &batch.labels, &Device::cpu().double())
            .unwrap();
    let (loss, gradient) = ours(&config, weights.data(), &batch);
    assert!((loss - expected_loss).abs() < 1e-4 * expected_loss, "{loss} {expected_loss}");
    let gradient: Vec<f64> = gradient.iter().map(|g| f64::from(*g)).collect();
    let error = worst_error(&weights, &gradient, &expected);
    assert!(error.0 < 1e-2, "{error:?}");
}

/// Repeated strings, computed once and weighted, count as often as they occur.
#[test]
fn repeated_strings_weigh_what_they_should() {
    let config = EncoderConfig { n: 10, d: 8, layers: 2, heads: 2, ff: 8, embed: Embed::Add, same_init: false };
    let set = TrainingSet::draw(7, 10, 0).unwrap();
    let task = Task::new(Target::parse("parity", 10).unwrap()).with_training_set(set);
    let batch = task.train_batch(64, 1, 2).unwrap();
    let weights = weights(&config);
    let (expected_loss, expected) = loss_and_gradient::<f64>(
        &Architecture::Encoder(config.clone()),
        &weights,
        &batch.strings,
        &batch.labels,
        &Device::cpu().double(),
    )
    .unwrap();
    let (loss, gradient) = ours(&config, &widened(&weights), &batch);
    assert!((loss - expected_loss).abs() < 1e-12);
    assert!(worst_error(&weights, &gradient, &expected).0 < 1e-10);
}
