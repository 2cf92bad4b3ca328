//! Own images and own texts, right and wrong, in folders made here.

mod image_files;

use image_files::{gzipped, npy, png};
use pudica_data::Division;
use pudica_data::Stream;
use pudica_data::images::{OwnImages, Shape};
use pudica_data::text::{OwnColumns, OwnTexts};
use std::fs;
use std::path::{Path, PathBuf};

const FIFTH: Division = Division { fraction: 0.2, seed: 0 };

fn put(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

/// A picture of one colour (or one grey).
fn plain(height: usize, width: usize, colour: &[u8]) -> Vec<u8> {
    let shape = Shape { height, width, channels: colour.len() };
    png(shape, &colour.repeat(height * width))
}

fn texts(path: &Path, text: &str, label: &str) -> Result<pudica_data::Divided<pudica_data::text::Pairs>, String> {
    let found = OwnTexts::find(path).map_err(|error| error.to_string())?.ok_or("no texts")?;
    found.read(&OwnColumns { text, label }, &FIFTH).map_err(|error| error.to_string())
}

fn images(path: &Path, size: usize) -> Result<pudica_data::Divided<pudica_data::images::Images>, String> {
    let found = OwnImages::find(path).map_err(|error| error.to_string())?.ok_or("no images")?;
    found.read(size, &FIFTH).map_err(|error| error.to_string())
}

/// Ten rows of two classes.
fn entailment() -> String {
    let row =
        |row: usize| format!("{row}\tpremise {row}\tclaim {row}\t{}\n", ["not_entailment", "entailment"][row % 2]);
    "index\tsentence1\tsentence2\tlabel\n".to_string() + &(0..10).map(row).collect::<String>()
}

#[test]
fn a_file_of_pairs_with_words_as_labels_is_divided() {
    let folder = tempfile::tempdir().unwrap();
    let path = put(folder.path(), "all.tsv", entailment());
    let found = texts(&path, "", "").unwrap();
    assert_eq!(found.classes, ["entailment", "not_entailment"]);
    assert_eq!((found.train.label_counts(), found.test.label_counts()), (vec![4, 4], vec![1, 1]));
    let (first, second) = &found.train.texts[0];
    assert_eq!(first.replace("premise", "claim"), *second.as_ref().unwrap());
    let row: usize = first.trim_start_matches("premise ").parse().unwrap();
    assert_eq!(found.train.labels[0], 1 - row % 2);
    // The folder with this one file, packed or not, is the same; another seed is another division of the same rows.
    assert_eq!(texts(folder.path(), "sentence1+sentence2", "label").unwrap(), found);
    fs::remove_file(&path).unwrap();
    put(folder.path(), "all.tsv.gz", gzipped(entailment().as_bytes()));
    put(folder.path(), "README.txt", "not a table");
    assert_eq!(texts(folder.path(), "", "").unwrap(), found);
    let own = OwnTexts::find(folder.path()).unwrap().unwrap();
    assert!(!own.is_divided());
    let other = own.read(&OwnColumns::default(), &Division { fraction: 0.4, seed: 1 }).unwrap();
    assert_eq!((other.train.count(), other.test.count()), (6, 4));
    let one = own.read(&OwnColumns { text: "sentence2", label: "" }, &FIFTH).unwrap();
    assert!(one.train.texts.iter().all(|(text, second)| text.starts_with("claim") && second.is_none()));
}

#[test]
fn files_for_training_and_tests_are_used_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "train.csv", "gold,review\n10,\"good, \"\"very\"\" good\"\n2,bad\n-1,so so\n");
    put(folder.path(), "dev.csv", "review,gold\nfine,10\n");
    put(folder.path(), "test.csv", "review\nwithout labels, as GLUE's\n");
    let found = texts(folder.path(), "review", "gold").unwrap();
    assert_eq!(found.classes, ["-1", "2", "10"], "in the order of numbers");
    assert_eq!((found.train.labels, found.test.labels), (vec![2, 1, 0], vec![2]));
    assert_eq!(found.train.texts[0].0, "good, \"very\" good");
    let files: Vec<String> = OwnTexts::find(folder.path())
        .unwrap()
        .unwrap()
        .files()
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(files, ["train.csv", "dev.csv"]);
}

