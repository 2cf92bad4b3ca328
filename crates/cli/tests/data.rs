//! `pudica data` as a user runs it, on small files made here.

mod common;

use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn pudica(arguments: &[&str]) -> Output {
    common::pudica(Path::new("."), &[&["data"], arguments].concat())
}

fn text(arguments: &[&str]) -> String {
    common::printed(Path::new("."), &[&["data"], arguments].concat())
}

fn json(arguments: &[&str]) -> Value {
    common::object(&[&["data"], arguments].concat())
}

fn refused(arguments: &[&str]) -> String {
    common::refused(Path::new("."), &[&["data"], arguments].concat())
}

/// A folder with a small CIFAR-10 test file: `count` records, image `i` of class `i` modulo 10 and all pixels `20 i`.
fn small_cifar(folder: &Path, count: u8) -> String {
    std::fs::create_dir_all(folder.join("cifar10")).unwrap();
    let record = |i: u8| [&[i % 10][..], &[i * 20; 3072]].concat();
    let records: Vec<u8> = (0..count).flat_map(record).collect();
    std::fs::write(folder.join("cifar10/test_batch.bin"), records).unwrap();
    folder.display().to_string()
}

#[test]
fn listing_tells_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let data = small_cifar(folder.path(), 3);
    let shown = text(&["list", "--data", &data]);
    assert!(shown.contains("0/5 + 1/1") && shown.contains("Krizhevsky"), "{shown}");
    assert!(text(&["list"]).contains("no data folder: name one with --data DIR"));
    let found = json(&["list", "--data", &data]);
    assert_eq!((&found["sets"][2]["name"], &found["sets"][2]["test"]["files_found"]), (&"cifar10".into(), &1.into()));
    assert!(refused(&["list", "--data", "/no/such/folder"]).contains("/no/such/folder is not a folder"));
}

#[test]
fn verifying_tells_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let data = small_cifar(folder.path(), 3);
    let output = pudica(&["verify", &data]);
    assert_eq!(output.status.code(), Some(2));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("DIFFERS (published: 803d5f7f4d78ea53de84dbe85f74fb6d)"), "{shown}");
    assert!(shown.contains("cifar10 test: 3 of 10,000 images read"), "{shown}");
    let empty = tempfile::tempdir().unwrap();
    assert!(refused(&["verify", &empty.path().display().to_string()]).contains("no file of a known data set"));
    assert!(refused(&["verify"]).contains("PUDICA_DATA"));
}

#[test]
fn showing_writes_a_sheet() {
    let folder = tempfile::tempdir().unwrap();
    let data = small_cifar(folder.path(), 12);
    let sheet = folder.path().join("sheet.png").display().to_string();
    let shown = text(&["show", "cifar10", "--data", &data, "--out", &sheet]);
    assert!(shown.contains("12 of 10,000 images of 32 x 32 x 3") && shown.contains("class 1 automobile"), "{shown}");
    assert!(std::fs::read(&sheet).unwrap().starts_with(b"\x89PNG"));
    let file = format!("{data}/cifar10/test_batch.bin");
    let found = json(&["show", &file, "--out", &sheet]);
    assert_eq!((&found["images"], &found["label_counts"][1]), (&12.into(), &2.into()));
    assert!(refused(&["show", "cifar", "--data", &data]).contains("did you mean 'cifar10'?"));
    assert!(refused(&["show", "mnist", "--data", &data]).contains("no test images of mnist"));
}

#[test]
fn corrupting_writes_the_official_layout() {
    let folder = tempfile::tempdir().unwrap();
    let data = small_cifar(folder.path(), 4);
    let out = folder.path().join("c").display().to_string();
    let sheet = folder.path().join("sheet.png").display().to_string();
    let arguments = ["corrupt", "contrast", "--data", &data, "--out", &out, "--sheet", &sheet, "--images", "3"];
    assert!(text(&arguments).contains("contrast.npy: 5 x 3 images"));
    assert!(std::fs::read(&sheet).unwrap().starts_with(b"\x89PNG"));
    let found = json(&["show", &format!("{out}/contrast.npy"), "--out", &sheet]);
    assert_eq!((&found["images"], &found["label_counts"]), (&15.into(), &serde_json::json!([5, 5, 5])));
    assert!(
        refused(&["corrupt", "frost", "--data", &data, "--out", &out])
            .contains("corruptions/frost1.png: cannot be read")
    );
    assert!(refused(&["corrupt", "fogg", "--data", &data, "--out", &out]).contains("did you mean 'fog'?"));
}
