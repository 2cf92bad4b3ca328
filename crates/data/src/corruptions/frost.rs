//! Frost: parts of photographs of ice, laid over the picture.

use super::SIDE;
use crate::Stream;
use crate::images::read_picture;
use std::path::Path;

/// The photographs, every fifth pixel of every fifth row.
pub struct FrostPictures {
    pictures: Vec<Reduced>,
}

/// \[height, width, 3\]
struct Reduced {
    height: usize,
    width: usize,
    pixels: Vec<u8>,
}

/// The official script draws from these five of its six.
const FILES: [&str; 5] = ["frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"];

impl FrostPictures {
    /// Reads `frost1.png` to `frost5.jpg` of the official repository from a folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let read = |name: &&str| {
            let path = folder.join(name);
            let (shape, pixels) = read_picture(&path).map_err(|error| error.to_string())?;
            // Reduced to a fifth without averaging, which linear interpolation at a factor of 0.2 comes to.
            let (height, width) =
                ((shape.height as f64 * 0.2).round() as usize, (shape.width as f64 * 0.2).round() as usize);
            if height <= SIDE || width <= SIDE || shape.channels != 3 {
                return Err(format!(
                    "{}: {shape} is no frost picture: colour, more than 165 x 165, is needed",
                    path.display()
                ));
            }
            let pixel = |at: usize| {
                let y = (at / width * 5 + 2).min(shape.height - 1);
                let x = (at % width * 5 + 2).min(shape.width - 1);
                &pixels[(y * shape.width + x) * 3..][..3]
            };
            let pixels = (0..height * width).flat_map(pixel).copied().collect();
            Ok(Reduced { height, width, pixels })
        };
        FILES.iter().map(read).collect::<Result<_, String>>().map(|pictures| Self { pictures })
    }

    /// A part of one of them over the image.
    pub(super) fn freeze(&self, image: &[u8], level: usize, stream: &mut Stream) -> Vec<u8> {
        let (keep, ice) = [(1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)][level];
        let frost = &self.pictures[stream.below(self.pictures.len() as u64) as usize];
        let top = stream.below((frost.height - SIDE) as u64) as usize;
        let left = stream.below((frost.width - SIDE) as u64) as usize;
        let frozen = |(at, value): (usize, &u8)| {
            let (y, x, channel) = (at / 3 / SIDE, at / 3 % SIDE, at % 3);
            let crystal = frost.pixels[((top + y) * frost.width + left + x) * 3 + channel];
            (keep * f64::from(*value) + ice * f64::from(crystal)).clamp(0.0, 255.0) as u8
        };
        image.iter().enumerate().map(frozen).collect()
    }
}
