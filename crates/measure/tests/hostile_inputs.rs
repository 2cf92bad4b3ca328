//! Files of inputs cut off and with bits flipped: every one is read or refused with its name, without a panic and without asking for memory out of
//! proportion to the file.

#[path = "../../data/tests/damage/mod.rs"]
mod damage;

use damage::{LARGEST, damaged};
use pudica_data::Stream;
use pudica_measure::{InputSet, InputsRequest};
use pudica_model::Takes;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

/// What files of a few hundred bytes may ask for: buffers of readers, nothing near what a hostile size says.
const ALLOWED: usize = 16 << 20;

/// Opens the inputs and reads all of them.
fn read(path: &Path, takes: &Takes) -> Result<usize, String> {
    let request = InputsRequest { source: path.display().to_string(), ..InputsRequest::default() };
    let set = InputSet::open(&request, takes).map_err(|error| error.to_string())?;
    let count = set.about().count;
    // A file that says it has many is a file that has many: a few will do.
    (0..count.min(100)).try_for_each(|index| set.read(index).map(|_| ()).map_err(|error| error.to_string()))?;
    Ok(count)
}

/// One test, as the largest request for memory is counted for the whole process.
#[test]
fn damage_is_told_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let csv = folder.path().join("numbers.csv");
    fs::write(&csv, "a,b,label\n1,2.5,x\n-3e2,4,\"y\"\n7,8,x\n").unwrap();
    let takes = [Takes::Anything, Takes::Rows { width: None }, Takes::Tokens { length: None, vocabulary: Some(300) }];
    let files = ["plain.npz", "packed.npz", "half.npy", "tokens.npy"].map(|name| fixtures.join(name));
    for file in files.iter().chain([&csv]) {
        let whole = fs::read(file).unwrap();
        let target = folder.path().join(file.file_name().unwrap());
        let mut stream = Stream::new(8, "hostile-inputs", whole.len() as u64);
        let mut refused = 0;
        for case in 0..400 {
            fs::write(&target, damaged(&whole, &mut stream)).unwrap();
            LARGEST.store(0, Ordering::Relaxed);
            if let Err(problem) = read(&target, &takes[case % 3]) {
                assert!(problem.contains(&target.display().to_string()), "names no file: {problem}");
                refused += 1;
            }
            let largest = LARGEST.load(Ordering::Relaxed);
            assert!(largest < ALLOWED, "{}: case {case} asked for {largest} bytes at once", target.display());
        }
        assert!(refused > 60, "{}: only {refused} of 400 were refused", target.display());
    }
}
