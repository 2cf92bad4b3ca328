//! What a nonlinearity does to a Gaussian process: its dual activation.

use serde::{Deserialize, Serialize};

use super::real::Real;

/// The nonlinearity of a dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// max(0, z).
    Relu,
    /// The error function.
    Erf,
    /// None: in a transformer, attention layers follow each other directly.
    Identity,
}

/// E[phi(u) phi(v)] and E[phi'(u) phi'(v)] for Gaussian (u, v).
pub struct Dual<R> {
    /// E[phi(u) phi(v)]: what the covariance becomes.
    pub value: R,
    /// E[phi'(u) phi'(v)]: what derivatives are multiplied with.
    pub slope: R,
}

impl Activation {
    /// The dual for (u, v) with variances `xx`, `yy` > 0 and covariance `xy` (Cho & Saul 2009 for relu, Williams 1997 for erf).
    pub fn dual<R: Real>(self, xy: &R, xx: &R, yy: &R) -> Dual<R> {
        let number = |value: f64| xy.constant(value);
        let pi = || xy.pi();
        match self {
            Activation::Relu => {
                let size = (xx.clone() * yy.clone()).sqrt();
                let cos = correlation(xy.clone() / size.clone());
                let sin = ((number(1.0) - cos.clone()) * (number(1.0) + cos.clone())).sqrt();
                let obtuse = pi() - cos.acos();
                let two_pi = number(2.0) * pi();
                Dual { value: size * (sin + obtuse.clone() * cos) / two_pi.clone(), slope: obtuse / two_pi }
            }
            Activation::Erf => {
                let scale = |variance: &R| number(1.0) + number(2.0) * variance.clone();
                let square = scale(xx) * scale(yy);
                let twice = number(2.0) * xy.clone();
                let ratio = correlation(twice.clone() / square.sqrt());
                let slope = number(4.0) / (pi() * (square - twice.clone() * twice).sqrt());
                Dual { value: number(2.0) * ratio.asin() / pi(), slope }
            }
            Activation::Identity => Dual { value: xy.clone(), slope: number(1.0) },
        }
    }
}

/// A correlation that rounding moved a little past ±1, or a little short of it, is ±1: the slope of relu's dual is infinitely
/// steep there and would turn an error of e into one of sqrt(e).
fn correlation<R: Real>(ratio: R) -> R {
    let one = ratio.constant(1.0);
    let edge = one.clone() - ratio.constant(8.0) * ratio.epsilon();
    if ratio > edge {
        one
    } else if ratio < -edge {
        -one
    } else {
        ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E[g(u) h(v)] by the trapezium rule on a fine grid of two independent normals.
    fn expectation(xy: f64, xx: f64, yy: f64, g: impl Fn(f64) -> f64) -> f64 {
        let (step, reach) = (0.02, 8.0);
        let points = (2.0 * reach / step) as i32;
        let (a, b) = (xx.sqrt(), xy / xx.sqrt());
        let c = (yy - b * b).sqrt();
        let density = |z: f64| (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * step;
        let mut sum = 0.0;
        for i in 0..=points {
            let s = f64::from(i) * step - reach;
            for j in 0..=points {
                let t = f64::from(j) * step - reach;
                sum += density(s) * density(t) * g(a * s) * g(b * s + c * t);
            }
        }
        sum
    }

    #[test]
    fn duals_are_gaussian_expectations() {
        let (xy, xx, yy) = (0.35, 0.8, 1.3);
        let relu = Activation::Relu.dual(&xy, &xx, &yy);
        assert!((relu.value - expectation(xy, xx, yy, |z: f64| z.max(0.0))).abs() < 1e-4);
        assert!((relu.slope - expectation(xy, xx, yy, |z| f64::from(u8::from(z > 0.0)))).abs() < 2e-2);
        let erf = Activation::Erf.dual(&xy, &xx, &yy);
        // erf'(z) = 2/sqrt(pi) exp(-z^2) is smooth, so the trapezium rule is accurate to all digits.
        let slope = expectation(xy, xx, yy, |z| 2.0 / std::f64::consts::PI.sqrt() * (-z * z).exp());
        assert!((erf.slope - slope).abs() < 1e-10);
        assert!((erf.value - expectation(xy, xx, yy, erf_by_series)).abs() < 1e-6);
        let identity = Activation::Identity.dual(&xy, &xx, &yy);
        assert_eq!((identity.value, identity.slope), (xy, 1.0));
    }

    /// erf by its Taylor series, which is accurate enough in double precision for |z| < 5.
    fn erf_by_series(z: f64) -> f64 {
        if z.abs() > 4.5 {
            return z.signum();
        }
        let (mut term, mut sum) = (z, z);
        for n in 1..150 {
            let n = f64::from(n);
            term *= -z * z / n;
            sum += term / (2.0 * n + 1.0);
        }
        2.0 / std::f64::consts::PI.sqrt() * sum
    }

    #[test]
    fn equal_and_opposite_inputs_are_exact() {
        let q = 0.3f64;
        assert_eq!(Activation::Relu.dual(&q, &q, &q).slope, 0.5);
        assert!((Activation::Relu.dual(&q, &q, &q).value - q / 2.0).abs() < 1e-16);
        assert_eq!(Activation::Relu.dual(&-q, &q, &q).value, 0.0);
    }
}
