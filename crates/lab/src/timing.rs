//! How long networks take here, measured: what `pudica bench` prints and `pudica show` adds up.

use std::time::{Duration, Instant};

use pudica_ensemble::StepWork;

use crate::config::RunConfig;
use crate::error::Result;
use crate::trainer::{Start, Trainer, Training};

/// A reading of the clock covers at least this much, so that the clock and starting up a device do not count.
const SHORTEST_READING: Duration = Duration::from_millis(5);

/// Medians over readings, after warming up.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// What was computed on.
    pub device: String,
    /// Runs in lock-step.
    pub replicas: usize,
    /// Milliseconds of one training step, for each run.
    pub ms_per_replica_step: f64,
    /// Milliseconds of one forward pass on a training batch, for each run.
    pub forward_ms: f64,
    /// How far the readings of a step are from each other: the distance of their quartiles, relative to the median.
    pub spread: f64,
    /// Training steps timed.
    pub steps: usize,
    /// What a step does a second, where that is counted.
    pub rates: Option<Rates>,
}

/// What a device does a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes read and written.
    pub bytes: f64,
    /// Floating-point operations of matrix products.
    pub flops: f64,
}

/// Times training steps and forward passes of `replicas` runs like `config` in lock-step, each for about half of `budget` and at least
/// once.
pub fn time(config: &RunConfig, replicas: usize, trainer: &dyn Trainer, budget: Duration) -> Result<Timing> {
    // What is learnt does not matter for the time, and the labels of another run may not be there yet.
    let runs: Vec<RunConfig> =
        (0..replicas as u64).map(|seed| RunConfig { target: "parity".into(), seed, ..config.clone() }).collect();
    let starts: Vec<Start> = runs.iter().map(|config| Start { config, teacher: None, checkpoint: None }).collect();
    let mut training = trainer.begin(&starts)?;
    let step = readings(training.as_mut(), budget / 2, |training, count| training.advance(count).map(|_| ()))?;
    let pass = readings(training.as_mut(), budget / 2, |training, count| (0..count).try_for_each(|_| training.pass()))?;
    let for_each = |seconds: f64| 1000.0 * seconds / replicas as f64;
    let rate = |work: StepWork| Rates { bytes: work.bytes / step.median(), flops: work.flops / step.median() };
    Ok(Timing {
        device: training.device(),
        replicas,
        ms_per_replica_step: for_each(step.median()),
        forward_ms: for_each(pass.median()),
        spread: (step.quantile(0.75) - step.quantile(0.25)) / step.median(),
        steps: step.times,
        rates: training.step_work().map(rate),
    })
}

/// Seconds something took, sorted, and how many times it was done.
struct Readings {
    seconds: Vec<f64>,
    times: usize,
}

impl Readings {
    /// By linear interpolation between readings.
    fn quantile(&self, part: f64) -> f64 {
        let place = part * (self.seconds.len() - 1) as f64;
        let (below, above) = (self.seconds[place.floor() as usize], self.seconds[place.ceil() as usize]);
        below + (above - below) * place.fract()
    }

    fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Does something over and over until `budget` is spent. The first times warm up and tell how often makes a reading.
fn readings(
    training: &mut dyn Training,
    budget: Duration,
    mut work: impl FnMut(&mut dyn Training, usize) -> Result<()>,
) -> Result<Readings> {
    let begun = Instant::now();
    let mut read = |count: usize| -> Result<Duration> {
        let start = Instant::now();
        work(training, count)?;
        Ok(start.elapsed())
    };
    read(1)?;
    let mut count = 1;
    let mut last = read(count)?;
    while last < SHORTEST_READING {
        count *= 2;
        last = read(count)?;
    }
    let mut readings = Readings { seconds: Vec::new(), times: 0 };
    while readings.seconds.is_empty() || begun.elapsed() < budget {
        readings.seconds.push(read(count)?.as_secs_f64() / count as f64);
        readings.times += count;
    }
    readings.seconds.sort_by(f64::total_cmp);
    Ok(readings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let readings = Readings { seconds: vec![1.0, 2.0, 4.0, 8.0], times: 4 };
        assert_eq!((readings.median(), readings.quantile(0.0), readings.quantile(1.0)), (3.0, 1.0, 8.0));
        assert_eq!(Readings { seconds: vec![5.0], times: 1 }.median(), 5.0);
    }
}
