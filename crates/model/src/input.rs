//! What models take: images, rows of numbers, tokens, texts, bits.

use std::fmt;

use pudica_probe::{InputKind, Sequence};
use serde::{Deserialize, Serialize};

/// One input, as its file has it: normalising, laying out and tokenising is the model's.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// An image.
    Image(Image),
    /// Numbers: a row of a table, in the table's own units.
    Row(Vec<f32>),
    /// Tokens, of which one's embedding may be touched.
    Tokens(Sequence),
    /// A text, or two to compare.
    Text(String, Option<String>),
    /// Zeros and ones.
    Bits(Vec<u8>),
}

impl Input {
    /// What kind of input it is.
    pub fn kind(&self) -> InputKind {
        match self {
            Self::Image(_) => InputKind::Images,
            Self::Row(_) => InputKind::Numbers,
            Self::Tokens(_) => InputKind::Tokens,
            Self::Text(..) => InputKind::Texts,
            Self::Bits(_) => InputKind::Bits,
        }
    }

    /// Its shape; texts have none.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Self::Image(image) => image.shape.to_vec(),
            Self::Row(row) => vec![row.len()],
            Self::Tokens(sequence) => vec![sequence.ids.len()],
            Self::Bits(bits) => vec![bits.len()],
            Self::Text(..) => Vec::new(),
        }
    }

    /// Whether both can be in one batch: they are of one kind and shape.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.shape() == other.shape()
    }
}

/// Values \[channels, height, width\]: 0 to 1 where they come from pictures, as they are where they come from arrays of floats.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Channels, height and width.
    pub shape: [usize; 3],
    /// Channel after channel, row after row.
    pub values: Vec<f32>,
}

/// What a model takes, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Takes {
    /// Images; a size that is `None` may be any.
    Images {
        /// 1 or 3 as a rule.
        channels: Option<usize>,
        /// Rows.
        height: Option<usize>,
        /// Columns.
        width: Option<usize>,
    },
    /// Rows of numbers (also of bits), of this many columns.
    Rows {
        /// Columns.
        width: Option<usize>,
    },
    /// Tokens.
    Tokens {
        /// How many at a time, where it is fixed.
        length: Option<usize>,
        /// How many different ones.
        vocabulary: Option<usize>,
    },
    /// Texts, which it makes tokens of itself.
    Texts,
    /// Whatever it is given.
    Anything,
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let size = |size: &Option<usize>| size.map_or("any".to_string(), |size| size.to_string());
        match self {
            Self::Images { channels, height, width } => {
                write!(f, "images of {} x {} x {} (channels, height, width)", size(channels), size(height), size(width))
            }
            Self::Rows { width } => write!(f, "rows of {} numbers", size(width)),
            Self::Tokens { length, .. } => write!(f, "{} tokens", size(length)),
            Self::Texts => f.write_str("texts"),
            Self::Anything => f.write_str("anything"),
        }
    }
}

/// What is done to each channel's values before a network sees them: (value - mean) / std.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Normalisation {
    /// One for each channel, or one for all.
    pub mean: Vec<f32>,
    /// The same.
    pub std: Vec<f32>,
}

impl Normalisation {
    /// Those with names, as `--normalise` takes them.
    pub const PRESETS: [(&'static str, &'static [f32], &'static [f32]); 5] = [
        ("none", &[0.0], &[1.0]),
        ("imagenet", &[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225]),
        ("cifar10", &[0.4914, 0.4822, 0.4465], &[0.2023, 0.1994, 0.2010]),
        ("mnist", &[0.1307], &[0.3081]),
        ("bytes", &[0.0], &[1.0 / 255.0]),
    ];

    /// The one of this name.
    pub fn preset(name: &str) -> Option<Self> {
        let (_, mean, std) = Self::PRESETS.into_iter().find(|(known, ..)| *known == name)?;
        Some(Self { mean: mean.to_vec(), std: std.to_vec() })
    }

    /// Mean and standard deviation of one channel.
    pub fn of_channel(&self, channel: usize) -> (f32, f32) {
        let of = |values: &[f32], none: f32| values.get(channel).or(values.first()).copied().unwrap_or(none);
        (of(&self.mean, 0.0), of(&self.std, 1.0))
    }

    /// The values of an image as the network sees them.
    pub fn apply(&self, image: &Image) -> Vec<f32> {
        let pixels = image.shape[1] * image.shape[2];
        let mut normalised = Vec::with_capacity(image.values.len());
        for (channel, values) in image.values.chunks(pixels.max(1)).enumerate() {
            let (mean, std) = self.of_channel(channel);
            normalised.extend(values.iter().map(|value| (value - mean) / std));
        }
        normalised
    }

    /// One value of a channel as the network sees it.
    pub fn apply_to(&self, channel: usize, value: f32) -> f32 {
        let (mean, std) = self.of_channel(channel);
        (value - mean) / std
    }
}
