//! Theorem 4 and Corollary 5: who computes a sensitive function must blow up in its LayerNorms, or have large parameters.

use pudica_boolean::RealTable;
use pudica_boolean::real_sensitivity::real_sensitivity;
use pudica_data::{Bits, Stream};
use pudica_probe::{BitFlip, Budget, Response, Subject, Touches, respond};
use pudica_statistics::{Moments, Share};
use serde::Serialize;

use super::claim::{Checked, Claim};
use crate::exact::ExactEncoder;
use crate::{Result, TheoryError};

/// The longest strings all of which are tried.
pub const LARGEST_EXHAUSTIVE: usize = 14;

/// Theorem 4 on many inputs, and the averages Corollary 5 compares.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Theorem4 {
    /// The inputs that satisfy it.
    pub satisfied: Share,
    /// The share the theorem promises: 1 - H / n^2.
    pub promised: f64,
    /// ln of the left side, for the input with the least room.
    pub ln_left: f64,
    /// ln of the right side, for that input.
    pub ln_right: f64,
    /// The smallest ln C with which every input tried would satisfy it; the paper's ln C stands beside it in the table.
    pub ln_c_needed: f64,
    /// as_n of the prediction, on the ±1 scale.
    pub average_sensitivity: f64,
    /// Its standard error; 0 where every input was tried.
    pub average_sensitivity_std_error: f64,
    /// ln E Blowup^2.
    pub ln_mean_square_blowup: f64,
    /// The standard error of E Blowup^2, relative to it.
    pub mean_square_blowup_relative_std_error: f64,
    /// The largest |2 * prediction - 1| met: the theorems assume at most 1.
    pub largest_output: f64,
}

/// Prediction on the ±1 scale and ln Blowup of one string.
#[derive(Clone, Copy)]
struct Point {
    output: f64,
    ln_blowup: f64,
}

/// Both sides for one input: its sensitivity, and ln(Blowup(x)^2 + mean over neighbours of Blowup^2).
struct Sides {
    sensitivity: f64,
    ln_right: f64,
}

impl Theorem4 {
    /// Evaluates both sides on every input up to n = [`LARGEST_EXHAUSTIVE`], else on `samples` uniform ones and their neighbours.
    pub fn of(encoder: &ExactEncoder, ln_c: f64, samples: usize, seed: u64) -> Result<Self> {
        let (n, heads) = (encoder.config().n, encoder.config().heads as f64);
        let exhaustive = n <= LARGEST_EXHAUSTIVE;
        let (points, sides) = if exhaustive { every_input(encoder)? } else { some_inputs(encoder, samples, seed)? };

        let ln_root = 0.5 * (n as f64 * (n as f64).ln()).ln();
        let slack = |sides: &Sides| sides.ln_right - (sides.sensitivity.ln() - ln_root - ln_c);
        let satisfied = sides.iter().filter(|sides| slack(sides) >= 0.0).count() as u64;
        let tightest = sides.iter().min_by(|a, b| slack(a).total_cmp(&slack(b)));
        let (ln_left, ln_right) =
            tightest.map_or((f64::NEG_INFINITY, 0.0), |s| (s.sensitivity.ln() - ln_root - ln_c, s.ln_right));

        let sensitivity: Moments = sides.iter().map(|sides| sides.sensitivity).collect();
        // Scaled by the largest, so that squares of large blowups stay numbers.
        let top = points.iter().map(|point| point.ln_blowup).fold(f64::NEG_INFINITY, f64::max);
        let squares: Moments = points.iter().map(|point| (2.0 * (point.ln_blowup - top)).exp()).collect();
        let error = |moments: &Moments| if exhaustive { 0.0 } else { moments.std_error().unwrap_or(f64::NAN) };
        Ok(Self {
            satisfied: Share::of(satisfied, sides.len() as u64, exhaustive),
            promised: 1.0 - heads / (n * n) as f64,
            ln_left,
            ln_right,
            ln_c_needed: ln_left + ln_c - ln_right,
            average_sensitivity: sensitivity.mean(),
            average_sensitivity_std_error: error(&sensitivity),
            ln_mean_square_blowup: squares.mean().ln() + 2.0 * top,
            mean_square_blowup_relative_std_error: error(&squares) / squares.mean(),
            largest_output: points.iter().map(|point| point.output.abs()).fold(0.0, f64::max),
        })
    }

    fn checked(&self, n: usize) -> Checked {
        match n <= LARGEST_EXHAUSTIVE {
            true => Checked::Exhaustively { cases: self.satisfied.tried },
            false => Checked::Sampled { cases: self.satisfied.tried },
        }
    }

