//! Curves of many runs laid over each other.

use serde::Serialize;

use crate::{Mean, mean};

/// A point of an averaged curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AlignedPoint {
    /// Steps since convergence; negative before.
    pub offset: i64,
    /// Mean over the runs that have this point, with its interval.
    #[serde(flatten)]
    pub value: Mean,
}

/// One tracked quantity of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The step at which the run converged.
    pub converged_at: u64,
    /// (step, value), in order.
    pub points: Vec<(u64, f64)>,
}

/// The mean of curves laid over each other so that all converge at offset 0, as in the paper's Fig. 3. It is given where at
/// least half of the runs have a point: over fewer and fewer it would follow which are left.
pub fn align(curves: &[Curve]) -> Vec<AlignedPoint> {
    let mut by_offset: std::collections::BTreeMap<i64, Vec<f64>> = Default::default();
    for curve in curves {
        for (step, value) in &curve.points {
            by_offset.entry(*step as i64 - curve.converged_at as i64).or_default().push(*value);
        }
    }
    by_offset
        .into_iter()
        .filter(|(_, values)| 2 * values.len() >= curves.len())
        .filter_map(|(offset, values)| mean(&values).map(|value| AlignedPoint { offset, value }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_aligned_and_cut_where_few_remain() {
        let curve = |converged_at: u64, last: u64| Curve {
            converged_at,
            points: (0..=last).step_by(10).map(|step| (step, step as f64 - converged_at as f64)).collect(),
        };
        // Offsets reach back to -50 for one run of five only (too few), -20 for all; forward to 30 for three, to 50 for two (too few).
        let curves = [curve(20, 70), curve(20, 70), curve(20, 50), curve(20, 20), curve(50, 50)];
        let aligned = align(&curves);
        assert_eq!(aligned.first().unwrap().offset, -20);
        assert_eq!(aligned.last().unwrap().offset, 30);
        assert!(aligned.iter().all(|point| point.value.mean == point.offset as f64));
        assert_eq!(aligned.iter().find(|point| point.offset == 0).unwrap().value.count, 5);
    }
}
