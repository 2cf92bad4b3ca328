//! Any bytes as a MATLAB 5 file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pudica_data::images::read_svhn;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("file.mat");
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = read_svhn(&path);
});
