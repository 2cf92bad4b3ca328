//! Reading the clock: how long a unit of some work takes here.

use std::time::{Duration, Instant};

use crate::error::Result;

/// A reading covers at least this much time, so that the clock and waiting for a device do not count.
const SHORTEST_READING: Duration = Duration::from_millis(5);

/// Seconds per unit of work, sorted.
pub(crate) struct Readings {
    seconds: Vec<f64>,
    /// Units of work that were timed.
    pub done: f64,
}

impl Readings {
    /// By linear interpolation between readings.
    pub fn quantile(&self, part: f64) -> f64 {
        let place = part * (self.seconds.len() - 1) as f64;
        let (below, above) = (self.seconds[place.floor() as usize], self.seconds[place.ceil() as usize]);
        below + (above - below) * place.fract()
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Does something over and over until `budget` is spent. `work(count)` does it at most `count` times and says how many units of work that
/// was; the first times warm up and tell how often makes a reading. `None`: there is nothing to do.
pub(crate) fn readings(budget: Duration, mut work: impl FnMut(u64) -> Result<f64>) -> Result<Option<Readings>> {
    let begun = Instant::now();
    if work(1)? == 0.0 {
        return Ok(None);
    }
    let mut read = |count: u64| -> Result<(Duration, f64)> {
        let start = Instant::now();
        let done = work(count)?;
        Ok((start.elapsed(), done))
    };
    let mut count = 1;
    let mut last = read(count)?;
    while last.0 < SHORTEST_READING && last.1 > 0.0 && begun.elapsed() < budget {
        count *= 2;
        let next = read(count)?;
        if next.1 == 0.0 {
            break; // it has come to its end
        }
        last = next;
    }
    let mut readings = Readings { seconds: Vec::new(), done: 0.0 };
    while readings.seconds.is_empty() || begun.elapsed() < budget {
        let (time, done) = read(count)?;
        if done == 0.0 {
            break; // it has come to its end
        }
        readings.seconds.push(time.as_secs_f64() / done);
        readings.done += done;
    }
    if readings.seconds.is_empty() && last.1 > 0.0 {
        readings.seconds.push(last.0.as_secs_f64() / last.1);
        readings.done = last.1;
    }
    readings.seconds.sort_by(f64::total_cmp);
    Ok((!readings.seconds.is_empty()).then_some(readings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let readings = Readings { seconds: vec![1.0, 2.0, 4.0, 8.0], done: 4.0 };
        assert_eq!((readings.median(), readings.quantile(0.0), readings.quantile(1.0)), (3.0, 1.0, 8.0));
        assert_eq!(Readings { seconds: vec![5.0], done: 1.0 }.median(), 5.0);
    }
}
