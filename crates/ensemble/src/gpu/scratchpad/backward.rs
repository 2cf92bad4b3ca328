//! From the gradient of the outputs to those of the parameters, derived by hand.

use super::buffers::{
    Activations, Attention, AttentionGradients, Gradients, Layer, LayerGradients, Rows, Stack, StackGradients,
};
use super::forward::{Net, Tokens, Vectors, pointer_if};
use super::places::{LayerPlaces, Places, StackPlaces};
use super::{HEADS, WIDTH};
use crate::EnsembleError;
use crate::gpu::buffers::Floats;
use crate::gpu::cuda::{Arg, Cuda, Grid, Memory, THREADS};
use crate::gpu::forward::{int, long, pointer};
use crate::gpu::trained::Trained;

/// Words of a job: Job in scratchpad_gradients.cu.
const JOB: usize = 6;

/// Warps of a block of weight_gradients, and tiles that a warp of it does at least.
const GRADIENT_WARPS: usize = 4;
const TILES_A_WARP: usize = 8;

/// Warps that a block of attend_rows_backward has at most.
const MOST_WARPS: usize = 16;

/// Sums over all rows that gradients of weights are, in parts.
pub(super) struct Jobs {
    table: Memory<u64>,
    count: usize,
}

/// Numbers of the parts of all sums of one replica.
pub(super) fn part_numbers(places: &Places, rows: Rows) -> usize {
    count(places) * parts(rows) * (WIDTH * WIDTH + WIDTH)
}

/// How many parts a sum has.
fn parts(rows: Rows) -> usize {
    rows.tiles().div_ceil(GRADIENT_WARPS * TILES_A_WARP).min(64)
}

/// How many sums there are: of every linear layer, an in-projection being three, and of every norm.
fn count(places: &Places) -> usize {
    let layer = |layer: &LayerPlaces| 4 * layer.attentions.len() + 2 + layer.norms.len();
    let stack = |stack: &StackPlaces| stack.layers.iter().map(layer).sum::<usize>() + 1;
    stack(&places.encoder) + stack(&places.decoder) + 1
}

/// What a sum's result is the gradient of.
#[derive(Clone, Copy)]
enum Of {
    Linear,
    Norm,
    Head,
    /// Whose bias cancels in the softmax.
    Keys,
}

impl Jobs {
    pub(super) fn new(
        cuda: &Cuda,
        places: &Places,
        a: &Activations,
        gradients: &Gradients,
    ) -> Result<Self, EnsembleError> {
        let mut jobs: Vec<[u64; JOB]> = Vec::new();
        let mut add = |of: Of, dy: &Floats, x: Vectors, weight: usize, bias: usize| {
            let norm = x.norm.map_or(u64::MAX, |norm| norm as u64);
            jobs.push([dy.at(), x.at.at(), norm, weight as u64, bias as u64, of as u64]);
        };
        let mut linear =
            |dy: &Floats, x: Vectors, weight: usize| add(Of::Linear, dy, x, weight, weight + WIDTH * WIDTH);
        let memory = Vectors::normed(&a.encoder.top, places.encoder.norm);
        let stacks =
            [(&places.encoder, &a.encoder, &gradients.encoder), (&places.decoder, &a.decoder, &gradients.decoder)];
        let mut projections = Vec::new();
        for (places, own, gradients) in stacks {
            let mut x = Vectors::plain(&own.embedded);
            for ((places, own), gradients) in places.layers.iter().zip(&own.layers).zip(&gradients.layers) {
                for (index, at) in places.attentions.iter().enumerate() {
                    let (attention, of) = (&own.attentions[index], &gradients.attentions[index]);
                    let source = if index > 0 { memory } else { x };
                    projections.push((at.projection, [(&of.queries, x), (&of.keys, source), (&of.values, source)]));
                    linear(&of.sum, Vectors::plain(&attention.attended), at.out);
                    x = Vectors::normed(&own.normed[index], places.norms[index]);
                }
                linear(&gradients.hidden, x, places.feed_forward);
                let second = places.feed_forward + WIDTH * WIDTH + WIDTH;
                linear(&gradients.sum, Vectors::plain(&own.hidden), second);
                let last = own.normed.len() - 1;
                x = Vectors::normed(&own.normed[last], places.norms[last]);
            }
        }
        for (projection, parts) in projections {
            for (index, (dy, x)) in parts.into_iter().enumerate() {
                let bias = projection + 3 * WIDTH * WIDTH + index * WIDTH;
                let of = if index == 1 { Of::Keys } else { Of::Linear };
                add(of, dy, x, projection + index * WIDTH * WIDTH, bias);
            }
        }
        let mut norm = |dy: &Floats, xhat: &Floats, at: usize| add(Of::Norm, dy, Vectors::plain(xhat), at, at + WIDTH);
        for (places, own, gradients) in stacks {
            for ((places, own), gradients) in places.layers.iter().zip(&own.layers).zip(&gradients.layers) {
                for ((at, own), dy) in places.norms.iter().zip(&own.normed).zip(&gradients.normed) {
                    norm(dy, &own.xhat, *at);
                }
            }
            norm(&gradients.top, &own.top.xhat, places.norm);
        }
        let top = Vectors::normed(&a.decoder.top, places.decoder.norm);
        add(Of::Head, &gradients.outputs, top, places.head, places.head + WIDTH);
        // Those that read the same x follow each other, while it is in the cache.
        jobs.sort_by_key(|[_, x, ..]| *x);
        Ok(Self { count: jobs.len(), table: cuda.upload(&jobs.concat())? })
    }
}

