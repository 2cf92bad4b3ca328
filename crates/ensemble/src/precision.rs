//! What networks are computed in.

use crate::EnsembleError;

/// What networks are computed in. Weights and moments are kept in f32 in all of them, and updated in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// In f32: what agrees with the reference to its rounding.
    F32,
    /// On GPUs: with factors of matrix products rounded to 10 bits of mantissa on tensor cores, sums in f32; several times faster.
    Tf32,
    /// Forward and backward in f64, the gradient then rounded to f32: slow, to tell rounding from truth.
    F64,
}

impl Precision {
    /// As users type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::F64 => "f64",
        }
    }
}

/// That processors have no TF32.
pub(crate) fn no_tf32_here() -> EnsembleError {
    let problem = "tf32 is computed on GPUs only; use --precision f32 or f64, or --device cuda";
    EnsembleError::Device { device: "cpu".into(), problem: problem.into() }
}
