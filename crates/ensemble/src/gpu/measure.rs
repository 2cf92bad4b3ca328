//! Measuring on the GPU: forward passes with nothing kept.

use std::collections::HashMap;
use std::time::Instant;

use pudica_data::Bits;
use rayon::prelude::*;

use super::cuda::{Arg, Cuda, Grid, Matrix, Memory, Numbers, Product, free_memory, number_bytes};
use super::engine::{Gpu, lock};
use super::forward::{Inputs, int, long, pointer};
use super::networks::{Networks, Size, Sizes};
use super::shape::Dims;
use super::strings::{draw_bits, keys};
use crate::{EnsembleError, Noise, NoisyResponse, NormSummary, Precision, Strings};

/// Strings that a prediction computes at once.
const PIECE: usize = 1024;

/// What measuring keeps between two calls.
pub(super) struct Measuring<A> {
    room: Option<Room<A>>,
    /// Keys of the members' streams by purpose [R, 8], and those of noise [draws * R, 8].
    keys: HashMap<String, Memory<u32>>,
    noisy: Option<Memory<f32>>,
}

impl<A> Default for Measuring<A> {
    fn default() -> Self {
        Self { room: None, keys: HashMap::new(), noisy: None }
    }
}

/// Memory for so many networks on so many strings each.
struct Room<A> {
    size: Size,
    activations: A,
    /// [R, strings, n] at most.
    bits: Memory<u8>,
    labels: Memory<f32>,
    /// Outputs without noise.
    base: Numbers,
    /// [R, 3]
    scores: Memory<f64>,
}

/// Strings in GPU memory.
#[derive(Clone, Copy)]
struct Loaded {
    strings: usize,
    sets: usize,
}

impl<N: Networks> Gpu<N> {
    pub(super) fn measure_outputs(&mut self, strings: Strings) -> Result<Vec<Vec<f32>>, EnsembleError> {
        self.check(strings)?;
        let pieces: Vec<Vec<Bits>> = match strings {
            Strings::Fresh { .. } => return self.piece_outputs(strings),
            Strings::Shared(bits) => vec![bits.pieces(PIECE).collect()],
            Strings::Each(all) => all.iter().map(|bits| bits.pieces(PIECE).collect()).collect(),
        };
        let mut outputs = vec![Vec::new(); self.members.len()];
        for piece in 0..pieces[0].len() {
            let each: Vec<Bits> = pieces.iter().map(|own| own[piece].clone()).collect();
            let piece = if pieces.len() == 1 { Strings::Shared(&each[0]) } else { Strings::Each(&each) };
            for (all, some) in outputs.iter_mut().zip(self.piece_outputs(piece)?) {
                all.extend(some);
            }
        }
        Ok(outputs)
    }

    fn piece_outputs(&mut self, strings: Strings) -> Result<Vec<Vec<f32>>, EnsembleError> {
        let loaded = self.pass(strings, 1)?;
        self.outputs(loaded)
    }

    /// The outputs of the last pass.
    fn outputs(&self, loaded: Loaded) -> Result<Vec<Vec<f32>>, EnsembleError> {
        let each = loaded.strings * self.networks.sizes().outputs;
        let shared = self.shared();
        let cuda = lock(&shared)?;
        let Some(outputs) = self.networks.outputs(&self.room().activations).memory() else { return Ok(Vec::new()) };
        let outputs = cuda.read_rounded(outputs, self.members.len() * each)?;
        Ok(outputs.chunks(each).map(<[f32]>::to_vec).collect())
    }

    /// The outputs of networks that read what they wrote. As long as that is not what they read, another pass: it is right at least one
    /// position further, since everything up to the first difference was computed from what they wrote. So there are never more passes than
    /// positions.
    pub(super) fn measure_decoded(&mut self, strings: Strings) -> Result<Option<Vec<Vec<f32>>>, EnsembleError> {
        self.check(strings)?;
        let loaded = self.pass(strings, 1)?;
        let shared = self.shared();
        let size = Size { replicas: self.members.len(), strings: loaded.strings };
        for _ in 0..self.networks.sizes().n {
            let cuda = lock(&shared)?;
            match self.networks.read_own_outputs(&cuda, &self.room().activations, size)? {
                None => return Ok(None),
                Some(true) => self.forward(&cuda, self.trained.parameters.pointer(), size.replicas, loaded)?,
                Some(false) => break,
            }
        }
        self.outputs(loaded).map(Some)
    }

