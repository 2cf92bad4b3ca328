//! So many of so many.

use serde::Serialize;

use crate::{Z95, wilson};

/// How many of how many cases satisfied something, with a 95 % interval for the share of all cases that do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Cases that did.
    pub satisfied: u64,
    /// Cases tried.
    pub tried: u64,
    /// satisfied / tried.
    pub share: f64,
    /// Wilson's 95 % interval; a single point where every case was tried.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Share {
    /// The share of the cases tried that satisfied something; say `exhaustive` when these are all cases there are.
    pub fn of(satisfied: u64, tried: u64, exhaustive: bool) -> Self {
        let (k, n) = (satisfied as f64, tried as f64);
        let share = k / n;
        if exhaustive {
            return Self { satisfied, tried, share, low: share, high: share };
        }
        let (low, high) = wilson(share, n, Z95);
        Self { satisfied, tried, share, low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilsons_interval_is_the_textbook_one() {
        // statsmodels.stats.proportion.proportion_confint(40, 50, method="wilson")
        let share = Share::of(40, 50, false);
        assert!((share.low - 0.669_629).abs() < 1e-5 && (share.high - 0.887_561).abs() < 1e-5, "{share:?}");
        let all = Share::of(256, 256, false);
        assert!(all.high == 1.0 && (all.low - 0.985_216).abs() < 1e-4, "{all:?}");
        assert_eq!(Share::of(3, 4, true).low, 0.75);
    }
}
