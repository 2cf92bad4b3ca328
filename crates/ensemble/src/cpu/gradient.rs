//! The loss of a batch and its gradient, in lanes: fixed shares of the batch, each added up on its own.
//!
//! How a batch is cut into lanes and blocks depends on the batch alone. So the numbers are the same on any number of threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::block::{Block, Gradient, block_strings};
use super::distinct::Distinct;
use super::layout::Layout;
use super::prepared::{Prepared, Ready};
use super::real::Real;
use super::tables::TableScratch;

/// Things that are handed out and come back: as many as are in use at one time.
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

impl<T> Pool<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Do some work with one of them, made if none is free.
    pub(crate) fn with<R>(&self, make: impl FnOnce() -> T, work: impl FnOnce(&mut T) -> R) -> R {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut one = free.unwrap_or_else(make);
        let result = work(&mut one);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        result
    }
}

/// Which threads work on one replica's step. The numbers are the same.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Threads {
    /// The calling thread alone: the others have replicas of their own.
    One,
    /// All threads of the pool.
    All,
}

/// One share of a batch.
pub(crate) struct Lane<T> {
    pub(crate) gradient: Gradient<T>,
    /// Sum of squared errors.
    squares: f64,
}

/// The memory one replica's step works in, beside its weights.
pub(crate) struct StepScratch<T> {
    pub(crate) distinct: Distinct,
    pub(crate) prepared: Prepared<T>,
    pub(crate) lanes: Vec<Lane<T>>,
    scratch: TableScratch<T>,
    /// Room for weights as they are computed with, where that is not as they are kept.
    room: Vec<T>,
}

/// Rows (strings times positions) in a lane, and lanes at most: enough rows to make adding lanes up cheap, enough lanes for a few
/// threads to share one replica evenly.
const LANE_ROWS: usize = 4096;
const MOST_LANES: usize = 16;

fn lanes(layout: &Layout, strings: usize) -> usize {
    (strings * layout.n).div_ceil(LANE_ROWS).next_power_of_two().min(MOST_LANES).min(strings)
}

impl<T: Real> StepScratch<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            distinct: Distinct::default(),
            prepared: Prepared::new(layout),
            lanes: Vec::new(),
            scratch: TableScratch::new(layout),
            room: Vec::new(),
        }
    }

    /// [`StepScratch::compute`] with weights as they are kept.
    pub(crate) fn compute_kept(
        &mut self,
        layout: &Layout,
        kept: &[f32],
        blocks: &Pool<Block<T>>,
        threads: Threads,
    ) -> f64 {
        let mut room = std::mem::take(&mut self.room);
        let loss = self.compute(layout, T::weights(kept, &mut room), blocks, threads);
        self.room = room;
        loss
    }

    /// The mean squared error on `self.distinct`. Its gradient is the sum of those of the lanes.
    pub(crate) fn compute(
        &mut self,
        layout: &Layout,
        parameters: &[T],
        blocks: &Pool<Block<T>>,
        threads: Threads,
    ) -> f64 {
        let Self { distinct, prepared, lanes: all_lanes, scratch, .. } = self;
        prepared.prepare(layout, parameters);
        let ready = Ready { layout, parameters, prepared };
        let (strings, count) = (distinct.len(), lanes(layout, distinct.len()));
        all_lanes.truncate(count);
        all_lanes.resize_with(count, || Lane { gradient: Gradient::new(layout), squares: 0.0 });
        let run = |(index, lane): (usize, &mut Lane<T>)| {
            let own = strings * index / count..strings * (index + 1) / count;
            blocks.with(|| Block::new(layout), |block| lane.run(&ready, distinct, own, block));
        };
        match threads {
            Threads::One => all_lanes.iter_mut().enumerate().for_each(run),
            Threads::All => all_lanes.par_iter_mut().enumerate().with_max_len(1).for_each(run),
        }
        let [first, others @ ..] = &mut all_lanes[..] else { return f64::NAN };
        let mut squares = first.squares;
        for other in others {
            first.gradient.tables.add(&other.gradient.tables);
            squares += other.squares;
        }
        let Gradient { parameters: gradient, tables } = &mut first.gradient;
        let linear1 = ready.transposed(&layout.layers[0].linear1_weight);
        prepared.tables.backward(layout, (parameters, linear1), tables, scratch, gradient);
        squares / distinct.rows as f64
    }
}

impl<T: Real> Lane<T> {
    /// Strings `own` of the batch, forth and back.
    fn run(&mut self, ready: &Ready<T>, distinct: &Distinct, own: Range<usize>, block: &mut Block<T>) {
        self.gradient.clear();
        self.squares = 0.0;
        let n = ready.layout.n;
        let rows = T::of(distinct.rows as f64);
        // Blocks of equal size: a small last one would be slow.
        let blocks = own.len().div_ceil(block_strings(ready.layout));
        for index in 0..blocks {
            let piece = |index: usize| own.start + own.len() * index / blocks;
            let own = piece(index)..piece(index + 1);
            let strings = &distinct.strings[own.start * n..own.end * n];
            let (labels, counts) = (&distinct.labels[own.clone()], &distinct.counts[own]);
            block.forward(ready, strings);
            let squares = &mut self.squares;
            block.backward(ready, strings, &mut self.gradient, |row, output| {
                let (error, count) = (output - T::of(f64::from(labels[row])), f64::from(counts[row]));
                *squares += count * error.wide().powi(2);
                T::of(2.0 * count) * error / rows
            });
        }
    }
}
