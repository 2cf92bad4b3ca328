//! Lemma 21: functions of different average sensitivity are far apart, however they were made.

use pudica_boolean::comparison::{LowerBound, lemma21, lemma21_at};
use serde::Serialize;

use super::claim::{Checked, Claim};
use super::theorem4::norm_and_sensitivity;
use crate::{Result, TheoryError};

/// The longest strings on which two functions are compared: all strings are.
pub const LARGEST_COMPARED: usize = 20;

/// Two real functions compared on every string.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lemma21 {
    /// What it is compared with.
    pub versus: String,
    /// sqrt(E (f - f')^2), values on the ±1 scale.
    pub rmse: f64,
    /// as_n of both.
    pub average_sensitivities: [f64; 2],
    /// Eq. 59 at its best alpha, with this function as f.
    pub best: LowerBound,
    /// Eq. 59 with the other function as f.
    pub reversed: LowerBound,
    /// Eq. 60: alpha = 2.
    pub at_two: f64,
}

impl Lemma21 {
    /// Compares values on the whole cube [2^n] (±1 scale).
    pub fn of(n: usize, own: &[f64], versus: &str, other: &[f64]) -> Result<Self> {
        if own.len() != other.len() || own.len() != 1 << n.min(LARGEST_COMPARED) {
            return Err(TheoryError::argument(format!(
                "only functions of the same n, at most {LARGEST_COMPARED}, are compared"
            )));
        }
        let squares = own.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let ((norm2, a), (other_norm2, b)) = (norm_and_sensitivity(n, own)?, norm_and_sensitivity(n, other)?);
        Ok(Self {
            versus: versus.into(),
            rmse: (squares / own.len() as f64).sqrt(),
            average_sensitivities: [a, b],
            best: lemma21(n, a, norm2, b),
            reversed: lemma21(n, b, other_norm2, a),
            at_two: lemma21_at(n, a, norm2, b, 2.0),
        })
    }

    /// Both directions as lines of the table.
    pub fn claims(&self, strings: u64) -> Vec<Claim> {
        let line = |first: &str, second: &str, bound: &LowerBound| {
            let statement = format!("RMSE of {first} to {second} >= Eq. 59 at alpha = {:.3}", bound.alpha);
            let mut claim =
                Claim::at_least("Lemma 21", statement, self.rmse, bound.rmse, Checked::Exhaustively { cases: strings });
            claim.decide(self.rmse >= bound.rmse - 1e-9);
            claim.vacuous(bound.rmse == 0.0)
        };
        let mut claims = vec![line("it", &self.versus, &self.best), line(&self.versus, "it", &self.reversed)];
        let [a, b] = self.average_sensitivities;
        claims[0].note = format!("as_n = {a:.4} and {b:.4}; Eq. 60 (alpha = 2) gives {:.4}.", self.at_two);
        claims
    }
}

#[cfg(test)]
mod tests {
    use pudica_data::Bits;

    use super::*;

    #[test]
    fn real_functions_agree_with_boolean_ones() {
        let values = |f: fn(&[u8]) -> bool| -> Vec<f64> {
            Bits::cube(9).unwrap().iter().map(|string| if f(string) { 1.0 } else { -1.0 }).collect()
        };
        let parity = values(|x| x.iter().map(|b| u32::from(*b)).sum::<u32>() % 2 == 1);
        let first = values(|x| x[0] == 1);
        let found = Lemma21::of(9, &parity, "first", &first).unwrap();
        assert_eq!(found.average_sensitivities, [9.0, 1.0]);
        assert!((found.rmse - 2f64.sqrt()).abs() < 1e-12);
        assert!(found.best.rmse > 0.3 && found.best.rmse >= found.at_two && found.reversed.rmse == 0.0);
        assert!(found.claims(512).iter().all(|claim| claim.verdict == super::super::Verdict::Holds));
        assert!(Lemma21::of(9, &parity, "short", &first[..256]).is_err());
    }

    #[test]
    fn it_holds_between_scaled_and_mixed_functions() {
        let mut stream = pudica_data::Stream::new(0, "lemma21", 0);
        for _ in 0..50 {
            let mut draw = || -> Vec<f64> { (0..64).map(|_| stream.normal()).collect() };
            let found = Lemma21::of(6, &draw(), "other", &draw()).unwrap();
            assert!(found.rmse >= found.best.rmse && found.rmse >= found.reversed.rmse, "{found:?}");
        }
    }
}
