//! The bounds of Hahn & Rofin (2024) on a given encoder: constants, both sides of every inequality, and what was checked how.

mod claim;
mod constants;
mod lemma11;
mod lemma16;
mod lemma21;
mod spectral;
mod theorem4;
mod theorem6;

use pudica_data::{Bits, Target};
use pudica_nn::{EncoderConfig, Weights};
use serde::Serialize;

use crate::exact::ExactEncoder;
use crate::{Result, TheoryError};

pub use claim::{Checked, Claim, Verdict};
pub use constants::{Constant, Constants};
pub use lemma11::{DELTA, Lemma11, Remark12, total_influence};
pub use lemma16::{Flow, Lemma16};
pub use lemma21::{LARGEST_COMPARED, Lemma21};
pub use pudica_statistics::Share;
pub use theorem4::{LARGEST_EXHAUSTIVE, Theorem4};
pub use theorem6::{SharpnessAt, Theorem6};

/// How many inputs and noise draws are sampled.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Uniform inputs where not all are tried; by default as many as the length allows in about a minute, at most 256.
    pub samples: Option<usize>,
    /// Sizes of noise for Theorem 6, on each weight.
    pub rhos: Vec<f64>,
    /// Noise draws for each.
    pub draws: usize,
    /// Names every random choice.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { samples: None, rhos: vec![0.02, 0.01, 0.005, 0.002, 0.001], draws: 10, seed: 0 }
    }
}

/// What an encoder is compared with (Lemma 21).
pub enum Versus {
    /// A named function of `pudica-boolean`.
    Function(String),
    /// Another encoder, under the name it is shown by.
    Encoder(String, EncoderConfig, Weights),
}

/// Everything about one encoder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Its shape.
    pub shape: EncoderConfig,
    /// (22)-(32).
    pub constants: Constants,
    /// Theorem 4 and the averages of Corollary 5.
    pub theorem4: Theorem4,
    /// Theorem 6.
    pub theorem6: Theorem6,
    /// Lemma 11.
    pub lemma11: Lemma11,
    /// Remark 12 at this encoder's length, and the shortest that violates the bound.
    pub remark12: [Remark12; 2],
    /// Lemma 16.
    pub flow: Flow,
    /// Lemma 21, where something to compare with was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lemma21: Option<Lemma21>,
    /// All of it as one table.
    pub claims: Vec<Claim>,
}

impl Report {
    /// Computes and checks everything.
    pub fn of(config: &EncoderConfig, weights: &Weights, versus: Option<&Versus>, sampling: &Sampling) -> Result<Self> {
        let n = config.n;
        if n < 2 {
            return Err(TheoryError::argument("the bounds speak of log n, so they need strings of at least 2 bits"));
        }
        if !weights.data().iter().all(|weight| weight.is_finite()) {
            return Err(TheoryError::argument("some weights are infinite or not numbers; there is nothing to bound"));
        }
        let samples = sampling.samples.unwrap_or_else(|| affordable(config));
        if samples == 0 {
            return Err(TheoryError::argument("at least 1 input must be sampled"));
        }
        let encoder = ExactEncoder::new(config, weights)?;
        let constants = Constants::of(&encoder)?;
        let theorem4 = Theorem4::of(&encoder, constants.ln_c, samples, sampling.seed)?;
        let theorem6 = Theorem6::of(config, weights, theorem4.average_sensitivity, samples, sampling)?;
        let lemma11 = Lemma11::of(&encoder, samples, sampling.seed)?;
        let remark12 = [Remark12::at(n), Remark12::shortest()];
        let flow = Flow::of(&encoder, samples, sampling.seed)?;
        let lemma21 = versus.map(|versus| compare(&encoder, versus)).transpose()?;

        let mut claims = theorem4.claims(n, config.heads, constants.ln_c).to_vec();
        claims.extend(theorem6.claims());
        claims.push(lemma11.claim(n));
        claims.push(remark12[1].claim());
        claims.extend(flow.claims(&constants, config.d));
        claims.extend(lemma21.iter().flat_map(|found| found.claims(1 << n.min(LARGEST_COMPARED))));
        Ok(Self { shape: config.clone(), constants, theorem4, theorem6, lemma11, remark12, flow, lemma21, claims })
    }
}

/// Inputs whose neighbourhoods can be followed with about 10^11 multiplications, between 2 and 256.
fn affordable(config: &EncoderConfig) -> usize {
    let EncoderConfig { n, d, layers, ff, .. } = *config;
    let (n, d, ff) = (n as f64, d as f64, ff as f64);
    let pass = layers as f64 * (n * (4.0 * d * d + 2.0 * d * ff) + 2.0 * n * n * d);
    (1e11 / (pass * 2.0 * (n + 1.0))).clamp(2.0, 256.0) as usize
}

