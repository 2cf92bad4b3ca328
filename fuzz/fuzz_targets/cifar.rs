//! Any bytes as a file of CIFAR-10's, plain or gzipped.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pudica_data::images::read_cifar;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("file.bin");
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = read_cifar(&path);
});