#[test]
fn what_is_wrong_with_own_texts_is_told_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |content: &str, text: &str, label: &str| {
        let path = put(folder.path(), "mine.tsv", content);
        let problem = texts(&path, text, label).unwrap_err();
        assert!(problem.starts_with(path.to_str().unwrap()), "{problem}");
        problem
    };
    let many: String = (0..1002).map(|row| format!("text\t{row}\n")).collect();
    for (content, text, label, part) in [
        (
            "a\tlabel\nx\t1\n",
            "",
            "",
            "line 1: say which column holds the text by data.text=NAME, or data.text=NAME+NAME for pairs; the columns are: a, label",
        ),
        (
            "text\tclass\nx\t1\n",
            "",
            "",
            "line 1: say which column holds the class by data.label=NAME; the columns are: text, class",
        ),
        (
            "text\tlabel\nx\t1\n",
            "txt",
            "",
            "line 1: there is no column 'txt': did you mean 'text'?; the columns are: text, label",
        ),
        ("text\tlabel\nx\t1\n", "text", "gold", "line 1: there is no column 'gold'"),
        ("a\tb\tc\tlabel\nx\tx\tx\t1\n", "a+b+c", "", "data.text=a+b+c: a row is one text, or a pair"),
        ("text\tlabel\nx\t1\ny\t\n", "", "", "line 3, column 'label': there is no label"),
        ("text\tlabel\nx\t1\n \t0\n", "", "", "line 3, column 'text': the text is empty"),
        (
            "text\tlabel\nx\tyes\ny\tyes\n",
            "",
            "",
            "all 2 rows have the label 'yes', but at least two classes are needed",
        ),
        ("text\tlabel\nx\tyes\ny\tyes\nz\tno\n", "", "", "too few of class 'no': 1"),
        (
            &format!("text\tlabel\n{many}"),
            "",
            "",
            "line 1002, column 'label': more than 1000 different labels up to here",
        ),
        ("", "", "", "is empty"),
        ("text\tlabel\n", "", "", "has a header but no rows"),
    ] {
        let problem = refused(content, text, label);
        assert!(problem.contains(part), "{problem}");
    }
    let two = tempfile::tempdir().unwrap();
    put(two.path(), "train.tsv", "text\tlabel\na\tx\nb\ty\n");
    put(two.path(), "val.tsv", "text\tlabel\na\tx\nb\tz\n");
    let problem = texts(two.path(), "", "").unwrap_err();
    assert!(
        problem.contains("val.tsv: line 3, column 'label': 'z' is none of the labels of train.tsv: x, y"),
        "{problem}"
    );
    put(two.path(), "more_train.csv", "");
    assert!(texts(two.path(), "", "").unwrap_err().contains("are both for 'train'"));
    let other = tempfile::tempdir().unwrap();
    put(other.path(), "a.tsv", "");
    put(other.path(), "b.tsv", "");
    assert!(
        texts(other.path(), "", "")
            .unwrap_err()
            .contains("none of its files is called train, as train.tsv is (a.tsv, b.tsv)")
    );
    assert!(OwnTexts::find(&put(other.path(), "c.parquet", "")).unwrap().is_none());
}

#[test]
fn pictures_of_all_sizes_and_colours_become_one_size() {
    let folder = tempfile::tempdir().unwrap();
    for index in 0..5 {
        put(folder.path(), &format!("cat/{index}.png"), plain(20 + index, 30, &[10, 20, 30]));
        put(folder.path(), &format!("dog/{index}.png"), plain(16, 16 + index, &[200]));
    }
    put(folder.path(), "horse/a.jpg", include_bytes!("fixtures/picture.jpg"));
    put(folder.path(), "horse/b.JPEG", include_bytes!("fixtures/grey.jpg"));
    put(folder.path(), ".hidden/x.png", "not looked at");
    let found = images(folder.path(), 8).unwrap();
    assert_eq!(found.classes, ["cat", "dog", "horse"]);
    assert_eq!((found.train.label_counts(), found.test.label_counts()), (vec![4, 4, 1], vec![1, 1, 1]));
    assert_eq!(found.train.shape(), Shape { height: 8, width: 8, channels: 3 });
    assert!(found.train.image(0).chunks_exact(3).all(|pixel| pixel == [10, 20, 30]));
    assert!(found.train.image(4).iter().all(|byte| *byte == 200), "grey as red, green and blue");
    let problem = images(folder.path(), 0).unwrap_err();
    assert!(
        problem.contains("1.png: this picture is 21 x 30 x 3, those before it 20 x 30 x 3; data.size=32"),
        "{problem}"
    );
    put(folder.path(), "horse/c.gif", "GIF89a");
    assert!(images(folder.path(), 8).unwrap_err().contains("c.gif: is a picture of a kind not read here"));
    put(folder.path(), "horse/c.gif", "");
    fs::remove_file(folder.path().join("horse/c.gif")).unwrap();
    let broken = put(folder.path(), "dog/broken.png", "not a picture");
    assert!(images(folder.path(), 8).unwrap_err().contains(&broken.display().to_string()));
    fs::remove_file(broken).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(images(folder.path(), 8).unwrap_err().contains("empty: no .png, .jpg or .jpeg in it"));
}

/// Half transparent black on white is grey: 0 * 128/255 + 255 * 127/255 = 127.
#[test]
fn what_is_transparent_is_put_on_white() {
    let folder = tempfile::tempdir().unwrap();
    for (name, pixel) in [("a/1", [0, 0, 0, 128]), ("a/2", [9, 8, 7, 255]), ("b/1", [0; 4]), ("b/2", [0; 4])] {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 4, 4);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(&pixel.repeat(16)).unwrap();
        put(folder.path(), &format!("{name}.png"), file);
    }
    let found = images(folder.path(), 0).unwrap();
    let mut all: Vec<u8> =
        [&found.train, &found.test].iter().flat_map(|part| (0..2).map(|at| part.image(at)[0])).collect();
    all.sort_unstable();
    assert_eq!(all, [9, 127, 255, 255]);
}

