//! How two quantities go together.

use serde::Serialize;

use crate::{Line, Z95, linregress};

/// A correlation and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Correlation {
    /// The coefficient, -1 to 1.
    pub r: f64,
    /// Lower end of the interval: -1 where there are fewer than four points, which tell nothing about it.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Two-sided p-value of the hypothesis that there is none, from Student's t-distribution; Spearman's of up to seven points from all orders.
    pub p: f64,
    /// Number of points.
    pub points: usize,
}

/// Pearson's correlation, with the interval of Fisher's transformation: atanh r has the standard error 1 / sqrt(points - 3). `None` if there
/// are fewer than three points, or either quantity is always the same.
pub fn pearson(points: &[(f64, f64)]) -> Option<Correlation> {
    correlation(points, |_| 1.0)
}

/// Spearman's correlation: Pearson's of the ranks, ties sharing their mean rank, with Bonett and Wright's standard error
/// sqrt((1 + r^2 / 2) / (points - 3)) of atanh r.
pub fn spearman(points: &[(f64, f64)]) -> Option<Correlation> {
    let ranks = |of: fn(&(f64, f64)) -> f64| ranks(&points.iter().map(of).collect::<Vec<_>>());
    let ranked: Vec<(f64, f64)> = ranks(|point| point.0).into_iter().zip(ranks(|point| point.1)).collect();
    // A rank hides what is not a number.
    let finite = points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
    let mut found = correlation(&ranked, |r| 1.0 + r * r / 2.0).filter(|_| finite)?;
    if points.len() <= FEW {
        found.p = share_of_orders(&ranked, |r| r.abs() >= found.r.abs() - 1e-12);
    }
    if points.len() > 3 && found.r.abs() > 1.0 - 1e-12 {
        // Few points are soon in order. The end of the interval away from 1 is that of the next lower correlation ranks can have.
        let count = points.len() as f64;
        let next: f64 = 1.0 - 12.0 / (count * (count * count - 1.0));
        let inner = (next.atanh() - reach(next, points.len(), |r| 1.0 + r * r / 2.0)).tanh() * found.r;
        (found.low, found.high) = if found.r > 0.0 { (inner, 1.0) } else { (-1.0, inner) };
    }
    Some(found)
}

/// Up to so many points all orders are tried, 5,040 of them: p by Student's distribution is far off for few ranks.
const FEW: usize = 7;

/// The share of the orders of the second ranks whose correlation with the first is one of those `counted`.
fn share_of_orders(ranked: &[(f64, f64)], counted: impl Fn(f64) -> bool) -> f64 {
    let mean = (ranked.len() + 1) as f64 / 2.0;
    let first: Vec<f64> = ranked.iter().map(|(x, _)| x - mean).collect();
    let mut second: Vec<f64> = ranked.iter().map(|(_, y)| y - mean).collect();
    let size = |ranks: &[f64]| ranks.iter().map(|rank| rank * rank).sum::<f64>().sqrt();
    let sizes = size(&first) * size(&second);
    let (mut found, mut all) = (0u32, 0u32);
    for_each_order(&mut second, 0, &mut |second| {
        let product: f64 = first.iter().zip(second).map(|(x, y)| x * y).sum();
        all += 1;
        found += u32::from(counted(product / sizes));
    });
    f64::from(found) / f64::from(all)
}

/// How well the order of some things agrees with one that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Order {
    /// Spearman's correlation of the two orders: 1 if they are the same, -1 if one is the other's reverse.
    pub rho: f64,
    /// The share of all orders that agree with the expected one at least as well.
    pub as_good: f64,
    /// The share of all orders that agree with it at most as well.
    pub as_bad: f64,
    /// How many things are in order.
    pub points: usize,
}

/// How well the second numbers are in the order of the first; by all orders of up to seven, by Student's distribution of more. `None` as for
/// [`spearman`].
pub fn order(points: &[(f64, f64)]) -> Option<Order> {
    let found = spearman(points)?;
    let ranks = |of: fn(&(f64, f64)) -> f64| ranks(&points.iter().map(of).collect::<Vec<_>>());
    let ranked: Vec<(f64, f64)> = ranks(|point| point.0).into_iter().zip(ranks(|point| point.1)).collect();
    let (as_good, as_bad) = match points.len() {
        0..=FEW => {
            (share_of_orders(&ranked, |r| r >= found.r - 1e-12), share_of_orders(&ranked, |r| r <= found.r + 1e-12))
        }
        _ if found.r > 0.0 => (found.p / 2.0, 1.0 - found.p / 2.0),
        _ => (1.0 - found.p / 2.0, found.p / 2.0),
    };
    Some(Order { rho: found.r, as_good, as_bad, points: points.len() })
}

/// Visits all orders of what is from `fixed` on.
fn for_each_order(items: &mut [f64], fixed: usize, visit: &mut dyn FnMut(&[f64])) {
    if fixed + 1 >= items.len() {
        return visit(items);
    }
    for other in fixed..items.len() {
        items.swap(fixed, other);
        for_each_order(items, fixed + 1, visit);
        items.swap(fixed, other);
    }
}

