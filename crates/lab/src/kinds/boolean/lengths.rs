//! Lengths other than n: those of training batches, and those that a trained network is tested at.

use std::ops::RangeInclusive;

use pudica_nn::Position;

use super::{ModelKind, RunConfig, TargetName};
use crate::error::{Error, Result};

/// The default of `train.lengths` and `eval.lengths`: n and no other.
pub(super) const OWN_LENGTH: &str = "n";

pub(super) fn own_length() -> String {
    OWN_LENGTH.into()
}

pub(super) fn is_own_length(lengths: &str) -> bool {
    lengths == OWN_LENGTH
}

impl RunConfig {
    /// Whether it meets strings of other lengths than n.
    pub fn has_other_lengths(&self) -> bool {
        !is_own_length(&self.train.lengths) || !is_own_length(&self.eval.lengths)
    }

    /// The lengths of which one is drawn for every training batch.
    pub fn train_lengths(&self) -> Result<RangeInclusive<usize>> {
        let text = &self.train.lengths;
        let (first, last) = text.split_once(" to ").unwrap_or((text, text));
        let [first, last] = [first, last].map(|part| length("train.lengths", part, self.n));
        let (first, last) = (first?, last?);
        if first > last || last > self.n {
            let problem =
                format!("`{text}` is {first} to {last} bits here, but must rise and end at n = {} or before", self.n);
            return Err(Error::setting("train.lengths", problem));
        }
        Ok(first..=last)
    }

    /// The lengths it is tested at, rising; none where n is the only one.
    pub fn eval_lengths(&self) -> Result<Vec<usize>> {
        if is_own_length(&self.eval.lengths) {
            return Ok(Vec::new());
        }
        let words = self.eval.lengths.split_whitespace();
        let mut lengths = words.map(|word| length("eval.lengths", word, self.n)).collect::<Result<Vec<_>>>()?;
        lengths.sort_unstable();
        lengths.dedup();
        match lengths.is_empty() {
            true => Err(Error::setting("eval.lengths", "needs at least one length, as in \"n/2 n 2n 4n\"")),
            false => Ok(lengths),
        }
    }

    /// All lengths that strings may have beside n.
    pub(super) fn other_lengths(&self) -> Result<Vec<usize>> {
        let mut all: Vec<usize> = self.train_lengths()?.chain(self.eval_lengths()?).filter(|m| *m != self.n).collect();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// Refuses other lengths for what has none.
    pub(super) fn check_lengths(&self) -> Result<()> {
        if !self.has_other_lengths() {
            return Ok(());
        }
        let key = if is_own_length(&self.train.lengths) { "eval.lengths" } else { "train.lengths" };
        let refuse = |problem: &str| Err(Error::setting(key, problem));
        if self.train.set_size > 0 || self.measure.set_size > 0 {
            return refuse(
                "a fixed set of strings has one length; leave this setting out, or train.set_size and measure.set_size",
            );
        }
        let TargetName::Plain(name) = TargetName::parse(&self.target)? else {
            return refuse(
                "a truth table that another run or a completion makes has one length; choose a target with a name",
            );
        };
        let architecture = super::architecture(self);
        for m in self.other_lengths()? {
            if let Err(error) = architecture.check_length(m, 0) {
                let hint = match self.model.position == Position::Learned && self.model.kind == ModelKind::Encoder {
                    true => format!("; model.positions={m} gives it as many"),
                    false => String::new(),
                };
                return refuse(&format!("{error}{hint}"));
            }
            pudica_data::Target::parse(&name, m)
                .map_err(|error| Error::setting(key, format!("at {m} bits: {error}")))?;
        }
        Ok(())
    }
}

/// A length as it is written: `12`, `n`, `2n`, `n/2` or `3n/2`, rounded down.
fn length(key: &str, text: &str, n: usize) -> Result<usize> {
    let wrong = || Error::setting(key, format!("`{text}` is no length; write 12, n, 2n, n/2 or 3n/2"));
    let whole = |part: &str| part.parse::<usize>().ok().filter(|number| (1..=1 << 16).contains(number));
    let found = match text.trim().split_once('n') {
        None => whole(text.trim()).ok_or_else(wrong)?,
        Some((times, part)) => {
            let times = if times.is_empty() { Some(1) } else { whole(times) };
            let part = if part.is_empty() { Some(1) } else { part.strip_prefix('/').and_then(whole) };
            let (times, part) = times.zip(part).ok_or_else(wrong)?;
            times.saturating_mul(n) / part
        }
    };
    match found {
        1..=65536 => Ok(found),
        _ => Err(Error::setting(key, format!("`{text}` is {found} bits here; strings have 1 to 65536"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Configuration;

    fn config(n: usize, train: &str, eval: &str) -> RunConfig {
        let mut config = RunConfig { n, ..RunConfig::default() };
        (config.train.lengths, config.eval.lengths) = (train.into(), eval.into());
        config
    }

    #[test]
    fn lengths_are_written_by_n() {
        let config = config(9, "n/2 to n", "4n n 3n/2 20 n");
        assert_eq!(config.train_lengths().unwrap(), 4..=9);
        assert_eq!(config.eval_lengths().unwrap(), [9, 13, 20, 36]);
        assert_eq!(config.other_lengths().unwrap(), [4, 5, 6, 7, 8, 13, 20, 36]);
    }

    #[test]
    fn impossible_lengths_are_explained() {
        let train = |text: &str| config(8, text, "n").train_lengths().unwrap_err().to_string();
        assert!(train("n to 2n").contains("must rise and end at n = 8"));
        assert!(train("6 to 3").contains("is 6 to 3 bits here"));
        assert!(train("n/9 to n").contains("is 0 bits here"));
        assert!(train("1..8").contains("is no length; write 12, n, 2n, n/2 or 3n/2"));
        let eval = |text: &str| config(8, "n", text).eval_lengths().unwrap_err().to_string();
        assert!(eval("n/x").contains("is no length") && eval("").contains("at least one length"));
        let refusal = |change: fn(&mut RunConfig)| {
            let mut config = config(8, "1 to n", "n");
            change(&mut config);
            config.check_lengths().unwrap_err().to_string()
        };
        assert!(
            refusal(|run| run.model.kind = ModelKind::EncoderDecoder).contains("reads strings of 8 bits, these have 1")
        );
        assert!(
            refusal(|run| run.eval.lengths = "2n".into()).contains("up to 8 bits, these have 16; model.positions=16")
        );
        assert!(refusal(|run| run.train.set_size = 4).contains("has one length"));
        assert!(refusal(|run| run.target = "run:abc".into()).contains("has one length"));
    }

    #[test]
    fn runs_of_one_length_are_written_as_ever() {
        let plain = config(8, "n", "n");
        assert!(!plain.has_other_lengths() && !plain.canonical_json().contains("lengths"));
        assert!(config(8, "1 to n", "n").canonical_json().contains("\"lengths\":\"1 to n\""));
    }
}
