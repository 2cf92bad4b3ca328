//! Means that know how far off they may be.

use serde::{Deserialize, Serialize};

use crate::{Moments, Z95};

/// An average and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The average.
    pub mean: f64,
    /// Its standard error over independent units (inputs, batches, draws or networks): 0 when exact, unknown from a single unit.
    pub std_error: Option<f64>,
    /// How many units it averages; 0 where the file it was read from does not say.
    pub samples: u64,
    /// Whether it averages everything there is, so that no sampling error is left.
    pub exact: bool,
}

impl Estimate {
    /// The mean of independent values.
    pub fn sampled(moments: &Moments) -> Self {
        Self { mean: moments.mean(), std_error: moments.std_error(), samples: moments.count(), exact: false }
    }

    /// A number without sampling error, from this many values.
    pub fn exact(mean: f64, samples: u64) -> Self {
        Self { mean, std_error: Some(0.0), samples, exact: true }
    }

    /// The mean of values that are independent samples, or (`exact`) all there are.
    pub fn of(moments: &Moments, exact: bool) -> Self {
        match exact {
            true => Self::exact(moments.mean(), moments.count()),
            false => Self::sampled(moments),
        }
    }

    /// The mean of independent values that are all at hand: first their mean, then their squared distances from it. Of none it is NaN.
    pub fn of_values(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let std_error = (values.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt());
        Self { mean, std_error, samples: values.len() as u64, exact: false }
    }

    /// A number and its standard error as something else states them; over how many units is not known.
    pub fn stated(mean: f64, std_error: Option<f64>) -> Self {
        Self { mean, std_error, samples: 0, exact: false }
    }

    /// The mean over everything in clusters that are independent of each other, from each cluster's (sum, count): sum of all sums over sum of
    /// all counts. Clusters may differ in size; the standard error is over clusters (that of a ratio, by linearisation), which for
    /// equal sizes is the usual one of the clusters' means.
    pub fn clustered(clusters: &[(f64, f64)]) -> Self {
        let (sum, count) =
            clusters.iter().fold((0.0, 0.0), |(sum, count), cluster| (sum + cluster.0, count + cluster.1));
        let mean = if count > 0.0 { sum / count } else { 0.0 };
        let samples = clusters.len();
        let std_error = (samples >= 2 && count > 0.0).then(|| {
            let spread: f64 = clusters.iter().map(|(sum, count)| (sum - mean * count).powi(2)).sum();
            (spread * samples as f64 / (samples - 1) as f64).sqrt() / count
        });
        Self { mean, std_error, samples: samples as u64, exact: false }
    }

    /// The standard error, 0 where it is not known.
    pub fn error_or_zero(&self) -> f64 {
        self.std_error.unwrap_or(0.0)
    }

    /// Half of the 95 % interval by the normal approximation, where the standard error is known.
    pub fn half_width(&self) -> Option<f64> {
        self.std_error.map(|error| Z95 * error)
    }

    /// The same in another unit: `factor` times the quantity (4 takes squares from {0, 1} to ±1).
    pub fn times(self, factor: f64) -> Self {
        Self { mean: self.mean * factor, std_error: self.std_error.map(|e| e * factor.abs()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_one_size_are_their_means_and_others_count_by_size() {
        let means = [0.5, 0.25, 0.75, 1.0];
        let equal = Estimate::clustered(&means.map(|mean| (8.0 * mean, 8.0)));
        let plain = Estimate::sampled(&means.into_iter().collect());
        assert!((equal.mean - plain.mean).abs() < 1e-12);
        assert!((equal.std_error.unwrap() - plain.std_error.unwrap()).abs() < 1e-12);
        // All values are 0 or 1; the mean is over values, not over clusters.
        assert_eq!(Estimate::clustered(&[(1.0, 1.0), (0.0, 9.0)]).mean, 0.1);
        assert_eq!(Estimate::clustered(&[(1.0, 2.0)]).std_error, None);
        assert_eq!(Estimate::clustered(&[]).mean, 0.0);
    }

    /// Sequences of random lengths whose every position answers with its sequence's own probability: the standard error is that which
    /// repeating the whole experiment shows.
    #[test]
    fn the_error_over_unequal_clusters_is_the_spread_of_repetitions() {
        let mut uniform = crate::moments::tests::uniforms();
        let mut repeat = || {
            let mut cluster = || {
                let (count, chance) = (1 + (20.0 * uniform()) as usize, uniform());
                ((0..count).filter(|_| uniform() < chance).count() as f64, count as f64)
            };
            Estimate::clustered(&(0..50).map(|_| cluster()).collect::<Vec<_>>())
        };
        let repeated: Vec<Estimate> = (0..400).map(|_| repeat()).collect();
        let spread: Moments = repeated.iter().map(|estimate| estimate.mean).collect();
        let said: Moments = repeated.iter().filter_map(|estimate| estimate.std_error).collect();
        assert!((said.mean() / spread.variance().unwrap().sqrt() - 1.0).abs() < 0.12);
        assert!((spread.mean() - 0.5).abs() < 0.01);
    }

    #[test]
    fn one_value_has_no_known_error() {
        let estimate = Estimate::sampled(&[3.0].into_iter().collect());
        assert_eq!((estimate.std_error, estimate.half_width(), estimate.error_or_zero()), (None, None, 0.0));
        assert_eq!(Estimate::exact(3.0, 8).half_width(), Some(0.0));
        assert_eq!(Estimate::of_values(&[1.0]).std_error, None);
        assert!(Estimate::of_values(&[]).mean.is_nan());
    }

    #[test]
    fn values_at_hand_give_the_mean_and_its_error() {
        let found = Estimate::of_values(&[1.0, 3.0]);
        assert_eq!(found, Estimate { mean: 2.0, std_error: Some(1.0), samples: 2, exact: false });
        assert_eq!(found.times(-2.0), Estimate { mean: -4.0, std_error: Some(2.0), samples: 2, exact: false });
    }
}
