//! Adversarial evaluation: pixels moved a little, against the network.

use pudica_data::Stream;
use pudica_nn::classifier::{Classifier, Model, predicted};
use pudica_nn::vision::{ImageBatch, VisionConfig};
use serde::{Deserialize, Serialize};

use super::{check_labels, length, positive};
use crate::{Estimate, Moments, ProbeError};

/// How a perturbation of an image is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// L-infinity: the largest change of a pixel.
    Linf,
    /// L2: the root of the sum of squared changes.
    L2,
}

/// An attack by gradient ascent on the cross-entropy, within a ball around each image and the range of pixels. All lengths are in the units
/// of the images as the network takes them: of pixels normalised from 0..1 to -1..1, 8/255 is 16/255 here.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Attack {
    /// What the ball is a ball of.
    pub norm: Norm,
    /// Its radius.
    pub epsilon: f64,
    /// Gradient steps.
    pub steps: usize,
    /// Length of each step, in the same norm.
    pub step_size: f64,
    /// Whether to start at a uniform point of the ball instead of its middle.
    pub random_start: bool,
    /// Least and largest value of a pixel.
    pub range: (f32, f32),
}

impl Attack {
    /// One step to the edge of the ball: the fast gradient (sign) method of Goodfellow et al. 2015.
    pub fn fgsm(norm: Norm, epsilon: f64) -> Self {
        Self { norm, epsilon, steps: 1, step_size: epsilon, random_start: false, range: (-1.0, 1.0) }
    }

    /// Projected gradient ascent of Madry et al. 2018: a random start, then steps of 2.5 epsilon / steps, long enough to reach any point
    /// of the ball from any other.
    pub fn pgd(norm: Norm, epsilon: f64, steps: usize) -> Self {
        let step_size = 2.5 * epsilon / steps.max(1) as f64;
        Self { norm, epsilon, steps, step_size, random_start: true, range: (-1.0, 1.0) }
    }

    fn check(&self) -> Result<(), ProbeError> {
        positive("measure.attack.epsilon", self.epsilon)?;
        positive("measure.attack.step_size", self.step_size)?;
        ProbeError::at_least_one("measure.attack.steps", self.steps)?;
        let (low, high) = self.range;
        match low < high {
            true => Ok(()),
            false => {
                let problem = format!("pixels cannot range from {low} to {high}");
                Err(ProbeError::Setting { setting: "measure.attack.range", problem })
            }
        }
    }

    /// A uniform point of the ball.
    pub fn start(&self, image: &mut [f32], noise: &mut Stream) {
        let count = image.len();
        match self.norm {
            Norm::Linf => image.iter_mut().for_each(|x| *x += noise.uniform_f32(-self.epsilon, self.epsilon)),
            Norm::L2 => {
                // A uniform direction, and the n-th root of a uniform number as its length.
                let direction: Vec<f64> = (0..count).map(|_| noise.normal()).collect();
                let reach = self.epsilon * noise.uniform().powf(1.0 / count as f64);
                let scale = reach / length(direction.iter().copied());
                image.iter_mut().zip(direction).for_each(|(x, along)| *x += (scale * along) as f32);
            }
        }
    }

    /// The step of this length that raises the loss most to first order. Where the gradient is zero there is none.
    pub fn step(&self, image: &mut [f32], gradient: &[f32]) {
        match self.norm {
            Norm::Linf => image.iter_mut().zip(gradient).for_each(|(x, g)| {
                let sign = f64::from(i8::from(*g > 0.0) - i8::from(*g < 0.0));
                *x += (self.step_size * sign) as f32;
            }),
            Norm::L2 => {
                let norm = length(gradient.iter().map(|g| f64::from(*g)));
                if norm > 0.0 {
                    image
                        .iter_mut()
                        .zip(gradient)
                        .for_each(|(x, g)| *x += (self.step_size / norm * f64::from(*g)) as f32);
                }
            }
        }
    }

    /// Back into the ball around `original`, then into the range; the second never leaves the ball, as the original is in the range. (One
    /// that is not may stay as far out as it was.)
    pub fn project(&self, image: &mut [f32], original: &[f32]) {
        let scale = match self.norm {
            Norm::Linf => 1.0,
            Norm::L2 => {
                let far = length(image.iter().zip(original).map(|(x, from)| f64::from(x - from)));
                if far > self.epsilon { self.epsilon / far } else { 1.0 }
            }
        };
        for (x, from) in image.iter_mut().zip(original) {
            let mut shift = scale * f64::from(*x - from);
            if self.norm == Norm::Linf {
                shift = shift.clamp(-self.epsilon, self.epsilon);
            }
            *x = (from + shift as f32).clamp(self.range.0.min(*from), self.range.1.max(*from));
        }
    }
}

