//! Convolutions across all channels, as products of matrices: the weight [outputs, taps] times [columns](super::columns) [taps, pixels].
//!
//! The columns are made anew for every product, of so few pixels and channels at a time that they stay in a core's cache.

use std::ops::Range;

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::columns::{Tile, gather, scatter};
use super::sizes::Geometry;
use crate::cpu::{Real, Scratch, Values, in_pieces, share, tensor};
use crate::product::{Matrix, product};

/// Output pixels and taps of one product: columns of half a megabyte in f32.
const PIXELS: usize = 256;
const TAPS: usize = 576;

/// Values between the end of one row of a copied matrix and the beginning of the next.
const APART: usize = 16;

/// Into how many pieces the sum over images that is the weight's gradient is cut, about, where there are as many images; fixed, so that
/// it does not depend on how many cores there are.
const PIECES: usize = 32;

impl Geometry {
    /// Floating-point operations of all products.
    fn operations(&self) -> usize {
        2 * self.batch * self.outputs * self.pixels() * self.taps()
    }

    /// Images that are looked at together.
    fn images_at_once(&self) -> usize {
        (PIXELS / self.pixels()).clamp(1, self.batch)
    }

    /// These images in tiles.
    fn tiles(&self, images: usize) -> impl Iterator<Item = Tile> + use<> {
        let (together, height) = (self.images_at_once(), self.out_height);
        let rows = if together > 1 { height } else { (PIXELS / self.out_width).clamp(1, height) };
        (0..images).step_by(together).flat_map(move |image| {
            let images = image..(image + together).min(images);
            (0..height)
                .step_by(rows)
                .map(move |row| Tile { images: images.clone(), rows: row..(row + rows).min(height) })
        })
    }

    /// Input channels that are looked at together, in parts as even as may be.
    fn channels_at_once(&self) -> usize {
        let most = (TAPS / (self.kernel * self.kernel)).max(1);
        self.inputs.div_ceil(self.inputs.div_ceil(most))
    }

    /// All input channels, in parts.
    fn channels(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (together, inputs) = (self.channels_at_once(), self.inputs);
        (0..inputs).step_by(together).map(move |first| first..(first + together).min(inputs))
    }

    /// Taps of so many channels.
    fn taps_of(&self, channels: usize) -> usize {
        channels * self.kernel * self.kernel
    }

    /// The most values that the columns of one tile and part of the channels have, and as many as its outputs have.
    fn memory(&self) -> [usize; 2] {
        let pixels = self.tiles(self.batch).next().map_or(0, |tile| self.pixels_of(&tile));
        [self.taps_of(self.channels_at_once()) * pixels, self.outputs * (pixels + APART)]
    }

    /// Images, and values of one input and of one output image.
    fn counts(&self) -> [usize; 3] {
        [self.batch, self.inputs * self.plane(), self.outputs * self.pixels()]
    }

    /// Whether the input itself is the columns.
    fn is_pointwise(&self) -> bool {
        self.kernel == 1 && self.stride == 1 && self.padding == 0
    }

    /// Where the first channel of the tile begins in a tensor of so many channels, as large as the output; for a tile of a single image.
    fn start(&self, channels: usize, tile: &Tile) -> usize {
        tile.images.start * channels * self.pixels() + tile.rows.start * self.out_width
    }
}

/// The columns of a tile of images x and some channels: x's own values where they are these, else written to `memory`.
#[inline(always)]
fn columns<'a, T: Real>(
    memory: &'a mut [T],
    x: &'a [T],
    tile: &Tile,
    channels: Range<usize>,
    geometry: &Geometry,
) -> Matrix<'a, T> {
    if geometry.is_pointwise() && tile.images.len() == 1 {
        let start = geometry.start(geometry.inputs, tile) + channels.start * geometry.plane();
        return Matrix::new(&x[start..], geometry.plane());
    }
    gather(memory, x, tile, channels, geometry);
    Matrix::new(memory, geometry.pixels_of(tile))
}

/// The tile's part of a tensor y of the output's size as a matrix [outputs, pixels of the tile]: y's own values where one image has them all,
/// else a copy in `memory`.
#[inline(always)]
fn side_by_side<'a, T: Real>(memory: &'a mut [T], y: &'a [T], tile: &Tile, geometry: &Geometry) -> Matrix<'a, T> {
    match tile.images.len() {
        1 => Matrix::new(&y[geometry.start(geometry.outputs, tile)..], geometry.pixels()),
        _ => copied(memory, y, tile, geometry),
    }
}

