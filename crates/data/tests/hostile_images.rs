//! Files cut off and bits flipped at random: every reader must end with images or an error, without a panic and without asking for
//! memory out of proportion to the file. A stand-in for long fuzzing that runs with the other tests.

mod damage;
mod image_files;

use damage::{LARGEST, damaged};
use image_files::{Kind, cifar, gzipped, idx, mat, npy, png};
use pudica_data::Stream;
use pudica_data::images::{Images, Shape, read_any};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Files of a few kilobytes may make decoders want their tables and windows, but nothing near what a hostile size says.
const ALLOWED: usize = 40 << 20;

/// Reads damaged copies of `target`, which lies among whole files.
fn attack(folder: &Path, target: &Path, read: &Path) {
    let whole = fs::read(target).unwrap();
    read_any(read).unwrap();
    let mut stream = Stream::new(6, "hostile-images", whole.len() as u64);
    let (mut read_anyway, mut refused) = (0, 0);
    for case in 0..150 {
        fs::write(target, damaged(&whole, &mut stream)).unwrap();
        LARGEST.store(0, Ordering::Relaxed);
        match read_any(read) {
            Ok(images) => {
                assert_eq!(images.pixels().len(), images.count() * images.shape().pixels());
                read_anyway += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains(&folder.display().to_string()), "names no file: {error}");
                refused += 1;
            }
        }
        let largest = LARGEST.load(Ordering::Relaxed);
        assert!(largest < ALLOWED, "{}: case {case} asked for {largest} bytes at once", target.display());
    }
    fs::write(target, whole).unwrap();
    assert!(refused > 30, "{}: {refused} refused, {read_anyway} read", target.display());
}

/// One test, as the largest request for memory is counted for the whole process.
#[test]
fn damage_is_told_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let shape = Shape { height: 32, width: 32, channels: 3 };
    let mut stream = Stream::new(5, "pixels", 0);
    let pixels: Vec<u8> = (0..8 * shape.pixels()).map(|i| if i % 5 < 2 { stream.word() as u8 } else { 7 }).collect();
    let set = Images::new(shape, pixels, vec![1, 2, 3, 4, 5, 0, 9, 8]).unwrap();
    let grey = &set.pixels()[..8 * 1024];
    let digits = set.labels();
    let files: [(&str, Vec<u8>, &str); 12] = [
        ("a-labels-idx1-ubyte", idx(&[8], digits), "a-images-idx3-ubyte"),
        ("a-images-idx3-ubyte", idx(&[8, 32, 32], grey), "a-images-idx3-ubyte"),
        ("b-labels-idx1-ubyte.gz", gzipped(&idx(&[8], digits)), "b-images-idx3-ubyte.gz"),
        ("b-images-idx3-ubyte.gz", gzipped(&idx(&[8, 32, 32], grey)), "b-images-idx3-ubyte.gz"),
        ("c.bin", cifar(&set)[..3073].to_vec(), "c.bin"),
        ("d.bin.gz", gzipped(&cifar(&set)), "d.bin.gz"),
        ("e.mat", mat(&set, true, Kind::Double), "e.mat"),
        ("f.mat", mat(&set, false, Kind::Byte), "f.mat"),
        ("labels.npy", npy("(8,)", digits), "g.npy"),
        ("g.npy", npy("(8, 32, 32, 3)", set.pixels()), "g.npy"),
        ("pictures/one/h.png", png(shape, set.image(0)), "pictures"),
        ("photographs/one/i.jpg", include_bytes!("fixtures/picture.jpg").to_vec(), "photographs"),
    ];
    fs::create_dir_all(folder.join("pictures/one")).unwrap();
    fs::create_dir_all(folder.join("photographs/one")).unwrap();
    files.iter().for_each(|(name, bytes, _)| fs::write(folder.join(name), bytes).unwrap());
    files.iter().for_each(|(name, _, read)| attack(folder, &folder.join(name), &folder.join(read)));
}