    pub(super) fn measure_scores(&mut self, strings: Strings) -> Result<Vec<(f64, f64)>, EnsembleError> {
        self.check(strings)?;
        let loaded = self.pass(strings, 1)?;
        let scores = self.scores(loaded, self.members.len())?;
        Ok(scores.into_iter().map(|[error, right, _]| (error, right)).collect())
    }

    pub(super) fn measure_noise(
        &mut self,
        strings: Strings,
        noise: Noise,
    ) -> Result<Vec<Vec<NoisyResponse>>, EnsembleError> {
        self.check(strings)?;
        let (replicas, total) = (self.members.len(), self.networks.sizes().total);
        let enough = self.networks.enough_replicas(self.loaded(strings).strings);
        let at_once = (enough / replicas).clamp(1, noise.draws.max(1));
        let loaded = self.pass(strings, at_once)?;
        let base = self.scores(loaded, replicas)?;
        let shared = self.shared();
        let cuda = lock(&shared)?;
        self.keep_outputs(&cuda, replicas * loaded.strings * self.networks.sizes().outputs)?;
        let noisy = match self.measuring.noisy.take() {
            Some(noisy) => noisy,
            None => cuda.zeros(self.room().size.replicas * total)?,
        };
        // Scores stay on the GPU until all draws are made, so that it never waits.
        let scores = cuda.zeros::<f64>(3 * noise.draws * replicas)?;
        // So do the keys of all draws: an upload waits for what was launched before it.
        let name = format!("noise {} {}", noise.purpose, noise.draws);
        if !self.measuring.keys.contains_key(&name) {
            let draw_keys = (0..noise.draws).into_par_iter().flat_map_iter(|draw| {
                let purpose = format!("{}/0/{draw}", noise.purpose);
                keys(self.members.iter().map(|member| member.seed), &purpose)
            });
            let draw_keys = cuda.upload(&draw_keys.collect::<Vec<u32>>())?;
            self.measuring.forget_old_keys();
            self.measuring.keys.insert(name.clone(), draw_keys);
        }
        for first in (0..noise.draws).step_by(at_once) {
            let draws = at_once.min(noise.draws - first);
            let chunk = self.measuring.keys[&name].pointer() + (8 * first * replicas * size_of::<u32>()) as u64;
            let quiet = &self.networks.sizes().quiet;
            cuda.launch(
                "shake",
                Grid::elements(total.div_ceil(16), draws * replicas, 0.0),
                &[
                    pointer(noisy.pointer()),
                    pointer(self.trained.parameters.pointer()),
                    pointer(chunk),
                    Arg::Long(noise.index),
                    Arg::Float(noise.rho as f32),
                    long(total),
                    long(quiet[0].start),
                    long(quiet[0].end),
                    long(quiet[1].start),
                    long(quiet[1].end),
                    int(replicas),
                ],
            )?;
            self.forward(&cuda, noisy.pointer(), draws * replicas, loaded)?;
            let place = scores.pointer() + (3 * first * replicas * size_of::<f64>()) as u64;
            self.put_scores(&cuda, place, loaded, draws * replicas, true)?;
        }
        self.measuring.noisy = Some(noisy);
        let mut responses = vec![Vec::with_capacity(noise.draws); replicas];
        for (index, score) in cuda.read(&scores, 0, 3 * noise.draws * replicas)?.chunks(3).enumerate() {
            let replica = index % replicas;
            let loss_rise = score[0] - base[replica][0];
            responses[replica].push(NoisyResponse { loss_rise, output_shift: score[2] });
        }
        Ok(responses)
    }

    pub(super) fn measure_norms(&mut self, strings: Strings) -> Result<Vec<NormSummary>, EnsembleError> {
        self.check(strings)?;
        let loaded = self.pass(strings, 1)?;
        let names = &self.networks.sizes().norms;
        let (replicas, norms, b) = (self.members.len(), names.len(), loaded.strings);
        let shared = self.shared();
        let cuda = lock(&shared)?;
        let plane = replicas * b * norms;
        let out = cuda.zeros::<f32>(4 * plane)?;
        for (norm, (variance, positions)) in self.networks.variances(&self.room().activations).into_iter().enumerate() {
            cuda.launch(
                "norm_factors",
                Grid::elements(b, replicas, 0.0),
                &[
                    pointer(out.pointer()),
                    pointer(variance.at()),
                    int(replicas),
                    int(b),
                    int(positions),
                    int(norm),
                    int(norms),
                ],
            )?;
        }
        let all = cuda.read(&out, 0, 4 * plane)?;
        let own = |kind: usize, replica: usize| {
            let start = kind * plane + replica * b * norms;
            all[start..start + b * norms].to_vec()
        };
        Ok((0..replicas)
            .map(|replica| NormSummary {
                names: names.clone(),
                unbiased_max: own(0, replica),
                unbiased_mean: own(1, replica),
                theory_max: own(2, replica),
                theory_mean: own(3, replica),
            })
            .collect())
    }

