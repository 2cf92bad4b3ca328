//! Patch sensitivity (Section 5 of Vasudeva et al. 2024): one patch of an image is touched, the label changes.

use pudica_data::Stream;
use pudica_nn::classifier::{Classifier, Model, predicted};
use pudica_nn::vision::ImageBatch;

use crate::{LabelDiffers, Nudge, Plan, ProbeError, Profile, respond};

/// Images \[channels, height, width\] cut into square patches that touch each other and do not overlap: the sites of a nudge, row by row
/// from the top left corner. A patch goes through all channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchGrid {
    channels: usize,
    height: usize,
    width: usize,
    side: usize,
}

impl PatchGrid {
    /// Patches of `side` x `side` pixels, which must divide the images' height and width.
    pub fn new(pictures: &ImageBatch, side: usize) -> Result<Self, ProbeError> {
        let ImageBatch { channels, height, width, .. } = *pictures;
        if side == 0 || height % side != 0 || width % side != 0 {
            let problem = format!("images of {height} x {width} pixels cannot be cut into patches of {side} x {side}");
            return Err(ProbeError::Setting { setting: "measure.patch", problem });
        }
        Ok(Self { channels, height, width, side })
    }

    /// Rows and columns of patches: the shape of a map of them.
    pub fn shape(&self) -> (usize, usize) {
        (self.height / self.side, self.width / self.side)
    }

    /// How many patches there are.
    pub fn count(&self) -> usize {
        self.shape().0 * self.shape().1
    }

    /// Where the rows of a patch start in an image, over all channels; each is `side` values long.
    fn rows(&self, patch: usize) -> impl Iterator<Item = usize> {
        let Self { channels, height, width, side } = *self;
        let (top, left) = (patch / (width / side) * side, patch % (width / side) * side);
        (0..channels).flat_map(move |channel| (top..top + side).map(move |row| (channel * height + row) * width + left))
    }

    /// `picture` with every value of one patch changed; `change` is told the value's place in the image.
    fn changed(&self, picture: &[f32], patch: usize, mut change: impl FnMut(usize, f32) -> f32) -> Vec<f32> {
        let mut touched = picture.to_vec();
        for start in self.rows(patch) {
            let row = &mut touched[start..start + self.side];
            (start..).zip(row).for_each(|(at, value)| *value = change(at, *value));
        }
        touched
    }
}

/// Adds N(0, variance) to every value of one patch: Section 5's nudge. The variance is in the units of the images as the network takes
/// them (normalised). The paper: 5 for Fashion-MNIST, 1 for CIFAR-10 and SVHN.
#[derive(Debug, Clone, Copy)]
pub struct PatchNoise {
    /// The patches.
    pub grid: PatchGrid,
    /// sigma^2
    pub variance: f64,
}

impl Nudge<Vec<f32>> for PatchNoise {
    fn sites(&self, _: &Vec<f32>) -> usize {
        self.grid.count()
    }

    fn touch(&self, picture: &Vec<f32>, patch: usize, noise: &mut Stream) -> Vec<f32> {
        let deviation = self.variance.sqrt();
        self.grid.changed(picture, patch, |_, value| value + (deviation * noise.normal()) as f32)
    }
}

/// Replaces one patch, as Definition 4.3 replaces a token: the paper's nudge for MNIST.
#[derive(Debug, Clone, Copy)]
pub struct PatchReplacement<'a> {
    /// The patches.
    pub grid: PatchGrid,
    /// What takes a patch's place.
    pub by: Replacement<'a>,
}

