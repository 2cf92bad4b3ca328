//! The Walsh-Hadamard transform, in place: after it, entry S holds the sum over x of f(x) (-1)^{S.x}.
//!
//! A transform of 2^n entries has n levels; level k adds and subtracts entries 2^k apart. Done level by level it would
//! read and write memory n times. Here it does so twice (three times beyond 2^28 entries): first all levels inside blocks
//! that fit a core's L2 cache, then the levels between blocks, for a strip of columns at a time that is gathered into the
//! cache and scattered back.

use crate::lanes::{LANES, Row};
use crate::simd::{Isa, Kernel, dispatch};
use rayon::prelude::*;

pub use crate::lanes::Element;

/// Entries whose lowest eight levels are done in registers: 16 rows of 16 lanes.
const TILE: usize = 16 * LANES;
/// Bytes worked on before moving on: half of a typical L1 data cache.
const L1_BYTES: usize = 16 << 10;
/// Bytes of a block, and of a strip: half of a typical L2 cache.
const L2_BYTES: usize = 512 << 10;
/// Rows gathered at once: with more, each would be too short a piece of memory to be fetched at full speed.
const MOST_GATHERED_ROWS: usize = 2048;
/// Rows a multiple of 4 KiB apart compete for this many places in the L1 cache.
const CACHE_WAYS: usize = 8;

/// Does `$body` for each row r, a constant in each copy: only then do arrays of rows stay in registers.
macro_rules! unrolled {
    ($rows:expr, |$r:ident| $body:expr) => { unrolled!(@ $rows, $r, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (@ $rows:expr, $r:ident, $body:expr, $($index:literal)*) => {$(
        if $index < $rows {
            #[allow(non_upper_case_globals)]
            const $r: usize = $index;
            $body;
        }
    )*};
}

/// The most entries that [`transform_block`] handles inside a core's cache.
pub const fn block_len<T>() -> usize {
    L2_BYTES / size_of::<T>()
}

/// Transforms `data` in place, on all cores. Unnormalised: applying it twice multiplies by the length.
///
/// # Panics
/// If the length is not a power of two.
pub fn transform<T: Element>(data: &mut [T]) {
    assert!(data.len().is_power_of_two(), "the Walsh transform needs 2^n entries, not {}", data.len());
    T::transform(data);
}

/// [`transform`], compiled where it is called.
pub(crate) fn transform_here<T: Element>(data: &mut [T]) {
    data.par_chunks_mut(block_len::<T>()).for_each(transform_block);
    transform_between_blocks(data);
}

/// All levels inside a block of at most [`block_len`] entries (a power of two), on this thread.
pub fn transform_block<T: Element>(data: &mut [T]) {
    if data.len() < TILE {
        return transform_small(data);
    }
    dispatch(OnRows(Block(data)));
}

/// Level by level, for fewer entries than a tile.
fn transform_small<T: Element>(data: &mut [T]) {
    let mut half = 1;
    while half < data.len() {
        for pair in data.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
}

/// The levels between blocks of [`block_len`] entries, once those inside are done, on all cores.
pub fn transform_between_blocks<T: Element>(data: &mut [T]) {
    let mut apart = block_len::<T>();
    while apart < data.len() {
        let rows = 1 << levels_at_once((data.len() / apart).ilog2(), MOST_GATHERED_ROWS);
        transform_strips(data, apart, rows);
        apart *= rows;
    }
}

/// The levels between `rows` rows of `apart` entries each, in every group of that many rows. A strip is some neighbouring
/// columns of a group, as wide as fits the cache when gathered.
fn transform_strips<T: Element>(data: &mut [T], apart: usize, rows: usize) {
    let width = (block_len::<T>() / rows).max(LANES);
    let strips_per_group = apart / width;
    let strips = data.len() / (rows * width);
    let base = SharedPointer(data.as_mut_ptr());
    (0..strips).into_par_iter().for_each_init(
        || vec![T::default(); rows * (width + LANES)],
        |gathered, strip| {
            let (group, column) = (strip / strips_per_group, strip % strips_per_group * width);
            // SAFETY: strips are disjoint parts of `data`, which this function borrows alone.
            let first = unsafe { base.get().add(group * rows * apart + column) };
            dispatch(OnRows(Strip { first, apart, width, rows, gathered }));
        },
    );
}

/// A pointer that threads may share because each touches other entries behind it.
struct SharedPointer<T>(*mut T);
// SAFETY: the strips behind it are disjoint.
unsafe impl<T: Send> Sync for SharedPointer<T> {}
impl<T> SharedPointer<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// Levels written once for rows in any registers.
trait Levels: Sized {
    type Entry: Element;

    /// Does the work.
    ///
    /// # Safety
    /// The machine must have R's instructions.
    unsafe fn on_rows<R: Row<Self::Entry>>(self);
}

/// Runs [`Levels`] on the registers of the instruction set it is dispatched to.
struct OnRows<L>(L);

impl<L: Levels> Kernel for OnRows<L> {
    type Output = ();

    #[inline(always)]
    fn run(self, isa: Isa) {
        // SAFETY: `isa` is what this code is dispatched to.
        unsafe {
            match isa {
                Isa::Avx512 => self.0.on_rows::<<L::Entry as Element>::Avx512>(),
                Isa::Avx2 => self.0.on_rows::<<L::Entry as Element>::Avx2>(),
                Isa::Baseline => self.0.on_rows::<[L::Entry; LANES]>(),
            }
        }
    }
}

/// Entries next to each other that fit a core's cache: all their levels.
struct Block<'a, T>(&'a mut [T]);

impl<T: Element> Levels for Block<'_, T> {
    type Entry = T;

    #[inline(always)]
    unsafe fn on_rows<R: Row<T>>(self) {
        let part_len = L1_BYTES / size_of::<T>();
        for part in self.0.chunks_mut(part_len) {
            for tile in part.chunks_exact_mut(TILE) {
                unsafe { tile_levels::<T, R>(tile.as_mut_ptr()) };
            }
            unsafe { levels_from::<T, R>(part, TILE, R::ROWS_IN_REGISTERS) };
        }
        unsafe { levels_from::<T, R>(self.0, part_len, R::ROWS_IN_REGISTERS.min(CACHE_WAYS)) };
    }
}

/// `width` columns of `rows` rows, `apart` entries from row to row: the levels between the rows.
struct Strip<'a, T> {
    first: *mut T,
    apart: usize,
    width: usize,
    rows: usize,
    gathered: &'a mut [T],
}

