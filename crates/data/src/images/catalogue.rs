//! The data sets of the experiments: where their files may lie, what they hold, and their published checksums.

use super::{Images, Shape, md5_of_content, read_cifar, read_idx, read_svhn};
use crate::Split;
use crate::{FileError, FileResult};
use pudica_boolean::did_you_mean;
use std::path::{Path, PathBuf};

/// A data set as published.
pub struct DataSet {
    /// How the command line calls it.
    pub name: &'static str,
    /// Who made it and where it is from.
    pub source: &'static str,
    /// Shape of every image.
    pub shape: Shape,
    /// Name of each class.
    pub classes: [&'static str; 10],
    /// Where its files may lie inside a data folder.
    folders: &'static [&'static str],
    train: &'static [Piece],
    test: &'static [Piece],
}

/// Images that are read together: one file, or one of images and one of labels.
struct Piece {
    files: &'static [Published],
    images: usize,
}

/// A file as published: its name, without `.gz`, and MD5 of its content, unpacked.
struct Published {
    name: &'static str,
    md5: &'static str,
}

/// Images of a split, as far as its files were found.
#[derive(Debug)]
pub struct Loaded {
    /// The images, in the order of the official files.
    pub images: Images,
    /// How many images the whole split has.
    pub published: usize,
    /// The files they were read from.
    pub files: Vec<PathBuf>,
}

/// What a file's checksum says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The content is the published one.
    Official,
    /// The content is another; this is the published MD5.
    Differs(&'static str),
    /// Nothing is published about a file of this name.
    Unpublished,
}

/// A file with its checksum.
#[derive(Debug)]
pub struct Checked {
    /// Where it lies.
    pub path: PathBuf,
    /// Bytes of its content, unpacked.
    pub bytes: u64,
    /// MD5 of its content, unpacked.
    pub md5: String,
    /// What that says.
    pub verdict: Verdict,
}

const fn file(name: &'static str, md5: &'static str) -> Published {
    Published { name, md5 }
}

