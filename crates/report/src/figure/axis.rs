//! Axes: ranges, ticks and where a value lands.

/// How values are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten; values of 0 or less cannot be shown and are left out.
    Log,
}

/// An axis of a panel.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What is shown, with its unit if it has one.
    pub label: String,
    /// How values are spaced.
    pub scale: Scale,
    /// Fixed ends; otherwise they follow the data.
    pub range: Option<(f64, f64)>,
    /// Values that cannot be exceeded, as 0 and 1 by a fraction: an axis that follows the data ends there, whatever intervals say.
    pub limits: Option<(f64, f64)>,
    /// Whether only whole numbers make sense.
    pub whole: bool,
    /// Names at given values instead of numbers.
    pub names: Vec<(f64, String)>,
}

impl Axis {
    /// An evenly spaced axis that follows the data.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, range: None, limits: None, whole: false, names: Vec::new() }
    }

    /// An evenly spaced axis of whole numbers that follows the data.
    pub fn whole(label: &str) -> Axis {
        Axis { whole: true, ..Axis::linear(label) }
    }

    /// An evenly spaced axis of fractions, from 0 to 1 at most.
    pub fn fraction(label: &str) -> Axis {
        Axis { limits: Some((0.0, 1.0)), ..Axis::linear(label) }
    }

    /// An axis by powers of ten that follows the data.
    pub fn log(label: &str) -> Axis {
        Axis { scale: Scale::Log, ..Axis::linear(label) }
    }

    /// The same with fixed ends.
    pub fn within(mut self, low: f64, high: f64) -> Axis {
        self.range = Some((low, high));
        self
    }

    /// The same with names at 0, 1, 2, ... instead of numbers.
    pub fn named(mut self, names: &[String]) -> Axis {
        self.names = names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect();
        self.range = Some((-0.5, names.len() as f64 - 0.5));
        self
    }

    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }
}

/// An axis laid out along some pixels.
pub(super) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    pub ticks: Vec<(f64, String)>,
    /// Ticks without a number.
    pub minor: Vec<f64>,
}

impl Ruler {
    /// Lays out `axis` for these values from pixel `from` to pixel `to`, with about `wanted` ticks.
    pub fn new(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64, wanted: f64) -> Ruler {
        let transform = |value: f64| if axis.scale == Scale::Log { value.log10() } else { value };
        let shown: Vec<f64> = values.filter(|value| axis.shows(*value)).map(transform).collect();
        let (low, high) = match axis.range {
            Some((low, high)) => (transform(low), transform(high)),
            None => limited(padded(&shown, axis), axis.limits.map(|(low, high)| (transform(low), transform(high)))),
        };
        let (ticks, minor) = match (axis.names.is_empty(), axis.scale) {
            (false, _) => (axis.names.clone(), Vec::new()),
            (true, Scale::Linear) => {
                let mut ticks = linear_ticks(low, high, wanted);
                if axis.whole && ticks.iter().any(|(value, _)| value.fract() != 0.0) {
                    let (first, last) = (low.ceil() as i64, high.floor() as i64);
                    ticks = (first..=last).map(|value| (value as f64, value.to_string())).collect();
                }
                (ticks, Vec::new())
            }
            (true, Scale::Log) => log_ticks(low, high, wanted),
        };
        Ruler { scale: axis.scale, low, high, from, to, ticks, minor }
    }

    /// Whether lengths along it cannot be compared, since it begins above 0.
    pub fn is_cut(&self) -> bool {
        self.scale == Scale::Linear && (self.low > 0.0 || self.high < 0.0)
    }

    /// The pixel of a value, if the axis can show it.
    pub fn at(&self, value: f64) -> Option<f64> {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log if value > 0.0 => value.log10(),
            Scale::Log => return None,
        };
        value.is_finite().then(|| self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from))
    }
}

/// The ends of an axis for these values, with some air. Values that are all equal are shown beside 0, and lengths beside their neighbours.
fn padded(values: &[f64], axis: &Axis) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return if axis.scale == Scale::Log { (-3.0, 0.0) } else { (0.0, 1.0) };
    }
    // Differences that are rounding errors beside the values are none.
    if high - low > 1e-9 * low.abs().max(high.abs()) {
        let pad = (high - low) * 0.05;
        return (low - pad, high + pad);
    }
    match axis {
        Axis { scale: Scale::Log, .. } => (low - 0.5, high + 0.5),
        Axis { whole: true, .. } => (low - 1.0, high + 1.0),
        _ if low == 0.0 => (-0.05, 1.0),
        _ => (1.25 * low.min(0.0), 1.25 * high.max(0.0)),
    }
}

/// Ends within limits; symbols on a limit are seen whole.
fn limited((low, high): (f64, f64), limits: Option<(f64, f64)>) -> (f64, f64) {
    let Some((least, most)) = limits else { return (low, high) };
    let air = 0.02 * (high.min(most) - low.max(least)).max(0.0);
    (low.max(least - air), high.min(most + air))
}

