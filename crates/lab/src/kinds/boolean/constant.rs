//! What a network that answers the same to every string would reach.

/// The mean squared error of the best constant answer to a target on n bits: its variance over all strings. `None` where it is not known in
/// closed form.
pub fn constant_loss(target: &str, n: f64) -> Option<f64> {
    match target {
        // The mean of n independent bits.
        "mean" => Some(1.0 / (4.0 * n)),
        // Half of all strings have the value 1; of MAJORITY where there are no ties.
        "parity" | "first" => Some(0.25),
        "majority" if n % 2.0 == 1.0 => Some(0.25),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_data::{Bits, Target};

    /// Over all strings of up to nine bits.
    #[test]
    fn it_is_the_variance_over_all_strings() {
        for target in ["mean", "parity", "first", "majority"] {
            for n in 1..=9 {
                let Some(expected) = constant_loss(target, n as f64) else { continue };
                let known = Target::parse(target, n).unwrap();
                let labels = known.labels(&Bits::cube(n).unwrap()).unwrap();
                let values: Vec<f64> = labels.into_iter().map(f64::from).collect();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
                assert!((variance - expected).abs() < 1e-6, "{target} {n}: {variance} {expected}");
            }
        }
    }
}
