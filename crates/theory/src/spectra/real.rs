//! Numbers the kernel recursions are written for: f32, f64, and floats of any precision where sums cancel.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Neg, Sub};

use astro_float_num::{BigFloat, Consts, RoundingMode, Sign};

/// A real number of some precision.
pub trait Real:
    Clone
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// `value` at the precision of `self`.
    fn constant(&self, value: f64) -> Self;
    /// pi at the precision of `self`.
    fn pi(&self) -> Self;
    /// The spacing of numbers just above 1 at the precision of `self`.
    fn epsilon(&self) -> Self;
    /// Square root.
    fn sqrt(&self) -> Self;
    /// Inverse cosine.
    fn acos(&self) -> Self;
    /// Inverse sine.
    fn asin(&self) -> Self;
}

macro_rules! machine_real {
    ($float:ident) => {
        impl Real for $float {
            fn constant(&self, value: f64) -> Self {
                value as $float
            }
            fn pi(&self) -> Self {
                std::$float::consts::PI
            }
            fn epsilon(&self) -> Self {
                $float::EPSILON
            }
            fn sqrt(&self) -> Self {
                $float::sqrt(*self)
            }
            fn acos(&self) -> Self {
                $float::acos(*self)
            }
            fn asin(&self) -> Self {
                $float::asin(*self)
            }
        }
    };
}
machine_real!(f32);
machine_real!(f64);

/// A float with as many bits as asked for. Results have the larger precision of the operands, rounded to nearest.
#[derive(Clone, Debug)]
pub struct Big(BigFloat);

thread_local! {
    /// Digits of pi and the like, computed once a thread. None only if there is no memory for an empty cache.
    static CONSTANTS: RefCell<Option<Consts>> = RefCell::new(Consts::new().ok());
}

const ROUNDING: RoundingMode = RoundingMode::ToEven;

impl Big {
    /// `value` with this many bits (rounded up to a multiple of 64).
    pub fn new(value: f64, bits: usize) -> Big {
        // The library's zero from an f64 carries no bits, and would pass that on.
        Big(if value == 0.0 { BigFloat::new(bits) } else { BigFloat::from_f64(value, bits) })
    }

    /// The number of bits carried.
    pub fn bits(&self) -> usize {
        self.0.mantissa_max_bit_len().unwrap_or(64)
    }

    /// Whether it is exactly 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// The size without the sign.
    pub fn abs(&self) -> Big {
        if self.0.is_negative() { -self.clone() } else { self.clone() }
    }

    /// This number times 2 to the `power`.
    pub fn times_power_of_two(mut self, power: i32) -> Big {
        if !self.is_zero()
            && let Some(exponent) = self.0.exponent()
        {
            self.0.set_exponent(exponent + power);
        }
        self
    }

    /// The nearest f64 but for one rounding; 0 below its range, infinite above, NaN for no number.
    pub fn to_f64(&self) -> f64 {
        match self.leading() {
            Some((leading, exponent)) => {
                // Two steps, because 2^exponent alone may leave the range that the product stays in.
                let half = exponent / 2;
                leading * 2f64.powi(half) * 2f64.powi(exponent - half)
            }
            None if self.is_zero() => 0.0,
            None => f64::NAN,
        }
    }

    /// log10 of the size: finite far beyond the range of f64; minus infinity for 0.
    pub fn log10(&self) -> f64 {
        match self.leading() {
            Some((leading, exponent)) => leading.abs().log10() + f64::from(exponent) * std::f64::consts::LOG10_2,
            None if self.is_zero() => f64::NEG_INFINITY,
            None => f64::NAN,
        }
    }

    /// (m, e) with value m 2^e and 1/2 <= |m| <= 1; None for 0 and for what is no number.
    fn leading(&self) -> Option<(f64, i32)> {
        let (words, _, sign, exponent, _) = self.0.as_raw_parts()?;
        let mut words = words.iter().rev();
        let (first, second) = (*words.next()? as f64, words.next().map_or(0.0, |word| *word as f64));
        let word = 2f64.powi(-64);
        let size = (first + second * word) * word;
        let signed = if sign == Sign::Neg { -size } else { size };
        (size > 0.0).then_some((signed, exponent))
    }

    fn with_constants(&self, function: impl FnOnce(&BigFloat, usize, &mut Consts) -> BigFloat) -> Big {
        CONSTANTS.with_borrow_mut(|constants| match constants {
            Some(constants) => Big(function(&self.0, self.bits(), constants)),
            None => Big(BigFloat::nan(None)),
        })
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident) => {
        impl $trait for Big {
            type Output = Big;
            fn $method(self, other: Big) -> Big {
                let bits = self.bits().max(other.bits());
                Big(BigFloat::$method(&self.0, &other.0, bits, ROUNDING))
            }
        }
        impl $trait for &Big {
            type Output = Big;
            fn $method(self, other: &Big) -> Big {
                let bits = self.bits().max(other.bits());
                Big(BigFloat::$method(&self.0, &other.0, bits, ROUNDING))
            }
        }
    };
}
operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

impl Neg for Big {
    type Output = Big;
    fn neg(self) -> Big {
        Big(BigFloat::neg(&self.0))
    }
}

impl PartialEq for Big {
    fn eq(&self, other: &Big) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Big) -> Option<Ordering> {
        BigFloat::cmp(&self.0, &other.0).map(|order| order.cmp(&0))
    }
}

impl Real for Big {
    fn constant(&self, value: f64) -> Big {
        Big::new(value, self.bits())
    }
    fn pi(&self) -> Big {
        self.with_constants(|_, bits, constants| constants.pi(bits, ROUNDING))
    }
    fn epsilon(&self) -> Big {
        self.constant(1.0).times_power_of_two(1 - self.bits() as i32)
    }
    fn sqrt(&self) -> Big {
        Big(self.0.sqrt(self.bits(), ROUNDING))
    }
    fn acos(&self) -> Big {
        self.with_constants(|value, bits, constants| value.acos(bits, ROUNDING, constants))
    }
    fn asin(&self) -> Big {
        self.with_constants(|value, bits, constants| value.asin(bits, ROUNDING, constants))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_numbers_agree_with_f64_where_both_reach() {
        let third = Big::new(1.0, 256) / Big::new(3.0, 256);
        assert_eq!(third.to_f64(), 1.0 / 3.0);
        assert_eq!((-third.clone()).abs(), third);
        assert_eq!(third.acos().to_f64(), (1f64 / 3.0).acos());
        assert_eq!(third.asin().to_f64(), (1f64 / 3.0).asin());
        assert_eq!(third.pi().to_f64(), std::f64::consts::PI);
        assert_eq!(Big::new(-1.0, 256).acos().to_f64(), std::f64::consts::PI);
        assert_eq!(Big::new(2.0, 256).sqrt().to_f64(), 2f64.sqrt());
        assert!(Big::new(-2.5, 128) < Big::new(1.0, 64));
        assert_eq!(Big::new(0.0, 128).to_f64(), 0.0);
        assert_eq!(Big::new(0.0, 128).log10(), f64::NEG_INFINITY);
    }

    #[test]
    fn sizes_beyond_f64_have_a_logarithm() {
        let tiny = Big::new(1.0, 128).times_power_of_two(-5000);
        assert_eq!(tiny.to_f64(), 0.0);
        assert!((tiny.log10() + 5000.0 * std::f64::consts::LOG10_2).abs() < 1e-9);
        assert_eq!(Big::new(3.0, 128).times_power_of_two(-1000).to_f64(), 3.0 * 2f64.powi(-1000));
    }
}
