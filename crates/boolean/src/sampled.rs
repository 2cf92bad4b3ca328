//! Average sensitivity and influences of functions too large for a table, from random inputs, to an asked precision.

use crate::bits::Bits;
use crate::function::{BooleanFunction, RealFunction};
use crate::stop;
use crate::vertical::LaneCounter;
use pudica_statistics::Estimate;
pub use pudica_statistics::Precision;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Inputs drawn together, one a lane.
const BATCH: u64 = 64;
/// Batches of the first rounds; later ones draw a quarter more of what was drawn so far.
const FIRST_ROUND: u64 = 16;

/// When to stop drawing inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The half-width of the 95 % interval of the average sensitivity to reach.
    pub precision: Precision,
    /// Stop here even if the precision is not reached.
    pub time_limit: Duration,
    /// Which random inputs are drawn.
    pub seed: u64,
}

/// An estimate from random inputs and its 95 % interval, which stays within what is possible. In JSON: `value`, `ci95`, `samples`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "Keys")]
pub struct Sampled {
    /// The estimate; its samples are the inputs drawn.
    pub estimate: Estimate,
    /// A 95 % confidence interval.
    pub ci95: [f64; 2],
}

/// What is written of a [`Sampled`].
#[derive(Serialize)]
struct Keys {
    value: f64,
    ci95: [f64; 2],
    samples: u64,
}

impl From<Sampled> for Keys {
    fn from(Sampled { estimate, ci95 }: Sampled) -> Self {
        Self { value: estimate.mean, ci95, samples: estimate.samples }
    }
}

impl Sampled {
    /// The same in other units.
    pub fn scaled(self, factor: f64) -> Self {
        Self { estimate: self.estimate.times(factor), ci95: self.ci95.map(|end| end * factor) }
    }

    /// Of ±1 what this is of 0 and 1: a share p becomes 1 - 2p.
    pub fn as_signs(self) -> Self {
        let twice = self.estimate.times(2.0);
        let [low, high] = self.ci95;
        let estimate = Estimate { mean: 1.0 - twice.mean, ..twice };
        Self { estimate, ci95: [1.0 - 2.0 * high, 1.0 - 2.0 * low] }
    }
}

impl Sampled {
    /// The variance of signs (±1), where this is the fraction of one of them: 4 p (1 - p).
    pub fn variance_of_signs(self) -> Self {
        let variance = |p: f64| 4.0 * p * (1.0 - p);
        let [low, high] = self.ci95;
        let ends = [variance(low), variance(high)];
        let most = if (low..=high).contains(&0.5) { 1.0 } else { ends[0].max(ends[1]) };
        let p = self.estimate.mean;
        let slope = self.estimate.times(4.0 * (1.0 - 2.0 * p).abs());
        let estimate = Estimate { mean: variance(p), ..slope };
        Self { estimate, ci95: [ends[0].min(ends[1]), most] }
    }
}

/// What sampling found.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledSensitivity {
    /// as_n(f).
    pub average: Sampled,
    /// The influence of each variable, x1 first.
    pub influences: Vec<Sampled>,
    /// The share of inputs with f = 1 or, for a real function, `E[f]`.
    pub mean: Sampled,
    /// Whether the asked precision was reached before the time limit.
    pub precise: bool,
    /// Whether the function is Boolean, its values read as ±1.
    pub is_boolean: bool,
}

/// Sums over the inputs drawn so far.
struct Sums {
    samples: u64,
    /// Sum of s(f, x) and of its square.
    sensitivity: [f64; 2],
    /// For each variable, the sum of its squared shift and of its square.
    shifts: Vec<[f64; 2]>,
    /// Sum of f and of its square.
    values: [f64; 2],
}

impl Sums {
    fn zero(n: usize) -> Self {
        Self { samples: 0, sensitivity: [0.0; 2], shifts: vec![[0.0; 2]; n], values: [0.0; 2] }
    }

