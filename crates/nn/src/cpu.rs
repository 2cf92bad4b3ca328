//! What the loops for the CPU share: numbers, tensors as slices, cores, scratch memory and sums.

use std::cell::RefCell;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Element, TensorData};
use num_traits::{Float, NumAssign};
use rayon::prelude::*;

/// f32 and f64.
pub(crate) trait Real: Element + Float + NumAssign + bytemuck::Pod + Send + Sync {}

impl Real for f32 {}
impl Real for f64 {}

/// Floating-point operations below which a step is not worth waking other cores for.
const WORTH_SHARING: usize = 1 << 18;

/// Call one of two instances of a generic kernel by the tensor's type.
macro_rules! by_dtype {
    ($tensor:expr, $kernel:ident ( $($argument:expr),* )) => {
        match $tensor.dtype() {
            burn::tensor::DType::F64 => $kernel::<f64>($($argument),*),
            _ => $kernel::<f32>($($argument),*),
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

/// Lends `work` memory of these lengths, whatever was written there before: each thread has some that it uses again and again. Each part
/// begins with a cache line.
#[inline(always)]
pub(crate) fn with_scratch<T: Real, const N: usize>(lengths: [usize; N], work: impl FnOnce([&mut [T]; N])) {
    const LINE: usize = 64;
    let whole_lines = |length: usize| length.next_multiple_of(LINE / size_of::<T>());
    // Taken out, not borrowed: whoever asks within `work` gets memory of its own.
    let mut memory = SCRATCH.take();
    let words =
        (lengths.iter().map(|length| whole_lines(*length) * size_of::<T>()).sum::<usize>() + LINE) / size_of::<u64>();
    if memory.len() < words {
        memory.resize(words, 0);
    }
    let start = memory.as_ptr().align_offset(LINE);
    let mut rest: &mut [T] = bytemuck::cast_slice_mut(&mut memory[start..]);
    work(lengths.map(|length| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(whole_lines(length));
        rest = after;
        &mut part[..length]
    }));
    SCRATCH.set(memory);
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
