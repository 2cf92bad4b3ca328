//! Networks that other people trained and published reach the accuracy they are known for, where they and the images are: in the folder
//! `PUDICA_DATA` names, or `../shared/data` beside the repository. `cargo test -- --ignored` takes all images of the test splits.

use std::path::PathBuf;

use pudica_data::Split;
use pudica_data::images::DataSet;
use pudica_model::{Choices, Image, Input, ModelRequest, open};

/// A published network, the images it is for, and what it reaches on the first so many of them.
struct Published {
    file: &'static str,
    architecture: &'static str,
    normalise: &'static str,
    images: &'static str,
    /// How many of the first images are shown, and how many of them it tells rightly, counted by PyTorch (`tests/golden/published.py`).
    some: (usize, usize),
    /// How many of all 10,000.
    all: usize,
}

const ALL: [Published; 4] = [
    Published {
        file: "resnet20-12fca82f.th",
        architecture: "resnet20",
        normalise: "imagenet",
        images: "cifar10",
        some: (1000, 915),
        all: 9173,
    },
    Published {
        file: "resnet44-014dd654.th",
        architecture: "resnet44",
        normalise: "imagenet",
        images: "cifar10",
        some: (1000, 933),
        all: 9310,
    },
    Published {
        file: "vit_cifar10_smmk47.pth",
        architecture: "vit_cifar10_smmk47",
        normalise: "cifar10",
        images: "cifar10",
        some: (1000, 705),
        all: 7372,
    },
    Published {
        file: "vit_mnist_GauravPBhagwat.pth",
        architecture: "vit_mnist",
        normalise: "mnist",
        images: "mnist",
        some: (2000, 1943),
        all: 9794,
    },
];

impl Published {
    /// How many of the first images it tells rightly, and how many there were; `None` where files are missing.
    fn right(&self, most: usize) -> Option<(usize, usize)> {
        let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let data = std::env::var_os("PUDICA_DATA").map_or_else(beside, PathBuf::from);
        let path = data.join("models").join(self.file);
        let set = DataSet::named(self.images).unwrap();
        if !path.is_file() || set.files(&data, Split::Test).is_empty() {
            eprintln!("skipped: no {} or {} in {} (set PUDICA_DATA)", self.file, self.images, data.display());
            return None;
        }
        let mut choices = Choices::default();
        choices.set("normalise", self.normalise).unwrap();
        let mut model = open(&ModelRequest::parse(path.to_str().unwrap(), &choices).unwrap()).unwrap();
        assert!(model.about().notes[0].contains(self.architecture), "{:?}", model.about());
        let images = set.load(&data, Split::Test).unwrap().images;
        let shape = images.shape();
        let [channels, height, width] = [shape.channels, shape.height, shape.width];
        let planes = |bytes: &[u8]| {
            let at = |i: usize| bytes[i % (height * width) * channels + i / (height * width)];
            let values = (0..bytes.len()).map(|i| f32::from(at(i)) / 255.0).collect();
            Input::Image(Image { shape: [channels, height, width], values })
        };
        let count = most.min(images.count());
        let inputs: Vec<Input> = (0..count).map(|index| planes(images.image(index))).collect();
        let scores = model.scores(&inputs).unwrap();
        let highest = |row: &[f32]| (0..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best });
        let right = scores.rows().zip(images.labels()).filter(|(row, label)| highest(row) == usize::from(**label));
        Some((right.count(), count))
    }
}

/// An image or two may fall on the other side by rounding.
#[test]
fn published_networks_tell_as_many_images_as_in_pytorch() {
    for published in ALL {
        let (most, expected) = published.some;
        if let Some((right, _)) = published.right(most) {
            assert!(right.abs_diff(expected) <= 1, "{}: {right} of {most}, not {expected}", published.file);
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn published_networks_reach_their_accuracy() {
    for published in ALL {
        let start = std::time::Instant::now();
        if let Some((right, count)) = published.right(usize::MAX) {
            println!("{}: {right} of {count} in {:.1} s", published.file, start.elapsed().as_secs_f64());
            assert!(right.abs_diff(published.all) <= 3, "{}: {right}, not {}", published.file, published.all);
        }
    }
}
