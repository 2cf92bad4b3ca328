//! Differences, and other sums of numbers that are each known to some error.

use serde::Serialize;
use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};
use statrs::function::erf::erfc;

use crate::{Line, Mean, Z95};

/// A number with its standard error, which itself is known to some degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The number.
    pub value: f64,
    /// Its standard error.
    pub std_error: f64,
    /// Degrees of freedom of the standard error; infinite where it is taken as known.
    pub freedom: f64,
}

impl From<&Mean> for Term {
    /// Over runs where there are several. The error of one run is over its inputs, which are many.
    fn from(mean: &Mean) -> Term {
        let freedom = if mean.count > 1 { (mean.count - 1) as f64 } else { f64::INFINITY };
        Term { value: mean.mean, std_error: mean.std_error, freedom }
    }
}

impl From<&Line> for Term {
    /// The slope.
    fn from(line: &Line) -> Term {
        Term { value: line.slope, std_error: line.std_error, freedom: line.points as f64 - 2.0 }
    }
}

/// A weighted sum of independent numbers, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Contrast {
    /// The sum.
    pub value: f64,
    /// Its standard error.
    pub std_error: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Two-sided p-value of the hypothesis that it is 0.
    pub p: f64,
    /// Degrees of freedom of its error; infinite where the error is taken as known.
    #[serde(skip)]
    pub freedom: f64,
}

impl Contrast {
    /// Two-sided p-value of the hypothesis that it is no further than `margin` from 0: at most 0.05 just where the interval is beyond.
    pub fn p_beyond(&self, margin: f64) -> f64 {
        let reach = if self.value > 0.0 { self.value - self.low } else { self.high - self.value };
        let far = self.value.abs() - margin;
        if far <= 0.0 || reach <= 0.0 {
            return if far > 0.0 { 0.0 } else { 1.0 };
        }
        let quantile = student(self.freedom, 0.0).map_or(Z95, |(quantile, _)| quantile);
        student(self.freedom, far / reach * quantile).map_or(1.0, |(_, p)| p)
    }
}

/// Holm's correction of the p-values of several hypotheses: the probability that any of those that hold gets a corrected p-value of 0.05
/// or less is at most 0.05.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![0.0; p.len()];
    let mut largest = 0f64;
    for (rank, place) in order.into_iter().enumerate() {
        largest = largest.max((p.len() - rank) as f64 * p[place]).min(1.0);
        corrected[place] = largest;
    }
    corrected
}

/// The sum of weighted terms by Welch and Satterthwaite: Student's distribution with degrees of freedom between the smallest of the terms
/// and their sum. `None` where nothing is known about the error, as between two single numbers.
pub fn contrast(terms: &[(f64, Term)]) -> Option<Contrast> {
    let value: f64 = terms.iter().map(|(weight, term)| weight * term.value).sum();
    let variances = || terms.iter().map(|(weight, term)| ((weight * term.std_error).powi(2), term.freedom));
    let variance: f64 = variances().map(|(variance, _)| variance).sum();
    let std_error = variance.sqrt();
    if std_error <= 0.0 || !(value + std_error).is_finite() || variances().any(|(_, freedom)| freedom < 1.0) {
        return None;
    }
    // A term whose error is known adds nothing to the uncertainty of the variance.
    let uncertain: f64 = variances().map(|(variance, freedom)| variance * variance / freedom).sum();
    let freedom = variance * variance / uncertain;
    let (quantile, p) = student(freedom, (value / std_error).abs())?;
    let reach = quantile * std_error;
    Some(Contrast { value, std_error, low: value - reach, high: value + reach, p, freedom })
}

/// More degrees of freedom than this are those of the normal distribution, to five digits.
const NORMAL: f64 = 1e5;

/// The two-sided 95 % point of Student's distribution, and the probability to be at least so far from 0.
fn student(freedom: f64, far: f64) -> Option<(f64, f64)> {
    if freedom > NORMAL {
        return Some((Z95, erfc(far / std::f64::consts::SQRT_2)));
    }
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    // The library's inverse is good to four digits where there are many degrees of freedom; Newton's steps make it exact.
    let step = |t: f64| t - (student.cdf(t) - 0.975) / student.pdf(t);
    let quantile = step(step(step(student.inverse_cdf(0.975))));
    Some((quantile, 2.0 * student.cdf(-far)))
}

