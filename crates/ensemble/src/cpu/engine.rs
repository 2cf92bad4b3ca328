//! The face of the ensemble: training and measures, shared over replicas, draws and blocks of strings.

use pudica_data::{Batch, Bits};
use pudica_nn::{LAYER_NORM_EPS, TrainingState, Weights};
use rayon::prelude::*;

use super::block::{Block, block_strings};
use super::gradient::{Pool, StepScratch, Threads};
use super::layout::Layout;
use super::prepared::{Prepared, Ready};
use super::real::Real;
use super::replica::Replica;
use crate::measure::{response, score, shake};
use crate::members::{check, check_strings, measured};
use crate::precision::no_tf32_here;
use crate::{Engine, EnsembleError, Member, Noise, NoisyResponse, NormSummary, Precision, Shape, Strings};

/// An ensemble on this machine's cores: those of the `rayon` pool it is called from. The members must fit the shape, stand at one
/// step and train on equally many strings.
pub fn cpu(shape: Shape, members: Vec<Member>, precision: Precision) -> Result<Box<dyn Engine>, EnsembleError> {
    Ok(match precision {
        Precision::F32 => Box::new(Cpu::<f32>::new(shape, members)?),
        Precision::F64 => Box::new(Cpu::<f64>::new(shape, members)?),
        Precision::Tf32 => return Err(no_tf32_here()),
    })
}

/// An ensemble whose networks are computed in `T`.
struct Cpu<T> {
    shape: Shape,
    layout: Layout,
    /// Strings in a training batch.
    rows: usize,
    steps: u64,
    /// Names and shapes of the weights.
    like: Weights,
    replicas: Vec<Replica>,
    scratch: Pool<StepScratch<T>>,
    blocks: Pool<Block<T>>,
    /// With room for weights as they are computed with.
    prepared: Pool<(Prepared<T>, Vec<T>)>,
}

impl<T: Real> Engine for Cpu<T> {
    fn replicas(&self) -> usize {
        self.replicas.len()
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn device(&self) -> String {
        match T::PRECISION {
            Precision::F32 => "cpu".into(),
            other => format!("cpu ({})", other.name()),
        }
    }

    fn advance(&mut self, count: usize) -> Result<Vec<Vec<f64>>, EnsembleError> {
        let Self { layout, rows, steps, replicas, scratch, blocks, .. } = self;
        let (layout, scratch, blocks) = (&*layout, &*scratch, &*blocks);
        let (rows, first) = (*rows, *steps);
        let train = |replica: &mut Replica, threads: Threads| {
            let all = |scratch: &mut StepScratch<T>| {
                let steps = first..first + count as u64;
                steps.map(|step| replica.step(layout, rows, step, (&mut *scratch, blocks), threads)).collect()
            };
            scratch.with(|| StepScratch::new(layout), all)
        };
        // As many replicas as divide evenly train alone on a thread each, the rest share all threads.
        let threads = rayon::current_num_threads();
        let whole = replicas.len() / threads * threads;
        let (alone, shared) = replicas.split_at_mut(whole);
        let mut losses: Vec<Vec<f64>> = each(alone, |replica| train(replica, Threads::One))?;
        losses.extend(each(shared, |replica| train(replica, Threads::All))?);
        self.steps += count as u64;
        Ok((0..count).map(|step| losses.iter().map(|of_replica| of_replica[step]).collect()).collect())
    }

    fn state(&self, replica: usize) -> Result<TrainingState, EnsembleError> {
        let Some(Replica { weights, first_moment, second_moment, .. }) = self.replicas.get(replica) else {
            let count = self.replicas.len();
            return Err(EnsembleError::Members(format!("replica {replica} was asked for, there are {count}")));
        };
        Ok(TrainingState {
            weights: self.like.with_data(weights.clone())?,
            first_moment: first_moment.clone(),
            second_moment: second_moment.clone(),
            step: self.steps,
        })
    }

    fn predict(&mut self, strings: Strings) -> Result<Vec<Vec<f32>>, EnsembleError> {
        self.measure(strings, |replica, batch| self.outputs(&replica.weights, &batch.strings))
    }

    fn evaluate(&mut self, strings: Strings) -> Result<Vec<(f64, f64)>, EnsembleError> {
        self.measure(strings, |replica, batch| score(&self.outputs(&replica.weights, &batch.strings), &batch.labels))
    }

    fn shake(&mut self, strings: Strings, noise: Noise) -> Result<Vec<Vec<NoisyResponse>>, EnsembleError> {
        self.measure(strings, |replica, batch| {
            let before = self.outputs(&replica.weights, &batch.strings);
            let one = |draw| {
                let mut noisy = replica.weights.clone();
                shake(&mut noisy, &self.layout.parameters, &noise, replica.seed, draw);
                response(&before, &self.outputs(&noisy, &batch.strings), &batch.labels)
            };
            (0..noise.draws).into_par_iter().map(one).collect()
        })
    }

    fn norms(&mut self, strings: Strings) -> Result<Vec<NormSummary>, EnsembleError> {
        self.measure(strings, |replica, batch| self.norm_summary(&replica.weights, &batch.strings))
    }
}

/// What `work` makes of every replica, in order.
fn each<R: Send>(
    replicas: &mut [Replica],
    work: impl Fn(&mut Replica) -> Result<R, EnsembleError> + Send + Sync,
) -> Result<Vec<R>, EnsembleError> {
    replicas.par_iter_mut().with_max_len(1).map(work).collect()
}

impl<T: Real> Cpu<T> {
    fn new(shape: Shape, members: Vec<Member>) -> Result<Self, EnsembleError> {
        let rows = check(&shape, &members)?;
        let (layout, steps) = (Layout::new(&shape.encoder)?, members[0].state.step);
        let like = members[0].state.weights.clone();
        let replicas = members.into_iter().map(Replica::new).collect();
        let (scratch, blocks, prepared) = (Pool::new(), Pool::new(), Pool::new());
        Ok(Cpu { shape, layout, rows, steps, like, replicas, scratch, blocks, prepared })
    }

