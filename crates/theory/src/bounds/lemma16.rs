//! Lemma 16: what a LayerNorm can make of a bit's influence, checked at every application; and the bounds (23), (25) and (31) on
//! what flows between the layers.

use pudica_data::{Bits, Stream};
use rayon::prelude::*;
use serde::Serialize;

use super::claim::{Checked, Claim};
use super::constants::Constants;
use crate::Result;
use crate::exact::{ExactEncoder, NormTrace, norm};

/// Lemma 16 at one LayerNorm, over strings, flips and positions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lemma16 {
    /// PyTorch's name of the LayerNorm.
    pub layer_norm: String,
    /// Strings times flips times positions.
    pub applications: u64,
    /// Those that satisfy it.
    pub satisfied: u64,
    /// Where there is least room: the influence after the LayerNorm,
    pub left: f64,
    /// and the bound `2 I[Y] C (1 + 1/N(x)) (1 + 1/N(x'))`, C = max(1, |Y(x)|, |Y(x')|). (N is the standard deviation here.)
    pub right: f64,
}

/// All LayerNorms, and the largest norms met on the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flow {
    /// Each LayerNorm in the order of application.
    pub layer_norms: Vec<Lemma16>,
    /// Strings tried.
    pub strings: u64,
    /// Whether they are all there are.
    pub exhaustive: bool,
    /// The largest |Y^(1)|: what norm2 of layer 1 is given.
    pub largest_first: f64,
    /// The largest norm of a normalised vector.
    pub largest_normalised: f64,
}

impl Flow {
    /// Follows strings and all their neighbours through the encoder: every string if `samples` would be as many, else uniform ones.
    pub fn of(encoder: &ExactEncoder, samples: usize, seed: u64) -> Result<Self> {
        let n = encoder.config().n;
        let exhaustive = n < 20 && 1 << n <= samples;
        let strings = match exhaustive {
            true => Bits::cube(n)?,
            false => Bits::uniform(samples, n, &mut Stream::new(seed, "lemma16", 0))?,
        };
        let rows: Vec<&[u8]> = strings.iter().collect();
        let flows: Vec<Self> = rows.par_iter().map(|string| Self::of_string(encoder, string)).collect();
        let mut all = flows.into_iter().reduce(Self::join).unwrap_or_else(|| Self::of_string(encoder, &vec![0; n]));
        all.exhaustive = exhaustive;
        Ok(all)
    }

    fn of_string(encoder: &ExactEncoder, string: &[u8]) -> Self {
        let d = encoder.config().d;
        let own = encoder.trace(string);
        let name = |index: usize| format!("enc.layers.{}.norm{}", index / 2, index % 2 + 1);
        let empty =
            |index| Lemma16 { layer_norm: name(index), applications: 0, satisfied: 0, left: 0.0, right: f64::INFINITY };
        let mut layer_norms: Vec<Lemma16> = (0..own.norms.len()).map(empty).collect();
        for bit in 0..string.len() {
            let mut flipped = string.to_vec();
            flipped[bit] ^= 1;
            let other = encoder.trace(&flipped);
            for (found, pair) in layer_norms.iter_mut().zip(own.norms.iter().zip(&other.norms)) {
                found.add(pair.0, pair.1, d);
            }
        }
        let largest = |values: &[f64]| values.chunks_exact(d).map(norm).fold(0.0, f64::max);
        Self {
            layer_norms,
            strings: 1,
            exhaustive: false,
            largest_first: largest(&own.norms[1].inputs),
            largest_normalised: own.norms.iter().map(|norm| largest(&norm.normalised)).fold(0.0, f64::max),
        }
    }

    fn join(mut self, other: Self) -> Self {
        self.layer_norms.iter_mut().zip(other.layer_norms).for_each(|(own, other)| own.join(other));
        self.strings += other.strings;
        self.largest_first = self.largest_first.max(other.largest_first);
        self.largest_normalised = self.largest_normalised.max(other.largest_normalised);
        self
    }

