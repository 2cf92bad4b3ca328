//! Loss and accuracy on fresh inputs.

use pudica_data::Batch;
use serde::{Deserialize, Serialize};

use crate::sharpness::mean_square;
use crate::{Estimate, Model, Moments, ProbeError};

/// How well a network does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Mean squared error over all outputs.
    pub loss: Estimate,
    /// The part of all outputs that are on the label's side of 1/2.
    pub accuracy: Estimate,
}

/// Evaluate over batches of equal size; the standard errors are over batches. Say `exact` when a batch is all there is (the
/// whole cube, a whole training set): then the averages have no sampling error.
pub fn evaluate<M: Model>(
    model: &M,
    batches: impl IntoIterator<Item = Result<Batch, ProbeError>>,
    exact: bool,
) -> Result<Evaluation, ProbeError> {
    let (mut loss, mut accuracy) = (Moments::default(), Moments::default());
    for batch in batches {
        let Batch { strings, labels } = batch?;
        let outputs = model.predict(&strings)?;
        loss.add(mean_square(&outputs, &labels));
        let right = outputs.iter().zip(&labels).filter(|(output, label)| (**output > 0.5) == (**label > 0.5));
        accuracy.add(right.count() as f64 / labels.len() as f64);
    }
    if loss.count() == 0 {
        return Err(ProbeError::NoBatches("an evaluation"));
    }
    let estimate = |moments: &Moments| match exact {
        true => Estimate::exact(moments.mean(), moments.count()),
        false => Estimate::sampled(moments),
    };
    Ok(Evaluation { loss: estimate(&loss), accuracy: estimate(&accuracy) })
}

#[cfg(test)]
mod tests {
    use pudica_data::{Bits, Target, Task};
    use pudica_nn::{NnError, Weights};

    use super::*;

    /// Always answers 0.4.
    struct Constant(Weights);

    impl Model for Constant {
        fn weights(&self) -> &Weights {
            &self.0
        }
        fn with_weights(&self, weights: Weights) -> Result<Self, NnError> {
            Ok(Self(weights))
        }
        fn predict(&self, strings: &Bits) -> Result<Vec<f32>, NnError> {
            Ok(vec![0.4; strings.rows()])
        }
    }

    #[test]
    fn a_constant_is_right_half_of_the_time_on_parity() {
        let model = Constant(Weights::zeros([]));
        let task = Task::new(Target::parse("parity", 12).unwrap());
        let batches = (0..40).map(|i| Ok(task.measure_batch(100, 0, "evaluate", i)?));
        let found = evaluate(&model, batches, false).unwrap();
        // E (0.4 - y)^2 = (0.16 + 0.36) / 2
        assert!((found.loss.mean - 0.26).abs() < 4.0 * found.loss.std_error.unwrap());
        assert!((found.accuracy.mean - 0.5).abs() < 4.0 * found.accuracy.std_error.unwrap());
        let exact = evaluate(&model, [Ok(task.label(Bits::cube(12).unwrap()).unwrap())], true).unwrap();
        assert!((exact.loss.mean - 0.26).abs() < 1e-7 && exact.accuracy.mean == 0.5);
        assert_eq!(exact.loss.std_error, Some(0.0));
        assert!(evaluate(&model, [], false).unwrap_err().to_string().contains("at least one batch"));
    }
}
