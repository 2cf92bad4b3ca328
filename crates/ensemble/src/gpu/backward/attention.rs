//! Back through the attention of a layer, one function for each way in which it was computed.

use super::super::buffers::{Activations, Floats, Gradients, Images};
use super::super::cuda::{Arg, Grid, Matrix, THREADS};
use super::super::forward::{Extent, Inputs, NARROW_STRINGS, Net, int, long, pointer};
use super::super::shape::{Dims, LayerPlaces};
use super::{NARROW_LINES, SHARED, STRINGS_A_BLOCK, rows_a_block};
use crate::EnsembleError;

impl Net<'_> {
    /// Layer 1: through the mixing to the tables, through the tables to the embeddings.
    pub(super) fn table_backward(&self, inputs: &Inputs, a: &Activations, g: &Gradients) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, width, mixed, places) = (a.replicas, self.dims.head_width(), self.dims.mixed(), &self.places.layers[0]);
        match (&a.narrow, self.mixing_memory(), &a.images) {
            (Some(narrow), ..) => self.narrow_backward(inputs, a, g, narrow)?,
            (None, Some(shared), Some(images)) => self.mixing_backward(inputs, a, g, images, shared)?,
            _ => self.mixed_backward(inputs, a, g)?,
        }

        let table = 2 * n * 3 * d;
        let part = |of: u64, third: usize, head: usize| Matrix::at(of, third * d + head * width, 3 * d, table);
        let (qkv, grads) = (a.token_qkv.at(), g.token_qkv.at());
        let values = |head: usize| Matrix::at(g.values.at(), head * 2 * n * d, d, mixed * d);
        self.beside(|| {
            for head in 0..heads {
                let out = Matrix::at(g.parameters.at(), places.out_weight + head * width, d, self.places.total);
                self.multiply((d, width, 2 * n), 1.0, values(head).transposed(), part(qkv, 2, head), 0.0, out, r)?;
            }
            Ok(())
        })?;
        for head in 0..heads {
            let out = self.weight(inputs, places.out_weight + head * width, d);
            self.multiply((2 * n, width, d), 1.0, values(head), out, 0.0, part(grads, 2, head), r)?;
            let scores = Matrix::at(g.scores.at(), head * 4 * n * n, 2 * n, heads * 4 * n * n);
            let scale = self.score_scale();
            let (queries, keys) = (part(qkv, 0, head), part(qkv, 1, head));
            self.multiply((2 * n, width, 2 * n), scale, scores, keys, 0.0, part(grads, 0, head), r)?;
            self.multiply((2 * n, width, 2 * n), scale, scores.transposed(), queries, 0.0, part(grads, 1, head), r)?;
        }
        let qkv = Matrix::at(grads, 0, 3 * d, table);
        self.beside(|| {
            let tokens = Matrix::at(a.tokens.at(), 0, d, 2 * n * d);
            let weight = Matrix::at(g.parameters.at(), places.in_weight, d, self.places.total);
            self.multiply((3 * d, d, 2 * n), 1.0, qkv.transposed(), tokens, 0.0, weight, r)?;
            self.input_bias(g, grads, 2 * n, places.in_bias, r)
        })?;
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

    /// The same in one kernel on tensor cores, which gives the sums by token, too.
    fn mixing_backward(
        &self,
        inputs: &Inputs,
        a: &Activations,
        g: &Gradients,
        images: &Images,
        shared: u32,
    ) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, b, mixed) = (a.replicas, a.strings, self.dims.mixed());
        let values = Matrix::at(a.values.at(), 0, d, mixed * d);
        self.prepare(images, (0, 0), values, Extent { row_groups: (64, 2 * n), ..Extent::WHOLE }, r)?;
        self.cuda.count_flops((4 * r * b * n * d * mixed) as f64);
        let mut arguments: Vec<Arg> =
            [&g.scores, &g.tokens, &g.parts, &g.layers[0].before, &a.scores, &a.exponents, &images.halves]
                .map(|array| pointer(array.at()))
                .into();
        arguments.extend([long(images.stride), pointer(images.powers.at()), pointer(a.words[0].at())]);
        arguments.extend([b, n, inputs.sets].map(int));
        self.cuda.launch(
            "mixing_backward",
            Grid {
                blocks: (n as u32, r as u32, 1),
                threads: THREADS as u32,
                shared,
                numbers: (r * n * d * (b + heads * 64)) as f64,
            },
            &arguments,
        )?;
        self.cuda.launch(
            "gather_values",
            Grid { blocks: (mixed as u32, r as u32, 1), threads: 128, shared: 0, numbers: (r * n * mixed * d) as f64 },
            &[pointer(g.values.at()), pointer(g.parts.at()), int(n)],
        )?;
        self.column_sums(g, (g.tokens.at(), 0), (2 * n, d), self.place(g, self.places.layers[0].out_bias), r)
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

    pub(super) fn middle_backward(
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

    pub(super) fn last_backward(
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

        let by_head = |of: u64, head: usize| Matrix::at(of, head * d, heads * d, b * heads * d);
        let slice = |of: u64, head: usize| Matrix::at(of, head * width, d, b * d);
        let gradient = |place: usize| Matrix::at(g.parameters.at(), place, d, total);
        // Of the input weights, those of queries, keys and values by head.
        let place = |third: usize, head: usize| places.in_weight + (third * d + head * width) * d;
        self.beside(|| {
            self.weight_gradient(g, g.layers[layer].before.at(), (own.values.at(), d), (b, d), places.out_weight, r)?;
            self.column_sums(g, (grads.values.at(), 0), (b, d), self.place(g, places.in_bias + 2 * d), r)?;
            for head in 0..heads {
                let (dvalues, mixed) = (slice(grads.values.at(), head), by_head(own.mixed.at(), head));
                self.multiply((width, d, b), 1.0, dvalues.transposed(), mixed, 0.0, gradient(place(2, head)), r)?;
            }
            Ok(())
        })?;
        for head in 0..heads {
            let (dvalues, dmixed) = (slice(grads.values.at(), head), by_head(grads.mixed.at(), head));
            self.multiply((b, d, width), 1.0, dvalues, self.weight(inputs, place(2, head), d), 0.0, dmixed, r)?;
        }
        let mut arguments: Vec<Arg> = [
            g.layers[layer - 1].after.at(),
            self.largest_after(a, layer - 1),
            grads.below.at(),
            grads.folded.at(),
            grads.weights.at(),
            grads.mixed.at(),
            own.folded.at(),
            own.weights.at(),
            own.mean.at(),
            a.layers[layer - 1].norm2.at(),
            a.layers[layer - 1].variance2.at(),
        ]
        .map(pointer)
        .into();
        arguments.extend([pointer(inputs.parameters), long(total), long(scale2), int(b), int(n)]);
        // Where a warp has a string of a wide network to itself, it is kept in shared memory; four warps leave room for other blocks.
        let halves = self.keeps_halves(layer - 1);
        let (warps, string) = (4, if halves { size_of::<u16>() * n * d } else { self.cuda.size_of(n * d) });
        let near =
            self.dims.is_tiled() && !self.cuda.is_double() && self.cuda.tensor_memory(0, warps * n * d).is_some();
        let grid = match near {
            true => Grid {
                blocks: (b.div_ceil(warps) as u32, r as u32, 1),
                threads: 32 * warps as u32,
                shared: (warps * string) as u32,
                numbers: if halves { 1.5 } else { 2.0 } * (r * b * n * d) as f64,
            },
            false => self.rows(b, r, 2.0 * n as f64),
        };
        arguments.push(int(usize::from(near)));
        let kernel = self.for_norm(layer - 1, ["attend_last_backward", "attend_last_backward_halves"]);
        self.cuda.launch(kernel, grid, &arguments)?;
        let scale = self.score_scale();
        for head in 0..heads {
            let (dfolded, dquery) = (by_head(grads.folded.at(), head), slice(grads.query.at(), head));
            let keys = self.weight(inputs, place(1, head), d).transposed();
            self.multiply((b, width, d), scale, dfolded, keys, 0.0, dquery, r)?;
        }
        // What was asked for beside until here reads `before`, which changes below, and the parts and tokens that the layer below writes.
        self.cuda.meet()?;
        self.beside(|| {
            for head in 0..heads {
                // The keys' bias drops out of the softmax: its gradient is exactly zero.
                let (query, dfolded) = (slice(own.query.at(), head), by_head(grads.folded.at(), head));
                self.multiply((width, d, b), scale, query.transposed(), dfolded, 0.0, gradient(place(1, head)), r)?;
            }
            self.column_sums(g, (grads.query.at(), 0), (b, d), self.place(g, places.in_bias), r)?;
            self.weight_gradient(g, grads.query.at(), (own.input.at(), d), (b, d), places.in_weight, r)
        })?;
        let query = Matrix::at(grads.query.at(), 0, d, b * d);
        self.multiply((b, d, d), 1.0, query, self.weight(inputs, places.in_weight, d), 1.0, before, r)?;

        let mut arguments: Vec<Arg> = [
            g.layers[layer - 1].after.at(),
            self.largest_after(a, layer - 1),
            grads.below.at(),
            g.layers[layer].before.at(),
            a.layers[layer - 1].norm2.at(),
            a.layers[layer - 1].variance2.at(),
        ]
        .map(pointer)
        .into();
        arguments.extend([pointer(inputs.parameters), long(total), long(scale2), int(b), int(n)]);
        let kernel = self.for_norm(layer - 1, ["attend_last_direct", "attend_last_direct_halves"]);
        self.cuda.launch(kernel, self.rows(b, r, 11.0), &arguments)?;
        self.beside(|| {
            self.column_sums(g, (grads.below.at(), 0), (b, 3 * d), (g.sums.at(), 3 * d), r)?;
            self.cuda.launch(
                "below_gradients",
                self.elements(d, r, 0.0),
                &[
                    pointer(g.parameters.at()),
                    pointer(g.sums.at()),
                    long(total),
                    long(scale2),
                    long(shift2),
                    long(bias2),
                ],
            )
        })
    }
}
