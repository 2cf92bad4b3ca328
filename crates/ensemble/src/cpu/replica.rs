//! One network of the ensemble, and its training step.

use pudica_data::Task;
use pudica_nn::AdamWConfig;
use rayon::prelude::*;

use super::adamw::Update;
use super::block::Block;
use super::gradient::{Pool, StepScratch, Threads};
use super::layout::Layout;
use super::passes::add_all;
use super::real::Real;
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

/// Parameters that are updated at a time, while their gradient is in cache.
const SHARE: usize = 1 << 12;

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
    pub(crate) fn step<T: Real>(
        &mut self,
        layout: &Layout,
        rows: usize,
        step: u64,
        (scratch, blocks): (&mut StepScratch<T>, &Pool<Block<T>>),
        threads: Threads,
    ) -> Result<f64, EnsembleError> {
        if self.lost {
            return Ok(f64::NAN);
        }
        scratch.distinct.fill(&self.task.train_batch(rows, self.seed, step)?);
        let loss = scratch.compute_kept(layout, &self.weights, blocks, threads);
        // As the reference judges it.
        self.lost = !(loss as f32).is_finite();
        if !self.lost {
            self.update(&Update::new(&self.adamw, step + 1), &mut *scratch, threads);
        }
        Ok(loss)
    }

    /// Add the lanes' gradients up, in order, and move the weights along the sum, rounded to f32.
    fn update<T: Real>(&mut self, update: &Update, scratch: &mut StepScratch<T>, threads: Threads) {
        let [sum, others @ ..] = &mut scratch.lanes[..] else { return };
        let (sum, others) = (&mut sum.gradient.parameters, &*others);
        let moments = self.first_moment.par_chunks_mut(SHARE).zip(self.second_moment.par_chunks_mut(SHARE));
        let pieces = self.weights.par_chunks_mut(SHARE).zip(moments).zip(sum.par_chunks_mut(SHARE)).enumerate();
        let least = if threads == Threads::One { usize::MAX } else { 1 };
        pieces.with_min_len(least).for_each(|(index, ((weights, (first, second)), sum))| {
            for other in others {
                add_all(sum, &other.gradient.parameters[index * SHARE..][..sum.len()]);
            }
            T::rounded(sum, |gradient| update.apply(weights, first, second, gradient));
        });
    }
}
