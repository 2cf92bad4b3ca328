//! Images: a patch, all pixels, or the whole picture.

use std::path::Path;
use std::sync::Arc;

use pudica_data::Stream;
use pudica_data::corruptions::{Corruption, FrostPictures, corrupt_pixels};
use pudica_model::{Image, Input};
use pudica_probe::{PatchGrid, ProbeError};

use super::{Edit, Material, Setting, Touch, Touching, boxed};
use crate::MeasureResult;
use crate::results::Sites;

/// The nudge a setting means.
pub fn touching(setting: &Setting, material: &Material) -> MeasureResult<Touching> {
    let about = material.inputs.about();
    let [channels, height, width] = about.shape[..] else {
        return Err(setting.refuse("the images have no common shape"));
    };
    let shape = [channels, height, width];
    let deviations = |variance: f64| -> Vec<f64> {
        let std = |channel: usize| material.channel_std.get(channel).or(material.channel_std.first()).copied();
        (0..channels).map(|channel| variance.sqrt() * f64::from(std(channel).unwrap_or(1.0))).collect()
    };
    let draws = setting.draws()?;
    let on_patches = |change| -> MeasureResult<Touching> {
        let side = match setting.value("size") {
            "" => usual_side(height, width),
            _ => setting.whole("size", height.max(width))?,
        };
        let grid = PatchGrid::new(shape, side).map_err(|error| match error {
            ProbeError::Setting { problem, .. } => setting.refuse(format!("size={side}: {problem}")),
            other => setting.refuse(other),
        })?;
        let offset = match setting.value("offset") {
            "" => 0,
            text if side == 1 || side == height.min(width) => {
                let problem = format!("offset={text}: patches of {side} x {side} pixels have no place between others");
                return Err(setting.refuse(problem));
            }
            _ => setting.whole("offset", side - 1)?,
        };
        let (places, [rows, columns]) = patches(&grid, width, offset);
        Ok(boxed(Patches { places, plane: height * width, change }, Sites::Grid { rows, columns }, draws))
    };
    match setting.kind.name {
        "patch-noise" => on_patches(Change::Noise(deviations(setting.positive("variance")?))),
        "patch-replace" => on_patches(Change::Uniform),
        "pixel-noise" => {
            let deviations = deviations(setting.positive("variance")?);
            let plane = height * width;
            let pixels = match setting.value("pixels") {
                "" => plane,
                _ => setting.whole("pixels", plane)?,
            };
            Ok(boxed(PixelNoise { deviations, plane, pixels }, Sites::Whole, draws))
        }
        _ => {
            let corruption = Corruption::named(setting.value("name")).map_err(|problem| setting.refuse(problem))?;
            if shape != [3, 32, 32] {
                let problem = format!(
                    "its severities are made for colour images of 32 x 32 pixels, these are {channels} x {height} x {width}; \
                     pixel-noise, patch-noise and patch-replace take any"
                );
                return Err(setting.refuse(problem));
            }
            let frost = match corruption {
                Corruption::Frost => Some(Arc::new(frost_pictures(material.data.as_deref()).ok_or_else(|| {
                    let problem = "frost needs its pictures frost1.png to frost5.jpg in DIR/corruptions of --data DIR";
                    setting.refuse(problem)
                })?)),
                _ => None,
            };
            let severity = setting.whole("severity", 5)?;
            Ok(boxed(Corrupted { corruption, severity, frost }, Sites::Whole, draws))
        }
    }
}

/// Where the values of each patch lie that is in the image when all are moved down and to the right; and rows and columns of them.
fn patches(grid: &PatchGrid, width: usize, offset: usize) -> (Vec<Vec<usize>>, [usize; 2]) {
    let (all_rows, all_columns) = grid.shape();
    let fewer = usize::from(offset > 0);
    let (rows, columns) = (all_rows - fewer, all_columns - fewer);
    let in_image = |patch: &usize| patch / all_columns < rows && patch % all_columns < columns;
    let places = |patch| grid.places(patch).map(|at| at + offset * (width + 1)).collect();
    ((0..grid.count()).filter(in_image).map(places).collect(), [rows, columns])
}

