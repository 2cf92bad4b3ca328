//! Any bytes as an IDX file of images, and as its labels.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pudica_data::images::read_idx;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = read_idx(&path, &path);
    let labels = folder.path().join("labels");
    std::fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 2, 0, 1]).expect("a temporary file");
    let _ = read_idx(&path, &labels);
    let images = folder.path().join("images");
    std::fs::write(&images, [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7, 8]).expect("a temporary file");
    let _ = read_idx(&images, &path);
});
