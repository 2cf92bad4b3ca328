//! How much computing a run needs, relative to other runs: for the time left, before anything is measured. The unit is a multiply-add of a
//! forward pass.

use pudica_probe::LARGEST_EXACT;

use super::measure::SPREAD_BATCHES;
use super::{CutAt, ModelKind, RunConfig, fast_encoder};
use crate::experiment::Work;

/// A backward pass costs about two forward passes.
const STEP_IN_FORWARDS: f64 = 3.0;

/// What a pass costs however small the network is (drawing strings, launching), in multiply-adds.
const OVERHEAD: f64 = 1e6;

/// The work of a run.
pub(super) fn work(config: &RunConfig) -> Work {
    let pass = of_pass(config);
    let rows = (config.train.batch as f64).min(cube(config));
    let profile = if config.measure.profile { of_sensitivity(config) / rows } else { 0.0 };
    Work {
        steps: config.train.steps,
        step: of_step(config),
        line: pass * ((config.track.draws + 3) as f64 + profile),
        line_every: config.track.every,
        line_at_start: config.track.every > 0,
        measure: pass * passes_to_measure(config) + of_lengths(config),
    }
}

/// The work of one training step.
fn of_step(config: &RunConfig) -> f64 {
    let strings = match config.train.set_size {
        // The fast lane computes a string that a batch repeats once.
        0 if fast_encoder(config).is_some() => distinct(config, config.train.batch as f64),
        0 => config.train.batch as f64,
        set => (config.train.batch.min(set)) as f64,
    };
    STEP_IN_FORWARDS * multiply_adds(config, strings)
}

/// The work of one forward pass on a batch.
pub(super) fn of_pass(config: &RunConfig) -> f64 {
    multiply_adds(config, (config.train.batch as f64).min(cube(config)))
}

/// Forward passes, on batches as large as in training, that measuring takes.
fn passes_to_measure(config: &RunConfig) -> f64 {
    let measure = &config.measure;
    let rows = (config.train.batch as f64).min(cube(config));
    // Averages without noise take every string once when the batches would hold more; noise needs every pass.
    let plain = |batches: usize| (batches as f64).min((cube(config) / rows).ceil());
    let noisy = measure.batches as f64 * (measure.draws as f64 + 1.0);
    let on_set =
        if measure.set_size > 0 { (measure.set_draws as f64 + 1.0) * measure.set_size as f64 / rows } else { 0.0 };
    let sensitivity = of_sensitivity(config) / rows;
    let spread = config.eval.batches.min(SPREAD_BATCHES) as f64;
    let neighbours = (config.volumes().len() * measure.volume_draws) as f64 * few_strings(config) / rows;
    plain(config.eval.batches) + spread + plain(measure.batches) + noisy + on_set + sensitivity + neighbours
}

/// Strings that a network's sensitivity takes: all of them, or a sample and its neighbours, with what its cut takes beside.
fn of_sensitivity(config: &RunConfig) -> f64 {
    let measure = &config.measure;
    let beside = match measure.cut {
        CutAt::Median => 2.0,
        CutAt::Half | CutAt::Zero => f64::from(measure.profile),
    };
    match measure.sensitivity_samples as f64 {
        0.0 => 0.0,
        _ if config.n <= LARGEST_EXACT => cube(config),
        samples => samples * (config.n as f64 + 1.0 + beside),
    }
}

/// Strings that it takes where the whole cube is tried only if that is less: of neighbours, and at other lengths.
fn few_strings(config: &RunConfig) -> f64 {
    cube(config).min(config.measure.sensitivity_samples as f64 * (config.n as f64 + 1.0))
}

/// The work of measuring at other lengths.
fn of_lengths(config: &RunConfig) -> f64 {
    let at = |n: usize| {
        let at = RunConfig { n, ..config.clone() };
        let evaluated = cube(&at).min(at.train.batch as f64 * at.eval.batches as f64);
        multiply_adds(&at, evaluated + few_strings(&at))
    };
    config.eval_lengths().unwrap_or_default().into_iter().map(at).sum()
}

