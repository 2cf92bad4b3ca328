//! Loss and accuracy on fresh inputs.

use pudica_ensemble::{Engine, Strings};
use serde::{Deserialize, Serialize};

use crate::{Estimate, Moments, ProbeError};

/// How well a network does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The mean loss: squared error over all outputs; of classifiers, cross-entropy.
    pub loss: Estimate,
    /// The part of all outputs that are on the label's side of 1/2; of classifiers, of inputs whose class is found.
    pub accuracy: Estimate,
}

/// Evaluate every network of an ensemble over batches of equal size; the standard errors are over batches. Say `exact` when the
/// batches are all there is (the whole cube, a whole training set): then the averages have no sampling error.
pub fn evaluate<'a>(
    engine: &mut dyn Engine,
    batches: impl IntoIterator<Item = Strings<'a>>,
    exact: bool,
) -> Result<Vec<Evaluation>, ProbeError> {
    let mut gathered = vec![(Moments::default(), Moments::default()); engine.replicas()];
    for strings in batches {
        for ((loss, accuracy), found) in gathered.iter_mut().zip(engine.evaluate(strings)?) {
            loss.add(found.0);
            accuracy.add(found.1);
        }
    }
    let finish = |(loss, accuracy): (Moments, Moments)| match loss.count() {
        0 => Err(ProbeError::NoBatches("an evaluation")),
        _ => Ok(Evaluation { loss: Estimate::of(&loss, exact), accuracy: Estimate::of(&accuracy, exact) }),
    };
    gathered.into_iter().map(finish).collect()
}

#[cfg(test)]
mod tests {
    use pudica_data::{Bits, Target, Task};
    use pudica_nn::{NnError, Weights};

    use super::*;
    use crate::Model;
    use crate::plain::{Plain, Subject};

    /// Always answers the same.
    struct Constant(f32, Weights);

    impl Model for Constant {
        fn weights(&self) -> &Weights {
            &self.1
        }
        fn with_weights(&self, weights: Weights) -> Result<Self, NnError> {
            Ok(Self(self.0, weights))
        }
        fn predict(&self, strings: &Bits) -> Result<Vec<f32>, NnError> {
            Ok(vec![self.0; strings.rows()])
        }
    }

    #[test]
    fn a_constant_is_right_half_of_the_time_on_parity() {
        let task = Task::new(Target::parse("parity", 12).unwrap());
        let answering = |answer| Subject { model: Constant(answer, Weights::zeros([])), task: task.clone(), seed: 0 };
        let mut engine = Plain(vec![answering(0.4), answering(0.9)]);
        let fresh = (0..40).map(|index| Strings::Fresh { rows: 100, purpose: "evaluate", index });
        let found = evaluate(&mut engine, fresh, false).unwrap();
        // E (0.4 - y)^2 = (0.16 + 0.36) / 2
        assert!((found[0].loss.mean - 0.26).abs() < 4.0 * found[0].loss.std_error.unwrap());
        assert!((found[0].accuracy.mean - 0.5).abs() < 4.0 * found[0].accuracy.std_error.unwrap());
        // E (0.9 - y)^2 = (0.81 + 0.01) / 2: each network has its own averages
        assert!((found[1].loss.mean - 0.41).abs() < 4.0 * found[1].loss.std_error.unwrap());
        let cube = Bits::cube(12).unwrap();
        let exact = &evaluate(&mut engine, [Strings::Shared(&cube)], true).unwrap()[0];
        assert!((exact.loss.mean - 0.26).abs() < 1e-7 && exact.accuracy.mean == 0.5);
        assert_eq!(exact.loss.std_error, Some(0.0));
        assert!(evaluate(&mut engine, [], false).unwrap_err().to_string().contains("at least one batch"));
    }
}