/// The frost pictures of a data folder.
fn frost_pictures(data: Option<&Path>) -> Option<FrostPictures> {
    FrostPictures::read(&data?.join("corruptions")).ok()
}

/// The side of patches of which about 8 x 8 make an image: the divisor of both sides that comes nearest.
fn usual_side(height: usize, width: usize) -> usize {
    let divides = |side: &usize| height.is_multiple_of(*side) && width.is_multiple_of(*side);
    let distance = |side: &usize| ((*side * 8) as f64 / height.min(width) as f64).ln().abs();
    (1..=height.min(width)).filter(divides).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(1)
}

/// What happens to the values of a patch.
enum Change {
    /// Normal noise of this deviation in each channel.
    Noise(Vec<f64>),
    /// Uniform values from 0 to 1 take their place.
    Uniform,
}

struct Patches {
    /// Where the values of each patch lie.
    places: Vec<Vec<usize>>,
    /// Values of a channel.
    plane: usize,
    change: Change,
}

impl Touch for Patches {
    fn sites(&self, _: &Input) -> usize {
        self.places.len()
    }

    fn apply(&self, input: &Input, site: usize, noise: &mut Stream) -> Input {
        map_image(input, |values| {
            let mut changed = vec![0.0; self.places[site].len()];
            self.change(values, site, noise, &mut changed);
            self.places[site].iter().zip(changed).for_each(|(at, value)| values[*at] = value);
        })
    }

    fn as_edit(&self) -> Option<&dyn Edit> {
        Some(self)
    }
}

impl Edit for Patches {
    fn places(&self) -> &[Vec<usize>] {
        &self.places
    }

    fn change(&self, image: &[f32], site: usize, noise: &mut Stream, changed: &mut [f32]) {
        for (at, value) in self.places[site].iter().zip(changed) {
            *value = match &self.change {
                Change::Noise(deviations) => image[*at] + (deviations[at / self.plane] * noise.normal()) as f32,
                Change::Uniform => noise.uniform_f32(0.0, 1.0),
            };
        }
    }
}

struct PixelNoise {
    /// Of the noise in each channel.
    deviations: Vec<f64>,
    /// Pixels of an image, and how many of them are touched.
    plane: usize,
    pixels: usize,
}

impl PixelNoise {
    /// Which pixels are touched: all, or some, every choice of so many equally likely.
    fn chosen(&self, noise: &mut Stream) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.plane).collect();
        if self.pixels < self.plane {
            // The first steps of a shuffle.
            for at in 0..self.pixels {
                places.swap(at, at + noise.below((self.plane - at) as u64) as usize);
            }
            places.truncate(self.pixels);
        }
        places
    }
}

impl Touch for PixelNoise {
    fn sites(&self, _: &Input) -> usize {
        1
    }

    fn apply(&self, input: &Input, _: usize, noise: &mut Stream) -> Input {
        let chosen = self.chosen(noise);
        map_image(input, |values| {
            for (channel, deviation) in values.chunks_mut(self.plane).zip(&self.deviations) {
                chosen.iter().for_each(|at| channel[*at] += (deviation * noise.normal()) as f32);
            }
        })
    }
}

struct Corrupted {
    corruption: Corruption,
    severity: usize,
    frost: Option<Arc<FrostPictures>>,
}

impl Touch for Corrupted {
    fn sites(&self, _: &Input) -> usize {
        1
    }

