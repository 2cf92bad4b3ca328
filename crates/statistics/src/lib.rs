//! Averages that know how far off they may be: one of each kind, used by every other crate.
//!
//! - [`Moments`]: count, mean and spread of values that come one at a time.
//! - [`Estimate`]: a mean, its standard error, over how many units, and whether it is exact; [`Precision`] says when it is good enough.
//! - [`Mean`]: a mean over runs with its interval from Student's distribution; [`align`]: the same along curves.
//! - [`Share`]: so many of so many, with Wilson's interval; [`Range`]: intervals that stay where their quantity can be.
//! - [`contrast`]: differences of means and slopes, with Welch's interval; [`holm`]: p-values of several; [`order`]: how likely a random order is as good as the one found.
//! - [`linregress`], [`pearson`], [`spearman`]: lines and correlations as SciPy computes them.
//! - [`brief`]: estimates in files that keep a mean and its standard error only.

mod aligned;
pub mod brief;
mod contrast;
mod correlation;
mod estimate;
mod line;
mod mean;
mod moments;
mod precision;
mod range;
mod share;

pub use aligned::{AlignedPoint, Curve, align};
pub use contrast::{Contrast, Term, contrast, difference, holm};
pub use correlation::{Correlation, Order, order, pearson, spearman};
pub use estimate::Estimate;
pub use line::{Line, linregress};
pub use mean::{Mean, mean};
pub use moments::Moments;
pub use precision::Precision;
pub use range::{Range, wilson};
pub use share::Share;

/// The two-sided 95 % point of the normal distribution.
pub const Z95: f64 = 1.959_963_984_540_054;
