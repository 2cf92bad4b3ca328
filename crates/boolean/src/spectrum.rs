//! Fourier-Walsh spectra: f = sum over S of lambda_S chi_S, where chi_S(x) is the product of the signs of x_i, i in S.

use crate::biased_transform::biased_transform;
use crate::lanes::LANES;
use crate::largest::{before, first_entries};
use crate::memory::Array;
use crate::simd::{Isa, Kernel, dispatch};
use crate::table::{RealTable, TruthTable};
use crate::walsh::{block_len, transform, transform_between_blocks, transform_block};
use crate::{Convention, Error, MAX_SPECTRUM_VARIABLES, Result, autocorrelation, memory};
use rayon::prelude::*;

/// All 2^n Fourier-Walsh coefficients of a function, and what is read off them.
///
/// A set S of variables is a number whose bits, x1 most significant, tell its members, like the rows of a truth table.
/// Signs follow O'Donnell: bit 0 is +1, bit 1 is -1, so parity's one coefficient is +1.
#[derive(Clone, Debug)]
pub struct Spectrum {
    n: usize,
    convention: Convention,
    coefficients: Coefficients,
    degree_profile: Vec<f64>,
    spectral_norm: f64,
    degree: usize,
    nonlinearity: Option<u64>,
}

/// Coefficients before the division by 2^n.
#[derive(Clone, Debug)]
enum Coefficients {
    /// Of (-1)^f: whole numbers, exact.
    Signs(Array<i32>),
    /// Of a real function, in f64.
    Real(Array<f64>),
}

impl Spectrum {
    /// Whether the spectrum of a Boolean function of `n` variables can be had on this machine, before anything is built.
    pub fn check_fits(n: usize) -> Result<()> {
        check_size(n, size_of::<i32>())
    }

    /// The spectrum of (-1)^f, exact. Refuses, before allocating, what would not fit in memory.
    pub fn of(table: &TruthTable) -> Result<Self> {
        let n = table.variables();
        Self::check_fits(n)?;
        let mut sums = Array::<i32>::zeros(1 << n);
        // Fill and transform each block while it is in the cache: the array is not read before it is written.
        let block = block_len::<i32>().min(sums.len());
        sums.par_chunks_mut(block).enumerate().for_each(|(index, entries)| {
            fill_signs(&table.words()[index * block / 64..], entries);
            transform_block(entries);
        });
        transform_between_blocks(&mut sums);
        let scale = (0.5f64).powi(n as i32);
        let sums_by_degree = by_degree(&sums, n);
        // Whole numbers: squares sum to 4^n <= 2^60 by Parseval, absolute values to at most 2^45.
        let degree_profile = sums_by_degree.iter().map(|d| d.squares as f64 * scale * scale).collect();
        let spectral_norm = sums_by_degree.iter().map(|d| d.absolute).sum::<u64>() as f64 * scale;
        let degree = sums_by_degree.iter().rposition(|d| d.squares > 0).unwrap_or(0);
        let largest = sums_by_degree.iter().map(|d| d.largest).max().unwrap_or(0);
        Ok(Self {
            n,
            convention: Convention::PlusMinus,
            coefficients: Coefficients::Signs(sums),
            degree_profile,
            spectral_norm,
            degree,
            nonlinearity: Some(((1 << n) - largest) / 2),
        })
    }

    /// The spectrum of a real function, values as they are. Coefficients below the rounding error of the values count as
    /// zero for the degree.
    pub fn of_real(table: RealTable) -> Result<Self> {
        let n = table.variables();
        check_size(n, 0)?; // transformed in place
        let largest = table.values().iter().fold(0f64, |largest, v| largest.max(v.abs()));
        let negligible = table.epsilon() * largest * (n + 1) as f64;
        let mut sums = table.into_values();
        transform(&mut sums);
        Ok(Self::of_sums(n, Convention::AsGiven, sums, negligible))
    }