    /// Theorem 4 and Corollary 5 as lines of the table.
    pub fn claims(&self, n: usize, heads: usize, ln_c: f64) -> [Claim; 2] {
        let (size, log) = (n as f64, (n as f64).ln());
        let share = &self.satisfied;
        let within = |claim: Claim| match self.largest_output > 1.001 {
            true => {
                let note = format!(
                    "{} The theorem assumes outputs in [-1, 1]; one is {:.4}.",
                    claim.note, self.largest_output
                );
                claim.note(note)
            }
            false => claim,
        };
        let mut theorem = Claim::at_most(
            "Theorem 4",
            "s(f,x) / (C sqrt(n ln n)) <= Blowup(x)^2 + mean Blowup(neighbours)^2, worst input",
            self.ln_left,
            self.ln_right,
            self.checked(n),
        );
        // The theorem allows a share of H / n^2 to fail; a sample refutes it if even the interval's upper end is less.
        theorem.decide(share.high >= self.promised);
        // s <= n for outputs within [-1, 1], and the right side is at least 2.
        let cannot_fail = size.ln() - 0.5 * (size * log).ln() - ln_c <= 2f64.ln();
        let interval = match theorem.checked {
            Checked::Sampled { .. } => format!(" (95 % interval {:.4} to {:.4} of all)", share.low, share.high),
            _ => String::new(),
        };
        let theorem = theorem.in_ln().vacuous(cannot_fail).note(format!(
            "{} of {} inputs satisfy it{interval}; promised: {:.4} of all. It would hold with ln C = {:.2}.",
            share.satisfied, share.tried, self.promised, self.ln_c_needed
        ));

        let right = self.average_sensitivity / (size * log).sqrt() - heads as f64 / size;
        let left = ln_c + self.ln_mean_square_blowup;
        let corollary = Claim::at_least(
            "Corollary 5",
            "C E[Blowup^2] >= as_n / sqrt(n ln n) - H/n",
            left,
            right.max(0.0).ln(),
            self.checked(n),
        );
        let cannot_fail = (size / (size * log).sqrt() - heads as f64 / size).max(0.0).ln() <= ln_c;
        let corollary = corollary.in_ln().vacuous(cannot_fail).note(format!(
            "as_n = {:.4} ± {:.4}, ln E[Blowup^2] = {:.4} (relative error {:.3}); right side {right:.4}.",
            self.average_sensitivity,
            self.average_sensitivity_std_error,
            self.ln_mean_square_blowup,
            self.mean_square_blowup_relative_std_error
        ));
        [within(theorem), within(corollary)]
    }
}

fn points(encoder: &ExactEncoder, strings: &Bits) -> Vec<Point> {
    encoder.traces(strings, |trace| Point { output: 2.0 * trace.output - 1.0, ln_blowup: trace.ln_blowup() })
}

/// ln(Blowup(x)^2 + mean over the n neighbours of Blowup^2), from a string's point and its neighbours'.
fn ln_right(own: Point, neighbours: impl Iterator<Item = Point> + Clone, n: usize) -> f64 {
    let top = neighbours.clone().map(|point| point.ln_blowup).fold(own.ln_blowup, f64::max);
    let square = |point: Point| (2.0 * (point.ln_blowup - top)).exp();
    let mean = neighbours.map(square).sum::<f64>() / n as f64;
    (square(own) + mean).ln() + 2.0 * top
}

/// (1/4) (T(x) - T(x with a bit flipped))^2: its sum over bits is s(f, x).
struct QuarterSquare;

impl Response<Point> for QuarterSquare {
    fn compare(&self, before: &Point, after: &Point) -> f64 {
        0.25 * (after.output - before.output).powi(2)
    }
}

/// All strings at once: every neighbour is one of them, so each is computed once.
fn every_input(encoder: &ExactEncoder) -> Result<(Vec<Point>, Vec<Sides>)> {
    let n = encoder.config().n;
    let points = points(encoder, &Bits::cube(n)?);
    let of = |row: usize| {
        let neighbours = (0..n).map(|bit| points[row ^ 1 << bit]);
        let sensitivity = neighbours.clone().map(|neighbour| QuarterSquare.compare(&points[row], &neighbour)).sum();
        Sides { sensitivity, ln_right: ln_right(points[row], neighbours, n) }
    };
    let sides = (0..points.len()).map(of).collect();
    Ok((points, sides))
}

/// Strings given to the encoder at once.
const BATCH: usize = 1024;

fn some_inputs(encoder: &ExactEncoder, samples: usize, seed: u64) -> Result<(Vec<Point>, Vec<Sides>)> {
    let n = encoder.config().n;
    let strings = Bits::uniform(samples, n, &mut Stream::new(seed, "bounds", 0))?;
    let mut traced = Traced { encoder, own: Vec::new(), neighbours: Vec::new() };
    let inputs = strings.iter().map(<[u8]>::to_vec);
    // Flipping a bit takes no noise.
    let found = respond(&mut traced, inputs, &BitFlip, &[&QuarterSquare], &Budget::new(1, BATCH, seed, "bounds"))?;
    let Traced { own, neighbours, .. } = traced;
    let each = own.iter().zip(neighbours.chunks_exact(n)).zip(&found[0].by_input);
    let sides = each.map(|((own, neighbours), sensitivity)| Sides {
        sensitivity: *sensitivity,
        ln_right: ln_right(*own, neighbours.iter().copied(), n),
    });
    let sides = sides.collect();
    Ok((own, sides))
}

