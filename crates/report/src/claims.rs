//! What was published, and what our runs say about it: one type for all layouts.

use pudica_statistics::{Contrast, Correlation, Mean, Order, Term, contrast, difference, holm};
use serde::Serialize;

use crate::findings::{counted, number};

/// What runs say about a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// They show it.
    Agrees,
    /// They show the opposite, or show that it is not so.
    Disagrees,
    /// They are too few, or too unlike each other.
    CannotTell,
}

/// A published statement beside our runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The file of the figure beside which it stands; empty where it belongs to a table.
    pub figure: String,
    /// What was published.
    pub published: String,
    /// The same as a question, to which the paper says yes.
    pub question: String,
    /// What our runs say.
    #[serde(rename = "verdict")]
    pub decision: Decision,
    /// The number that decides it, with its interval or its probability.
    pub statistic: String,
    /// How many runs are behind it.
    pub runs: usize,
}

impl Decision {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Decision::Agrees => "agrees",
            Decision::Disagrees => "disagrees",
            Decision::CannotTell => "cannot tell",
        }
    }

    /// The answer to a question to which the paper says yes.
    pub fn answer(self) -> &'static str {
        match self {
            Decision::Agrees => "Yes, as published",
            Decision::Disagrees => "No, not here",
            Decision::CannotTell => "These runs cannot tell",
        }
    }

    /// Whether a number that should be above 0 is.
    pub fn above(found: Option<Contrast>) -> Decision {
        match found {
            Some(found) if found.low > 0.0 => Decision::Agrees,
            Some(found) if found.high < 0.0 => Decision::Disagrees,
            _ => Decision::CannotTell,
        }
    }

    /// Whether a number that should be about 0 is within so much of it.
    pub fn about(found: Option<Contrast>, margin: f64) -> Decision {
        match found {
            Some(found) if found.low > -margin && found.high < margin => Decision::Agrees,
            Some(found) if found.low > margin || found.high < -margin => Decision::Disagrees,
            _ => Decision::CannotTell,
        }
    }

    /// Whether things are in the published order: by the probability that a random order is as good, or as bad.
    pub fn ordered(found: Option<Order>) -> Decision {
        match found {
            Some(found) if found.as_good <= 0.05 => Decision::Agrees,
            Some(found) if found.as_bad <= 0.05 => Decision::Disagrees,
            _ => Decision::CannotTell,
        }
    }

    /// A statement of several parts, all of which must hold; of none nothing can be told.
    pub fn all(parts: impl IntoIterator<Item = Decision>) -> Decision {
        let mut any = false;
        let mut all = Decision::Agrees;
        for part in parts {
            any = true;
            all = match (all, part) {
                (Decision::Disagrees, _) | (_, Decision::Disagrees) => Decision::Disagrees,
                (Decision::Agrees, Decision::Agrees) => Decision::Agrees,
                _ => Decision::CannotTell,
            };
        }
        if any { all } else { Decision::CannotTell }
    }
}

impl Claim {
    /// The verdict in a line: what decides it, and how many runs are behind it.
    pub fn evidence(&self) -> String {
        match self.statistic.is_empty() {
            true => counted(self.runs, "run"),
            false => format!("{}; {}", self.statistic, counted(self.runs, "run")),
        }
    }
}

/// Several numbers that must each be where a statement says for it to hold: their decision, and each in words with its name.
///
/// All must agree for the statement to agree, which none of several parts does more easily than one. One that disagrees is enough for it to
/// disagree, which of many parts one does by chance: their p-values are corrected for their number by Holm's method.
#[derive(Default)]
pub struct Parts {
    parts: Vec<Part>,
}

struct Part {
    decision: Decision,
    words: String,
    /// The probability of a number so far on the wrong side if the part holds, where it has one.
    p: Option<f64>,
}

impl Parts {
    /// Adds a number that must be above 0; one that is not known is named, too.
    pub fn above(&mut self, name: &str, found: Option<Contrast>) {
        let p = found.map(|found| if found.value < 0.0 { found.p_beyond(0.0) } else { 1.0 });
        self.parts.push(Part { decision: Decision::above(found), words: interval(name, found), p });
    }