    /// The spectrum of (-1)^f for bits that are 1 with probability `p`, in the basis of mean 0 and variance 1 that belongs to them (see
    /// `biased_transform`). Refuses what would not fit in memory.
    pub fn biased(table: &TruthTable, p: f64) -> Result<Self> {
        let n = table.variables();
        check_size(n, size_of::<f64>())?;
        let negligible = f64::EPSILON * (n + 1) as f64;
        Ok(Self::of_sums(n, Convention::PlusMinus, biased_transform(table, p), negligible))
    }

    /// From coefficients times 2^n, of which those up to `negligible` count as zero for the degree.
    fn of_sums(n: usize, convention: Convention, sums: Array<f64>, negligible: f64) -> Self {
        let scale = (0.5f64).powi(n as i32);
        let sums_by_degree = by_degree(&sums, n);
        let degree_profile = sums_by_degree.iter().map(|d| d.squares * scale * scale).collect();
        let spectral_norm = sums_by_degree.iter().map(|d| d.absolute).sum::<f64>() * scale;
        let degree = sums_by_degree.iter().rposition(|d| d.largest * scale > negligible).unwrap_or(0);
        Self {
            n,
            convention,
            coefficients: Coefficients::Real(sums),
            degree_profile,
            spectral_norm,
            degree,
            nonlinearity: None,
        }
    }

    /// The same function with values in another convention: for f in {0,1}, (-1)^f = 1 - 2f.
    pub fn in_convention(mut self, convention: Convention) -> Self {
        if (self.convention, convention) == (Convention::PlusMinus, Convention::ZeroOne) {
            let (mean, mean_01) = (self.coefficient(0), (1.0 - self.coefficient(0)) / 2.0);
            self.spectral_norm = (self.spectral_norm - mean.abs()) / 2.0 + mean_01.abs();
            self.degree_profile.iter_mut().for_each(|weight| *weight /= 4.0);
            self.degree_profile[0] = mean_01 * mean_01;
            self.convention = Convention::ZeroOne;
        }
        self
    }

    /// n, the number of variables.
    pub fn variables(&self) -> usize {
        self.n
    }

    /// lambda_S, for S as a number (x1 most significant).
    pub fn coefficient(&self, set: u64) -> f64 {
        let sum = match &self.coefficients {
            Coefficients::Signs(sums) => f64::from(sums[set as usize]),
            Coefficients::Real(sums) => sums[set as usize],
        };
        let coefficient = sum * (0.5f64).powi(self.n as i32);
        match (self.convention, set) {
            (Convention::ZeroOne, 0) => (1.0 - coefficient) / 2.0,
            (Convention::ZeroOne, _) => -coefficient / 2.0,
            _ => coefficient,
        }
    }

    /// All coefficients, S = 0, 1, ..., 2^n - 1.
    pub fn coefficients(&self) -> impl Iterator<Item = f64> {
        (0..1u64 << self.n).map(|set| self.coefficient(set))
    }

    /// The `count` coefficients largest in size, those of 0 left out: (S, lambda_S), large ones first; among equal ones small sets
    /// first, and those of early variables before those of late ones.
    pub fn largest(&self, count: usize) -> Vec<(u64, f64)> {
        let mut found = match &self.coefficients {
            Coefficients::Signs(sums) => first_entries(sums, count + 1),
            Coefficients::Real(sums) => first_entries(sums, count + 1),
        };
        // In both conventions all sets but the empty one are in the same order; the empty one is looked at in any case.
        found.retain(|(_, set)| *set != 0);
        found.push((0.0, 0));
        let sized = found.into_iter().map(|(_, set)| (self.coefficient(set).abs(), set));
        let mut found: Vec<_> = sized.filter(|(size, _)| *size > 0.0).collect();
        found.sort_unstable_by(before);
        found.truncate(count);
        found.into_iter().map(|(_, set)| (set, self.coefficient(set))).collect()
    }

    /// The inputs on which a Boolean function differs from the affine function nearest to it; `None` for a real one.
    pub fn nonlinearity(&self) -> Option<u64> {
        self.nonlinearity
    }

