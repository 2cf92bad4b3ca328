//! Convolutions of each channel by itself, at every pixel.
//!
//! A plane is copied into one with zeros around it. Then an output pixel's tap is a fixed distance away, and all of a plane's pixels are one
//! row of numbers, with a few between the rows of the image that are computed for nothing.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::sizes::Geometry;
use crate::cpu::{Real, Scratch, Values, in_pieces, tensor, total_product};

/// Pixels summed at once, in registers.
const LANES: usize = 32;

/// A plane with zeros around it, and its output.
#[derive(Clone, Copy)]
struct Padded {
    kernel: usize,
    padding: usize,
    height: usize,
    width: usize,
    out_height: usize,
    out_width: usize,
}

impl Padded {
    fn of(geometry: &Geometry) -> Self {
        let Geometry { kernel, padding, height, width, out_height, out_width, .. } = *geometry;
        Self { kernel, padding, height, width, out_height, out_width }
    }

    /// The convolution that is this one's gradient with respect to its input.
    fn reversed(self) -> Self {
        Self {
            padding: self.kernel - 1 - self.padding,
            height: self.out_height,
            width: self.out_width,
            out_height: self.height,
            out_width: self.width,
            ..self
        }
    }

    /// How far apart rows are.
    fn step(&self) -> usize {
        self.width + 2 * self.padding
    }

    /// Outputs, with those between the rows, in whole lanes.
    fn outputs(&self) -> usize {
        (self.out_height * self.step()).next_multiple_of(LANES)
    }

    /// The padded plane, with as much behind it as the last output's last tap needs.
    fn inputs(&self) -> usize {
        self.outputs() + (self.kernel - 1) * (self.step() + 1)
    }

    /// The plane with zeros around it.
    #[inline(always)]
    fn pad<T: Real>(&self, plane: &[T], padded: &mut [T]) {
        padded.fill(T::zero());
        let rows = padded.chunks_mut(self.step()).skip(self.padding);
        for (row, padded) in plane.chunks_exact(self.width).zip(rows) {
            padded[self.padding..][..self.width].copy_from_slice(row);
        }
    }

    /// start + the sum over taps of weight * the padded plane, written to the output plane.
    #[inline(always)]
    fn convolve<T: Real>(&self, padded: &[T], weight: &[T], start: T, memory: &mut [T], output: &mut [T]) {
        for (block, sums) in memory.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut parts = [start; LANES];
            for (row, weight) in weight.chunks_exact(self.kernel).enumerate() {
                let row = &padded[block * LANES + row * self.step()..];
                for (column, weight) in weight.iter().enumerate() {
                    for (sum, x) in parts.iter_mut().zip(&row[column..][..LANES]) {
                        *sum += *weight * *x;
                    }
                }
            }
            *sums = parts;
        }
        for (output, row) in output.chunks_exact_mut(self.out_width).zip(memory.chunks(self.step())) {
            output.copy_from_slice(&row[..self.out_width]);
        }
    }
}

fn operations(geometry: &Geometry) -> usize {
    2 * geometry.batch * geometry.inputs * geometry.pixels() * geometry.kernel * geometry.kernel
}

/// Every output plane.
pub(super) fn outputs<T: Real>(
    x: &FlexTensor,
    weight: &FlexTensor,
    bias: Option<&FlexTensor>,
    geometry: Geometry,
) -> FlexTensor {
    let (x, weight, bias) = (Values::of(x), Values::of(weight), bias.map(Values::of));
    let bias: Option<&[T]> = bias.as_ref().map(Values::get);
    let y = planes(x.get(), weight.get(), bias, Padded::of(&geometry), &geometry);
    tensor(y, &geometry.output_shape())
}

/// The gradient of the input: a convolution of the output's by the turned kernel.
pub(super) fn inputs<T: Real>(weight: &FlexTensor, gradient: &FlexTensor, geometry: Geometry) -> FlexTensor {
    let (weight, gradient) = (Values::of(weight), Values::of(gradient));
    let weight: &[T] = weight.get();
    let turned: Vec<T> = weight
        .chunks_exact(geometry.kernel * geometry.kernel)
        .flat_map(|weight| weight.iter().rev().copied())
        .collect();
    let dx = planes(gradient.get(), &turned, None, Padded::of(&geometry).reversed(), &geometry);
    tensor(dx, &geometry.input_shape())
}

/// Every plane of x by its channel's weight.
fn planes<T: Real>(x: &[T], weight: &[T], bias: Option<&[T]>, padded: Padded, geometry: &Geometry) -> Vec<T> {
    let (channels, taps) = (geometry.inputs, geometry.kernel * geometry.kernel);
    let (input, output) = (padded.height * padded.width, padded.out_height * padded.out_width);
    in_pieces(
        geometry.batch * channels * output,
        output,
        operations(geometry),
        x.par_chunks(input).enumerate(),
        #[inline(always)]
        |y, (at, x)| {
            let channel = at % channels;
            let mut scratch = Scratch::take();
            let [plane, memory] = scratch.parts([padded.inputs(), padded.outputs()]);
            padded.pad(x, plane);
            let start = bias.map_or(T::zero(), |bias| bias[channel]);
            padded.convolve(plane, &weight[channel * taps..][..taps], start, memory, y);
        },
    )
}

/// The gradient of the weight.
pub(super) fn weights<T: Real>(x: &FlexTensor, gradient: &FlexTensor, geometry: Geometry) -> FlexTensor {
    let (x, gradient) = (Values::of(x), Values::of(gradient));
    let (x, gradient): (&[T], &[T]) = (x.get(), gradient.get());
    let (padded, Geometry { batch, inputs, kernel, .. }) = (Padded::of(&geometry), geometry);
    let (plane, pixels) = (geometry.plane(), geometry.pixels());
    // Each channel on one core, its images in order: the sum is the same on any number of cores.
    let dw = in_pieces(
        inputs * kernel * kernel,
        kernel * kernel,
        operations(&geometry),
        (0..inputs).into_par_iter(),
        #[inline(always)]
        |dw: &mut [T], channel| {
            let mut scratch = Scratch::take();
            let [values, spread] = scratch.parts([padded.inputs(), padded.outputs()]);
            for at in (0..batch).map(|image| image * inputs + channel) {
                padded.pad(&x[at * plane..][..plane], values);
                spread.fill(T::zero());
                let gradient = gradient[at * pixels..][..pixels].chunks_exact(padded.out_width);
                for (row, spread) in gradient.zip(spread.chunks_mut(padded.step())) {
                    spread[..row.len()].copy_from_slice(row);
                }
                for (tap, sum) in dw.iter_mut().enumerate() {
                    let start = tap / kernel * padded.step() + tap % kernel;
                    *sum += total_product(spread, &values[start..][..spread.len()]);
                }
            }
        },
    );
    tensor(dw, &[inputs, 1, kernel, kernel])
}
