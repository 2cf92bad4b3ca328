//! Loss and accuracy on fresh inputs.

use pudica_ensemble::{Engine, Strings};
use pudica_statistics::{Estimate, Moments};
use serde::{Deserialize, Serialize};

use crate::ProbeError;

/// How well a network does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The mean loss: squared error over all outputs.
    pub loss: Estimate,
    /// The part of all outputs that are on the label's side of 1/2.
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
    use pudica_data::Bits;

    use super::super::testing::{constant, engine, small};
    use super::*;

    #[test]
    fn a_constant_is_right_half_of_the_time_on_parity() {
        let config = small(12);
        let mut engine = engine(&config, vec![constant(&config, 0.4), constant(&config, 0.9)]);
        let fresh = (0..40).map(|index| Strings::Fresh { rows: 100, purpose: "evaluate", index });
        let found = evaluate(engine.as_mut(), fresh, false).unwrap();
        // E (0.4 - y)^2 = (0.16 + 0.36) / 2
        assert!((found[0].loss.mean - 0.26).abs() < 4.0 * found[0].loss.std_error.unwrap());
        assert!((found[0].accuracy.mean - 0.5).abs() < 4.0 * found[0].accuracy.std_error.unwrap());
        // E (0.9 - y)^2 = (0.81 + 0.01) / 2: each network has its own averages
        assert!((found[1].loss.mean - 0.41).abs() < 4.0 * found[1].loss.std_error.unwrap());
        let cube = Bits::cube(12).unwrap();
        let exact = &evaluate(engine.as_mut(), [Strings::Shared(&cube)], true).unwrap()[0];
        assert!((exact.loss.mean - 0.26).abs() < 1e-7 && exact.accuracy.mean == 0.5);
        assert_eq!(exact.loss.std_error, Some(0.0));
        assert!(evaluate(engine.as_mut(), [], false).unwrap_err().to_string().contains("at least one batch"));
    }
}
