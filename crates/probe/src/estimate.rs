//! Means that know how far off they may be.

use serde::{Deserialize, Serialize};

/// Count, mean and spread of a sequence, gathered one value at a time (Welford), so that nothing is lost to cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean.
    spread: f64,
}

impl Moments {
    /// Take in one value.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.spread += before * (value - self.mean);
    }

    /// Values taken in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 when there are none.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Their unbiased variance, when there are at least two.
    pub fn variance(&self) -> Option<f64> {
        (self.count >= 2).then(|| self.spread / (self.count - 1) as f64)
    }

    /// The standard error of the mean, when there are at least two values.
    pub fn std_error(&self) -> Option<f64> {
        self.variance().map(|variance| (variance / self.count as f64).sqrt())
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut moments = Self::default();
        values.into_iter().for_each(|value| moments.add(value));
        moments
    }
}

/// An average and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The average.
    pub mean: f64,
    /// Its standard error over independent units (inputs, batches or draws): 0 when exact, unknown from a single unit.
    pub std_error: Option<f64>,
    /// How many units it averages.
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

    /// The 95 % confidence interval by the normal approximation, where the standard error is known.
    pub fn ci95(&self) -> Option<(f64, f64)> {
        self.std_error.map(|error| (self.mean - 1.96 * error, self.mean + 1.96 * error))
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
    fn moments_are_the_textbook_ones() {
        let moments: Moments = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().collect();
        assert_eq!((moments.count(), moments.mean()), (8, 5.0));
        assert!((moments.variance().unwrap() - 32.0 / 7.0).abs() < 1e-12);
        assert!((moments.std_error().unwrap() - (32.0f64 / 7.0 / 8.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_large_offset_does_not_drown_the_spread() {
        let moments: Moments = (0..1000).map(|i| 1e9 + f64::from(i % 2)).collect();
        assert!((moments.variance().unwrap() - 0.25 * 1000.0 / 999.0).abs() < 1e-6);
    }

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
        let mut noise = pudica_data::Stream::new(0, "clusters", 0);
        let mut repeat = || {
            let mut cluster = || {
                let (count, chance) = (1 + noise.below(20), noise.uniform());
                ((0..count).filter(|_| noise.uniform() < chance).count() as f64, count as f64)
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
        assert_eq!((estimate.std_error, estimate.ci95()), (None, None));
        assert_eq!(Estimate::exact(3.0, 8).ci95(), Some((3.0, 3.0)));
    }
}