/// What an attack leaves of the accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Attacked {
    /// The accuracy without it.
    pub clean: Estimate,
    /// The part of images that are classified rightly both without it and with it.
    pub robust: Estimate,
}

/// Attack every image of batches of images and their classes. Standard errors are over images (the binomial ones).
pub fn accuracy_under_attack(
    model: &Model<VisionConfig>,
    batches: impl IntoIterator<Item = (ImageBatch, Vec<usize>)>,
    attack: &Attack,
    seed: u64,
) -> Result<Attacked, ProbeError> {
    let classes = model.classifier().classes();
    let (mut clean, mut robust, mut first) = (Moments::default(), Moments::default(), 0);
    for (pictures, labels) in batches {
        check_labels(&labels, pictures.count, classes)?;
        let before = predicted(&model.predict(&pictures)?, classes);
        let moved = attacked(model, &pictures, &labels, attack, seed, first)?;
        let after = predicted(&model.predict(&moved)?, classes);
        for ((before, after), label) in before.iter().zip(&after).zip(&labels) {
            clean.add(f64::from(before == label));
            robust.add(f64::from(before == label && after == label));
        }
        first += pictures.count as u64;
    }
    match clean.count() {
        0 => Err(ProbeError::NoBatches("an attack")),
        _ => Ok(Attacked { clean: Estimate::sampled(&clean), robust: Estimate::sampled(&robust) }),
    }
}

