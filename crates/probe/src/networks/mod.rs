//! Measures of the networks of `pudica_nn`.

mod blowup;
pub mod classifier;
mod evaluate;
mod modular;
mod network_sensitivity;
mod norms;
mod sharpness;
#[cfg(test)]
mod testing;
mod weights;

pub use blowup::{Blowup, BlowupTotals, Blowups, NormBlowup, blowup};
pub use evaluate::{Evaluation, evaluate};
pub use modular::{NumberNoise, NumberPairs, modular_sensitivity};
pub use network_sensitivity::{
    SensitivityConfig, answers_on_cube, exact_sensitivity, learnt_table, network_sensitivity,
};
pub use norms::parameter_norm;
pub use sharpness::{Sharpness, SharpnessConfig, sharpness};
pub use weights::{WeightLaw, WeightNames, WeightNoise, Weighted};