    /// The entropy, in bits, of the distribution that gives S the probability lambda_S^2 (values ±1); `None` for a real function.
    pub fn fourier_entropy(&self) -> Option<f64> {
        /// Sums smaller than this are counted, and the logarithm of each taken once. They are even, so the table has half as many places.
        const COUNTED: usize = 1 << 17;
        let sums = self.sums()?;
        let bits = 2.0 * self.n as f64; // log2 of 4^n, the sum of all squares
        let part = |sum: usize| {
            let square = (sum as f64) * (sum as f64);
            square * (bits - square.log2())
        };
        let count = |mut counts: Vec<u32>, sums: &[i32]| {
            for sum in sums.iter().map(|sum| sum.unsigned_abs() as usize).filter(|sum| *sum < COUNTED) {
                counts[sum / 2] += 1;
            }
            counts
        };
        let add = |a: Vec<u32>, b: Vec<u32>| a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let chunks = || sums.par_chunks(COUNTED);
        let per_core = chunks().len().div_ceil(rayon::current_num_threads());
        let own_counts = chunks().with_min_len(per_core).fold(|| vec![0; COUNTED / 2], count);
        let counts = own_counts.reduce_with(add).unwrap_or_default();
        let counted = counts.iter().enumerate().skip(1).filter(|(_, count)| **count > 0);
        let small: f64 = counted.map(|(half, &count)| f64::from(count) * part(2 * half)).sum();
        // Added in order, so that the result is reproducible.
        let large = |sums: &[i32]| -> f64 {
            sums.iter().map(|sum| sum.unsigned_abs() as usize).filter(|sum| *sum >= COUNTED).map(part).sum()
        };
        let any_large = self.nonlinearity.is_some_and(|distance| (1 << self.n) - 2 * distance >= COUNTED as u64);
        let large: f64 = if any_large { chunks().map(large).collect::<Vec<f64>>().iter().sum() } else { 0.0 };
        Some((small + large) * (0.25f64).powi(self.n as i32))
    }

    /// The largest m such that all coefficients of 1 to m variables are 0: knowing m bits of the input tells nothing about f. `None` for a
    /// real function.
    pub fn correlation_immunity(&self) -> Option<usize> {
        self.nonlinearity?;
        Some(self.degree_profile[1..].iter().take_while(|weight| **weight == 0.0).count())
    }

    /// The largest |r(a)| over a other than 0, r(a) being the sum over x of (-1)^(f(x) + f(x + a)); `None` for a real function. Refuses
    /// what would not fit in memory.
    pub fn absolute_indicator(&self) -> Result<Option<u64>> {
        self.sums().map(autocorrelation::absolute_indicator).transpose()
    }

    /// The sum of r(a)^2 over all a; `None` for a real function.
    pub fn sum_of_square_indicator(&self) -> Option<f64> {
        self.sums().map(autocorrelation::sum_of_square_indicator)
    }

    /// The whole numbers behind the coefficients of a Boolean function.
    fn sums(&self) -> Option<&[i32]> {
        match &self.coefficients {
            Coefficients::Signs(sums) => Some(sums),
            Coefficients::Real(_) => None,
        }
    }

    /// The largest |S| with lambda_S not 0: the degree as a polynomial. (The constant 0 has degree 0 here.)
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// d_i, the sum of lambda_S^2 over |S| = i, for i = 0..=n.
    pub fn degree_profile(&self) -> &[f64] {
        &self.degree_profile
    }

    /// E (f - g)^2 by degree: the sum of (lambda_S - mu_S)^2 over |S| = i, for i = 0..=n. Both have the same variables.
    pub fn distance_by_degree(&self, other: &Spectrum) -> Vec<f64> {
        let mut distances = vec![0.0; self.n + 1];
        for (set, (own, its)) in self.coefficients().zip(other.coefficients()).enumerate() {
            distances[set.count_ones() as usize] += (own - its).powi(2);
        }
        distances
    }

    /// The sum of |lambda_S|.
    pub fn spectral_norm(&self) -> f64 {
        self.spectral_norm
    }

    /// The sum of lambda_S^2 over |S| > k.
    pub fn weight_above(&self, k: usize) -> f64 {
        self.degree_profile.iter().skip(k + 1).sum()
    }

