//! The weights of all replicas, and what the optimiser keeps of each.

use pudica_nn::{TrainingState, Weights};

use super::cuda::{Cuda, Grid, Memory};
use super::forward::{int, long, pointer};
use super::networks::Sizes;
use crate::{EnsembleError, Member};

/// Steps whose losses are kept on the GPU before they are fetched.
pub(super) const LOSSES: usize = 1024;

/// Networks in training, as far as AdamW knows them.
pub(super) struct Trained {
    pub(super) replicas: usize,
    total: usize,
    count: usize,
    /// [R, total], as both moments.
    pub(super) parameters: Memory<f32>,
    moments: [Memory<f32>; 2],
    /// [R, 5]
    settings: Memory<f64>,
    /// [R, 8]
    scalars: Memory<f32>,
    /// Steps made, and those made before the losses being kept.
    pub(super) step: Memory<u64>,
    pub(super) first: Memory<u64>,
    /// [LOSSES, R]
    pub(super) losses: Memory<f64>,
}

impl Trained {
    pub(super) fn new(cuda: &Cuda, sizes: &Sizes, members: &[Member]) -> Result<Self, EnsembleError> {
        let Sizes { total, count, .. } = *sizes;
        let padding = vec![0.0; total - count];
        let gather = |of: fn(&TrainingState) -> &[f32]| -> Vec<f32> {
            members.iter().flat_map(|member| of(&member.state).iter().chain(&padding)).copied().collect()
        };
        let settings: Vec<f64> = members
            .iter()
            .map(|member| member.adamw)
            .flat_map(|adamw| [adamw.lr, adamw.betas.0, adamw.betas.1, adamw.eps, adamw.weight_decay])
            .collect();
        let (replicas, steps) = (members.len(), members[0].state.step);
        Ok(Self {
            replicas,
            total,
            count,
            parameters: cuda.upload(&gather(|state| state.weights.data()))?,
            moments: [
                cuda.upload(&gather(|state| &state.first_moment))?,
                cuda.upload(&gather(|state| &state.second_moment))?,
            ],
            settings: cuda.upload(&settings)?,
            scalars: cuda.zeros(8 * replicas)?,
            step: cuda.upload(&[steps])?,
            first: cuda.upload(&[steps])?,
            losses: cuda.zeros(LOSSES * replicas)?,
        })
    }

    /// One step of AdamW by gradients [R, total].
    pub(super) fn update(&self, cuda: &Cuda, gradients: u64) -> Result<(), EnsembleError> {
        let Self { replicas, total, .. } = *self;
        let arguments = [
            pointer(self.scalars.pointer()),
            pointer(self.settings.pointer()),
            pointer(self.step.pointer()),
            int(replicas),
        ];
        cuda.launch("step_scalars", Grid::elements(replicas, 1, 0.0), &arguments)?;
        cuda.launch(
            "adamw",
            Grid::elements(total, replicas, 7.0),
            &[
                pointer(self.parameters.pointer()),
                pointer(self.moments[0].pointer()),
                pointer(self.moments[1].pointer()),
                pointer(gradients),
                pointer(self.scalars.pointer()),
                long(total),
            ],
        )?;
        let mut one = Grid::elements(1, 1, 0.0);
        one.threads = 1;
        cuda.launch("next_step", one, &[pointer(self.step.pointer())])
    }

    /// Everything needed to continue a replica, which had the layout of `before`, after so many steps.
    pub(super) fn state(
        &self,
        cuda: &Cuda,
        replica: usize,
        before: &TrainingState,
        step: u64,
    ) -> Result<TrainingState, EnsembleError> {
        Ok(TrainingState {
            weights: self.weights(cuda, replica, before)?,
            first_moment: self.of(cuda, replica, &self.moments[0])?,
            second_moment: self.of(cuda, replica, &self.moments[1])?,
            step,
        })
    }

    /// A replica's weights, which had the layout of `before`.
    pub(super) fn weights(
        &self,
        cuda: &Cuda,
        replica: usize,
        before: &TrainingState,
    ) -> Result<Weights, EnsembleError> {
        Ok(before.weights.with_data(self.of(cuda, replica, &self.parameters)?)?)
    }

    /// What of [R, total] is a replica's.
    fn of(&self, cuda: &Cuda, replica: usize, all: &Memory<f32>) -> Result<Vec<f32>, EnsembleError> {
        cuda.read(all, replica * self.total, self.count)
    }
}
