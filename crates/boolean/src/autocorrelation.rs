//! How alike a Boolean function is to itself moved: r(a), the sum over x of (-1)^(f(x) + f(x + a)).

use crate::Result;
use crate::largest::{Magnitude, largest_size};
use crate::memory::{self, Array};
use crate::simd::{Isa, Kernel, dispatch};
use crate::walsh::{Element, block_len, transform_between_blocks, transform_block};
use rayon::prelude::*;

/// The largest n for which f32 is precise enough: see [`absolute_indicator`].
const MOST_FOR_F32: usize = 21;

/// The largest |r(a)| over a other than 0, from `sums`, the Walsh transform of (-1)^f. Refuses what would not fit in memory.
///
/// The squared sums are transformed back, which gives 2^n r(a). All r(a) with a not 0 are equal modulo 8: x and x + a contribute
/// the same, so r(a) = 2^n - 4 k, k being the pairs on whose ends f differs; and k is odd just if f has an odd number of ones.
/// Rounding therefore finds r(a) if it is known to less than 4. The transform adds n times, each time with a relative error of at
/// most u, and the squares sum to 4^n, so that r(a) is known to (n + 1) u 2^n: in f32, u = 2^-24, to 2.75 at n = 21.
pub fn absolute_indicator(sums: &[i32]) -> Result<u64> {
    let n = sums.len().ilog2() as usize;
    let found = if n <= MOST_FOR_F32 { largest_moved::<f32>(sums)? } else { largest_moved::<f64>(sums)? };
    let ones = (sums.len() as i64 - i64::from(sums[0])) / 2;
    let (step, first) = match n {
        0..3 => (1.0, 0.0), // whole numbers that even f32 has exactly
        _ if ones % 2 == 0 => (8.0, 0.0),
        _ => (8.0, 4.0),
    };
    Ok((((found - first) / step).round() * step + first) as u64)
}

/// The sum of r(a)^2 over all a, which by Parseval is the sum of the fourth powers of the `sums` by 2^n: exact until it is rounded.
pub fn sum_of_square_indicator(sums: &[i32]) -> f64 {
    let fourth = |sum: i32| u128::from((i64::from(sum) * i64::from(sum)) as u64).pow(2);
    let part = |part: &[i32]| part.iter().map(|sum| fourth(*sum)).sum::<u128>();
    let total: u128 = sums.par_chunks(1 << 14).map(part).sum();
    (total >> sums.len().ilog2()) as f64
}

/// The largest |r(a)| over a other than 0, with the rounding errors of `T`.
fn largest_moved<T: Float>(sums: &[i32]) -> Result<f64> {
    let n = sums.len().ilog2() as usize;
    memory::check_fits(n, "the autocorrelation", (size_of::<T>() << n) as u64, "ask for other --measures")?;
    let mut squares = Array::<T>::zeros(sums.len());
    let block = block_len::<T>().min(sums.len());
    squares.par_chunks_mut(block).zip(sums.par_chunks(block)).for_each(|(squares, sums)| {
        dispatch(Squares(sums, squares));
        transform_block(squares);
    });
    transform_between_blocks(&mut squares);
    squares[0] = T::default(); // r(0) = 2^n is not looked at
    let largest = squares.par_chunks(1 << 14).map(largest_size).reduce(|| 0.0, f64::max);
    Ok(largest / sums.len() as f64)
}

/// A number with rounding errors.
trait Float: Element + Magnitude {
    fn square_of(sum: i32) -> Self;
}

macro_rules! floats {
    ($($number:ty),*) => {$(
        impl Float for $number {
            #[inline(always)]
            fn square_of(sum: i32) -> Self {
                sum as $number * sum as $number
            }
        }
    )*};
}
floats!(f32, f64);

/// Writes the squares of whole numbers.
struct Squares<'a, T>(&'a [i32], &'a mut [T]);

impl<T: Float> Kernel for Squares<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: Isa) {
        self.0.iter().zip(self.1).for_each(|(sum, square)| *square = T::square_of(*sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{random, small, table};
    use crate::{Spectrum, TruthTable};

    /// (absolute indicator, sum of squares), by counting.
    fn by_definition(table: &TruthTable) -> (u64, f64) {
        let r = |a: u64| (0..table.rows()).map(|x| if table.get(x) == table.get(x ^ a) { 1 } else { -1 }).sum::<i64>();
        let all: Vec<i64> = (0..table.rows()).map(r).collect();
        let largest = all[1..].iter().map(|r| r.unsigned_abs()).max().unwrap();
        (largest, all.iter().map(|r| r * r).sum::<i64>() as f64)
    }

    fn sums(table: &TruthTable) -> Vec<i32> {
        let spectrum = Spectrum::of(table).unwrap();
        spectrum.coefficients().map(|lambda| (lambda * table.rows() as f64) as i32).collect()
    }

    #[test]
    fn what_counting_gives_for_all_functions_of_at_most_3_variables_and_random_ones() {
        let random = (4..=10).flat_map(|n| (0..4).map(move |seed| random(seed, n)));
        for table in small().chain(random) {
            let (sums, expected) = (sums(&table), by_definition(&table));
            assert_eq!((absolute_indicator(&sums).unwrap(), sum_of_square_indicator(&sums)), expected, "{table:?}");
        }
    }

    /// Close to the bound of f32's errors, which are largest where few sums are not small, and beyond it, where f64 is used.
    #[test]
    fn large_functions() {
        for n in [20, 21, 22] {
            // Both parities of the number of ones.
            for seed in 0..3 {
                let sums = sums(&random(seed, n));
                assert_eq!(absolute_indicator(&sums).unwrap() as f64, largest_moved::<f64>(&sums).unwrap().round());
            }
            // Affine but for one input (r(a) = ±(2^n - 4)), but for two (±(2^n - 8), and ±2^n for the a between them).
            let parity = table("parity", n);
            let almost = |set: &[u32]| {
                let mut words = parity.words().to_vec();
                words[0] |= set.iter().fold(0, |word, row| word | 1 << row);
                sums(&TruthTable::from_words(n, &words).unwrap())
            };
            assert_eq!(absolute_indicator(&almost(&[12])).unwrap(), (1 << n) - 4);
            assert_eq!(absolute_indicator(&almost(&[12, 15])).unwrap(), 1 << n);
            assert_eq!(sum_of_square_indicator(&almost(&[])), 4f64.powi(n as i32) * 2f64.powi(n as i32));
        }
    }
}
