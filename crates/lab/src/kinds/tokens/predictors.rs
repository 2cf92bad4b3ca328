//! Tables 1 and 3: the sensitivity of the predictors that use only one kind of token, by formula and by simulation.

use pudica_data::{Stream, TokenTask};
use pudica_probe::{Budget, Estimate, ReplaceToken, SignDiffers, respond};
use pudica_theory::tokens::{Predictor, Tie};
use serde_json::{Map, Value};

use crate::error::Result;

/// Both predictors on these data: `predictor_sparse` and `predictor_frequent` by the closed form, with a tie counted as a change
/// (Definition 4.3); the same with a tie not counted as a change (`_ties_keep`); and the definition on random sequences and replacements
/// (`_simulated`), with its standard error over sequences.
pub(super) fn predictor_measures(task: &TokenTask, sequences: usize) -> Result<Map<String, Value>> {
    let mut measures = Map::new();
    for predictor in Predictor::ALL {
        let name = match predictor {
            Predictor::Sparse => "predictor_sparse",
            Predictor::Frequent => "predictor_frequent",
        };
        let simulated = simulated(task, predictor, sequences)?;
        measures.insert(name.into(), predictor.sensitivity(task, Tie::Changes).into());
        measures.insert(format!("{name}_ties_keep"), predictor.sensitivity(task, Tie::Keeps).into());
        measures.insert(format!("{name}_simulated"), simulated.mean.into());
        if let Some(error) = simulated.std_error {
            measures.insert(format!("{name}_simulated_std_error"), error.into());
        }
    }
    Ok(measures)
}

/// `sequences` random sequences, each position of each replaced by one random token.
fn simulated(task: &TokenTask, predictor: Predictor, sequences: usize) -> Result<Estimate> {
    let set = task.draw(sequences, false, &mut Stream::new(0, "tokens-simulated", 0))?;
    let inputs = set.iter().map(|(tokens, _)| tokens.to_vec());
    let margin = |tokens: &Vec<u16>| predictor.margin(task, tokens) as f64;
    let mut margins = |inputs: &[Vec<u16>]| -> Result<Vec<f64>> { Ok(inputs.iter().map(margin).collect()) };
    let nudge = ReplaceToken { vocabulary: task.vocabulary };
    let budget = Budget::new(1, 1024, 0, "tokens-replaced");
    let found = respond(&mut margins, inputs, &nudge, &[&SignDiffers], &budget)?;
    Ok(found[0].total.times(1.0 / task.length as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulation_agrees_with_the_formula() {
        let task = |n_s, n_f, n_d, m, vocabulary| TokenTask { length: 50, vocabulary, n_s, n_f, n_d, m };
        let of = |task: &TokenTask, name: &str| {
            let measures = predictor_measures(task, 2000).unwrap();
            let value = |suffix: &str| measures[&format!("{name}{suffix}")].as_f64().unwrap();
            let (exact, simulated, error) = (value(""), value("_simulated"), value("_simulated_std_error"));
            assert!((simulated - exact).abs() <= 4.0 * error, "{measures:?}");
            assert_eq!(exact == 0.0, simulated == 0.0);
            assert!(value("_ties_keep") <= exact && error < 0.005);
            exact
        };
        let (first, second) = (task(3, 5, 1, 16, 59), task(1, 17, 7, 20, 75));
        assert_eq!((of(&first, "predictor_sparse"), of(&second, "predictor_frequent")), (0.0, 0.0));
        assert!((of(&first, "predictor_frequent") - 0.2878).abs() < 5e-5);
        assert!((of(&second, "predictor_sparse") - 0.0328).abs() < 1e-12);
    }
}