impl<T: Element> Levels for Strip<'_, T> {
    type Entry = T;

    /// The first pass gathers the rows, the last scatters them, so each entry is read and written once in memory.
    #[inline(always)]
    unsafe fn on_rows<R: Row<T>>(self) {
        let Self { first, apart, width, rows, gathered } = self;
        // Rows of the buffer are a little more than `width` apart, so that they do not compete for the same cache places.
        let (buffer, buffer_apart) = (gathered.as_mut_ptr(), gathered.len() / rows);
        let mut done = 1;
        while done < rows {
            let now = 1 << levels_at_once((rows / done).ilog2(), R::ROWS_IN_REGISTERS);
            let (gathers, scatters) = (done == 1, done * now == rows);
            // Rows i, i + done, ..., i + (now - 1) * done go together.
            for group in (0..rows / now).map(|i| i / done * done * now + i % done) {
                let (from, from_apart) = if gathers { (first, apart) } else { (buffer, buffer_apart) };
                let (to, to_apart) = if scatters { (first, apart) } else { (buffer, buffer_apart) };
                // SAFETY: all rows are inside the strip or the buffer, which has as many.
                unsafe {
                    let (from, to) = (from.add(group * from_apart), to.add(group * to_apart));
                    pass::<T, R>(now, from, done * from_apart, to, done * to_apart, width);
                }
            }
            done *= now;
        }
    }
}

/// The lowest eight levels of one tile: four inside each row of 16, four between the 16 rows.
#[inline(always)]
unsafe fn tile_levels<T: Element, R: Row<T>>(tile: *mut T) {
    const ROWS: usize = TILE / LANES;
    unsafe {
        let mut rows = [R::load(tile); ROWS];
        unrolled!(ROWS, |r| rows[r] = R::load(tile.add(r * LANES)).transform());
        combine(&mut rows);
        unrolled!(ROWS, |r| rows[r].store(tile.add(r * LANES)));
    }
}

/// All levels from entries `stride` apart up to half of `data`, at most `most_rows` rows at a time.
#[inline(always)]
unsafe fn levels_from<T: Element, R: Row<T>>(data: &mut [T], mut stride: usize, most_rows: usize) {
    while stride < data.len() {
        let rows = 1 << levels_at_once((data.len() / stride).ilog2(), most_rows);
        for group in data.chunks_exact_mut(rows * stride) {
            let base = group.as_mut_ptr();
            // SAFETY: the group has `rows` rows of `stride` entries.
            unsafe { pass::<T, R>(rows, base, stride, base, stride, stride) };
        }
        stride *= rows;
    }
}

/// How many of the `left` levels to do in the next pass: as few passes as possible, of equal depth.
#[inline(always)]
fn levels_at_once(left: u32, most_rows: usize) -> u32 {
    left.div_ceil(left.div_ceil(most_rows.ilog2()))
}