/// An interval as a log axis shows it. One that reaches 0 or less came from a standard error on the linear scale, so that its middle is the
/// mean m and m + h its upper end; the logarithm then has the error h/m (delta method), and the interval is m e^{±h/m}. `None` where even
/// the mean cannot be shown.
pub(super) fn on_log(low: f64, high: f64) -> Option<(f64, f64)> {
    let mean = (low + high) / 2.0;
    match low > 0.0 {
        true => Some((low, high)),
        false if mean > 0.0 => {
            let factor = ((high - mean) / mean).exp();
            Some((mean / factor, mean * factor))
        }
        false => None,
    }
}

/// Round numbers (1, 2, 2.5, 5 times a power of ten) about `wanted` times between the ends.
fn linear_ticks(low: f64, high: f64, wanted: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / wanted;
    if rough <= 0.0 || !rough.is_normal() {
        return Vec::new(); // too near or too far for numbers
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|unit| unit * power).into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    let largest = first.unsigned_abs().max(last.unsigned_abs()) as f64 * step;
    let with_powers = largest >= 1e6 || largest < 0.01 && step < 1e-4;
    (first..=last).map(|i| i as f64 * step).map(|value| (value, number(value, step, with_powers))).collect()
}

/// A number with as many decimals as its neighbours need, or all of an axis with powers of ten.
fn number(value: f64, step: f64, with_powers: bool) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if with_powers {
        let exponent = (value.abs() * (1.0 + 1e-9)).log10().floor();
        // Steps are 1, 2, 2.5 or 5 times a power of ten.
        let decimals = (exponent - step.log10().floor()) as usize + 1;
        let digits = format!("{:.decimals$}", value / 10f64.powf(exponent));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return format!("{digits}·10^{{{exponent}}}").replace('-', "−");
    }
    let is_whole = |of: f64| of > 0.5 && (of - of.round()).abs() < 1e-6;
    let scaled = |decimals: i32| is_whole(step * 10f64.powi(decimals));
    let decimals = (0..9).find(|decimals| scaled(*decimals)).unwrap_or(9) as usize;
    let text = format!("{value:.decimals$}").replace('-', "−");
    if decimals == 0 && value.abs() >= 1e4 { thousands(&text) } else { text }
}

fn thousands(text: &str) -> String {
    let split = text.len() - 3;
    format!("{},{}", &text[..split], &text[split..])
}

/// Powers of ten, every other where they are many, and 2 and 5 between where they are few; minor ticks at 2..9.
fn log_ticks(low: f64, high: f64, wanted: f64) -> (Vec<(f64, String)>, Vec<f64>) {
    let (first, last) = (low.ceil() as i32, high.floor() as i32);
    let decades = (high - low).max(1e-9);
    let every = (decades / wanted).ceil().max(1.0) as i32;
    let name = |exponent: i32| format!("10^{{{exponent}}}").replace('-', "−");
    let mut ticks: Vec<(f64, String)> = (first..=last)
        .filter(|exponent| exponent.rem_euclid(every) == 0)
        .map(|exponent| (10f64.powi(exponent), name(exponent)))
        .collect();
    let mut minor = Vec::new();
    for exponent in low.floor() as i32..=last {
        for digit in 2..10 {
            let value = f64::from(digit) * 10f64.powi(exponent);
            if !(low..=high).contains(&value.log10()) {
                continue;
            }
            let few = decades < 0.7 || (decades < 2.0 && [2, 5].contains(&digit));
            if few && every == 1 {
                let plain = if (0.001..10_000.0).contains(&value) {
                    shortest(value)
                } else {
                    format!("{digit}·{}", name(exponent))
                };
                ticks.push((value, plain));
            } else if every == 1 {
                minor.push(value);
            }
        }
    }
    if ticks.len() < 3 && decades < 1.0 {
        // Hardly a power of two apart: as on an evenly spaced axis, though their distances differ.
        let between = linear_ticks(10f64.powf(low), 10f64.powf(high), wanted);
        return (between.into_iter().filter(|(value, _)| *value > 0.0).collect(), Vec::new());
    }
    if decades < 2.0 {
        // Beside 2 and 5, write 1, 10, 100 as numbers too.
        for (value, text) in &mut ticks {
            if (0.001..10_000.0).contains(value) {
                *text = shortest(*value);
            }
        }
    }
    (ticks, minor)
}

