//! Token sensitivity (Definition 4.3 of Vasudeva et al. 2024): one token is replaced, the sign of the output changes.

use pudica_data::Stream;

use crate::{Nudge, Response};

/// Replaces one token by a uniform token of the vocabulary, possibly by itself.
#[derive(Debug, Clone, Copy)]
pub struct ReplaceToken {
    /// Different tokens.
    pub vocabulary: usize,
}

impl Nudge<Vec<u16>> for ReplaceToken {
    fn sites(&self, tokens: &Vec<u16>) -> usize {
        tokens.len()
    }

    fn touch(&self, tokens: &Vec<u16>, site: usize, noise: &mut Stream) -> Vec<u16> {
        let mut touched = tokens.clone();
        touched[site] = noise.below(self.vocabulary as u64) as u16;
        touched
    }
}

/// 1 where the outputs' signs differ, with sign(0) = 0: a tie differs from both labels.
#[derive(Debug, Clone, Copy)]
pub struct SignDiffers;

impl Response<f64> for SignDiffers {
    fn compare(&self, before: &f64, after: &f64) -> f64 {
        f64::from(u8::from(sign(*before) != sign(*after)))
    }
}

/// -1, 0 or 1.
fn sign(value: f64) -> i8 {
    i8::from(value > 0.0) - i8::from(value < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, respond};

    /// Majority of three votes 1, 1, 0 (token 0 votes -1, others 1): a vote of 1 falls with 1/4, the vote of -1 can only rise.
    #[test]
    fn a_majority_answers_as_often_as_it_should() {
        let votes = |inputs: &[Vec<u16>]| -> Result<Vec<f64>, ()> {
            Ok(inputs.iter().map(|x| x.iter().map(|t| if *t == 0 { -1.0 } else { 1.0 }).sum()).collect())
        };
        let plan = Plan { draws: 4_000, pack: 64, seed: 0, purpose: "test" };
        let nudge = ReplaceToken { vocabulary: 4 };
        let profile = respond([Ok(vec![1, 2, 0])], votes, &nudge, &[&SignDiffers], &plan).unwrap().remove(0);
        let error = profile.total.std_error.unwrap();
        assert!((profile.total.mean - 0.5).abs() < 4.0 * error, "{:?}", profile.total);
        assert_eq!(profile.by_site[2].mean(), 0.0);
    }

    #[test]
    fn a_tie_is_a_change() {
        let differs = |before: f64, after: f64| SignDiffers.compare(&before, &after);
        assert_eq!(
            [differs(1.0, 0.0), differs(-1.0, 0.0), differs(2.0, 1.0), differs(1.0, -1.0)],
            [1.0, 1.0, 0.0, 1.0]
        );
    }
}
