//! Any bytes as inputs of `pudica measure`: arrays, several arrays, tables.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pudica_measure::{InputSet, InputsRequest};
use pudica_model::Takes;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["a.npy", "a.npz", "a.csv", "a.tsv"] {
        let path = folder.path().join(name);
        // Names of columns that fit, so that rows are reached too.
        let head: &[u8] = if name.ends_with("sv") { b"a,b\tlabel\n" } else { b"" };
        std::fs::write(&path, [head, bytes].concat()).expect("a temporary file");
        let request = InputsRequest { source: path.display().to_string(), ..InputsRequest::default() };
        for takes in [Takes::Anything, Takes::Rows { width: None }, Takes::Texts] {
            if let Ok(set) = InputSet::open(&request, &takes) {
                (0..set.about().count.min(8)).for_each(|index| _ = set.read(index));
            }
        }
    }
});
