//! Loss and accuracy over labelled inputs.

use pudica_nn::classifier::{Classifier, Model, cross_entropy, predicted};
use pudica_nn::vision::ImageBatch;

use super::check_labels;
use crate::{Estimate, Moments, ProbeError};

/// How well a classifier does, and how it divides its inputs among the classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Classified {
    /// The mean cross-entropy.
    pub loss: Estimate,
    /// The fraction of inputs whose class is found.
    pub accuracy: Estimate,
    /// How many inputs each class was predicted for.
    pub predicted: Vec<usize>,
}

impl Classified {
    /// The fraction of inputs that the most predicted class was predicted for: 1 if the classifier is constant.
    pub fn largest_class_fraction(&self) -> f64 {
        largest_fraction(&self.predicted)
    }
}

/// The largest of these counts as a fraction of their sum.
pub fn largest_fraction(counts: &[usize]) -> f64 {
    let largest = counts.iter().max().copied().unwrap_or(0);
    largest as f64 / counts.iter().sum::<usize>().max(1) as f64
}

/// Cross-entropy and accuracy of a model over batches of inputs and their classes, with standard errors over inputs (for the accuracy the
/// binomial one): how far off they may be as averages over all inputs there could be.
pub fn evaluate<C: Classifier>(
    model: &Model<C>,
    batches: impl IntoIterator<Item = (C::Input, Vec<usize>)>,
) -> Result<Classified, ProbeError> {
    let classes = model.classifier().classes();
    let (mut loss, mut right, mut counts) = (Moments::default(), Moments::default(), vec![0; classes]);
    for (input, labels) in batches {
        check_labels(&labels, model.classifier().count(&input), classes)?;
        let scores = model.predict(&input)?;
        for (row, label) in scores.chunks_exact(classes).zip(&labels) {
            loss.add(cross_entropy(row, &[*label], classes));
            let found = predicted(row, classes);
            right.add(f64::from(found == [*label]));
            found.into_iter().for_each(|class| counts[class] += 1);
        }
    }
    match right.count() {
        0 => Err(ProbeError::NoBatches("an evaluation")),
        _ => {
            let (loss, accuracy) = (Estimate::sampled(&loss), Estimate::sampled(&right));
            Ok(Classified { loss, accuracy, predicted: counts })
        }
    }
}

/// A set of images and their classes in batches of `size`, the last one smaller.
pub fn image_batches<'a>(
    pictures: &'a ImageBatch,
    labels: &'a [usize],
    size: usize,
) -> impl Iterator<Item = (ImageBatch, Vec<usize>)> + Clone + 'a {
    let (size, pixels) = (size.max(1), pictures.pixels().max(1));
    let parts = pictures.values.chunks(size * pixels).zip(labels.chunks(size));
    parts.map(move |(values, labels)| {
        (ImageBatch { values: values.to_vec(), count: values.len() / pixels, ..*pictures }, labels.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{linear, random_pictures};
    use super::*;

    #[test]
    fn a_known_model_has_known_loss_and_accuracy() {
        // Scores (0, x): class 1 is chosen where x > 0; the loss of class 1 is ln(1 + exp(-x)).
        let model = linear(1, 1, &[0.0, 1.0], &[0.0, 0.0]);
        let pictures = ImageBatch::new(vec![1.0, 2.0, -1.0, -3.0, 0.5], [1, 1, 1]).unwrap();
        let labels = [1, 1, 1, 0, 1];
        let found = evaluate(&model, image_batches(&pictures, &labels, 2)).unwrap();
        let loss = |x: f64| (1.0 + (-x).exp()).ln();
        let expected = (loss(1.0) + loss(2.0) + loss(-1.0) + loss(3.0) + loss(0.5)) / 5.0;
        assert!((found.loss.mean - expected).abs() < 1e-6, "{found:?}");
        assert_eq!(found.accuracy.mean, 0.8);
        assert!((found.accuracy.std_error.unwrap() - (0.8f64 * 0.2 / 4.0).sqrt()).abs() < 1e-12);
        assert_eq!(found.accuracy.samples, 5);
        assert_eq!((&found.predicted[..], found.largest_class_fraction()), (&[2, 3][..], 0.6));
        let constant = linear(1, 1, &[0.0, 0.0], &[0.5, 0.0]);
        assert_eq!(evaluate(&constant, image_batches(&pictures, &labels, 2)).unwrap().largest_class_fraction(), 1.0);
    }

    #[test]
    fn batches_change_nothing_and_bad_labels_are_refused() {
        let model = linear(1, 2, &[0.3; 12], &[0.0, 0.1, 0.2]);
        let pictures = random_pictures(7, [1, 2, 2]);
        let labels = [0, 1, 2, 0, 1, 2, 0];
        let whole = evaluate(&model, image_batches(&pictures, &labels, 100)).unwrap();
        assert_eq!(image_batches(&pictures, &labels, 3).count(), 3);
        let parts = evaluate(&model, image_batches(&pictures, &labels, 3)).unwrap();
        assert!((whole.loss.mean - parts.loss.mean).abs() < 1e-6 && whole.accuracy == parts.accuracy);
        let refused =
            |labels: &[usize]| evaluate(&model, [(pictures.clone(), labels.to_vec())]).unwrap_err().to_string();
        assert!(refused(&[0, 1]).contains("2 labels for 7 inputs"));
        assert!(refused(&[0, 1, 2, 3, 0, 0, 0]).contains("label 3"));
        assert!(evaluate(&model, []).unwrap_err().to_string().contains("at least one batch"));
    }
}
