//! f32 for the laboratory, f64 to check the derivations and to tell rounding from truth.

use num_traits::{Float, NumAssign};

use crate::Precision;

/// f32 and f64.
pub(crate) trait Real: Float + NumAssign + Default + Send + Sync + 'static {
    /// As users know it.
    const PRECISION: Precision;

    /// Rounded from f64.
    fn of(value: f64) -> Self;

    /// e^x within two roundings, written so that loops over it vectorise. NaN stays NaN.
    fn fast_exp(self) -> Self;

    /// Exactly.
    fn wide(self) -> f64;

    /// Weights, which are kept in f32, as they are computed with: themselves, or a copy in `room`.
    fn weights<'a>(kept: &'a [f32], room: &'a mut Vec<Self>) -> &'a [Self];

    /// What `work` makes of these numbers rounded to f32.
    fn rounded<R>(numbers: &[Self], work: impl FnOnce(&[f32]) -> R) -> R;
}

impl Real for f64 {
    const PRECISION: Precision = Precision::F64;

    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn fast_exp(self) -> Self {
        self.exp()
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    fn weights<'a>(kept: &'a [f32], room: &'a mut Vec<Self>) -> &'a [Self] {
        room.clear();
        room.extend(kept.iter().map(|weight| f64::from(*weight)));
        room
    }

    fn rounded<R>(numbers: &[Self], work: impl FnOnce(&[f32]) -> R) -> R {
        work(&numbers.iter().map(|number| *number as f32).collect::<Vec<f32>>())
    }
}

impl Real for f32 {
    const PRECISION: Precision = Precision::F32;

    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }

    /// e^x = 2^k e^r with k the integer nearest x / ln 2: the Cephes polynomial for e^r, k put into the exponent.
    #[inline(always)]
    fn fast_exp(self) -> Self {
        // Beyond these the result would not be a normal number. (The comparisons let NaN through.)
        let x = if self < -87.0 { -87.0 } else { self };
        let x = if x > 88.0 { 88.0 } else { x };
        // Adding 1.5 * 2^23 rounds to an integer, and leaves it in the low bits.
        let shifted = x * std::f32::consts::LOG2_E + 12_582_912.0;
        let k = shifted - 12_582_912.0;
        let r = x - k * 0.693_359_4 + k * 2.121_944_4e-4;
        let mut y = 1.987_569_1e-4f32;
        for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
            y = y * r + coefficient;
        }
        let y = y * r * r + r + 1.0;
        y * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    fn weights<'a>(kept: &'a [f32], _room: &'a mut Vec<Self>) -> &'a [Self] {
        kept
    }

    fn rounded<R>(numbers: &[Self], work: impl FnOnce(&[f32]) -> R) -> R {
        work(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_exponential_is_the_exponential() {
        for i in -8_700..=8_800 {
            let x = i as f32 * 0.01;
            let (found, expected) = (x.fast_exp(), f64::from(x).exp());
            assert!((f64::from(found) - expected).abs() <= 2.5e-7 * expected, "e^{x}: {found} {expected}");
        }
        assert_eq!(0f32.fast_exp(), 1.0);
        assert!(f32::NEG_INFINITY.fast_exp() < 1e-37 && f32::NAN.fast_exp().is_nan());
    }
}
