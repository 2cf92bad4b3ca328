//! When a network memorises, when its sensitivity falls and when it generalises, read off its curves.
//!
//! 1. Curves are smoothed by a centred mean over [`SMOOTHING`] epochs (fewer at the ends).
//! 2. **Memorised**: the first epoch with a training accuracy of at least [`MEMORISED`]. Everything else is looked for from there on: at the
//!    start scores are nearly equal, and noise changes predictions for that reason alone.
//! 3. **Test accuracy rises** from its level when memorised to its highest one, which must be [`GENERALISES`] or more: otherwise the run has
//!    not grokked. (The level before is not chance: for a commutative operation, (b, a) in the training set tells (a, b) in the test set.)
//! 4. **Sensitivity falls** from its highest level between memorising and the middle of that rise (the end, where there is none) to its
//!    lowest one afterwards; it must fall by [`LEAST_FALL`] or more.
//! 5. A change **starts** where a tenth of it is done and is **halfway** where half of it is: the first epoch from which the smoothed curve
//!    stays beyond that level for [`HOLD`] epochs, or to its end.
//!
//! Both changes are timed by the same rule, so that neither looks earlier than the other because of how it is timed.

use serde::Serialize;

use super::GrokkingPoint;

/// Epochs that curves are averaged over.
pub const SMOOTHING: usize = 25;
/// Epochs that a curve must stay beyond a level.
pub const HOLD: usize = 100;
/// The training accuracy of a network that has memorised its pairs.
pub const MEMORISED: f64 = 0.99;
/// The test accuracy of a network that has grokked.
pub const GENERALISES: f64 = 0.9;
/// The least fall of sensitivity that is called one.
pub const LEAST_FALL: f64 = 0.02;

/// A change of a curve from one level to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The epoch from which at least a tenth of it is done.
    pub start: u64,
    /// The epoch from which at least half of it is done.
    pub half: u64,
    /// The level before.
    pub from: f64,
    /// The level after.
    pub to: f64,
}

/// The moments of one run; `None` where there is no such moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Onsets {
    /// The first epoch at which the training pairs are memorised.
    pub memorised: Option<u64>,
    /// The fall of sensitivity.
    pub fall: Option<Change>,
    /// The rise of test accuracy.
    pub rise: Option<Change>,
}

impl Onsets {
    /// The moments of a run measured at every epoch, from epoch 0 on.
    pub fn of(points: &[GrokkingPoint]) -> Onsets {
        let Some(memorised) = points.iter().position(|point| point.measures.train_accuracy >= MEMORISED) else {
            return Onsets::default();
        };
        let curve = |of: fn(&GrokkingPoint) -> f64| smoothed(&points.iter().map(of).collect::<Vec<_>>());
        let (accuracy, sensitivity) =
            (curve(|point| point.measures.test_accuracy), curve(|point| point.measures.sensitivity));
        let highest = most(&accuracy[memorised..], f64::gt).1;
        let rise = change(&accuracy, memorised, accuracy[memorised], highest).filter(|rise| rise.to >= GENERALISES);
        let end = rise.map_or(points.len(), |rise| (rise.half as usize).max(memorised + 1));
        let (place, from) = most(&sensitivity[memorised..end], f64::gt);
        let peak = memorised + place;
        let to = most(&sensitivity[peak..], f64::lt).1;
        let fall = change(&sensitivity, peak, from, to).filter(|fall| fall.from - fall.to >= LEAST_FALL);
        Onsets { memorised: Some(memorised as u64), fall, rise }
    }

    /// Epochs from the start of the fall of sensitivity to the start of the rise of test accuracy: above 0 where sensitivity is first.
    pub fn lag_of_starts(&self) -> Option<f64> {
        Some(self.rise?.start as f64 - self.fall?.start as f64)
    }

    /// The same between the points where half of each is done.
    pub fn lag_of_halves(&self) -> Option<f64> {
        Some(self.rise?.half as f64 - self.fall?.half as f64)
    }
}

/// Place and value of the first value that no other exceeds, in the sense of `exceeds`.
fn most(values: &[f64], exceeds: fn(&f64, &f64) -> bool) -> (usize, f64) {
    let pick = |best: (usize, f64), (place, value): (usize, &f64)| {
        if exceeds(value, &best.1) { (place, *value) } else { best }
    };
    values.iter().enumerate().skip(1).fold((0, values.first().copied().unwrap_or(f64::NAN)), pick)
}

/// The change of a curve from one level to another, from `begin` on.
fn change(curve: &[f64], begin: usize, from: f64, to: f64) -> Option<Change> {
    let passed = |part: f64| {
        let level = from + part * (to - from);
        let beyond = |value: &f64| if to > from { *value >= level } else { *value <= level };
        let stays = |at: &usize| curve[*at..curve.len().min(at + HOLD)].iter().all(beyond);
        (begin..curve.len()).find(stays).map(|at| at as u64)
    };
    Some(Change { start: passed(0.1)?, half: passed(0.5)?, from, to })
}