fn shortest(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_hardly_any_have_few_ticks_or_none() {
        let tiny = f64::from_bits(1);
        for values in
            [[0.0, tiny], [-f64::MAX, f64::MAX], [f64::MAX, f64::MAX], [f64::MIN_POSITIVE, 3.0 * f64::MIN_POSITIVE]]
        {
            for axis in [Axis::linear(""), Axis::whole(""), Axis::fraction(""), Axis::log("")] {
                let ruler = Ruler::new(&axis, values.into_iter(), 0.0, 100.0, 6.0);
                assert!(ruler.ticks.len() < 20, "{values:?}: {} ticks", ruler.ticks.len());
            }
        }
    }

    fn texts(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(texts(linear_ticks(4.0, 30.0, 6.0)), ["5", "10", "15", "20", "25", "30"]);
        assert_eq!(texts(linear_ticks(-0.02, 1.02, 5.0)), ["0", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(texts(linear_ticks(-5000.0, 15000.0, 4.0)), ["−5000", "0", "5000", "10,000", "15,000"]);
        assert_eq!(texts(linear_ticks(0.0, 125e3, 5.0)), ["0", "25,000", "50,000", "75,000", "100,000", "125,000"]);
        assert_eq!(texts(linear_ticks(0.0, 1e6, 4.0)), ["0", "2.5·10^{5}", "5·10^{5}", "7.5·10^{5}", "1·10^{6}"]);
        assert_eq!(
            texts(linear_ticks(1e6, 1.1e6, 4.0)),
            ["1·10^{6}", "1.025·10^{6}", "1.05·10^{6}", "1.075·10^{6}", "1.1·10^{6}"]
        );
        assert_eq!(texts(linear_ticks(0.86385, 0.86395, 2.0)), ["0.86385", "0.86390", "0.86395"]);
        assert_eq!(texts(linear_ticks(0.5, 0.5 + 4e-7, 2.0)), ["0.5000000", "0.5000002", "0.5000004"]);
        assert_eq!(texts(linear_ticks(0.0, 3e-5, 3.0)), ["0", "1·10^{−5}", "2·10^{−5}", "3·10^{−5}"]);
    }

    #[test]
    fn whole_axes_have_no_fractions() {
        let ruler = Ruler::new(&Axis::whole("n"), [4.0, 10.0].into_iter(), 0.0, 100.0, 3.0);
        assert_eq!(texts(ruler.ticks), ["4", "5", "6", "7", "8", "9", "10"]);
    }

    #[test]
    fn log_ticks_are_powers_of_ten() {
        assert_eq!(texts(log_ticks(-3.1, 1.2, 5.0).0), ["10^{−3}", "10^{−2}", "10^{−1}", "10^{0}", "10^{1}"]);
        assert_eq!(texts(log_ticks(-0.1, 1.1, 5.0).0), ["1", "10", "2", "5"]);
        assert_eq!(texts(log_ticks(1.75f64.log10(), 2.45f64.log10(), 4.0).0), ["1.8", "2.0", "2.2", "2.4"]);
    }

    #[test]
    fn equal_values_have_a_sensible_axis() {
        let ends = |axis: Axis, value: f64| padded(&[value, value], &axis);
        assert_eq!(ends(Axis::linear("accuracy"), 0.8), (0.0, 1.0));
        assert_eq!(ends(Axis::linear("loss"), -2.0), (-2.5, 0.0));
        assert_eq!(ends(Axis::linear("sensitivity"), 0.0), (-0.05, 1.0));
        assert_eq!(ends(Axis::whole("n"), 8.0), (7.0, 9.0));
        assert_eq!(ends(Axis::log("loss"), -3.0), (-3.5, -2.5));
    }

    #[test]
    fn fractions_end_at_0_and_1() {
        let ends = |values: [f64; 2]| {
            let ruler = Ruler::new(&Axis::fraction("accuracy"), values.into_iter(), 0.0, 100.0, 5.0);
            (ruler.low, ruler.high, ruler.is_cut())
        };
        assert_eq!(ends([-0.3, 1.4]), (-0.02, 1.02, false));
        let (low, high, is_cut) = ends([0.5, 0.7]);
        assert!((low - 0.49).abs() < 1e-12 && (high - 0.71).abs() < 1e-12 && is_cut);
    }

    #[test]
    fn intervals_on_a_log_axis_stay_above_0() {
        assert_eq!(on_log(0.1, 0.3), Some((0.1, 0.3)));
        let (low, high) = on_log(-0.1, 0.5).unwrap();
        // m = 0.2, h = 0.3.
        assert!((low - 0.2 * (-1.5f64).exp()).abs() < 1e-12 && (high - 0.2 * 1.5f64.exp()).abs() < 1e-12);
        assert_eq!(on_log(-0.5, 0.1), None);
    }

    #[test]
    fn values_land_where_they_should() {
        let ruler = Ruler::new(&Axis::linear("x").within(0.0, 10.0), [].into_iter(), 0.0, 100.0, 5.0);
        assert_eq!(ruler.at(5.0), Some(50.0));
        let ruler = Ruler::new(&Axis::log("x").within(1.0, 100.0), [].into_iter(), 0.0, 100.0, 5.0);
        assert_eq!((ruler.at(10.0), ruler.at(0.0), ruler.at(f64::NAN)), (Some(50.0), None, None));
    }
}
