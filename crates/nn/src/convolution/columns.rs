//! An image as a matrix with a column for each output pixel: the values it is computed from, one for each tap of the kernel.

use std::ops::Range;

use super::sizes::Geometry;
use crate::cpu::Real;

/// Output pixels that are computed together: some rows of one image, or several whole images where those are small.
#[derive(Debug, Clone)]
pub(super) struct Tile {
    /// Of the images at hand.
    pub(super) images: Range<usize>,
    /// Of each output image.
    pub(super) rows: Range<usize>,
}

/// What one tap of the kernel reads for a tile.
struct Tap {
    /// Output rows and columns for which it reads from within the image.
    rows: Range<usize>,
    columns: Range<usize>,
    /// Where it stands in the kernel.
    row: usize,
    column: usize,
}

impl Geometry {
    /// Output pixels of a tile.
    pub(super) fn pixels_of(&self, tile: &Tile) -> usize {
        tile.images.len() * tile.rows.len() * self.out_width
    }

    /// Whether one tap's values are the image itself, moved: the same number of pixels in a row before and after.
    fn moves(&self) -> bool {
        self.stride == 1 && self.out_width == self.width
    }

    /// Of `out` output pixels in a row (or column) those whose tap number `at` is within an image of this `size`.
    fn within(&self, at: usize, size: usize, out: usize) -> Range<usize> {
        let end = (size + self.padding).saturating_sub(at).div_ceil(self.stride).min(out);
        self.padding.saturating_sub(at).div_ceil(self.stride).min(end)..end
    }

    fn tap(&self, row: usize, column: usize, tile: &Tile) -> Tap {
        let rows = self.within(row, self.height, self.out_height);
        let start = rows.start.clamp(tile.rows.start, tile.rows.end);
        let rows = start..rows.end.clamp(start, tile.rows.end);
        Tap { rows, columns: self.within(column, self.width, self.out_width), row, column }
    }

    /// Where in a plane the tap reads for the output pixel (y, x), which it does from within.
    fn source(&self, tap: &Tap, y: usize, x: usize) -> usize {
        (y * self.stride + tap.row - self.padding) * self.width + x * self.stride + tap.column - self.padding
    }

    /// Where moved pixels come from and go to: from the first to the last within the image, in one piece. Pixels between that are beyond
    /// the image's left or right side come from its other side.
    fn moved(&self, tap: &Tap, tile: &Tile) -> Option<(Range<usize>, Range<usize>)> {
        if tap.rows.is_empty() || tap.columns.is_empty() {
            return None;
        }
        let place = |y: usize, x: usize| (y - tile.rows.start) * self.width + x;
        let (first, last) = ((tap.rows.start, tap.columns.start), (tap.rows.end - 1, tap.columns.end - 1));
        let from = self.source(tap, first.0, first.1)..self.source(tap, last.0, last.1) + 1;
        Some((from, place(first.0, first.1)..place(last.0, last.1) + 1))
    }
}

/// Writes columns [channels * k * k, pixels of the tile] of images x [.., inputs, height, width].
#[inline(always)]
pub(super) fn gather<T: Real>(columns: &mut [T], x: &[T], tile: &Tile, channels: Range<usize>, geometry: &Geometry) {
    for_each_part(
        geometry,
        tile,
        channels,
        #[inline(always)]
        |tap, plane, part| {
            let (plane, part) = (&x[plane], &mut columns[part]);
            if geometry.moves() {
                let Some((from, to)) = geometry.moved(tap, tile) else { return part.fill(T::zero()) };
                part[..to.start].fill(T::zero());
                part[to.end..].fill(T::zero());
                part[to].copy_from_slice(&plane[from]);
                return clear_sides(part, tap, geometry);
            }
            part.fill(T::zero());
            for y in tap.rows.clone() {
                let row = &mut part[(y - tile.rows.start) * geometry.out_width..][..geometry.out_width];
                let Some(first) = tap.columns.clone().next() else { return };
                let source = plane[geometry.source(tap, y, first)..].iter().step_by(geometry.stride);
                row[tap.columns.clone()].iter_mut().zip(source).for_each(|(to, from)| *to = *from);
            }
        },
    );
}

/// Adds columns [channels * k * k, pixels of the tile] to where [`gather`] would have read them in x. Spoils the columns.
#[inline(always)]
pub(super) fn scatter<T: Real>(
    columns: &mut [T],
    x: &mut [T],
    tile: &Tile,
    channels: Range<usize>,
    geometry: &Geometry,
) {
    for_each_part(
        geometry,
        tile,
        channels,
        #[inline(always)]
        |tap, plane, part| {
            let (plane, part) = (&mut x[plane], &mut columns[part]);
            if geometry.moves() {
                let Some((from, to)) = geometry.moved(tap, tile) else { return };
                clear_sides(part, tap, geometry);
                return plane[from].iter_mut().zip(&part[to]).for_each(|(sum, x)| *sum += *x);
            }
            for y in tap.rows.clone() {
                let row = &part[(y - tile.rows.start) * geometry.out_width..][..geometry.out_width];
                let Some(first) = tap.columns.clone().next() else { return };
                let place = plane[geometry.source(tap, y, first)..].iter_mut().step_by(geometry.stride);
                place.zip(&row[tap.columns.clone()]).for_each(|(sum, x)| *sum += *x);
            }
        },
    );
}

/// For each tap, channel and image: its plane of x and its part of the columns.
#[inline(always)]
fn for_each_part(
    geometry: &Geometry,
    tile: &Tile,
    channels: Range<usize>,
    mut work: impl FnMut(&Tap, Range<usize>, Range<usize>),
) {
    let Geometry { kernel, inputs, .. } = *geometry;
    let (plane, length) = (geometry.plane(), tile.rows.len() * geometry.out_width);
    for at in 0..kernel * kernel {
        let tap = geometry.tap(at / kernel, at % kernel, tile);
        for (row, channel) in channels.clone().enumerate() {
            let row = (row * kernel * kernel + at) * tile.images.len();
            for (image, number) in tile.images.clone().enumerate() {
                let (from, to) = ((number * inputs + channel) * plane, (row + image) * length);
                work(&tap, from..from + plane, to..to + length);
            }
        }
    }
}

/// Zeros where the tap reads beyond the image's left or right side.
#[inline(always)]
fn clear_sides<T: Real>(part: &mut [T], tap: &Tap, geometry: &Geometry) {
    // Down the columns: there are few, and short pieces of rows would each be a call.
    for column in (0..tap.columns.start).chain(tap.columns.end..geometry.out_width) {
        part[column..].iter_mut().step_by(geometry.out_width).for_each(|value| *value = T::zero());
    }
}