    /// (23), (31) and Lemma 16 as lines of the table.
    pub fn claims(&self, constants: &Constants, d: usize) -> Vec<Claim> {
        let checked =
            |cases| if self.exhaustive { Checked::Exhaustively { cases } } else { Checked::Sampled { cases } };
        let of = checked(self.strings);
        let mut claims = vec![
            Claim::at_most(
                "(23)",
                "norm of a normalised vector <= sqrt(d)",
                self.largest_normalised,
                (d as f64).sqrt() + 1e-9,
                of,
            ),
            Claim::at_most(
                "(31)",
                "|Y(1)| <= C_MLP (H+1) C_V C_P",
                self.largest_first.ln(),
                constants.ln_first_norm,
                of,
            )
            .in_ln(),
        ];
        claims.extend(self.layer_norms.iter().map(|found| {
            let statement = format!("{}: influence after it <= 2 I[Y] C (1 + 1/N(x)) (1 + 1/N(x'))", found.layer_norm);
            let mut claim = Claim::at_most("Lemma 16", statement, found.left, found.right, checked(found.applications));
            claim.decide(found.satisfied == found.applications);
            claim
        }));
        claims
    }
}

impl Lemma16 {
    /// Takes in every position of one LayerNorm on a string and on a neighbour.
    fn add(&mut self, own: &NormTrace, other: &NormTrace, d: usize) {
        let rows = |values: &'_ [f64], position: usize| values[position * d..(position + 1) * d].to_vec();
        for position in 0..own.factors.len() {
            let distance = |a: &[f64], b: &[f64]| {
                let difference: Vec<f64> =
                    rows(a, position).iter().zip(rows(b, position)).map(|(a, b)| a - b).collect();
                norm(&difference)
            };
            let after = distance(&own.normalised, &other.normalised);
            let before = distance(&own.inputs, &other.inputs);
            let size = norm(&rows(&own.inputs, position)).max(norm(&rows(&other.inputs, position))).max(1.0);
            let bound = 2.0 * before * size * (1.0 + own.factors[position]) * (1.0 + other.factors[position]);
            // What is not moved before is not moved after, up to rounding.
            let satisfied = u64::from(after <= bound * (1.0 + 1e-9) + 1e-12);
            self.join(Self { layer_norm: String::new(), applications: 1, satisfied, left: after, right: bound });
        }
    }

    /// Both, keeping the case with the smaller ratio of room.
    fn join(&mut self, other: Self) {
        self.applications += other.applications;
        self.satisfied += other.satisfied;
        if other.left * self.right > self.left * other.right || self.right.is_infinite() {
            (self.left, self.right) = (other.left, other.right);
        }
    }
}

#[cfg(test)]
mod tests {
    use pudica_nn::{Architecture, EncoderConfig};

    use super::*;

    #[test]
    fn it_holds_for_random_encoders_at_every_application() {
        for seed in 0..5 {
            let config = EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(4) };
            let weights = Architecture::Encoder(config.clone()).initial_weights(seed).unwrap();
            let encoder = ExactEncoder::new(&config, &weights).unwrap();
            let found = Flow::of(&encoder, 16, 0).unwrap();
            assert!(found.exhaustive && found.strings == 16);
            // 16 strings, 4 flips; 4 positions in the first layer, 1 in the last.
            let applications: Vec<u64> = found.layer_norms.iter().map(|norm| norm.applications).collect();
            assert_eq!(applications, [256, 256, 64, 64]);
            assert!(found.layer_norms.iter().all(|norm| norm.satisfied == norm.applications && norm.left > 0.0));
            let claims = found.claims(&Constants::of(&encoder).unwrap(), 8);
            assert!(claims.iter().all(|claim| claim.verdict == super::super::Verdict::Holds), "{claims:?}");
        }
    }

    #[test]
    fn a_layer_norm_that_cheats_is_caught() {
        let trace = |inputs: &[f64], normalised: &[f64]| NormTrace {
            inputs: inputs.to_vec(),
            normalised: normalised.to_vec(),
            factors: vec![0.1],
        };
        let mut found =
            Lemma16 { layer_norm: String::new(), applications: 0, satisfied: 0, left: 0.0, right: f64::INFINITY };
        found.add(&trace(&[1.0, -1.0], &[1.0, -1.0]), &trace(&[1.01, -1.01], &[-1.0, 1.0]), 2);
        assert_eq!((found.applications, found.satisfied), (1, 0));
    }
}
