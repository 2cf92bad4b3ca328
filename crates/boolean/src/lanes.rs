//! Rows of sixteen numbers in vector registers, and the four levels of the Walsh transform inside one row.
//!
//! Plain loops over arrays compile to gathers and stack traffic here, several times slower than memory; so the registers
//! and shuffles of AVX-512 and AVX2 are spelt out, and everything above is written once for any [`Row`].

use crate::memory::Zeroable;
use std::ops::{Add, Sub};

/// Numbers in a row.
pub const LANES: usize = 16;

/// Numbers that can be transformed, and the registers that hold sixteen of them.
pub trait Element: Zeroable + Send + Sync + Add<Output = Self> + Sub<Output = Self> {
    /// A row in AVX-512 registers.
    type Avx512: Row<Self>;
    /// A row in AVX2 registers.
    type Avx2: Row<Self>;
    /// [`crate::walsh::transform`] of this type. Not generic, so that it is compiled in this crate, where it is one unit and everything is
    /// inlined, and not by whoever calls it.
    fn transform(data: &mut [Self]);
}

/// Sixteen numbers, added and subtracted side by side.
///
/// # Safety
/// The methods may only be called in code that is dispatched to machines with the row's instructions.
pub unsafe trait Row<T>: Copy {
    /// How many rows fit the machine's registers, with some to spare.
    const ROWS_IN_REGISTERS: usize;
    /// Reads sixteen numbers; no alignment is needed.
    unsafe fn load(from: *const T) -> Self;
    /// Writes sixteen numbers.
    unsafe fn store(self, to: *mut T);
    /// self + other, lane by lane.
    unsafe fn add(self, other: Self) -> Self;
    /// self - other, lane by lane.
    unsafe fn subtract(self, other: Self) -> Self;
    /// The four levels between lanes 1, 2, 4 and 8 apart.
    unsafe fn transform(self) -> Self;
}

// SAFETY: plain arithmetic, valid anywhere.
unsafe impl<T: Element> Row<T> for [T; LANES] {
    const ROWS_IN_REGISTERS: usize = 4;
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        unsafe { from.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + other[lane])
    }
    #[inline(always)]
    unsafe fn subtract(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] - other[lane])
    }
    #[inline(always)]
    unsafe fn transform(self) -> Self {
        [1, 2, 4, 8].into_iter().fold(self, |row, half| {
            std::array::from_fn(|i| if i & half == 0 { row[i] + row[i ^ half] } else { row[i ^ half] - row[i] })
        })
    }
}

macro_rules! elements {
    ($($number:ty: $avx512:ty, $avx2:ty;)*) => {$(
        impl Element for $number {
            type Avx512 = $avx512;
            type Avx2 = $avx2;
            fn transform(data: &mut [Self]) {
                crate::walsh::transform_here(data);
            }
        }
    )*};
}