const GREY_28: Shape = Shape { height: 28, width: 28, channels: 1 };
const COLOUR_32: Shape = Shape { height: 32, width: 32, channels: 3 };
const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// The data sets known by name. Published MD5s: MNIST's and CIFAR-10's of the unpacked files; SVHN's as torchvision lists them;
/// Fashion-MNIST's of the content of the packed files whose MD5s its authors list.
pub static DATA_SETS: [DataSet; 4] = [
    DataSet {
        name: "mnist",
        source: "LeCun, Cortes & Burges, handwritten digits",
        shape: GREY_28,
        classes: DIGITS,
        folders: &["mnist", "MNIST/raw", "MNIST"],
        train: &[Piece {
            files: &[
                file("train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"),
                file("train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"),
            ],
            images: 60_000,
        }],
        test: &[Piece {
            files: &[
                file("t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"),
                file("t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"),
            ],
            images: 10_000,
        }],
    },
    DataSet {
        name: "fashion-mnist",
        source: "Xiao, Rasul & Vollgraf 2017, articles of clothing",
        shape: GREY_28,
        classes: [
            "T-shirt/top",
            "trouser",
            "pullover",
            "dress",
            "coat",
            "sandal",
            "shirt",
            "sneaker",
            "bag",
            "ankle boot",
        ],
        folders: &["fashion_mnist", "fashion-mnist", "FashionMNIST/raw", "FashionMNIST"],
        train: &[Piece {
            files: &[
                file("train-images-idx3-ubyte", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
                file("train-labels-idx1-ubyte", "9018921c3c673c538a1fc5bad174d6f9"),
            ],
            images: 60_000,
        }],
        test: &[Piece {
            files: &[
                file("t10k-images-idx3-ubyte", "8181f5470baa50b63fa0f6fddb340f0a"),
                file("t10k-labels-idx1-ubyte", "15d484375f8d13e6eb1aabb0c3f46965"),
            ],
            images: 10_000,
        }],
    },
    DataSet {
        name: "cifar10",
        source: "Krizhevsky 2009, small photographs",
        shape: COLOUR_32,
        classes: ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"],
        folders: &["cifar10", "cifar-10-batches-bin"],
        train: &[
            Piece { files: &[file("data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25")], images: 10_000 },
            Piece { files: &[file("data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692")], images: 10_000 },
            Piece { files: &[file("data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421")], images: 10_000 },
            Piece { files: &[file("data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb")], images: 10_000 },
            Piece { files: &[file("data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d")], images: 10_000 },
        ],
        test: &[Piece { files: &[file("test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d")], images: 10_000 }],
    },
    DataSet {
        name: "svhn",
        source: "Netzer et al. 2011, cropped digits of house numbers",
        shape: COLOUR_32,
        classes: DIGITS,
        folders: &["svhn", "SVHN"],
        train: &[Piece { files: &[file("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373")], images: 73_257 }],
        test: &[Piece { files: &[file("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3")], images: 26_032 }],
    },
];

impl DataSet {
    /// The data set of this name.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        DATA_SETS.iter().find(|set| set.name == name).ok_or_else(|| {
            let names = DATA_SETS.each_ref().map(|set| set.name);
            format!("no data set is called '{name}'{}; known: {}", did_you_mean(name, names), names.join(", "))
        })
    }

    /// How many images the whole split has.
    pub fn published(&self, split: Split) -> usize {
        self.pieces(split).iter().map(|piece| piece.images).sum()
    }

    fn pieces(&self, split: Split) -> &'static [Piece] {
        match split {
            Split::Train => self.train,
            Split::Test => self.test,
        }
    }

    /// The files of a split that lie in a data folder.
    pub fn files(&self, data: &Path, split: Split) -> Vec<PathBuf> {
        let published = self.pieces(split).iter().flat_map(|piece| piece.files);
        published.filter_map(|file| self.find(data, file)).collect()
    }

    /// How many files the whole split has.
    pub fn file_count(&self, split: Split) -> usize {
        self.pieces(split).iter().map(|piece| piece.files.len()).sum()
    }

    /// Name and MD5 of the content of each file of a split, without `.gz`.
    pub(crate) fn published_files(&self, split: Split) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.pieces(split).iter().flat_map(|piece| piece.files).map(|file| (file.name, file.md5))
    }

    /// The folder inside a data folder where its files belong.
    pub(crate) fn folder(&self) -> &'static str {
        self.folders[0]
    }

    /// Where a file lies: packed or not, in one of the set's folders of `data`. Of MATLAB's files, the first images of one, named
    /// as `test_32x32_first5000.mat`, are taken where the whole is not there.
    fn find(&self, data: &Path, file: &Published) -> Option<PathBuf> {
        let folders = self.folders.iter().map(|folder| data.join(folder));
        let whole =
            folders.clone().flat_map(|folder| [folder.join(file.name), folder.join(format!("{}.gz", file.name))]);
        let part = || {
            let start = format!("{}_", file.name.strip_suffix(".mat")?);
            let entries = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
            let mut parts: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            parts.retain(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with(&start) && name.ends_with(".mat")
            });
            parts.into_iter().min()
        };
        whole.into_iter().find(|path| path.is_file()).or_else(part)
    }

    /// Reads what there is of a split in a data folder.
    pub fn load(&self, data: &Path, split: Split) -> FileResult<Loaded> {
        let mut images: Option<Images> = None;
        let mut files = Vec::new();
        for piece in self.pieces(split) {
            let found: Vec<PathBuf> = piece.files.iter().filter_map(|file| self.find(data, file)).collect();
            let read = match found.as_slice() {
                [pixels, labels] => read_idx(pixels, labels)?,
                [one] if piece.files.len() == 1 && piece.files[0].name.ends_with(".mat") => read_svhn(one)?,
                [one] if piece.files.len() == 1 => read_cifar(one)?,
                _ => continue,
            };
            self.check(&read, &found[0])?;
            match &mut images {
                // The shape is that of the set, so appending cannot fail.
                Some(all) => _ = all.append(&read),
                None => images = Some(read),
            }
            files.extend(found);
        }
        let published = self.published(split);
        images.map(|images| Loaded { images, published, files }).ok_or_else(|| self.missing(data, split))
    }

    fn check(&self, images: &Images, path: &Path) -> FileResult<()> {
        if images.shape() != self.shape {
            let (found, expected) = (images.shape(), self.shape);
            return Err(FileError::new(path, format!("images of {found}, but those of {} are {expected}", self.name)));
        }
        match images.labels().iter().position(|label| usize::from(*label) >= self.classes.len()) {
            Some(index) => Err(FileError::new(path, format!("image {index} has the label {}", images.labels()[index]))),
            None => Ok(()),
        }
    }

    fn missing(&self, data: &Path, split: Split) -> FileError {
        let names: Vec<&str> = self.pieces(split)[0].files.iter().map(|file| file.name).collect();
        let places = self.folders.join(", ");
        let problem = format!(
            "no {} images of {}: {} (or .gz) should lie in one of the folders {places}",
            split.name(),
            self.name,
            names.join(" and ")
        );
        FileError::new(data, problem)
    }

    /// Checksums of the files of a split that lie in a data folder.
    pub fn verify(&self, data: &Path, split: Split) -> Vec<FileResult<Checked>> {
        let published = self.pieces(split).iter().flat_map(|piece| piece.files);
        let found = published.filter_map(|file| self.find(data, file).map(|path| (file, path)));
        let check = |(file, path): (&Published, PathBuf)| {
            let (md5, bytes) = md5_of_content(&path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let verdict = match name.strip_suffix(".gz").unwrap_or(&name) {
                name if name != file.name => Verdict::Unpublished,
                _ if md5 == file.md5 => Verdict::Official,
                _ => Verdict::Differs(file.md5),
            };
            Ok(Checked { bytes, md5, verdict, path })
        };
        found.map(check).collect()
    }
}
