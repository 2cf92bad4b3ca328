//! Layer 1's feed-forward block backwards where what it keeps for that is halves: in TF32 on Hopper.

use super::super::buffers::{Activations, Gradients, Images};
use super::super::cuda::{Grid, Matrix, Product};
use super::super::forward::{Inputs, Net, int, long, pointer};
use super::splits;
use crate::EnsembleError;

/// Floats of shared memory that a block has for rows on their way: eight times Tile in feed_forward_backward_halves.cu.
const TILES: usize = 8 * 4096;

impl Net<'_> {
    /// Where a layer's largest gradient `after` is noted, a number for each replica; nowhere where nobody asks.
    pub(super) fn largest_after(&self, a: &Activations, layer: usize) -> u64 {
        match &a.images {
            Some(images) if self.keeps_halves(layer) => self.cuda.after(images.kept.at(), a.replicas),
            _ => 0,
        }
    }

    /// A number of blocks for each of `r` replicas, at most `most`, of which as many run at last as at once.
    pub(super) fn even_blocks(&self, r: usize, most: usize) -> usize {
        let at_once = self.cuda.multiprocessors();
        match r * most / at_once {
            0 => most,
            turns => (turns * at_once / r).max(1),
        }
    }

    /// Through the block by a kernel with the grid of `feed_forward_backward`.
    pub(super) fn halves_backward(
        &self,
        inputs: &Inputs,
        a: &Activations,
        g: &Gradients,
        images: &Images,
        grid: Grid,
    ) -> Result<(), EnsembleError> {
        let d = self.dims.d;
        let (r, rows) = (a.replicas, a.strings * self.dims.positions(0));
        let (own, grads, places) = (&a.layers[0], &g.layers[0], &self.places.layers[0]);
        self.cuda.launch(
            "feed_forward_backward_halves",
            Grid {
                shared: grid.shared + (size_of::<f32>() * TILES) as u32,
                numbers: (4 * r * rows * d) as f64,
                ..grid
            },
            &[
                pointer(grads.before.at()),
                pointer(grads.hidden.at()),
                pointer(self.scaled_halves(g, r * rows)),
                pointer(g.tile_parts.at()),
                pointer(images.kept.at()),
                pointer(grads.after.at()),
                pointer(own.hidden.at()),
                pointer(own.norm1.at()),
                pointer(own.variance1.at()),
                pointer(images.halves.at()),
                long(images.stride),
                pointer(images.powers.at()),
                pointer(inputs.parameters),
                long(self.places.total),
                long(places.scale1),
                int(rows),
            ],
        )
    }

    /// The gradients of the block's weights from what that kernel stored.
    pub(super) fn halves_gradients(
        &self,
        a: &Activations,
        g: &Gradients,
        images: &Images,
    ) -> Result<(), EnsembleError> {
        let (r, rows) = (a.replicas, a.strings * self.dims.positions(0));
        let (own, grads, places) = (&a.layers[0], &g.layers[0], &self.places.layers[0]);
        let factor = |which: usize| self.cuda.after(images.kept.at(), which * r);
        let scaled = self.scaled_halves(g, r * rows);
        self.halves_gradient(g, [scaled, own.hidden.at()], rows, (places.weight2, factor(2)), r)?;
        self.halves_gradient(g, [grads.hidden.at(), own.norm1.at()], rows, (places.weight1, factor(3)), r)
    }

    /// Where the halves of the gradient `after` are: behind those of the hidden numbers' gradient, which so many rows have.
    fn scaled_halves(&self, g: &Gradients, rows: usize) -> u64 {
        g.layers[0].hidden.at() + (size_of::<u16>() * rows * self.dims.ff) as u64
    }

    /// The gradient [128, 128] of the weight at `place` from those of its outputs and its inputs, both [R, rows, 128] as halves; sums of their
    /// products are to be multiplied by factor [R].
    fn halves_gradient(
        &self,
        g: &Gradients,
        [outputs, inputs]: [u64; 2],
        rows: usize,
        (place, factor): (usize, u64),
        r: usize,
    ) -> Result<(), EnsembleError> {
        let d = self.dims.d;
        let parts = splits(r, rows);
        let each = rows / parts;
        self.cuda.product(Product {
            m: d,
            n: d,
            k: each,
            alpha: 1.0,
            a: Matrix::at(outputs, 0, d, each * d).transposed(),
            b: Matrix::at(inputs, 0, d, each * d),
            beta: 0.0,
            c: Matrix::at(self.parts_of(g), 0, d, d * d),
            batch: r * parts,
            halves: true,
        })?;
        let (to, total) = self.place(g, place);
        self.cuda.launch(
            "add_compact_parts",
            self.elements(d * d, r, parts as f64),
            &[pointer(to), long(total), pointer(self.parts_of(g)), int(parts), pointer(factor)],
        )
    }
}
