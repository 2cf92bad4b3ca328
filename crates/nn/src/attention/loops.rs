//! Attention by softmax as plain loops for the CPU: one string at a time, everything in cache, strings on all cores.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::{AttentionSpec, Mask};
use crate::cpu::{Real, Values, share, tensor, total, total_product};

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
    fn of(q: &FlexTensor, k: &FlexTensor, spec: AttentionSpec) -> Self {
        let (shape, m) = (q.shape(), k.shape()[1]);
        let (batch, l, d) = (shape[0], shape[1], shape[2]);
        Self { batch, l, m, d, heads: spec.heads, width: d / spec.heads, causal: spec.mask == Mask::Causal }
    }

    /// Keys that query `i` may look at.
    fn visible(&self, i: usize) -> usize {
        if self.causal { i + 1 + self.m - self.l } else { self.m }
    }

    fn operations(&self) -> usize {
        4 * self.batch * self.l * self.m * self.d
    }
}

/// The output [batch, l, d] and the weights [batch, heads, l, m] of q [batch, l, d], k and v [batch, m, d].
pub(super) fn forward<T: Real>([q, k, v]: [&FlexTensor; 3], spec: AttentionSpec) -> (FlexTensor, FlexTensor) {
    let sizes = Sizes::of(q, k, spec);
    let Sizes { batch, l, m, d, .. } = sizes;
    let (q, k, v) = (Values::of(q), Values::of(k), Values::of(v));
    let (q, k, v): (&[T], &[T], &[T]) = (q.get(), k.get(), v.get());
    let mut output = vec![T::zero(); batch * l * d];
    let mut mixture = vec![T::zero(); batch * sizes.heads * l * m];
    let strings = output.par_chunks_mut(l * d).zip(mixture.par_chunks_mut(sizes.heads * l * m)).enumerate();
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
    (tensor(output, &[batch, l, d]), tensor(mixture, &[batch, sizes.heads, l, m]))
}

/// The gradients of q, k and v, from what the forward pass was given and its weights.
pub(super) fn backward<T: Real>(
    [q, k, v, mixture]: [&FlexTensor; 4],
    gradient: &FlexTensor,
    spec: AttentionSpec,
) -> [FlexTensor; 3] {
    let sizes = Sizes::of(q, k, spec);
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
            let mixture = &mixture[b * sizes.heads * l * m..][..sizes.heads * l * m];
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
