//! The min-degree interpolator (Abbe et al. 2023, "Generalization on the Unseen"): of all functions with given values on some inputs, the
//! one of least degree profile. Profiles are compared from the highest degree down, so it has no weight on degree n if that can be, then
//! as little as can be on degree n - 1, and so on.

use crate::memory::Array;
use crate::table::{RealTable, TruthTable};
use crate::walsh::transform;
use crate::{Error, Result};

/// The most unseen inputs where they are no affine subspace: then a dense system of as many equations is solved.
pub const MOST_SCATTERED: usize = 512;

/// The function that agrees with `values` where `unseen` is 0, of least degree profile. What `values` are where `unseen` is 1 does not
/// matter. Unseen inputs that form an affine subspace (some bits fixed, a parity of some bits fixed, or both) may be many; of others
/// there may be [`MOST_SCATTERED`].
pub fn min_degree_interpolator(values: &RealTable, unseen: &TruthTable) -> Result<RealTable> {
    let n = values.variables();
    if unseen.variables() != n {
        let problem = format!("a function of {n} variables has no unseen inputs of {} bits", unseen.variables());
        return Err(Error::Variables(problem));
    }
    let rows: Vec<u64> = (0..unseen.rows()).filter(|row| unseen.get(*row)).collect();
    let mut result: Array<f64> = values.values().into();
    match AffineSubspace::of(&rows, n) {
        _ if rows.is_empty() => {}
        Some(subspace) => {
            let seen = coefficients(values.values());
            let mut least = subspace.least_profile(seen);
            transform(&mut least);
            rows.iter().for_each(|row| result[*row as usize] = least[*row as usize]);
        }
        None if rows.len() > MOST_SCATTERED => {
            let problem = format!("{} scattered inputs are unseen, of which at most {MOST_SCATTERED}", rows.len());
            return Err(Error::Variables(format!("{problem} may be for the min-degree interpolator")));
        }
        None => Scattered::new(values, &rows).least_profile(&mut result),
    }
    RealTable::new(n, result, values.epsilon())
}

/// lambda_S of a function, S as a number.
fn coefficients(values: &[f64]) -> Array<f64> {
    let mut sums: Array<f64> = values.into();
    transform(&mut sums);
    let scale = 1.0 / values.len() as f64;
    sums.iter_mut().for_each(|sum| *sum *= scale);
    sums
}