    /// E[f(x) f(y)] for y a copy of x with correlation `rho` at each bit: the sum of rho^|S| lambda_S^2.
    pub fn noise_stability(&self, rho: f64) -> f64 {
        self.degree_profile.iter().rev().fold(0.0, |sum, weight| sum * rho + weight)
    }

    /// The sum of lambda_S^2, which by Parseval is E[f^2].
    pub fn sum_of_squares(&self) -> f64 {
        self.degree_profile.iter().sum()
    }

    /// The sum of |S| lambda_S^2, which by Eq. 17 of Hahn & Rofin is the average sensitivity.
    pub fn average_sensitivity(&self) -> f64 {
        self.degree_profile.iter().enumerate().map(|(i, weight)| i as f64 * weight).sum()
    }
}

fn check_size(n: usize, bytes_per_entry: usize) -> Result<()> {
    let instead = "ask for --measures influences, or sample (--method sampled)";
    memory::check_table_variables(n)?;
    memory::check_fits(n, "the spectrum", (bytes_per_entry as u64) << n, instead)?;
    if n > MAX_SPECTRUM_VARIABLES {
        let problem = format!("n={n} is too large for an exact spectrum, which stops at n={MAX_SPECTRUM_VARIABLES}");
        return Err(Error::Memory(format!("{problem}; {instead}")));
    }
    Ok(())
}

/// +1 for each 0 bit, -1 for each 1 bit.
fn fill_signs(words: &[u64], entries: &mut [i32]) {
    struct Fill<'a>(&'a [u64], &'a mut [i32]);
    impl Kernel for Fill<'_> {
        type Output = ();
        #[inline(always)]
        fn run(self, _: Isa) {
            for (word, entries) in self.0.iter().zip(self.1.chunks_mut(64)) {
                for (bit, entry) in entries.iter_mut().enumerate() {
                    *entry = 1 - 2 * (word >> bit & 1) as i32;
                }
            }
        }
    }
    dispatch(Fill(words, entries));
}

/// A transformed entry, and the type that sums of its squares need.
trait Entry: Copy + Send + Sync {
    type Sum: Copy + Default + Send + Sync + PartialOrd + std::ops::AddAssign;
    fn square(self) -> Self::Sum;
    fn absolute(self) -> Self::Sum;
}

impl Entry for i32 {
    type Sum = u64;
    #[inline(always)]
    fn square(self) -> u64 {
        (i64::from(self) * i64::from(self)) as u64
    }
    #[inline(always)]
    fn absolute(self) -> u64 {
        u64::from(self.unsigned_abs())
    }
}

impl Entry for f64 {
    type Sum = f64;
    #[inline(always)]
    fn square(self) -> f64 {
        self * self
    }
    #[inline(always)]
    fn absolute(self) -> f64 {
        self.abs()
    }
}

/// Sums over the sets of one size.
#[derive(Clone, Copy, Debug, Default)]
struct DegreeSums<S> {
    squares: S,
    absolute: S,
    largest: S,
}

/// Sums of squares and absolute values by |S|, on all cores. Parts are added in order, so floats are reproducible.
fn by_degree<T: Entry>(sums: &[T], n: usize) -> Vec<DegreeSums<T::Sum>> {
    const PART: usize = 1 << 16;
    let parts: Vec<_> = sums
        .par_chunks(PART)
        .enumerate()
        .map(|(index, part)| {
            let outside = (index as u64).count_ones() as usize;
            let mut degrees = vec![DegreeSums::default(); n + 1];
            for (inside, sums) in dispatch(SumPart(part)).into_iter().enumerate().take(n + 1 - outside) {
                degrees[outside + inside] = sums;
            }
            degrees
        })
        .collect();
    parts.into_iter().fold(vec![DegreeSums::default(); n + 1], |mut total, part| {
        for (total, part) in total.iter_mut().zip(&part) {
            total.squares += part.squares;
            total.absolute += part.absolute;
            total.largest = if part.largest > total.largest { part.largest } else { total.largest };
        }
        total
    })
}

/// Sums over at most 2^16 entries, by the number of ones in their index.
struct SumPart<'a, T>(&'a [T]);