fn compare(encoder: &ExactEncoder, versus: &Versus) -> Result<Lemma21> {
    let n = encoder.config().n;
    if n > LARGEST_COMPARED {
        let problem = format!("Lemma 21 compares on all strings, up to n = {LARGEST_COMPARED}, but n = {n}");
        return Err(TheoryError::argument(problem));
    }
    let cube = Bits::cube(n)?;
    let plus_minus = |outputs: Vec<f64>| -> Vec<f64> { outputs.into_iter().map(|output| 2.0 * output - 1.0).collect() };
    let own = plus_minus(encoder.outputs(&cube));
    let (name, other) = match versus {
        Versus::Function(name) => (name, Target::parse(name, n)?.labels(&cube)?.into_iter().map(f64::from).collect()),
        Versus::Encoder(name, config, _) if config.n != n => {
            let problem =
                format!("{name} reads strings of {} bits, the other of {n}; Lemma 21 compares equal n", config.n);
            return Err(TheoryError::argument(problem));
        }
        Versus::Encoder(name, config, weights) => (name, ExactEncoder::new(config, weights)?.outputs(&cube)),
    };
    Lemma21::of(n, &own, name, &plus_minus(other))
}

#[cfg(test)]
mod tests {
    use pudica_nn::Architecture;

    use super::*;
    use crate::constructions::Construction;

    fn sampling() -> Sampling {
        Sampling { samples: Some(32), rhos: vec![0.02, 0.001], draws: 4, seed: 0 }
    }

    #[test]
    fn every_claim_holds_for_hand_built_and_random_encoders() {
        for construction in Construction::ALL {
            let config = construction.default_config(5);
            let weights = construction.build(&config, construction.default_gain(5)).unwrap();
            let found = Report::of(&config, &weights, Some(&Versus::Function("first".into())), &sampling()).unwrap();
            assert!(found.claims.iter().all(|claim| claim.verdict != Verdict::Fails), "{:#?}", found.claims);
            assert!(found.theorem6.boolean && found.theorem6.measured.len() == 2);
        }
        let config = EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(16) };
        let weights = Architecture::Encoder(config.clone()).initial_weights(0).unwrap();
        let versus = Versus::Encoder("itself".into(), config.clone(), weights.clone());
        let found = Report::of(&config, &weights, Some(&versus), &sampling()).unwrap();
        assert!(found.claims.iter().all(|claim| claim.verdict != Verdict::Fails), "{:#?}", found.claims);
        assert!(!found.theorem6.boolean && !found.theorem6.wide_enough);
        // n = 16 is sampled: nothing about inputs may be called verified.
        let verified = |name: &str| found.claims.iter().any(|c| c.name == name && c.verdict == Verdict::Holds);
        assert!(!["Theorem 4", "Corollary 5", "Lemma 11", "Lemma 16"].into_iter().any(verified));
    }

    /// The numbers of commit 0f23b66, when Theorems 4 and 6 had loops of their own.
    #[test]
    fn a_random_encoder_has_the_numbers_it_always_had() {
        let expected = [
            (
                5,
                [0.0548342627766076, 0.0, -41.931629502348365, 7.267750024039644],
                [0.006178243679774237, 0.07838638522065053],
            ),
            (
                15,
                [0.039102531846122106, 0.005262157579403474, -43.99372411430107, 7.7350508564375575],
                [0.005896253851755425, 0.134058543434959],
            ),
        ];
        for (n, theorem4, theorem6) in expected {
            let config = EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(n) };
            let weights = Architecture::Encoder(config.clone()).initial_weights(0).unwrap();
            let sampling = Sampling { samples: Some(12), rhos: vec![0.02, 0.1], draws: 4, seed: 2 };
            let Report { theorem4: found, theorem6: noisy, .. } =
                Report::of(&config, &weights, None, &sampling).unwrap();
            let sides = [found.average_sensitivity, found.average_sensitivity_std_error, found.ln_left, found.ln_right];
            let shifts = noisy.measured.iter().map(|measured| measured.output_shift.mean);
            for (found, expected) in sides.into_iter().chain(shifts).zip(theorem4.into_iter().chain(theorem6)) {
                assert!((found - expected).abs() <= 1e-9 * expected.abs(), "n = {n}: {found}, expected {expected}");
            }
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let of = |n: usize, versus: Option<Versus>, change: fn(&mut Weights)| {
            let config = EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(n) };
            let mut weights = Architecture::Encoder(config.clone()).initial_weights(0).unwrap();
            change(&mut weights);
            Report::of(&config, &weights, versus.as_ref(), &sampling()).unwrap_err().to_string()
        };
        assert!(of(1, None, |_| {}).contains("at least 2 bits"));
        assert!(of(3, None, |w| w.data_mut()[0] = f32::NAN).contains("not numbers"));
        assert!(of(3, Some(Versus::Function("partiy".into())), |_| {}).contains("did you mean"));
        let other = EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(4) };
        let weights = Architecture::Encoder(other.clone()).initial_weights(0).unwrap();
        assert!(
            of(3, Some(Versus::Encoder("other".into(), other, weights)), |_| {})
                .contains("strings of 4 bits, the other of 3")
        );
    }
}
