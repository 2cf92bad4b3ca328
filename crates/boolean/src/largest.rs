//! The entries of an array that are largest in size.

use crate::simd::{Isa, Kernel, dispatch};
use rayon::prelude::*;
use std::cmp::Ordering;

/// A number that has a size.
pub trait Magnitude: Copy + Send + Sync {
    /// What the size is told in.
    type Size: Copy + Default + PartialOrd + Send + Into<f64>;
    /// Its absolute value.
    fn size(self) -> Self::Size;
}

macro_rules! magnitudes {
    ($($number:ty: $size:ty, $absolute:ident;)*) => {$(
        impl Magnitude for $number {
            type Size = $size;
            #[inline(always)]
            fn size(self) -> $size {
                self.$absolute()
            }
        }
    )*};
}

magnitudes! {
    i32: u32, unsigned_abs;
    f32: f32, abs;
    f64: f64, abs;
}

/// The size of the largest of some numbers; 0 of none.
pub fn largest_size<T: Magnitude>(values: &[T]) -> f64 {
    dispatch(LargestSize(values)).into()
}

struct LargestSize<'a, T>(&'a [T]);

impl<T: Magnitude> Kernel for LargestSize<'_, T> {
    type Output = T::Size;

    #[inline(always)]
    fn run(self, _: Isa) -> T::Size {
        const SIDE_BY_SIDE: usize = 32;
        let larger = |a: T::Size, b: T::Size| if b > a { b } else { a };
        let (rows, rest) = self.0.as_chunks::<SIDE_BY_SIDE>();
        let mut largest = [T::Size::default(); SIDE_BY_SIDE];
        for row in rows {
            for (largest, value) in largest.iter_mut().zip(row) {
                *largest = larger(*largest, value.size());
            }
        }
        largest.into_iter().chain(rest.iter().map(|value| value.size())).fold(T::Size::default(), larger)
    }
}

/// The order of coefficients given by size and set: large ones first; among equal ones small sets, then those of early variables.
pub fn before(a: &(f64, u64), b: &(f64, u64)) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.count_ones().cmp(&b.1.count_ones())).then(b.1.cmp(&a.1))
}

/// The `count` entries that come first in the order of [`before`], as size and index, those of 0 left out; in no order. On all cores.
pub fn first_entries<T: Magnitude>(entries: &[T], count: usize) -> Vec<(f64, u64)> {
    /// Entries looked at together: one by one only where the largest of them is large enough.
    const FEW: usize = 256;
    const PART: usize = 1 << 16;
    let first_of = |mut found: Vec<(f64, u64)>| {
        if found.len() > count {
            found.select_nth_unstable_by(count, before);
            found.truncate(count);
        }
        found
    };
    let first_of_part = |(part, entries): (usize, &[T])| {
        // More are gathered than asked for before they are cut to the first of them, so that this happens seldom.
        let most = 2 * count.max(16);
        let mut found = Vec::with_capacity(most);
        let mut last = (0.0, u64::MAX); // what does not come before it is not among the first
        for (few, entries) in entries.chunks(FEW).enumerate() {
            if largest_size(entries) < last.0 {
                continue;
            }
            for (index, entry) in entries.iter().enumerate() {
                let own = (entry.size().into(), (part * PART + few * FEW + index) as u64);
                if own.0 > 0.0 && before(&own, &last).is_lt() {
                    found.push(own);
                }
                if found.len() == most {
                    found = first_of(found);
                    last = found.iter().copied().max_by(before).unwrap_or(last);
                }
            }
        }
        first_of(found)
    };
    let parts = entries.par_chunks(PART).enumerate();
    parts.map(first_of_part).reduce(Vec::new, |a, b| first_of([a, b].concat()))
}
