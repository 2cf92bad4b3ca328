//! From the gradient of the outputs to those of the parameters, derived by hand.

use super::buffers::{Activations, Attention, Gradients, Layer, Rows, Stack};
use super::forward::{Net, Tokens, Vectors, pointer_if};
use super::places::{AttentionPlaces, LayerPlaces, StackPlaces};
use super::{HEADS, WIDTH};
use crate::EnsembleError;
use crate::gpu::buffers::Floats;
use crate::gpu::cuda::{Arg, Grid, Memory, THREADS};
use crate::gpu::forward::{int, long, pointer};
use crate::gpu::trained::Trained;

/// Warps of a block of attend_rows_backward where one block fills a multiprocessor, keys that each has at a time, and bytes of shared memory that
/// every block has beside.
const MOST_WARPS: usize = 8;
const KEYS: usize = 64;
const RESERVED: usize = 1024;

/// Bytes of shared memory that adding up gradients takes: two matrices of 32 rows for each warp.
const SUM_MEMORY: usize = THREADS * 2 * WIDTH * size_of::<f32>();

/// Blocks that fill the GPU, of kernels whose warps have many numbers.
const ENOUGH_BLOCKS: usize = 264;

/// Blocks of each kernel over rows, of one replica: so many parts have the gradients of parameters.
pub(super) fn parts(rows: Rows) -> usize {
    rows.tiles().div_ceil(THREADS / 32).min((ENOUGH_BLOCKS / rows.replicas).max(1))
}

/// What the way back begins with.
pub(super) struct Outcome<'a> {
    pub(super) labels: u64,
    pub(super) bits: Tokens,
    pub(super) inputs: Tokens,
    pub(super) trained: &'a Trained,
    /// The largest gradient of what each attention gives [attentions, R].
    pub(super) largest: &'a Memory<u32>,
}

/// What a stack's way back writes to and reads.
#[derive(Clone, Copy)]
struct Way<'a> {
    g: &'a Gradients,
    /// What the decoder reads of the encoder.
    memory: Option<Vectors<'a>>,
}

