//! Scores of sequences with noise on one embedding, computed from that token on.
//!
//! What a causal network computes before the touched token is that of the sequence as it is: GPT-2's keys and values, an LSTM's
//! states. They are computed once for all touches of a sequence. For a sequence of T tokens touched at each, that leaves about half of the
//! T^2 tokens. RoBERTa's tokens see all others, so nothing can be kept.

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor, TensorData};

use super::recurrence::{LayerState, lstm_advance};
use super::{Gpt2, Lstm, Sequences, TextConfig, TextNetwork, Touch};
use crate::NnError;
use crate::classifier::{Classifier, Model, Pass};
use crate::layers::to_vec;

/// Touched sequences that are computed together.
const TOGETHER: usize = 256;

/// Touches less than one in so many of the longest sequence's tokens apart are computed together, from the first of them on: a few tokens
/// more, but larger multiplications.
const STRETCHES: usize = 8;

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
        let span = base.ids.iter().map(Vec::len).max().unwrap_or(0).div_ceil(STRETCHES);
        let mut groups: Vec<Group> = Vec::new();
        for (position, mut members) in at {
            match groups.last_mut() {
                Some(group) if position < group.position + span && group.members.len() < TOGETHER => {
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
        match &*self.network {
            TextNetwork::Roberta(_) => job.whole(&mut put)?,
            TextNetwork::Gpt2(network) => job.gpt2(network, &groups, &mut put)?,
            TextNetwork::Lstm(network) => job.lstm(network, groups, &mut put)?,
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
    /// The sequences of these touches, each from a token on.
    fn rest(&self, members: impl Iterator<Item = (usize, usize)>) -> Sequences {
        let mut rest = Sequences::default();
        for (index, position) in members {
            let (sequence, touch) = &self.touches[index];
            rest.ids.push(self.base.ids[*sequence][position..].to_vec());
            rest.touches.push(Some(Touch { position: touch.position - position, noise: touch.noise.clone() }));
        }
        rest
    }

    /// Everything from the first token on.
    fn whole(&self, put: Put) -> Result<(), NnError> {
        let all: Vec<usize> = (0..self.touches.len()).collect();
        for members in all.chunks(TOGETHER) {
            put(members, self.model.scores(&self.rest(members.iter().map(|index| (*index, 0))))?)?;
        }
        Ok(())
    }

    fn gpt2(&self, network: &Gpt2, groups: &[Group], put: Put) -> Result<(), NnError> {
        let device = self.model.device();
        let parameters = self.model.parameters(false);
        let longest = self.model.classifier().longest();
        let mut recorder = Some(Vec::new());
        network.run(&parameters, self.base.padded(longest, device), None, &mut recorder, &Pass::Evaluate)?;
        let known = recorder.unwrap_or_default();
        for Group { position, members } in groups {
            for members in members.chunks(TOGETHER) {
                let rest = self.rest(members.iter().map(|index| (*index, *position)));
                let batch = rest.padded(longest - position, device);
                let sequences = self.rows(members.iter().map(|index| self.touches[*index].0));
                let cut = |known: &Tensor<3>| known.clone().narrow(1, 0, *position).select(0, sequences.clone());
                let before: Option<Vec<_>> = (*position > 0).then(|| known.iter().map(cut).collect());
                put(members, network.run(&parameters, batch, before.as_deref(), &mut None, &Pass::Evaluate)?)?;
            }
        }
        Ok(())
    }

    /// The states go through the sequences once, and are noted where groups begin. As no token knows its position, the touched rests of all
    /// groups are then computed side by side.
    fn lstm(&self, network: &Lstm, groups: Vec<Group>, put: Put) -> Result<(), NnError> {
        let device = self.model.device();
        let parameters = self.model.parameters(false);
        let layers = network.weights(&parameters);
        let zeros = Tensor::<2>::zeros([self.base.ids.len(), self.model.classifier().width()], device.constant());
        let mut states = vec![LayerState { hidden: zeros.clone(), cell: zeros }; layers.len()];
        let mut noted = vec![(Vec::new(), Vec::new()); layers.len()];
        let (mut token, mut starts) = (0, Vec::new());
        for Group { position, members } in groups {
            if position > token {
                // A sequence that has ended goes on with its last token: nobody asks for its state any more.
                let piece = |ids: &Vec<u32>| (token..position).map(|at| ids[at.min(ids.len() - 1)]).collect();
                let piece = Sequences::new(self.base.ids.iter().map(piece).collect());
                let mut x = network.embed(&parameters, &piece.packed(device));
                for (state, weights) in states.iter_mut().zip(&layers) {
                    (x, *state) = lstm_advance(x, weights.clone(), state.clone());
                }
                token = position;
            }
            let sequences = self.rows(members.iter().map(|index| self.touches[*index].0));
            for ((hidden, cell), state) in noted.iter_mut().zip(&states) {
                hidden.push(state.hidden.clone().select(0, sequences.clone()));
                cell.push(state.cell.clone().select(0, sequences.clone()));
            }
            starts.extend(members.into_iter().map(|index| (index, position)));
        }
        if starts.is_empty() {
            return Ok(());
        }
        let noted: Vec<LayerState> = noted
            .into_iter()
            .map(|(hidden, cell)| LayerState { hidden: Tensor::cat(hidden, 0), cell: Tensor::cat(cell, 0) })
            .collect();
        // The longest first, as they are packed: then states need no other order.
        let tokens = |(index, position): (usize, usize)| self.base.ids[self.touches[index].0].len() - position;
        let mut order: Vec<usize> = (0..starts.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(tokens(starts[*at])));
        for order in order.chunks(TOGETHER) {
            let rows = self.rows(order.iter().copied());
            let pick = |x: &Tensor<2>| x.clone().select(0, rows.clone());
            let start = noted.iter().map(|state| LayerState { hidden: pick(&state.hidden), cell: pick(&state.cell) });
            let start: Vec<LayerState> = start.collect();
            let batch = self.rest(order.iter().map(|at| starts[*at])).packed(device);
            let members: Vec<usize> = order.iter().map(|at| starts[*at].0).collect();
            put(&members, network.run(&parameters, batch, Some(&start), &Pass::Evaluate)?)?;
        }
        Ok(())
    }

    /// Indices on the device.
    fn rows(&self, rows: impl Iterator<Item = usize>) -> Tensor<1, Int> {
        let rows: Vec<i64> = rows.map(|row| row as i64).collect();
        let count = rows.len();
        Tensor::from_data(TensorData::new(rows, [count]), self.model.device().integers())
    }
}
