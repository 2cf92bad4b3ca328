//! Attention, one function for each way in which a layer computes it.

use super::super::buffers::{Activations, Floats};
use super::super::cuda::{Grid, Matrix};
use super::super::shape::Dims;
use super::{Inputs, NARROW_STRINGS, Net, THREADS, int, long, pointer};
use crate::EnsembleError;

impl Net<'_> {
    /// Layer 1's mixing for each string, and its first norm.
    pub(super) fn table_attention(&self, inputs: &Inputs, a: &Activations) -> Result<(), EnsembleError> {
        let Dims { n, .. } = *self.dims;
        let (r, m, places) = (a.replicas, self.dims.positions(0), &self.places.layers[0]);
        let norm1 = &a.layers[0].norm1;
        match &a.narrow {
            Some(narrow) => self.narrow_attention(inputs, a, narrow)?,
            None => self.mixed_attention(inputs, a)?,
        }
        self.cuda.launch(
            "norm_embedded",
            self.rows(a.strings * m, r, 2.0),
            &[
                pointer(norm1.at()),
                pointer(a.layers[0].variance1.at()),
                pointer(a.tokens.at()),
                pointer(inputs.bits),
                pointer(inputs.parameters),
                long(self.places.total),
                long(places.out_bias),
                int(a.strings),
                int(n),
                int(m),
                int(inputs.sets),
            ],
        )
    }

    /// What attention adds, with no weight of it stored.
    fn narrow_attention(&self, inputs: &Inputs, a: &Activations, narrow: &[Floats; 2]) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, m) = (a.replicas, self.dims.positions(0));
        self.exponents_and_words(inputs, a)?;
        let [attended, sums] = narrow;
        // ROWS in narrow.cu.
        let rows = if d * heads > 8 { 2 } else { 4 };
        self.cuda.count_flops((2 * r * a.strings * m * n * heads * (d + 1)) as f64);
        self.cuda.launch(
            "attend_narrow",
            Grid {
                blocks: (m.div_ceil(rows) as u32, a.strings.div_ceil(NARROW_STRINGS) as u32, r as u32),
                threads: NARROW_STRINGS as u32,
                shared: 0,
                numbers: (r * (a.strings * m * (heads + 1) * d + heads * 4 * n * n)) as f64,
            },
            &[
                pointer(a.layers[0].norm1.at()),
                pointer(attended.at()),
                pointer(sums.at()),
                pointer(a.scores.at()),
                pointer(a.exponents.at()),
                pointer(a.largest.at()),
                pointer(a.values.at()),
                pointer(a.words[0].at()),
                int(a.strings),
                int(n),
                int(m),
                int(inputs.sets),
            ],
        )
    }

    /// What attention adds: its weights for each string, times the values.
    fn mixed_attention(&self, inputs: &Inputs, a: &Activations) -> Result<(), EnsembleError> {
        let Dims { n, d, .. } = *self.dims;
        let (r, m) = (a.replicas, self.dims.positions(0));
        let rows = a.strings * m;
        let mixed = self.dims.mixed();
        // A lane for each position where they are few: then a warp does a whole string.
        let (kernel, warps) = if n <= 32 { ("attend_short", a.strings) } else { ("attend", rows) };
        self.cuda.launch(
            kernel,
            Grid {
                blocks: (warps.div_ceil(THREADS / 32) as u32, r as u32, 1),
                threads: THREADS as u32,
                shared: 0,
                numbers: (r * rows * mixed) as f64,
            },
            &[
                pointer(a.mix.at()),
                pointer(a.scores.at()),
                pointer(inputs.bits),
                int(a.strings),
                int(n),
                int(m),
                int(inputs.sets),
            ],
        )?;
        let norm1 = &a.layers[0].norm1;
        self.multiply(
            (rows, d, mixed),
            1.0,
            Matrix::at(a.mix.at(), 0, mixed, rows * mixed),
            Matrix::at(a.values.at(), 0, d, mixed * d),
            0.0,
            Matrix::at(norm1.at(), 0, d, rows * d),
            r,
        )
    }

    /// A layer between the first and the last, computed plainly.
    pub(super) fn middle_attention(&self, inputs: &Inputs, a: &Activations, layer: usize) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, b, width) = (a.replicas, a.strings, self.dims.head_width());
        let (rows, places) = (b * n, &self.places.layers[layer]);
        let Some(own) = &a.middle[layer] else { return Ok(()) };
        self.scale_shift(inputs, a, layer - 1, own.input.at(), (rows, 1, 0))?;
        let input = Matrix::at(own.input.at(), 0, d, rows * d);
        let qkv = Matrix::at(own.qkv.at(), 0, 3 * d, rows * 3 * d);
        let weight = self.weight(inputs, places.in_weight, d);
        self.multiply((rows, 3 * d, d), 1.0, input, weight.transposed(), 0.0, qkv, r)?;
        self.add_bias(inputs, own.qkv.at(), places.in_bias, (rows, 3 * d), r)?;
        let part = |third: usize, head: usize| Matrix::at(own.qkv.at(), third * d + head * width, 3 * d, n * 3 * d);
        let weights = |head: usize| Matrix::at(own.weights.at(), head * n * n, n, heads * n * n);
        for head in 0..heads {
            let (queries, keys) = (part(0, head), part(1, head).transposed());
            self.multiply((n, n, width), self.score_scale(), queries, keys, 0.0, weights(head), r * b)?;
        }
        self.softmax("softmax", &[own.weights.at()], r * b * heads * n)?;
        for head in 0..heads {
            let mixed = Matrix::at(own.mixed.at(), head * width, d, n * d);
            self.multiply((n, width, n), 1.0, weights(head), part(2, head), 0.0, mixed, r * b)?;
        }
        self.project(inputs, a, layer, own.mixed.at(), own.input.at())
    }

    /// The last layer at the last position: keys fold into the query, values come after the mix.
    pub(super) fn last_attention(&self, inputs: &Inputs, a: &Activations, layer: usize) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, b, width) = (a.replicas, a.strings, self.dims.head_width());
        let places = &self.places.layers[layer];
        let below = &self.places.layers[layer - 1];
        let Some(own) = &a.last else { return Ok(()) };
        self.scale_shift(inputs, a, layer - 1, own.input.at(), (b, n, n - 1))?;
        let input = Matrix::at(own.input.at(), 0, d, b * d);
        let query = Matrix::at(own.query.at(), 0, d, b * d);
        let weight = self.weight(inputs, places.in_weight, d);
        self.multiply((b, d, d), 1.0, input, weight.transposed(), 0.0, query, r)?;
        self.add_bias(inputs, own.query.at(), places.in_bias, (b, d), r)?;
        for head in 0..heads {
            let query = Matrix::at(own.query.at(), head * width, d, b * d);
            let keys = self.weight(inputs, places.in_weight + (d + head * width) * d, d);
            let folded = Matrix::at(own.folded.at(), head * d, heads * d, b * heads * d);
            self.multiply((b, d, width), self.score_scale(), query, keys, 0.0, folded, r)?;
        }
        self.cuda.launch(
            self.for_norm(layer - 1, ["attend_last", "attend_last_halves"]),
            self.rows(b, r, n as f64),
            &[
                pointer(own.weights.at()),
                pointer(own.mean.at()),
                pointer(own.mixed.at()),
                pointer(own.folded.at()),
                pointer(a.layers[layer - 1].norm2.at()),
                pointer(inputs.parameters),
                long(self.places.total),
                long(below.scale2),
                long(below.shift2),
                int(b),
                int(n),
            ],
        )?;
        for head in 0..heads {
            let mixed = Matrix::at(own.mixed.at(), head * d, heads * d, b * heads * d);
            let weight = self.weight(inputs, places.in_weight + (2 * d + head * width) * d, d);
            let values = Matrix::at(own.values.at(), head * width, d, b * d);
            self.multiply((b, width, d), 1.0, mixed, weight.transposed(), 0.0, values, r)?;
        }
        self.add_bias(inputs, own.values.at(), places.in_bias + 2 * d, (b, d), r)?;
        self.project(inputs, a, layer, own.values.at(), own.input.at())
    }
}