impl Net<'_> {
    /// Loss, and gradients of all parameters.
    pub(super) fn backward(&self, a: &Activations, g: &Gradients, outcome: &Outcome) -> Result<(), EnsembleError> {
        self.cuda.clear(outcome.largest)?;
        let mut largest = outcome.largest.pointer();
        let memory = Some(Vectors::normed(&a.encoder.top, self.places.encoder.norm));
        self.read_out_backward(a, g, outcome)?;
        self.stack_backward(&self.places.decoder, &a.decoder, Way { g, memory }, &mut largest)?;
        self.embed_backward(&self.places.decoder, g, outcome.inputs, 3)?;
        self.norm_backward(&a.encoder, g)?;
        self.stack_backward(&self.places.encoder, &a.encoder, Way { g, memory: None }, &mut largest)?;
        self.embed_backward(&self.places.encoder, g, outcome.bits, 2)?;
        self.gather_gradients(g)
    }

    /// A grid of warps that add up the gradients of parameters of their rows; vectors are read and written so many times.
    fn each_tile_summed(&self, vectors: usize) -> Grid {
        let blocks = (parts(self.rows) as u32, self.rows.replicas as u32, 1);
        Grid { blocks, shared: SUM_MEMORY as u32, ..self.each_tile(vectors) }
    }

    fn read_out_backward(&self, a: &Activations, g: &Gradients, outcome: &Outcome) -> Result<(), EnsembleError> {
        self.launch(
            "read_out_backward",
            self.each_tile_summed(2),
            [
                pointer(g.flow.at()),
                pointer(g.parts.at()),
                pointer(g.loss_parts.at()),
                pointer(a.outputs.at()),
                pointer(outcome.labels),
                pointer(a.decoder.top.xhat.at()),
                pointer(a.decoder.top.variance.at()),
                pointer(self.parameters),
                long(self.total),
                long(self.places.decoder.norm),
                long(self.places.head),
            ],
        )?;
        let mut one = Grid::elements(1, self.rows.replicas, 0.0);
        one.blocks.0 = 1;
        self.cuda.launch(
            "note_loss",
            one,
            &[
                pointer(outcome.trained.losses.pointer()),
                pointer(g.loss_parts.at()),
                pointer(outcome.trained.step.pointer()),
                pointer(outcome.trained.first.pointer()),
                int(parts(self.rows)),
                long(self.rows.count()),
                int(self.rows.replicas),
            ],
        )
    }

    /// Through the encoder's last norm, whose output is the memory.
    fn norm_backward(&self, encoder: &Stack, g: &Gradients) -> Result<(), EnsembleError> {
        self.launch(
            "norm_rows_backward",
            self.each_tile_summed(3),
            [
                pointer(g.flow.at()),
                pointer(g.parts.at()),
                pointer(g.memory.at()),
                pointer(encoder.top.xhat.at()),
                pointer(encoder.top.variance.at()),
                pointer(self.parameters),
                long(self.total),
                long(self.places.encoder.norm),
            ],
        )
    }

    /// Through a stack's layers, to the gradient of its embeddings.
    fn stack_backward(
        &self,
        places: &StackPlaces,
        own: &Stack,
        way: Way,
        largest: &mut u64,
    ) -> Result<(), EnsembleError> {
        for index in (0..places.layers.len()).rev() {
            let x = match index {
                0 => Vectors::plain(&own.embedded),
                above => Vectors::out_of(&places.layers[above - 1], &own.layers[above - 1]),
            };
            // The memory has no gradient yet before the last layer.
            let has_some = index + 1 < places.layers.len();
            self.layer_backward(&places.layers[index], &own.layers[index], x, (way, has_some), largest)?;
        }
        Ok(())
    }

    /// Through a layer, to the gradient of what it reads, x, and to that of the memory, which may have some already.
    fn layer_backward(
        &self,
        places: &LayerPlaces,
        own: &Layer,
        x: Vectors,
        (way, has_some): (Way, bool),
        largest: &mut u64,
    ) -> Result<(), EnsembleError> {
        let (g, last) = (way.g, own.normed.len() - 1);
        self.launch(
            "norm_fed_forward_backward",
            self.each_tile_summed(5),
            [
                pointer(g.flow.at()),
                pointer(g.parts.at()),
                pointer(g.flow.at()),
                pointer(own.normed[last].xhat.at()),
                pointer(own.normed[last].variance.at()),
                pointer(own.hidden.at()),
                pointer(own.normed[last - 1].xhat.at()),
                pointer(self.parameters),
                long(self.total),
                long(places.norms[last]),
                long(places.feed_forward),
                long(places.norms[last - 1]),
            ],
        )?;
        for (index, at) in places.attentions.iter().enumerate().rev() {
            self.launch(
                "norm_attended_backward",
                self.each_tile_summed(5),
                [
                    pointer(g.sum.at()),
                    pointer(g.attended.at()),
                    pointer(g.products.at()),
                    pointer(*largest),
                    pointer(g.parts.at()),
                    pointer(g.flow.at()),
                    pointer(own.normed[index].xhat.at()),
                    pointer(own.normed[index].variance.at()),
                    pointer(own.attentions[index].attended.at()),
                    pointer(self.parameters),
                    long(self.total),
                    long(places.norms[index]),
                    long(at.out),
                    int(self.rows.n),
                ],
            )?;
            self.attend_backward(&own.attentions[index], g, way.memory.is_some() && index == 0, *largest)?;
            *largest += (self.rows.replicas * size_of::<u32>()) as u64;
            match way.memory.filter(|_| index > 0) {
                None => self.project_backward((&g.flow, Some(&g.sum)), g, [true; 3], x, at)?,
                Some(memory) => {
                    let x = Vectors::normed(&own.normed[index - 1], places.norms[index - 1]);
                    self.project_backward((&g.flow, Some(&g.sum)), g, [true, false, false], x, at)?;
                    let already = Some(&g.memory).filter(|_| has_some);
                    self.project_backward((&g.memory, already), g, [false, true, true], memory, at)?;
                }
            }
        }
        Ok(())
    }

    fn attend_backward(&self, own: &Attention, g: &Gradients, causal: bool, largest: u64) -> Result<(), EnsembleError> {
        let Rows { n, strings, replicas } = self.rows;
        let grid = Grid {
            blocks: ((strings * HEADS) as u32, replicas as u32, 1),
            threads: 32 * backward_warps(n, self.cuda.most_shared()) as u32,
            shared: backward_memory(n) as u32,
            numbers: (replicas * strings * n * 6 * WIDTH) as f64,
        };
        self.cuda.count_flops(10.0 * (replicas * strings * n * n * WIDTH) as f64);
        self.launch(
            "attend_rows_backward",
            grid,
            [
                pointer(g.queries.at()),
                pointer(g.keys.at()),
                pointer(g.values.at()),
                pointer(g.attended.at()),
                pointer(g.products.at()),
                pointer(largest),
                pointer(own.logs.at()),
                pointer(own.queries.at()),
                pointer(own.keys.at()),
                pointer(own.values.at()),
                int(n),
                int(usize::from(causal)),
            ],
        )
    }

    /// The gradients of queries, keys and values, those asked for, through their projection of x, plus what there is, to `to`.
    fn project_backward(
        &self,
        (to, plus): (&Floats, Option<&Floats>),
        g: &Gradients,
        asked: [bool; 3],
        x: Vectors,
        at: &AttentionPlaces,
    ) -> Result<(), EnsembleError> {
        self.launch(
            "project_rows_backward",
            self.each_tile_summed(6),
            [
                pointer(to.at()),
                pointer(g.parts.at()),
                pointer_if(asked[0], &g.queries),
                pointer_if(asked[1], &g.keys),
                pointer_if(asked[2], &g.values),
                pointer(plus.map_or(0, Floats::at)),
                pointer(x.at.at()),
                pointer(self.parameters),
                long(self.total),
                x.norm(),
                long(at.projection),
            ],
        )
    }

    fn embed_backward(
        &self,
        places: &StackPlaces,
        g: &Gradients,
        tokens: Tokens,
        vocabulary: usize,
    ) -> Result<(), EnsembleError> {
        let Rows { n, strings, replicas } = self.rows;
        let blocks = (n.div_ceil(32) as u32, replicas as u32, (WIDTH / 2 / (THREADS / 32)) as u32);
        let grid =
            Grid { blocks, threads: THREADS as u32, shared: 0, numbers: (replicas * strings * n * WIDTH) as f64 };
        self.cuda.launch(
            "embed_rows_backward",
            grid,
            &[
                pointer(g.parameters.at()),
                pointer(g.token_parts.at()),
                pointer(g.flow.at()),
                pointer(tokens.at),
                long(self.total),
                long(places.position),
                int(n),
                int(strings),
                long(self.rows.tiles()),
                int(tokens.sets),
                self.share(),
            ],
        )?;
        let blocks = ((vocabulary * WIDTH).div_ceil(THREADS / 32) as u32, replicas as u32, 1);
        self.cuda.launch(
            "token_gradients",
            Grid { blocks, threads: THREADS as u32, shared: 0, numbers: 0.0 },
            &[
                pointer(g.parameters.at()),
                pointer(g.token_parts.at()),
                long(self.total),
                long(places.token),
                int(n),
                int(vocabulary),
            ],
        )
    }

    /// What turns a sum over all rows into a mean.
    fn share(&self) -> Arg {
        Arg::Float((1.0 / self.rows.count() as f64) as f32)
    }

    fn gather_gradients(&self, g: &Gradients) -> Result<(), EnsembleError> {
        let (first, end, replicas) = (self.places.dense, self.places.count, self.rows.replicas);
        let numbers = (end - first) as f64 * (replicas * parts(self.rows)) as f64;
        self.cuda.launch(
            "gather_gradients",
            Grid { numbers, ..Grid::elements(end - first, replicas, 0.0) },
            &[
                pointer(g.parameters.at()),
                pointer(g.parts.at()),
                long(self.total),
                long(first),
                long(end),
                int(parts(self.rows)),
                self.share(),
            ],
        )
    }
}

/// Warps of a block of attend_rows_backward: half of those that a multiprocessor has, if there is room for two blocks. Each adds up when it has had
/// all queries, and begins with further keys, where there are more.
fn backward_warps(n: usize, most_shared: usize) -> usize {
    let two = 2 * (backward_memory(n) + RESERVED) <= most_shared + RESERVED;
    n.div_ceil(KEYS).min(if two { MOST_WARPS / 2 } else { MOST_WARPS })
}

/// Bytes of its shared memory: queries and gradients as halves, two numbers known of each, twice, and the sums.
pub(super) fn backward_memory(n: usize) -> usize {
    n.next_multiple_of(16) * (32 + 32 + 16 + 64)
}
