//! What is measured of a layer, on which sequences.

use pudica_data::{Stream, TokenKind, TokenSet, TokenTask};
use pudica_nn::token_attention::{Tables, logistic};
use pudica_probe::Estimate;
use serde_json::{Map, Value};

use super::TokensConfig;
use super::sensitivity::{sign, token_sensitivity};
use crate::error::Result;

/// A number for each [`TokenKind`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ByKind {
    /// Of the sparse tokens.
    pub sparse: f64,
    /// Of the frequent ones.
    pub frequent: f64,
    /// Of the others.
    pub irrelevant: f64,
}

/// What the figures show, after some epochs.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Epochs trained.
    pub epoch: u64,
    /// Mean logistic loss on the training set.
    pub train_loss: f64,
    /// Fraction of right signs.
    pub train_accuracy: f64,
    /// On new sequences.
    pub test_accuracy: f64,
    /// On new sequences whose sparse tokens are those of the other label: 0 where only sparse tokens matter, 1 where only frequent ones.
    pub ood_accuracy: f64,
    /// Cosine of a row of U Wv^T with v_sp, v_freq and v_irrel, mean over the T rows.
    pub alignment: ByKind,
    /// TokenAttention to the tokens of each kind, mean over positions and training sequences; sums to 1.
    pub attention: ByKind,
    /// Definition 4.3 on the training set.
    pub sensitivity: Estimate,
}

impl Point {
    /// Its numbers by name.
    pub(super) fn values(&self) -> Map<String, Value> {
        let kinds = |name: &str, of: &ByKind| {
            [("sparse", of.sparse), ("frequent", of.frequent), ("irrelevant", of.irrelevant)]
                .map(|(kind, value)| (format!("{name}_{kind}"), Value::from(value)))
        };
        let mut values = Map::from_iter([
            ("epoch".to_string(), Value::from(self.epoch)),
            ("train_loss".into(), self.train_loss.into()),
            ("train_accuracy".into(), self.train_accuracy.into()),
            ("test_accuracy".into(), self.test_accuracy.into()),
            ("ood_accuracy".into(), self.ood_accuracy.into()),
        ]);
        values.extend(kinds("alignment", &self.alignment));
        values.extend(kinds("attention", &self.attention));
        values.insert("sensitivity".into(), self.sensitivity.mean.into());
        if let Some(error) = self.sensitivity.std_error {
            values.insert("sensitivity_std_error".into(), error.into());
        }
        values
    }
}

/// The sequences of a run.
pub(super) struct Sets {
    pub train: TokenSet,
    pub test: TokenSet,
    pub ood: TokenSet,
}

impl Sets {
    pub fn draw(task: &TokenTask, config: &TokensConfig) -> Result<Sets> {
        let set = |rows, flipped, purpose| task.draw(rows, flipped, &mut Stream::new(config.seed, purpose, 0));
        Ok(Sets {
            train: set(config.train.set_size, false, "tokens-train")?,
            test: set(config.eval.sequences, false, "tokens-test")?,
            ood: set(config.eval.sequences, true, "tokens-ood")?,
        })
    }
}

/// Everything that is followed through training.
pub(super) fn measure(task: &TokenTask, tables: &Tables, sets: &Sets, epoch: u64) -> Point {
    let losses = sets.train.iter().map(|(tokens, label)| logistic(tables.output(tokens), f64::from(label)).0);
    Point {
        epoch,
        train_loss: losses.sum::<f64>() / sets.train.rows() as f64,
        train_accuracy: accuracy(tables, &sets.train),
        test_accuracy: accuracy(tables, &sets.test),
        ood_accuracy: accuracy(tables, &sets.ood),
        alignment: alignment(task, tables),
        attention: attention(task, tables, &sets.train),
        sensitivity: token_sensitivity(tables, &sets.train),
    }
}

fn accuracy(tables: &Tables, set: &TokenSet) -> f64 {
    let right = set.iter().filter(|(tokens, label)| sign(tables.output(tokens)) == *label).count();
    right as f64 / set.rows() as f64
}