    /// Whether all strings of n bits are so few.
    fn is_cube(&self, rows: usize) -> bool {
        let n = self.networks.sizes().n;
        n <= 24 && 1usize << n <= rows
    }

    /// How these strings will lie in GPU memory.
    fn loaded(&self, strings: Strings) -> Loaded {
        let replicas = self.members.len();
        match strings {
            Strings::Fresh { rows, .. } if self.is_cube(rows) => {
                Loaded { strings: 1 << self.networks.sizes().n, sets: 1 }
            }
            Strings::Fresh { rows, .. } => Loaded { strings: rows, sets: replicas },
            Strings::Shared(bits) => Loaded { strings: bits.rows(), sets: 1 },
            Strings::Each(all) => Loaded { strings: all[0].rows(), sets: replicas },
        }
    }

    /// Load strings with their labels and put them through the members, with room for `draws` noisy copies of them.
    fn pass(&mut self, strings: Strings, draws: usize) -> Result<Loaded, EnsembleError> {
        let shared = self.shared();
        let cuda = lock(&shared)?;
        let (replicas, n) = (self.members.len(), self.networks.sizes().n);
        let loaded = self.loaded(strings);
        self.make_room(&cuda, Size { replicas: replicas * draws, strings: loaded.strings })?;
        match strings {
            Strings::Fresh { rows, .. } if self.is_cube(rows) => {
                let bits = Bits::cube(n)?;
                cuda.write(&mut self.room_mut().bits, bits.data())?;
            }
            Strings::Fresh { rows, purpose, index } => {
                if !self.measuring.keys.contains_key(purpose) {
                    let keys = cuda.upload(&keys(self.members.iter().map(|member| member.seed), purpose))?;
                    self.measuring.forget_old_keys();
                    self.measuring.keys.insert(purpose.to_string(), keys);
                }
                let (bits, keys) = (&self.room().bits, &self.measuring.keys[purpose]);
                draw_bits(&cuda, bits, keys, Err(index), (replicas, rows * n))?;
            }
            Strings::Shared(bits) => cuda.write(&mut self.room_mut().bits, bits.data())?,
            Strings::Each(all) => {
                let bits: Vec<u8> = all.iter().flat_map(|bits| bits.data()).copied().collect();
                cuda.write(&mut self.room_mut().bits, &bits)?;
            }
        }
        let Room { activations, labels, bits, .. } = self.room();
        let size = Size { replicas, strings: loaded.strings };
        self.networks.label(&cuda, activations, (labels, bits), size, loaded.sets)?;
        self.forward(&cuda, self.trained.parameters.pointer(), replicas, loaded)?;
        Ok(loaded)
    }

    /// Put the strings loaded through networks of these parameters [replicas, P], kept as f32.
    fn forward(&mut self, cuda: &Cuda, parameters: u64, replicas: usize, loaded: Loaded) -> Result<(), EnsembleError> {
        let size = Size { replicas, strings: loaded.strings };
        let room = self.measuring.room.as_mut().expect("a pass makes room first");
        let inputs = Inputs { parameters, bits: room.bits.pointer(), sets: loaded.sets };
        self.networks.forward(cuda, &inputs, &mut room.activations, size)
    }

    /// Error and accuracy of the outputs just computed.
    fn scores(&self, loaded: Loaded, replicas: usize) -> Result<Vec<[f64; 3]>, EnsembleError> {
        let shared = self.shared();
        let cuda = lock(&shared)?;
        let scores = &self.room().scores;
        self.put_scores(&cuda, scores.pointer(), loaded, replicas, false)?;
        Ok(cuda.read(scores, 0, 3 * replicas)?.chunks(3).map(|score| [score[0], score[1], score[2]]).collect())
    }

