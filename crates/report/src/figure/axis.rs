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
    /// Whether only whole numbers make sense.
    pub whole: bool,
    /// Names at given values instead of numbers.
    pub names: Vec<(f64, String)>,
}

impl Axis {
    /// An evenly spaced axis that follows the data.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, range: None, whole: false, names: Vec::new() }
    }

    /// An evenly spaced axis of whole numbers that follows the data.
    pub fn whole(label: &str) -> Axis {
        Axis { whole: true, ..Axis::linear(label) }
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
            None => padded(&shown, axis.scale),
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

fn padded(values: &[f64], scale: Scale) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return if scale == Scale::Log { (-3.0, 0.0) } else { (0.0, 1.0) };
    }
    let pad = match (high - low) * 0.05 {
        0.0 if scale == Scale::Log => 0.5,
        0.0 => (low.abs() * 0.1).max(1e-3),
        pad => pad,
    };
    (low - pad, high + pad)
}

/// Round numbers (1, 2, 2.5, 5 times a power of ten) about `wanted` times between the ends.
fn linear_ticks(low: f64, high: f64, wanted: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / wanted;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|unit| unit * power).into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).map(|value| (value, number(value, step))).collect()
}

/// A number with as many decimals as its neighbours need.
fn number(value: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if value.abs() >= 1e5 || step < 1e-4 {
        let exponent = value.abs().log10().floor();
        let digits = value / 10f64.powf(exponent);
        let digits = format!("{digits:.1}");
        let digits = digits.trim_end_matches(".0");
        return format!("{digits}·10^{{{exponent}}}").replace('-', "−");
    }
    let scaled = |decimals: i32| (step * 10f64.powi(decimals) - (step * 10f64.powi(decimals)).round()).abs() < 1e-6;
    let decimals = (0..6).find(|decimals| scaled(*decimals)).unwrap_or(6) as usize;
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

    fn texts(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(texts(linear_ticks(4.0, 30.0, 6.0)), ["5", "10", "15", "20", "25", "30"]);
        assert_eq!(texts(linear_ticks(-0.02, 1.02, 5.0)), ["0", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(texts(linear_ticks(-5000.0, 15000.0, 4.0)), ["−5000", "0", "5000", "10,000", "15,000"]);
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
    }

    #[test]
    fn values_land_where_they_should() {
        let ruler = Ruler::new(&Axis::linear("x").within(0.0, 10.0), [].into_iter(), 0.0, 100.0, 5.0);
        assert_eq!(ruler.at(5.0), Some(50.0));
        let ruler = Ruler::new(&Axis::log("x").within(1.0, 100.0), [].into_iter(), 0.0, 100.0, 5.0);
        assert_eq!((ruler.at(10.0), ruler.at(0.0), ruler.at(f64::NAN)), (Some(50.0), None, None));
    }
}