#[cfg(not(target_arch = "x86_64"))]
elements! {
    i32: [i32; LANES], [i32; LANES];
    f32: [f32; LANES], [f32; LANES];
    f64: [f64; LANES], [f64; LANES];
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Element, LANES, Row};
    use std::arch::x86_64::*;

    /// Implements [`Row`] for `$count` registers of type `$register`: the levels inside a register are `$inside`, those
    /// between registers are plain additions.
    macro_rules! row {
        ($number:ty, $register:ty, $count:literal, $load:ident, $store:ident, $add:ident, $sub:ident, |$v:ident| $inside:block) => {
            // SAFETY: only reached through `dispatch`, on machines with these instructions.
            unsafe impl Row<$number> for [$register; $count] {
                // 32 registers of 64 bytes, or 16 of 32.
                const ROWS_IN_REGISTERS: usize = size_of::<$register>() / 4 / $count;
                #[inline(always)]
                unsafe fn load(from: *const $number) -> Self {
                    unsafe { std::array::from_fn(|r| $load(from.add(r * (LANES / $count)).cast())) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $number) {
                    for r in 0..$count {
                        unsafe { $store(to.add(r * (LANES / $count)).cast(), self[r]) };
                    }
                }
                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    unsafe { std::array::from_fn(|r| $add(self[r], other[r])) }
                }
                #[inline(always)]
                unsafe fn subtract(self, other: Self) -> Self {
                    unsafe { std::array::from_fn(|r| $sub(self[r], other[r])) }
                }
                #[inline(always)]
                unsafe fn transform(self) -> Self {
                    let mut row = self;
                    for r in 0..$count {
                        let $v = row[r];
                        row[r] = unsafe { $inside };
                    }
                    let mut half = 1;
                    while half < $count {
                        for r in (0..$count).filter(|r| r & half == 0) {
                            let (a, b) = (row[r], row[r + half]);
                            unsafe { (row[r], row[r + half]) = ($add(a, b), $sub(a, b)) };
                        }
                        half *= 2;
                    }
                    row
                }
            }
        };
    }

    // Each level: the partner `p` of every lane by a shuffle, then p + v, or p - v in the upper lane of each pair. Floats do
    // both at once, as p + v * ±1 (exact), which also takes work off the adders.
    row!(f32, __m512, 1, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_sub_ps, |v| {
        let (plus, minus) = (_mm512_set1_ps(1.0), _mm512_set1_ps(-1.0));
        let p = _mm512_permute_ps::<0b10_11_00_01>(v);
        let v = _mm512_fmadd_ps(v, _mm512_mask_blend_ps(0xAAAA, plus, minus), p);
        let p = _mm512_permute_ps::<0b01_00_11_10>(v);
        let v = _mm512_fmadd_ps(v, _mm512_mask_blend_ps(0xCCCC, plus, minus), p);
        let p = _mm512_shuffle_f32x4::<0b10_11_00_01>(v, v);
        let v = _mm512_fmadd_ps(v, _mm512_mask_blend_ps(0xF0F0, plus, minus), p);
        let p = _mm512_shuffle_f32x4::<0b01_00_11_10>(v, v);
        _mm512_fmadd_ps(v, _mm512_mask_blend_ps(0xFF00, plus, minus), p)
    });
    row!(i32, __m512i, 1, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi32, _mm512_sub_epi32, |v| {
        let level = |p, v, upper| _mm512_mask_sub_epi32(_mm512_add_epi32(p, v), upper, p, v);
        let v = level(_mm512_shuffle_epi32::<0b10_11_00_01>(v), v, 0xAAAA);
        let v = level(_mm512_shuffle_epi32::<0b01_00_11_10>(v), v, 0xCCCC);
        let v = level(_mm512_shuffle_i32x4::<0b10_11_00_01>(v, v), v, 0xF0F0);
        level(_mm512_shuffle_i32x4::<0b01_00_11_10>(v, v), v, 0xFF00)
    });
    row!(f64, __m512d, 2, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd, _mm512_sub_pd, |v| {
        let (plus, minus) = (_mm512_set1_pd(1.0), _mm512_set1_pd(-1.0));
        let p = _mm512_permute_pd::<0b01_01_01_01>(v);
        let v = _mm512_fmadd_pd(v, _mm512_mask_blend_pd(0xAA, plus, minus), p);
        let p = _mm512_permutex_pd::<0b01_00_11_10>(v);
        let v = _mm512_fmadd_pd(v, _mm512_mask_blend_pd(0xCC, plus, minus), p);
        let p = _mm512_shuffle_f64x2::<0b01_00_11_10>(v, v);
        _mm512_fmadd_pd(v, _mm512_mask_blend_pd(0xF0, plus, minus), p)
    });
    row!(f32, __m256, 2, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_sub_ps, |v| {
        let p = _mm256_permute_ps::<0b10_11_00_01>(v);
        let v = _mm256_blend_ps::<0xAA>(_mm256_add_ps(p, v), _mm256_sub_ps(p, v));
        let p = _mm256_permute_ps::<0b01_00_11_10>(v);
        let v = _mm256_blend_ps::<0xCC>(_mm256_add_ps(p, v), _mm256_sub_ps(p, v));
        let p = _mm256_permute2f128_ps::<1>(v, v);
        _mm256_blend_ps::<0xF0>(_mm256_add_ps(p, v), _mm256_sub_ps(p, v))
    });
    row!(i32, __m256i, 2, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32, _mm256_sub_epi32, |v| {
        let p = _mm256_shuffle_epi32::<0b10_11_00_01>(v);
        let v = _mm256_blend_epi32::<0xAA>(_mm256_add_epi32(p, v), _mm256_sub_epi32(p, v));
        let p = _mm256_shuffle_epi32::<0b01_00_11_10>(v);
        let v = _mm256_blend_epi32::<0xCC>(_mm256_add_epi32(p, v), _mm256_sub_epi32(p, v));
        let p = _mm256_permute2x128_si256::<1>(v, v);
        _mm256_blend_epi32::<0xF0>(_mm256_add_epi32(p, v), _mm256_sub_epi32(p, v))
    });
    row!(f64, __m256d, 4, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd, _mm256_sub_pd, |v| {
        let p = _mm256_permute_pd::<0b0101>(v);
        let v = _mm256_blend_pd::<0b1010>(_mm256_add_pd(p, v), _mm256_sub_pd(p, v));
        let p = _mm256_permute2f128_pd::<1>(v, v);
        _mm256_blend_pd::<0b1100>(_mm256_add_pd(p, v), _mm256_sub_pd(p, v))
    });

    elements! {
        i32: [__m512i; 1], [__m256i; 2];
        f32: [__m512; 1], [__m256; 2];
        f64: [__m512d; 2], [__m256d; 4];
    }
}
