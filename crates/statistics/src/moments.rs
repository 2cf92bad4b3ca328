//! Count, mean and spread of values that come one at a time.

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

    /// Take in all values that other moments have.
    pub fn merge(&mut self, other: &Self) {
        let count = self.count + other.count;
        if other.count > 0 {
            let (own, new) = (self.count as f64, other.count as f64);
            let apart = other.mean - self.mean;
            self.mean += apart * new / count as f64;
            self.spread += other.spread + apart * apart * own * new / count as f64;
            self.count = count;
        }
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn parts_make_the_whole() {
        let mut uniform = uniforms();
        let values: Vec<f64> = (0..50).map(|_| uniform()).collect();
        let whole: Moments = values.iter().copied().collect();
        for cut in [0, 1, 20, 50] {
            let [mut first, second] =
                [&values[..cut], &values[cut..]].map(|part| part.iter().copied().collect::<Moments>());
            first.merge(&second);
            assert_eq!(first.count(), 50);
            assert!((first.mean() - whole.mean()).abs() < 1e-14);
            assert!((first.variance().unwrap() - whole.variance().unwrap()).abs() < 1e-14);
        }
    }

    /// Numbers between 0 and 1 that look random: Weyl's sequence, mixed (SplitMix64).
    pub(crate) fn uniforms() -> impl FnMut() -> f64 {
        let mut state = 0u64;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

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
}
