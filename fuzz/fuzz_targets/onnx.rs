//! Any bytes as an ONNX file that the embedded engine is to compute.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pudica_model::{Choices, ModelRequest, Runtime, Source, open};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("net.onnx");
    std::fs::write(&path, bytes).expect("a temporary file");
    let choices = Choices { runtime: Some(Runtime::Tract), ..Choices::default() };
    let _ = open(&ModelRequest { source: Source::File(path), choices });
});
