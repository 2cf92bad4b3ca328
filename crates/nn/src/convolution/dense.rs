//! Convolutions across all channels, as products of matrices: the weight [outputs, taps] times [columns](super::columns) [taps, pixels].
//!
//! The columns are made anew for every product, of so few pixels and channels at a time that they stay in a core's cache.

use std::ops::Range;

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::columns::{Tile, gather, scatter};
use super::product::{Matrix, product};
use super::sizes::Geometry;
use crate::cpu::{Real, Values, by_dtype, share, tensor, with_scratch};

/// Output pixels and taps of one product: columns of half a megabyte in f32.
const PIXELS: usize = 256;
const TAPS: usize = 576;

/// Values between the end of one row of a copied matrix and the beginning of the next.
const APART: usize = 16;

/// Into how many pieces the sum over images that is the weight's gradient is cut at least, where there are as many images; fixed, so that
/// it does not depend on how many cores there are.
const PIECES: usize = 32;

pub(super) fn forward(
    x: &FlexTensor,
    weight: &FlexTensor,
    bias: Option<&FlexTensor>,
    geometry: Geometry,
) -> FlexTensor {
    by_dtype!(x, outputs(x, weight, bias, geometry))
}

pub(super) fn input_gradient(weight: &FlexTensor, gradient: &FlexTensor, geometry: Geometry) -> FlexTensor {
    by_dtype!(weight, inputs(weight, gradient, geometry))
}