    /// Adds a number that must be within so much of 0.
    pub fn about(&mut self, name: &str, found: Option<Contrast>, margin: f64) {
        let p = found.map(|found| found.p_beyond(margin));
        self.parts.push(Part { decision: Decision::about(found, margin), words: interval(name, found), p });
    }

    /// Adds a rank correlation that must be above 0.
    pub fn rising(&mut self, name: &str, found: Option<Correlation>) {
        let decision = match found {
            Some(found) if found.low > 0.0 => Decision::Agrees,
            Some(found) if found.high < 0.0 => Decision::Disagrees,
            _ => Decision::CannotTell,
        };
        let words = found.map_or_else(
            || interval(name, None),
            |Correlation { r, low, high, points, .. }| {
                format!("{name} rank correlation {r:.2} [{low:.2}, {high:.2}] over {points} positions")
                    .replace('-', "−")
            },
        );
        self.parts.push(Part { decision, words, p: found.map(|found| if found.r < 0.0 { found.p } else { 1.0 }) });
    }

    /// Adds a part that is decided.
    pub fn add(&mut self, decision: Decision, words: String) {
        self.parts.push(Part { decision, words, p: None });
    }

    /// The claim that all parts make together.
    pub fn claim(mut self, figure: &str, published: &str, question: &str, runs: usize) -> Claim {
        self.correct();
        Claim {
            figure: figure.into(),
            published: published.into(),
            question: question.into(),
            decision: Decision::all(self.parts.iter().map(|part| part.decision)),
            statistic: self.parts.into_iter().map(|part| part.words).collect::<Vec<_>>().join("; "),
            runs,
        }
    }

    /// Parts that disagree no longer do where their number makes that likely.
    fn correct(&mut self) {
        let mut tested: Vec<&mut Part> = self.parts.iter_mut().filter(|part| part.p.is_some()).collect();
        let p: Vec<f64> = tested.iter().filter_map(|part| part.p).collect();
        for (part, (own, corrected)) in tested.iter_mut().zip(p.iter().zip(holm(&p))) {
            if part.decision == Decision::Disagrees && corrected > 0.05 {
                part.decision = Decision::CannotTell;
                part.words += &format!(" (p = {}, corrected {})", number(*own), number(corrected));
            }
        }
    }
}

/// A number with its 95 % interval, named; all three to the same digits, two of half the interval.
pub fn interval(name: &str, found: Option<Contrast>) -> String {
    let Some(Contrast { value, low, high, .. }) = found else {
        return format!("{}: no interval from so few runs", name.trim_end_matches([',', ':']));
    };
    let power = |size: f64| size.log10().floor() as i32;
    // Nothing is known to more than nine digits.
    let half = ((high - low) / 2.0).max(1e-9 * low.abs().max(high.abs())).max(f64::MIN_POSITIVE);
    let digit = power(half) - 1;
    let written = |unit: f64, decimals: usize| {
        let fixed = |value: f64| {
            let text = format!("{:.decimals$}", value / unit);
            // What rounds to 0 has no sign.
            if text.bytes().all(|byte| b"-0.".contains(&byte)) {
                text.replace('-', "")
            } else {
                text.replace('-', "−")
            }
        };
        format!("{} [{}, {}]", fixed(value), fixed(low), fixed(high))
    };
    match -digit {
        decimals @ 0..=4 => format!("{name} {}", written(1.0, decimals as usize)),
        ..0 => format!("{name} {}", written(1.0, 0)),
        _ => {
            // As a multiple of the power of ten of the largest of them.
            let exponent = power(low.abs().max(high.abs()));
            let numbers = written(10f64.powi(exponent), (exponent - digit).max(0) as usize);
            format!("{name} {numbers}·10^{{{exponent}}}").replace("^{-", "^{−")
        }
    }
}

/// One number, to be compared with 0.
pub fn single(term: impl Into<Term>) -> Option<Contrast> {
    contrast(&[(1.0, term.into())])
}

