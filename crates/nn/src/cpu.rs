//! What the loops for the CPU share: numbers, tensors as slices, cores, scratch memory and sums.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Element, TensorData};
use num_traits::{Float, NumAssign};
use rayon::prelude::*;

/// f32 and f64.
pub(crate) trait Real: Element + Float + NumAssign + bytemuck::Pod + Send + Sync {
    /// e^x - 1 within a few roundings; in f32 so that loops over it vectorise. NaN stays NaN.
    fn fast_exp_m1(self) -> Self;

    /// 1 / (1 + e^-x)
    #[inline(always)]
    fn sigmoid(self) -> Self {
        ((-self).fast_exp_m1() + Self::one() + Self::one()).recip()
    }

    /// The hyperbolic tangent.
    #[inline(always)]
    fn fast_tanh(self) -> Self {
        let grown = (self + self).fast_exp_m1();
        grown / (grown + Self::one() + Self::one())
    }
}

impl Real for f32 {
    /// e^x - 1 = 2^k (e^r - 1) + 2^k - 1 with k the integer nearest x / ln 2, and the Taylor series of e^r - 1 for |r| <= ln 2 / 2.
    #[inline(always)]
    fn fast_exp_m1(self) -> Self {
        // Within these neither it nor its square leaves the numbers there are. (The comparisons let NaN through.)
        let x = if self < -40.0 { -40.0 } else { self };
        let x = if x > 40.0 { 40.0 } else { x };
        // Adding 1.5 * 2^23 rounds to an integer, and leaves it in the low bits.
        const ROUNDING: f32 = 12_582_912.0;
        let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
        let k = shifted - ROUNDING;
        // ln 2 in two parts, the first with so few digits that its product with k is exact.
        let r = (x - k * 0.693_359_4) + k * 2.121_944_4e-4;
        let mut series = 1.0 / 5040.0;
        for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0] {
            series = series * r + coefficient;
        }
        let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
        power * (r * series) + (power - 1.0)
    }
}

impl Real for f64 {
    fn fast_exp_m1(self) -> Self {
        self.exp_m1()
    }
}

/// Floating-point operations below which a step is not worth waking other cores for.
const WORTH_SHARING: usize = 1 << 18;

/// Call one of two instances of a generic kernel by the tensor's type.
macro_rules! by_dtype {
    ($tensor:expr, $($kernel:ident)::+ ( $($argument:expr),* )) => {
        match $tensor.dtype() {
            burn::tensor::DType::F64 => $($kernel)::+::<f64>($($argument),*),
            _ => $($kernel)::+::<f32>($($argument),*),
        }
    };
}
pub(crate) use by_dtype;

/// Do every piece of work, on all cores when there is enough of it, compiled for the widest vectors this processor has: where `work` and
/// what it calls are inlined, which closures of some length must ask for.
pub(crate) fn share<I: IndexedParallelIterator>(operations: usize, pieces: I, work: impl Fn(I::Item) + Send + Sync) {
    let work = |piece| {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || work(piece),
        )
    };
    match operations < WORTH_SHARING {
        // A single thread of the pool's caller: no hand-over for a few microseconds of work.
        true => pieces.with_min_len(usize::MAX).for_each(work),
        false => pieces.for_each(work),
    }
}

/// `count` values, made in pieces of `length`: `work` gets each piece, all zeros, with what belongs to it. The memory is zeroed piece by piece on
/// the core that then works on it, where one core alone would wait for all of it to come from the system.
pub(crate) fn in_pieces<T: Real, I: IndexedParallelIterator>(
    count: usize,
    length: usize,
    operations: usize,
    belonging: I,
    work: impl Fn(&mut [T], I::Item) + Send + Sync,
) -> Vec<T> {
    let mut values = Vec::with_capacity(count);
    let pieces = values.spare_capacity_mut()[..count].par_chunks_mut(length);
    assert_eq!(pieces.len(), belonging.len(), "something for each piece");
    share(
        operations,
        pieces.zip(belonging),
        #[inline(always)]
        |(piece, belonging)| {
            piece.fill(MaybeUninit::new(T::zero()));
            // SAFETY: all of it has just been written to.
            work(unsafe { piece.assume_init_mut() }, belonging)
        },
    );
    // SAFETY: the capacity is at least `count`, and each of the pieces that make up so many values has been written to.
    unsafe { values.set_len(count) };
    values
}

