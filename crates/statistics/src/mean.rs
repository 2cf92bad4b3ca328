//! Means of a few values, with intervals.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Estimate;

/// A mean with its 95 % confidence interval from Student's t-distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Standard error of the mean; 0 for a single value.
    pub std_error: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of values.
    pub count: usize,
}

/// The normal distribution's 95 % point to two digits: what the intervals of single runs in all reports so far were computed with, so that
/// they come out the same again. Everything else has [`crate::Z95`].
const TWO_DIGITS: f64 = 1.96;

impl Mean {
    /// One run's number with the interval of its own standard error (of no width where that is not known).
    pub fn of_one(estimate: &Estimate) -> Mean {
        let (mean, std_error) = (estimate.mean, estimate.error_or_zero());
        let reach = TWO_DIGITS * std_error;
        Mean { mean, std_error, low: mean - reach, high: mean + reach, count: 1 }
    }

    /// An estimate with the interval of Student's distribution for its number of units (of no width where its error is not known).
    pub fn of_estimate(estimate: &Estimate) -> Mean {
        let (mean, std_error) = (estimate.mean, estimate.error_or_zero());
        let reach = if std_error > 0.0 { student(estimate.samples) * std_error } else { 0.0 };
        Mean { mean, std_error, low: mean - reach, high: mean + reach, count: estimate.samples as usize }
    }
}

/// The two-sided 95 % point of Student's distribution for the mean of so many values.
fn student(count: u64) -> f64 {
    StudentsT::new(0.0, 1.0, count.saturating_sub(1) as f64).map_or(f64::NAN, |t| t.inverse_cdf(0.975))
}

/// The mean of some values; `None` if there are none. A single value has an interval of no width.
pub fn mean(values: &[f64]) -> Option<Mean> {
    let count = values.len();
    if count == 0 {
        return None;
    }
    let Estimate { mean, std_error, .. } = Estimate::of_values(values);
    let Some(std_error) = std_error else {
        return Some(Mean { mean, std_error: 0.0, low: mean, high: mean, count });
    };
    let reach = student(count as u64) * std_error;
    Some(Mean { mean, std_error, low: mean - reach, high: mean + reach, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[3.0]).unwrap().high, 3.0);
        let one = Mean::of_one(&Estimate::stated(3.0, Some(0.5)));
        assert_eq!((one.low, one.high, one.count), (3.0 - 0.98, 3.0 + 0.98, 1));
        let values = [1.0, 2.0, 4.0];
        assert_eq!(Some(Mean::of_estimate(&Estimate::of_values(&values))), mean(&values));
    }
}