/// The levels between `rows` rows of `width` entries, read `from_apart` and written `to_apart` entries from row to row.
#[inline(always)]
unsafe fn pass<T: Element, R: Row<T>>(
    rows: usize,
    from: *const T,
    from_apart: usize,
    to: *mut T,
    to_apart: usize,
    width: usize,
) {
    unsafe {
        match rows {
            2 => pass_of::<T, R, 2>(from, from_apart, to, to_apart, width),
            4 => pass_of::<T, R, 4>(from, from_apart, to, to_apart, width),
            8 => pass_of::<T, R, 8>(from, from_apart, to, to_apart, width),
            _ => pass_of::<T, R, 16>(from, from_apart, to, to_apart, width),
        }
    }
}

/// [`pass`], with the number of rows known to the compiler so that they stay in registers.
#[inline(always)]
unsafe fn pass_of<T: Element, R: Row<T>, const ROWS: usize>(
    from: *const T,
    from_apart: usize,
    to: *mut T,
    to_apart: usize,
    width: usize,
) {
    for column in (0..width).step_by(LANES) {
        // SAFETY: the caller's rows have `width` entries, a multiple of LANES.
        unsafe {
            let mut rows = [R::load(from); ROWS];
            unrolled!(ROWS, |r| rows[r] = R::load(from.add(r * from_apart + column)));
            combine(&mut rows);
            unrolled!(ROWS, |r| rows[r].store(to.add(r * to_apart + column)));
        }
    }
}

/// The log2(ROWS) levels between ROWS rows in registers.
#[inline(always)]
unsafe fn combine<T, R: Row<T>, const ROWS: usize>(rows: &mut [R; ROWS]) {
    unsafe {
        combine_level::<T, R, ROWS, 1>(rows);
        combine_level::<T, R, ROWS, 2>(rows);
        combine_level::<T, R, ROWS, 4>(rows);
        combine_level::<T, R, ROWS, 8>(rows);
    }
}

/// The level between rows HALF apart, if there are that many.
#[inline(always)]
unsafe fn combine_level<T, R: Row<T>, const ROWS: usize, const HALF: usize>(rows: &mut [R; ROWS]) {
    unrolled!(ROWS, |r| {
        if (r / HALF).is_multiple_of(2) && r + HALF < ROWS {
            let (a, b) = (rows[r], rows[r + HALF]);
            rows[r] = unsafe { a.add(b) };
            rows[r + HALF] = unsafe { a.subtract(b) };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_values(len: usize) -> Vec<i32> {
        (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as i32 - 3).collect()
    }

    #[test]
    fn equals_the_definition_to_n_11() {
        for n in 0..=11 {
            let values = test_values(1 << n);
            let mut fast = values.clone();
            transform(&mut fast);
            for (s, &coefficient) in fast.iter().enumerate() {
                let sign = |x: usize| if (s & x).count_ones().is_multiple_of(2) { 1 } else { -1 };
                let sum: i32 = values.iter().enumerate().map(|(x, v)| sign(x) * v).sum();
                assert_eq!(coefficient, sum, "n={n} S={s}");
            }
        }
    }

    #[test]
    fn equals_level_by_level_for_every_type_and_size() {
        for n in 8..=22 {
            let values = test_values(1 << n);
            let mut plain = values.clone();
            transform_small(&mut plain);
            let mut fast = values.clone();
            transform(&mut fast);
            assert!(fast == plain, "i32 n={n}");
            let mut f32s: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            transform(&mut f32s);
            let mut f64s: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
            transform(&mut f64s);
            // All sums stay below 2^24, so floats are exact here.
            assert!(f32s.iter().zip(&plain).all(|(a, b)| *a == *b as f32), "f32 n={n}");
            assert!(f64s.iter().zip(&plain).all(|(a, b)| *a == f64::from(*b)), "f64 n={n}");
        }
    }

    /// Every instruction set this machine has gives the same numbers, not only the one it would choose.
    #[test]
    fn every_instruction_set_agrees() {
        fn check<T: Element + PartialEq + std::fmt::Debug>(values: Vec<T>) {
            let mut expected = values.clone();
            transform_small(&mut expected);
            for isa in crate::simd::available() {
                let mut data = values.clone();
                crate::simd::run_on(isa, OnRows(Block(&mut data)));
                assert!(data == expected, "{isa:?} {}", std::any::type_name::<T>());
            }
        }
        let values = test_values(1 << 13);
        check(values.clone());
        check(values.iter().map(|&v| v as f32).collect());
        check(values.iter().map(|&v| f64::from(v)).collect());
    }
}
