//! Sensitivity of real functions: (f(x) - f(y))^2 / 4 over neighbours x, y.

use crate::stop;
use crate::table::RealTable;
use rayon::prelude::*;

/// Influences and the largest sensitivity of a real function.
#[derive(Clone, Debug, PartialEq)]
pub struct RealSensitivity {
    /// E (f(x) - f(x with x_i flipped))^2 / 4, x1 first.
    pub influences: Vec<f64>,
    /// The largest s(f, x), the sum over i of (f(x) - f(x with x_i flipped))^2 / 4.
    pub max: f64,
}

impl RealSensitivity {
    /// as_n(f), the sum of the influences.
    pub fn average_sensitivity(&self) -> f64 {
        self.influences.iter().sum()
    }
}

/// Flips every bit of every input, on all cores. Parts are added in order, so the result is reproducible.
pub fn real_sensitivity(table: &RealTable) -> RealSensitivity {
    const PART: usize = 4096;
    let (n, values) = (table.variables(), table.values());
    let parts: Vec<_> = (0..values.len().div_ceil(PART))
        .into_par_iter()
        .map(|part| {
            stop::check();
            let rows = part * PART..values.len().min((part + 1) * PART);
            let mut influences = vec![0.0; n];
            let mut sensitivities = vec![0.0; rows.len()];
            for (i, influence) in influences.iter_mut().enumerate() {
                let flip = 1 << (n - 1 - i);
                for (row, sensitivity) in rows.clone().zip(&mut sensitivities) {
                    let shift = (values[row] - values[row ^ flip]).powi(2) / 4.0;
                    *influence += shift;
                    *sensitivity += shift;
                }
            }
            (influences, sensitivities.into_iter().fold(0.0, f64::max))
        })
        .collect();
    let mut total = RealSensitivity { influences: vec![0.0; n], max: 0.0 };
    for (influences, max) in parts {
        total.influences.iter_mut().zip(influences).for_each(|(total, part)| *total += part / values.len() as f64);
        total.max = total.max.max(max);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::real;

    #[test]
    fn the_mean_of_signs_has_average_sensitivity_one_over_n() {
        for n in [1usize, 3, 13, 14] {
            let mean = real(n, move |x| 1.0 - 2.0 * x.ones() as f64 / n as f64).unwrap();
            let sensitivity = real_sensitivity(&RealTable::of(&mean).unwrap());
            assert!((sensitivity.average_sensitivity() - 1.0 / n as f64).abs() < 1e-12);
            assert!((sensitivity.max - 1.0 / n as f64).abs() < 1e-12);
        }
    }
}
