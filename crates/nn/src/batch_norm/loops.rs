//! The loops for the CPU: a channel's sums on one core, then all images on all cores.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::Norm;
use crate::cpu::{Real, Values, in_pieces, share, tensor, total, total_of, total_of_pairs};

/// The sizes of x, and how to walk through it.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    channels: usize,
    plane: usize,
}

impl Sizes {
    fn of(x: &FlexTensor) -> Self {
        let shape = x.shape();
        Self { batch: shape[0], channels: shape[1], plane: shape[2..].iter().product() }
    }

    fn values(&self) -> usize {
        self.batch * self.channels * self.plane
    }

    /// Values of one channel.
    fn count<T: Real>(&self) -> T {
        T::from_elem((self.batch * self.plane) as f64)
    }

    /// The planes of one channel, image by image.
    #[inline(always)]
    fn planes<'a, T>(&self, x: &'a [T], channel: usize) -> impl Iterator<Item = &'a [T]> {
        x.chunks_exact(self.plane).skip(channel).step_by(self.channels)
    }
}

/// What is done to the values of one channel.
#[derive(Clone, Copy)]
struct Channel<T> {
    mean: T,
    /// 1 / sqrt(variance + eps)
    inverse: T,
    /// weight / sqrt(variance + eps)
    factor: T,
    bias: T,
    rectified: bool,
}

impl<T: Real> Channel<T> {
    fn all(mean: &[T], variance: &[T], weight: &[T], bias: &[T], norm: Norm) -> Vec<Self> {
        let of = |channel: usize| {
            let inverse = (variance[channel] + T::from_elem(norm.eps)).sqrt().recip();
            let (mean, factor, bias) = (mean[channel], weight[channel] * inverse, bias[channel]);
            Self { mean, inverse, factor, bias, rectified: norm.rectified }
        };
        (0..mean.len()).map(of).collect()
    }

    #[inline(always)]
    fn output(&self, x: T) -> T {
        let y = (x - self.mean) * self.factor + self.bias;
        if self.rectified && y <= T::zero() { T::zero() } else { y }
    }

    /// The output's gradient before the ReLU.
    #[inline(always)]
    fn passed(&self, x: T, gradient: T) -> T {
        let y = (x - self.mean) * self.factor + self.bias;
        if self.rectified && y <= T::zero() { T::zero() } else { gradient }
    }
}

/// The output, the mean and the variance.
pub(super) fn forward<T: Real>([x, weight, bias]: [&FlexTensor; 3], norm: Norm) -> [FlexTensor; 3] {
    let (sizes, shape) = (Sizes::of(x), x.shape());
    let Sizes { channels, plane, .. } = sizes;
    let (x, weight, bias) = (Values::of(x), Values::of(weight), Values::of(bias));
    let (x, weight, bias): (&[T], &[T], &[T]) = (x.get(), weight.get(), bias.get());
    let (mut mean, mut variance) = (vec![T::zero(); channels], vec![T::zero(); channels]);
    let pieces = mean.par_iter_mut().zip(&mut variance).enumerate();
    share(
        4 * sizes.values(),
        pieces,
        #[inline(always)]
        |(channel, (mean, variance))| {
            *mean = sizes.planes(x, channel).fold(T::zero(), |sum, x| sum + total(x)) / sizes.count();
            let squares = |x: &[T]| total_of(x, |x| (x - *mean) * (x - *mean));
            *variance = sizes.planes(x, channel).fold(T::zero(), |sum, x| sum + squares(x)) / sizes.count();
        },
    );
    let all = Channel::all(&mean, &variance, weight, bias, norm);
    let image = channels * plane;
    let output = in_pieces(
        sizes.values(),
        image,
        4 * sizes.values(),
        x.par_chunks(image),
        #[inline(always)]
        |output, x| {
            for ((x, output), channel) in x.chunks_exact(plane).zip(output.chunks_exact_mut(plane)).zip(&all) {
                output.iter_mut().zip(x).for_each(|(y, x)| *y = channel.output(*x));
            }
        },
    );
    [tensor(output, &shape), tensor(mean, &[channels]), tensor(variance, &[channels])]
}

/// With g the gradient before the ReLU, z the normalised input and n its values in a channel: d bias = sum g, d weight = sum g z,
/// dx = (g - d bias / n - z d weight / n) weight / sqrt(variance + eps).
pub(super) fn backward<T: Real>(
    [x, weight, bias, mean, variance]: [&FlexTensor; 5],
    gradient: &FlexTensor,
    norm: Norm,
) -> [FlexTensor; 3] {
    let (sizes, shape) = (Sizes::of(x), x.shape());
    let Sizes { channels, plane, .. } = sizes;
    let (x, gradient) = (Values::of(x), Values::of(gradient));
    let (x, gradient): (&[T], &[T]) = (x.get(), gradient.get());
    let [mean, variance, weight, bias] = [mean, variance, weight, bias].map(Values::of);
    let all = Channel::<T>::all(mean.get(), variance.get(), weight.get(), bias.get(), norm);
    let (mut d_weight, mut d_bias) = (vec![T::zero(); channels], vec![T::zero(); channels]);
    let pieces = d_weight.par_iter_mut().zip(&mut d_bias).zip(&all).enumerate();
    share(
        8 * sizes.values(),
        pieces,
        #[inline(always)]
        |(at, ((d_weight, d_bias), channel))| {
            for (x, gradient) in sizes.planes(x, at).zip(sizes.planes(gradient, at)) {
                *d_bias += total_of_pairs(x, gradient, |x, g| channel.passed(x, g));
                *d_weight += total_of_pairs(x, gradient, |x, g| channel.passed(x, g) * (x - channel.mean));
            }
            *d_weight *= channel.inverse;
        },
    );
    let image = channels * plane;
    let dx = in_pieces(
        sizes.values(),
        image,
        8 * sizes.values(),
        x.par_chunks(image).zip(gradient.par_chunks(image)),
        #[inline(always)]
        |dx, (x, gradient)| {
            let planes = x.chunks_exact(plane).zip(gradient.chunks_exact(plane)).zip(dx.chunks_exact_mut(plane));
            for (at, (((x, gradient), dx), channel)) in planes.zip(&all).enumerate() {
                let (centre, along) = (d_bias[at] / sizes.count(), d_weight[at] * channel.inverse / sizes.count());
                for ((dx, x), g) in dx.iter_mut().zip(x).zip(gradient) {
                    *dx = channel.factor * (channel.passed(*x, *g) - centre - (*x - channel.mean) * along);
                }
            }
        },
    );
    [tensor(dx, &shape), tensor(d_weight, &[channels]), tensor(d_bias, &[channels])]
}
