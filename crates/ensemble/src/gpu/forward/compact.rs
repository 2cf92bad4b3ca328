//! Forward passes of which only outputs and norms are wanted, in TF32: what is between the layers is kept as halves, and the last layer is three
//! kernels.

use super::super::buffers::Activations;
use super::super::cuda::{Arg, Grid, Matrix};
use super::super::shape::Dims;
use super::{Extent, Inputs, Net, THREADS, int, long, pointer};
use crate::EnsembleError;

/// Threads of a block of compact_queries and compact_top: COMPACT_WARPS in last_compact.cu. Two of them do a string.
const COMPACT_THREADS: usize = 256;

impl Net<'_> {
    /// Whether networks have this shape and the GPU these kernels.
    pub(super) fn is_compact(&self) -> bool {
        let images = 4 * self.dims.d * self.dims.d;
        self.dims.layers == 2 && self.cuda.is_compact() && self.cuda.tensor_memory(images, 1024).is_some()
    }

    /// All from the tables on.
    pub(super) fn compact_forward(&self, inputs: &Inputs, a: &Activations, shared: u32) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, ff, .. } = *self.dims;
        let (r, b) = (a.replicas, a.strings);
        let (Some(images), Some(last)) = (&a.images, &a.last) else { return Ok(()) };
        let (below, top) = (&self.places.layers[0], &self.places.layers[1]);
        let own = &a.layers[1];
        self.first_layer(inputs, a, "first_layer_compact", shared)?;

        // Queries, through the keys.
        let square = Matrix::at(own.weight.at(), 0, d, d * d);
        let folded = [own.weight.at(), images.bias.at(), images.bounds.at()];
        self.fold_into(folded, inputs, [top.in_weight, top.in_bias, below.scale2, below.shift2], r)?;
        self.prepare(images, (0, 0), square, Extent::WHOLE, r)?;
        let keys = self.weight(inputs, top.in_weight + d * d, d).transposed();
        self.prepare(images, (1, d * d), keys, Extent::WHOLE, r)?;
        // A block for every 128 strings would load the matrices too often; for more than 512, blocks would be few.
        let blocks = b.div_ceil(512);
        let grid = |matrices: usize, numbers: usize| Grid {
            blocks: (blocks as u32, r as u32, 1),
            threads: COMPACT_THREADS as u32,
            shared: (size_of::<u16>() * matrices * d * d) as u32,
            numbers: (r * b * numbers * d) as f64,
        };
        self.cuda.count_flops((4 * r * b * d * d) as f64);
        self.cuda.launch(
            "compact_queries",
            grid(2, heads),
            &[
                pointer(last.folded.at()),
                pointer(a.layers[0].norm2.at()),
                pointer(images.halves.at()),
                long(images.stride),
                pointer(images.powers.at()),
                pointer(images.bias.at()),
                pointer(images.bounds.at()),
                pointer(inputs.parameters),
                long(self.places.total),
                long(below.scale2),
                Arg::Float(self.score_scale() as f32),
                int(b),
                int(n),
            ],
        )?;

        let strings = Grid {
            blocks: (b.div_ceil(THREADS / 32) as u32, r as u32, 1),
            threads: THREADS as u32,
            shared: 0,
            numbers: (r * b * (n / 2 + 2 * heads) * d) as f64,
        };
        let [mean, folded, norm] = [&last.mean, &last.folded, &a.layers[0].norm2].map(|array| pointer(array.at()));
        self.cuda.launch("compact_attention", strings, &[mean, folded, norm, int(b), int(n)])?;

        // Everything above.
        let folded = [own.weight.at(), images.bias.at(), images.bounds.at()];
        self.fold_into(
            folded,
            inputs,
            [top.in_weight + 2 * d * d, top.in_bias + 2 * d, below.scale2, below.shift2],
            r,
        )?;
        self.prepare(images, (0, 0), square, Extent::WHOLE, r)?;
        let out = self.weight(inputs, top.out_weight, d);
        self.prepare(images, (1, d * d), out, Extent::WHOLE, r)?;
        let folded = [own.weight.at(), own.bias.at(), self.cuda.after(images.bounds.at(), r * d)];
        self.fold_into(folded, inputs, [top.weight1, top.bias1, top.scale1, top.shift1], r)?;
        self.prepare(images, (2, 2 * d * d), square, Extent::WHOLE, r)?;
        let second = self.weight(inputs, top.weight2, ff);
        self.prepare(images, (3, 3 * d * d), second, Extent::WHOLE, r)?;
        self.cuda.count_flops((2 * r * b * d * (4 * d)) as f64);
        let mut arguments: Vec<Arg> = [&a.outputs, &own.variance1, &own.variance2, &last.mean, &a.layers[0].norm2]
            .map(|array| pointer(array.at()))
            .into();
        arguments.extend([pointer(images.halves.at()), long(images.stride)]);
        arguments.extend([&images.powers, &images.bias, &own.bias, &images.bounds].map(|array| pointer(array.at())));
        arguments.extend([pointer(inputs.parameters), long(self.places.total)]);
        let places = [below.scale2, below.shift2, top.out_bias, top.bias2, top.scale1, top.shift1];
        arguments.extend(places.map(long));
        arguments.extend([self.places.head, self.places.head_bias, top.scale2, top.shift2].map(long));
        arguments.extend([int(b), int(n)]);
        self.cuda.launch("compact_top", grid(4, heads + 1), &arguments)
    }
}
