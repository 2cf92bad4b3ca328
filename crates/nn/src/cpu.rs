//! What the loops for the CPU share: numbers, tensors as slices, cores, scratch memory and sums.

use std::cell::RefCell;
use std::mem::MaybeUninit;

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