/// A copy in `memory` of the tile's part of a tensor y of the output's size, as a matrix [outputs, pixels of the tile].
#[inline(always)]
fn copied<'a, T: Real>(memory: &'a mut [T], y: &[T], tile: &Tile, geometry: &Geometry) -> Matrix<'a, T> {
    let (pixels, outputs, own) = (geometry.pixels(), geometry.outputs, tile.rows.len() * geometry.out_width);
    let step = geometry.pixels_of(tile) + APART;
    for (output, row) in memory.chunks_exact_mut(step).enumerate().take(outputs) {
        for (to, image) in row.chunks_exact_mut(own).zip(tile.images.clone()) {
            let from = (image * outputs + output) * pixels + tile.rows.start * geometry.out_width;
            to.copy_from_slice(&y[from..][..own]);
        }
    }
    Matrix::new(memory, step)
}

/// y = weight * columns + bias
pub(super) fn outputs<T: Real>(
    x: &FlexTensor,
    weight: &FlexTensor,
    bias: Option<&FlexTensor>,
    geometry: Geometry,
) -> FlexTensor {
    let (x, weight, bias) = (Values::of(x), Values::of(weight), bias.map(Values::of));
    let (x, weight, bias): (&[T], &[T], Option<&[T]>) = (x.get(), weight.get(), bias.as_ref().map(Values::get));
    let ([images, input, output], together) = (geometry.counts(), geometry.images_at_once());
    let pieces = x.par_chunks(together * input);
    let y = in_pieces(
        images * output,
        together * output,
        geometry.operations(),
        pieces,
        #[inline(always)]
        |y, x| output_images(y, x, weight, bias, &geometry),
    );
    tensor(y, &geometry.output_shape())
}

/// The outputs y, zeros so far, of some images.
#[inline(always)]
fn output_images<T: Real>(y: &mut [T], x: &[T], weight: &[T], bias: Option<&[T]>, geometry: &Geometry) {
    let (outputs, pixels, taps) = (geometry.outputs, geometry.pixels(), geometry.taps());
    let mut scratch = Scratch::take();
    let [memory, mixed] = scratch.parts(geometry.memory());
    for tile in geometry.tiles(y.len() / (outputs * pixels)) {
        let (own, images) = (geometry.pixels_of(&tile), tile.images.len());
        for channels in geometry.channels() {
            let (from, depth) = (geometry.taps_of(channels.start), geometry.taps_of(channels.len()));
            let (weight, add) = (Matrix::new(&weight[from..], taps), channels.start > 0);
            let columns = columns(memory, x, &tile, channels, geometry);
            let (to, step) = match images {
                1 => (&mut y[geometry.start(outputs, &tile)..], pixels),
                _ => (&mut *mixed, own),
            };
            product([outputs, own, depth], to, step, weight, columns, add);
        }
        if images > 1 {
            for (at, mixed) in mixed[..outputs * own].chunks_exact(pixels).enumerate() {
                let (output, image) = (at / images, tile.images.start + at % images);
                y[(image * outputs + output) * pixels..][..pixels].copy_from_slice(mixed);
            }
        }
    }
    if let Some(bias) = bias {
        for (y, bias) in y.chunks_exact_mut(pixels).zip(bias.iter().cycle()) {
            y.iter_mut().for_each(|y| *y += *bias);
        }
    }
}

/// dx: the columns weight^T * dy, each added to where its values came from.
pub(super) fn inputs<T: Real>(weight: &FlexTensor, gradient: &FlexTensor, geometry: Geometry) -> FlexTensor {
    let (weight, gradient) = (Values::of(weight), Values::of(gradient));
    let (weight, gradient): (&[T], &[T]) = (weight.get(), gradient.get());
    let weight = transposed(weight, geometry.outputs, geometry.taps());
    let ([images, input, output], together) = (geometry.counts(), geometry.images_at_once());
    let dx = in_pieces(
        images * input,
        together * input,
        geometry.operations(),
        gradient.par_chunks(together * output),
        #[inline(always)]
        |dx, gradient| input_images(dx, gradient, &weight, &geometry),
    );
    tensor(dx, &geometry.input_shape())
}