/// How much larger the mean of one group is than that of another.
pub fn apart(one: Option<Mean>, other: Option<Mean>) -> Option<Contrast> {
    difference(&one?, &other?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(low: f64, high: f64) -> Option<Contrast> {
        Some(Contrast { value: (low + high) / 2.0, std_error: 1.0, low, high, p: 0.5, freedom: f64::INFINITY })
    }

    #[test]
    fn intervals_decide() {
        use Decision::*;
        assert_eq!(
            [found(0.1, 0.2), found(-0.2, -0.1), found(-0.1, 0.2), None].map(Decision::above),
            [Agrees, Disagrees, CannotTell, CannotTell]
        );
        let about = |low, high| Decision::about(found(low, high), 1.0);
        assert_eq!(
            [about(-0.5, 0.9), about(1.1, 2.0), about(-3.0, -1.1), about(0.5, 1.5)],
            [Agrees, Disagrees, Disagrees, CannotTell]
        );
        assert_eq!(Decision::all([]), CannotTell);
        assert_eq!(Decision::all([Agrees, Agrees]), Agrees);
        assert_eq!(Decision::all([Agrees, CannotTell]), CannotTell);
        assert_eq!(Decision::all([CannotTell, Disagrees, Agrees]), Disagrees);
        let order = |as_good, as_bad| Decision::ordered(Some(Order { rho: 0.0, as_good, as_bad, points: 4 }));
        assert_eq!(
            [order(1.0 / 24.0, 1.0), order(1.0, 1.0 / 24.0), order(4.0 / 24.0, 0.9)],
            [Agrees, Disagrees, CannotTell]
        );
    }

    /// One of six that is below 0 at p = 0.03 is what chance would give; at p = 0.003 it is not. Alone it counts.
    #[test]
    fn one_of_many_parts_disagrees_only_beyond_chance() {
        // The interval of a normal error of 1.
        let part = |value: f64| Some(Contrast { value, ..found(value - 1.96, value + 1.96).unwrap() });
        let decision = |others: usize, value: f64| {
            let mut parts = Parts::default();
            (0..others).for_each(|_| parts.above("other", part(3.0)));
            parts.above("one", part(value));
            parts.claim("", "It is above.", "Is it above?", 9)
        };
        assert_eq!(decision(0, -2.17).decision, Decision::Disagrees);
        let corrected = decision(5, -2.17);
        assert_eq!(corrected.decision, Decision::CannotTell);
        assert!(corrected.statistic.ends_with("(p = 0.03001, corrected 0.1801)"), "{}", corrected.statistic);
        assert_eq!(decision(5, -2.97).decision, Decision::Disagrees);
        assert_eq!(decision(5, 2.17).decision, Decision::Agrees);
    }

    #[test]
    fn intervals_are_written_to_their_own_digits() {
        let words = |low: f64, high: f64| interval("slope,", found(low, high));
        assert_eq!(words(-0.0733, -0.0309), "slope, −0.052 [−0.073, −0.031]");
        assert_eq!(words(-0.112, 0.106), "slope, 0.00 [−0.11, 0.11]");
        assert_eq!(words(3213.4, 9120.0), "slope, 6167 [3213, 9120]");
        assert_eq!(words(-4.9e-5, 6.5e-5), "slope, 0.8 [−4.9, 6.5]·10^{−5}");
        assert_eq!(words(1.0e-3, 1.0003e-3), "slope, 1.00015 [1.00000, 1.00030]·10^{−3}");
        assert!(words(0.5, 0.5).starts_with("slope, 5.00000000"), "{}", words(0.5, 0.5));
        assert_eq!(interval("n = 8:", None), "n = 8: no interval from so few runs");
    }

    #[test]
    fn the_words_have_the_number_and_the_runs() {
        let mut parts = Parts::default();
        parts.above("slope", found(0.1, 0.3));
        parts.above("other", None);
        let claim = parts.claim("fig1", "It rises.", "Does it rise?", 1);
        assert_eq!(claim.decision, Decision::CannotTell);
        assert_eq!(claim.evidence(), "slope 0.20 [0.10, 0.30]; other: no interval from so few runs; 1 run");
        let json = serde_json::to_value(&claim).unwrap();
        assert_eq!((&json["verdict"], &json["runs"]), (&"cannot_tell".into(), &1.into()));
    }
}
