//! Any bytes as a file of texts, tab-separated and comma-separated.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pudica_data::text::{read_mrpc, read_table, Columns, OwnColumns, OwnTexts};
use pudica_data::Division;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("train.tsv");
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = read_mrpc(&path);
    // A header that fits, so that rows are reached too.
    std::fs::write(&path, [b"Quality\t#1 String\t#2 String\n", bytes].concat()).expect("a temporary file");
    let _ = read_mrpc(&path);
    let path = folder.path().join("train.csv");
    std::fs::write(&path, [b"text,label\n", bytes].concat()).expect("a temporary file");
    let _ = read_table(&path, &Columns { first: "text", second: None, label: "label", classes: 2 });
    let own = OwnTexts::find(&path).expect("a file is found").expect("a file of texts");
    let _ = own.read(&OwnColumns::default(), &Division { fraction: 0.2, seed: 0 });
});
