//! Token sensitivity (Definition 4.3 of Vasudeva et al. 2024): one token is replaced, the sign of the output changes.

use pudica_data::Stream;

use super::Nudge;

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

    fn apply(&self, tokens: &Vec<u16>, site: usize, noise: &mut Stream) -> Vec<u16> {
        let mut touched = tokens.clone();
        touched[site] = noise.below(self.vocabulary as u64) as u16;
        touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, ProbeError, SignDiffers, respond};

    /// Majority of three votes 1, 1, 0 (token 0 votes -1, others 1): a vote of 1 falls with 1/4, the vote of -1 can only rise.
    #[test]
    fn a_majority_answers_as_often_as_it_should() {
        let mut votes = |inputs: &[Vec<u16>]| -> Result<Vec<f64>, ProbeError> {
            Ok(inputs.iter().map(|x| x.iter().map(|t| if *t == 0 { -1.0 } else { 1.0 }).sum()).collect())
        };
        let budget = Budget::new(4_000, 64, 0, "test");
        let nudge = ReplaceToken { vocabulary: 4 };
        let profile = respond(&mut votes, [vec![1, 2, 0]], &nudge, &[&SignDiffers], &budget).unwrap().remove(0);
        let error = profile.total.std_error.unwrap();
        assert!((profile.total.mean - 0.5).abs() < 4.0 * error, "{:?}", profile.total);
        assert_eq!(profile.by_site[2].mean(), 0.0);
    }
}
