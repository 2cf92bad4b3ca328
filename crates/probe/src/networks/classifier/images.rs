//! Patch sensitivity (Section 5 of Vasudeva et al. 2024): one patch of an image is touched, the label changes.

use pudica_nn::classifier::{Classifier, Model, predicted};
use pudica_nn::vision::ImageBatch;

use crate::{Budget, LabelDiffers, Nudge, ProbeError, Profile, respond};

/// How often the predicted class changes when a patch of an image is touched: in the mean over images and patches ([`Profile::mean`], the
/// paper's sensitivity), and for each patch ([`Profile::by_site`], a map in the shape of [`crate::PatchGrid::shape`]).
///
/// `budget.batch` images go through the network at once, and `watch` is told how many before they do: what it fails with ends the measure.
/// The nudge must be of a grid for these images.
pub fn image_sensitivity<C: Classifier<Input = ImageBatch>, E: From<ProbeError>>(
    model: &Model<C>,
    images: &ImageBatch,
    nudge: &dyn Nudge<Vec<f32>>,
    budget: &Budget,
    mut watch: impl FnMut(usize) -> Result<(), E>,
) -> Result<Profile, E> {
    ProbeError::at_least_one("measure.draws", budget.draws)?;
    ProbeError::at_least_one("measure.images", images.count)?;
    let classes = model.classifier().classes();
    let one_by_one = images.values.chunks_exact(images.pixels()).map(<[f32]>::to_vec);
    let mut labels = |some: &[Vec<f32>]| {
        watch(some.len())?;
        let batch = ImageBatch { values: some.concat(), count: some.len(), ..*images };
        Ok::<_, E>(predicted(&model.predict(&batch).map_err(ProbeError::from)?, classes))
    };
    Ok(respond(&mut labels, one_by_one, nudge, &[&LabelDiffers], budget)?.remove(0))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{linear, random_pictures};
    use super::*;
    use crate::{PatchGrid, PatchNoise, PatchReplacement};
    use pudica_nn::vision::VisionConfig;

    fn measure(
        model: &Model<VisionConfig>,
        pictures: &ImageBatch,
        nudge: &dyn Nudge<Vec<f32>>,
        budget: &Budget,
    ) -> Result<Profile, ProbeError> {
        image_sensitivity(model, pictures, nudge, budget, |_| Ok(()))
    }

    const BUDGET: Budget = Budget::new(40, 64, 0, "test");

    /// Scores (0, sum of the first patch + c): noise of variance v on a patch of k pixels moves the margin by N(0, k v w^2) if it is the
    /// first patch, and not at all otherwise. The label changes with probability Phi(-c / sqrt(k v)).
    #[test]
    fn a_linear_models_patch_sensitivity_is_known() {
        let (side, images) = (2, ImageBatch::new(vec![0.0; 300 * 16], [1, 4, 4]).unwrap());
        let grid = PatchGrid::new([1, 4, 4], side).unwrap();
        let weight: Vec<f32> = vec![0.0; 16].into_iter().chain(grid.changed(&[0.0; 16], 0, |_| 1.0)).collect();
        let model = linear(1, 4, &weight, &[0.0, 2.0]);
        // sigma of the margin = sqrt(4 * 4) = 4, so that the chance is Phi(-1/2) = 0.308538.
        let profile = measure(&model, &images, &PatchNoise { grid, variance: 4.0 }, &BUDGET).unwrap();
        let error = profile.by_site[0].std_error().unwrap();
        assert!((profile.by_site[0].mean() - 0.308538).abs() < 4.0 * error, "{profile:?}");
        assert!(error < 0.005);
        assert!(profile.by_site[1..].iter().all(|site| site.mean() == 0.0));
        assert!((profile.mean.mean - profile.by_site[0].mean() / 4.0).abs() < 1e-12);
        assert!((profile.mean.mean - 0.308538 / 4.0).abs() < 4.0 * profile.mean.std_error.unwrap());
    }

    /// Scores (0, sum of the last patch) on one image of ones: a uniform patch from -1 to 1 turns the sign half of the time.
    #[test]
    fn replacements_are_drawn_from_what_is_said() {
        let ones = ImageBatch::new(vec![1.0; 200 * 16], [1, 4, 4]).unwrap();
        let grid = PatchGrid::new([1, 4, 4], 2).unwrap();
        let weight: Vec<f32> = vec![0.0; 16].into_iter().chain(grid.changed(&[0.0; 16], 3, |_| 1.0)).collect();
        let model = linear(1, 4, &weight, &[0.0, 0.0]);
        let nudge = PatchReplacement { grid, low: -1.0, high: 1.0 };
        let uniform = measure(&model, &ones, &nudge, &BUDGET).unwrap();
        assert!((uniform.by_site[3].mean() - 0.5).abs() < 0.03, "{:?}", uniform.by_site);
        assert_eq!(uniform.by_site[0].mean(), 0.0);
    }

    #[test]
    fn nothing_to_touch_is_refused() {
        let model = linear(1, 2, &[0.0; 8], &[0.0, 0.0]);
        let images = random_pictures(2, [1, 2, 2]);
        let nudge = PatchNoise { grid: PatchGrid::new([1, 2, 2], 1).unwrap(), variance: 1.0 };
        assert!(measure(&model, &images, &nudge, &Budget { draws: 0, ..BUDGET }).is_err());
        let mut seen = 0;
        let counting = |made| {
            seen += made;
            if seen > 5 { Err(ProbeError::NoBatches("a test that was ended")) } else { Ok(()) }
        };
        let ended = image_sensitivity(&model, &images, &nudge, &Budget { batch: 4, ..BUDGET }, counting);
        assert!(ended.unwrap_err().to_string().contains("ended") && seen == 6, "two images, then four touches of them");
        let none = ImageBatch::new(vec![], [1, 2, 2]).unwrap();
        assert!(measure(&model, &none, &nudge, &BUDGET).is_err());
    }
}