    fn add(&mut self, other: &Self) {
        let add = |a: &mut [f64; 2], b: &[f64; 2]| (0..2).for_each(|k| a[k] += b[k]);
        self.samples += other.samples;
        add(&mut self.sensitivity, &other.sensitivity);
        add(&mut self.values, &other.values);
        self.shifts.iter_mut().zip(&other.shifts).for_each(|(a, b)| add(a, b));
    }
}

/// Samples a Boolean function (values in ±1). `progress` hears the inputs drawn and the half-width after each round.
pub fn sample(f: &dyn BooleanFunction, budget: &Budget, progress: &mut dyn FnMut(u64, f64)) -> SampledSensitivity {
    let n = f.variables();
    let batch = |index: u64| {
        let mut x = random_inputs(n, budget.seed, index);
        let mut changed = vec![0; n];
        f.flips(&mut x, &mut changed);
        let mut counter = LaneCounter::default();
        changed.iter().for_each(|&lanes| counter.add(lanes));
        let (mut sum, mut squares) = (0u64, 0u64);
        for count in counter.counts() {
            sum += count;
            squares += count * count;
        }
        let shifts = changed.iter().map(|lanes| [f64::from(lanes.count_ones()); 2]).collect();
        let values = [f64::from(f.lanes(&x).count_ones()); 2];
        Sums { samples: BATCH, sensitivity: [sum as f64, squares as f64], shifts, values }
    };
    run(n, n as f64, 1.0, budget, &batch, progress)
}

/// Samples a real function, in the units of its own values.
pub fn sample_real(f: &dyn RealFunction, budget: &Budget, progress: &mut dyn FnMut(u64, f64)) -> SampledSensitivity {
    let n = f.variables();
    let batch = |index: u64| {
        let x = random_inputs(n, budget.seed, index);
        let mut words = vec![0; n.div_ceil(64)];
        let mut sums = Sums::zero(n);
        for lane in 0..BATCH as usize {
            crate::function::gather_lane(&x, lane, &mut words);
            let before = f.value(&Bits::new(&words, n));
            let mut sensitivity = 0.0;
            for i in 0..n {
                words[i / 64] ^= 1 << (i % 64);
                let shift = (f.value(&Bits::new(&words, n)) - before).powi(2) / 4.0;
                words[i / 64] ^= 1 << (i % 64);
                sensitivity += shift;
                (0..2).for_each(|k| sums.shifts[i][k] += shift.powi(k as i32 + 1));
            }
            (0..2).for_each(|k| sums.sensitivity[k] += sensitivity.powi(k as i32 + 1));
            (0..2).for_each(|k| sums.values[k] += before.powi(k as i32 + 1));
        }
        sums.samples = BATCH;
        sums
    };
    run(n, f64::INFINITY, f64::INFINITY, budget, &batch, progress)
}

/// The 64 inputs of batch `index`, one word a variable: a counter-based stream, so any thread may draw any batch.
fn random_inputs(n: usize, seed: u64, index: u64) -> Vec<u64> {
    let mut stream = ChaCha8Rng::seed_from_u64(seed);
    stream.set_stream(index);
    (0..n).map(|_| stream.next_u64()).collect()
}

/// Rounds of batches until the interval is narrow enough or time is up. `most` and `most_shift` bound s(f, x) and one shift.
fn run(
    n: usize,
    most: f64,
    most_shift: f64,
    budget: &Budget,
    batch: &(dyn Fn(u64) -> Sums + Sync),
    progress: &mut dyn FnMut(u64, f64),
) -> SampledSensitivity {
    let started = Instant::now();
    let late = || started.elapsed() >= budget.time_limit;
    let mut sums = Sums::zero(n);
    let mut next = 0;
    // Batches are added in order, a few at a time, so that the sums are the same on any number of threads.
    let at_once = (1 << 20 >> n.ilog2()).clamp(2, 64);
    loop {
        // Looking at the interval after every batch would stop at lucky moments; after each quarter more it is rare enough.
        let round_end = next + (next / 4).max(FIRST_ROUND);
        while next < round_end && !(late() && next > 0) {
            let end = round_end.min(next + at_once);
            let checked = |index| {
                stop::check();
                batch(index)
            };
            let parts: Vec<Sums> = (next..end).into_par_iter().map(checked).collect();
            parts.iter().for_each(|part| sums.add(part));
            next = end;
        }
        let average = estimate(sums.sensitivity, sums.samples, most);
        progress(sums.samples, average.half_width().unwrap_or(f64::INFINITY));
        let precise = budget.precision.reached(&average);
        if precise || late() {
            return finish(&sums, most, most_shift, precise);
        }
    }
}

