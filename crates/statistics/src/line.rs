//! Lines through points.

use serde::Serialize;
use statrs::function::beta::beta_reg;

/// A least-squares line, as SciPy's `linregress` computes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Rise per unit of x.
    pub slope: f64,
    /// Value at x = 0.
    pub intercept: f64,
    /// Pearson's correlation.
    pub r: f64,
    /// Two-sided p-value of the hypothesis that the slope is 0 (Wald test, t-distributed).
    pub p: f64,
    /// Standard error of the slope.
    pub std_error: f64,
    /// Number of points.
    pub points: usize,
}

/// The least-squares line through the points; `None` if there are fewer than two different x.
pub fn linregress(points: &[(f64, f64)]) -> Option<Line> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let moment = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| f(x - mean_x, y - mean_y)).sum::<f64>();
    let (xx, xy, yy) = (moment(&|x, _| x * x), moment(&|x, y| x * y), moment(&|_, y| y * y));
    if points.len() < 2 || xx <= 0.0 || !(xx + xy + yy).is_finite() {
        return None;
    }
    let slope = xy / xx;
    let r = if yy > 0.0 { (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0) } else { 0.0 };
    let freedom = count - 2.0;
    let (p, std_error) = if points.len() == 2 {
        // The line goes through both points: SciPy says p = 0, unless they are level.
        (if yy == 0.0 { 1.0 } else { 0.0 }, 0.0)
    } else {
        // 2 P(T > |t|) = I_{freedom / (freedom + t^2)}(freedom / 2, 1/2), and that x is 1 - r^2.
        let unexplained = (1.0 - r) * (1.0 + r);
        (beta_reg(freedom / 2.0, 0.5, unexplained), (unexplained * yy / xx / freedom).sqrt())
    };
    Some(Line { slope, intercept: mean_y - slope * mean_x, r, p, std_error, points: points.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_and_degenerate_data() {
        assert_eq!(linregress(&[(1.0, 2.0)]), None);
        assert_eq!(linregress(&[(1.0, 2.0), (1.0, 3.0)]), None);
        let level = linregress(&[(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)]).unwrap();
        assert_eq!((level.slope, level.intercept, level.p), (0.0, 2.0, 1.0));
    }
}