/// Mean cosine of the rows of U Wv^T with v_sp = e_1 - e_2 (the paper's text has e_1 - e_3, a slip), with v_freq, the sum of frequent
/// tokens of label +1 minus those of -1, and with v_irrel, the sum of irrelevant tokens.
fn alignment(task: &TokenTask, tables: &Tables) -> ByKind {
    let cosine = |kind: TokenKind| {
        let direction: Vec<f64> = (0..task.vocabulary as u16)
            .map(|token| match task.kind(token) {
                same if same != kind => 0.0,
                TokenKind::Irrelevant => 1.0,
                _ => f64::from(task.polarity(token)),
            })
            .collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let of_row = |position: usize| {
            let row = tables.seen(position);
            let norms = (dot(row, row) * dot(&direction, &direction)).sqrt();
            if norms > 0.0 { dot(row, &direction) / norms } else { 0.0 }
        };
        (0..task.length).map(of_row).sum::<f64>() / task.length as f64
    };
    let [sparse, frequent, irrelevant] = TokenKind::ALL.map(cosine);
    ByKind { sparse, frequent, irrelevant }
}

fn attention(task: &TokenTask, tables: &Tables, set: &TokenSet) -> ByKind {
    let mut mean = ByKind::default();
    let share = 1.0 / (set.rows() * task.length) as f64;
    for (tokens, _) in set.iter() {
        for from in tokens {
            let row = tables.exponentials(*from);
            let mut sums = ByKind::default();
            for to in tokens {
                let sum = match task.kind(*to) {
                    TokenKind::Sparse => &mut sums.sparse,
                    TokenKind::Frequent => &mut sums.frequent,
                    TokenKind::Irrelevant => &mut sums.irrelevant,
                };
                *sum += row[usize::from(*to)];
            }
            let scale = share / (sums.sparse + sums.frequent + sums.irrelevant);
            mean.sparse += scale * sums.sparse;
            mean.frequent += scale * sums.frequent;
            mean.irrelevant += scale * sums.irrelevant;
        }
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_nn::token_attention::TokenAttention;

    const TASK: TokenTask = TokenTask { length: 10, vocabulary: 15, n_s: 2, n_f: 3, n_d: 1, m: 4 };

    /// Wq = Wk = 0, U Wv^T with the same row everywhere: attention is uniform and the layer counts tokens.
    fn counting(token_values: impl Fn(u16) -> f64) -> Tables {
        let value = (0..15).map(token_values).collect();
        let layer = TokenAttention {
            vocabulary: 15,
            length: 10,
            width: 1,
            query: vec![0.0; 15],
            key: vec![0.0; 15],
            value,
            head: vec![1.0; 10],
        };
        layer.tables()
    }

    fn sets() -> Sets {
        let set = |flipped| TASK.draw(50, flipped, &mut Stream::new(0, "test", 0)).unwrap();
        Sets { train: set(false), test: set(false), ood: set(true) }
    }

    /// Layers that compute the two predictors have their closed-form sensitivity, accuracies and alignments.
    #[test]
    fn a_layer_that_counts_is_the_predictor_that_counts() {
        use pudica_theory::tokens::{Predictor, Tie};
        for (predictor, kind, ood) in
            [(Predictor::Sparse, TokenKind::Sparse, 0.0), (Predictor::Frequent, TokenKind::Frequent, 1.0)]
        {
            let votes = |token| if TASK.kind(token) == kind { f64::from(TASK.polarity(token)) } else { 0.0 };
            let point = measure(&TASK, &counting(votes), &sets(), 0);
            assert_eq!((point.train_accuracy, point.test_accuracy, point.ood_accuracy), (1.0, 1.0, ood));
            // Sums of tenths do not cancel to 0 exactly, so ties fall to either side: between the two readings of a tie.
            let exact = |tie| predictor.sensitivity(&TASK, tie);
            let found = point.sensitivity.mean;
            assert!(exact(Tie::Keeps) - 1e-9 <= found && found <= exact(Tie::Changes) + 1e-9, "{found}");
            let cosines = if kind == TokenKind::Sparse { (1.0, 0.0) } else { (0.0, 1.0) };
            assert!((point.alignment.sparse - cosines.0).abs() < 1e-12);
            assert!((point.alignment.frequent - cosines.1).abs() < 1e-12);
            let ByKind { sparse, frequent, irrelevant } = point.attention;
            assert!((sparse - 0.2).abs() < 1e-12 && (frequent - 0.3).abs() < 1e-12 && (irrelevant - 0.5).abs() < 1e-12);
        }
    }
}