/// How much larger one number is than another.
pub fn difference(one: impl Into<Term>, other: impl Into<Term>) -> Option<Contrast> {
    contrast(&[(1.0, one.into()), (-1.0, other.into())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{linregress, mean};

    fn close(found: Contrast, expected: [f64; 4]) {
        let found = [found.value, found.low, found.high, found.p];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {expected:?}");
    }

    /// scipy.stats.ttest_ind(a, b, equal_var=False) and its confidence_interval(0.95); linregress with t.ppf(0.975, n - 2); and
    /// Satterthwaite's formula by numpy for a tenth of one slope less another.
    #[test]
    fn contrasts_are_scipys() {
        let (a, b) = (mean(&[0.05, 0.06, 0.055, 0.048]).unwrap(), mean(&[0.09, 0.1, 0.085]).unwrap());
        let expected = [-0.03841666666666667, -0.0537125098674961, -0.023120823465837236, 0.003075221734292973];
        close(difference(&a, &b).unwrap(), expected);
        let points: Vec<(f64, f64)> = [4.0, 4.0, 5.0, 5.0, 6.0, 6.0, 7.0, 8.0]
            .into_iter()
            .zip([0.1, 0.12, 0.15, 0.11, 0.2, 0.24, 0.25, 0.31])
            .collect();
        let steep = linregress(&points).unwrap();
        close(
            contrast(&[(1.0, (&steep).into())]).unwrap(),
            [0.05225225225225225, 0.036347766976641604, 0.0681567375278629, 0.00019804110506215468],
        );
        let flat: Vec<(f64, f64)> =
            [4.0, 5.0, 6.0, 7.0, 8.0].into_iter().zip([0.01, 0.012, 0.011, 0.013, 0.0125]).collect();
        let flat = linregress(&flat).unwrap();
        close(
            contrast(&[(0.1, (&steep).into()), (-1.0, (&flat).into())]).unwrap(),
            [0.004625225225225226, 0.00299398271431467, 0.006256467736135782, 0.00019643761765296644],
        );
    }

    /// By hand; the same as R's p.adjust(p, "holm").
    #[test]
    fn holms_correction() {
        let close = |found: Vec<f64>, expected: &[f64]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
        };
        close(holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        close(holm(&[0.6, 0.5]), &[1.0, 1.0]);
        close(holm(&[0.02]), &[0.02]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn intervals_and_their_probabilities_say_the_same() {
        let term = Term { value: -0.9, std_error: 0.25, freedom: 7.0 };
        let found = contrast(&[(1.0, term)]).unwrap();
        assert!((found.p_beyond(0.0) - found.p).abs() < 1e-12, "{found:?}");
        assert!((found.p_beyond(-found.high) - 0.05).abs() < 1e-9, "{found:?}");
        assert_eq!(found.p_beyond(0.9), 1.0);
        // An interval that is longer on one side: the side towards 0 counts. A normal error of (0.5 - 0.1) / 1.96, 1.96 / 0.8 of them away.
        let uneven = Contrast { value: 0.5, low: 0.1, high: 2.0, freedom: f64::INFINITY, ..found };
        assert!((uneven.p_beyond(0.0) - erfc(Z95 / 0.8 / 2f64.sqrt())).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_error_is_not_compared() {
        let one = mean(&[1.0]).unwrap();
        assert_eq!(difference(&one, &mean(&[2.0]).unwrap()), None);
        let own = Mean { std_error: 0.1, ..one };
        let found = difference(&own, &Mean { mean: 2.0, ..own }).unwrap();
        // By the normal distribution: -1 ± 1.96 sqrt(2) 0.1.
        assert!((found.low - (-1.0 - 1.959964 * 0.1 * 2f64.sqrt())).abs() < 1e-5, "{found:?}");
        assert!((found.p - 1.5374597944280347e-12).abs() < 1e-20, "scipy.special.erfc(1 / 0.1 / 2): {found:?}");
        // scipy.stats.t.ppf(0.975, [2, 30, 1000, 99_000])
        for (freedom, point) in [
            (2.0, 4.302652729749462),
            (30.0, 2.0422724563012373),
            (1e3, 1.9623390808264074),
            (99e3, 1.9599879471636965),
        ] {
            let one = contrast(&[(1.0, Term { value: 0.0, std_error: 1.0, freedom })]).unwrap();
            assert!((one.high - point).abs() < 1e-8, "{freedom}: {one:?}");
        }
        assert_eq!(contrast(&[(1.0, Term { value: 1.0, std_error: 0.1, freedom: 0.0 })]), None);
    }
}
