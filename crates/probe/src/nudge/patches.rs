//! Patch sensitivity (Section 5 of Vasudeva et al. 2024): one patch of an image is touched, the label changes.

use pudica_data::Stream;

use super::Nudge;
use crate::ProbeError;

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
    /// Patches of `side` x `side` pixels of images \[channels, height, width\], whose height and width they must divide.
    pub fn new([channels, height, width]: [usize; 3], side: usize) -> Result<Self, ProbeError> {
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

    /// Where the values of a patch lie in an image: channel after channel, row after row.
    pub fn places(&self, patch: usize) -> impl Iterator<Item = usize> {
        let side = self.side;
        self.rows(patch).flat_map(move |start| start..start + side)
    }

    /// `image` with every value of one patch changed.
    pub(crate) fn changed(&self, image: &[f32], patch: usize, mut change: impl FnMut(f32) -> f32) -> Vec<f32> {
        let mut touched = image.to_vec();
        self.places(patch).for_each(|at| touched[at] = change(touched[at]));
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

    fn apply(&self, image: &Vec<f32>, patch: usize, noise: &mut Stream) -> Vec<f32> {
        let deviation = self.variance.sqrt();
        self.grid.changed(image, patch, |value| value + (deviation * noise.normal()) as f32)
    }
}

/// Replaces one patch by uniform values from `low` to `high`: a "uniformly random patch", as Section 5 calls what Definition 4.3 (which
/// replaces a token) would do to an image. The paper's nudge for MNIST; what takes a patch's place it does not say, this is our reading of it.
#[derive(Debug, Clone, Copy)]
pub struct PatchReplacement {
    /// The patches.
    pub grid: PatchGrid,
    /// The least value of a pixel.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Nudge<Vec<f32>> for PatchReplacement {
    fn sites(&self, _: &Vec<f32>) -> usize {
        self.grid.count()
    }

    fn apply(&self, image: &Vec<f32>, patch: usize, noise: &mut Stream) -> Vec<f32> {
        self.grid.changed(image, patch, |_| noise.uniform_f32(self.low, self.high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of an image whose patch was changed, as (channel, row, column).
    fn touched_places(grid: &PatchGrid, shape: [usize; 3], patch: usize) -> Vec<(usize, usize, usize)> {
        let [channels, height, width] = shape;
        let changed = grid.changed(&vec![0.0; channels * height * width], patch, |_| 1.0);
        let places = (0..changed.len()).filter(|at| changed[*at] == 1.0);
        places.map(|at| (at / (height * width), at / width % height, at % width)).collect()
    }

    #[test]
    fn patches_are_contiguous_squares_that_cover_the_image_once() {
        let shape = [3, 4, 6];
        let grid = PatchGrid::new(shape, 2).unwrap();
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
            assert!(PatchGrid::new(shape, side).is_err());
        }
    }
}