/// An encoder that keeps what it saw: the right side is made of blowups, no comparison of two outputs.
struct Traced<'a> {
    encoder: &'a ExactEncoder,
    own: Vec<Point>,
    /// Those of the first string, of the second, ..
    neighbours: Vec<Point>,
}

impl Traced<'_> {
    fn points(&self, strings: &[Vec<u8>]) -> Result<Vec<Point>> {
        Ok(points(self.encoder, &Bits::new(self.encoder.config().n, strings.concat())?))
    }
}

impl Subject<Vec<u8>, BitFlip> for Traced<'_> {
    type Out = Point;
    type Error = TheoryError;

    fn answer(&mut self, strings: &[Vec<u8>]) -> Result<Vec<Point>> {
        let found = self.points(strings)?;
        self.own.extend(&found);
        Ok(found)
    }

    fn answer_nudged(&mut self, touches: &Touches<Vec<u8>, BitFlip>) -> Result<Vec<Point>> {
        let found = self.points(&touches.made())?;
        self.neighbours.extend(&found);
        Ok(found)
    }
}

/// E f^2 and as_n of real values on the whole cube.
pub(crate) fn norm_and_sensitivity(n: usize, values: &[f64]) -> Result<(f64, f64)> {
    let norm2 = values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64;
    let table = RealTable::new(n, values.into(), f64::EPSILON)?;
    Ok((norm2, real_sensitivity(&table).average_sensitivity()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::{Constants, Verdict};
    use crate::constructions::Construction;

    fn built(construction: Construction, n: usize) -> ExactEncoder {
        let config = construction.default_config(n);
        let weights = construction.build(&config, construction.default_gain(n)).unwrap();
        ExactEncoder::new(&config, &weights).unwrap()
    }

    #[test]
    fn sensitivities_of_built_transformers_are_those_of_their_functions() {
        for (construction, expected) in
            [(Construction::Parity, 7.0), (Construction::First, 1.0), (Construction::Majority, 2.1875)]
        {
            let found = Theorem4::of(&built(construction, 7), 0.0, 0, 0).unwrap();
            assert!(
                (found.average_sensitivity - expected).abs() < 0.01,
                "{construction} {}",
                found.average_sensitivity
            );
            assert_eq!((found.satisfied.tried, found.average_sensitivity_std_error), (128, 0.0));
        }
    }

    #[test]
    fn both_sides_are_those_of_the_definition() {
        let encoder = built(Construction::Parity, 4);
        let ln_c = 1.5;
        let found = Theorem4::of(&encoder, ln_c, 0, 0).unwrap();
        let (mut slacks, mut squares) = (Vec::new(), 0.0);
        for string in Bits::cube(4).unwrap().iter() {
            let (own, mut right, mut s) = (encoder.trace(string), 0.0, 0.0);
            for i in 0..4 {
                let mut flipped = string.to_vec();
                flipped[i] ^= 1;
                let neighbour = encoder.trace(&flipped);
                right += neighbour.ln_blowup().exp().powi(2) / 4.0;
                s += (neighbour.output - own.output).powi(2);
            }
            right += own.ln_blowup().exp().powi(2);
            squares += own.ln_blowup().exp().powi(2) / 16.0;
            slacks.push((right / (s / (ln_c.exp() * (4.0 * 4f64.ln()).sqrt()))).ln());
        }
        let least = slacks.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((found.ln_right - found.ln_left - least).abs() < 1e-9);
        assert!((found.ln_mean_square_blowup - squares.ln()).abs() < 1e-9);
        // With exactly the C that is needed, the worst input has no room left.
        let tight = Theorem4::of(&encoder, found.ln_c_needed, 0, 0).unwrap();
        assert!((tight.ln_right - tight.ln_left).abs() < 1e-9);
        // With a C too small it fails, and says so.
        let small = Theorem4::of(&encoder, found.ln_c_needed - 1.0, 0, 0).unwrap();
        assert!(small.satisfied.share < 1.0);
        assert_eq!(small.claims(4, 1, found.ln_c_needed - 40.0)[0].verdict, Verdict::Fails);
    }

    #[test]
    fn sampled_and_exhaustive_agree() {
        let encoder = built(Construction::Majority, 9);
        let ln_c = Constants::of(&encoder).unwrap().ln_c;
        let exact = Theorem4::of(&encoder, ln_c, 0, 0).unwrap();
        let (points, sides) = some_inputs(&encoder, 400, 3).unwrap();
        let sampled: Moments = sides.iter().map(|sides| sides.sensitivity).collect();
        assert_eq!(points.len(), 400);
        assert!((sampled.mean() - exact.average_sensitivity).abs() < 4.0 * sampled.std_error().unwrap());
    }
}
