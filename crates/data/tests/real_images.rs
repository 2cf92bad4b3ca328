//! The real data sets, where they are: in the folder `PUDICA_DATA` names, or `../shared/data` beside the repository.

mod real_data;

use pudica_data::Split;
use pudica_data::images::{DataSet, Images, Verdict};
use real_data::data;

/// Reads the test split, after comparing its checksums.
fn check(name: &str, verdict: Verdict, counts: [usize; 10]) -> Option<Images> {
    let folder = data("cifar10")?;
    let set = DataSet::named(name).unwrap();
    if set.files(&folder, Split::Test).is_empty() {
        eprintln!("skipped: no {name} in {}", folder.display());
        return None;
    }
    assert!(set.verify(&folder, Split::Test).into_iter().all(|file| file.unwrap().verdict == verdict), "{name}");
    let loaded = set.load(&folder, Split::Test).unwrap();
    assert_eq!(loaded.images.label_counts(), counts, "{name}");
    Some(loaded.images)
}

#[test]
fn mnist() {
    check("mnist", Verdict::Official, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
}

#[test]
fn fashion_mnist() {
    check("fashion-mnist", Verdict::Official, [1000; 10]);
}

/// Means and standard deviations, of values 0 to 1, as numpy computes them from the same file, and one pixel.
#[test]
fn cifar10() {
    if let Some(images) = check("cifar10", Verdict::Official, [1000; 10]) {
        let expected = [(0.49421428, 0.24665252), (0.48513139, 0.24289226), (0.45040909, 0.26159238)];
        assert_statistics(&images, expected);
        assert_eq!(images.image(17)[(5 * 32 + 9) * 3..][..3], [125, 124, 134]);
    }
}

/// The first 5,000 images of the test split, against scipy.io.loadmat.
#[test]
fn svhn() {
    let counts = [339, 988, 775, 561, 496, 450, 381, 376, 316, 318];
    if let Some(images) = check("svhn", Verdict::Unpublished, counts) {
        assert_statistics(&images, [(0.45371952, 0.21833147), (0.45380126, 0.22506749), (0.47053264, 0.22670978)]);
        assert_eq!(images.image(77)[(3 * 32 + 20) * 3..][..3], [127, 128, 136]);
        assert_eq!(images.image(4999)[31 * 32 * 3..][..3], [193, 199, 199]);
        assert_eq!(images.labels()[..10], [5, 2, 1, 0, 6, 1, 9, 1, 1, 8]);
    }
}

fn assert_statistics(images: &Images, expected: [(f64, f64); 3]) {
    for (found, expected) in images.channel_statistics().into_iter().zip(expected) {
        assert!((found.0 - expected.0).abs() < 1e-7 && (found.1 - expected.1).abs() < 1e-7, "{found:?} {expected:?}");
    }
}
