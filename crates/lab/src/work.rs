//! How much computing a run needs, relative to other runs: for the time left, before anything is measured.

use crate::config::{ModelKind, RunConfig};

/// The work of one run, in multiply-adds of its forward passes and their equivalents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Training, with tracking.
    pub train: f64,
    /// Measuring afterwards.
    pub measure: f64,
}

/// A backward pass costs about two forward passes.
const STEP_IN_FORWARDS: f64 = 3.0;

/// What a pass costs however small the network is (allocating, launching), in multiply-adds.
const OVERHEAD: f64 = 1e6;

impl Work {
    /// The work of a run.
    pub fn of(config: &RunConfig) -> Work {
        let cube = 2f64.powi(config.n.min(60) as i32);
        let rows = config.train.batch as f64;
        let batch = pass(config, rows.min(cube));
        let tracked = config.train.steps.checked_div(config.track.every).unwrap_or(0) as f64;
        // Averages without noise take every string once when the batches would hold more; noise needs every pass.
        let plain = |batches: usize| (batches as f64).min((cube / rows).ceil());
        let noisy = config.measure.batches as f64 * (config.measure.draws + 1) as f64;
        Work {
            train: Work::of_step(config) * config.train.steps as f64
                + batch * tracked * (config.track.draws + 3) as f64,
            measure: batch * (plain(config.eval.batches) + plain(config.measure.batches) + noisy),
        }
    }

    /// The work of one training step.
    pub fn of_step(config: &RunConfig) -> f64 {
        let set = if config.train.set_size > 0 { config.train.set_size } else { usize::MAX };
        STEP_IN_FORWARDS * pass(config, config.train.batch.min(set) as f64)
    }

    /// All of it.
    pub fn total(&self) -> f64 {
        self.train + self.measure
    }
}

/// Multiply-adds of one forward pass on `strings` strings.
fn pass(config: &RunConfig, strings: f64) -> f64 {
    let (n, d, ff, layers) = (config.n as f64, config.model.d as f64, config.ff() as f64, config.model.layers as f64);
    let layer = n * (4.0 * d * d + 2.0 * d * ff) + 2.0 * n * n * d;
    let layers = match config.model.kind {
        ModelKind::Encoder => layers * layer,
        // A decoder layer has a second attention.
        ModelKind::EncoderDecoder => layers * (2.0 * layer + 4.0 * n * d * d + 2.0 * n * n * d),
    };
    strings * layers + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_grows_as_the_settings_do() {
        let small = RunConfig::default();
        let mut large = small.clone();
        large.train.steps *= 2;
        assert_eq!(Work::of(&large).train, 2.0 * Work::of(&small).train);
        large.measure.draws += 10;
        assert!(Work::of(&large).measure > Work::of(&small).measure);
        // n = 10 has 1,024 strings: one batch holds them all, however many are asked for.
        let few = Work::of(&large).measure;
        large.eval.batches *= 10;
        assert_eq!(Work::of(&large).measure, few);
    }
}
