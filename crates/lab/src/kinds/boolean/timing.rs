//! How long networks take here, measured: what `pudica bench encoder` prints.

use std::time::Duration;

use super::{BooleanExperiment, RunConfig};
use crate::clock::readings;
use crate::error::{Error, Result};

/// Medians over readings, after warming up.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// What was computed on.
    pub device: String,
    /// Runs in lock-step.
    pub replicas: usize,
    /// Milliseconds per training step and run.
    pub ms_per_replica_step: f64,
    /// Milliseconds per forward pass on a training batch and run.
    pub forward_ms: f64,
    /// How far the readings of a step are from each other: the distance of their quartiles, relative to the median.
    pub spread: f64,
    /// Training steps timed.
    pub steps: usize,
    /// What a step does per second, where that is counted.
    pub rates: Option<Rates>,
}

/// What a device does per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes read and written.
    pub bytes: f64,
    /// Floating-point operations of matrix products.
    pub flops: f64,
}

/// Times training steps and forward passes of `replicas` runs like `config` in lock-step, each for about half of `budget` and at least
/// once.
pub fn time(config: &RunConfig, replicas: usize, on: &BooleanExperiment, budget: Duration) -> Result<Timing> {
    let mut training = on.trial_of(config, replicas)?;
    let never = || Error::Other("nothing could be timed".into());
    let step = readings(budget / 2, |count| {
        training.engine.advance(count as usize)?;
        Ok(count as f64)
    })?;
    let step = step.ok_or_else(never)?;
    let pass = readings(budget / 2, |count| {
        (0..count).try_for_each(|_| training.forward_pass())?;
        Ok(count as f64)
    })?;
    let pass = pass.ok_or_else(never)?;
    let for_each = |seconds: f64| 1000.0 * seconds / replicas as f64;
    let work = training.engine.step_work();
    Ok(Timing {
        device: training.engine.device(),
        replicas,
        ms_per_replica_step: for_each(step.median()),
        forward_ms: for_each(pass.median()),
        spread: (step.quantile(0.75) - step.quantile(0.25)) / step.median(),
        steps: step.done as usize,
        rates: work.map(|work| Rates { bytes: work.bytes / step.median(), flops: work.flops / step.median() }),
    })
}