/// -1 if an odd number of the variables of `set` are 1 in `row`.
fn sign(set: u64, row: u64) -> f64 {
    if (set & row).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// All inputs on which some characters chi_T have given signs.
struct AffineSubspace {
    /// The sets T, with the sign of chi_T there; the empty set is one of them.
    characters: Vec<(u64, f64)>,
}

impl AffineSubspace {
    /// The subspace that these different inputs are, if they are one.
    fn of(rows: &[u64], n: usize) -> Option<AffineSubspace> {
        let first = *rows.first()?;
        // Directions in echelon form: no two have their highest bit in common.
        let mut directions: Vec<u64> = Vec::new();
        for row in rows {
            let rest = directions.iter().fold(row ^ first, |rest, direction| rest.min(rest ^ direction));
            if rest != 0 {
                directions.push(rest);
                directions.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        if rows.len() != 1 << directions.len() {
            return None;
        }
        let constant = |set: &u64| directions.iter().all(|direction| sign(*set, *direction) == 1.0);
        let characters = (0..1 << n).filter(constant).map(|set| (set, sign(set, first))).collect();
        Some(AffineSubspace { characters })
    }

    /// Functions that are 0 outside add to the coefficients of {S ^ T: T a character} one number times the characters' signs, for each such
    /// class of sets by itself. So in each class the weight on its highest degree decides about that number alone.
    fn least_profile(&self, mut coefficients: Array<f64>) -> Array<f64> {
        let mut done = vec![false; coefficients.len()];
        for set in 0..coefficients.len() as u64 {
            if done[set as usize] {
                continue;
            }
            let class = || self.characters.iter().map(|(character, sign)| ((set ^ character) as usize, *sign));
            let degree = class().map(|(member, _)| member.count_ones()).max().unwrap_or(0);
            let highest = || class().filter(|(member, _)| member.count_ones() == degree);
            let shift =
                highest().map(|(member, sign)| sign * coefficients[member]).sum::<f64>() / highest().count() as f64;
            for (member, sign) in class() {
                coefficients[member] -= sign * shift;
                done[member] = true;
            }
        }
        coefficients
    }
}

/// Unseen inputs without structure: degree after degree by least squares, in the directions that leave the weights above alone.
struct Scattered<'a> {
    n: usize,
    rows: &'a [u64],
    coefficients: Array<f64>,
}

/// A vector with an entry for each unseen input.
type Column = Vec<f64>;

impl<'a> Scattered<'a> {
    fn new(values: &RealTable, rows: &'a [u64]) -> Self {
        Scattered { n: values.variables(), rows, coefficients: coefficients(values.values()) }
    }

    /// Adds to `values` on the unseen inputs what makes the profile least.
    ///
    /// With 2^n y_u added on input u, the weight on degree k is y'Gy + 2 f'y up to a constant, where f is the part of degree k on the unseen
    /// inputs, and G has the sum of chi_S(u) chi_S(v) over the sets of size k, a Krawtchouk polynomial of the distance of u and v.
    fn least_profile(&self, values: &mut [f64]) {
        let count = self.rows.len();
        let mut shift: Column = vec![0.0; count];
        let unit = |place: usize| (0..count).map(|row| f64::from(u8::from(row == place))).collect();
        let mut free: Vec<Column> = (0..count).map(unit).collect();
        for degree in (0..=self.n).rev() {
            if free.is_empty() {
                break;
            }
            let kernel = krawtchouk(self.n, degree);
            let mut slope = self.apply(&kernel, &shift);
            slope.iter_mut().zip(self.part(degree)).for_each(|(slope, part)| *slope += part);
            let images: Vec<Column> = free.iter().map(|column| self.apply(&kernel, column)).collect();
            let quadratic = free.iter().map(|a| images.iter().map(|b| dot(a, b)).collect()).collect();
            let linear = free.iter().map(|column| -dot(column, &slope)).collect();
            let Solved { solution, null } = solve(quadratic, linear);
            add(&mut shift, &combine(&free, &solution));
            free = orthonormal(null.iter().map(|weights| combine(&free, weights)).collect());
        }
        let scale = values.len() as f64;
        self.rows.iter().zip(&shift).for_each(|(row, shift)| values[*row as usize] += scale * shift);
    }

    /// G times a vector.
    fn apply(&self, kernel: &[f64], vector: &[f64]) -> Column {
        let at = |row: &u64| {
            self.rows.iter().zip(vector).map(|(other, value)| kernel[(row ^ other).count_ones() as usize] * value).sum()
        };
        self.rows.iter().map(at).collect()
    }

    /// The part of one degree of the function, on the unseen inputs.
    fn part(&self, degree: usize) -> Column {
        let kept = |(set, value): (usize, &f64)| if set.count_ones() as usize == degree { *value } else { 0.0 };
        let mut part: Vec<f64> = self.coefficients.iter().enumerate().map(kept).collect();
        transform(&mut part);
        self.rows.iter().map(|row| part[*row as usize]).collect()
    }
}

/// The sum of chi_S(x) over |S| = `degree`, by the number of ones of x: n + 1 values.
fn krawtchouk(n: usize, degree: usize) -> Vec<f64> {
    let of_weight = |ones: usize| {
        // The coefficient of z^degree in (1 - z)^ones (1 + z)^(n - ones).
        let mut polynomial = vec![0.0; n + 1];
        polynomial[0] = 1.0;
        for factor in 0..n {
            let sign = if factor < ones { -1.0 } else { 1.0 };
            for power in (1..=n).rev() {
                polynomial[power] += sign * polynomial[power - 1];
            }
        }
        polynomial[degree]
    };
    (0..=n).map(of_weight).collect()
}

/// A solution of A x = b, and a basis of the x with A x = 0.
struct Solved {
    solution: Vec<f64>,
    null: Vec<Vec<f64>>,
}

/// Solves A x = b for a symmetric A without negative eigenvalues that has a solution, by Cholesky's method with pivots.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Solved {
    /// Pivots below this fraction of the first are rounding errors: A has whole numbers in an orthonormal basis.
    const NEGLIGIBLE: f64 = 1e-9;
    let size = b.len();
    let mut order: Vec<usize> = (0..size).collect();
    let mut rank = 0;
    let mut first = 0.0;
    // Eliminates below the pivot, so that the upper triangle of the first `rank` rows is left.
    while rank < size {
        let best = (rank..size).max_by(|i, j| a[*i][*i].total_cmp(&a[*j][*j])).unwrap_or(rank);
        first = f64::max(first, a[best][best]);
        if a[best][best] <= NEGLIGIBLE * first {
            break;
        }
        a.swap(rank, best);
        a.iter_mut().for_each(|row| row.swap(rank, best));
        b.swap(rank, best);
        order.swap(rank, best);
        let pivot = a[rank].clone();
        for row in rank + 1..size {
            let factor = a[row][rank] / pivot[rank];
            if factor != 0.0 {
                a[row][rank..].iter_mut().zip(&pivot[rank..]).for_each(|(entry, pivot)| *entry -= factor * pivot);
                b[row] -= factor * b[rank];
            }
        }
        rank += 1;
    }
    let substitute = |mut right: Vec<f64>| {
        for row in (0..rank).rev() {
            let known: f64 = (row + 1..rank).map(|column| a[row][column] * right[column]).sum();
            right[row] = (right[row] - known) / a[row][row];
        }
        right
    };
    let in_order = |values: &[f64]| {
        let mut placed = vec![0.0; size];
        order.iter().zip(values).for_each(|(place, value)| placed[*place] = *value);
        placed
    };
    let null = (rank..size).map(|free| {
        let mut vector = substitute((0..rank).map(|row| -a[row][free]).collect());
        vector.resize(size, 0.0);
        vector[free] = 1.0;
        in_order(&vector)
    });
    Solved { null: null.collect(), solution: in_order(&substitute(b[..rank].to_vec())) }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += what);
}

