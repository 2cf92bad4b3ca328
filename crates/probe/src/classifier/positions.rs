//! Sensitivity of networks on texts (Section 6 of Vasudeva et al. 2024): one position of a sequence is touched, the label changes.
//!
//! Sites are counted from the right end: site 0 is the last token. A [`Profile`]'s `by_site` is then the paper's profile of positions, with
//! sequences of different lengths aligned at their right ends, and its `mean` the mean over all (sequence, position) pairs.

use std::ops::Range;

use pudica_data::Stream;
use pudica_nn::NnError;
use pudica_nn::classifier::{Classifier, Model, predicted};
use pudica_nn::text::{Sequences, TextConfig, Touch};

use crate::{LabelDiffers, Nudge, Plan, ProbeError, Profile, respond};

/// One sequence of tokens, touched or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    /// The tokens.
    pub ids: Vec<u32>,
    /// What is added to one embedding.
    pub touch: Option<Touch>,
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

    fn touch(&self, sequence: &Sequence, site: usize, noise: &mut Stream) -> Sequence {
        let deviation = self.variance.sqrt();
        let noise = (0..self.width).map(|_| (deviation * noise.normal()) as f32).collect();
        let touch = Touch { position: sequence.ids.len() - 1 - site, noise };
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

    fn touch(&self, sequence: &Sequence, site: usize, noise: &mut Stream) -> Sequence {
        let mut touched = sequence.clone();
        if let Some(place) = self.places(sequence).nth(site) {
            touched.ids[place] = self.words.start + noise.below(u64::from(self.words.end - self.words.start)) as u32;
        }
        touched
    }
}

/// How often the predicted class changes when one position of a sequence is touched: in the mean over all (sequence, position) pairs
/// ([`Profile::mean`], the paper's sensitivity), and by position from the right end ([`Profile::by_site`]).
///
/// `plan.pack` sequences go through the network at once, and `watch` is told how many before they do: what it fails with ends the measure.
/// What causal networks compute before a touched token is computed once.
pub fn text_sensitivity<E: From<ProbeError>>(
    model: &Model<TextConfig>,
    sequences: &Sequences,
    nudge: &(impl Nudge<Sequence> + Sync),
    plan: &Plan,
    mut watch: impl FnMut(usize) -> Result<(), E>,
) -> Result<Profile, E> {
    ProbeError::at_least_one("measure.draws", plan.draws)?;
    ProbeError::at_least_one("measure.sequences", sequences.ids.len())?;
    let classes = model.classifier().classes();
    let one_by_one = sequences.ids.iter().map(|ids| Ok(Sequence { ids: ids.clone(), touch: None }));
    let labels = |some: &[Sequence]| {
        watch(some.len())?;
        Ok::<_, E>(predicted(&scores(model, some).map_err(ProbeError::from)?, classes))
    };
    Ok(respond(one_by_one, labels, nudge, &[&LabelDiffers], plan)?.remove(0))
}

/// The scores of some sequences, either all with a touched embedding or none.
fn scores(model: &Model<TextConfig>, some: &[Sequence]) -> Result<Vec<f32>, NnError> {
    // Those that stand beside each other are mostly one sequence, touched in many ways.
    let (mut untouched, mut touches) = (Vec::<Vec<u32>>::new(), Vec::new());
    for Sequence { ids, touch } in some {
        if untouched.last() != Some(ids) {
            untouched.push(ids.clone());
        }
        touches.extend(touch.clone().map(|touch| (untouched.len() - 1, touch)));
    }
    match touches.len() == some.len() {
        true => model.touched_scores(&Sequences::new(untouched), &touches),
        false => model.predict(&Sequences::new(some.iter().map(|sequence| sequence.ids.clone()).collect())),
    }
}

