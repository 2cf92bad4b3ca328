//! When an estimate is good enough.

use crate::Estimate;

/// How precise is precise enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// The half-width of the 95 % interval, in the units of the estimate.
    Absolute(f64),
    /// The half-width as a share of the estimate.
    Relative(f64),
}

impl Precision {
    /// Whether an estimate is that precise; one whose error is not known is not.
    pub fn reached(&self, estimate: &Estimate) -> bool {
        estimate.half_width().is_some_and(|half_width| match self {
            Self::Absolute(wanted) => half_width <= *wanted,
            Self::Relative(share) => half_width <= share * estimate.mean.abs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_widths_are_compared_with_what_is_asked() {
        let estimate = Estimate::stated(-10.0, Some(0.1));
        assert!(Precision::Absolute(0.2).reached(&estimate) && !Precision::Absolute(0.19).reached(&estimate));
        assert!(Precision::Relative(0.02).reached(&estimate) && !Precision::Relative(0.019).reached(&estimate));
        assert!(!Precision::Absolute(1e9).reached(&Estimate::stated(0.0, None)));
    }
}