/// The columns with these weights, added up.
fn combine(columns: &[Column], weights: &[f64]) -> Column {
    let mut sum = vec![0.0; columns.first().map_or(0, Vec::len)];
    for (column, weight) in columns.iter().zip(weights) {
        sum.iter_mut().zip(column).for_each(|(sum, value)| *sum += weight * value);
    }
    sum
}

/// An orthonormal basis of what independent columns span, by Gram and Schmidt, twice against rounding.
fn orthonormal(columns: Vec<Column>) -> Vec<Column> {
    let mut basis: Vec<Column> = Vec::with_capacity(columns.len());
    for mut column in columns {
        for _ in 0..2 {
            for known in &basis {
                let part = dot(known, &column);
                column.iter_mut().zip(known).for_each(|(value, known)| *value -= part * known);
            }
            let length = dot(&column, &column).sqrt();
            column.iter_mut().for_each(|value| *value /= length);
        }
        basis.push(column);
    }
    basis
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spectrum;
    use crate::function::real;

    /// A function of signs.
    fn table(n: usize, f: impl Fn(&dyn Fn(usize) -> f64) -> f64 + Send + Sync) -> RealTable {
        RealTable::of(&real(n, move |x| f(&|i: usize| if x.get(i - 1) { -1.0 } else { 1.0 })).unwrap()).unwrap()
    }

    fn difference(a: &RealTable, b: &RealTable) -> f64 {
        a.values().iter().zip(b.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    /// Numbers without a pattern.
    fn noise(seed: u64) -> impl Fn(u64) -> f64 {
        move |row| {
            let mixed = (row + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (seed + 1).wrapping_mul(0xD1B5_4A32_D192_ED03);
            let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (mixed >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        }
    }

    fn random(n: usize, seed: u64) -> RealTable {
        let values: Vec<f64> = (0..1 << n).map(noise(seed)).collect();
        RealTable::new(n, values[..].into(), f64::EPSILON).unwrap()
    }

    fn scattered(values: &RealTable, unseen: &TruthTable) -> RealTable {
        let rows: Vec<u64> = (0..unseen.rows()).filter(|row| unseen.get(*row)).collect();
        let mut result: Array<f64> = values.values().into();
        Scattered::new(values, &rows).least_profile(&mut result);
        RealTable::new(values.variables(), result, f64::EPSILON).unwrap()
    }

    /// The three examples of Abbe et al. (2023), Figure 1, where every monomial that is there stays what the seen inputs make of it.
    #[test]
    fn published_examples() {
        // f1: x1 x2 x3 is always 1, so that x1 x2 is x3, and so on.
        let f1 = table(6, |x| x(1) * x(2) - 1.25 * x(2) * x(3) + 1.5 * x(3) * x(1));
        let odd = TruthTable::from_fn(6, |x| x.get(0) ^ x.get(1) ^ x.get(2)).unwrap();
        let least = min_degree_interpolator(&f1, &odd).unwrap();
        assert!(difference(&least, &table(6, |x| x(3) - 1.25 * x(1) + 1.5 * x(2))) < 1e-12);
        // f2: x1 and x2 are never both -1, so that (1 - x1)(1 - x2) = 0.
        let f2 = table(5, |x| x(1) * x(2));
        let both = TruthTable::from_fn(5, |x| x.get(0) & x.get(1)).unwrap();
        let least = min_degree_interpolator(&f2, &both).unwrap();
        assert!(difference(&least, &table(5, |x| x(1) + x(2) - 1.0)) < 1e-12);
        // f3: x1, x2 and x3 are never all -1.
        let cyclic =
            |x: &dyn Fn(usize) -> f64| (0..7).map(|i| x(i + 1) * x((i + 1) % 7 + 1) * x((i + 2) % 7 + 1)).sum::<f64>();
        let f3 = table(7, cyclic);
        let all = TruthTable::from_fn(7, |x| x.get(0) & x.get(1) & x.get(2)).unwrap();
        let least = min_degree_interpolator(&f3, &all).unwrap();
        let lower = |x: &dyn Fn(usize) -> f64| 1.0 - x(1) - x(2) - x(3) + x(1) * x(2) + x(1) * x(3) + x(2) * x(3);
        assert!(difference(&least, &table(7, move |x| cyclic(x) - x(1) * x(2) * x(3) + lower(x))) < 1e-12);
    }

    /// A frozen bit: its coefficients are folded into those without it.
    #[test]
    fn a_frozen_bit_is_replaced_by_its_value() {
        let f = random(6, 1);
        let frozen = TruthTable::from_fn(6, |x| x.get(2)).unwrap();
        let least = min_degree_interpolator(&f, &frozen).unwrap();
        let without = |row: usize| f.values()[row & !(1 << 3)];
        assert!(least.values().iter().enumerate().all(|(row, value)| (value - without(row)).abs() < 1e-12));
    }

    /// Two methods that share no code agree where both can be had: subcubes, parities, both, single inputs, everything.
    #[test]
    fn the_closed_form_is_what_least_squares_find() {
        let unseen: [fn(u64) -> bool; 6] = [
            |row| row & 0b10_0100 == 0b10_0000,
            |row| (row & 0b1111).count_ones() % 2 == 1,
            |row| (row & 0b1010).count_ones() % 2 == 0 && row & 1 == 1,
            |row| row == 13,
            |row| row & 0b11 == 0b11 && (row & 0b111_1000).count_ones() % 2 == 0,
            |_| true,
        ];
        for (place, unseen) in unseen.into_iter().enumerate() {
            let mut table = TruthTable::zeros(6).unwrap();
            (0..64).for_each(|row| table.set(row, unseen(row)));
            let f = random(6, place as u64);
            let found = difference(&min_degree_interpolator(&f, &table).unwrap(), &scattered(&f, &table));
            assert!(found < 1e-9, "{place}: {found}");
        }
    }

    /// Among scattered inputs: it interpolates, does not depend on what was not seen, and is the limit of the interpolators of least norm
    /// when degrees weigh more and more.
    #[test]
    fn scattered_inputs_leave_the_least_profile() {
        for (n, count, seed) in [(4, 3, 0), (4, 7, 1), (5, 12, 2), (5, 20, 3)] {
            let mut unseen = TruthTable::zeros(n).unwrap();
            let mut rows: Vec<u64> = (0..1 << n).collect();
            rows.sort_by(|a, b| noise(seed)(*a).total_cmp(&noise(seed)(*b)));
            rows[..count].iter().for_each(|row| unseen.set(*row, true));
            let f = random(n, seed + 10);
            let least = min_degree_interpolator(&f, &unseen).unwrap();
            let mut other = f.values().to_vec();
            rows[..count].iter().for_each(|row| other[*row as usize] += 1.0);
            let other = RealTable::new(n, other[..].into(), f64::EPSILON).unwrap();
            assert!(difference(&least, &min_degree_interpolator(&other, &unseen).unwrap()) < 1e-9);
            assert!(rows[count..].iter().all(|row| least.values()[*row as usize] == f.values()[*row as usize]));
            let weighted = least_norm(&f, &rows[..count], 30.0);
            let found = difference(&least, &weighted);
            assert!(found < 0.01 && found < 0.1 * difference(&least, &f), "{n} {count}: {found}");
            let profile = |table: &RealTable| Spectrum::of_real(table.clone()).unwrap().degree_profile().to_vec();
            let from_the_top = |table: &RealTable| profile(table).into_iter().rev().collect::<Vec<f64>>();
            let (least, given) = (from_the_top(&least), from_the_top(&f));
            let highest = least.iter().zip(&given).find(|(a, b)| (*a - *b).abs() > 1e-9).unwrap();
            assert!(highest.0 < highest.1, "{least:?} {given:?}");
        }
    }

    /// The interpolator of least sum of base^(2 |S|) lambda_S^2, by elimination in the values on the unseen inputs.
    fn least_norm(f: &RealTable, unseen: &[u64], base: f64) -> RealTable {
        let (n, count) = (f.variables(), unseen.len());
        let lambda = coefficients(f.values());
        let weight = |set: u64| base.powi(2 * set.count_ones() as i32);
        let sum = |term: &dyn Fn(u64) -> f64| (0..1u64 << n).map(|set| weight(set) * term(set)).sum::<f64>();
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for u in unseen {
            let mut row: Vec<f64> = unseen.iter().map(|v| sum(&|set| sign(set, u ^ v))).collect();
            row.push(-sum(&|set| sign(set, *u) * lambda[set as usize]));
            rows.push(row);
        }
        for column in 0..count {
            let best =
                (column..count).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs())).unwrap();
            rows.swap(column, best);
            let pivot = rows[column].clone();
            for row in (0..count).filter(|row| *row != column) {
                let factor = rows[row][column] / pivot[column];
                rows[row].iter_mut().zip(&pivot).for_each(|(entry, pivot)| *entry -= factor * pivot);
            }
        }
        let mut values = f.values().to_vec();
        for (place, u) in unseen.iter().enumerate() {
            values[*u as usize] += rows[place][count] / rows[place][place] * (1u64 << n) as f64;
        }
        RealTable::new(n, values[..].into(), f64::EPSILON).unwrap()
    }
}
