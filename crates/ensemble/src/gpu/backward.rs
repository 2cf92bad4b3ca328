//! From the gradient of the outputs to those of the parameters, derived by hand.

mod attention;
mod halves;

use super::buffers::{Activations, Gradients};
use super::cuda::{Grid, Matrix, THREADS, two_lanes_are_asked_for};
use super::forward::{Extent, Inputs, Net, int, long, pointer, tile_blocks};
use super::shape::{Dims, LayerPlaces};
use crate::EnsembleError;

/// Blocks that are enough to fill any GPU.
const ENOUGH_BLOCKS: usize = 2048;

/// Products over many rows are split into this many over all replicas.
const ENOUGH_PRODUCTS: usize = 512;

/// Strings summed by one block of the attention's backward pass.
const STRINGS_A_BLOCK: usize = 128;

/// Positions that a block of attend_narrow_backward does: LINES in narrow.cu.
const NARROW_LINES: usize = 8;

/// Shared memory every GPU has for a block.
const SHARED: usize = 48 << 10;

impl Net<'_> {
    /// Fills `g.parameters` from `g.outputs`.
    pub(super) fn backward(&self, inputs: &Inputs, a: &Activations, g: &Gradients) -> Result<(), EnsembleError> {
        self.head_backward(inputs, a, g)?;
        for layer in (0..self.dims.layers).rev() {
            self.feed_forward_backward(inputs, a, g, layer)?;
            match layer {
                0 => self.table_backward(inputs, a, g)?,
                _ if self.dims.is_middle(layer) => self.middle_backward(inputs, a, g, layer)?,
                _ => self.last_backward(inputs, a, g, layer)?,
            }
        }
        self.cuda.meet()
    }

    /// Lets gradients of parameters be computed beside those of activations, which all that follows waits for: where networks are the paper's and
    /// nothing that `work` reads is written before `last_backward` meets it. Elsewhere in turn.
    fn beside(&self, work: impl FnOnce() -> Result<(), EnsembleError>) -> Result<(), EnsembleError> {
        if self.has_two_lanes() { self.cuda.beside(work) } else { work() }
    }

    /// Whether gradients of parameters are computed beside those of activations.
    fn has_two_lanes(&self) -> bool {
        let by_kernels = self.block_memory().is_some() && self.mixing_memory().is_some();
        self.cuda.has_two_lanes() && self.dims.layers == 2 && by_kernels
    }

    /// Bytes of shared memory of a block of `feed_forward_backward`; nothing where feed-forward blocks go back otherwise.
    fn block_memory(&self) -> Option<u32> {
        let Dims { d, ff, .. } = *self.dims;
        self.cuda.tensor_memory(2 * ff * d, d + 16 * d)
    }

    /// Room for sums over parts, of which work beside other work has its own.
    fn parts_of(&self, g: &Gradients) -> u64 {
        if self.cuda.is_beside() { g.parts_beside.at() } else { g.parts.at() }
    }

    /// Floats needed for sums over parts, the most that any of them takes: in turn, and beside other work.
    pub(super) fn parts(dims: &Dims, r: usize, b: usize) -> [usize; 2] {
        let Dims { n, d, heads, ff, .. } = *dims;
        let m = dims.positions(0);
        let rows = b * m;
        let attention = match dims.is_narrow() {
            true => r * n.div_ceil(NARROW_LINES) * dims.mixed() * d,
            false => r * b.div_ceil(STRINGS_A_BLOCK) * m * heads * 4 * n,
        };
        let tokens = |m: usize| r * b.div_ceil(strings_a_block(r, b, m)) * m * 3 * d;
        let tokens = tokens(m).max(tokens(1));
        let sums = |rows: usize, columns: usize| r * rows.div_ceil(rows_a_block(r, rows)) * columns;
        let columns = sums(rows, ff.max(3 * d)).max(sums(b, ff.max(3 * d + 1))).max(sums(2 * n, 3 * d));
        let products = r * splits(r, rows).max(splits(r, b)) * (dims.mixed() * d).max(3 * d * d).max(ff * d);
        let mixing = if dims.is_tiled() { r * n * d * d } else { 0 };
        let beside = tokens.max(columns).max(products);
        [attention.max(mixing).max(beside), if two_lanes_are_asked_for() { beside } else { 0 }]
    }

    fn head_backward(&self, inputs: &Inputs, a: &Activations, g: &Gradients) -> Result<(), EnsembleError> {
        let (top, d, b, r) = (self.dims.layers - 1, self.dims.d, a.strings, a.replicas);
        let LayerPlaces { scale2, shift2, bias2, .. } = self.places.layers[top];
        let total = self.places.total;
        self.cuda.launch(
            "head_backward",
            self.rows(b, r, 3.0),
            &[
                pointer(g.layers[top].after.at()),
                pointer(g.by_string.at()),
                pointer(g.outputs.at()),
                pointer(a.layers[top].norm2.at()),
                pointer(a.layers[top].variance2.at()),
                pointer(inputs.parameters),
                long(total),
                long(self.places.head),
                long(scale2),
                int(b),
            ],
        )?;
        self.beside(|| {
            self.column_sums(g, (g.by_string.at(), 0), (b, d + 1), (g.sums.at(), d + 1), r)?;
            self.cuda.launch(
                "head_gradients",
                self.elements(d, r, 0.0),
                &[
                    pointer(g.parameters.at()),
                    pointer(g.sums.at()),
                    pointer(inputs.parameters),
                    long(total),
                    long(self.places.head),
                    long(self.places.head_bias),
                    long(scale2),
                    long(shift2),
                ],
            )?;
            self.column_sums(g, (g.layers[top].after.at(), 0), (b, d), self.place(g, bias2), r)
        })
    }

    /// From the gradient `after` of the second norm's input to `before`, that of the first norm's.
    fn feed_forward_backward(
        &self,
        inputs: &Inputs,
        a: &Activations,
        g: &Gradients,
        layer: usize,
    ) -> Result<(), EnsembleError> {
        let Dims { d, ff, .. } = *self.dims;
        let (r, rows) = (a.replicas, a.strings * self.dims.positions(layer));
        let (own, grads) = (&a.layers[layer], &g.layers[layer]);
        let LayerPlaces { bias1, weight2, scale1, .. } = self.places.layers[layer];
        let after = Matrix::at(grads.after.at(), 0, d, rows * d);
        let hidden = Matrix::at(grads.hidden.at(), 0, ff, rows * ff);
        let before = Matrix::at(grads.before.at(), 0, d, rows * d);
        let folded = Matrix::at(own.weight.at(), 0, d, ff * d);

        let mut tiles = None;
        if let Some(shared) = self.block_memory()
            && let Some(images) = &a.images
        {
            let halves = self.keeps_halves(layer);
            let blocks = if halves { self.even_blocks(r, tile_blocks(rows)) } else { tile_blocks(rows) };
            let second = self.weight(inputs, weight2, ff).transposed();
            self.prepare(images, (0, 0), second, Extent::WHOLE, r)?;
            self.prepare(images, (1, ff * d), folded.transposed(), Extent::WHOLE, r)?;
            self.cuda.count_flops((4 * r * rows * d * ff) as f64);
            let grid = Grid {
                blocks: (blocks as u32, r as u32, 1),
                threads: THREADS as u32,
                shared,
                numbers: (5 * r * rows * d) as f64,
            };
            if halves {
                self.halves_backward(inputs, a, g, images, grid)?;
            } else {
                self.cuda.launch(
                    "feed_forward_backward",
                    grid,
                    &[
                        pointer(grads.before.at()),
                        pointer(grads.hidden.at()),
                        pointer(g.tile_parts.at()),
                        pointer(grads.after.at()),
                        pointer(own.hidden.at()),
                        pointer(own.norm1.at()),
                        pointer(own.variance1.at()),
                        pointer(images.halves.at()),
                        long(images.stride),
                        pointer(images.powers.at()),
                        pointer(inputs.parameters),
                        long(self.places.total),
                        long(scale1),
                        int(rows),
                    ],
                )?;
            }
            tiles = Some(blocks);
        } else {
            self.multiply((rows, ff, d), 1.0, after, self.weight(inputs, weight2, ff), 0.0, hidden, r)?;
            self.column_sums(g, (grads.hidden.at(), own.hidden.at()), (rows, ff), self.place(g, bias1), r)?;
            self.multiply((rows, d, ff), 1.0, hidden, folded, 0.0, before, r)?;
        }
        self.beside(|| self.block_gradients(inputs, a, g, layer, tiles))
    }

    /// The gradients of a feed-forward block's parameters, and of what the attention before it adds to. Where one kernel did the block, it
    /// left sums in so many parts; elsewhere the first norm is gone back through here.
    fn block_gradients(
        &self,
        inputs: &Inputs,
        a: &Activations,
        g: &Gradients,
        layer: usize,
        tiles: Option<usize>,
    ) -> Result<(), EnsembleError> {
        let Dims { n, d, ff, .. } = *self.dims;
        let (r, b, m) = (a.replicas, a.strings, self.dims.positions(layer));
        let (rows, own, grads) = (b * m, &a.layers[layer], &g.layers[layer]);
        let LayerPlaces { weight1, bias1, weight2, bias2, scale1, shift1, out_bias, .. } = self.places.layers[layer];
        let (total, parts) = (self.places.total, self.parts_of(g));

        let chunk = strings_a_block(r, b, m);
        let chunks = b.div_ceil(chunk);
        let by_token = |numbers: usize| Grid {
            blocks: (chunks as u32, m as u32, r as u32),
            threads: THREADS as u32,
            shared: 0,
            numbers: (numbers * r * rows * d) as f64,
        };
        let strings = [pointer(inputs.bits), pointer(parts), int(b), int(n), int(m), int(inputs.sets), int(chunk)];
        // The sums of after * norm1, where a kernel has made them already: parts for each replica.
        let mut along = (0, 0);
        if let Some(blocks) = tiles {
            self.add_parts(g.tile_parts.at(), blocks, ff, self.place(g, bias1), r)?;
            along = (self.cuda.after(g.tile_parts.at(), r * blocks * ff), blocks);
        }
        match &a.images {
            Some(images) if self.keeps_halves(layer) => self.halves_gradients(a, g, images)?,
            _ => {
                self.weight_gradient(g, grads.after.at(), (own.hidden.at(), ff), (rows, d), weight2, r)?;
                self.weight_gradient(g, grads.hidden.at(), (own.norm1.at(), d), (rows, ff), weight1, r)?;
            }
        }
        // mixing_backward makes the sums by token itself.
        let by_mixing = layer == 0 && along.1 > 0 && self.mixing_memory().is_some();
        if by_mixing {
            self.add_parts(along.0, along.1, d, self.place(g, scale1), r)?;
        } else {
            if along.1 > 0 {
                let mut arguments = vec![pointer(grads.before.at())];
                arguments.extend(strings);
                self.cuda.launch("token_sums", by_token(1), &arguments)?;
            } else {
                let mut arguments = vec![
                    pointer(grads.before.at()),
                    pointer(grads.after.at()),
                    pointer(own.norm1.at()),
                    pointer(own.variance1.at()),
                    pointer(inputs.parameters),
                    long(total),
                    long(scale1),
                ];
                arguments.extend(strings);
                self.cuda.launch("norm1_backward", by_token(4), &arguments)?;
            }
            self.cuda.launch(
                "gather_tokens",
                Grid { blocks: (2 * n as u32, r as u32, 1), threads: 128, shared: 0, numbers: 0.0 },
                &[
                    pointer(g.tokens.at()),
                    pointer(parts),
                    pointer(along.0),
                    int(along.1),
                    pointer(g.parameters.at()),
                    long(total),
                    long(scale1),
                    int(chunks),
                    int(n),
                    int(m),
                ],
            )?;
        }
        self.cuda.launch(
            "unfold",
            Grid { blocks: (d.div_ceil(32) as u32, r as u32, 1), threads: 256, shared: 0, numbers: 0.0 },
            &[
                pointer(g.parameters.at()),
                pointer(inputs.parameters),
                long(total),
                long(weight1),
                long(bias1),
                long(scale1),
                long(shift1),
                long(bias2),
            ],
        )?;
        if by_mixing {
            return Ok(());
        }
        self.column_sums(g, (g.tokens.at(), 0), (2 * n, d), self.place(g, out_bias), r)
    }

    /// Where a parameter's gradient goes: its pointer and the distance from one replica to the next.
    fn place(&self, g: &Gradients, place: usize) -> (u64, usize) {
        (self.cuda.after(g.parameters.at(), place), self.places.total)
    }

    /// The gradient [out, into] of a weight from those of its outputs [R, rows, out] and its inputs [R, rows, into].
    fn weight_gradient(
        &self,
        g: &Gradients,
        outputs: u64,
        (inputs, into): (u64, usize),
        (rows, out): (usize, usize),
        place: usize,
        r: usize,
    ) -> Result<(), EnsembleError> {
        self.split_product(g, (outputs, out), (inputs, into), rows, self.place(g, place), r)
    }

    /// to [R, x, y] = X^T Y of X [R, rows, x] and Y [R, rows, y], split over the rows so that the GPU is full, and added in order.
    fn split_product(
        &self,
        g: &Gradients,
        (left, x): (u64, usize),
        (right, y): (u64, usize),
        rows: usize,
        to: (u64, usize),
        r: usize,
    ) -> Result<(), EnsembleError> {
        let parts = splits(r, rows);
        let each = rows / parts;
        let left = Matrix::at(left, 0, x, each * x).transposed();
        let right = Matrix::at(right, 0, y, each * y);
        let out = match parts {
            1 => Matrix::at(to.0, 0, y, to.1),
            _ => Matrix::at(self.parts_of(g), 0, y, x * y),
        };
        self.multiply((x, y, each), 1.0, left, right, 0.0, out, r * parts)?;
        if parts > 1 {
            self.add_parts(self.parts_of(g), parts, x * y, to, r)?;
        }
        Ok(())
    }

    /// The gradient [3 d] of attention's input bias from those of queries, keys and values x [R, rows, 3 d]. That of the keys' bias is
    /// exactly 0, since it drops out of the softmax; AdamW would scale its rounding up to full steps.
    fn input_bias(&self, g: &Gradients, x: u64, rows: usize, place: usize, r: usize) -> Result<(), EnsembleError> {
        let d = self.dims.d;
        self.column_sums(g, (x, 0), (rows, 3 * d), self.place(g, place), r)?;
        let (keys, total) = self.place(g, place + d);
        self.cuda.launch(
            "forget",
            Grid {
                blocks: (d.div_ceil(THREADS) as u32, r as u32, 1),
                threads: THREADS as u32,
                shared: 0,
                numbers: (r * d) as f64,
            },
            &[pointer(keys), long(total), int(d)],
        )
    }

    /// to [R, C]: the sums of the columns of x [R, rows, C]. Where a mask is given, x is first set to 0 where the mask is.
    fn column_sums(
        &self,
        g: &Gradients,
        (x, mask): (u64, u64),
        (rows, columns): (usize, usize),
        to: (u64, usize),
        r: usize,
    ) -> Result<(), EnsembleError> {
        let chunk = rows_a_block(r, rows);
        let chunks = rows.div_ceil(chunk);
        let passes = if mask == 0 { 1 } else { 3 };
        self.cuda.launch(
            "column_sums",
            Grid {
                blocks: (chunks as u32, r as u32, 1),
                threads: THREADS as u32,
                shared: 0,
                numbers: (passes * r * rows * columns) as f64,
            },
            &[pointer(self.parts_of(g)), pointer(x), pointer(mask), int(rows), int(columns), int(chunk)],
        )?;
        self.add_parts(self.parts_of(g), chunks, columns, to, r)
    }

    fn add_parts(
        &self,
        parts: u64,
        count: usize,
        size: usize,
        to: (u64, usize),
        r: usize,
    ) -> Result<(), EnsembleError> {
        let arguments = [pointer(to.0), long(to.1), pointer(parts), int(count), long(size)];
        self.cuda.launch("add_parts", self.elements(size, r, count as f64), &arguments)
    }
}

/// Rows that one block sums: enough blocks, but no more parts than needed.
fn rows_a_block(r: usize, rows: usize) -> usize {
    (rows * r).div_ceil(ENOUGH_BLOCKS).clamp(16, 512)
}

/// Strings that one block of norm1_backward walks through.
fn strings_a_block(r: usize, b: usize, m: usize) -> usize {
    (b * m * r).div_ceil(2 * ENOUGH_BLOCKS).clamp(16, 256).next_multiple_of(16)
}

/// Into how many equal parts a product over `rows` rows is split.
fn splits(r: usize, rows: usize) -> usize {
    let most = (ENOUGH_PRODUCTS / r).min(rows / 128).max(1);
    (1..=most).rev().find(|parts| rows.is_multiple_of(*parts)).unwrap_or(1)
}
