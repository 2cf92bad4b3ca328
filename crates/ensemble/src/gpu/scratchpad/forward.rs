//! From strings to outputs, for all scratchpads at once.

use super::buffers::{Activations, Attention, Layer, Normed, Rows, Stack};
use super::places::{LayerPlaces, Places, StackPlaces};
use super::{HEADS, WIDTH};
use crate::EnsembleError;
use crate::gpu::buffers::Floats;
use crate::gpu::cuda::{Arg, Cuda, Grid, THREADS};
use crate::gpu::forward::{int, long, pointer};

/// What a vector is whose norm's scale and shift are not to be applied: NO_NORM in scratchpad.cu.
const NO_NORM: Arg = Arg::Long(u64::MAX);

/// Blocks of kernels over rows that fill the GPU.
const ENOUGH_BLOCKS: usize = 1056;

/// A vector for every row, and the norm whose scale and shift it lacks.
#[derive(Clone, Copy)]
pub(super) struct Vectors<'a> {
    pub(super) at: &'a Floats,
    pub(super) norm: Option<usize>,
}

impl<'a> Vectors<'a> {
    pub(super) fn plain(at: &'a Floats) -> Self {
        Self { at, norm: None }
    }

    pub(super) fn normed(of: &'a Normed, norm: usize) -> Self {
        Self { at: &of.xhat, norm: Some(norm) }
    }

    /// What comes out of a layer.
    pub(super) fn out_of(places: &LayerPlaces, own: &'a Layer) -> Self {
        let last = own.normed.len() - 1;
        Self::normed(&own.normed[last], places.norms[last])
    }

    pub(super) fn norm(&self) -> Arg {
        self.norm.map_or(NO_NORM, long)
    }
}

/// Where numbers begin, or nothing: a kernel leaves out what has no place.
pub(super) fn pointer_if(asked: bool, of: &Floats) -> Arg {
    pointer(if asked { of.at() } else { 0 })
}

/// What the decoder's layers read of the encoder.
pub(super) type Memory<'a> = Option<Vectors<'a>>;

/// The tokens of a stack: where they are, and of how many replicas.
#[derive(Clone, Copy)]
pub(super) struct Tokens {
    pub(super) at: u64,
    pub(super) sets: usize,
}

/// Scratchpads of these parameters [R, total] on the GPU.
#[derive(Clone, Copy)]
pub(super) struct Net<'a> {
    pub(super) cuda: &'a Cuda,
    pub(super) places: &'a Places,
    pub(super) rows: Rows,
    pub(super) parameters: u64,
    pub(super) total: usize,
    /// Whether the way back follows, and needs what lies between.
    pub(super) keep: bool,
}

