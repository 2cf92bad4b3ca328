//! Labelled images and the files they come in.
//!
//! - [`Images`]: pixels and labels in memory, whatever the file was.
//! - [`read_idx`], [`read_cifar`], [`read_svhn`], [`read_npy`], [`read_cifar10_c`], [`read_folder`]: one reader for each format, [`read_any`] for a path
//!   whose format its name and first bytes tell.
//! - [`class_folders`], [`read_picture`], [`fitted`]: pictures one at a time, cut and resized.
//! - [`OwnImages`]: a user's own folders, with pictures of any sizes.
//! - [`DATA_SETS`]: the known data sets, their files and published checksums.
//! - [`ContactSheet`]: many images as one PNG, to look at.
//!
//! Every reader trusts nothing: a size that a file claims is compared with what the file can hold before memory is asked for, and
//! whatever is wrong is told with the file's name and the place in it.

mod any;
mod bytes;
mod catalogue;
mod checksum;
mod cifar;
mod cifar10_c;
mod folder;
mod idx;
mod mat;
mod npy;
mod orientation;
mod own;
mod picture;
mod resize;
mod sheet;
mod svhn;

pub use any::read_any;
#[cfg(feature = "text")]
pub(crate) use bytes::Bytes;
pub use catalogue::{Checked, DATA_SETS, DataSet, Loaded, Verdict};
pub use checksum::md5_of_content;
pub use cifar::read_cifar;
pub use cifar10_c::read_cifar10_c;
pub use folder::{ClassFolders, FolderImages, class_folders, in_colour, in_grey, pictures_in, read_folder};
pub use idx::read_idx;
pub use npy::{read_npy, write_npy};
pub use own::OwnImages;
pub use picture::{picture_shape, read_picture};
pub use resize::fitted;
pub use sheet::{ContactSheet, write_png};
pub use svhn::read_svhn;

/// No reader makes more pixels than this: the largest set read here, SVHN's extra split, has 1.6 GB.
pub const MAX_PIXELS: u64 = 1 << 31;

/// Height, width and channels, the same for all images of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// 1 (grey) or 3 (red, green, blue).
    pub channels: usize,
}

impl Shape {
    /// Bytes of one image.
    pub fn pixels(self) -> usize {
        self.height * self.width * self.channels
    }

    /// Sizes a file claims, if `count` images of them are believable.
    fn checked(count: u64, height: u64, width: u64, channels: u64) -> Result<Self, String> {
        let total = [height, width, channels].iter().try_fold(count, |product, size| product.checked_mul(*size));
        match total {
            _ if count == 0 => Err("it holds no images".into()),
            _ if height == 0 || width == 0 => Err(format!("images of {height} x {width} pixels are empty")),
            _ if channels != 1 && channels != 3 => {
                Err(format!("images of {channels} channels are not read here: 1 (grey) and 3 (colour) are"))
            }
            Some(total) if total <= MAX_PIXELS => {
                Ok(Self { height: height as usize, width: width as usize, channels: channels as usize })
            }
            _ => Err(format!(
                "{count} images of {height} x {width} x {channels} are more than the {MAX_PIXELS} bytes read here"
            )),
        }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} x {} x {}", self.height, self.width, self.channels)
    }
}

/// Labelled images of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    shape: Shape,
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl Images {
    /// Pixels \[count, height, width, channels\] and one label for each image; `None` where their numbers do not agree.
    pub fn new(shape: Shape, pixels: Vec<u8>, labels: Vec<u8>) -> Option<Self> {
        (Some(pixels.len()) == labels.len().checked_mul(shape.pixels())).then_some(Self { shape, pixels, labels })
    }

    /// How many images there are.
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// Height, width and channels of each.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// All pixels \[count, height, width, channels\].
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The class of each image.
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// Pixels \[height, width, channels\] of one image, `index` < [`count`](Self::count).
    pub fn image(&self, index: usize) -> &[u8] {
        &self.pixels[index * self.shape.pixels()..][..self.shape.pixels()]
    }

    /// The images of these indices, in this order.
    pub fn select(&self, indices: impl IntoIterator<Item = usize>) -> Self {
        let mut chosen = Self { shape: self.shape, pixels: Vec::new(), labels: Vec::new() };
        for index in indices {
            chosen.pixels.extend_from_slice(self.image(index));
            chosen.labels.push(self.labels[index]);
        }
        chosen
    }

    /// How many images have each label, from 0 to the largest there is.
    pub fn label_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.labels.iter().max().map_or(0, |largest| usize::from(*largest) + 1)];
        self.labels.iter().for_each(|label| counts[usize::from(*label)] += 1);
        counts
    }

    /// Mean and standard deviation of each channel over all pixels, of values 0 to 1.
    pub fn channel_statistics(&self) -> Vec<(f64, f64)> {
        let of_channel = |channel: usize| {
            // Exact: sums of squares of bytes fit u64 for 2^48 pixels.
            let values = self.pixels.iter().skip(channel).step_by(self.shape.channels).map(|byte| u64::from(*byte));
            let (count, sum, squares) =
                values.fold((0u64, 0u64, 0u64), |(n, sum, squares), v| (n + 1, sum + v, squares + v * v));
            let mean = sum as f64 / count as f64;
            (mean / 255.0, (squares as f64 / count as f64 - mean * mean).max(0.0).sqrt() / 255.0)
        };
        if self.pixels.is_empty() { Vec::new() } else { (0..self.shape.channels).map(of_channel).collect() }
    }

    /// Adds the images of another set; false, and nothing done, where the shapes differ.
    pub fn append(&mut self, other: &Self) -> bool {
        let same = self.shape == other.shape;
        if same {
            self.pixels.extend_from_slice(&other.pixels);
            self.labels.extend_from_slice(&other.labels);
        }
        same
    }
}