/// What the way back begins with.
pub(super) struct Outcome<'a> {
    pub(super) labels: u64,
    pub(super) bits: Tokens,
    pub(super) inputs: Tokens,
    pub(super) trained: &'a Trained,
    pub(super) jobs: &'a Jobs,
    /// The largest gradient of what each attention gives [attentions, R].
    pub(super) largest: &'a Memory<u32>,
}

impl Net<'_> {
    /// Loss, and gradients of all parameters.
    pub(super) fn backward(&self, a: &Activations, g: &Gradients, outcome: &Outcome) -> Result<(), EnsembleError> {
        self.read_out_backward(a, g, outcome)?;
        self.cuda.clear(outcome.largest)?;
        let mut largest = outcome.largest.pointer();
        let memory = Some(&g.encoder.top);
        self.stack_backward(&self.places.decoder, (&a.decoder, &g.decoder), memory, g, &mut largest)?;
        self.stack_backward(&self.places.encoder, (&a.encoder, &g.encoder), None, g, &mut largest)?;
        self.embed_backward(&self.places.encoder, &g.encoder, g, outcome.bits, 2)?;
        self.embed_backward(&self.places.decoder, &g.decoder, g, outcome.inputs, 3)?;
        self.weight_gradients(g, outcome.jobs)
    }

    fn read_out_backward(&self, a: &Activations, g: &Gradients, outcome: &Outcome) -> Result<(), EnsembleError> {
        let grid = self.each_tile(1);
        self.launch(
            "read_out_backward",
            grid,
            [
                pointer(g.outputs.at()),
                pointer(g.decoder.top.at()),
                pointer(g.loss_parts.at()),
                pointer(a.outputs.at()),
                pointer(outcome.labels),
                pointer(self.parameters),
                long(self.total),
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
                int(grid.blocks.0 as usize),
                long(self.rows.count()),
                int(self.rows.replicas),
            ],
        )
    }

    /// Through a stack, from the gradient of its last norm's output to that of its embeddings; `memory` is that of the encoder's last norm.
    fn stack_backward(
        &self,
        places: &StackPlaces,
        (own, gradients): (&Stack, &StackGradients),
        memory: Option<&Floats>,
        g: &Gradients,
        largest: &mut u64,
    ) -> Result<(), EnsembleError> {
        // The output of the layer below, which what is above it adds its gradient to.
        let below = |layer: usize| match layer {
            0 => &gradients.embedded,
            above => gradients.layers[above - 1].normed.last().unwrap_or(&gradients.embedded),
        };
        self.launch(
            "norm_rows_backward",
            self.each_tile(3),
            [
                pointer(below(places.layers.len()).at()),
                pointer(gradients.top.at()),
                pointer(own.top.xhat.at()),
                pointer(own.top.variance.at()),
                pointer(self.parameters),
                long(self.total),
                long(places.norm),
            ],
        )?;
        let top = places.layers.len().saturating_sub(1);
        for (index, (places, own)) in places.layers.iter().zip(&own.layers).enumerate().rev() {
            let memory = memory.map(|memory| (memory, index < top));
            self.layer_backward(places, (own, &gradients.layers[index]), (below(index), memory), g, largest)?;
        }
        Ok(())
    }

    /// Through a layer, to the gradient of what it reads and to that of the memory, which may have some already.
    fn layer_backward(
        &self,
        places: &LayerPlaces,
        (own, gradients): (&Layer, &LayerGradients),
        (below, memory): (&Floats, Option<(&Floats, bool)>),
        g: &Gradients,
        largest: &mut u64,
    ) -> Result<(), EnsembleError> {
        let last = own.normed.len() - 1;
        self.launch(
            "norm_fed_forward_backward",
            self.each_tile(6),
            [
                pointer(gradients.normed[last - 1].at()),
                pointer(gradients.sum.at()),
                pointer(gradients.hidden.at()),
                pointer(gradients.normed[last].at()),
                pointer(own.normed[last].xhat.at()),
                pointer(own.normed[last].variance.at()),
                pointer(own.hidden.at()),
                pointer(self.parameters),
                long(self.total),
                long(places.norms[last]),
                long(places.feed_forward),
            ],
        )?;
        for (index, at) in places.attentions.iter().enumerate().rev() {
            let (attention, of) = (&own.attentions[index], &gradients.attentions[index]);
            self.launch(
                "norm_attended_backward",
                self.each_tile(5),
                [
                    pointer(of.sum.at()),
                    pointer(g.attended.at()),
                    pointer(g.products.at()),
                    pointer(*largest),
                    pointer(gradients.normed[index].at()),
                    pointer(own.normed[index].xhat.at()),
                    pointer(own.normed[index].variance.at()),
                    pointer(attention.attended.at()),
                    pointer(self.parameters),
                    long(self.total),
                    long(places.norms[index]),
                    long(at.out),
                    int(self.rows.n),
                ],
            )?;
            self.attend_backward(attention, of, g, memory.is_some() && index == 0, *largest)?;
            *largest += (self.rows.replicas * size_of::<u32>()) as u64;
            let to = if index > 0 { &gradients.normed[index - 1] } else { below };
            match memory.filter(|_| index > 0) {
                None => self.project_backward(to, of, [true; 3], Some(&of.sum), at.projection)?,
                Some((memory, has_some)) => {
                    self.project_backward(to, of, [true, false, false], Some(&of.sum), at.projection)?;
                    let already = Some(memory).filter(|_| has_some);
                    self.project_backward(memory, of, [false, true, true], already, at.projection)?;
                }
            }
        }
        Ok(())
    }

    fn attend_backward(
        &self,
        own: &Attention,
        of: &AttentionGradients,
        g: &Gradients,
        causal: bool,
        largest: u64,
    ) -> Result<(), EnsembleError> {
        let Rows { n, strings, replicas } = self.rows;
        let grid = Grid {
            blocks: ((strings * HEADS) as u32, replicas as u32, 1),
            threads: 32 * backward_warps(n) as u32,
            shared: backward_memory(n) as u32,
            numbers: (replicas * strings * n * 6 * WIDTH) as f64,
        };
        self.cuda.count_flops(10.0 * (replicas * strings * n * n * WIDTH) as f64);
        self.launch(
            "attend_rows_backward",
            grid,
            [
                pointer(of.queries.at()),
                pointer(of.keys.at()),
                pointer(of.values.at()),
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

    /// Adds to `plus` the gradients of queries, keys and values, those asked for, through their projection.
    fn project_backward(
        &self,
        to: &Floats,
        of: &AttentionGradients,
        asked: [bool; 3],
        plus: Option<&Floats>,
        projection: usize,
    ) -> Result<(), EnsembleError> {
        self.launch(
            "project_rows_backward",
            self.each_tile(5),
            [
                pointer(to.at()),
                pointer_if(asked[0], &of.queries),
                pointer_if(asked[1], &of.keys),
                pointer_if(asked[2], &of.values),
                pointer(plus.map_or(0, Floats::at)),
                pointer(self.parameters),
                long(self.total),
                long(projection),
            ],
        )
    }

    fn embed_backward(
        &self,
        places: &StackPlaces,
        own: &StackGradients,
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
                pointer(own.embedded.at()),
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

    fn weight_gradients(&self, g: &Gradients, jobs: &Jobs) -> Result<(), EnsembleError> {
        let (replicas, parts) = (self.rows.replicas, parts(self.rows));
        let numbers = (2 * jobs.count * replicas * self.rows.tiles() * 32 * WIDTH) as f64;
        self.cuda.count_flops(numbers * WIDTH as f64);
        self.cuda.launch(
            "weight_gradients",
            Grid {
                blocks: (parts as u32, jobs.count as u32, replicas as u32),
                threads: 32 * GRADIENT_WARPS as u32,
                shared: 0,
                numbers,
            },
            &[pointer(g.parts.at()), pointer(jobs.table.pointer()), long(self.rows.tiles())],
        )?;
        self.cuda.launch(
            "gather_gradients",
            Grid { blocks: (jobs.count as u32, replicas as u32, 1), threads: THREADS as u32, shared: 0, numbers: 0.0 },
            &[
                pointer(g.parameters.at()),
                pointer(g.parts.at()),
                pointer(jobs.table.pointer()),
                pointer(self.parameters),
                long(self.total),
                int(parts),
                self.share(),
            ],
        )
    }
}

/// Warps of a block of attend_rows_backward: one for 32 keys, as far as there are so many.
fn backward_warps(n: usize) -> usize {
    n.div_ceil(32).min(MOST_WARPS)
}

/// Bytes of its shared memory: queries and gradients as halves, two numbers known of each, twice, and the sums.
pub(super) fn backward_memory(n: usize) -> usize {
    n.next_multiple_of(16) * (32 + 32 + 16 + 64)
}
