//! The corruptions of CIFAR-10-C (Hendrycks & Dietterich 2019), with the severities of its CIFAR script, not those of ImageNet-C.
//!
//! The official files were made without a seed; these are drawn from [`Stream`]s named by seed, corruption, severity and image, so
//! they are the same anywhere, and like the official ones in distribution. A picture is an array \[32, 32, 3\] of values 0 to 1
//! while it is worked on, and is cut to bytes at the end, as the official script does.

mod blur;
mod digital;
mod filters;
mod frost;
mod jpeg;
mod noise;
mod spatter;
mod weather;

pub use frost::FrostPictures;

use crate::Stream;
use crate::images::{Images, Shape};
use pudica_boolean::did_you_mean;

/// Height and width of the pictures these severities were chosen for.
const SIDE: usize = 32;
const SHAPE: Shape = Shape { height: SIDE, width: SIDE, channels: 3 };

/// A corruption of CIFAR-10-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // their names say what they are
pub enum Corruption {
    GaussianNoise,
    ShotNoise,
    ImpulseNoise,
    DefocusBlur,
    GlassBlur,
    MotionBlur,
    ZoomBlur,
    Snow,
    Frost,
    Fog,
    Brightness,
    Contrast,
    ElasticTransform,
    Pixelate,
    JpegCompression,
    SpeckleNoise,
    GaussianBlur,
    Spatter,
    Saturate,
}

use Corruption::*;

impl Corruption {
    /// The fifteen of the benchmark, then the extra ones.
    pub const ALL: [(Self, &'static str); 19] = [
        (GaussianNoise, "gaussian_noise"),
        (ShotNoise, "shot_noise"),
        (ImpulseNoise, "impulse_noise"),
        (DefocusBlur, "defocus_blur"),
        (GlassBlur, "glass_blur"),
        (MotionBlur, "motion_blur"),
        (ZoomBlur, "zoom_blur"),
        (Snow, "snow"),
        (Frost, "frost"),
        (Fog, "fog"),
        (Brightness, "brightness"),
        (Contrast, "contrast"),
        (ElasticTransform, "elastic_transform"),
        (Pixelate, "pixelate"),
        (JpegCompression, "jpeg_compression"),
        (SpeckleNoise, "speckle_noise"),
        (GaussianBlur, "gaussian_blur"),
        (Spatter, "spatter"),
        (Saturate, "saturate"),
    ];

    /// How many of [`ALL`](Self::ALL) make the benchmark's mean error; the others are extra.
    pub const BENCHMARK: usize = 15;

    /// The corruption of this name, which is that of the official `.npy` file.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(corruption, _)| *corruption).ok_or_else(|| {
            let names = Self::ALL.map(|(_, known)| known);
            format!("no corruption is called '{name}'{}; known: {}", did_you_mean(name, names), names.join(", "))
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(corruption, _)| *corruption == self).map_or("", |(_, name)| name)
    }
}

/// Every image of a set corrupted at a severity from 1 to 5; the labels stay. Frost needs its pictures.
pub fn corrupt(
    images: &Images,
    corruption: Corruption,
    severity: usize,
    seed: u64,
    frost: Option<&FrostPictures>,
) -> Result<Images, String> {
    if images.shape() != SHAPE {
        return Err(format!("the severities are those of images of {SHAPE}, these are {}", images.shape()));
    }
    let purpose = format!("corrupt/{}/{severity}", corruption.name());
    let mut pixels = Vec::with_capacity(images.pixels().len());
    for index in 0..images.count() {
        let mut stream = Stream::new(seed, &purpose, index as u64);
        pixels.extend(corrupt_pixels(images.image(index), corruption, severity, &mut stream, frost)?);
    }
    Images::new(SHAPE, pixels, images.labels().to_vec()).ok_or_else(|| "a corruption changed an image's size".into())
}

/// One image \[32, 32, 3\] corrupted at a severity from 1 to 5. Frost needs its pictures.
pub fn corrupt_pixels(
    image: &[u8],
    corruption: Corruption,
    severity: usize,
    stream: &mut Stream,
    frost: Option<&FrostPictures>,
) -> Result<Vec<u8>, String> {
    if image.len() != SHAPE.pixels() {
        return Err(format!("the severities are those of images of {SHAPE}, this one has {} bytes", image.len()));
    }
    if !(1..=5).contains(&severity) {
        return Err(format!("a severity of {severity}; 1 to 5 are defined"));
    }
    let level = severity - 1;
    let picture: Vec<f64> = image.iter().map(|byte| f64::from(*byte) / 255.0).collect();
    let corrupted = match corruption {
        GaussianNoise => noise::gaussian(picture, level, stream),
        ShotNoise => noise::shot(picture, level, stream),
        ImpulseNoise => noise::impulse(picture, level, stream),
        SpeckleNoise => noise::speckle(picture, level, stream),
        GaussianBlur => blur::gaussian(picture, level),
        DefocusBlur => blur::defocus(picture, level),
        GlassBlur => blur::glass(picture, level, stream),
        MotionBlur => return Ok(blur::motion(image, level, stream)),
        ZoomBlur => blur::zoom(picture, level),
        Snow => weather::snow(picture, level, stream),
        Frost => match frost {
            Some(pictures) => return Ok(pictures.freeze(image, level, stream)),
            None => return Err("frost needs the frost pictures: name their folder".into()),
        },
        Fog => weather::fog(picture, level, stream),
        Spatter => spatter::spatter(picture, level, stream),
        Brightness => digital::brightness(picture, level),
        Contrast => digital::contrast(picture, level),
        Saturate => digital::saturate(picture, level),
        ElasticTransform => digital::elastic(picture, level, stream),
        Pixelate => return Ok(digital::pixelate(image, level)),
        JpegCompression => return Ok(jpeg::compress(image, level)),
    };
    // Cut, not rounded: numpy's uint8 of a positive value.
    Ok(corrupted.into_iter().map(|value| (value.clamp(0.0, 1.0) * 255.0) as u8).collect())
}
