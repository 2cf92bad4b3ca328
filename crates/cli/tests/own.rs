//! Own images and own texts as a user brings them: shown, planned, trained on, and refused alike by every command.

#![cfg(unix)]

mod common;

use common::{json, printed, pudica, refused, text};
use pudica_data::images::{ContactSheet, Images, Shape};
use serde_json::Value;
use std::fs;
use std::path::Path;

const RECIPE: &str = "
title = 'Own'
kind = 'classifier'
[quick.settings]
train = { batch = 10, epochs = 2 }
measure = { every = 1, draws = 1, inputs = 4 }
[[quick.sweep]]
name = 'all'
grid.seed = [0]
";

fn put(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A picture of these sizes, as a contact sheet of one pixel has it.
fn picture(path: &Path, height: usize, width: usize, channels: usize, shade: u8) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let shape = Shape { height, width, channels };
    let image = Images::new(shape, vec![shade; shape.pixels()], vec![0]).unwrap();
    ContactSheet::by_class(&image, 1, 1).write_png(path).unwrap();
}

/// Sentence pairs of three classes in a file, RoBERTa's tokens of a few letters, photographs of three classes.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    put(root, "own.toml", RECIPE);
    let pieces = ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "c", "d", "e", "f", "Ġ", "ab", "Ġab", "<mask>"];
    let numbers: Vec<String> = pieces.iter().enumerate().map(|(at, piece)| format!("\"{piece}\": {at}")).collect();
    put(root, "data/bpe/roberta_vocab.json", format!("{{{}}}", numbers.join(", ")));
    put(root, "data/bpe/vocab.bpe", "#version: 0.2\na b\nĠ ab\n");
    let classes = ["neutral", "contradiction", "entailment"];
    let row = |row: usize| format!("{row}\tab {}\tcd fe\t{}\n", ["ab", "cd", "e f"][row % 3], classes[row % 3]);
    put(
        root,
        "data/mytext/pairs.tsv",
        "id\tpremise\tclaim\tgold\n".to_string() + &(0..30).map(row).collect::<String>(),
    );
    for (class, shade) in [("cat", 40), ("dog", 120), ("horse", 220)] {
        for index in 0..5 {
            picture(&root.join(format!("photos/{class}/{index}.png")), 20 + index, 26 - index, 3, shade);
        }
    }
    folder
}

const TEXT: [&str; 3] = ["data.text=premise+claim", "data.label=gold", "data.test_fraction=0.3"];
const LSTM: [&str; 6] = [
    "model.kind=lstm",
    "model.dim=8",
    "model.depth=1",
    "model.length=16",
    "measure.nudge=embedding",
    "train.optimiser=adamw",
];

fn summary(folder: &Path, out: &str) -> Value {
    let runs = fs::read_dir(folder.join(out).join("runs")).unwrap();
    json(&runs.map(|run| run.unwrap().path().join("summary.json")).next().unwrap())
}

#[test]
fn a_file_of_sentence_pairs_is_shown_and_learnt_under_its_own_name() {
    let folder = folder();
    let root = folder.path();
    let shown = printed(root, &[&["data", "show", "mytext", "--data", "data"], &TEXT[..]].concat());
    assert!(shown.contains("mytext: 30 pairs of texts in 3 classes"), "{shown}");
    assert!(shown.contains("21 for training and 9 for tests: data.test_fraction=0.3 of each class"), "{shown}");
    assert!(shown.contains("contradiction: ab cd | cd fe"), "{shown}");
    let found: Value =
        serde_json::from_str(&printed(root, &[&["data", "show", "data/mytext", "--json"], &TEXT[..]].concat()))
            .unwrap();
    assert_eq!(found["classes"], serde_json::json!(["contradiction", "entailment", "neutral"]));
    assert_eq!(
        (&found["train_counts"], &found["test_counts"]),
        (&serde_json::json!([7, 7, 7]), &serde_json::json!([3, 3, 3]))
    );

    let run =
        [&["run", "own.toml", "data.name=mytext", "--data", "data", "--out", "out"], &TEXT[..], &LSTM[..]].concat();
    printed(root, &run);
    let summary = summary(root, "out");
    let classes = &summary["detail"]["data"]["own_classes"];
    assert_eq!(classes[1], serde_json::json!({"name": "entailment", "train": 7, "test": 3}));
    assert_eq!(summary["detail"]["data"]["train"]["texts"], 21);
    let measure = |name: &str| summary["measures"][name].as_f64().unwrap_or_else(|| panic!("{name}: {summary}"));
    assert!((measure("test_majority_fraction") - 1.0 / 3.0).abs() < 1e-12);
    assert!((1.0 / 3.0..=1.0).contains(&measure("test_largest_class_fraction")));
    assert!((0.0..=1.0).contains(&measure("sensitivity")));
    let page = fs::read_to_string(root.join("out/report.html")).unwrap();
    assert!(page.contains("mytext") && !page.contains("sst2"));
    assert!(["Classes of your own data", "contradiction", "neutral"].iter().all(|text| page.contains(text)));
    for kind in ["roberta", "gpt2"] {
        let model = format!("model.kind={kind}");
        let sizes = ["model.heads=2", "model.mlp=8", &model];
        let run = [
            &["run", "own.toml", "data.name=data/mytext/pairs.tsv", "--data", "data", "--out", kind],
            &TEXT[..],
            &LSTM[1..],
            &sizes,
        ]
        .concat();
        printed(root, &run);
    }
}

