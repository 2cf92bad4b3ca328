//! Any bytes as a picture, PNG or JPEG, in a folder of one class.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pudica_data::images::read_folder;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("class/picture.png");
    std::fs::create_dir(folder.path().join("class")).expect("a temporary folder");
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = read_folder(folder.path(), 0);
    let _ = read_folder(folder.path(), 8);
});
