//! Lemma 11: in the first layer, no matter how large the scores, all bits together move a position's attention by O(log n) on
//! almost every input; and Remark 12's input on which they do not.

use pudica_data::{Bits, Stream};
use pudica_statistics::Share;
use rayon::prelude::*;
use serde::Serialize;

use super::claim::{Checked, Claim};
use super::theorem4::LARGEST_EXHAUSTIVE;
use crate::Result;
use crate::exact::{ExactEncoder, softmax};

/// The delta of the lemma that Theorem 4 uses.
pub const DELTA: f64 = 4.0;

/// Lemma 11 on many inputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lemma11 {
    /// The bound (8 + 32 delta) ln n + 10.
    pub bound: f64,
    /// The share of inputs promised to stay below it at every position and head: 1 - H / n^(delta - 2).
    pub promised: f64,
    /// Inputs that do.
    pub satisfied: Share,
    /// The largest sum over inputs, for each head and position: `[heads][n]`.
    pub largest: Vec<Vec<f64>>,
    /// The mean sum over inputs, for each head and position: `[heads][n]`.
    pub mean: Vec<Vec<f64>>,
}

impl Lemma11 {
    /// Sums on every input up to n = 14, else on `samples` uniform ones.
    pub fn of(encoder: &ExactEncoder, samples: usize, seed: u64) -> Result<Self> {
        let (n, heads) = (encoder.config().n, encoder.config().heads);
        let exhaustive = n <= LARGEST_EXHAUSTIVE;
        let strings = match exhaustive {
            true => Bits::cube(n)?,
            false => Bits::uniform(samples, n, &mut Stream::new(seed, "lemma11", 0))?,
        };
        let bound = bound(n, DELTA);
        let mut inside = vec![true; strings.rows()];
        let (mut largest, mut mean) = (vec![vec![0.0; n]; heads], vec![vec![0.0; n]; heads]);
        let first = encoder.first_layer();
        for head in 0..heads {
            for position in 0..n {
                let scores = [0, 1].map(|bit| first.scores(head, position, bit));
                let rows: Vec<&[u8]> = strings.iter().collect();
                let sums: Vec<f64> = rows.par_iter().map(|string| total_influence(&scores, position, string)).collect();
                inside.iter_mut().zip(&sums).for_each(|(inside, sum)| *inside &= *sum <= bound);
                largest[head][position] = sums.iter().copied().fold(0.0, f64::max);
                mean[head][position] = sums.iter().sum::<f64>() / sums.len() as f64;
            }
        }
        let satisfied = inside.iter().filter(|inside| **inside).count() as u64;
        Ok(Self {
            bound,
            promised: 1.0 - heads as f64 / (n as f64).powf(DELTA - 2.0),
            satisfied: Share::of(satisfied, strings.rows() as u64, exhaustive),
            largest,
            mean,
        })
    }

    /// The lemma as a line of the table.
    pub fn claim(&self, n: usize) -> Claim {
        let cases = self.satisfied.tried;
        let checked =
            if n <= LARGEST_EXHAUSTIVE { Checked::Exhaustively { cases } } else { Checked::Sampled { cases } };
        let worst = self.largest.iter().flatten().copied().fold(0.0, f64::max);
        let statement = "sum over bits q and positions j of |change of attention i->j|, worst head, position and input";
        let mut claim = Claim::at_most("Lemma 11", statement, worst, self.bound, checked);
        claim.decide(self.satisfied.high >= self.promised);
        let vacuous = 2.0 * n as f64 <= self.bound;
        claim.vacuous(vacuous).note(match vacuous {
            true => format!("No attention can exceed 2n = {}, so at this n the lemma says nothing.", 2 * n),
            false => format!(
                "{} of {cases} inputs below it everywhere; promised: {:.4} of all.",
                self.satisfied.satisfied, self.promised
            ),
        })
    }
}

/// (8 + 32 delta) ln n + 10.
pub fn bound(n: usize, delta: f64) -> f64 {
    (8.0 + 32.0 * delta) * (n as f64).ln() + 10.0
}

/// sum over q and j of |a_ij(x) - a_ij(x with bit q flipped)|, for position i, whose scores to position j holding bit b are
/// `scores[x_i][j][b]`. In O(n): flipping another bit q changes one score, so all weights but a_iq change by one common factor and
/// together by as much as a_iq does, the other way.
pub fn total_influence(scores: &[Vec<[f64; 2]>; 2], position: usize, string: &[u8]) -> f64 {
    let row = |own: u8| -> Vec<f64> {
        // The position's own bit is the query's and one key's.
        let bit = |j: usize| usize::from(if j == position { own } else { string[j] });
        (0..string.len()).map(|j| scores[usize::from(own)][j][bit(j)]).collect()
    };
    let own = string[position];
    let before = row(own);
    let rest = ln_sums_of_others(&before);
    let weight = |score: f64, rest: f64| 1.0 / (1.0 + (rest - score).exp());
    let by_others = (0..string.len()).filter(|q| *q != position).map(|q| {
        let flipped = scores[usize::from(own)][q][usize::from(1 - string[q])];
        2.0 * (weight(before[q], rest[q]) - weight(flipped, rest[q])).abs()
    });
    let [mut before_own, mut after_own] = [before.clone(), row(1 - own)];
    softmax(&mut before_own);
    softmax(&mut after_own);
    by_others.sum::<f64>() + before_own.iter().zip(&after_own).map(|(a, b)| (a - b).abs()).sum::<f64>()
}

