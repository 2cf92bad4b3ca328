//! The fused steps as plain loops for the CPU: one string (or one row) at a time, everything in cache, strings on all cores.

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use rayon::prelude::*;

use crate::cpu::{Real, Values, by_dtype, share, tensor, total, total_product};
use crate::fused::{Heads, Kernels};

/// Rows of a LayerNorm whose weight gradients are summed before they are added to the others'; fixed, so that the sum does not
/// depend on how many cores there are.
const ROWS_A_BLOCK: usize = 128;

impl Kernels for Flex {
    fn attend_forward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        heads: Heads,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        by_dtype!(q, attend_forward(&q, &k, &v, heads))
    }

    fn attend_backward(
        saved: [FloatTensor<Self>; 4],
        gradient: FloatTensor<Self>,
        heads: Heads,
    ) -> [FloatTensor<Self>; 3] {
        by_dtype!(gradient, attend_backward(&saved, &gradient, heads))
    }

    fn normalise_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f64,
    ) -> [FloatTensor<Self>; 3] {
        by_dtype!(x, normalise_forward(&x, &weight, &bias, eps))
    }

    fn normalise_backward(
        normalised: FloatTensor<Self>,
        factor: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> [FloatTensor<Self>; 3] {
        by_dtype!(gradient, normalise_backward(&normalised, &factor, &weight, &gradient))
    }
}

/// The sizes of one attention: strings, queries and keys in each, width, heads and the width of one.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    l: usize,
    m: usize,
    d: usize,
    heads: usize,
    width: usize,
    causal: bool,
}

impl Sizes {
    fn of(q: &FlexTensor, k: &FlexTensor, heads: Heads) -> Self {
        let (shape, m) = (q.shape(), k.shape()[1]);
        let (batch, l, d) = (shape[0], shape[1], shape[2]);
        Self { batch, l, m, d, heads: heads.count, width: d / heads.count, causal: heads.causal }
    }

    /// Keys that query `i` may look at.
    fn visible(&self, i: usize) -> usize {
        if self.causal { i + 1 + self.m - self.l } else { self.m }
    }

    fn operations(&self) -> usize {
        4 * self.batch * self.l * self.m * self.d
    }
}

fn attend_forward<T: Real>(q: &FlexTensor, k: &FlexTensor, v: &FlexTensor, heads: Heads) -> (FlexTensor, FlexTensor) {
    let sizes = Sizes::of(q, k, heads);
    let Sizes { batch, l, m, d, .. } = sizes;
    let (q, k, v) = (Values::of(q), Values::of(k), Values::of(v));
    let (q, k, v): (&[T], &[T], &[T]) = (q.get(), k.get(), v.get());
    let mut output = vec![T::zero(); batch * l * d];
    let mut mixture = vec![T::zero(); batch * heads.count * l * m];
    let strings = output.par_chunks_mut(l * d).zip(mixture.par_chunks_mut(heads.count * l * m)).enumerate();
    share(
        sizes.operations(),
        strings,
        #[inline(always)]
        |(b, (output, mixture))| {
            let (q, k, v) = (&q[b * l * d..][..l * d], &k[b * m * d..][..m * d], &v[b * m * d..][..m * d]);
            let mut columns = vec![T::zero(); m * sizes.width];
            for head in 0..sizes.heads {
                let at = head * sizes.width;
                transpose(k, at, sizes, &mut columns);
                for i in 0..l {
                    let mixture = &mut mixture[(head * l + i) * m..][..sizes.visible(i)];
                    combine(mixture, Strided(&q[i * d + at..], 1), sizes.width, &columns, m);
                    softmax(mixture);
                    let output = &mut output[i * d + at..][..sizes.width];
                    combine(output, Strided(mixture, 1), mixture.len(), &v[at..], d);
                }
            }
        },
    );
    (tensor(output, &[batch, l, d]), tensor(mixture, &[batch, heads.count, l, m]))
}

