//! A training as it stands, and its file format: what is saved, resumed, and handed between engines.

use crate::weights::{Stored, store};
use crate::{Architecture, NnError, Weights};

/// Weights, both moments of AdamW and the steps made.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingState {
    /// The weights.
    pub weights: Weights,
    /// AdamW's running mean of the gradient, in the order of [`Weights::data`].
    pub first_moment: Vec<f32>,
    /// AdamW's running square of the gradient, in the same order.
    pub second_moment: Vec<f32>,
    /// Steps made.
    pub step: u64,
}

const WEIGHTS: &str = "weights.";
const FIRST_MOMENT: &str = "first_moment.";
const SECOND_MOMENT: &str = "second_moment.";
const STEP: &str = "step";

impl TrainingState {
    /// A training at its beginning.
    pub fn new(weights: Weights) -> Self {
        let moment = vec![0.0; weights.data().len()];
        Self { weights, first_moment: moment.clone(), second_moment: moment, step: 0 }
    }

    /// One safetensors file: weights, moments and the step.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NnError> {
        let first = self.weights.with_data(self.first_moment.clone())?;
        let second = self.weights.with_data(self.second_moment.clone())?;
        let sets = [(WEIGHTS, &self.weights), (FIRST_MOMENT, &first), (SECOND_MOMENT, &second)];
        store(&sets, &[(STEP, self.step)])
    }

    /// Read the bytes of [`TrainingState::to_bytes`]; they must be those of this architecture.
    pub fn from_bytes(architecture: &Architecture, bytes: &[u8]) -> Result<Self, NnError> {
        let empty = architecture.empty_weights()?;
        let stored = Stored::parse(bytes)?;
        stored.check_only(&[(WEIGHTS, &empty), (FIRST_MOMENT, &empty), (SECOND_MOMENT, &empty)])?;
        Ok(Self {
            weights: stored.read(WEIGHTS, &empty)?,
            first_moment: stored.read(FIRST_MOMENT, &empty)?.data().to_vec(),
            second_moment: stored.read(SECOND_MOMENT, &empty)?.data().to_vec(),
            step: stored.number(STEP)?,
        })
    }
}