/// The gradients dx, zeros so far, of some images; the weight is [taps, outputs].
#[inline(always)]
fn input_images<T: Real>(dx: &mut [T], gradient: &[T], weight: &[T], geometry: &Geometry) {
    let (inputs, outputs, plane) = (geometry.inputs, geometry.outputs, geometry.plane());
    let mut scratch = Scratch::take();
    let [memory, mixed] = scratch.parts(geometry.memory());
    for tile in geometry.tiles(dx.len() / (inputs * plane)) {
        let own = geometry.pixels_of(&tile);
        let gradient = side_by_side(mixed, gradient, &tile, geometry);
        for channels in geometry.channels() {
            let (from, rows) = (geometry.taps_of(channels.start), geometry.taps_of(channels.len()));
            let weight = Matrix::new(&weight[from * outputs..], outputs);
            if geometry.is_pointwise() && tile.images.len() == 1 {
                let dx = &mut dx[geometry.start(inputs, &tile) + channels.start * plane..];
                product([rows, own, outputs], dx, plane, weight, gradient, false);
            } else {
                product([rows, own, outputs], memory, own, weight, gradient, false);
                scatter(memory, dx, &tile, channels, geometry);
            }
        }
    }
}

/// dw: the sum over images of dy * columns^T.
pub(super) fn weights<T: Real>(x: &FlexTensor, gradient: &FlexTensor, geometry: Geometry) -> FlexTensor {
    let (x, gradient) = (Values::of(x), Values::of(gradient));
    let (x, gradient): (&[T], &[T]) = (x.get(), gradient.get());
    let (taps, [images, input, output]) = (geometry.taps(), geometry.counts());
    let parts: Vec<Range<usize>> = geometry.channels().collect();
    // For each block of images and part of the channels its own sum.
    let block = images.div_ceil(PIECES.div_ceil(parts.len()));
    let blocks = x.chunks(block * input).zip(gradient.chunks(block * output));
    let pieces: Vec<_> = blocks.flat_map(|block| parts.iter().map(move |channels| (block, channels.clone()))).collect();
    let mut sums: Vec<Vec<T>> = vec![Vec::new(); pieces.len()];
    share(
        geometry.operations(),
        sums.par_iter_mut().zip(pieces),
        #[inline(always)]
        |(sum, ((x, gradient), channels))| {
            *sum = vec![T::zero(); geometry.taps_of(channels.len()) * geometry.outputs];
            add_weights(sum, x, gradient, channels, &geometry);
        },
    );
    let (first, others) = sums.split_at_mut(parts.len());
    first.par_iter_mut().enumerate().for_each(|(part, sum)| {
        for other in others.iter().skip(part).step_by(parts.len()) {
            sum.iter_mut().zip(other).for_each(|(sum, x)| *sum += *x);
        }
    });
    let dw = transposed(&first.concat(), taps, geometry.outputs);
    tensor(dw, &[geometry.outputs, geometry.inputs, geometry.kernel, geometry.kernel])
}

/// Adds some images' gradients of the weights of some channels to a sum [taps of the channels, outputs]: turned, since that way the smaller
/// matrix of the two is the one that the product copies once more.
#[inline(always)]
fn add_weights<T: Real>(sum: &mut [T], x: &[T], gradient: &[T], channels: Range<usize>, geometry: &Geometry) {
    let (rows, outputs) = (geometry.taps_of(channels.len()), geometry.outputs);
    let mut scratch = Scratch::take();
    let [memory, mixed] = scratch.parts(geometry.memory());
    for tile in geometry.tiles(gradient.len() / (outputs * geometry.pixels())) {
        // Copied, as the product reads it down its columns: rows a power of two apart would share few lines of the cache.
        let gradient = copied(mixed, gradient, &tile, geometry).transposed();
        let columns = columns(memory, x, &tile, channels.clone(), geometry);
        product([rows, outputs, geometry.pixels_of(&tile)], sum, outputs, columns, gradient, true);
    }
}

/// A matrix [rows, columns] as [columns, rows].
fn transposed<T: Real>(matrix: &[T], rows: usize, columns: usize) -> Vec<T> {
    // Square by square: lines of the cache are used whole on both sides.
    const SIDE: usize = 16;
    let bands = (0..columns.div_ceil(SIDE)).into_par_iter();
    in_pieces(
        rows * columns,
        SIDE * rows,
        rows * columns,
        bands,
        #[inline(always)]
        |turned, band| {
            for first in (0..rows).step_by(SIDE) {
                for (column, turned) in turned.chunks_exact_mut(rows).enumerate() {
                    let from = &matrix[band * SIDE + column..];
                    for row in first..(first + SIDE).min(rows) {
                        turned[row] = from[row * columns];
                    }
                }
            }
        },
    )
}