    fn apply(&self, input: &Input, _: usize, noise: &mut Stream) -> Input {
        let Input::Image(image) = input else { return input.clone() };
        let [channels, height, width] = image.shape;
        let plane = height * width;
        let byte = |value: f32| (value.clamp(0.0, 1.0) * 255.0).round() as u8;
        let pixels: Vec<u8> = (0..plane)
            .flat_map(|at| (0..channels).map(move |channel| byte(image.values[channel * plane + at])))
            .collect();
        // The shape, the severity and the frost pictures were looked at when this was made.
        let corrupted = corrupt_pixels(&pixels, self.corruption, self.severity, noise, self.frost.as_deref());
        let corrupted = corrupted.unwrap_or(pixels);
        let value = |at: usize| f32::from(corrupted[(at % plane) * channels + at / plane]) / 255.0;
        Input::Image(Image { shape: image.shape, values: (0..channels * plane).map(value).collect() })
    }
}

fn map_image(input: &Input, change: impl FnOnce(&mut [f32])) -> Input {
    let mut touched = input.clone();
    if let Input::Image(image) = &mut touched {
        change(&mut image.values);
    }
    touched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_patches_are_about_eight_by_eight() {
        let sides = [(32, 32), (28, 28), (224, 224), (1, 1), (48, 192), (7, 7)];
        assert_eq!(sides.map(|(height, width)| usual_side(height, width)), [4, 4, 28, 1, 6, 1]);
    }

    #[test]
    fn moved_patches_that_leave_the_image_are_left_out() {
        let grid = PatchGrid::new([2, 4, 6], 2).unwrap();
        let (places, shape) = patches(&grid, 6, 1);
        assert_eq!(shape, [1, 2]);
        assert_eq!(places, [[7, 8, 13, 14, 31, 32, 37, 38], [9, 10, 15, 16, 33, 34, 39, 40]]);
    }

    #[test]
    fn noise_is_of_the_channels_deviation_and_stays_in_its_patch() {
        let grid = PatchGrid::new([3, 40, 40], 20).unwrap();
        let (places, _) = patches(&grid, 40, 0);
        let nudge = Patches { places, plane: 1600, change: Change::Noise(vec![1.0, 0.0, 2.0]) };
        let input = Input::Image(Image { shape: [3, 40, 40], values: vec![0.5; 4800] });
        let Input::Image(touched) = nudge.apply(&input, 3, &mut Stream::new(0, "test", 0)) else { panic!() };
        let square = |channel: usize| {
            let values = &touched.values[channel * 1600..][..1600];
            let touched: Vec<f64> = values
                .iter()
                .enumerate()
                .filter(|(at, _)| at / 40 >= 20 && at % 40 >= 20)
                .map(|(_, v)| f64::from(*v - 0.5))
                .collect();
            let others = values.iter().enumerate().filter(|(at, _)| at / 40 < 20 || at % 40 < 20);
            assert!(others.into_iter().all(|(_, value)| *value == 0.5));
            touched.iter().map(|value| value * value).sum::<f64>() / touched.len() as f64
        };
        assert!((square(0) - 1.0).abs() < 0.2 && square(1) == 0.0 && (square(2) - 4.0).abs() < 0.8);
    }

    #[test]
    fn noise_on_some_pixels_is_anywhere_and_in_all_channels() {
        let input = Input::Image(Image { shape: [2, 3, 4], values: vec![0.5; 24] });
        let mut times = [0; 12];
        for pixels in [5, 12] {
            let nudge = PixelNoise { deviations: vec![1.0, 1.0], plane: 12, pixels };
            for draw in 0..300 {
                let Input::Image(touched) = nudge.apply(&input, 0, &mut Stream::new(1, "test", draw)) else { panic!() };
                let [moved, of_other] = [0, 12]
                    .map(|start| -> Vec<usize> { (0..12).filter(|at| touched.values[start + at] != 0.5).collect() });
                assert!(moved == of_other && moved.len() == pixels);
                moved.iter().for_each(|at| times[*at] += 1);
            }
        }
        // Of 300 draws of five pixels, each has 125, with a standard deviation of 8.5.
        assert!(times.iter().all(|times| (times - 300 - 125i32).abs() < 40), "{times:?}");
    }
}