/// For each score, ln of the sum of exp of all others, without subtracting.
fn ln_sums_of_others(scores: &[f64]) -> Vec<f64> {
    let add = |a: f64, b: f64| {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
    };
    let mut sums = vec![f64::NEG_INFINITY; scores.len()];
    let mut earlier = f64::NEG_INFINITY;
    for (sum, score) in sums.iter_mut().zip(scores) {
        *sum = earlier;
        earlier = add(earlier, *score);
    }
    let mut later = f64::NEG_INFINITY;
    for (sum, score) in sums.iter_mut().zip(scores).rev() {
        *sum = add(*sum, later);
        later = add(later, *score);
    }
    sums
}

/// Remark 12: attention that looks for a 1 (scores ln n to a 1 and -ln n to a 0) on the input without any.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Remark12 {
    /// Bits in the string.
    pub n: usize,
    /// The sum of Lemma 11 on x = 0^n.
    pub sum: f64,
    /// The lemma's bound at this n.
    pub bound: f64,
}

impl Remark12 {
    /// The counter-example at one length.
    pub fn at(n: usize) -> Self {
        let log = (n as f64).ln();
        let scores = vec![[-log, log]; n];
        Self { n, sum: total_influence(&[scores.clone(), scores], 0, &vec![0; n]), bound: bound(n, DELTA) }
    }

    /// The shortest string on which it violates the bound.
    pub fn shortest() -> Self {
        // The sum is below 2n and above n - 2, so the crossing is found before n = 2000.
        (2..2000).map(Self::at).find(|example| example.sum > example.bound).unwrap_or_else(|| Self::at(2000))
    }

    /// The remark as a line of the table: the bound must fail here.
    pub fn claim(&self) -> Claim {
        let statement = format!("x = 0^n, scores ±ln n: the sum of Lemma 11 exceeds its bound (n = {})", self.n);
        let claim = Claim::at_least("Remark 12", statement, self.sum, self.bound, Checked::Computed);
        claim.note("So the lemma cannot hold for every input; this is the shortest such string.")
    }
}

#[cfg(test)]
mod tests {
    use pudica_nn::{Architecture, EncoderConfig};

    use super::*;

    /// By the definition: the whole softmax, once for each flip.
    fn by_definition(scores: &[Vec<[f64; 2]>; 2], position: usize, string: &[u8]) -> f64 {
        let weights = |string: &[u8]| {
            let of = &scores[usize::from(string[position])];
            let mut row: Vec<f64> = string.iter().enumerate().map(|(j, bit)| of[j][usize::from(*bit)]).collect();
            softmax(&mut row);
            row
        };
        let before = weights(string);
        let mut sum = 0.0;
        for q in 0..string.len() {
            let mut flipped = string.to_vec();
            flipped[q] ^= 1;
            sum += before.iter().zip(weights(&flipped)).map(|(a, b)| (a - b).abs()).sum::<f64>();
        }
        sum
    }

    #[test]
    fn the_shortcut_equals_the_definition() {
        let config = EncoderConfig { d: 8, ff: 8, layers: 1, ..EncoderConfig::paper(6) };
        let mut weights = Architecture::Encoder(config.clone()).initial_weights(2).unwrap();
        weights.data_mut().iter_mut().for_each(|weight| *weight *= 3.0);
        let encoder = ExactEncoder::new(&config, &weights).unwrap();
        for (head, position) in [(0, 0), (1, 3), (1, 5)] {
            let scores = [0, 1].map(|bit| encoder.first_layer().scores(head, position, bit));
            for string in Bits::cube(6).unwrap().iter() {
                let (fast, slow) =
                    (total_influence(&scores, position, string), by_definition(&scores, position, string));
                assert!((fast - slow).abs() < 1e-10, "{fast} {slow}");
            }
        }
    }

    #[test]
    fn remark_12_has_the_sums_the_paper_says_and_breaks_the_bound_at_last() {
        for n in [5, 50] {
            assert!(Remark12::at(n).sum >= n as f64 - 2.0 && Remark12::at(n).sum <= 2.0 * n as f64);
        }
        let found = Remark12::shortest();
        assert!(found.sum > found.bound && Remark12::at(found.n - 1).sum <= Remark12::at(found.n - 1).bound);
        assert_eq!(found.claim().verdict, super::super::Verdict::Holds);
    }

    #[test]
    fn a_lemma_that_cannot_fail_says_so() {
        let config = EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(5) };
        let weights = Architecture::Encoder(config.clone()).initial_weights(2).unwrap();
        let found = Lemma11::of(&ExactEncoder::new(&config, &weights).unwrap(), 0, 0).unwrap();
        assert!(found.claim(5).vacuous && found.satisfied.tried == 32 && found.satisfied.share == 1.0);
        assert_eq!((found.largest.len(), found.largest[0].len()), (2, 5));
    }
}
