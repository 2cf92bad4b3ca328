//! Noise on all weights: each direction is one model, asked about all inputs.

use pudica_data::Stream;
use pudica_probe::Response;
use pudica_statistics::{Estimate, Moments};
use serde::{Deserialize, Serialize};

use crate::MeasureResult;
use crate::asked::{Asked, answers, cases};
use crate::nudged::Asking;
use crate::work::WorkFile;

/// What all inputs answered to one direction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Direction {
    /// How often the model was asked.
    pub evaluations: u64,
    /// For each response, the value of each input.
    pub responses: Vec<Vec<f64>>,
}

impl Direction {
    /// Whether one that was saved is what is made after those `before`, of so many responses and inputs.
    pub fn follows(&self, before: &[Self], responses: usize, inputs: usize) -> bool {
        let spent: u64 = before.iter().map(|direction| direction.evaluations).sum();
        spent.checked_add(self.evaluations).is_some()
            && self.responses.len() == responses
            && self.responses.iter().all(|values| values.len() == inputs)
    }
}

/// The mean over directions and inputs. Both are samples, so its squared error is the sum of two: that of the directions' means over directions, and
/// that of the inputs' means over inputs. (What is left between them is counted twice: the error is rather too large.)
pub fn estimate(directions: &[Direction], response: usize) -> Estimate {
    let over_directions = over_directions(directions, response);
    let over_inputs = Estimate::of_values(&by_input(directions, response));
    let std_error = match (over_directions.std_error, over_inputs.std_error) {
        (Some(one), Some(other)) => Some(one.hypot(other)),
        (one, other) => one.or(other),
    };
    let samples = degrees_of_freedom(&over_directions, &over_inputs) as u64 + 1;
    Estimate { mean: over_directions.mean, std_error, samples, exact: false }
}

/// The degrees of freedom of the sum of two errors (Welch, Satterthwaite).
fn degrees_of_freedom(one: &Estimate, other: &Estimate) -> f64 {
    let parts = [one, other].map(|part| (part.error_or_zero().powi(2), part.samples.saturating_sub(1).max(1) as f64));
    let sum: f64 = parts.iter().map(|(square, _)| square).sum();
    let spread: f64 = parts.iter().map(|(square, degrees)| square * square / degrees).sum();
    if spread > 0.0 { (sum * sum / spread).max(1.0) } else { (one.samples.max(2) - 1) as f64 }
}

/// The mean over directions of the mean over inputs, its error over directions alone.
pub fn over_directions(directions: &[Direction], response: usize) -> Estimate {
    let mean = |direction: &Direction| direction.responses[response].iter().copied().collect::<Moments>().mean();
    Estimate::of_values(&directions.iter().map(mean).collect::<Vec<_>>())
}

/// The mean over directions of each input.
pub fn by_input(directions: &[Direction], response: usize) -> Vec<f64> {
    let count = directions.first().map_or(0, |direction| direction.responses[response].len());
    let mean = |input: usize| directions.iter().map(|direction| direction.responses[response][input]).sum::<f64>();
    (0..count).map(|input| mean(input) / directions.len() as f64).collect()
}

/// Measures all directions that are not in `file` yet.
pub fn measure(asked: &mut Asked, asking: &Asking, file: &mut WorkFile<Direction>) -> MeasureResult<()> {
    let (rho, draws) = (asking.setting.positive("rho")?, asking.setting.draws()?);
    let (count, batch) = (asking.inputs.about().count, asked.model.batch().max(1));
    let weights = asked.model.weights()?;
    while file.parts.len() < draws {
        let spent: u64 = file.parts.iter().map(|direction| direction.evaluations).sum();
        if asking.enough.budget.is_some_and(|budget| spent >= budget) && file.parts.len() >= 2 {
            return Ok(());
        }
        let mut noise = Stream::new(asking.seed, "measure/weight-noise", file.parts.len() as u64);
        let mut moved = asked.model.with_weights(&weights.perturbed(rho, &mut noise))?;
        let mut responses = vec![Vec::with_capacity(count); asking.responses.len()];
        for first in (0..count).step_by(batch) {
            asked.stop.check()?;
            let mut cases = cases(asking.inputs, first..(first + batch).min(count))?;
            cases.iter_mut().for_each(|case| case.touched = true);
            for (case, after) in cases.iter().zip(answers(moved.as_mut(), &cases)?) {
                for (values, response) in responses.iter_mut().zip(asking.responses) {
                    values.push(response.compare(&asked.clean[case.index], &after));
                }
            }
            (asked.tick)(cases.len() as u64);
        }
        asked.evaluations += count as u64;
        file.push(Direction { evaluations: count as u64, responses })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values a_d + b_i + noise: repeated experiments spread as the error says, or a little less.
    #[test]
    fn the_error_covers_directions_and_inputs() {
        let mut stream = Stream::new(0, "test", 0);
        let mut repeat = || {
            let (a, b): (Vec<f64>, Vec<f64>) =
                ((0..8).map(|_| stream.normal()).collect(), (0..40).map(|_| stream.normal()).collect());
            let mut value = |a: &f64, b: &f64| 0.3 * a + b + 0.5 * stream.normal();
            let directions: Vec<Direction> = a
                .iter()
                .map(|a| Direction { evaluations: 40, responses: vec![b.iter().map(|b| value(a, b)).collect()] })
                .collect();
            estimate(&directions, 0)
        };
        let repeated: Vec<Estimate> = (0..400).map(|_| repeat()).collect();
        let spread: Moments = repeated.iter().map(|estimate| estimate.mean).collect();
        let said: Moments = repeated.iter().filter_map(|estimate| estimate.std_error).collect();
        let ratio = said.mean() / spread.variance().unwrap().sqrt();
        assert!((0.93..1.15).contains(&ratio), "{ratio}");
        // Directions are few, inputs decide: the degrees of freedom lie between.
        assert!((8..=47).contains(&repeated[0].samples), "{:?}", repeated[0]);
    }
}