pub(super) fn weight_gradient(x: &FlexTensor, gradient: &FlexTensor, geometry: Geometry) -> FlexTensor {
    by_dtype!(x, weights(x, gradient, geometry))
}

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

    /// The most values that columns of one tile and part of the channels have.
    fn most_columns(&self) -> usize {
        self.taps_of(self.channels_at_once()) * self.most_pixels()
    }

    /// The most pixels of a tile.
    fn most_pixels(&self) -> usize {
        self.tiles(self.batch).next().map_or(0, |tile| self.pixels_of(&tile))
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

/// The same, always copied.
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
fn outputs<T: Real>(x: &FlexTensor, weight: &FlexTensor, bias: Option<&FlexTensor>, geometry: Geometry) -> FlexTensor {
    let (x, weight, bias) = (Values::of(x), Values::of(weight), bias.map(Values::of));
    let (x, weight, bias): (&[T], &[T], Option<&[T]>) = (x.get(), weight.get(), bias.as_ref().map(Values::get));
    let Geometry { batch, inputs, outputs, .. } = geometry;
    let (plane, pixels, taps, together) =
        (geometry.plane(), geometry.pixels(), geometry.taps(), geometry.images_at_once());
    let mut y = vec![T::zero(); batch * outputs * pixels];
    let pieces = x.par_chunks(together * inputs * plane).zip(y.par_chunks_mut(together * outputs * pixels));
    share(
        geometry.operations(),
        pieces,
        #[inline(always)]
        |(x, y)| {
            if let Some(bias) = bias {
                y.chunks_exact_mut(pixels).zip(bias.iter().cycle()).for_each(|(y, bias)| y.fill(*bias));
            }
            let memory = [geometry.most_columns(), outputs * (geometry.most_pixels() + APART)];
            with_scratch(
                memory,
                #[inline(always)]
                |[memory, mixed]| {
                    for tile in geometry.tiles(y.len() / (outputs * pixels)) {
                        let own = geometry.pixels_of(&tile);
                        for channels in geometry.channels() {
                            let (from, depth) = (geometry.taps_of(channels.start), geometry.taps_of(channels.len()));
                            let first = channels.start == 0;
                            let weight = Matrix::new(&weight[from..], taps);
                            let columns = columns(memory, x, &tile, channels, &geometry);
                            match tile.images.len() {
                                1 => {
                                    let y = &mut y[geometry.start(outputs, &tile)..];
                                    product(
                                        [outputs, own, depth],
                                        y,
                                        pixels,
                                        weight,
                                        columns,
                                        !first || bias.is_some(),
                                    );
                                }
                                _ => product([outputs, own, depth], mixed, own, weight, columns, !first),
                            }
                        }
                        if tile.images.len() > 1 {
                            for (at, mixed) in mixed.chunks_exact(pixels).take(outputs * tile.images.len()).enumerate()
                            {
                                let (output, image) =
                                    (at / tile.images.len(), tile.images.start + at % tile.images.len());
                                let y = &mut y[(image * outputs + output) * pixels..][..pixels];
                                y.iter_mut().zip(mixed).for_each(|(y, mixed)| *y += *mixed);
                            }
                        }
                    }
                },
            );
        },
    );
    tensor(y, &geometry.output_shape())
}

/// dx: the columns weight^T * dy, each added to where its values came from.
fn inputs<T: Real>(weight: &FlexTensor, gradient: &FlexTensor, geometry: Geometry) -> FlexTensor {
    let (weight, gradient) = (Values::of(weight), Values::of(gradient));
    let (weight, gradient): (&[T], &[T]) = (weight.get(), gradient.get());
    let Geometry { batch, inputs, outputs, .. } = geometry;
    let (plane, pixels, taps, together) =
        (geometry.plane(), geometry.pixels(), geometry.taps(), geometry.images_at_once());
    let weight = transposed(weight, outputs, taps);
    let mut dx = vec![T::zero(); batch * inputs * plane];
    let pieces = gradient.par_chunks(together * outputs * pixels).zip(dx.par_chunks_mut(together * inputs * plane));
    share(
        geometry.operations(),
        pieces,
        #[inline(always)]
        |(gradient, dx)| {
            let memory = [geometry.most_columns(), outputs * (geometry.most_pixels() + APART)];
            with_scratch(
                memory,
                #[inline(always)]
                |[memory, mixed]| {
                    for tile in geometry.tiles(dx.len() / (inputs * plane)) {
                        let own = geometry.pixels_of(&tile);
                        let gradient = side_by_side(mixed, gradient, &tile, &geometry);
                        for channels in geometry.channels() {
                            let (from, rows) = (geometry.taps_of(channels.start), geometry.taps_of(channels.len()));
                            let weight = Matrix::new(&weight[from * outputs..], outputs);
                            if geometry.is_pointwise() && tile.images.len() == 1 {
                                let dx = &mut dx[geometry.start(inputs, &tile) + channels.start * plane..];
                                product([rows, own, outputs], dx, plane, weight, gradient, false);
                                continue;
                            }
                            product([rows, own, outputs], memory, own, weight, gradient, false);
                            scatter(memory, dx, &tile, channels, &geometry);
                        }
                    }
                },
            );
        },
    );
    tensor(dx, &geometry.input_shape())
}

/// dw: the sum over images of dy * columns^T.
fn weights<T: Real>(x: &FlexTensor, gradient: &FlexTensor, geometry: Geometry) -> FlexTensor {
    let (x, gradient) = (Values::of(x), Values::of(gradient));
    let (x, gradient): (&[T], &[T]) = (x.get(), gradient.get());
    let Geometry { batch, inputs, outputs, kernel, .. } = geometry;
    let (plane, pixels, taps) = (geometry.plane(), geometry.pixels(), geometry.taps());
    let parts: Vec<Range<usize>> = geometry.channels().collect();
    let images = batch.div_ceil(PIECES.div_ceil(parts.len()));
    // For each block of images its own sum, [taps, outputs]: turned, since it is the shorter matrix of a product that is copied once more.
    let mut sums = vec![T::zero(); batch.div_ceil(images) * taps * outputs];
    let blocks = sums.chunks_mut(taps * outputs).zip(x.chunks(images * inputs * plane));
    let pieces: Vec<_> = blocks
        .zip(gradient.chunks(images * outputs * pixels))
        .flat_map(|((sums, x), gradient)| {
            let sums = sums.chunks_mut(geometry.taps_of(geometry.channels_at_once()) * outputs);
            sums.zip(&parts).map(move |(sum, channels)| (sum, channels, x, gradient))
        })
        .collect();
    share(
        geometry.operations(),
        pieces.into_par_iter(),
        #[inline(always)]
        |(sum, channels, x, gradient)| {
            let memory = [geometry.most_columns(), outputs * (geometry.most_pixels() + APART)];
            with_scratch(
                memory,
                #[inline(always)]
                |[memory, mixed]| {
                    for (at, tile) in geometry.tiles(gradient.len() / (outputs * pixels)).enumerate() {
                        let (rows, own) = (geometry.taps_of(channels.len()), geometry.pixels_of(&tile));
                        // Copied, as the product reads it down its columns: rows that are a power of two apart would share few lines of the cache.
                        let gradient = copied(mixed, gradient, &tile, &geometry).transposed();
                        let columns = columns(memory, x, &tile, channels.clone(), &geometry);
                        product([rows, outputs, own], sum, outputs, columns, gradient, at > 0);
                    }
                },
            );
        },
    );
    let (total, others) = sums.split_at_mut(taps * outputs);
    total.par_chunks_mut(1 << 14).enumerate().for_each(|(at, total)| {
        for other in others.chunks_exact(taps * outputs) {
            total.iter_mut().zip(&other[at << 14..]).for_each(|(sum, x)| *sum += *x);
        }
    });
    tensor(transposed(total, taps, outputs), &[outputs, inputs, kernel, kernel])
}

/// A matrix [rows, columns] as [columns, rows].
fn transposed<T: Real>(matrix: &[T], rows: usize, columns: usize) -> Vec<T> {
    // Square by square: lines of the cache are used whole on both sides.
    const SIDE: usize = 16;
    let mut turned = vec![T::zero(); rows * columns];
    turned.par_chunks_mut(SIDE * rows).enumerate().for_each(|(band, turned)| {
        for first in (0..rows).step_by(SIDE) {
            for (column, turned) in turned.chunks_exact_mut(rows).enumerate() {
                let from = &matrix[band * SIDE + column..];
                for row in first..(first + SIDE).min(rows) {
                    turned[row] = from[row * columns];
                }
            }
        }
    });
    turned
}
