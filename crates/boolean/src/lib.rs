//! Exact analysis of Boolean functions: truth tables, Walsh spectra, sensitivities.
//!
//! ```
//! use pudica_boolean::{BooleanFunction, Expression, Named, Spectrum, TruthTable, sensitivity_profile};
//!
//! // A function by its values, by a name, by an expression.
//! let f = TruthTable::from_fn(3, |x| x.ones() >= 2)?;
//! let majority = "majority".parse::<Named>()?.boolean_at(21)?.table()?;
//! let tribes = Expression::parse("x1 & x2 | x3 & x4", None)?.table()?;
//!
//! // How many bits change the value when they are flipped, exactly: for each bit, in the mean, at most.
//! let profile = sensitivity_profile(&f);
//! assert_eq!(profile.influences(), [0.5, 0.5, 0.5]);
//! assert_eq!(profile.average_sensitivity(), 1.5);
//! assert_eq!(sensitivity_profile(&tribes).average_sensitivity(), 1.5);
//!
//! // The Fourier-Walsh spectrum: coefficients, weight by degree, noise stability.
//! let spectrum = Spectrum::of(&f)?;
//! assert_eq!(spectrum.degree(), 3);
//! assert_eq!(spectrum.degree_profile(), [0.0, 0.75, 0.0, 0.25]);
//! assert_eq!(spectrum.coefficient(0b100), 0.5);
//! assert!(Spectrum::of(&majority)?.noise_stability(0.9) > 0.7);
//! # Ok::<(), pudica_boolean::Error>(())
//! ```
//!
//! Inputs are bits; x1 is the most significant bit of a row of the table. Values are read in one of two [`Convention`]s.

pub mod analysis;
pub mod atomic;
mod autocorrelation;
pub mod biased;
mod biased_transform;
pub mod bits;
mod caught;
pub mod comparison;
pub mod complexity;
mod convention;
pub mod decision_tree;
mod error;
pub mod expression;
pub mod files;
mod formula;
pub mod function;
pub mod given;
pub mod interpolator;
mod lanes;
mod largest;
pub mod linear_threshold;
pub mod memory;
pub mod named;
pub mod npy;
pub mod plain;
pub mod properties;
pub mod real_sensitivity;
pub mod restriction;
pub mod sampled;
#[cfg(test)]
mod samples;
pub mod sensitivity;
mod simd;
pub mod spectrum;
pub mod stop;
pub mod table;
pub mod vertical;
pub mod walsh;

pub use atomic::write_atomically;
pub use bits::Bits;
pub use caught::caught;
pub use convention::Convention;
pub use error::{Error, Result, at_place, did_you_mean, nearest, shortened};
pub use expression::Expression;
pub use function::{BooleanFunction, RealFunction};
pub use given::Given;
pub use interpolator::min_degree_interpolator;
pub use named::{Function, Named};
pub use properties::{NormalForm, Properties};
pub use sensitivity::{SensitivityProfile, flip_counts, sensitivity_profile};
pub use spectrum::Spectrum;
pub use table::{RealTable, TruthTable};

/// The largest truth table offered (8 GiB); memory usually says no before.
pub const MAX_TABLE_VARIABLES: usize = 36;
/// The largest spectrum: coefficients are sums of 2^n signs and must fit 32 bits.
pub const MAX_SPECTRUM_VARIABLES: usize = 30;
/// The most variables a function that is sampled may have.
pub const MAX_SAMPLED_VARIABLES: usize = 10_000;
