//! Predictors of synthetic tokens that rely on one kind of token, and their sensitivity in closed form: Tables 1 and 3 of
//! Vasudeva et al. (2024).

use pudica_data::{TokenKind, TokenTask};
use serde::{Deserialize, Serialize};

/// A predictor that counts one kind of token: the sign of (those of label +1) - (those of label -1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Predictor {
    /// Counts sparse tokens.
    Sparse,
    /// Counts frequent tokens.
    Frequent,
}

/// Whether a sign that becomes 0 has changed. Definition 4.3 says yes, since sign(0) is neither 1 nor -1; a program that
/// breaks ties in favour of the old label says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// A tie is a change.
    Changes,
    /// Only the other sign is a change.
    Keeps,
}

impl Predictor {
    /// Both.
    pub const ALL: [Predictor; 2] = [Predictor::Sparse, Predictor::Frequent];

    fn kind(self) -> TokenKind {
        match self {
            Predictor::Sparse => TokenKind::Sparse,
            Predictor::Frequent => TokenKind::Frequent,
        }
    }

    /// Tokens that speak for label +1 less those for -1; its sign is the prediction.
    pub fn margin(self, task: &TokenTask, tokens: &[u16]) -> i64 {
        let counted = tokens.iter().filter(|token| task.kind(**token) == self.kind());
        counted.map(|token| i64::from(task.polarity(*token))).sum()
    }

    /// Its sensitivity (Definition 4.3): how often the prediction changes when one token, at a uniform position, is replaced by a uniform
    /// token of the vocabulary. Every sequence has the same counts, so this holds for each, not only on average:
    ///
    /// with R tokens for the label and W against it (D = R - W > 0), O = T - R - W others, and q the share of the vocabulary that speaks
    /// for either label, a token for the label turns against it with R q (D falls by 2) or into another with R (1 - 2q) (by 1), and another
    /// turns against it with O q (by 1); T S is the sum of those that end at 0 or below.
    pub fn sensitivity(self, task: &TokenTask, tie: Tie) -> f64 {
        let (for_label, against, tokens_of_label) = match self {
            Predictor::Sparse => (task.n_s, 0, 1),
            Predictor::Frequent => (task.frequent_of_label(), task.n_f - task.frequent_of_label(), task.m),
        };
        let (right, others) = (for_label as f64, (task.length - for_label - against) as f64);
        let share = tokens_of_label as f64 / task.vocabulary as f64;
        let margin = for_label as i64 - against as i64;
        let lost = |fall: i64| match tie {
            Tie::Changes => f64::from(u8::from(margin > 0 && margin - fall <= 0)),
            Tie::Keeps => f64::from(u8::from(margin > 0 && margin - fall < 0)),
        };
        let by_two = right * share;
        let by_one = right * (1.0 - 2.0 * share) + others * share;
        (by_two * lost(2) + by_one * lost(1)) / task.length as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_data::Stream;

    fn task(n_s: usize, n_f: usize, n_d: usize, m: usize, vocabulary: usize) -> TokenTask {
        TokenTask { length: 50, vocabulary, n_s, n_f, n_d, m }
    }

    /// With M = 59, the smallest vocabulary that holds m = 28, and ties as changes, the definition gives Table 3's first half exactly.
    #[test]
    fn the_published_values_of_the_first_half() {
        for ((n_f, m), published) in [((3, 6), 0.1315), ((5, 16), 0.2878), ((7, 28), 0.4502)] {
            let task = task(3, n_f, 1, m, 59);
            assert_eq!(Predictor::Sparse.sensitivity(&task, Tie::Changes), 0.0);
            let found = Predictor::Frequent.sensitivity(&task, Tie::Changes);
            assert!((found - published).abs() < 5e-5, "{found} {published}");
        }
    }

    /// No vocabulary that holds m = 36 gives the published 0.0339 for the second half: the definition needs M = 69.
    #[test]
    fn the_published_values_of_the_second_half() {
        for (n_f, m) in [(7, 10), (17, 20), (32, 36)] {
            assert_eq!(Predictor::Frequent.sensitivity(&task(1, n_f, 7, m, 75), Tie::Changes), 0.0);
        }
        let sparse = |vocabulary| Predictor::Sparse.sensitivity(&task(1, 7, 7, 10, vocabulary), Tie::Changes);
        assert!((sparse(75) - 0.0328).abs() < 1e-12);
        let fits: Vec<usize> = (23..200).filter(|m| (sparse(*m) - 0.0339).abs() < 5e-5).collect();
        assert_eq!(fits, [69]);
    }

    /// Every position of a sequence replaced by every token.
    #[test]
    fn the_formula_is_the_definition() {
        let mut small = task(2, 4, 1, 3, 11);
        small.length = 9;
        for (n_s, n_f, n_d) in [(2, 4, 1), (1, 5, 1), (1, 4, 4), (3, 3, 3), (1, 4, 2), (0, 0, 0)] {
            let task = TokenTask { n_s, n_f, n_d, ..small };
            let set = task.draw(3, false, &mut Stream::new(0, "test", 0)).unwrap();
            for (tokens, label) in set.iter() {
                for predictor in Predictor::ALL {
                    let before = predictor.margin(&task, tokens).signum();
                    assert!(before == i64::from(label) || before == 0);
                    let (mut changed, mut reversed) = (0, 0);
                    for position in 0..task.length {
                        for token in 0..task.vocabulary {
                            let mut touched = tokens.to_vec();
                            touched[position] = token as u16;
                            let after = predictor.margin(&task, &touched).signum();
                            changed += usize::from(before != 0 && after != before);
                            reversed += usize::from(before != 0 && after == -before);
                        }
                    }
                    let share = |count: usize| count as f64 / (task.length * task.vocabulary) as f64;
                    assert!((predictor.sensitivity(&task, Tie::Changes) - share(changed)).abs() < 1e-12, "{task:?}");
                    assert!((predictor.sensitivity(&task, Tie::Keeps) - share(reversed)).abs() < 1e-12, "{task:?}");
                }
            }
        }
    }
}
