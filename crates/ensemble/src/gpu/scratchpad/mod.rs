//! The scratchpad's encoder-decoder, in TF32: attention on tensor cores without storing its weights, everything else a warp for 32 rows.
//! `places` says where parameters lie, `buffers` what is kept, `forward` and `backward` are the passes, written as launches of the kernels
//! in `kernels/scratchpad*.cu`.

mod backward;
mod buffers;
mod forward;
mod places;

use pudica_nn::{Embed, EncoderDecoderConfig};

use self::backward::{Outcome, backward_memory};
use self::buffers::{Activations, Gradients, Rows};
use self::forward::{Net, Tokens};
use self::places::Places;
use super::buffers::{Allocator, Floats};
use super::cuda::{Cuda, Grid, Memory, THREADS, unusable};
use super::forward::{Inputs, int, pointer};
use super::networks::{Networks, Size, Sizes};
use super::shape::Dims;
use super::strings::{draw_bits, keys};
use super::trained::Trained;
use crate::{EnsembleError, Member, Precision};

/// The width, and the heads, that there are kernels for.
const WIDTH: usize = 32;
const HEADS: usize = 2;

/// The paper's longest strings; how long they may be on a GPU depends on the shared memory that a block may have.
const LONGEST: usize = 1024;

/// Which networks there are kernels for, in words.
pub const SCRATCHPADS_ON_GPU: &str = "d = 32, ff = 32, 2 heads, up to 1,024 bits, no training set";

/// Rows of all replicas that fill the GPU.
const ENOUGH_ROWS: usize = 1 << 20;

/// Whether there are kernels for such networks: the paper's.
pub(super) fn is_for(config: &EncoderDecoderConfig) -> bool {
    let EncoderDecoderConfig { n, d, heads, ff, layers, .. } = *config;
    (d, heads, ff) == (WIDTH, HEADS, WIDTH) && layers > 0 && (1..=LONGEST).contains(&n)
}

/// What the kernels are compiled for.
pub(super) fn dims(config: &EncoderDecoderConfig) -> Dims {
    let EncoderDecoderConfig { n, d, layers, heads, ff, embed } = *config;
    Dims { n, d, heads, ff, layers, concat: embed == Embed::Concat }
}

/// The bytes of GPU memory that training takes, by the number of replicas.
pub(super) fn training_bytes(
    config: &EncoderDecoderConfig,
    batch: usize,
) -> Result<impl Fn(usize) -> Result<usize, EnsembleError> + use<>, EnsembleError> {
    let (n, places) = (config.n, Places::of(config)?);
    let total = places.count.next_multiple_of(32);
    Ok(move |replicas| {
        let rows = Rows { n, strings: batch, replicas };
        let mut bytes = 3 * replicas * total * size_of::<f32>();
        let mut counter = Allocator::Counting(Precision::Tf32, &mut bytes);
        Activations::new(&places, rows, &mut counter)?;
        Gradients::new(rows, total, &mut counter)?;
        Ok(bytes)
    })
}

/// A forward pass, and what the decoders read in it.
pub(super) struct Pass {
    activations: Activations,
    /// [members, B, n]
    inputs: Memory<u8>,
    /// Whether they would read something else next.
    changed: Memory<u32>,
}

/// Scratchpads in training.
pub(super) struct Scratchpads {
    places: Places,
    sizes: Sizes,
    members: usize,
    /// Strings in a step, and where they come from.
    strings: usize,
    keys: Memory<u32>,
    bits: Memory<u8>,
    labels: Memory<f32>,
    pass: Pass,
    gradients: Gradients,
    largest: Memory<u32>,
}

impl Scratchpads {
    /// For members that train on `strings` strings a step.
    pub(super) fn new(
        cuda: &Cuda,
        config: &EncoderDecoderConfig,
        strings: usize,
        members: &[Member],
    ) -> Result<Self, EnsembleError> {
        if !is_for(config) || members.iter().any(|member| member.task.training_set().is_some()) {
            let problem = format!("scratchpads are made for the GPU only as in the paper: {SCRATCHPADS_ON_GPU}");
            return Err(unusable(format!("{problem}; use --device cpu")));
        }
        let (places, n) = (Places::of(config)?, config.n);
        if backward_memory(n) > cuda.most_shared() {
            let problem = format!("this GPU has too little shared memory to train scratchpads of {n} bits");
            return Err(unusable(format!("{problem}; use --device cpu")));
        }
        let width = if config.embed == Embed::Concat { WIDTH / 2 } else { WIDTH };
        let positions = |start: usize| start..start + n * width;
        let sizes = Sizes {
            n,
            outputs: n,
            count: places.count,
            total: places.count.next_multiple_of(32),
            quiet: [positions(places.encoder.position), positions(places.decoder.position)],
            norms: places.norms.clone(),
        };
        let size = Size { replicas: members.len(), strings };
        let rows = Rows::of(n, size);
        let pass = Pass::new(cuda, &places, rows, members.len())?;
        let gradients = Gradients::new(rows, sizes.total, &mut Allocator::Real(cuda))?;
        let attentions =
            |layers: &[places::LayerPlaces]| layers.iter().map(|layer| layer.attentions.len()).sum::<usize>();
        let attentions = attentions(&places.encoder.layers) + attentions(&places.decoder.layers);
        Ok(Self {
            keys: cuda.upload(&keys(members.iter().map(|member| member.seed), "train-batch"))?,
            bits: cuda.zeros(members.len() * strings * n)?,
            labels: cuda.zeros(members.len() * strings * n)?,
            largest: cuda.zeros(attentions * members.len())?,
            members: members.len(),
            strings,
            pass,
            gradients,
            places,
            sizes,
        })
    }