/// What takes a patch's place. The paper does not say; the first is our reading of it.
#[derive(Debug, Clone, Copy)]
pub enum Replacement<'a> {
    /// Uniform values from `low` to `high`, the range of normalised pixels: a "uniformly random patch", as Section 5 calls what
    /// Definition 4.3 would do to an image.
    Uniform {
        /// The least value of a pixel.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// The patch at the same place of a uniformly chosen image of these, at least one: the vocabulary is what the data set shows there.
    SamePlaceOf(&'a ImageBatch),
}

impl Nudge<Vec<f32>> for PatchReplacement<'_> {
    fn sites(&self, _: &Vec<f32>) -> usize {
        self.grid.count()
    }

    fn touch(&self, picture: &Vec<f32>, patch: usize, noise: &mut Stream) -> Vec<f32> {
        match self.by {
            Replacement::Uniform { low, high } => {
                self.grid.changed(picture, patch, |_, _| noise.uniform_f32(low, high))
            }
            Replacement::SamePlaceOf(pictures) => {
                let first = noise.below(pictures.count.max(1) as u64) as usize * pictures.pixels();
                self.grid.changed(picture, patch, |at, _| pictures.values[first + at])
            }
        }
    }
}

/// How often the predicted class changes when a patch of an image is touched: in the mean over images and patches ([`Profile::mean`], the
/// paper's sensitivity), and for each patch ([`Profile::by_site`], a map in the shape of [`PatchGrid::shape`]).
///
/// `plan.pack` images go through the network at once, and `watch` is told how many before they do: what it fails with ends the measure. The
/// nudge must be of a grid for these images.
pub fn picture_sensitivity<C: Classifier<Input = ImageBatch>, E: From<ProbeError>>(
    model: &Model<C>,
    pictures: &ImageBatch,
    nudge: &(impl Nudge<Vec<f32>> + Sync),
    plan: &Plan,
    mut watch: impl FnMut(usize) -> Result<(), E>,
) -> Result<Profile, E> {
    ProbeError::at_least_one("measure.draws", plan.draws)?;
    ProbeError::at_least_one("measure.images", pictures.count)?;
    let classes = model.classifier().classes();
    let one_by_one = pictures.values.chunks_exact(pictures.pixels()).map(|picture| Ok(picture.to_vec()));
    let labels = |some: &[Vec<f32>]| {
        watch(some.len())?;
        let batch = ImageBatch { values: some.concat(), count: some.len(), ..*pictures };
        Ok::<_, E>(predicted(&model.predict(&batch).map_err(ProbeError::from)?, classes))
    };
    Ok(respond(one_by_one, labels, nudge, &[&LabelDiffers], plan)?.remove(0))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{linear, random_pictures};
    use super::*;
    use pudica_nn::vision::VisionConfig;

    fn measure(
        model: &Model<VisionConfig>,
        pictures: &ImageBatch,
        nudge: &(impl Nudge<Vec<f32>> + Sync),
        plan: &Plan,
    ) -> Result<Profile, ProbeError> {
        picture_sensitivity(model, pictures, nudge, plan, |_| Ok(()))
    }

    const PLAN: Plan = Plan { draws: 40, pack: 64, seed: 0, purpose: "test" };

    /// Values of an image whose patch was changed, as (channel, row, column).
    fn touched_places(grid: &PatchGrid, shape: [usize; 3], patch: usize) -> Vec<(usize, usize, usize)> {
        let [channels, height, width] = shape;
        let changed = grid.changed(&vec![0.0; channels * height * width], patch, |_, _| 1.0);
        let places = (0..changed.len()).filter(|at| changed[*at] == 1.0);
        places.map(|at| (at / (height * width), at / width % height, at % width)).collect()
    }

    #[test]
    fn patches_are_contiguous_squares_that_cover_the_image_once() {
        let shape = [3, 4, 6];
        let grid = PatchGrid::new(&random_pictures(1, shape), 2).unwrap();
        assert_eq!((grid.shape(), grid.count()), ((2, 3), 6));
        let mut all = Vec::new();
        for patch in 0..6 {
            let (top, left) = (patch / 3 * 2, patch % 3 * 2);
            let places = touched_places(&grid, shape, patch);
            assert_eq!(places.len(), 3 * 4);
            assert!(places.iter().all(|(_, row, column)| row / 2 * 2 == top && column / 2 * 2 == left));
            all.extend(places);
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 3 * 4 * 6);
        for side in [0, 3, 4] {
            assert!(PatchGrid::new(&random_pictures(1, shape), side).is_err());
        }
    }

    /// Scores (0, sum of the first patch + c): noise of variance v on a patch of k pixels moves the margin by N(0, k v w^2) if it is the
    /// first patch, and not at all otherwise. The label changes with probability Phi(-c / sqrt(k v)).
    #[test]
    fn a_linear_models_patch_sensitivity_is_known() {
        let (side, images) = (2, ImageBatch::new(vec![0.0; 300 * 16], [1, 4, 4]).unwrap());
        let grid = PatchGrid::new(&images, side).unwrap();
        let weight: Vec<f32> = vec![0.0; 16].into_iter().chain(grid.changed(&[0.0; 16], 0, |_, _| 1.0)).collect();
        let model = linear(1, 4, &weight, &[0.0, 2.0]);
        // sigma of the margin = sqrt(4 * 4) = 4, so that the chance is Phi(-1/2) = 0.308538.
        let profile = measure(&model, &images, &PatchNoise { grid, variance: 4.0 }, &PLAN).unwrap();
        let error = profile.by_site[0].std_error().unwrap();
        assert!((profile.by_site[0].mean() - 0.308538).abs() < 4.0 * error, "{profile:?}");
        assert!(error < 0.005);
        assert!(profile.by_site[1..].iter().all(|site| site.mean() == 0.0));
        assert!((profile.mean.mean - profile.by_site[0].mean() / 4.0).abs() < 1e-12);
        assert!((profile.mean.mean - 0.308538 / 4.0).abs() < 4.0 * profile.mean.std_error.unwrap());
    }

    /// Scores (0, sum of the first patch) on one image of ones: a uniform patch from -1 to 1 turns the sign half of the time; a patch from
    /// images of which one in four is negative, one time in four.
    #[test]
    fn replacements_are_drawn_from_what_is_said() {
        let ones = ImageBatch::new(vec![1.0; 200 * 16], [1, 4, 4]).unwrap();
        let grid = PatchGrid::new(&ones, 2).unwrap();
        let weight: Vec<f32> = vec![0.0; 16].into_iter().chain(grid.changed(&[0.0; 16], 3, |_, _| 1.0)).collect();
        let model = linear(1, 4, &weight, &[0.0, 0.0]);
        let replaced = |by| measure(&model, &ones, &PatchReplacement { grid, by }, &PLAN).unwrap();
        let uniform = replaced(Replacement::Uniform { low: -1.0, high: 1.0 });
        assert!((uniform.by_site[3].mean() - 0.5).abs() < 0.03, "{:?}", uniform.by_site);
        assert_eq!(uniform.by_site[0].mean(), 0.0);
        let mut values = vec![0.5; 64];
        values[..16].fill(-0.5);
        let others = ImageBatch::new(values, [1, 4, 4]).unwrap();
        let chosen = replaced(Replacement::SamePlaceOf(&others));
        assert!((chosen.by_site[3].mean() - 0.25).abs() < 0.03, "{:?}", chosen.by_site);
    }

    #[test]
    fn nothing_to_touch_is_refused() {
        let model = linear(1, 2, &[0.0; 8], &[0.0, 0.0]);
        let images = random_pictures(2, [1, 2, 2]);
        let nudge = PatchNoise { grid: PatchGrid::new(&images, 1).unwrap(), variance: 1.0 };
        assert!(measure(&model, &images, &nudge, &Plan { draws: 0, ..PLAN }).is_err());
        let mut seen = 0;
        let counting = |made| {
            seen += made;
            if seen > 5 { Err(ProbeError::NoBatches("a test that was ended")) } else { Ok(()) }
        };
        let ended = picture_sensitivity(&model, &images, &nudge, &Plan { pack: 4, ..PLAN }, counting);
        assert!(ended.unwrap_err().to_string().contains("ended") && seen == 6, "two images, then four touches of them");
        let none = ImageBatch::new(vec![], [1, 2, 2]).unwrap();
        assert!(measure(&model, &none, &nudge, &PLAN).is_err());
    }
}