fn finish(sums: &Sums, most: f64, most_shift: f64, precise: bool) -> SampledSensitivity {
    let within = |s: [f64; 2], least: f64, most: f64| {
        let estimate = estimate(s, sums.samples, most);
        let half_width = estimate.half_width().unwrap_or(f64::INFINITY);
        Sampled { estimate, ci95: [(estimate.mean - half_width).max(least), (estimate.mean + half_width).min(most)] }
    };
    SampledSensitivity {
        average: within(sums.sensitivity, 0.0, most),
        influences: sums.shifts.iter().map(|&s| within(s, 0.0, most_shift)).collect(),
        mean: match most_shift.is_finite() {
            true => within(sums.values, 0.0, 1.0), // a share
            false => within(sums.values, f64::NEG_INFINITY, f64::INFINITY),
        },
        precise,
        is_boolean: most.is_finite(),
    }
}

/// A mean of values in [0, `most`]. Two imagined values, one at each end, keep its error honest where all values so far are equal:
/// the interval's width is then about 2 `most` / samples, not 0.
fn estimate([sum, squares]: [f64; 2], drawn: u64, most: f64) -> Estimate {
    let samples = drawn as f64;
    let mean = sum / samples;
    let imagined = if most.is_finite() { mean * mean + (most - mean) * (most - mean) } else { 0.0 };
    let variance = ((squares - samples * mean * mean).max(0.0) + imagined) / (samples - 1.0);
    Estimate { mean, std_error: Some((variance / samples).sqrt()), samples: drawn, exact: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Function, Named};

    fn budget(precision: Precision, seed: u64) -> Budget {
        Budget { precision, time_limit: Duration::from_secs(60), seed }
    }

    fn boolean(name: &str, n: usize) -> Box<dyn BooleanFunction> {
        name.parse::<Named>().unwrap().boolean_at(n).unwrap()
    }

    #[test]
    fn stops_as_soon_as_the_precision_is_reached_and_covers_the_truth() {
        let f = boolean("majority", 101);
        // n C(n-1, (n-1)/2) / 2^(n-1), by logarithms of factorials.
        let log_factorial = |n: u32| (1..=n).map(|k| f64::from(k).ln()).sum::<f64>();
        let exact = 101.0 * (log_factorial(100) - 2.0 * log_factorial(50) - 100.0 * 2f64.ln()).exp();
        let mut covered = 0;
        for seed in 0..40 {
            let found = sample(f.as_ref(), &budget(Precision::Absolute(0.2), seed), &mut |_, _| {});
            let [low, high] = found.average.ci95;
            assert!(found.precise && (high - low) / 2.0 <= 0.2, "{:?}", found.average);
            assert!(found.average.estimate.samples < 200_000, "stopped late: {:?}", found.average);
            covered += u32::from((low..=high).contains(&exact));
        }
        assert!(covered >= 34, "a 95 % interval covered the truth {covered} times of 40");
    }

    #[test]
    fn certain_functions_are_still_not_claimed_to_be_certain() {
        let found = sample(boolean("parity", 10_000).as_ref(), &budget(Precision::Relative(0.01), 1), &mut |_, _| {});
        assert_eq!(found.average.estimate.mean, 10_000.0);
        assert!(found.average.ci95[0] < 10_000.0 && found.average.ci95[1] == 10_000.0);
        assert!(found.influences.iter().all(|i| i.estimate.mean == 1.0 && i.ci95[0] < 1.0));
    }

    #[test]
    fn the_mean_is_estimated_too() {
        let of = |name: &str, n: usize| {
            let found = sample(boolean(name, n).as_ref(), &budget(Precision::Absolute(0.05), 4), &mut |_, _| {});
            found.mean
        };
        let or = of("or", 60); // 1 - 2^-60
        assert!(or.estimate.mean == 1.0 && or.ci95[0] < 1.0 && or.ci95[0] > 0.9 && or.ci95[1] == 1.0, "{or:?}");
        let and = of("dictator:7", 60);
        assert!(and.ci95[0] < 0.5 && and.ci95[1] > 0.5 && and.ci95[1] - and.ci95[0] < 0.2, "{and:?}");
        let Ok(Function::Real(mean)) = Named::Mean.at(300) else { panic!("the mean is real") };
        let found = sample_real(mean.as_ref(), &budget(Precision::Relative(0.01), 1), &mut |_, _| {}).mean;
        assert!(found.ci95[0] < 0.5 && found.ci95[1] > 0.5 && found.ci95[1] - found.ci95[0] < 0.01, "{found:?}");
    }

    #[test]
    fn the_variance_and_its_interval_are_those_of_the_mean() {
        let share = |mean: f64, ci95: [f64; 2]| Sampled {
            estimate: Estimate { mean, std_error: Some(0.01), samples: 100, exact: false },
            ci95,
        };
        let balanced = share(0.49, [0.4, 0.58]).variance_of_signs();
        assert!((balanced.estimate.mean - 0.9996).abs() < 1e-12 && balanced.ci95[1] == 1.0);
        assert!((balanced.ci95[0] - 0.96).abs() < 1e-12);
        let rare = share(0.9, [0.8, 1.0]).variance_of_signs();
        assert!(
            (rare.estimate.mean - 0.36).abs() < 1e-12 && (rare.ci95[1] - 0.64).abs() < 1e-12 && rare.ci95[0] == 0.0
        );
    }

    #[test]
    fn influences_find_the_variables_that_matter() {
        let found = sample(boolean("kparity:3", 500).as_ref(), &budget(Precision::Absolute(0.5), 1), &mut |_, _| {});
        for (i, influence) in found.influences.iter().enumerate() {
            assert_eq!(influence.estimate.mean, if i < 3 { 1.0 } else { 0.0 });
        }
    }

    #[test]
    fn real_functions_too() {
        let Ok(Function::Real(mean)) = Named::Mean.at(300) else { panic!("the mean is real") };
        let found = sample_real(mean.as_ref(), &budget(Precision::Relative(0.01), 1), &mut |_, _| {});
        assert!((found.average.estimate.mean - 1.0 / 1200.0).abs() < 1e-9, "{:?}", found.average);
    }

    /// The JSON of commit 0f23b66, byte for byte.
    #[test]
    fn estimates_are_written_as_they_always_were() {
        let written = |name: &str, n: usize| {
            let function = name.parse::<Named>().unwrap().at(n).unwrap();
            let budget = budget(Precision::Relative(0.05), 3);
            let found = match function {
                Function::Boolean(f) => sample(f.as_ref(), &budget, &mut |_, _| {}),
                Function::Real(f) => sample_real(f.as_ref(), &budget, &mut |_, _| {}),
            };
            let found = if name == "random:5" { found.average.scaled(0.25) } else { found.average };
            serde_json::to_string(&found).unwrap()
        };
        let majority = r#"{"value":7.994290865384615,"ci95":[7.630106623127306,8.358475107641924],"samples":9984}"#;
        assert_eq!(written("majority", 101), majority);
        let random = r#"{"value":5.0087890625,"ci95":[4.957627079754341,5.059951045245659],"samples":1024}"#;
        assert_eq!(written("random:5", 40), random);
    }

    #[test]
    fn the_same_on_any_number_of_threads() {
        let f = boolean("random:5", 40);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| sample(f.as_ref(), &budget(Precision::Absolute(0.05), 9), &mut |_, _| {}))
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn a_time_limit_ends_it_honestly() {
        let tight = Budget { precision: Precision::Absolute(1e-9), time_limit: Duration::from_millis(50), seed: 0 };
        let found = sample(boolean("majority", 101).as_ref(), &tight, &mut |_, _| {});
        assert!(!found.precise && found.average.estimate.samples >= 128);
    }
}
