//! Any bytes as a PyTorch checkpoint or safetensors file, by their first bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pudica_model::{Choices, ModelRequest, Source, open};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("net.pt");
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = open(&ModelRequest { source: Source::File(path), choices: Choices::default() });
});
