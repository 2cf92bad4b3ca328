//! Any bytes as a .npy file of images, and as its labels.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pudica_data::images::read_npy;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("file.npy");
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = read_npy(&path, &path, None);
    let _ = read_npy(&path, &path, Some(1..2));
});
