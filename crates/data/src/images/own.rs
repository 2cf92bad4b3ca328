//! Images of a user's own: a folder of classes, or one of two such folders, for training and for tests.

use super::folder::{in_colour, is_picture, list_pictures, read_pictures};
use super::resize::square;
use super::{Images, Shape, read_npy};
use crate::own::{TEST_NAMES, entries, name_of};
use crate::{Divided, Division, FileError, FileResult};
use std::path::{Path, PathBuf};

/// Folders of images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnImages {
    train: PathBuf,
    test: Option<PathBuf>,
}

/// The images of one folder.
struct Part {
    images: Images,
    /// Where they come from folders of classes: the names of these.
    classes: Option<Vec<String>>,
}

impl OwnImages {
    /// The images in a folder: one folder of pictures for each class (or `images.npy` and `labels.npy`), or two folders `train` and `dev`
    /// (or `validation`, `valid`, `val`, `test`) that have them. `None` where there are no images.
    pub fn find(path: &Path) -> FileResult<Option<Self>> {
        let part = |name: &str| Some(path.join(name)).filter(|folder| holds_images(folder));
        match (part("train"), TEST_NAMES.into_iter().find_map(part)) {
            (Some(train), test) => Ok(Some(Self { train, test })),
            (None, Some(test)) => {
                Err(FileError::new(path, format!("there are images in {} but none in train", name_of(&test))))
            }
            (None, None) if holds_images(path) => Ok(Some(Self { train: path.to_path_buf(), test: None })),
            (None, None) => Ok(None),
        }
    }

    /// Whether there is a folder for tests.
    pub fn is_divided(&self) -> bool {
        self.test.is_some()
    }

    /// The files that are read.
    pub fn files(&self) -> FileResult<Vec<PathBuf>> {
        let mut files = Vec::new();
        for folder in [Some(&self.train), self.test.as_ref()].into_iter().flatten() {
            match arrays(folder) {
                Some((images, labels)) => files.extend([images, labels]),
                None => files.extend(list_pictures(folder)?.1.into_iter().map(|(path, _)| path)),
            }
        }
        Ok(files)
    }

    /// Reads both parts, each image cut to a square and resized to `size` pixels unless that is 0. Where there is one folder, it is divided.
    pub fn read(&self, size: usize, division: &Division) -> FileResult<Divided<Images>> {
        let mut train = Part::read(&self.train, size, None)?;
        let mut test = match &self.test {
            Some(folder) => Some(Part::read(folder, size, train.classes.as_deref())?),
            None => None,
        };
        if let Some(test) = test.as_mut().filter(|test| test.images.shape.channels != train.images.shape.channels) {
            [&mut train.images, &mut test.images].into_iter().for_each(Images::make_colour);
        }
        let largest = |part: &Part| part.images.labels.iter().max().map_or(0, |label| usize::from(*label));
        let numbers = 0..=largest(&train).max(test.as_ref().map_or(0, largest));
        let classes = train.classes.unwrap_or_else(|| numbers.map(|number| number.to_string()).collect());
        let wrong = |problem: String| FileError::new(&self.train, problem);
        if let Some((test, folder)) =
            test.as_ref().zip(self.test.as_ref()).filter(|(test, _)| largest(test) >= classes.len())
        {
            let problem =
                format!("labels go up to {}, but there are {} classes in train", largest(test), classes.len());
            return Err(FileError::new(folder, problem));
        }
        if let [only] = classes.as_slice() {
            return Err(wrong(format!("only one class, '{only}', but at least two are needed")));
        }
        let (train, test) = match test {
            Some(test) => (train.images, test.images),
            None => {
                let labels: Vec<usize> = train.images.labels.iter().map(|label| usize::from(*label)).collect();
                let (trained, tested) = division.rows(&labels, &classes).map_err(wrong)?;
                (train.images.select(trained), train.images.select(tested))
            }
        };
        Ok(Divided { train, test, classes })
    }
}

impl Part {
    /// The images of a folder, whose classes are among `known`, if these are.
    fn read(folder: &Path, size: usize, known: Option<&[String]>) -> FileResult<Self> {
        if let Some((images, labels)) = arrays(folder) {
            let images = read_npy(&images, &labels, None)?;
            return Ok(Self { images: if size == 0 { images } else { images.resized(size) }, classes: None });
        }
        let (classes, mut pictures) = list_pictures(folder)?;
        if let Some(known) = known {
            let number = |class: &String| {
                let place = known.iter().position(|name| name == class);
                place.map(|place| place as u8).ok_or_else(|| {
                    let problem = format!("the class '{class}' has no images to train on; the others are: ");
                    FileError::new(&folder.join(class), problem + &known.join(", "))
                })
            };
            let numbers: Vec<u8> = classes.iter().map(number).collect::<FileResult<_>>()?;
            pictures.iter_mut().for_each(|(_, label)| *label = numbers[usize::from(*label)]);
        }
        Ok(Self { images: read_pictures(folder, &pictures, size)?, classes: Some(classes) })
    }
}

impl Images {
    /// The same as squares of so many pixels.
    fn resized(&self, size: usize) -> Self {
        let shape = Shape { height: size, width: size, ..self.shape };
        let pixels = (0..self.count()).flat_map(|index| square(self.shape, self.image(index), size).1).collect();
        Self { shape, pixels, labels: self.labels.clone() }
    }

    /// Turns grey images into colour ones.
    fn make_colour(&mut self) {
        if self.shape.channels == 1 {
            self.pixels = in_colour(&self.pixels).collect();
            self.shape.channels = 3;
        }
    }
}

/// The two files of a folder of arrays.
fn arrays(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let images = folder.join("images.npy");
    images.is_file().then(|| (images, folder.join("labels.npy")))
}

/// Whether a folder has arrays, or pictures in folders inside.
fn holds_images(folder: &Path) -> bool {
    let inside = |folder: &Path| entries(folder).unwrap_or_default();
    folder.is_dir()
        && (arrays(folder).is_some()
            || inside(folder).iter().any(|class| inside(class).iter().any(|file| is_picture(file))))
}