    /// What `measure` makes of each replica and its strings.
    fn measure<R: Send>(
        &self,
        strings: Strings,
        measure: impl Fn(&Replica, &Batch) -> R + Send + Sync,
    ) -> Result<Vec<R>, EnsembleError> {
        check_strings(strings, self.shape.encoder.n, self.replicas.len())?;
        let one = |(index, replica): (usize, &Replica)| {
            Ok(measure(replica, &measured(strings, index, &replica.task, replica.seed)?))
        };
        self.replicas.par_iter().enumerate().with_max_len(1).map(one).collect()
    }

    /// What `read` takes from every block after its forward pass, in order; it is given the block and its number of strings.
    fn forward<R: Send>(
        &self,
        weights: &[f32],
        strings: &Bits,
        read: impl Fn(&Block<T>, &[T]) -> R + Send + Sync,
    ) -> Vec<R> {
        let layout = &self.layout;
        let pass = |(prepared, room): &mut (Prepared<T>, Vec<T>)| {
            let parameters = T::weights(weights, room);
            prepared.prepare(layout, parameters);
            let ready = Ready { layout, parameters, prepared };
            let one = |strings: &[u8]| {
                self.blocks.with(
                    || Block::new(layout),
                    |block| {
                        block.forward(&ready, strings);
                        read(block, block.outputs(strings.len() / layout.n))
                    },
                )
            };
            strings.data().par_chunks(block_strings(layout) * layout.n).map(one).collect()
        };
        self.prepared.with(|| (Prepared::new(layout), Vec::new()), pass)
    }

    fn outputs(&self, weights: &[f32], strings: &Bits) -> Vec<f32> {
        self.forward(weights, strings, |_, outputs| T::rounded(outputs, <[f32]>::to_vec)).concat()
    }

    fn norm_summary(&self, weights: &[f32], strings: &Bits) -> NormSummary {
        let mut summary = NormSummary::default();
        for layer in 0..self.layout.layers.len() {
            summary.names.extend(["norm1", "norm2"].map(|norm| format!("enc.layers.{layer}.{norm}")));
        }
        let d = self.layout.d as f64;
        let blocks = self.forward(weights, strings, |block, outputs| {
            let mut rows = Vec::with_capacity(outputs.len() * 2 * self.layout.layers.len());
            for row in 0..outputs.len() {
                for (variances, positions) in block.variances() {
                    let variances = variances[row * positions..][..positions].iter().map(|v| v.wide());
                    let inverse_root = |v: f64| 1.0 / v.sqrt();
                    rows.push([
                        max_and_mean(variances.clone().map(|v| inverse_root(v * d / (d - 1.0)))),
                        max_and_mean(variances.map(|v| inverse_root(v + LAYER_NORM_EPS))),
                    ]);
                }
            }
            rows
        });
        for [unbiased, theory] in blocks.into_iter().flatten() {
            summary.unbiased_max.push(unbiased.0);
            summary.unbiased_mean.push(unbiased.1);
            summary.theory_max.push(theory.0);
            summary.theory_mean.push(theory.1);
        }
        summary
    }
}

fn max_and_mean(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f32, f32) {
    let count = values.len() as f64;
    (values.clone().fold(f64::NEG_INFINITY, f64::max) as f32, (values.sum::<f64>() / count) as f32)
}