/// Bytes that a run needs at least on the CPU: weights with gradients, moments and noise, the activations of one batch, and strings. It must
/// stay below what runs really take, or runs that work are refused (`bench/memory` compares the two).
pub(super) fn bytes(config: &RunConfig, dtype: &str) -> f64 {
    let size = if dtype == "f64" { 8.0 } else { 4.0 };
    let (n, d, ff, layers) = (config.n as f64, config.model.d as f64, config.ff() as f64, config.model.layers as f64);
    let (table, of_layer, per_token) = match config.model.kind {
        ModelKind::Encoder | ModelKind::EncoderDecoder => {
            ((config.positions() as f64 + 2.0) * d, 4.0 * d * d + 2.0 * d * ff, d + ff)
        }
        ModelKind::Mlp => (n * d, d * d, d / n), // one vector for all bits
        ModelKind::Lstm => (2.0 * d, 8.0 * d * d, 5.0 * d),
        ModelKind::Gru => (2.0 * d, 6.0 * d * d, 4.0 * d),
        ModelKind::Ssm => (2.0 * d, 3.0 * d * d + 2.0 * d * ff, 2.0 * d + ff),
    };
    // The fast lane goes through a batch in blocks, and keeps its strings twice, sorted and with what is known of each.
    let fast = fast_encoder(config).is_some();
    let (per_token, per_string) = if fast { (0.0, n + 100.0) } else { (per_token, 0.0) };
    let weights = layers * of_layer + table;
    let strings = (config.train.batch as f64).min(cube(config));
    let activations = strings * n * per_token * layers;
    let sorted = strings * per_string;
    // Strings are kept a byte per bit, with their labels: a batch, sets, and those that sensitivity is sampled on.
    let sampled = if n > LARGEST_EXACT as f64 { config.measure.sensitivity_samples } else { 0 };
    let kept = [config.train.batch, config.train.set_size, config.measure.set_size, sampled];
    let kept: f64 = kept.iter().map(|strings| *strings as f64 * (n + 4.0)).sum();
    size * (5.0 * weights + activations) + kept + sorted
}

/// Strings in all.
fn cube(config: &RunConfig) -> f64 {
    2f64.powi(config.n.min(60) as i32)
}

/// Distinct strings expected among `rows` uniform ones.
fn distinct(config: &RunConfig, rows: f64) -> f64 {
    let cube = cube(config);
    -cube * (rows * (-1.0 / cube).ln_1p()).exp_m1()
}

/// Multiply-adds of one forward pass on `strings` distinct strings.
fn multiply_adds(config: &RunConfig, strings: f64) -> f64 {
    let (n, d, ff) = (config.n as f64, config.model.d as f64, config.ff() as f64);
    let attention = n * 4.0 * d * d + 2.0 * n * n * d;
    let feed_forward = n * 2.0 * d * ff;
    let layers = config.model.layers as f64;
    let network = match config.model.kind {
        // On the fast lane the first attention reads tables, and the last layer is computed at one position.
        ModelKind::Encoder if fast_encoder(config).is_some() => {
            let last = 2.0 * n * d * config.model.heads as f64 + 4.0 * d * d + 2.0 * d * ff;
            let first = if layers > 1.0 { n * n * d + feed_forward } else { 0.0 };
            first + (layers - 2.0).max(0.0) * (attention + feed_forward) + last
        }
        // A decoder layer has a second attention.
        ModelKind::EncoderDecoder => layers * (3.0 * attention + 2.0 * feed_forward),
        ModelKind::Encoder => layers * (attention + feed_forward),
        ModelKind::Mlp => n * d + (layers - 1.0) * d * d,
        // Of the first layer's inputs there are two.
        ModelKind::Lstm => n * d * d * (8.0 * layers - 4.0),
        ModelKind::Gru => n * d * d * (6.0 * layers - 3.0),
        ModelKind::Ssm => layers * (n * 3.0 * d * d + feed_forward),
    };
    strings * network + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_grows_as_the_settings_do() {
        let small = RunConfig::default();
        let mut large = small.clone();
        large.train.steps *= 2;
        assert_eq!(work(&large).until(large.train.steps), 2.0 * work(&small).until(small.train.steps));
        large.measure.draws += 10;
        assert!(work(&large).measure > work(&small).measure);
        // Up to 20 bits every string is tried, whatever the size of a sample would be.
        let at = |n, samples| {
            let mut config = RunConfig { n, ..RunConfig::default() };
            config.measure.sensitivity_samples = samples;
            of_sensitivity(&config)
        };
        assert_eq!([at(20, 0), at(20, 1), at(20, 256), at(21, 256)], [0.0, 1048576.0, 1048576.0, 256.0 * 22.0]);
        // n = 10 has 1,024 strings: one batch holds them all, however many are asked for.
        let few = work(&large).measure;
        large.eval.batches *= 10;
        assert_eq!(work(&large).measure, few);
        assert!(bytes(&RunConfig { n: 30, ..large }, "f64") > 2.0 * bytes(&small, "f32"));
    }

    #[test]
    fn a_batch_repeats_strings_when_there_are_few() {
        let at = |n| distinct(&RunConfig { n, ..RunConfig::default() }, 1024.0);
        assert!((at(4) - 16.0).abs() < 1e-9);
        // 1,024 draws from 1,024: a part of 1 - 1/e is seen.
        assert!((at(10) / 1024.0 - (1.0 - (-1f64).exp())).abs() < 1e-3);
        assert!((at(60) - 1024.0).abs() < 1e-3);
    }
}