/// Half the 95 % interval of atanh r.
fn reach(r: f64, points: usize, spread: impl Fn(f64) -> f64) -> f64 {
    Z95 * (spread(r) / (points - 3) as f64).sqrt()
}

/// `spread` is the variance of atanh r, times points - 3.
fn correlation(points: &[(f64, f64)], spread: impl Fn(f64) -> f64) -> Option<Correlation> {
    let level = points.iter().all(|(_, y)| *y == points[0].1); // of none, true
    let Line { r, p, .. } = linregress(points).filter(|_| points.len() >= 3 && !level)?;
    let (low, high) = match points.len() {
        3 => (-1.0, 1.0),
        count => {
            let reach = reach(r, count, spread);
            // At r = 1 or -1 the transformation is infinite, and the interval has no width.
            ((r.atanh() - reach).tanh(), (r.atanh() + reach).tanh())
        }
    };
    Some(Correlation { r, low, high, p, points: points.len() })
}

/// The rank of each value from 1, ties sharing their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        // The mean of before + 1 to before + n.
        equal.iter().for_each(|at| ranks[*at] = before as f64 + (equal.len() + 1) as f64 / 2.0);
        before += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy.stats.pearsonr(x, y), its confidence_interval(), and spearmanr(x, y); Spearman's interval by numpy from the formula.
    #[test]
    fn correlations_are_scipys() {
        let x = [0.1, 0.4, 0.35, 0.8, 0.2, 0.9, 0.55, 0.55];
        let y = [1.2, 2.9, 1.0, 3.5, 1.9, 3.0, 3.3, 2.2];
        let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        let close = |found: Correlation, expected: [f64; 4]| {
            let found = [found.r, found.p, found.low, found.high];
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {expected:?}");
        };
        close(
            pearson(&points).unwrap(),
            [0.7571265648542395, 0.029609040988239813, 0.11244721715010403, 0.9532273514791371],
        );
        close(
            spearman(&points).unwrap(),
            [0.8024095954818835, 0.01654072280067719, 0.09724952080373263, 0.971206496401254],
        );
    }

    #[test]
    fn an_order_is_as_likely_as_counting_says() {
        let points = |second: [f64; 4]| [1.0, 2.0, 3.0, 4.0].into_iter().zip(second).collect::<Vec<_>>();
        let same = order(&points([10.0, 20.0, 30.0, 40.0])).unwrap();
        assert!((same.as_good - 1.0 / 24.0).abs() < 1e-12 && same.as_bad == 1.0);
        // The same, and three with two neighbours exchanged, are at least as good.
        let near = order(&points([10.0, 20.0, 40.0, 30.0])).unwrap();
        assert!((near.rho - 0.8).abs() < 1e-12 && (near.as_good - 4.0 / 24.0).abs() < 1e-12, "{near:?}");
        let reverse = order(&points([4.0, 3.0, 2.0, 1.0])).unwrap();
        assert!(reverse.as_good == 1.0 && (reverse.as_bad - 1.0 / 24.0).abs() < 1e-12);
        let many: Vec<(f64, f64)> = (0..9).map(|i| (f64::from(i), f64::from(i * i % 11))).collect();
        let (found, p) = (order(&many).unwrap(), spearman(&many).unwrap().p);
        assert!((found.as_good.min(found.as_bad) - p / 2.0).abs() < 1e-12);
        assert_eq!(order(&many[..2]), None);
    }

    #[test]
    fn correlations_of_little() {
        let monotone = [(1.0, 1.0), (2.0, 4.0), (3.0, 9.0), (4.0, 100.0), (5.0, 101.0)];
        let found = spearman(&monotone).unwrap();
        // Two of the 120 orders of five are as strong; the next lower correlation of five ranks is 0.9.
        assert_eq!((found.r, found.high), (1.0, 1.0));
        assert!((found.p - 2.0 / 120.0).abs() < 1e-12 && (found.low + 0.169).abs() < 1e-3, "{found:?}");
        let falling: Vec<(f64, f64)> = monotone.iter().map(|(x, y)| (*x, -y)).collect();
        assert_eq!(spearman(&falling).unwrap().high, -found.low);
        assert!(pearson(&monotone).unwrap().r < 1.0);
        let three = pearson(&monotone[..3]).unwrap();
        assert_eq!((three.low, three.high), (-1.0, 1.0));
        assert_eq!(pearson(&monotone[..2]), None);
        assert_eq!(spearman(&[]), None);
        assert_eq!(pearson(&[(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)]), None);
        assert_eq!(spearman(&[(1.0, 2.0), (1.0, 3.0), (1.0, 2.5)]), None);
        assert_eq!(spearman(&[(1.0, 2.0), (f64::NAN, 3.0), (3.0, 2.5)]), None);
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
    }
}