fn attend_backward<T: Real>(
    [q, k, v, mixture]: &[FlexTensor; 4],
    gradient: &FlexTensor,
    heads: Heads,
) -> [FlexTensor; 3] {
    let sizes = Sizes::of(q, k, heads);
    let Sizes { batch, l, m, d, width, .. } = sizes;
    let (q, k, v) = (Values::of(q), Values::of(k), Values::of(v));
    let (q, k, v): (&[T], &[T], &[T]) = (q.get(), k.get(), v.get());
    let (mixture, gradient) = (Values::of(mixture), Values::of(gradient));
    let (mixture, gradient): (&[T], &[T]) = (mixture.get(), gradient.get());
    let mut dq = vec![T::zero(); batch * l * d];
    let (mut dk, mut dv) = (vec![T::zero(); batch * m * d], vec![T::zero(); batch * m * d]);
    let strings =
        (dq.par_chunks_mut(l * d), dk.par_chunks_mut(m * d), dv.par_chunks_mut(m * d)).into_par_iter().enumerate();
    share(
        2 * sizes.operations(),
        strings,
        #[inline(always)]
        |(b, (dq, dk, dv))| {
            let (q, k, v) = (&q[b * l * d..][..l * d], &k[b * m * d..][..m * d], &v[b * m * d..][..m * d]);
            let gradient = &gradient[b * l * d..][..l * d];
            let mixture = &mixture[b * heads.count * l * m..][..heads.count * l * m];
            let (mut columns, mut d_scores) = (vec![T::zero(); m * width], vec![T::zero(); l * m]);
            for head in 0..sizes.heads {
                let at = head * width;
                let mixture = &mixture[head * l * m..][..l * m];
                transpose(v, at, sizes, &mut columns);
                for i in 0..l {
                    let shares = &mixture[i * m..][..sizes.visible(i)];
                    let d_scores = &mut d_scores[i * m..][..sizes.visible(i)];
                    combine(d_scores, Strided(&gradient[i * d + at..], 1), width, &columns, m);
                    // The softmax's gradient: p (g - sum p g).
                    let total = total_product(d_scores, shares);
                    for (g, p) in d_scores.iter_mut().zip(shares) {
                        *g = *p * (*g - total);
                    }
                    combine(&mut dq[i * d + at..][..width], Strided(d_scores, 1), d_scores.len(), &k[at..], d);
                }
                for j in 0..m {
                    let own = j * d + at..j * d + at + width;
                    combine(&mut dk[own.clone()], Strided(&d_scores[j..], m), l, &q[at..], d);
                    combine(&mut dv[own], Strided(&mixture[j..], m), l, &gradient[at..], d);
                }
            }
        },
    );
    [tensor(dq, &[batch, l, d]), tensor(dk, &[batch, m, d]), tensor(dv, &[batch, m, d])]
}

fn normalise_forward<T: Real>(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor, eps: f64) -> [FlexTensor; 3] {
    let shape = x.shape();
    let (batch, length, d) = (shape[0], shape[1], shape[2]);
    let (x, weight, bias) = (Values::of(x), Values::of(weight), Values::of(bias));
    let (x, weight, bias): (&[T], &[T], &[T]) = (x.get(), weight.get(), bias.get());
    let mut output = vec![T::zero(); batch * length * d];
    let mut normalised = vec![T::zero(); batch * length * d];
    let mut factors = vec![T::zero(); batch * length];
    let (eps, count) = (T::from_elem(eps), T::from_elem(d as f64));
    let blocks = (
        x.par_chunks(ROWS_A_BLOCK * d),
        output.par_chunks_mut(ROWS_A_BLOCK * d),
        normalised.par_chunks_mut(ROWS_A_BLOCK * d),
        factors.par_chunks_mut(ROWS_A_BLOCK),
    );
    share(
        8 * batch * length * d,
        blocks.into_par_iter(),
        #[inline(always)]
        |(x, output, normalised, factors)| {
            let rows =
                x.chunks_exact(d).zip(output.chunks_exact_mut(d)).zip(normalised.chunks_exact_mut(d)).zip(factors);
            for (((x, output), normalised), factor) in rows {
                let mean = total(x) / count;
                for (centred, x) in normalised.iter_mut().zip(x) {
                    *centred = *x - mean;
                }
                *factor = (total_product(normalised, normalised) / count + eps).sqrt().recip();
                for (((y, x), w), b) in output.iter_mut().zip(normalised).zip(weight).zip(bias) {
                    *x *= *factor;
                    *y = *x * *w + *b;
                }
            }
        },
    );
    [tensor(output, &[batch, length, d]), tensor(normalised, &[batch, length, d]), tensor(factors, &[batch, length, 1])]
}