    /// Error, accuracy and distance from the outputs kept, of the outputs just computed, into a place [replicas, 3] in GPU memory.
    fn put_scores(
        &self,
        cuda: &Cuda,
        place: u64,
        loaded: Loaded,
        replicas: usize,
        against_kept: bool,
    ) -> Result<(), EnsembleError> {
        let room = self.room();
        let mut grid = Grid::elements(1, replicas, 0.0);
        grid.blocks.0 = 1;
        cuda.launch(
            "score",
            grid,
            &[
                pointer(place),
                pointer(self.networks.outputs(&room.activations).at()),
                pointer(room.labels.pointer()),
                pointer(if against_kept { room.base.pointer() } else { 0 }),
                int(loaded.strings * self.networks.sizes().outputs),
                int(self.members.len()),
            ],
        )
    }

    fn keep_outputs(&self, cuda: &Cuda, length: usize) -> Result<(), EnsembleError> {
        match self.networks.outputs(&self.room().activations).memory() {
            Some(outputs) => cuda.copy_numbers(&self.room().base, outputs, length),
            None => Ok(()),
        }
    }

    fn make_room(&mut self, cuda: &Cuda, size: Size) -> Result<(), EnsembleError> {
        if let Some(Room { size: there, .. }) = &self.measuring.room
            && there.replicas >= size.replicas
            && there.strings >= size.strings
        {
            return Ok(());
        }
        // What is there is freed before more is asked for; noisy weights are made again when noise is asked for.
        self.measuring.room = None;
        self.measuring.noisy = None;
        cuda.finish()?;
        let (own, strings) = (self.members.len(), size.strings);
        let Sizes { n, outputs, .. } = *self.networks.sizes();
        self.measuring.room = Some(Room {
            size,
            activations: self.networks.room(cuda, size)?,
            bits: cuda.zeros(own * strings * n)?,
            labels: cuda.zeros(own * strings * outputs)?,
            base: cuda.numbers(own * strings * outputs)?,
            scores: cuda.zeros(3 * own)?,
        });
        Ok(())
    }

    fn room(&self) -> &Room<N::Activations> {
        self.measuring.room.as_ref().expect("a pass makes room first")
    }

    fn room_mut(&mut self) -> &mut Room<N::Activations> {
        self.measuring.room.as_mut().expect("a pass makes room first")
    }
}

impl<A> Measuring<A> {
    /// Purposes that name a step are many; their keys are cheap to make again.
    fn forget_old_keys(&mut self) {
        if self.keys.len() >= 64 {
            self.keys.clear();
        }
    }
}

/// The most this GPU does of the two things a step consists of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceilings {
    /// Bytes read and written a second by a large copy.
    pub copy_bytes_per_second: f64,
    /// Operations a second of a large matrix product at this precision.
    pub product_flops_per_second: f64,
}

/// Measure them: a copy of 2 GiB (or what fits), and products of 8192 x 8192 matrices.
pub fn ceilings(precision: Precision) -> Result<Ceilings, EnsembleError> {
    const SIDE: usize = 8192;
    let dims = Dims { n: 1, d: 2, heads: 1, ff: 1, layers: 1, concat: true };
    let shared = Cuda::open(&dims, precision, false)?;
    let cuda = lock(&shared)?;
    let bytes = number_bytes(precision);
    let length = (free_memory()? / (4 * bytes)).clamp(SIDE * SIDE, (2 << 30) / bytes);
    let (a, b, c) = (cuda.numbers(length)?, cuda.numbers(length)?, cuda.numbers(SIDE * SIDE)?);
    let square = |numbers: &Numbers| Matrix::at(numbers.pointer(), 0, SIDE, 0);
    let best = |work: &dyn Fn() -> Result<(), EnsembleError>| -> Result<f64, EnsembleError> {
        let mut fastest = f64::INFINITY;
        for _ in 0..6 {
            cuda.finish()?;
            let start = Instant::now();
            work()?;
            cuda.finish()?;
            fastest = fastest.min(start.elapsed().as_secs_f64());
        }
        Ok(fastest)
    };
    let copy = best(&|| cuda.copy_numbers(&b, &a, length))?;
    let (a, b, c) = (square(&a), square(&b), square(&c));
    let product = best(&|| {
        let (m, n, k, alpha, beta, batch) = (SIDE, SIDE, SIDE, 1.0, 0.0, 1);
        cuda.product(Product { m, n, k, alpha, a, b, beta, c, batch, halves: false })
    })?;
    Ok(Ceilings {
        copy_bytes_per_second: (2 * bytes * length) as f64 / copy,
        product_flops_per_second: 2.0 * (SIDE as f64).powi(3) / product,
    })
}
