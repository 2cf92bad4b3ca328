//! What is compared before and after a touch.

use pudica_boolean::did_you_mean;
use pudica_model::Outputs;
use pudica_probe::Response;
use pudica_statistics::Range;

use crate::{MeasureError, MeasureResult};

/// A model's answer to one input.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// A score for each class, or one number.
    pub scores: Vec<f32>,
    /// What the scores are.
    pub outputs: Outputs,
    /// The input's true class.
    pub label: Option<usize>,
}

impl Answer {
    /// The class it gives. One number alone: class 1 where it is positive (above 1/2 where it is a probability). Of equal scores, the first.
    pub fn predicted(&self) -> usize {
        match (&self.scores[..], self.outputs) {
            ([score], Outputs::Logits) => usize::from(*score > 0.0),
            ([score], Outputs::Probabilities) => usize::from(*score > 0.5),
            (scores, _) => {
                let mut best = 0;
                (1..scores.len()).for_each(|class| best = if scores[class] > scores[best] { class } else { best });
                best
            }
        }
    }

    /// The probability of each class.
    pub fn probabilities(&self) -> Vec<f64> {
        match (&self.scores[..], self.outputs) {
            ([score], outputs) => {
                let one = match outputs {
                    Outputs::Logits => 1.0 / (1.0 + f64::from(-score).exp()),
                    Outputs::Probabilities => f64::from(*score),
                };
                vec![1.0 - one, one]
            }
            (scores, Outputs::Probabilities) => scores.iter().map(|score| f64::from(*score)).collect(),
            (scores, Outputs::Logits) => {
                let most = f64::from(scores.iter().copied().fold(f32::NEG_INFINITY, f32::max));
                let powers: Vec<f64> = scores.iter().map(|score| (f64::from(*score) - most).exp()).collect();
                let sum: f64 = powers.iter().sum();
                powers.into_iter().map(|power| power / sum).collect()
            }
        }
    }

    /// The cross-entropy at the true class; where probabilities are given, as far as f32 tells them from 0.
    pub fn loss(&self) -> Option<f64> {
        let label = self.label?;
        match (&self.scores[..], self.outputs) {
            (scores @ [_, _, ..], Outputs::Logits) => {
                let most = f64::from(scores.iter().copied().fold(f32::NEG_INFINITY, f32::max));
                let sum: f64 = scores.iter().map(|score| (f64::from(*score) - most).exp()).sum();
                Some(sum.ln() + most - f64::from(*scores.get(label)?))
            }
            ([score], Outputs::Logits) => {
                let towards = if label == 1 { f64::from(*score) } else { -f64::from(*score) };
                Some((-towards).max(0.0) + (-towards.abs()).exp().ln_1p())
            }
            _ => Some(-self.probabilities().get(label)?.max(f64::from(f32::MIN_POSITIVE)).ln()),
        }
    }

    /// Whether the class it gives is the true one.
    pub fn is_right(&self) -> Option<bool> {
        Some(self.predicted() == self.label?)
    }

    /// How far the score of a class is above the best other one.
    fn margin(&self, class: usize) -> f64 {
        if let [score] = self.scores[..] {
            let middle = if self.outputs == Outputs::Logits { 0.0 } else { 0.5 };
            let above = f64::from(score) - middle;
            return if class == 1 { above } else { -above };
        }
        let others = self.scores.iter().enumerate().filter(|(other, _)| *other != class).map(|(_, score)| *score);
        f64::from(self.scores.get(class).copied().unwrap_or(f32::NAN))
            - f64::from(others.fold(f32::NEG_INFINITY, f32::max))
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// 1 where the class changes.
    Label,
    /// Half the sum of changes of the probabilities.
    TotalVariation,
    /// The length of the shift of the scores.
    Shift,
    /// How much the margin shrinks.
    Margin,
    /// How much the loss rises.
    Loss,
    /// 1 where the class is right after the touch.
    Accuracy,
}

/// All of them: name, meaning, and whether labels are needed.
pub const RESPONSES: [(Compared, &str, &str, bool); 6] = [
    (Compared::Label, "label", "how often the predicted class changes", false),
    (Compared::TotalVariation, "total-variation", "half the sum of changes of the class probabilities, 0 to 1", false),
    (Compared::Shift, "l2", "the length (L2) of the shift of the scores, as the model gives them", false),
    (
        Compared::Margin,
        "margin",
        "how much the margin shrinks: the score of the true class (the one predicted before, without labels) above the best other",
        false,
    ),
    (Compared::Loss, "loss", "how much the cross-entropy rises (nats)", true),
    (Compared::Accuracy, "accuracy", "the fraction classified right after the touch", true),
];

impl Compared {
    /// The response of this name.
    pub fn named(name: &str) -> MeasureResult<Self> {
        let found = RESPONSES.iter().find(|(_, known, ..)| *known == name).map(|(response, ..)| *response);
        found.ok_or_else(|| {
            let names = RESPONSES.map(|(_, name, ..)| name);
            let hint = did_you_mean(name, names);
            MeasureError::Other(format!("--response {name}: no such response{hint}; there are {}", names.join(", ")))
        })
    }