/// A tensor's values in order.
pub(crate) struct Values(FlexTensor);

impl Values {
    pub(crate) fn of(tensor: &FlexTensor) -> Self {
        Self(tensor.to_contiguous())
    }

    pub(crate) fn get<T: Real>(&self) -> &[T] {
        self.0.as_slice().unwrap_or_default()
    }
}

pub(crate) fn tensor<T: Real>(values: Vec<T>, shape: &[usize]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.to_vec()))
}

thread_local! {
    static SCRATCH: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Memory to work in, which a thread uses again and again. Who asks for some while another has it gets its own.
pub(crate) struct Scratch(Vec<u64>);

impl Scratch {
    pub(crate) fn take() -> Self {
        Self(SCRATCH.take())
    }

    /// Parts of these lengths, with whatever was written there before; each begins with a line of the cache.
    pub(crate) fn parts<T: Real, const N: usize>(&mut self, lengths: [usize; N]) -> [&mut [T]; N] {
        const LINE: usize = 64;
        let whole_lines = |length: usize| length.next_multiple_of(LINE / size_of::<T>());
        let bytes = lengths.iter().map(|length| whole_lines(*length) * size_of::<T>()).sum::<usize>() + LINE;
        if size_of_val(self.0.as_slice()) < bytes {
            self.0.resize(bytes / size_of::<u64>(), 0);
        }
        let start = self.0.as_ptr().align_offset(LINE);
        let mut rest: &mut [T] = bytemuck::cast_slice_mut(&mut self.0[start..]);
        lengths.map(|length| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(whole_lines(length));
            rest = after;
            &mut part[..length]
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        SCRATCH.set(std::mem::take(&mut self.0));
    }
}

/// The sum of x.
#[inline(always)]
pub(crate) fn total<T: Real>(x: &[T]) -> T {
    total_of(x, |x| x)
}

/// The sum of x y.
#[inline(always)]
pub(crate) fn total_product<T: Real>(x: &[T], y: &[T]) -> T {
    total_of_pairs(x, y, |x, y| x * y)
}

/// The sum of f(x), in eight interleaved parts.
#[inline(always)]
pub(crate) fn total_of<T: Real>(x: &[T], f: impl Fn(T) -> T) -> T {
    let (chunks, rest) = x.as_chunks::<8>();
    let mut parts = [T::zero(); 8];
    for chunk in chunks {
        for i in 0..8 {
            parts[i] += f(chunk[i]);
        }
    }
    let mut total = pairwise(parts);
    for x in rest {
        total += f(*x);
    }
    total
}

/// The sum of f(x, y), in eight interleaved parts.
#[inline(always)]
pub(crate) fn total_of_pairs<T: Real>(x: &[T], y: &[T], f: impl Fn(T, T) -> T) -> T {
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
    let mut parts = [T::zero(); 8];
    for (x, y) in x.iter().zip(y) {
        for i in 0..8 {
            parts[i] += f(x[i], y[i]);
        }
    }
    let mut total = pairwise(parts);
    for (x, y) in x_rest.iter().zip(y_rest) {
        total += f(*x, *y);
    }
    total
}

#[inline(always)]
fn pairwise<T: Real>([a, b, c, d, e, f, g, h]: [T; 8]) -> T {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_functions_are_the_functions() {
        for i in -20_000..=20_000 {
            let x = i as f32 * 1e-3;
            let wide = f64::from(x);
            for (name, found, expected) in [
                ("expm1", x.fast_exp_m1(), wide.exp_m1()),
                ("sigmoid", x.sigmoid(), 1.0 / (1.0 + (-wide).exp())),
                ("tanh", x.fast_tanh(), wide.tanh()),
            ] {
                let off = (f64::from(found) - expected).abs();
                assert!(off <= 4e-7 * expected.abs(), "{name} of {x}: {found} {expected}");
            }
        }
        assert!(f32::NAN.sigmoid().is_nan() && f32::NAN.fast_tanh().is_nan());
        assert_eq!((1e30f32.fast_tanh(), (-1e30f32).fast_tanh(), 1e30f32.sigmoid()), (1.0, -1.0, 1.0));
    }
}