/// A note that the camera was held upside down: the last pixel stored is the first one seen.
#[test]
fn photographs_are_turned_as_their_cameras_say() {
    let folder = tempfile::tempdir().unwrap();
    let stored = include_bytes!("fixtures/picture.jpg");
    let note = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0";
    let segment = [&[0xff, 0xe1][..], &(note.len() as u16 + 2).to_be_bytes(), note].concat();
    let turned = [&stored[..2], &segment, &stored[2..]].concat();
    for (name, bytes) in [("train/a/1.jpg", &stored[..]), ("train/b/1.jpg", &turned), ("val/a/1.jpg", stored)] {
        put(folder.path(), name, bytes);
    }
    let found = images(folder.path(), 0).unwrap().train;
    let reversed: Vec<u8> = found.image(0).chunks_exact(3).rev().flatten().copied().collect();
    assert!(found.image(1) == reversed && found.image(0) != reversed);
}

#[test]
fn folders_for_training_and_tests_have_the_same_classes() {
    let folder = tempfile::tempdir().unwrap();
    for class in ["cat", "dog", "horse"] {
        put(folder.path(), &format!("train/{class}/1.png"), plain(4, 4, &[1, 2, 3]));
    }
    for class in ["dog", "horse"] {
        put(folder.path(), &format!("val/{class}/1.png"), plain(4, 4, &[7]));
    }
    let found = images(folder.path(), 0).unwrap();
    assert_eq!((found.train.labels(), found.test.labels()), (&[0, 1, 2][..], &[1, 2][..]), "classes by their names");
    assert_eq!(found.test.shape().channels, 3, "grey ones among colour ones");
    put(folder.path(), "val/cow/1.png", plain(4, 4, &[7]));
    let problem = images(folder.path(), 0).unwrap_err();
    assert!(
        problem.contains("val/cow: the class 'cow' has no images to train on; the others are: cat, dog, horse"),
        "{problem}"
    );
    fs::remove_dir_all(folder.path().join("train")).unwrap();
    assert!(images(folder.path(), 0).unwrap_err().contains("there are images in val but none in train"));
}

#[test]
fn arrays_are_divided_and_resized_too() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "images.npy", npy("(6, 4, 4)", &[50; 96]));
    put(folder.path(), "labels.npy", npy("(6,)", &[0, 1, 0, 1, 0, 1]));
    let found = images(folder.path(), 2).unwrap();
    assert_eq!((found.classes, found.train.shape().pixels()), (vec!["0".to_string(), "1".to_string()], 4));
    assert_eq!((found.train.count(), found.test.count()), (4, 2));
    put(folder.path(), "labels.npy", npy("(6,)", &[0; 6]));
    assert!(images(folder.path(), 2).unwrap_err().contains("only one class, '0'"));
    assert!(OwnImages::find(&folder.path().join("labels.npy")).unwrap().is_none());
}

/// Damaged copies of own files give data or a sentence.
#[test]
fn damaged_own_files_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let (tsv, csv) = (folder.path().join("texts/a.tsv"), folder.path().join("texts2/a.csv"));
    put(folder.path(), "pictures/a/1.jpg", include_bytes!("fixtures/picture.jpg"));
    put(folder.path(), "pictures/a/2.jpg", include_bytes!("fixtures/picture.jpg"));
    put(folder.path(), "pictures/b/2.jpg", include_bytes!("fixtures/grey.jpg"));
    let (mut read, mut refused) = (0, 0);
    for round in 0..300 {
        let mut stream = Stream::new(2, "damage", round);
        let mut damage = |mut bytes: Vec<u8>, letters: &[u8]| {
            for _ in 0..stream.below(5) {
                let at = stream.below(bytes.len() as u64) as usize;
                bytes[at] = letters[stream.below(letters.len() as u64) as usize];
            }
            bytes
        };
        let text = damage(entailment().into_bytes(), b"\t\n\"\0\xff,");
        put(folder.path(), "texts/a.tsv", &text);
        put(folder.path(), "texts2/a.csv", &text);
        for path in [&tsv, &csv] {
            match texts(path, "sentence1+sentence2", "") {
                Ok(found) => read += usize::from(found.train.count() > 0),
                Err(problem) => refused += usize::from(problem.contains("/a.")),
            }
        }
        put(
            folder.path(),
            "pictures/b/1.jpg",
            damage(include_bytes!("fixtures/grey.jpg").to_vec(), &[0, 0xff, 0xd8, 3]),
        );
        let _ = images(&folder.path().join("pictures"), 5);
    }
    assert_eq!(read + refused, 600);
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}