impl Net<'_> {
    /// Warps that have a tile of rows each, or several where there are more than fill the GPU; vectors are read and written so many times.
    pub(super) fn each_tile(&self, vectors: usize) -> Grid {
        let Rows { replicas, .. } = self.rows;
        let enough = (ENOUGH_BLOCKS / replicas).max(1);
        let blocks = self.rows.tiles().div_ceil(THREADS / 32).min(enough);
        let numbers = (replicas * self.rows.count() * vectors * WIDTH) as f64;
        Grid { blocks: (blocks as u32, replicas as u32, 1), threads: THREADS as u32, shared: 0, numbers }
    }

    /// Rows and tiles of a replica, which end the arguments of every kernel over rows.
    pub(super) fn extent(&self) -> [Arg; 2] {
        [long(self.rows.count()), long(self.rows.tiles())]
    }

    pub(super) fn launch<const A: usize>(
        &self,
        kernel: &'static str,
        grid: Grid,
        arguments: [Arg; A],
    ) -> Result<(), EnsembleError> {
        let all: Vec<Arg> = arguments.into_iter().chain(self.extent()).collect();
        self.cuda.launch(kernel, grid, &all)
    }

    /// Fills `a` with the outputs of strings and of what the decoder reads.
    pub(super) fn forward(&self, a: &Activations, bits: Tokens, inputs: Tokens) -> Result<(), EnsembleError> {
        self.stack(&self.places.encoder, &a.encoder, bits, None)?;
        let memory = Vectors::normed(&a.encoder.top, self.places.encoder.norm);
        self.stack(&self.places.decoder, &a.decoder, inputs, Some(memory))?;
        self.launch(
            "read_out",
            self.each_tile(1),
            [
                pointer(a.outputs.at()),
                pointer(a.decoder.top.xhat.at()),
                pointer(self.parameters),
                long(self.total),
                long(self.places.decoder.norm),
                long(self.places.head),
            ],
        )
    }

    fn stack(&self, places: &StackPlaces, own: &Stack, tokens: Tokens, memory: Memory) -> Result<(), EnsembleError> {
        self.launch_embed(places, &own.embedded, tokens)?;
        let mut x = Vectors::plain(&own.embedded);
        for (places, layer) in places.layers.iter().zip(&own.layers) {
            x = self.layer(places, layer, x, memory)?;
        }
        self.launch(
            "norm_rows",
            self.each_tile(2),
            [
                pointer(own.top.xhat.at()),
                pointer(own.top.variance.at()),
                pointer(x.at.at()),
                pointer(self.parameters),
                long(self.total),
                x.norm(),
            ],
        )
    }

    fn launch_embed(&self, places: &StackPlaces, embedded: &Floats, tokens: Tokens) -> Result<(), EnsembleError> {
        self.launch(
            "embed_rows",
            self.each_tile(1),
            [
                pointer(embedded.at()),
                pointer(tokens.at),
                pointer(self.parameters),
                long(self.total),
                long(places.token),
                long(places.position),
                int(self.rows.n),
                int(tokens.sets),
            ],
        )
    }

    /// One layer; gives what comes out of it. Its first attention is to itself, in the decoder to what is before; the second to the memory.
    fn layer<'a>(
        &self,
        places: &LayerPlaces,
        own: &'a Layer,
        input: Vectors<'a>,
        memory: Memory,
    ) -> Result<Vectors<'a>, EnsembleError> {
        let mut x = input;
        for (index, (at, attention)) in places.attentions.iter().zip(&own.attentions).enumerate() {
            match memory.filter(|_| index > 0) {
                None => self.project(attention, x, at.projection, [true; 3])?,
                Some(memory) => {
                    self.project(attention, x, at.projection, [true, false, false])?;
                    self.project(attention, memory, at.projection, [false, true, true])?;
                }
            }
            self.attend(attention, memory.is_some() && index == 0)?;
            let normed = &own.normed[index];
            if index + 1 == places.attentions.len() {
                return self.finish_layer(places, own, x);
            }
            self.launch(
                "norm_attended",
                self.each_tile(3),
                [
                    pointer(normed.xhat.at()),
                    pointer(normed.variance.at()),
                    pointer(attention.attended.at()),
                    pointer(x.at.at()),
                    pointer(self.parameters),
                    long(self.total),
                    x.norm(),
                    long(at.out),
                ],
            )?;
            x = Vectors::normed(normed, places.norms[index]);
        }
        Ok(x)
    }

    /// What follows the last attention of a layer, which read x.
    fn finish_layer<'a>(&self, places: &LayerPlaces, own: &'a Layer, x: Vectors) -> Result<Vectors<'a>, EnsembleError> {
        let (last, before) = (own.normed.len() - 1, own.normed.len() - 2);
        self.launch(
            "norm_fed_forward",
            self.each_tile(if self.keep { 5 } else { 3 }),
            [
                pointer_if(self.keep, &own.normed[before].xhat),
                pointer(own.normed[before].variance.at()),
                pointer_if(self.keep, &own.hidden),
                pointer(own.normed[last].xhat.at()),
                pointer(own.normed[last].variance.at()),
                pointer(own.attentions[before].attended.at()),
                pointer(x.at.at()),
                pointer(self.parameters),
                long(self.total),
                x.norm(),
                long(places.attentions[before].out),
                long(places.norms[before]),
                long(places.feed_forward),
            ],
        )?;
        Ok(Vectors::out_of(places, own))
    }

    /// Queries, keys and values of x, those that are asked for.
    fn project(&self, own: &Attention, x: Vectors, projection: usize, asked: [bool; 3]) -> Result<(), EnsembleError> {
        self.launch(
            "project_rows",
            self.each_tile(3),
            [
                pointer_if(asked[0], &own.queries),
                pointer_if(asked[1], &own.keys),
                pointer_if(asked[2], &own.values),
                pointer(x.at.at()),
                pointer(self.parameters),
                long(self.total),
                x.norm(),
                long(projection),
                int(self.rows.n),
            ],
        )
    }

    fn attend(&self, own: &Attention, causal: bool) -> Result<(), EnsembleError> {
        let Rows { n, strings, replicas } = self.rows;
        let grid = Grid {
            blocks: ((strings * HEADS) as u32, replicas as u32, 1),
            threads: n.next_multiple_of(32).min(THREADS) as u32,
            shared: (n.next_multiple_of(16) * 64) as u32,
            numbers: (replicas * strings * n * 3 * WIDTH) as f64,
        };
        self.cuda.count_flops(4.0 * (replicas * strings * n * n * WIDTH) as f64);
        self.launch(
            "attend_rows",
            grid,
            [
                pointer(own.attended.at()),
                pointer_if(self.keep, &own.logs),
                pointer(own.queries.at()),
                pointer(own.keys.at()),
                pointer(own.values.at()),
                int(n),
                int(usize::from(causal)),
            ],
        )
    }
}