fn normalise_backward<T: Real>(
    normalised: &FlexTensor,
    factors: &FlexTensor,
    weight: &FlexTensor,
    gradient: &FlexTensor,
) -> [FlexTensor; 3] {
    let shape = gradient.shape();
    let (batch, length, d) = (shape[0], shape[1], shape[2]);
    let (normalised, factors) = (Values::of(normalised), Values::of(factors));
    let (normalised, factors): (&[T], &[T]) = (normalised.get(), factors.get());
    let (weight, gradient) = (Values::of(weight), Values::of(gradient));
    let (weight, gradient): (&[T], &[T]) = (weight.get(), gradient.get());
    let count = T::from_elem(d as f64);
    let mut dx = vec![T::zero(); batch * length * d];
    let blocks = (batch * length).div_ceil(ROWS_A_BLOCK);
    // For each block of rows its own sums of the weight's and of the bias's gradient.
    let mut sums = vec![T::zero(); blocks * 2 * d];
    let pieces = (
        dx.par_chunks_mut(ROWS_A_BLOCK * d),
        sums.par_chunks_mut(2 * d),
        normalised.par_chunks(ROWS_A_BLOCK * d),
        gradient.par_chunks(ROWS_A_BLOCK * d),
        factors.par_chunks(ROWS_A_BLOCK),
    );
    share(
        12 * batch * length * d,
        pieces.into_par_iter(),
        #[inline(always)]
        |(dx, sums, normalised, gradient, factors)| {
            let (d_weight, d_bias) = sums.split_at_mut(d);
            let rows = normalised.chunks_exact(d).zip(gradient.chunks_exact(d));
            for (((x, g), dx), factor) in rows.zip(dx.chunks_exact_mut(d)).zip(factors) {
                for i in 0..d {
                    d_weight[i] += g[i] * x[i];
                    d_bias[i] += g[i];
                    dx[i] = g[i] * weight[i];
                }
                let (mean, along) = (total(dx) / count, total_product(dx, x) / count);
                for (dx, x) in dx.iter_mut().zip(x) {
                    *dx = *factor * (*dx - mean - *x * along);
                }
            }
        },
    );
    let mut both = vec![T::zero(); 2 * d];
    for block in sums.chunks_exact(2 * d) {
        both.iter_mut().zip(block).for_each(|(sum, x)| *sum += *x);
    }
    let d_bias = both.split_off(d);
    [tensor(dx, &[batch, length, d]), tensor(both, &[d]), tensor(d_bias, &[d])]
}

/// One head of keys or values [m, d] turned to [width, m].
#[inline(always)]
fn transpose<T: Real>(rows: &[T], at: usize, sizes: Sizes, transposed: &mut [T]) {
    for (j, row) in rows.chunks_exact(sizes.d).enumerate() {
        for (c, x) in row[at..][..sizes.width].iter().enumerate() {
            transposed[c * sizes.m + j] = *x;
        }
    }
}

/// Every so-manieth of these values.
#[derive(Clone, Copy)]
struct Strided<'a, T>(&'a [T], usize);

/// y = sum over r < count of a[r] * (row r of x), where rows start `stride` apart. Eight columns at a time stay in registers.
#[inline(always)]
fn combine<T: Real>(y: &mut [T], a: Strided<T>, count: usize, x: &[T], stride: usize) {
    let Strided(a, step) = a;
    let (blocks, rest) = y.as_chunks_mut::<8>();
    let done = 8 * blocks.len();
    for (block, y) in blocks.iter_mut().enumerate() {
        let mut sum = [T::zero(); 8];
        for r in 0..count {
            let (a, x) = (a[r * step], &x[r * stride + 8 * block..][..8]);
            for i in 0..8 {
                sum[i] += a * x[i];
            }
        }
        *y = sum;
    }
    for (column, y) in rest.iter_mut().enumerate() {
        let mut sum = T::zero();
        for r in 0..count {
            sum += a[r * step] * x[r * stride + done + column];
        }
        *y = sum;
    }
}

/// In place.
#[inline(always)]
fn softmax<T: Real>(scores: &mut [T]) {
    let largest = scores.iter().fold(T::neg_infinity(), |largest, score| largest.max(*score));
    for score in scores.iter_mut() {
        *score = (*score - largest).exp();
    }
    let total = total(scores);
    for score in scores.iter_mut() {
        *score /= total;
    }
}
