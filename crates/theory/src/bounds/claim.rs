//! One inequality of the paper, both sides of it, and how far it was checked.

use serde::Serialize;

/// How an inequality was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Checked {
    /// Every case there is.
    Exhaustively {
        /// How many.
        cases: u64,
    },
    /// Random cases; nothing is verified about the others.
    Sampled {
        /// How many.
        cases: u64,
    },
    /// Both sides were computed; there are no cases.
    Computed,
    /// A statement about a limit, which no finite computation checks: both sides are shown only.
    Beside,
}

/// The outcome of checking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// True in every case there is.
    Holds,
    /// True in every case tried, which is not all of them.
    HeldWhereTried,
    /// False in some case.
    Fails,
    /// Nothing was decided.
    NotDecided,
}

/// A claim: left <= right, or for lower bounds left >= right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// Where the paper says it.
    pub name: String,
    /// The inequality in words.
    pub statement: String,
    /// The left side, in the worst case tried.
    pub left: f64,
    /// The right side in that case.
    pub right: f64,
    /// Whether both sides are natural logarithms.
    pub in_ln: bool,
    /// How much room is left; negative where it fails. A difference (of logarithms where the sides are logarithms).
    pub slack: f64,
    /// The outcome.
    pub verdict: Verdict,
    /// How it was checked.
    pub checked: Checked,
    /// True if nothing of this size with outputs in [-1, 1] could fail it, whatever it computes: then holding says nothing.
    pub vacuous: bool,
    /// What else to know.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Claim {
    /// left <= right, decided by `slack` >= 0.
    pub(crate) fn at_most(name: &str, statement: impl Into<String>, left: f64, right: f64, checked: Checked) -> Self {
        Self::decided(name, statement, left, right, right - left, checked)
    }

    /// left >= right.
    pub(crate) fn at_least(name: &str, statement: impl Into<String>, left: f64, right: f64, checked: Checked) -> Self {
        Self::decided(name, statement, left, right, left - right, checked)
    }

    fn decided(name: &str, statement: impl Into<String>, left: f64, right: f64, slack: f64, checked: Checked) -> Self {
        let mut claim = Self {
            name: name.into(),
            statement: statement.into(),
            left,
            right,
            in_ln: false,
            slack,
            verdict: Verdict::NotDecided,
            checked,
            vacuous: false,
            note: String::new(),
        };
        claim.decide(slack >= 0.0);
        claim
    }

    /// Sets the verdict by whether every case tried was true.
    pub(crate) fn decide(&mut self, all_true: bool) {
        self.verdict = match (all_true, self.checked) {
            (_, Checked::Beside) => Verdict::NotDecided,
            (false, _) => Verdict::Fails,
            (true, Checked::Sampled { .. }) => Verdict::HeldWhereTried,
            (true, _) => Verdict::Holds,
        };
    }

    pub(crate) fn in_ln(mut self) -> Self {
        self.in_ln = true;
        self
    }

    pub(crate) fn vacuous(mut self, vacuous: bool) -> Self {
        self.vacuous = vacuous;
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_never_says_holds() {
        let claim = |checked| Claim::at_most("a", "b", 1.0, 2.0, checked).verdict;
        assert_eq!(claim(Checked::Exhaustively { cases: 4 }), Verdict::Holds);
        assert_eq!(claim(Checked::Sampled { cases: 4 }), Verdict::HeldWhereTried);
        assert_eq!(claim(Checked::Beside), Verdict::NotDecided);
        assert_eq!(Claim::at_least("a", "b", 1.0, 2.0, Checked::Sampled { cases: 4 }).verdict, Verdict::Fails);
    }
}