/// The images an attack makes of these. `first` is the number of the first of them in its set: image i starts at a point named by (seed,
/// "attack", first + i).
pub fn attacked(
    model: &Model<VisionConfig>,
    pictures: &ImageBatch,
    labels: &[usize],
    attack: &Attack,
    seed: u64,
    first: u64,
) -> Result<ImageBatch, ProbeError> {
    attack.check()?;
    let pixels = pictures.pixels();
    let mut moved = pictures.clone();
    let originals = || pictures.values.chunks_exact(pixels);
    if attack.random_start {
        for ((index, image), original) in (first..).zip(moved.values.chunks_exact_mut(pixels)).zip(originals()) {
            attack.start(image, &mut Stream::new(seed, "attack", index));
            attack.project(image, original);
        }
    }
    for _ in 0..attack.steps {
        let gradient = model.input_gradient(&moved, labels)?;
        let images = moved.values.chunks_exact_mut(pixels).zip(gradient.chunks_exact(pixels));
        for ((image, gradient), original) in images.zip(originals()) {
            attack.step(image, gradient);
            attack.project(image, original);
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::super::image_batches;
    use super::super::testing::{linear, perceptron, random_pictures};
    use super::*;
    use pudica_nn::vision::ImageShape;

    const SHAPE: [usize; 3] = [1, 4, 4];

    fn weights() -> Vec<f32> {
        (0..16).map(|i| 0.1 * (i as f32 - 6.3)).collect()
    }

    /// Scores (0, w . x): the margin.
    fn margins(pictures: &ImageBatch) -> Vec<f64> {
        let weights = weights();
        let margin = |image: &[f32]| image.iter().zip(&weights).map(|(x, w)| f64::from(x * w)).sum();
        pictures.values.chunks_exact(16).map(margin).collect()
    }

    fn linear_model() -> Model<VisionConfig> {
        linear(1, 4, &[vec![0.0; 16], weights()].concat(), &[0.0, 0.0])
    }

    /// A linear margin falls by epsilon |w|_1 (L-infinity) or epsilon |w|_2 (L2), whatever the image: in one step, and for PGD but for
    /// what is left of its random start (2.5 radii of steps turn it to within exp(-2.5) of the best direction, a loss of 0.3 %).
    #[test]
    fn a_linear_margin_falls_by_the_dual_norm() {
        let (model, pictures) = (linear_model(), random_pictures(20, SHAPE));
        let pictures = ImageBatch { values: pictures.values.iter().map(|x| 0.5 * x).collect(), ..pictures };
        let l1: f64 = weights().iter().map(|w| f64::from(w.abs())).sum();
        let l2 = length(weights().into_iter().map(f64::from));
        for (norm, dual) in [(Norm::Linf, l1), (Norm::L2, l2)] {
            for (attack, tolerance) in [(Attack::fgsm(norm, 0.2), 1e-5), (Attack::pgd(norm, 0.2, 40), 1e-2)] {
                let moved = attacked(&model, &pictures, &[1; 20], &attack, 0, 0).unwrap();
                for (before, after) in margins(&pictures).iter().zip(margins(&moved)) {
                    assert!((before - after - 0.2 * dual).abs() < tolerance * dual, "{attack:?}: {before} {after}");
                }
            }
        }
    }

    /// So that its accuracy under attack is known image by image.
    #[test]
    fn a_linear_models_robust_accuracy_is_known() {
        let (model, pictures) = (linear_model(), random_pictures(300, SHAPE));
        let pictures = ImageBatch { values: pictures.values.iter().map(|x| 0.5 * x).collect(), ..pictures };
        let l1: f64 = weights().iter().map(|w| f64::from(w.abs())).sum();
        let epsilon = 0.05;
        let found = accuracy_under_attack(
            &model,
            image_batches(&pictures, &[1; 300], 64),
            &Attack::fgsm(Norm::Linf, epsilon),
            0,
        );
        let found = found.unwrap();
        let share = |least: f64| margins(&pictures).iter().filter(|margin| **margin > least).count() as f64 / 300.0;
        assert!((found.clean.mean - share(0.0)).abs() < 1e-9 && (found.robust.mean - share(epsilon * l1)).abs() < 1e-9);
        let p = found.robust.mean;
        assert!(p < found.clean.mean && p > 0.05);
        assert!((found.robust.std_error.unwrap() - (p * (1.0 - p) / 299.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn pgd_is_at_least_as_strong_and_never_leaves_the_ball() {
        let model = perceptron(ImageShape { channels: 1, side: 4, classes: 3 }, 32, 5);
        let pictures = random_pictures(200, SHAPE);
        let labels = predicted(&model.predict(&pictures).unwrap(), 3);
        for (norm, epsilon) in [(Norm::Linf, 0.08), (Norm::L2, 0.3)] {
            let batches = || image_batches(&pictures, &labels, 50);
            let fast = accuracy_under_attack(&model, batches(), &Attack::fgsm(norm, epsilon), 1).unwrap();
            let slow = accuracy_under_attack(&model, batches(), &Attack::pgd(norm, epsilon, 20), 1).unwrap();
            assert!(fast.clean.mean == 1.0 && fast.robust.mean < 0.95, "{fast:?}");
            assert!(slow.robust.mean <= fast.robust.mean, "{slow:?} {fast:?}");
            for attack in [Attack::fgsm(norm, epsilon), Attack::pgd(norm, epsilon, 7)] {
                let moved = attacked(&model, &pictures, &labels, &attack, 1, 0).unwrap();
                assert!(moved.values.iter().all(|x| (-1.0..=1.0).contains(x)));
                for (image, original) in moved.values.chunks(16).zip(pictures.values.chunks(16)) {
                    let shifts = image.iter().zip(original).map(|(x, from)| f64::from(x - from));
                    let far = match norm {
                        Norm::Linf => shifts.map(f64::abs).fold(0.0, f64::max),
                        Norm::L2 => length(shifts),
                    };
                    assert!(far <= epsilon * (1.0 + 1e-5) && far > 0.0, "{far}");
                }
            }
        }
    }

    #[test]
    fn starts_are_named_by_image_not_by_batch() {
        let (model, pictures) = (linear_model(), random_pictures(6, SHAPE));
        let attack = Attack::pgd(Norm::L2, 0.5, 1);
        let all = attacked(&model, &pictures, &[1; 6], &attack, 3, 0).unwrap();
        let last = pictures.select(&[4, 5]).unwrap();
        let part = attacked(&model, &last, &[1; 2], &attack, 3, 4).unwrap();
        assert_eq!(all.values[64..], part.values);
    }

    /// The distance of a uniform point of a ball of dimension 16 from its middle has the mean 16/17 of the radius.
    #[test]
    fn random_starts_fill_the_ball() {
        let attack = Attack::pgd(Norm::L2, 1.0, 1);
        let far: Moments = (0..2000)
            .map(|index| {
                let mut image = vec![0.0; 16];
                attack.start(&mut image, &mut Stream::new(0, "test", index));
                length(image.into_iter().map(f64::from))
            })
            .collect();
        assert!((far.mean() - 16.0 / 17.0).abs() < 4.0 * far.std_error().unwrap());
    }

    #[test]
    fn senseless_attacks_are_refused() {
        let (model, pictures) = (linear_model(), random_pictures(2, SHAPE));
        let fine = Attack::fgsm(Norm::Linf, 0.1);
        let refused = |bad: Attack| accuracy_under_attack(&model, [(pictures.clone(), vec![0, 0])], &bad, 0).is_err();
        assert!(refused(Attack { epsilon: 0.0, ..fine }));
        assert!(refused(Attack { steps: 0, ..fine }));
        assert!(refused(Attack { range: (1.0, -1.0), ..fine }));
        assert!(accuracy_under_attack(&model, [(pictures.clone(), vec![0])], &fine, 0).is_err());
        assert!(accuracy_under_attack(&model, [], &fine, 0).is_err());
        assert!(!refused(fine));
    }
}
