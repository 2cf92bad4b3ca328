//! What the networks read: where strings come from, on the GPU.

use pudica_data::{Bits, Stream};

use super::cuda::{Arg, Cuda, Grid, Memory};
use super::forward::{Net, int, long, pointer};
use crate::{EnsembleError, Member};

/// The keys [R, 8] of each member's stream of this purpose.
pub(super) fn keys(seeds: impl Iterator<Item = u64>, purpose: &str) -> Vec<u32> {
    seeds.flat_map(|seed| key(seed, purpose)).collect()
}

/// A stream's key as ChaCha's eight words.
fn key(seed: u64, purpose: &str) -> [u32; 8] {
    let bytes = Stream::key(seed, purpose);
    std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])))
}

/// Where the strings of a training step come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Source {
    /// Drawn anew, each computed as often as it was drawn.
    Fresh,
    /// Drawn anew from so small a cube that all of it is computed, each string with the number of times it was drawn.
    Cube,
    /// Drawn from each member's training set, likewise.
    Set,
    /// Each member's whole training set.
    WholeSet,
}

/// The strings of training steps.
pub(super) struct TrainingStrings {
    source: Source,
    /// Strings computed.
    pub(super) strings: usize,
    /// Strings drawn.
    pub(super) rows: usize,
    /// [sets, strings, n]
    pub(super) bits: Memory<u8>,
    pub(super) sets: usize,
    /// How often each was drawn [R, strings], where that is not once.
    pub(super) counts: Option<Memory<u32>>,
    keys: Memory<u32>,
}

impl TrainingStrings {
    /// For members that train on `rows` strings a step.
    pub(super) fn new(cuda: &Cuda, n: usize, rows: usize, members: &[Member]) -> Result<Self, EnsembleError> {
        let replicas = members.len();
        let sets: Option<Vec<&Bits>> =
            members.iter().map(|member| member.task.training_set().map(|set| set.strings())).collect();
        let keys = cuda.upload(&keys(members.iter().map(|member| member.seed), "train-batch"))?;
        let (source, strings, sets, bits) = match sets {
            Some(all) => {
                let size = all.first().map_or(0, |set| set.rows());
                if all.iter().any(|set| set.rows() != size) {
                    return Err(EnsembleError::Members("on a GPU their training sets must be equally large".into()));
                }
                let source = if rows == size { Source::WholeSet } else { Source::Set };
                let bits: Vec<u8> = all.iter().flat_map(|set| set.data()).copied().collect();
                (source, size, replicas, cuda.upload(&bits)?)
            }
            None if n <= 20 && 1 << n < rows => (Source::Cube, 1 << n, 1, cuda.upload(Bits::cube(n)?.data())?),
            None => (Source::Fresh, rows, replicas, cuda.zeros(replicas * rows * n)?),
        };
        let counts = match source {
            Source::Cube | Source::Set => Some(cuda.zeros(replicas * strings)?),
            Source::Fresh | Source::WholeSet => None,
        };
        Ok(Self { source, strings, rows, bits, sets, counts, keys })
    }

    /// Draw the strings of step `*step`, and label them; labels that do not change are left as they are.
    pub(super) fn draw(&self, net: &Net, step: u64, replicas: usize) -> Result<(), EnsembleError> {
        let n = net.dims.n;
        if let Some(counts) = &self.counts {
            net.cuda.clear(counts)?;
        }
        let counts = self.counts.as_ref().map_or(0, Memory::pointer);
        let drawn = net.elements(self.rows, replicas, 0.0);
        match self.source {
            Source::Fresh => draw_bits(net.cuda, &self.bits, &self.keys, Ok(step), (replicas, self.rows * n)),
            Source::Cube => {
                let arguments = [pointer(counts), pointer(self.keys.pointer()), pointer(step), int(self.rows), int(n)];
                net.cuda.launch("count_cube", drawn, &arguments)
            }
            Source::Set => {
                let size = int(self.strings);
                let arguments = [pointer(counts), pointer(self.keys.pointer()), pointer(step), int(self.rows), size];
                net.cuda.launch("count_set", drawn, &arguments)
            }
            Source::WholeSet => Ok(()),
        }
    }
}

/// bits [R, total] of each replica's stream; its number is at a place in GPU memory, or given.
pub(super) fn draw_bits(
    cuda: &Cuda,
    bits: &Memory<u8>,
    keys: &Memory<u32>,
    index: Result<u64, u64>,
    (replicas, total): (usize, usize),
) -> Result<(), EnsembleError> {
    let (place, index) = match index {
        Ok(place) => (place, 0),
        Err(index) => (0, index),
    };
    let arguments = [pointer(bits.pointer()), pointer(keys.pointer()), pointer(place), Arg::Long(index), long(total)];
    cuda.launch("draw_bits", Grid::elements(total.div_ceil(64), replicas, 0.0), &arguments)
}

/// The members' rules for labels.
pub(super) struct Labels {
    rules: Memory<u32>,
    data: Memory<u32>,
}

impl Labels {
    pub(super) fn new(cuda: &Cuda, members: &[Member]) -> Result<Self, EnsembleError> {
        let (rules, data) = super::labels::rules(members.iter().map(|member| member.task.target()))?;
        Ok(Self { rules: cuda.upload(&rules)?, data: cuda.upload(&data)? })
    }

    /// labels [R, strings] of bits [sets, strings, n].
    pub(super) fn put(
        &self,
        net: &Net,
        labels: &Memory<f32>,
        bits: &Memory<u8>,
        (replicas, strings, sets): (usize, usize, usize),
    ) -> Result<(), EnsembleError> {
        net.cuda.launch(
            "label",
            net.elements(strings, replicas, 0.0),
            &[
                pointer(labels.pointer()),
                pointer(bits.pointer()),
                pointer(self.rules.pointer()),
                pointer(self.data.pointer()),
                int(strings),
                int(net.dims.n),
                int(sets),
            ],
        )
    }
}
