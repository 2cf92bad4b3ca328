//! Texts (Section 6 of Vasudeva et al. 2024): one position of a sequence is touched.
//!
//! Sites are counted from the right end: site 0 is the last token. A [`Profile`](crate::Profile)'s `by_site` is then the paper's profile of positions, with
//! sequences of different lengths aligned at their right ends, and its `mean` the mean over all (sequence, position) pairs.

use std::ops::Range;

use pudica_data::Stream;

use super::Nudge;

/// One sequence of tokens, touched or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    /// The tokens.
    pub ids: Vec<u32>,
    /// What is added to one embedding.
    pub touch: Option<TokenTouch>,
}

/// A vector added to the embedding of one token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenTouch {
    /// Which token, from 0.
    pub position: usize,
    /// One value for each feature of an embedding.
    pub noise: Vec<f32>,
}

/// Adds N(0, variance) to every feature of one token's embedding, after the embeddings' LayerNorm. The sites are all tokens, the special ones
/// too. The paper: 15 in the main text, 4 in the appendix.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddingNoise {
    /// sigma^2
    pub variance: f64,
    /// Features of an embedding.
    pub width: usize,
}

impl Nudge<Sequence> for EmbeddingNoise {
    fn sites(&self, sequence: &Sequence) -> usize {
        sequence.ids.len()
    }

    fn apply(&self, sequence: &Sequence, site: usize, noise: &mut Stream) -> Sequence {
        let deviation = self.variance.sqrt();
        let noise = (0..self.width).map(|_| (deviation * noise.normal()) as f32).collect();
        let touch = TokenTouch { position: sequence.ids.len() - 1 - site, noise };
        Sequence { ids: sequence.ids.clone(), touch: Some(touch) }
    }
}

/// Replaces one word by a uniform word of the vocabulary, possibly by itself. The sites are the tokens that are words; special tokens (`<s>`,
/// `</s>`) stay and are not counted.
#[derive(Debug, Clone)]
pub struct WordReplacement {
    /// The ids that are words, at least one: RoBERTa's are 4..50264.
    pub words: Range<u32>,
}

impl WordReplacement {
    /// The places of the words, the last one first.
    fn places<'a>(&'a self, sequence: &'a Sequence) -> impl Iterator<Item = usize> + 'a {
        (0..sequence.ids.len()).rev().filter(|place| self.words.contains(&sequence.ids[*place]))
    }
}

impl Nudge<Sequence> for WordReplacement {
    fn sites(&self, sequence: &Sequence) -> usize {
        self.places(sequence).count()
    }

    fn apply(&self, sequence: &Sequence, site: usize, noise: &mut Stream) -> Sequence {
        let mut touched = sequence.clone();
        if let Some(place) = self.places(sequence).nth(site) {
            touched.ids[place] = self.words.start + noise.below(u64::from(self.words.end - self.words.start)) as u32;
        }
        touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, LabelDiffers, ProbeError, Profile, respond};

    const BUDGET: Budget = Budget::new(30, 16, 0, "test");

    fn sequence(ids: &[u32]) -> Sequence {
        Sequence { ids: ids.to_vec(), touch: None }
    }

    /// The label is the parity of how often token 5 occurs, or whether the touched place is the last but one.
    fn respond_to(inputs: &[Sequence], nudge: &dyn Nudge<Sequence>, label: impl Fn(&Sequence) -> usize) -> Profile {
        let mut f = |some: &[Sequence]| Ok::<_, ProbeError>(some.iter().map(&label).collect());
        respond(&mut f, inputs.iter().cloned(), nudge, &[&LabelDiffers], &BUDGET).unwrap().remove(0)
    }

    #[test]
    fn sites_are_counted_from_the_right_and_pairs_count_alike() {
        let inputs = [sequence(&[0, 5, 6, 2]), sequence(&[0, 2]), sequence(&[0, 7, 2])];
        let noise = EmbeddingNoise { variance: 2.0, width: 3 };
        let second_to_last =
            |s: &Sequence| usize::from(s.touch.as_ref().is_some_and(|t| t.position + 2 == s.ids.len()));
        let profile = respond_to(&inputs, &noise, second_to_last);
        let means: Vec<f64> = profile.by_site.iter().map(|site| site.mean()).collect();
        assert_eq!(means, [0.0, 1.0, 0.0, 0.0]);
        let counts: Vec<u64> = profile.by_site.iter().map(|site| site.count() / 30).collect();
        assert_eq!(counts, [3, 3, 2, 1]);
        // Three of nine pairs, not the mean of 1/4, 1/2 and 1/3.
        assert!((profile.mean.mean - 3.0 / 9.0).abs() < 1e-12);
        assert_eq!(profile.sites, [4, 2, 3]);
    }

    #[test]
    fn noise_has_its_variance_and_stays_at_its_place() {
        let noise = EmbeddingNoise { variance: 15.0, width: 4000 };
        let touched = noise.apply(&sequence(&[0, 9, 2]), 0, &mut Stream::new(0, "test", 0));
        let touch = touched.touch.unwrap();
        let square: f64 = touch.noise.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 4000.0;
        assert_eq!(touch.position, 2);
        assert!((square / 15.0 - 1.0).abs() < 0.1, "{square}");
    }

    #[test]
    fn words_are_replaced_and_special_tokens_stay() {
        let nudge = WordReplacement { words: 4..8 };
        let input = sequence(&[0, 5, 2, 2, 6, 2]);
        assert_eq!(nudge.sites(&input), 2);
        let ends = |s: &Sequence| s.ids.len() + 10 * usize::from(s.ids[0] != 0 || s.ids[5] != 2);
        assert_eq!(respond_to(std::slice::from_ref(&input), &nudge, ends).total.mean, 0.0);
        // Site 0 is the last word, a 6: it becomes another in three of four draws.
        let six = |s: &Sequence| usize::from(s.ids.contains(&6));
        let profile = respond_to(&vec![input; 200], &nudge, six);
        assert!((profile.by_site[0].mean() - 0.75).abs() < 0.02, "{:?}", profile.by_site);
        assert_eq!(profile.by_site[1].mean(), 0.0);
    }
}
