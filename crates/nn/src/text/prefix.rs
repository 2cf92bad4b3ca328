//! Scores of sequences with noise on one embedding, computed from that token on.
//!
//! What a causal network computes before the touched token is that of the sequence as it is: GPT-2's keys and values, an LSTM's
//! states. They are computed once for all touches of a sequence. For a sequence of T tokens touched at each, that leaves about half of the
//! T^2 tokens. RoBERTa's tokens see all others, so nothing can be kept.

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor, TensorData};

use super::lstm::weights;
use super::recurrence::{LayerState, lstm_step};
use super::{Gpt2Config, LstmConfig, Sequences, TextConfig, Touch};
use crate::NnError;
use crate::classifier::{Classifier, Model, Pass};
use crate::layers::to_vec;

/// Touched sequences that are computed together.
const TOGETHER: usize = 256;

/// Touches at so many neighbouring tokens are computed together from the first of them on, where they are fewer: a few tokens more,
/// but larger multiplications.
const NEIGHBOURS: usize = 8;

impl Model<TextConfig> {
    /// The scores of sequences of `base` (touched nowhere), each with one touch: row-major [touches, classes], for touches given as the
    /// sequence's index and what is added. The same numbers as those of [`Model::predict`], up to rounding.
    pub fn touched_scores(&self, base: &Sequences, touches: &[(usize, Touch)]) -> Result<Vec<f32>, NnError> {
        let config = self.classifier();
        base.check(config.vocabulary(), config.longest(), config.width())?;
        if base.touches.iter().any(Option::is_some) {
            return Err(NnError::Batch("the sequences to be touched are touched already".to_string()));
        }
        let mut at: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, (sequence, touch)) in touches.iter().enumerate() {
            let tokens = base.ids.get(*sequence).map_or(0, Vec::len);
            if touch.position >= tokens || touch.noise.len() != config.width() {
                let problem = format!(
                    "touch {index} is of {} values at token {} of sequence {sequence}, which has {tokens} tokens",
                    touch.noise.len(),
                    touch.position
                );
                return Err(NnError::Batch(problem));
            }
            at.entry(touch.position).or_default().push(index);
        }
        let mut groups: Vec<Group> = Vec::new();
        for (position, mut members) in at {
            match groups.last_mut() {
                Some(group) if position < group.position + NEIGHBOURS && group.members.len() < TOGETHER => {
                    group.members.append(&mut members);
                }
                _ => groups.push(Group { position, members }),
            }
        }
        let mut scores = vec![0.0; touches.len() * config.classes()];
        let mut put = |members: &[usize], found: Tensor<2>| -> Result<(), NnError> {
            let classes = found.dims()[1];
            for (index, row) in members.iter().zip(to_vec::<2, f32>(found)?.chunks(classes)) {
                scores[index * classes..][..classes].copy_from_slice(row);
            }
            Ok(())
        };
        let job = Job { model: self, base, touches };
        match config {
            TextConfig::Roberta(_) => job.whole(&mut put)?,
            TextConfig::Gpt2(config) => job.gpt2(config, &groups, &mut put)?,
            TextConfig::Lstm(config) => job.lstm(config, groups, &mut put)?,
        }
        Ok(scores)
    }
}

/// Touches at a position and a few after it.
struct Group {
    position: usize,
    /// Which of all touches.
    members: Vec<usize>,
}

struct Job<'a> {
    model: &'a Model<TextConfig>,
    base: &'a Sequences,
    touches: &'a [(usize, Touch)],
}

/// Where scores [members, classes] of touches go.
type Put<'a> = &'a mut dyn FnMut(&[usize], Tensor<2>) -> Result<(), NnError>;

impl Job<'_> {
    /// The sequences of these touches from `position` on.
    fn rest(&self, members: &[usize], position: usize) -> Sequences {
        let touch = |index: &usize| {
            let touch = &self.touches[*index].1;
            Some(Touch { position: touch.position - position, noise: touch.noise.clone() })
        };
        let ids = |index: &usize| self.base.ids[self.touches[*index].0][position..].to_vec();
        Sequences { ids: members.iter().map(ids).collect(), touches: members.iter().map(touch).collect() }
    }

    /// Everything from the first token on.
    fn whole(&self, put: Put) -> Result<(), NnError> {
        let all: Vec<usize> = (0..self.touches.len()).collect();
        for members in all.chunks(TOGETHER) {
            put(members, self.model.scores(&self.rest(members, 0))?)?;
        }
        Ok(())
    }

    fn gpt2(&self, config: &Gpt2Config, groups: &[Group], put: Put) -> Result<(), NnError> {
        let device = self.model.device();
        let parameters = self.model.parameters(false);
        let mut recorder = Some(Vec::new());
        config.run(&parameters, self.base.padded(config.length, device), None, &mut recorder, &Pass::Evaluate)?;
        let known = recorder.unwrap_or_default();
        for Group { position, members } in groups {
            for members in members.chunks(TOGETHER) {
                let batch = self.rest(members, *position).padded(config.length - position, device);
                let sequences = self.sequences_of(members);
                let cut = |known: &Tensor<3>| known.clone().narrow(1, 0, *position).select(0, sequences.clone());
                let before: Option<Vec<_>> = (*position > 0).then(|| known.iter().map(cut).collect());
                put(members, config.run(&parameters, batch, before.as_deref(), &mut None, &Pass::Evaluate)?)?;
            }
        }
        Ok(())
    }

    /// The states go through the sequences once, token by token; from each token on, its touched copies go their own way.
    fn lstm(&self, config: &LstmConfig, groups: Vec<Group>, put: Put) -> Result<(), NnError> {
        let device = self.model.device();
        let parameters = self.model.parameters(false);
        let layers = (0..config.layers).map(|layer| weights(&parameters, layer)).collect::<Result<Vec<_>, _>>()?;
        let count = self.base.ids.len();
        let zeros = Tensor::<2>::zeros([count, config.d], device.constant());
        let mut states = vec![LayerState { hidden: zeros.clone(), cell: zeros }; config.layers];
        let mut token = 0;
        for Group { position, mut members } in groups {
            for at in token..position {
                // A sequence that has ended goes on with its last token: nobody asks for its state any more.
                let ids = self.base.ids.iter().map(|ids| vec![ids[at.min(ids.len() - 1)]]);
                let mut x = config.embed(&parameters, &Sequences::new(ids.collect()).packed(device))?;
                for (state, weights) in states.iter_mut().zip(&layers) {
                    *state = lstm_step(x, weights, state.clone());
                    x = state.hidden.clone();
                }
            }
            token = position;
            // The longest first, as they are packed: then states need no other order.
            members.sort_by_key(|index| std::cmp::Reverse(self.base.ids[self.touches[*index].0].len()));
            for members in members.chunks(TOGETHER) {
                let sequences = self.sequences_of(members);
                let pick = |x: &Tensor<2>| x.clone().select(0, sequences.clone());
                let start: Vec<LayerState> = states
                    .iter()
                    .map(|state| LayerState { hidden: pick(&state.hidden), cell: pick(&state.cell) })
                    .collect();
                let batch = self.rest(members, position).packed(device);
                put(members, config.run(&parameters, batch, Some(&start), &Pass::Evaluate)?)?;
            }
        }
        Ok(())
    }

    /// The sequence of each touch, on the device.
    fn sequences_of(&self, members: &[usize]) -> Tensor<1, Int> {
        let sequences: Vec<i64> = members.iter().map(|index| self.touches[*index].0 as i64).collect();
        let count = sequences.len();
        Tensor::from_data(TensorData::new(sequences, [count]), self.model.device().integers())
    }
}
