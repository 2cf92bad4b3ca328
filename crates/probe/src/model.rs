//! What the measures need of a network.

use pudica_data::Bits;
use pudica_nn::{Network, NnError, Weights};

/// Something with weights that predicts: a [`Network`], or a function with known sharpness in a test.
pub trait Model: Sized {
    /// The weights.
    fn weights(&self) -> &Weights;
    /// The same model with other weights of the same layout.
    fn with_weights(&self, weights: Weights) -> Result<Self, NnError>;
    /// Row-major [rows, outputs].
    fn predict(&self, strings: &Bits) -> Result<Vec<f32>, NnError>;
}

impl Model for Network {
    fn weights(&self) -> &Weights {
        self.weights()
    }
    fn with_weights(&self, weights: Weights) -> Result<Self, NnError> {
        self.with_weights(weights)
    }
    fn predict(&self, strings: &Bits) -> Result<Vec<f32>, NnError> {
        self.predict(strings)
    }
}
