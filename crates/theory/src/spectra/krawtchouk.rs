//! Eigenvalues of a kernel that depends on the number of differing bits, without cancellation.
//!
//! For K(x, y) = Psi_j, j the number of bits in which x and y differ, every monomial of degree k is an eigenfunction, with eigenvalue
//!
//! ```text
//! mu_k = 2^-d sum_j K_j(k) Psi_j,     sum_j K_j(k) z^j = (1 - z)^k (1 + z)^(d - k)     (Krawtchouk polynomials)
//! ```
//!
//! The sum alternates, and mu_k may be 2^-d of its terms or less. The Krawtchouk numbers are integers below 2^d and are exact here;
//! and since sum_j |K_j(k)| <= 2^d, an error of e in every Psi_j is an error of at most e in mu_k. So it is enough to know Psi_j to
//! enough bits, and how many are enough shows in the result.

use super::real::Big;

/// mu_0 ... mu_d of Psi_0 ... Psi_d. The numbers must carry at least d + 64 bits.
pub fn eigenvalues(psi: &[Big]) -> Vec<Big> {
    let dimension = psi.len() - 1;
    let bits = psi[0].bits();
    let zero = Big::new(0.0, bits);
    let mut row = binomials(dimension, bits);
    let mut mu = Vec::with_capacity(dimension + 1);
    for degree in 0..=dimension {
        let sum = row.iter().zip(psi).fold(zero.clone(), |sum, (number, value)| &sum + &(number * value));
        mu.push(sum.times_power_of_two(-(dimension as i32)));
        if degree < dimension {
            raise_degree(&mut row);
        }
    }
    mu
}

/// C(d, 0) ... C(d, d), which are also the Krawtchouk numbers of degree 0.
pub fn binomials(dimension: usize, bits: usize) -> Vec<Big> {
    let mut row = vec![Big::new(0.0, bits); dimension + 1];
    row[0] = Big::new(1.0, bits);
    for _ in 0..dimension {
        for j in (1..=dimension).rev() {
            row[j] = &row[j] + &row[j - 1];
        }
    }
    row
}

/// From K_j(k) to K_j(k + 1): multiplies the generating polynomial by (1 - z) / (1 + z).
fn raise_degree(row: &mut [Big]) {
    let mut before = row[0].clone(); // K_0 = 1 at every degree
    for j in 1..row.len() {
        let old = row[j].clone();
        row[j] = &(&old - &before) - &row[j - 1];
        before = old;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spectra::real::Real;

    #[test]
    fn krawtchouk_numbers_are_sums_over_the_cube() {
        // sum over x with j minus signs of x_1 ... x_k, for d = 6.
        let dimension = 6;
        let mut row = binomials(dimension, 128);
        for degree in 0..=dimension {
            for (j, number) in row.iter().enumerate() {
                let strings = (0u32..64).filter(|x| x.count_ones() as usize == j);
                let sum: i32 =
                    strings.map(|x| if (x & ((1 << degree) - 1)).count_ones() % 2 == 0 { 1 } else { -1 }).sum();
                assert_eq!(number.to_f64(), f64::from(sum), "k={degree} j={j}");
            }
            if degree < dimension {
                raise_degree(&mut row);
            }
        }
    }

    /// t^(differing bits) has eigenvalues ((1+t)/2)^(d-k) ((1-t)/2)^k, which span 2^-1000 for d = 512: nothing may be lost.
    #[test]
    fn noise_kernel_to_full_precision_in_512_dimensions() {
        let (dimension, bits) = (512, 2048);
        let t = Big::new(0.6, bits);
        let one = Big::new(1.0, bits);
        let powers = |base: &Big| {
            let mut power = one.clone();
            let mut all = vec![power.clone()];
            for _ in 0..dimension {
                power = &power * base;
                all.push(power.clone());
            }
            all
        };
        let mu = eigenvalues(&powers(&t));
        let half = one.constant(0.5);
        let (with, against) = (powers(&(&(&one + &t) * &half)), powers(&(&(&one - &t) * &half)));
        for degree in 0..=dimension {
            let expected = &with[dimension - degree] * &against[degree];
            let error = (&(&mu[degree] - &expected) / &expected).abs();
            assert!(error.log10() < -250.0, "degree {degree}: {}", error.log10());
        }
    }
}
