//! Tables 1 and 3: the sensitivity of the predictors that use only one kind of token, by formula and by simulation.

use pudica_data::{Stream, TokenTask};
use pudica_probe::{Estimate, Plan, ReplaceToken, SignDiffers, respond};
use pudica_theory::tokens::{Predictor, Tie};
use serde::{Deserialize, Serialize};

use super::SyntheticPlan;
use crate::error::Result;

/// A cell of the tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictorRow {
    /// The data.
    pub task: TokenTask,
    /// The predictor.
    pub predictor: Predictor,
    /// The closed form, with a tie counted as a change (Definition 4.3).
    pub exact: f64,
    /// The closed form, with a tie not counted as a change.
    pub exact_ties_keep: f64,
    /// The definition, on random sequences and random replacements; the standard error is over sequences.
    pub simulated: Estimate,
}

/// Both predictors on every data setting of a plan.
pub fn predictor_rows(plan: &SyntheticPlan) -> Result<Vec<PredictorRow>> {
    let mut rows = Vec::new();
    for task in plan.settings.tasks()? {
        for predictor in Predictor::ALL {
            rows.push(PredictorRow {
                task,
                predictor,
                exact: predictor.sensitivity(&task, Tie::Changes),
                exact_ties_keep: predictor.sensitivity(&task, Tie::Keeps),
                simulated: simulated(&task, predictor, plan.settings.simulated)?,
            });
        }
    }
    Ok(rows)
}

/// `sequences` random sequences, each position of each replaced by one random token.
fn simulated(task: &TokenTask, predictor: Predictor, sequences: usize) -> Result<Estimate> {
    let set = task.draw(sequences, false, &mut Stream::new(0, "tokens-simulated", 0))?;
    let inputs = set.iter().map(|(tokens, _)| Ok(tokens.to_vec()));
    let margins = |inputs: &[Vec<u16>]| Ok(inputs.iter().map(|tokens| predictor.margin(task, tokens) as f64).collect());
    let nudge = ReplaceToken { vocabulary: task.vocabulary };
    let plan = Plan { draws: 1, pack: 1024, seed: 0, purpose: "tokens-replaced" };
    let profiles: Result<Vec<_>> = respond(inputs, margins, &nudge, &[&SignDiffers], &plan);
    Ok(profiles?[0].total.times(1.0 / task.length as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulation_agrees_with_the_formula() {
        let overrides = ["data=3:5:1:16:59,1:17:7:20:75", "simulated=2000"].map(String::from);
        let rows = predictor_rows(&SyntheticPlan::new(None, &overrides).unwrap()).unwrap();
        for row in &rows {
            let error = row.simulated.std_error.unwrap();
            assert!((row.simulated.mean - row.exact).abs() <= 4.0 * error, "{row:?}");
            assert_eq!(row.exact == 0.0, row.simulated.mean == 0.0);
            assert!(row.exact_ties_keep <= row.exact && error < 0.005);
        }
        assert!((rows[1].exact - 0.2878).abs() < 5e-5);
        assert!((rows[2].exact - 0.0328).abs() < 1e-12);
    }
}