impl<T: Entry> Kernel for SumPart<'_, T> {
    type Output = Vec<DegreeSums<T::Sum>>;

    #[inline(always)]
    fn run(self, _: Isa) -> Self::Output {
        let mut degrees = vec![DegreeSums::default(); 17];
        let mut add = |degree: usize, squares, absolute, largest| {
            let sums: &mut DegreeSums<T::Sum> = &mut degrees[degree];
            sums.squares += squares;
            sums.absolute += absolute;
            sums.largest = if largest > sums.largest { largest } else { sums.largest };
        };
        let (rows, rest) = self.0.as_chunks::<LANES>();
        // Rows of 16 whose index has `ones` ones share their lanes' degrees.
        let mut squares = [[T::Sum::default(); LANES]; 13];
        let mut absolutes = squares;
        let mut largests = squares;
        for (index, row) in rows.iter().enumerate() {
            let ones = index.count_ones() as usize;
            let (squares, absolutes, largests) = (&mut squares[ones], &mut absolutes[ones], &mut largests[ones]);
            for lane in 0..LANES {
                squares[lane] += row[lane].square();
                let absolute = row[lane].absolute();
                absolutes[lane] += absolute;
                largests[lane] = if absolute > largests[lane] { absolute } else { largests[lane] };
            }
        }
        for ones in 0..13 {
            for lane in 0..LANES {
                let degree = ones + lane.count_ones() as usize;
                add(degree, squares[ones][lane], absolutes[ones][lane], largests[ones][lane]);
            }
        }
        for (index, entry) in rest.iter().enumerate() {
            add(index.count_ones() as usize, entry.square(), entry.absolute(), entry.absolute());
        }
        degrees
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{random, small, table};

    fn spectrum(name: &str, n: usize) -> Spectrum {
        Spectrum::of(&table(name, n)).unwrap()
    }

    #[test]
    fn parity_is_one_monomial() {
        for n in [1, 2, 7, 13, 20] {
            let parity = spectrum("parity", n);
            assert_eq!(parity.coefficient((1 << n) - 1), 1.0);
            assert_eq!((parity.degree(), parity.spectral_norm(), parity.average_sensitivity()), (n, 1.0, n as f64));
        }
    }

    #[test]
    fn inner_product_is_bent() {
        let bent = spectrum("inner-product", 12);
        assert!(bent.coefficients().all(|c| c.abs() == 1.0 / 64.0));
        assert_eq!(bent.spectral_norm(), 64.0);
    }

    #[test]
    fn the_largest_coefficients_come_first() {
        for (name, n) in
            [("random:1", 9), ("majority", 7), ("or", 5), ("inner-product", 8), ("inner-product", 18), ("random:4", 18)]
        {
            for convention in [Convention::PlusMinus, Convention::ZeroOne] {
                let spectrum = spectrum(name, n).in_convention(convention);
                let mut all: Vec<(u64, f64)> = (0..1 << n).map(|set| (set, spectrum.coefficient(set))).collect();
                all.retain(|(_, value)| *value != 0.0);
                let key = |set: u64| (set.count_ones(), std::cmp::Reverse(set));
                all.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(key(a.0).cmp(&key(b.0))));
                for count in [1, 8, 100, 5000] {
                    assert_eq!(spectrum.largest(count), all[..all.len().min(count)], "{name} n={n} {count}");
                }
            }
        }
        assert_eq!(spectrum("parity", 4).largest(8), [(15, 1.0)]);
    }

    #[test]
    fn nonlinearity_is_the_distance_to_the_nearest_affine_function() {
        // All functions of at most 3 variables, against all affine ones.
        for n in 1..=3usize {
            for truth in 0..1u64 << (1 << n) {
                let affine = (0..1u64 << n).flat_map(|set| [0, 1].map(|constant| (set, constant)));
                let differs = |(set, constant): (u64, u32)| {
                    (0..1u64 << n)
                        .filter(|x| (truth >> x) as u32 & 1 != ((x & set).count_ones() + constant) % 2)
                        .count()
                };
                let nearest = affine.map(differs).min().unwrap() as u64;
                let table = TruthTable::from_words(n, &[truth]).unwrap();
                assert_eq!(Spectrum::of(&table).unwrap().nonlinearity(), Some(nearest), "n={n} {truth:b}");
            }
        }
        assert_eq!(spectrum("inner-product", 8).nonlinearity(), Some(128 - 8)); // bent: as far as can be
    }

    /// All functions of at most 3 variables and random ones of 4 to 7, as the definitions are.
    #[test]
    fn entropy_immunity_and_autocorrelation_are_what_they_are_defined_as() {
        for table in small().chain((4..=7).map(|n| random(n as u64, n))) {
            let (n, rows) = (table.variables(), table.rows());
            let sign = |row: u64| if table.get(row) { -1i64 } else { 1 };
            let spectrum = Spectrum::of(&table).unwrap();
            let chi = |set: u64, row: u64| if (set & row).count_ones() % 2 == 1 { -1 } else { 1 };
            let lambda = |set: u64| (0..rows).map(|x| sign(x) * chi(set, x)).sum::<i64>() as f64 / rows as f64;
            let weights: Vec<f64> = (0..rows).map(|set| lambda(set).powi(2)).collect();
            let entropy: f64 = weights.iter().filter(|w| **w > 0.0).map(|w| -w * w.log2()).sum();
            assert!((spectrum.fourier_entropy().unwrap() - entropy).abs() < 1e-12);
            // Any m bits fixed in any way leave the fraction of ones as it is.
            let independent = |fixed: u64| {
                let share = |x: u64| {
                    let agreeing: Vec<u64> = (0..rows).filter(|y| (x ^ y) & fixed == 0).collect();
                    agreeing.iter().filter(|y| table.get(**y)).count() * rows as usize / agreeing.len()
                };
                (0..rows).all(|x| share(x) == table.ones() as usize)
            };
            let holds = |m: &usize| (0..rows).filter(|set| set.count_ones() as usize <= *m).all(independent);
            assert_eq!(spectrum.correlation_immunity(), (0..=n).rev().find(holds));
        }
        // Large sums are not in the table of logarithms: parity has one, of 2^20; the others are in closed form.
        assert_eq!(spectrum("parity", 20).fourier_entropy(), Some(0.0));
        assert_eq!(spectrum("inner-product", 12).fourier_entropy(), Some(12.0));
        let or = 1.0 - 2f64.powi(-19); // lambda_empty = -or, all others 2^-19 in size
        let entropy = -or * or * (or * or).log2() + 38.0 * (1.0 - or * or);
        assert!((spectrum("or", 20).fourier_entropy().unwrap() - entropy).abs() < 1e-12);
        assert_eq!(spectrum("parity", 9).correlation_immunity(), Some(8));
        // Bent functions: no autocorrelation at all; affine ones: all of it.
        let of = |name: &str, n| {
            let spectrum = spectrum(name, n);
            (spectrum.absolute_indicator().unwrap().unwrap(), spectrum.sum_of_square_indicator().unwrap())
        };
        assert_eq!(of("inner-product", 12), (0, 2f64.powi(24)));
        assert_eq!(of("parity", 20), (1 << 20, 2f64.powi(60)));
    }

    #[test]
    fn conventions_differ_by_the_affine_map() {
        let table = table("majority", 5);
        let values: Vec<f64> = (0..32).map(|row| f64::from(u8::from(table.get(row)))).collect();
        let direct = Spectrum::of_real(RealTable::new(5, Array::from(&values[..]), f64::EPSILON).unwrap()).unwrap();
        let mapped = Spectrum::of(&table).unwrap().in_convention(Convention::ZeroOne);
        assert_eq!(direct.degree(), mapped.degree());
        assert!((direct.spectral_norm() - mapped.spectral_norm()).abs() < 1e-12);
        for (a, b) in direct.coefficients().zip(mapped.coefficients()) {
            assert!((a - b).abs() < 1e-12);
        }
        for (a, b) in direct.degree_profile().iter().zip(mapped.degree_profile()) {
            assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn too_large_is_refused_with_what_to_do() {
        let error = check_size(34, 4).unwrap_err().to_string();
        assert!(error.contains("n=34") && error.contains("--measures influences"), "{error}");
    }
}
