//! From the gradient of the outputs to those of the parameters, derived by hand.

use super::buffers::{Activations, Floats, Gradients};
use super::cuda::{Grid, Matrix};
use super::forward::{Inputs, NARROW_STRINGS, Net, THREADS, int, long, pointer, tile_blocks};
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
        Ok(())
    }

    /// Floats needed for sums over parts, the most that any of them takes.
    pub(super) fn parts(dims: &Dims, r: usize, b: usize) -> usize {
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
        [attention, tokens, columns, products].into_iter().max().unwrap_or(0)
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
    }

    /// From the gradient `after` of the second norm's input to `before`, that of the first norm's.
    fn feed_forward_backward(
        &self,
        inputs: &Inputs,
        a: &Activations,
        g: &Gradients,
        layer: usize,
    ) -> Result<(), EnsembleError> {
        let Dims { n, d, ff, .. } = *self.dims;
        let (r, b, m) = (a.replicas, a.strings, self.dims.positions(layer));
        let (rows, own, grads) = (b * m, &a.layers[layer], &g.layers[layer]);
        let LayerPlaces { weight1, bias1, weight2, bias2, scale1, shift1, out_bias, .. } = self.places.layers[layer];
        let total = self.places.total;
        let after = Matrix::at(grads.after.at(), 0, d, rows * d);
        let hidden = Matrix::at(grads.hidden.at(), 0, ff, rows * ff);
        let before = Matrix::at(grads.before.at(), 0, d, rows * d);

        let chunk = strings_a_block(r, b, m);
        let chunks = b.div_ceil(chunk);
        let by_token = |numbers: usize| Grid {
            blocks: (chunks as u32, m as u32, r as u32),
            threads: THREADS as u32,
            shared: 0,
            numbers: (numbers * r * rows * d) as f64,
        };
        let strings =
            [pointer(inputs.bits), pointer(g.parts.at()), int(b), int(n), int(m), int(inputs.sets), int(chunk)];
        // The sums of after * norm1, where a kernel has made them already: parts for each replica.
        let mut along = (0, 0);
        if let Some(shared) = self.cuda.tensor_memory(2 * ff * d, d + 16 * d)
            && let Some(images) = &a.images
        {
            let blocks = tile_blocks(rows);
            let second = self.weight(inputs, weight2, ff).transposed();
            self.prepare(images, (0, 0), second, (d, d), (d, d), r)?;
            let first = Matrix::at(own.weight.at(), 0, d, ff * d).transposed();
            self.prepare(images, (1, ff * d), first, (ff, ff), (ff, ff), r)?;
            self.cuda.count_flops((4 * r * rows * d * ff) as f64);
            self.cuda.launch(
                "feed_forward_backward",
                Grid {
                    blocks: (blocks as u32, r as u32, 1),
                    threads: THREADS as u32,
                    shared,
                    numbers: (5 * r * rows * d) as f64,
                },
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
                    long(total),
                    long(scale1),
                    int(rows),
                ],
            )?;
            self.add_parts(g.tile_parts.at(), blocks, ff, self.place(g, bias1), r)?;
            along = (self.cuda.after(g.tile_parts.at(), r * blocks * ff), blocks);
        } else {
            self.multiply((rows, ff, d), 1.0, after, self.weight(inputs, weight2, ff), 0.0, hidden, r)?;
            self.column_sums(g, (grads.hidden.at(), own.hidden.at()), (rows, ff), self.place(g, bias1), r)?;
            let folded = Matrix::at(own.weight.at(), 0, d, ff * d);
            self.multiply((rows, d, ff), 1.0, hidden, folded, 0.0, before, r)?;
        }
        self.weight_gradient(g, grads.after.at(), (own.hidden.at(), ff), (rows, d), weight2, r)?;
        self.weight_gradient(g, grads.hidden.at(), (own.norm1.at(), d), (rows, ff), weight1, r)?;
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
                pointer(g.parts.at()),
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
        self.column_sums(g, (g.tokens.at(), 0), (2 * n, d), self.place(g, out_bias), r)
    }

    /// Layer 1: through the mixing to the tables, through the tables to the embeddings.
    fn table_backward(&self, inputs: &Inputs, a: &Activations, g: &Gradients) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, width, mixed, places) = (a.replicas, self.dims.head_width(), self.dims.mixed(), &self.places.layers[0]);
        match &a.narrow {
            Some(narrow) => self.narrow_backward(inputs, a, g, narrow)?,
            None => self.mixed_backward(inputs, a, g)?,
        }

        let table = 2 * n * 3 * d;
        for head in 0..heads {
            let part = |of: u64, third: usize| Matrix::at(of, third * d + head * width, 3 * d, table);
            let (qkv, grads) = (a.token_qkv.at(), g.token_qkv.at());
            let values = Matrix::at(g.values.at(), head * 2 * n * d, d, mixed * d);
            let out = self.weight(inputs, places.out_weight + head * width, d);
            self.multiply((2 * n, width, d), 1.0, values, out, 0.0, part(grads, 2), r)?;
            let out = Matrix::at(g.parameters.at(), places.out_weight + head * width, d, self.places.total);
            self.multiply((d, width, 2 * n), 1.0, values.transposed(), part(qkv, 2), 0.0, out, r)?;
            let scores = Matrix::at(g.scores.at(), head * 4 * n * n, 2 * n, heads * 4 * n * n);
            let scale = self.score_scale();
            self.multiply((2 * n, width, 2 * n), scale, scores, part(qkv, 1), 0.0, part(grads, 0), r)?;
            self.multiply((2 * n, width, 2 * n), scale, scores.transposed(), part(qkv, 0), 0.0, part(grads, 1), r)?;
        }
        let qkv = Matrix::at(g.token_qkv.at(), 0, 3 * d, table);
        let tokens = Matrix::at(a.tokens.at(), 0, d, 2 * n * d);
        let weight = Matrix::at(g.parameters.at(), places.in_weight, d, self.places.total);
        self.multiply((3 * d, d, 2 * n), 1.0, qkv.transposed(), tokens, 0.0, weight, r)?;
        self.input_bias(g, g.token_qkv.at(), 2 * n, places.in_bias, r)?;
        let tokens = Matrix::at(g.tokens.at(), 0, d, 2 * n * d);
        self.multiply((2 * n, d, 3 * d), 1.0, qkv, self.weight(inputs, places.in_weight, d), 1.0, tokens, r)?;
        self.cuda.launch(
            "embed_backward",
            self.elements(d, r, 0.0),
            &[
                pointer(g.tokens.at()),
                pointer(g.parameters.at()),
                long(self.places.total),
                long(self.places.token),
                long(self.places.position),
                int(n),
            ],
        )
    }

    /// From the gradient of what attention adds to those of scores and values, through its weights for each string.
    fn mixed_backward(&self, inputs: &Inputs, a: &Activations, g: &Gradients) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, b, m, mixed) = (a.replicas, a.strings, self.dims.positions(0), self.dims.mixed());
        let rows = b * m;
        let before = Matrix::at(g.layers[0].before.at(), 0, d, rows * d);
        let values = Matrix::at(a.values.at(), 0, d, mixed * d);
        self.multiply(
            (rows, mixed, d),
            1.0,
            before,
            values.transposed(),
            0.0,
            Matrix::at(g.mix.at(), 0, mixed, rows * mixed),
            r,
        )?;
        let to = (g.values.at(), mixed * d);
        self.split_product(g, (a.mix.at(), mixed), (g.layers[0].before.at(), d), rows, to, r)?;

        let chunks = b.div_ceil(STRINGS_A_BLOCK);
        let each = self.cuda.size_of(4 * n);
        let warps = (SHARED / each).clamp(1, 4);
        self.cuda.launch(
            "attend_backward",
            Grid {
                blocks: (chunks as u32, (m * heads) as u32, r as u32),
                threads: 32 * warps as u32,
                shared: (warps * each) as u32,
                numbers: (2 * r * rows * mixed) as f64,
            },
            &[
                pointer(g.parts.at()),
                pointer(a.mix.at()),
                pointer(g.mix.at()),
                pointer(inputs.bits),
                int(b),
                int(n),
                int(m),
                int(inputs.sets),
                int(STRINGS_A_BLOCK),
            ],
        )?;
        self.cuda.launch(
            "gather_scores",
            Grid { blocks: ((2 * n * heads) as u32, r as u32, 1), threads: 64, shared: 0, numbers: 0.0 },
            &[pointer(g.scores.at()), pointer(g.parts.at()), int(chunks), int(n), int(m)],
        )
    }

    /// The same with no weight stored.
    fn narrow_backward(
        &self,
        inputs: &Inputs,
        a: &Activations,
        g: &Gradients,
        [attended, sums]: &[Floats; 2],
    ) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, b, mixed) = (a.replicas, a.strings, self.dims.mixed());
        let blocks = n.div_ceil(NARROW_LINES);
        self.cuda.count_flops((2 * r * b * n * n * heads * (d + 1)) as f64);
        self.cuda.launch(
            "attend_narrow_backward",
            Grid {
                blocks: (n.div_ceil(NARROW_STRINGS) as u32, blocks as u32, r as u32),
                threads: NARROW_STRINGS as u32,
                shared: 0,
                numbers: (r * (b * n * (heads + 1) * d + 2 * heads * 4 * n * n)) as f64,
            },
            &[
                pointer(g.scores.at()),
                pointer(g.parts.at()),
                pointer(g.layers[0].before.at()),
                pointer(attended.at()),
                pointer(sums.at()),
                pointer(a.scores.at()),
                pointer(a.exponents.at()),
                pointer(a.largest.at()),
                pointer(a.values.at()),
                pointer(a.words[0].at()),
                pointer(a.words[1].at()),
                int(b),
                int(n),
                int(inputs.sets),
            ],
        )?;
        self.add_parts(g.parts.at(), blocks, mixed * d, (g.values.at(), mixed * d), r)
    }

    fn middle_backward(
        &self,
        inputs: &Inputs,
        a: &Activations,
        g: &Gradients,
        layer: usize,
    ) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, b, width) = (a.replicas, a.strings, self.dims.head_width());
        let (rows, places) = (b * n, &self.places.layers[layer]);
        let (Some(own), Some([mixed, qkv, weights])) = (&a.middle[layer], &g.middle) else { return Ok(()) };
        let before = g.layers[layer].before.at();
        let dmixed = Matrix::at(mixed.at(), 0, d, rows * d);
        let out = self.weight(inputs, places.out_weight, d);
        self.multiply((rows, d, d), 1.0, Matrix::at(before, 0, d, rows * d), out, 0.0, dmixed, r)?;
        self.weight_gradient(g, before, (own.mixed.at(), d), (rows, d), places.out_weight, r)?;

        let part = |of: u64, third: usize, head: usize| Matrix::at(of, third * d + head * width, 3 * d, n * 3 * d);
        let square = |of: u64, head: usize| Matrix::at(of, head * n * n, n, heads * n * n);
        for head in 0..heads {
            let dmixed = Matrix::at(mixed.at(), head * width, d, n * d);
            let values = part(own.qkv.at(), 2, head).transposed();
            self.multiply((n, n, width), 1.0, dmixed, values, 0.0, square(weights.at(), head), r * b)?;
            let weights = square(own.weights.at(), head).transposed();
            self.multiply((n, width, n), 1.0, weights, dmixed, 0.0, part(qkv.at(), 2, head), r * b)?;
        }
        self.softmax("softmax_backward", &[weights.at(), own.weights.at()], r * b * heads * n)?;
        for head in 0..heads {
            let (scale, scores) = (self.score_scale(), square(weights.at(), head));
            let (queries, keys) = (part(own.qkv.at(), 0, head), part(own.qkv.at(), 1, head));
            self.multiply((n, width, n), scale, scores, keys, 0.0, part(qkv.at(), 0, head), r * b)?;
            self.multiply((n, width, n), scale, scores.transposed(), queries, 0.0, part(qkv.at(), 1, head), r * b)?;
        }
        self.weight_gradient(g, qkv.at(), (own.input.at(), d), (rows, 3 * d), places.in_weight, r)?;
        self.input_bias(g, qkv.at(), rows, places.in_bias, r)?;

        // What reaches the layer below: through attention, and directly.
        let after = g.layers[layer - 1].after.at();
        let dqkv = Matrix::at(qkv.at(), 0, 3 * d, rows * 3 * d);
        let weight = self.weight(inputs, places.in_weight, d);
        self.multiply((rows, d, 3 * d), 1.0, dqkv, weight, 0.0, Matrix::at(after, 0, d, rows * d), r)?;
        let LayerPlaces { scale2, shift2, bias2, .. } = self.places.layers[layer - 1];
        let chunk = rows_a_block(r, rows);
        let chunks = rows.div_ceil(chunk);
        self.cuda.launch(
            "norm2_backward",
            Grid {
                blocks: (chunks as u32, r as u32, 1),
                threads: THREADS as u32,
                shared: 0,
                numbers: (4 * r * rows * d) as f64,
            },
            &[
                pointer(after),
                pointer(before),
                pointer(a.layers[layer - 1].norm2.at()),
                pointer(a.layers[layer - 1].variance2.at()),
                pointer(inputs.parameters),
                long(self.places.total),
                long(scale2),
                pointer(g.parts.at()),
                int(rows),
                int(chunk),
            ],
        )?;
        self.add_parts(g.parts.at(), chunks, 2 * d, (g.sums.at(), 2 * d), r)?;
        self.cuda.launch(
            "pair_gradients",
            self.elements(d, r, 0.0),
            &[pointer(g.parameters.at()), pointer(g.sums.at()), long(self.places.total), long(scale2), long(shift2)],
        )?;
        self.column_sums(g, (after, 0), (rows, d), self.place(g, bias2), r)
    }

    fn last_backward(
        &self,
        inputs: &Inputs,
        a: &Activations,
        g: &Gradients,
        layer: usize,
    ) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, b, width, total) = (a.replicas, a.strings, self.dims.head_width(), self.places.total);
        let places = &self.places.layers[layer];
        let LayerPlaces { scale2, shift2, bias2, .. } = self.places.layers[layer - 1];
        let (Some(own), Some(grads)) = (&a.last, &g.last) else { return Ok(()) };
        let before = Matrix::at(g.layers[layer].before.at(), 0, d, b * d);
        let values = Matrix::at(grads.values.at(), 0, d, b * d);
        self.multiply((b, d, d), 1.0, before, self.weight(inputs, places.out_weight, d), 0.0, values, r)?;
        self.weight_gradient(g, g.layers[layer].before.at(), (own.values.at(), d), (b, d), places.out_weight, r)?;
        self.column_sums(g, (grads.values.at(), 0), (b, d), self.place(g, places.in_bias + 2 * d), r)?;

        let by_head = |of: u64, head: usize| Matrix::at(of, head * d, heads * d, b * heads * d);
        let slice = |of: u64, head: usize| Matrix::at(of, head * width, d, b * d);
        let gradient = |place: usize| Matrix::at(g.parameters.at(), place, d, total);
        for head in 0..heads {
            let place = places.in_weight + (2 * d + head * width) * d;
            let (dvalues, dmixed) = (slice(grads.values.at(), head), by_head(grads.mixed.at(), head));
            self.multiply((b, d, width), 1.0, dvalues, self.weight(inputs, place, d), 0.0, dmixed, r)?;
            let mixed = by_head(own.mixed.at(), head);
            self.multiply((width, d, b), 1.0, dvalues.transposed(), mixed, 0.0, gradient(place), r)?;
        }
        self.cuda.launch(
            "attend_last_queries",
            self.rows(b, r, n as f64),
            &[
                pointer(grads.weights.at()),
                pointer(grads.dots.at()),
                pointer(grads.folded_plain.at()),
                pointer(grads.folded.at()),
                pointer(grads.mixed.at()),
                pointer(own.weights.at()),
                pointer(own.mean.at()),
                pointer(a.layers[layer - 1].norm2.at()),
                pointer(inputs.parameters),
                long(total),
                long(scale2),
                int(b),
                int(n),
            ],
        )?;
        for head in 0..heads {
            // The keys' bias drops out of the softmax: its gradient is exactly zero.
            let (place, scale) = (places.in_weight + (d + head * width) * d, self.score_scale());
            let (dfolded, dquery) = (by_head(grads.folded.at(), head), slice(grads.query.at(), head));
            let keys = self.weight(inputs, place, d).transposed();
            self.multiply((b, width, d), scale, dfolded, keys, 0.0, dquery, r)?;
            let query = slice(own.query.at(), head).transposed();
            self.multiply((width, d, b), scale, query, dfolded, 0.0, gradient(place), r)?;
        }
        self.column_sums(g, (grads.query.at(), 0), (b, d), self.place(g, places.in_bias), r)?;
        self.weight_gradient(g, grads.query.at(), (own.input.at(), d), (b, d), places.in_weight, r)?;
        let query = Matrix::at(grads.query.at(), 0, d, b * d);
        self.multiply((b, d, d), 1.0, query, self.weight(inputs, places.in_weight, d), 1.0, before, r)?;

        self.cuda.launch(
            "attend_last_below",
            self.rows(b, r, 2.0 * n as f64),
            &[
                pointer(g.layers[layer - 1].after.at()),
                pointer(grads.below.at()),
                pointer(g.layers[layer].before.at()),
                pointer(grads.weights.at()),
                pointer(grads.dots.at()),
                pointer(grads.folded_plain.at()),
                pointer(grads.mixed.at()),
                pointer(own.folded.at()),
                pointer(own.weights.at()),
                pointer(own.mean.at()),
                pointer(a.layers[layer - 1].norm2.at()),
                pointer(a.layers[layer - 1].variance2.at()),
                pointer(inputs.parameters),
                long(total),
                long(scale2),
                int(b),
                int(n),
            ],
        )?;
        self.column_sums(g, (grads.below.at(), 0), (b, 3 * d), (g.sums.at(), 3 * d), r)?;
        self.cuda.launch(
            "below_gradients",
            self.elements(d, r, 0.0),
            &[pointer(g.parameters.at()), pointer(g.sums.at()), long(total), long(scale2), long(shift2), long(bias2)],
        )
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
            _ => Matrix::at(g.parts.at(), 0, y, x * y),
        };
        self.multiply((x, y, each), 1.0, left, right, 0.0, out, r * parts)?;
        if parts > 1 {
            self.add_parts(g.parts.at(), parts, x * y, to, r)?;
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
            &[pointer(g.parts.at()), pointer(x), pointer(mask), int(rows), int(columns), int(chunk)],
        )?;
        self.add_parts(g.parts.at(), chunks, columns, to, r)
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
