//! Intervals that stay where their quantity can be.

use crate::{Mean, Share};

/// The values that a quantity can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Any number.
    Any,
    /// A fraction: 0 to 1.
    Fraction,
    /// More than 0, such as a loss.
    Positive,
}

impl Mean {
    /// The same mean with an interval inside the range. It is as wide as before where the ends are far away.
    ///
    /// Fractions: Wilson's interval for the number of independent cases that would have this standard error, mean (1 - mean) / std_error^2,
    /// with the quantile (Student's, or the normal one) that the interval was made with. Positive quantities: the interval of the logarithm,
    /// whose standard error is std_error / mean.
    pub fn within(self, range: Range) -> Mean {
        let Mean { mean, std_error, high, .. } = self;
        let quantile = (high - mean) / std_error;
        let is_spread = std_error > 0.0 && quantile.is_finite();
        let (low, high) = match range {
            Range::Fraction if is_spread && mean > 0.0 && mean < 1.0 => {
                wilson(mean, mean * (1.0 - mean) / (std_error * std_error), quantile)
            }
            Range::Positive if is_spread && mean > 0.0 => {
                let factor = (quantile * std_error / mean).exp();
                (mean / factor, mean * factor)
            }
            Range::Fraction => (self.low.clamp(0.0, 1.0), self.high.clamp(0.0, 1.0)),
            Range::Positive => (self.low.max(0.0), self.high.max(0.0)),
            Range::Any => (self.low, self.high),
        };
        Mean { low, high, ..self }
    }

    /// A fraction of which none, or all, of so many cases were seen: the interval reaches as far as Wilson's does.
    pub fn of_cases(self, cases: u64) -> Mean {
        let none = (self.mean == 0.0, self.mean == 1.0);
        let seen = match none {
            (true, _) => Share::of(0, cases, false),
            (_, true) => Share::of(cases, cases, false),
            _ => return self,
        };
        // Rounding must not leave the ends.
        Mean { low: if none.0 { 0.0 } else { seen.low }, high: if none.1 { 1.0 } else { seen.high }, ..self }
    }
}

/// Wilson's interval of a fraction of so many cases (not necessarily a whole number), at a quantile of the normal distribution or Student's.
pub fn wilson(fraction: f64, cases: f64, quantile: f64) -> (f64, f64) {
    let square = quantile * quantile;
    let (centre, denominator) = (fraction + square / (2.0 * cases), 1.0 + square / cases);
    let half = quantile * (fraction * (1.0 - fraction) / cases + square / (4.0 * cases * cases)).sqrt();
    (((centre - half) / denominator).max(0.0), ((centre + half) / denominator).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments::tests::uniforms;
    use crate::{Estimate, Z95, mean};

    #[test]
    fn wide_intervals_stay_inside_and_narrow_ones_as_they_are() {
        let two = mean(&[0.90, 0.986]).unwrap();
        assert!(two.high > 1.0);
        let inside = two.within(Range::Fraction);
        assert!(0.0 <= inside.low && inside.low < inside.mean && inside.mean < inside.high && inside.high <= 1.0);
        let loss = mean(&[0.1, 1.2]).unwrap();
        let inside = loss.within(Range::Positive);
        assert!(loss.low < 0.0 && inside.low > 0.0 && inside.high > loss.high);
        for range in [Range::Any, Range::Fraction, Range::Positive] {
            let narrow = Mean { mean: 0.4, std_error: 1e-4, low: 0.4 - 1.96e-4, high: 0.4 + 1.96e-4, count: 1 };
            let found = narrow.within(range);
            assert!((found.low - narrow.low).abs() < 1e-6 && (found.high - narrow.high).abs() < 1e-6, "{range:?}");
        }
        let known = mean(&[0.3, 0.3]).unwrap();
        assert_eq!(known.within(Range::Fraction), known);
        assert_eq!(mean(&[-0.1]).unwrap().within(Range::Positive).low, 0.0);
    }

    #[test]
    fn what_was_never_seen_has_an_upper_limit() {
        let none = mean(&[0.0]).unwrap().of_cases(640);
        assert!(none.low == 0.0 && (none.high - 0.005967).abs() < 1e-6, "{none:?}");
        let all = mean(&[1.0]).unwrap().of_cases(640);
        assert!(all.high == 1.0 && (all.low - 0.994033).abs() < 1e-6);
        let some = mean(&[0.5]).unwrap();
        assert_eq!(some.of_cases(640), some);
    }

    /// Independent cases: it is Wilson's interval of the counts, but for the variance over n - 1.
    #[test]
    fn the_interval_of_a_share_is_wilsons() {
        let values: Vec<f64> = (0..50).map(|i| f64::from(u8::from(i < 40))).collect();
        let own = Mean::of_one(&Estimate::of_values(&values)).within(Range::Fraction);
        let share = Share::of(40, 50, false);
        assert!((own.low - share.low).abs() < 2e-3 && (own.high - share.high).abs() < 2e-3, "{own:?} {share:?}");
        assert_eq!(wilson(0.8, 50.0, Z95), (share.low, share.high));
    }

    /// Clusters of ten touches with a probability of their own each: at rare and at common events, the interval holds the truth in 95 of 100
    /// repetitions, and is never outside 0 to 1.
    #[test]
    fn intervals_of_clustered_shares_hold_the_truth() {
        let mut uniform = uniforms();
        for (truth, least) in [(0.03, 0.90), (0.1, 0.92), (0.5, 0.93), (0.9, 0.92)] {
            let mut held = 0;
            const REPEATED: usize = 1000;
            for _ in 0..REPEATED {
                let mut cluster = || {
                    // A chance that is uniform between 0 and twice the truth, or as far from 1.
                    let spread = f64::min(truth, 1.0 - truth);
                    let chance = truth + spread * (2.0 * uniform() - 1.0);
                    ((0..10).filter(|_| uniform() < chance).count() as f64, 10.0)
                };
                let estimate = Estimate::clustered(&(0..60).map(|_| cluster()).collect::<Vec<_>>());
                let found = Mean::of_one(&estimate).within(Range::Fraction);
                assert!((0.0..=1.0).contains(&found.low) && (0.0..=1.0).contains(&found.high));
                held += usize::from(found.low <= truth && truth <= found.high);
            }
            let coverage = held as f64 / REPEATED as f64;
            assert!((least..=0.985).contains(&coverage), "{truth}: {coverage}");
        }
    }

    /// Five losses whose logarithm is normal with deviation 0.6: the interval of the logarithm holds the true mean as often as Student's, and is never below 0.
    #[test]
    fn intervals_of_losses_hold_the_truth() {
        let mut uniform = uniforms();
        let mut normal = || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let truth = (0.6f64 * 0.6 / 2.0).exp();
        let (mut held, mut plain) = (0, 0);
        const REPEATED: usize = 2000;
        for _ in 0..REPEATED {
            let values: Vec<f64> = (0..5).map(|_| (0.6 * normal()).exp()).collect();
            let student = mean(&values).unwrap();
            let found = student.within(Range::Positive);
            assert!(found.low > 0.0);
            held += usize::from(found.low <= truth && truth <= found.high);
            plain += usize::from(student.low <= truth && truth <= student.high);
        }
        let coverage = held as f64 / REPEATED as f64;
        assert!(held + 20 >= plain && (0.89..=0.985).contains(&coverage), "{coverage} {plain}");
    }
}