#[test]
fn a_folder_of_photographs_of_mixed_sizes_is_shown_and_learnt() {
    let folder = folder();
    let root = folder.path();
    let shown = printed(root, &["data", "show", "photos", "data.size=8"]);
    assert!(
        shown.contains("photos: 15 images of 8 x 8 x 3") && shown.contains("12 for training and 3 for tests"),
        "{shown}"
    );
    assert!(["cat", "dog", "horse"].iter().all(|class| shown.contains(class)), "{shown}");
    assert!(fs::read(root.join("photos.png")).unwrap().starts_with(b"\x89PNG"));
    let size = ["data.name=photos", "data.size=8", "model.kind=mlp", "model.hidden=8", "measure.patch=4"];
    let run = [&["run", "own.toml", "--out", "out", "train.epochs=60", "measure.every=60"], &size[..]].concat();
    let output = pudica(root, &run);
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("photos: 12 training and 3 test inputs, divided by data.seed, in 3 classes: cat, dog, horse"),
        "{told}"
    );
    let summary = summary(root, "out");
    // Dark, grey and bright: every network tells them apart.
    assert_eq!(summary["measures"]["test_accuracy"], 1.0);
    assert!((summary["measures"]["test_largest_class_fraction"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12);
    // Another seed divides otherwise, so it is another run; another file as well.
    let id = |more: &[&str]| {
        let plan = printed(root, &[&["show", "own.toml", "--json", "--no-estimate"], &size[..], more].concat());
        serde_json::from_str::<Value>(&plan).unwrap()["runs"][0]["id"].as_str().unwrap().to_string()
    };
    let first = id(&[]);
    assert_eq!(first, id(&["data.test_fraction=0.2"]), "the default, stated");
    assert_ne!(first, id(&["data.seed=1"]));
    picture(&root.join("photos/cat/new.png"), 9, 9, 3, 41);
    assert_ne!(first, id(&[]));
}

/// Every command that reads own data answers with the same sentence.
#[test]
fn show_and_run_refuse_the_same() {
    let folder = folder();
    let root = folder.path();
    put(root, "one.tsv", "text\tlabel\nab\tx\ncd\tx\n");
    put(root, "gap.tsv", "text\tlabel\nab\tx\n\ncd\t\n");
    put(root, "empty/.keep", "");
    put(root, "broken/a/1.png", "no picture");
    picture(&root.join("broken/b/1.png"), 4, 4, 3, 0);
    picture(&root.join("few/a/1.png"), 4, 4, 3, 0);
    picture(&root.join("few/b/1.png"), 4, 4, 3, 9);
    put(root, "noise.csv", (0..=255).rev().collect::<Vec<u8>>());
    std::os::unix::fs::symlink("/dev/zero", root.join("endless.tsv")).unwrap();
    let cases: [(&str, &[&str], bool, &str); 12] = [
        ("noise.csv", &[], true, "noise.csv: line 1, column 1: not UTF-8 text"),
        ("endless.tsv", &[], true, "endless.tsv: is not a plain file"),
        ("nothere", &[], false, "\"nothere\" is no folder or file here or in data, and no data set known"),
        (
            "mytext",
            &["data.label=gold", "data.text=premis"],
            true,
            "pairs.tsv: line 1: there is no column 'premis': did you mean 'premise'?; the columns are: id, premise, claim, gold",
        ),
        ("mytext", &["data.label=gold"], true, "pairs.tsv: line 1: say which column holds the text by data.text=NAME"),
        ("one.tsv", &[], true, "one.tsv: all 2 rows have the label 'x'"),
        ("gap.tsv", &[], true, "gap.tsv: line 4, column 'label': there is no label"),
        ("empty", &[], false, "empty: there are neither images"),
        (
            "photos",
            &[],
            false,
            "photos/cat/1.png: this picture is 25 x 29 x 3, those before it 24 x 30 x 3; data.size=32",
        ),
        ("broken", &["data.size=8"], false, "broken/a/1.png: not a PNG that can be read"),
        ("few", &["data.size=8"], false, "few: too few of class 'a': 1"),
        ("photos", &["data.size=5000"], false, "data.size: must be at most 1024, not 5000"),
    ];
    for (name, settings, texts, part) in cases {
        let named = format!("data.name={name}");
        let model: &[&str] = if texts { &LSTM } else { &["model.kind=mlp"] };
        let plan = [&["own.toml", &named, "--data", "data"], settings, model].concat();
        let commands = [
            [&["run"], &plan[..], &["--out", "never"]].concat(),
            [&["show"], &plan[..]].concat(),
            [&["show", "--no-estimate"], &plan[..]].concat(),
            [&["data", "show", name, "--data", "data"], settings].concat(),
        ];
        for command in commands {
            let sentence = refused(root, &command);
            // A name that is not there is answered by `data show` as a data set's name that is misspelt.
            let expected =
                if name == "nothere" && command[0] == "data" { "no data set is called 'nothere'" } else { part };
            assert!(sentence.contains(expected) && sentence.trim().lines().count() == 1, "{command:?}: {sentence}");
        }
        assert!(!root.join("never").exists());
    }
    let wrong = refused(root, &[&["run", "own.toml", "data.name=photos"], &LSTM[..]].concat());
    assert!(wrong.contains("model.kind: lstm reads texts, and photos holds images"), "{wrong}");
    let tokens = refused(root, &[&["run", "own.toml", "data.name=data/mytext"], &TEXT[..], &LSTM[..]].concat());
    assert!(
        tokens.contains("bpe (RoBERTa's tokens) is needed") && tokens.contains("pudica data fetch bpe"),
        "{tokens}"
    );
    let no_part = refused(root, &["data", "show", "photos", "data.text=a"]);
    assert!(no_part.contains("data.text: plays no part in photos"), "{no_part}");
    let unknown = refused(root, &["data", "show", "photos", "train.lr=1"]);
    assert!(unknown.contains("train.lr is none of data.text, data.label, data.size"), "{unknown}");
}
