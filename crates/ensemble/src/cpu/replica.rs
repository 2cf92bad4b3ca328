//! One network of the ensemble, and its training step.

use pudica_data::Task;
use pudica_nn::AdamWConfig;
use rayon::prelude::*;

use super::adamw::Update;
use super::block::Block;
use super::gradient::{Effort, Hands, Pool};
use super::layout::Layout;
use super::passes::wide;
use crate::{EnsembleError, Member};

/// One network: what it learns, its weights and moments.
pub(crate) struct Replica {
    pub(crate) task: Task,
    pub(crate) seed: u64,
    adamw: AdamWConfig,
    pub(crate) weights: Vec<f32>,
    pub(crate) first_moment: Vec<f32>,
    pub(crate) second_moment: Vec<f32>,
    /// Its loss has ceased to be finite: it stands still.
    lost: bool,
}

/// Parameters that one thread updates at a time.
const SHARE: usize = 1 << 14;

impl Replica {
    pub(crate) fn new(member: Member) -> Self {
        let Member { task, seed, adamw, state } = member;
        Self {
            task,
            seed,
            adamw,
            weights: state.weights.data().to_vec(),
            first_moment: state.first_moment,
            second_moment: state.second_moment,
            lost: false,
        }
    }

    /// One training step on `rows` strings after `step` others: the loss before it.
    pub(crate) fn step(
        &mut self,
        layout: &Layout,
        rows: usize,
        step: u64,
        (effort, blocks): (&mut Effort<f32>, &Pool<Block<f32>>),
        hands: Hands,
    ) -> Result<f64, EnsembleError> {
        if self.lost {
            return Ok(f64::NAN);
        }
        effort.distinct.fill(&self.task.train_batch(rows, self.seed, step)?);
        let loss = effort.compute(layout, &self.weights, blocks, hands);
        // As the reference judges it, which has its loss in f32.
        self.lost = !(loss as f32).is_finite();
        if !self.lost {
            self.update(&Update::new(&self.adamw, step + 1), effort, hands);
        }
        Ok(loss)
    }

    fn update(&mut self, update: &Update, effort: &Effort<f32>, hands: Hands) {
        let share = if hands == Hands::One { self.weights.len() } else { SHARE };
        let moments = self.first_moment.par_chunks_mut(share).zip(self.second_moment.par_chunks_mut(share));
        let pieces = self.weights.par_chunks_mut(share).zip(moments).enumerate();
        pieces.for_each(|(index, (weights, (first, second)))| {
            let own = index * share..index * share + weights.len();
            wide(|| update.apply(weights, [first, second], effort.gradients().map(|part| &part[own.clone()])));
        });
    }
}