    fn net<'a>(&'a self, cuda: &'a Cuda, parameters: u64, size: Size, keep: bool) -> Net<'a> {
        let (places, rows, total) = (&self.places, Rows::of(self.sizes.n, size), self.sizes.total);
        Net { cuda, places, rows, parameters, total, keep }
    }

    fn inputs(&self, pass: &Pass) -> Tokens {
        Tokens { at: pass.inputs.pointer(), sets: self.members }
    }
}

impl Pass {
    fn new(cuda: &Cuda, places: &Places, rows: Rows, members: usize) -> Result<Self, EnsembleError> {
        Ok(Self {
            activations: Activations::new(places, rows, &mut Allocator::Real(cuda))?,
            inputs: cuda.zeros(members * rows.count())?,
            changed: cuda.zeros(1)?,
        })
    }
}

impl Networks for Scratchpads {
    type Activations = Pass;

    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn room(&self, cuda: &Cuda, most: Size) -> Result<Pass, EnsembleError> {
        Pass::new(cuda, &self.places, Rows::of(self.sizes.n, most), self.members)
    }

    fn enough_replicas(&self, strings: usize) -> usize {
        ENOUGH_ROWS / (strings * self.sizes.n).max(ENOUGH_ROWS / 256)
    }

    fn label(
        &self,
        cuda: &Cuda,
        room: &Pass,
        (labels, bits): (&Memory<f32>, &Memory<u8>),
        size: Size,
        sets: usize,
    ) -> Result<(), EnsembleError> {
        let blocks = (size.strings.div_ceil(THREADS / 32) as u32, size.replicas as u32, 1);
        cuda.launch(
            "prefix_parities",
            Grid { blocks, threads: THREADS as u32, shared: 0, numbers: 0.0 },
            &[
                pointer(labels.pointer()),
                pointer(room.inputs.pointer()),
                pointer(bits.pointer()),
                int(size.strings),
                int(self.sizes.n),
                int(sets),
            ],
        )
    }

    fn forward(&self, cuda: &Cuda, inputs: &Inputs, room: &mut Pass, size: Size) -> Result<(), EnsembleError> {
        let bits = Tokens { at: inputs.bits, sets: inputs.sets };
        self.net(cuda, inputs.parameters, size, false).forward(&room.activations, bits, self.inputs(room))
    }

    fn outputs<'a>(&self, room: &'a Pass) -> &'a Floats {
        &room.activations.outputs
    }

    fn variances<'a>(&self, room: &'a Pass) -> Vec<(&'a Floats, usize)> {
        let Activations { encoder, decoder, .. } = &room.activations;
        let of_stack = |stack: &'a buffers::Stack| {
            stack.layers.iter().flat_map(|layer| &layer.normed).chain([&stack.top]).map(|normed| &normed.variance)
        };
        of_stack(encoder).chain(of_stack(decoder)).map(|variance| (variance, self.sizes.n)).collect()
    }

    fn compute_gradients(&self, cuda: &Cuda, trained: &Trained) -> Result<u64, EnsembleError> {
        let (n, replicas, strings) = (self.sizes.n, self.members, self.strings);
        let size = Size { replicas, strings };
        draw_bits(cuda, &self.bits, &self.keys, Ok(trained.step.pointer()), (replicas, strings * n))?;
        self.label(cuda, &self.pass, (&self.labels, &self.bits), size, replicas)?;
        let net = self.net(cuda, trained.parameters.pointer(), size, true);
        let (bits, inputs) = (Tokens { at: self.bits.pointer(), sets: replicas }, self.inputs(&self.pass));
        net.forward(&self.pass.activations, bits, inputs)?;
        let outcome = Outcome { labels: self.labels.pointer(), bits, inputs, trained, largest: &self.largest };
        net.backward(&self.pass.activations, &self.gradients, &outcome)?;
        Ok(self.gradients.parameters.at())
    }

    fn read_own_outputs(&self, cuda: &Cuda, room: &Pass, size: Size) -> Result<Option<bool>, EnsembleError> {
        cuda.clear(&room.changed)?;
        let rows = Rows::of(self.sizes.n, size);
        cuda.launch(
            "read_own_outputs",
            Grid::elements(rows.count(), size.replicas, 1.0),
            &[
                pointer(room.inputs.pointer()),
                pointer(room.changed.pointer()),
                pointer(room.activations.outputs.at()),
                int(self.sizes.n),
                super::forward::long(rows.count()),
            ],
        )?;
        Ok(Some(cuda.read(&room.changed, 0, 1)?[0] != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_strings_fit_in_shared_memory() {
        // An A100's; an H100 has more.
        assert!(backward_memory(LONGEST) <= 163 << 10);
    }
}