    /// Those that are compared where nobody says: of inputs with labels more than of those without.
    pub fn usual(has_labels: bool) -> Vec<Self> {
        let usual = [Self::Label, Self::TotalVariation, Self::Accuracy, Self::Loss];
        usual.into_iter().filter(|response| has_labels || !response.needs_labels()).collect()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        RESPONSES.iter().find(|(response, ..)| *response == self).map_or("", |(_, name, ..)| name)
    }

    /// Whether it compares with the true class.
    pub fn needs_labels(self) -> bool {
        RESPONSES.iter().any(|(response, _, _, needs)| *response == self && *needs)
    }

    /// The values that its mean can have.
    pub fn range(self) -> Range {
        match self {
            Self::Label | Self::TotalVariation | Self::Accuracy => Range::Fraction,
            Self::Shift => Range::Positive,
            Self::Margin | Self::Loss => Range::Any,
        }
    }
}

impl Response<Answer> for Compared {
    fn compare(&self, before: &Answer, after: &Answer) -> f64 {
        match self {
            Self::Label => f64::from(u8::from(before.predicted() != after.predicted())),
            Self::TotalVariation => {
                let pairs = before.probabilities().into_iter().zip(after.probabilities());
                (pairs.map(|(before, after)| (after - before).abs()).sum::<f64>() / 2.0).min(1.0)
            }
            Self::Shift => {
                let pairs = before.scores.iter().zip(&after.scores);
                pairs.map(|(before, after)| f64::from(after - before).powi(2)).sum::<f64>().sqrt()
            }
            Self::Margin => {
                let class = before.label.unwrap_or_else(|| before.predicted());
                before.margin(class) - after.margin(class)
            }
            Self::Loss => after.loss().zip(before.loss()).map_or(f64::NAN, |(after, before)| after - before),
            Self::Accuracy => after.is_right().map_or(f64::NAN, |right| f64::from(u8::from(right))),
        }
    }

    fn most(&self) -> f64 {
        if self.range() == Range::Fraction { 1.0 } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(scores: &[f32], outputs: Outputs, label: usize) -> Answer {
        Answer { scores: scores.to_vec(), outputs, label: Some(label) }
    }

    #[test]
    fn every_response_is_its_definition() {
        let before = answer(&[2.0, 1.0, 0.0], Outputs::Logits, 0);
        let after = answer(&[0.0, 1.0, 0.0], Outputs::Logits, 0);
        let e = std::f64::consts::E;
        let (p, q) = ([e * e, e, 1.0].map(|x| x / (e * e + e + 1.0)), [1.0, e, 1.0].map(|x| x / (e + 2.0)));
        let found = |response: Compared| response.compare(&before, &after);
        assert_eq!((found(Compared::Label), found(Compared::Shift), found(Compared::Margin)), (1.0, 2.0, 2.0));
        let total_variation = (0..3).map(|class| (p[class] - q[class]).abs()).sum::<f64>() / 2.0;
        assert!((found(Compared::TotalVariation) - total_variation).abs() < 1e-12);
        assert!((found(Compared::Loss) - (p[0].ln() - q[0].ln())).abs() < 1e-12);
        assert_eq!(found(Compared::Accuracy), 0.0);
        let same = answer(&p.map(|x| x as f32), Outputs::Probabilities, 0);
        assert!((same.loss().unwrap() - before.loss().unwrap()).abs() < 1e-6);
    }

    #[test]
    fn one_number_is_two_classes() {
        let logit = |score: f32, label| answer(&[score], Outputs::Logits, label);
        assert_eq!((logit(-1.0, 0).predicted(), logit(2.0, 0).predicted()), (0, 1));
        assert!((logit(2.0, 1).loss().unwrap() - (1.0 + (-2.0f64).exp()).ln()).abs() < 1e-12);
        assert!((logit(2.0, 0).loss().unwrap() - (1.0 + 2.0f64.exp()).ln()).abs() < 1e-12);
        assert!(logit(-1000.0, 1).loss().unwrap() == 1000.0, "no overflow");
        let sure = answer(&[0.75], Outputs::Probabilities, 1);
        assert_eq!((sure.predicted(), sure.probabilities()), (1, vec![0.25, 0.75]));
        assert_eq!(Compared::Margin.compare(&sure, &answer(&[0.25], Outputs::Probabilities, 1)), 0.5);
    }

    #[test]
    fn names_are_read_back() {
        for (response, name, ..) in RESPONSES {
            assert_eq!((Compared::named(name).unwrap(), response.name()), (response, name));
        }
        assert!(Compared::named("lable").unwrap_err().to_string().contains("did you mean 'label'"));
    }
}