/// A set of sequences and their classes in batches of `size`, the last one smaller.
pub fn sequence_batches<'a>(
    sequences: &'a Sequences,
    labels: &'a [usize],
    size: usize,
) -> impl Iterator<Item = (Sequences, Vec<usize>)> + Clone + 'a {
    let size = size.max(1);
    let parts = sequences.ids.chunks(size).zip(labels.chunks(size));
    parts.map(|(ids, labels)| (Sequences::new(ids.to_vec()), labels.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_nn::Device;
    use pudica_nn::text::{Gpt2Config, LstmConfig, RobertaConfig};

    const PLAN: Plan = Plan { draws: 30, pack: 16, seed: 0, purpose: "test" };

    fn sequence(ids: &[u32]) -> Sequence {
        Sequence { ids: ids.to_vec(), touch: None }
    }

    /// The label is the parity of how often token 5 occurs, or whether the touched place is the last but one.
    fn respond_to(
        inputs: &[Sequence],
        nudge: &(impl Nudge<Sequence> + Sync),
        label: impl Fn(&Sequence) -> usize,
    ) -> Profile {
        let f = |some: &[Sequence]| Ok::<_, ()>(some.iter().map(&label).collect());
        respond(inputs.iter().cloned().map(Ok), f, nudge, &[&LabelDiffers], &PLAN).unwrap().remove(0)
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
        let touched = noise.touch(&sequence(&[0, 9, 2]), 0, &mut Stream::new(0, "test", 0));
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

    /// Real networks: without noise no label changes; with very much, touching matters.
    #[test]
    fn networks_answer_to_noise() {
        let roberta = RobertaConfig { vocabulary: 20, d: 8, layers: 1, heads: 2, length: 12, ..Default::default() };
        let lstm = LstmConfig { vocabulary: 20, d: 8, layers: 1, length: 12, ..Default::default() };
        let mut stream = Stream::new(0, "sequences", 0);
        let mut ids = || (0..3 + stream.below(6)).map(|_| stream.below(20) as u32).collect::<Vec<u32>>();
        let sequences = Sequences::new((0..20).map(|_| ids()).collect());
        let gpt2 = Gpt2Config { vocabulary: 20, d: 8, layers: 1, heads: 2, length: 12, ..Default::default() };
        for config in [TextConfig::Roberta(roberta), TextConfig::Gpt2(gpt2), TextConfig::Lstm(lstm)] {
            let weights = config.initial_weights(3).unwrap();
            // Initial heads are small and near ties: larger ones tell classes apart.
            let weights = weights.with_data(weights.data().iter().map(|w| 3.0 * w).collect()).unwrap();
            let model = Model::new(&config, &weights, &config.initial_buffers(), &Device::cpu()).unwrap();
            let measure = |variance| {
                let noise = EmbeddingNoise { variance, width: 8 };
                let plan = Plan { draws: 3, ..PLAN };
                text_sensitivity(&model, &sequences, &noise, &plan, |_| Ok::<_, ProbeError>(())).unwrap()
            };
            assert_eq!(measure(0.0).mean.mean, 0.0);
            let noisy = measure(100.0);
            assert!(noisy.mean.mean > 0.0 && noisy.mean.std_error.unwrap() > 0.0);
            // The same touches, given to the network as they are.
            let noise = EmbeddingNoise { variance: 2.0, width: 8 };
            let touch = |(at, ids): (usize, &Vec<u32>)| {
                let whole = Sequence { ids: ids.clone(), touch: None };
                noise.touch(&whole, at % ids.len(), &mut Stream::new(1, "test", at as u64))
            };
            let touched: Vec<Sequence> = sequences.ids.iter().enumerate().map(touch).collect();
            let (ids, touches) = touched.iter().map(|s| (s.ids.clone(), s.touch.clone())).unzip();
            let plain = model.predict(&Sequences { ids, touches }).unwrap();
            let ours = scores(&model, &touched).unwrap();
            assert!(ours.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-4 * (1.0 + b.abs())), "{ours:?} {plain:?}");
            assert_eq!(noisy.sites, sequences.ids.iter().map(Vec::len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn batches_are_cut_in_order() {
        let sequences = Sequences::new(vec![vec![1], vec![2, 2], vec![3]]);
        let batches: Vec<_> = sequence_batches(&sequences, &[0, 1, 0], 2).collect();
        assert_eq!(batches[0], (Sequences::new(vec![vec![1], vec![2, 2]]), vec![0, 1]));
        assert_eq!(batches[1], (Sequences::new(vec![vec![3]]), vec![0]));
    }
}
