//! Sensitivity of networks on texts (Section 6 of Vasudeva et al. 2024): one position of a sequence is touched, the label changes.

use pudica_nn::NnError;
use pudica_nn::classifier::{Classifier, Model, predicted};
use pudica_nn::text::{self, Sequences, TextConfig};

use crate::{Budget, LabelDiffers, Nudge, ProbeError, Profile, Sequence, Subject, TokenTouch, Touches, respond};

/// How often the predicted class changes when one position of a sequence is touched: in the mean over all (sequence, position) pairs
/// ([`Profile::mean`], the paper's sensitivity), and by position from the right end ([`Profile::by_site`]).
///
/// `budget.batch` sequences go through the network at once, and `watch` is told how many before they do: what it fails with ends the
/// measure. What causal networks compute before a touched token is computed once.
pub fn text_sensitivity<E: From<ProbeError>>(
    model: &Model<TextConfig>,
    sequences: &Sequences,
    nudge: &dyn Nudge<Sequence>,
    budget: &Budget,
    watch: impl FnMut(usize) -> Result<(), E>,
) -> Result<Profile, E> {
    ProbeError::at_least_one("measure.draws", budget.draws)?;
    ProbeError::at_least_one("measure.sequences", sequences.ids.len())?;
    let inputs = sequences.ids.iter().map(untouched);
    Ok(respond(&mut Watched { model, watch }, inputs, nudge, &[&LabelDiffers], budget)?.remove(0))
}

fn untouched(ids: &Vec<u32>) -> Sequence {
    Sequence { ids: ids.clone(), touch: None }
}

/// A network that says when it computes, and shares what touches of one sequence have in common.
struct Watched<'a, W> {
    model: &'a Model<TextConfig>,
    watch: W,
}

impl<N, E, W> Subject<Sequence, N> for Watched<'_, W>
where
    N: Nudge<Sequence> + ?Sized,
    E: From<ProbeError>,
    W: FnMut(usize) -> Result<(), E>,
{
    type Out = usize;
    type Error = E;

    fn answer(&mut self, inputs: &[Sequence]) -> Result<Vec<usize>, E> {
        (self.watch)(inputs.len())?;
        let scores = scores(self.model, inputs.to_vec()).map_err(ProbeError::from)?;
        Ok(predicted(&scores, self.model.classifier().classes()))
    }

    fn answer_nudged(&mut self, touches: &Touches<Sequence, N>) -> Result<Vec<usize>, E> {
        (self.watch)(touches.touches.len())?;
        let scores = touched_scores(self.model, touches).map_err(ProbeError::from)?;
        Ok(predicted(&scores, self.model.classifier().classes()))
    }
}

/// The scores of sequences without touched embeddings.
fn scores(model: &Model<TextConfig>, sequences: Vec<Sequence>) -> Result<Vec<f32>, NnError> {
    model.predict(&Sequences::new(sequences.into_iter().map(|sequence| sequence.ids).collect()))
}

/// The scores of touched sequences: where embeddings are touched, computed from the touched token on.
fn touched_scores<N: Nudge<Sequence> + ?Sized>(
    model: &Model<TextConfig>,
    touches: &Touches<Sequence, N>,
) -> Result<Vec<f32>, NnError> {
    let made = touches.made();
    if made.iter().any(|sequence| sequence.touch.is_none()) {
        return scores(model, made);
    }
    // The sequences that are touched here, each once.
    let mut touched: Vec<usize> = touches.touches.iter().map(|touch| touch.input).collect();
    touched.dedup();
    let base = touched.iter().map(|input| touches.inputs[*input].ids.clone()).collect();
    let places = touches.touches.iter().map(|touch| touched.partition_point(|input| *input < touch.input));
    let added = made.into_iter().filter_map(|sequence| sequence.touch).map(for_network);
    model.touched_scores(&Sequences::new(base), &places.zip(added).collect::<Vec<_>>())
}

/// A touch as networks take it.
fn for_network(TokenTouch { position, noise }: TokenTouch) -> text::Touch {
    text::Touch { position, noise }
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
    use crate::{EmbeddingNoise, Touch};
    use pudica_data::Stream;
    use pudica_nn::Device;
    use pudica_nn::text::{Gpt2Config, LstmConfig, RobertaConfig};

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
                let budget = Budget::new(3, 16, 0, "test");
                text_sensitivity(&model, &sequences, &noise, &budget, |_| Ok::<_, ProbeError>(())).unwrap()
            };
            assert_eq!(measure(0.0).mean.mean, 0.0);
            let noisy = measure(100.0);
            assert!(noisy.mean.mean > 0.0 && noisy.mean.std_error.unwrap() > 0.0);
            // The same touches, given to the network as they are.
            let noise = EmbeddingNoise { variance: 2.0, width: 8 };
            let inputs: Vec<Sequence> = sequences.ids.iter().map(|ids| untouched(ids)).collect();
            let touch = |input: usize| Touch { input, site: input % inputs[input].ids.len(), draw: 0 };
            let touches: Vec<Touch> = (0..inputs.len()).map(touch).collect();
            let touches =
                Touches { inputs: &inputs, before: 0, nudge: &noise, touches: &touches, seed: 1, purpose: "test" };
            let (ids, all) = touches.made().into_iter().map(|s| (s.ids, s.touch.map(for_network))).unzip();
            let plain = model.predict(&Sequences { ids, touches: all }).unwrap();
            let ours = touched_scores(&model, &touches).unwrap();
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