/// The centred mean over [`SMOOTHING`] values, fewer at the ends.
pub fn smoothed(values: &[f64]) -> Vec<f64> {
    let reach = SMOOTHING / 2;
    let mean = |at: usize| {
        let near = &values[at.saturating_sub(reach)..values.len().min(at + reach + 1)];
        near.iter().sum::<f64>() / near.len() as f64
    };
    (0..values.len()).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_data::Stream;
    use pudica_nn::grokking::Measures;

    /// A ramp from one level to another between two epochs.
    fn ramp(epoch: usize, begin: usize, end: usize, from: f64, to: f64) -> f64 {
        let part = (epoch as f64 - begin as f64) / (end as f64 - begin as f64);
        from + (to - from) * part.clamp(0.0, 1.0)
    }

    /// Memorised at 200; sensitivity, 0.5 until `fall`, is 0 after 1,000 epochs; test accuracy, 0.1 until `rise`, is 1 after 1,000.
    fn made_up(fall: usize, rise: usize, noise: f64) -> Vec<GrokkingPoint> {
        let mut stream = Stream::new(0, "made-up", 0);
        let point = |epoch: usize| {
            let measures = Measures {
                train_accuracy: ramp(epoch, 0, 200, 0.0, 0.9901),
                // High at the start, as real ones are, and not before memorising.
                sensitivity: ramp(epoch, fall, fall + 1000, 0.5, 0.0)
                    + ramp(epoch, 0, 150, 0.4, 0.0)
                    + noise * stream.normal(),
                test_accuracy: ramp(epoch, rise, rise + 1000, 0.1, 1.0) + noise * stream.normal(),
                ..Measures::default()
            };
            GrokkingPoint { epoch: epoch as u64, measures, seconds: None }
        };
        (0..8000).map(point).collect()
    }

    /// A level that a ramp meets exactly at an epoch may be reached there or, by rounding, one later.
    fn near<const N: usize>(found: [u64; N], expected: [u64; N]) {
        assert!(
            found.iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= 1),
            "{found:?} {expected:?}"
        );
    }

    #[test]
    fn known_onsets_are_found() {
        let onsets = Onsets::of(&made_up(1000, 4000, 0.0));
        assert_eq!(onsets.memorised, Some(200));
        let (fall, rise) = (onsets.fall.unwrap(), onsets.rise.unwrap());
        near([fall.start, fall.half, rise.start, rise.half], [1100, 1500, 4100, 4500]);
        assert!((fall.from - 0.5).abs() < 1e-12 && fall.to.abs() < 1e-12);
        assert!((rise.from - 0.1).abs() < 1e-12 && (rise.to - 1.0).abs() < 1e-12);
        let lags = [onsets.lag_of_starts().unwrap(), onsets.lag_of_halves().unwrap()];
        assert!(lags.iter().all(|lag| (lag - 3000.0).abs() <= 1.0), "{lags:?}");
    }

    #[test]
    fn noise_moves_them_little() {
        for (fall, rise) in [(1000, 4000), (4000, 1000), (2000, 2000)] {
            let onsets = Onsets::of(&made_up(fall, rise, 0.02));
            let lag = onsets.lag_of_halves().unwrap();
            assert!((lag - (rise as f64 - fall as f64)).abs() < 40.0, "{fall} {rise}: {lag}");
            assert!((onsets.fall.unwrap().start as f64 - (fall as f64 + 100.0)).abs() < 60.0);
            assert!((onsets.rise.unwrap().start as f64 - (rise as f64 + 100.0)).abs() < 60.0);
        }
    }

    /// A sudden spike, as a loss spike makes late in training, is neither a peak to fall from nor an end of the fall.
    #[test]
    fn late_spikes_are_passed_over() {
        let mut points = made_up(1000, 4000, 0.0);
        for point in &mut points[6500..6530] {
            point.measures.sensitivity = 0.9;
            point.measures.test_accuracy = 0.2;
        }
        let onsets = Onsets::of(&points);
        near([onsets.fall.unwrap().half, onsets.rise.unwrap().half], [1500, 4500]);
    }

    #[test]
    fn what_did_not_happen_is_not_found() {
        assert_eq!(Onsets::of(&[]), Onsets::default());
        let mut points = made_up(1000, 4000, 0.0);
        points.truncate(4050); // ends before the test accuracy rises enough
        let onsets = Onsets::of(&points);
        assert!(onsets.rise.is_none() && onsets.lag_of_halves().is_none());
        near([onsets.fall.unwrap().half], [1500]);
        points.truncate(900);
        assert!(Onsets::of(&points).fall.is_none());
        points.truncate(100);
        assert_eq!(Onsets::of(&points).memorised, None);
    }
}
