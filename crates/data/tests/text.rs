//! Files of texts, right and wrong, and a tiny vocabulary whose tokens can be worked out by hand.

mod real_data;

use flate2::{Compression, write::GzEncoder};
use pudica_data::Split;
use pudica_data::Stream;
use pudica_data::text::{
    Columns, PairEncoder, Pairs, TEXT_SETS, TextSet, Vocabulary, read_mrpc, read_qqp, read_sst2, read_table,
};
use real_data::data;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MRPC: &str = "\u{feff}Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n\
    1\t7\t8\tHe said \"no .\tHe said \" no \" , \"\"yes\"\" .\r\n\
    0\t9\t10\tZürich 's café\t 'tis a \\t test , \r\n";

/// A folder with one file in it.
fn file(name: &str, content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    (folder, path)
}

fn gzipped(content: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(content).unwrap();
    packer.finish().unwrap()
}

fn pair(first: &str, second: &str) -> (String, Option<String>) {
    (first.to_string(), Some(second.to_string()))
}

#[test]
fn quotes_are_letters_in_tsv_and_the_mark_and_line_ends_are_not() {
    let expected = Pairs {
        texts: vec![
            pair("He said \"no .", "He said \" no \" , \"\"yes\"\" ."),
            pair("Zürich 's café", " 'tis a \\t test , "),
        ],
        labels: vec![1, 0],
    };
    for content in [MRPC.to_string(), MRPC.replace("\r\n", "\n"), MRPC.trim_start_matches('\u{feff}').to_string()] {
        let (_folder, path) = file("train.tsv", &content);
        assert_eq!(read_mrpc(&path).unwrap(), expected);
        let (_folder, path) = file("train.tsv.gz", gzipped(content.as_bytes()));
        assert_eq!(read_mrpc(&path).unwrap(), expected);
    }
    assert_eq!(expected.label_counts(), [1, 1]);
    assert_eq!(expected.select([1]).labels, [0]);
}

#[test]
fn other_files_of_glue_are_read_by_their_columns() {
    let (_folder, path) = file("dev.tsv", "is_duplicate\tid\tquestion2\tquestion1\n1\tA1\tb?\ta?\n");
    assert_eq!(read_qqp(&path).unwrap(), Pairs { texts: vec![pair("a?", "b?")], labels: vec![1] });
    let (_folder, path) = file("dev.tsv", "sentence\tlabel\nit 's a charming journey . \t1\n");
    let expected = vec![("it 's a charming journey . ".to_string(), None)];
    assert_eq!(read_sst2(&path).unwrap(), Pairs { texts: expected, labels: vec![1] });
}

#[test]
fn csv_fields_may_be_quoted() {
    let content = "label,text\n2,\"a, \"\"b\"\"\nand c\"\n0,plain\r\n";
    let (_folder, path) = file("mine.csv", content);
    let columns = Columns { first: "text", second: None, label: "label", classes: 3 };
    let pairs = read_table(&path, &columns).unwrap();
    assert_eq!(pairs.texts, [("a, \"b\"\nand c".to_string(), None), ("plain".to_string(), None)]);
    assert_eq!(pairs.labels, [2, 0]);
}

#[test]
fn what_is_wrong_is_told_with_file_line_and_column() {
    let header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n";
    let long = "z".repeat(500);
    let wrong: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "is empty; its first line should name the columns"),
        (header.into(), "has a header but no rows"),
        (
            b"Quality\t#1 String\nx".to_vec(),
            "line 1: there is no column '#2 String': did you mean '#1 String'?; the columns are",
        ),
        (b"index\t#1 String\t#2 String\n".to_vec(), "line 1: there is no column 'Quality'"),
        (
            format!("{header}1\t2\t3\ta\tb\n1\t2\t3\ta\n").into(),
            "line 3 has 4 columns, the header has 5: '#2 String' is missing",
        ),
        (format!("{header}1\t2\t3\ta\tb\tc\n").into(), "line 2 has 6 columns, the header has 5"),
        (
            format!("{header}\n\n2\t2\t3\ta\tb\n").into(),
            "line 4, column 'Quality': '2' is not a label; labels are 0 to 1",
        ),
        (format!("{header}-1\t2\t3\ta\tb\n").into(), "line 2, column 'Quality': '-1' is not a label"),
        (format!("{header}{long}\t2\t3\ta\tb\n").into(), "zzz...' is not a label"),
        ([header.as_bytes(), b"1\t2\t3\t\xff\tb\n"].concat(), "line 2, column '#1 String': not UTF-8 text"),
        (gzipped(&MRPC.repeat(40).into_bytes())[..60].to_vec(), "damaged after line"),
    ];
    for (content, expected) in wrong {
        let (_folder, path) = file("train.tsv", content);
        let message = read_mrpc(&path).unwrap_err().to_string();
        assert!(message.starts_with(path.to_str().unwrap()) && message.contains(expected), "{message}");
        assert!(message.len() < 500, "{message}");
    }
    let (_folder, path) = file("a.csv", "text,label\r\n\r\n\"two\nlines\",0\r\n\"a\nb\nc\",7");
    let columns = Columns { first: "text", second: None, label: "label", classes: 2 };
    let message = read_table(&path, &columns).unwrap_err().to_string();
    assert!(message.contains("line 5, column 'label': '7' is not a label"), "{message}");
    let (folder, _) = file("x", "");
    assert!(read_mrpc(folder.path()).unwrap_err().to_string().contains("is a folder"));
    assert!(read_mrpc(Path::new("/nowhere/train.tsv")).unwrap_err().to_string().contains("cannot be read"));
}

/// A stand-in for long fuzzing: damaged copies give rows or an error.
#[test]
fn damaged_files_never_panic() {
    let (_folder, path) = file("a.tsv", "");
    let (_folder2, csv) = file("a.csv", "");
    let columns = Columns { first: "#1 String", second: Some("#2 String"), label: "Quality", classes: 2 };
    let packed = gzipped(MRPC.as_bytes());
    for round in 0..600 {
        let mut stream = Stream::new(1, "damage", round);
        let mut bytes = if round % 3 == 0 { packed.clone() } else { MRPC.as_bytes().to_vec() };
        for _ in 0..stream.below(5) {
            let at = stream.below(bytes.len() as u64) as usize;
            bytes[at] = [b'\t', b'\n', b'"', 0, 0xff, b','][stream.below(6) as usize];
        }
        bytes.truncate(1 + stream.below(bytes.len() as u64) as usize);
        fs::write(&path, &bytes).unwrap();
        let _ = read_mrpc(&path);
        fs::write(&csv, &bytes).unwrap();
        let _ = read_table(&csv, &columns);
    }
}

#[test]
fn a_file_that_unpacks_without_end_is_refused() {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(b"Quality\t#1 String\t#2 String\n").unwrap();
    let block = vec![b'a'; 1 << 20];
    for _ in 0..260 {
        packer.write_all(&block).unwrap();
    }
    let (_folder, path) = file("train.tsv.gz", packer.finish().unwrap());
    let message = read_mrpc(&path).unwrap_err().to_string();
    assert!(message.contains("more than the 268435456 bytes read here"), "{message}");
}

#[test]
fn sets_are_found_by_name() {
    assert!(TextSet::named("mprc").err().unwrap().contains("did you mean 'mrpc'"));
    let folder = tempfile::tempdir().unwrap();
    let set = TextSet::named("mrpc-glue").unwrap();
    let message = set.load(folder.path(), Split::Test).unwrap_err().to_string();
    assert!(message.contains("dev.tsv (or .gz) should lie in one of the folders mrpc, MRPC"), "{message}");
    fs::create_dir(folder.path().join("MRPC")).unwrap();
    fs::write(folder.path().join("MRPC/dev.tsv.gz"), gzipped(MRPC.as_bytes())).unwrap();
    let loaded = set.load(folder.path(), Split::Test).unwrap();
    assert_eq!((loaded.pairs.count(), loaded.published), (2, 408));
}

/// Bytes a, b, c and a space (which byte-level BPE writes Ġ); "ab" is merged first, then " ab".
fn tiny(pieces: &str, merges: &str) -> Result<PairEncoder, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("vocab.json"), pieces).unwrap();
    fs::write(folder.path().join("merges.txt"), merges).unwrap();
    PairEncoder::open(folder.path(), Vocabulary::Roberta).map_err(|error| error.to_string())
}

const PIECES: &str = r#"{"<s>": 0, "<pad>": 1, "</s>": 2, "a": 3, "b": 4, "c": 5, "Ġ": 6, "ab": 7, "Ġab": 8}"#;
const MERGES: &str = "#version: 0.2\na b\nĠ ab\n";

#[test]
fn a_tiny_vocabulary_gives_the_tokens_worked_out_by_hand() {
    let encoder = tiny(PIECES, MERGES).unwrap();
    assert_eq!((encoder.vocabulary(), encoder.piece(8).as_deref(), encoder.piece(9)), (9, Some("Ġab"), None));
    let texts = vec![pair("abc ab", "ba"), ("a abb".to_string(), None), ("".to_string(), None)];
    let pairs = Pairs { texts, labels: vec![0; 3] };
    let encoded = encoder.encode(&pairs, 16).unwrap();
    assert_eq!(encoded.ids, [vec![0, 7, 5, 8, 2, 2, 4, 3, 2], vec![0, 3, 8, 4, 2], vec![0, 2]]);
    assert_eq!(encoded.truncated, 0);
    // Nine tokens into seven: the longer text, of three, loses one, then the other one.
    let encoded = encoder.encode(&pairs, 7).unwrap();
    assert_eq!(encoded.ids[0], [0, 7, 5, 2, 2, 4, 2]);
    let encoded = encoder.encode(&pairs, 8).unwrap();
    assert_eq!((encoded.ids[0].as_slice(), encoded.truncated), ([0, 7, 5, 2, 2, 4, 3, 2].as_slice(), 1));
    assert!(encoder.encode(&pairs, 5).unwrap_err().contains("leaves no room for texts"));
}

#[test]
fn vocabularies_that_make_no_sense_are_explained() {
    for (pieces, merges, expected) in [
        ("[1]", MERGES, "is not a vocabulary"),
        (r#"{"<s>": 0}"#, MERGES, "has no piece '</s>'"),
        (r#"{"<s>": 0, "</s>": 7}"#, MERGES, "'</s>' has the number 7, but there are 2 pieces"),
        (PIECES, "a b\nab\n", "line 2: a merge is two pieces"),
        (PIECES, "a x\n", "does not fit the merges"),
    ] {
        let message = tiny(pieces, merges).err().unwrap();
        assert!(message.contains(expected), "{message}");
    }
    let nowhere = PairEncoder::open(Path::new("/nowhere"), Vocabulary::Gpt2).err().unwrap().to_string();
    assert!(nowhere.contains("there is no encoder.json or vocab.json"), "{nowhere}");
}

#[test]
fn tokens_are_those_of_the_python_tokenisers() {
    let Some(data) = data("bpe") else { return };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tokens-text.json");
    let golden: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let texts: Vec<String> = serde_json::from_value(golden["texts"].clone()).unwrap();
    let longest = golden["longest"].as_u64().unwrap() as usize;
    let rows =
        |kind: &str, part: &str| -> Vec<Vec<u32>> { serde_json::from_value(golden[kind][part].clone()).unwrap() };
    let singles =
        Pairs { texts: texts.iter().map(|text| (text.clone(), None)).collect(), labels: vec![0; texts.len()] };
    for (kind, vocabulary, start) in [("roberta", Vocabulary::Roberta, 1), ("gpt2", Vocabulary::Gpt2, 0)] {
        let encoder = PairEncoder::open(&data.join("bpe"), vocabulary).unwrap();
        assert_eq!(Some(encoder.vocabulary() as u64), golden[kind]["size"].as_u64());
        let found = encoder.encode(&singles, 100_000).unwrap();
        for ((text, found), expected) in texts.iter().zip(found.ids).zip(rows(kind, "tokens")) {
            assert_eq!(found[start..found.len() - 1], expected, "{kind}: {text:?}");
        }
    }
    let encoder = PairEncoder::open(&data.join("bpe"), Vocabulary::Roberta).unwrap();
    assert_eq!(encoder.encode(&singles, longest).unwrap().ids, rows("roberta", "singles"));
    let pairs = texts.windows(2).map(|two| pair(&two[0], &two[1])).collect();
    let encoded = encoder.encode(&Pairs { texts: pairs, labels: vec![0; texts.len() - 1] }, longest).unwrap();
    assert_eq!(encoded.ids, rows("roberta", "pairs"));
    assert!(encoded.truncated > 5);
}

#[test]
fn very_long_texts_keep_all_their_letters() {
    let Some(data) = data("bpe") else { return };
    let encoder = PairEncoder::open(&data.join("bpe"), Vocabulary::Roberta).unwrap();
    for text in [" ".repeat(30_000) + "x", "ab ".repeat(20_000), "é".repeat(30_000)] {
        let row = Pairs { texts: vec![(text.clone(), None)], labels: vec![0] };
        let ids = encoder.encode(&row, usize::MAX).unwrap().ids.remove(0);
        let pieces: String = ids[1..ids.len() - 1].iter().map(|id| encoder.piece(*id).unwrap()).collect();
        // Byte-level BPE writes every byte as one letter.
        assert_eq!(pieces.chars().count(), text.len());
    }
}

#[test]
fn the_real_sets_have_the_rows_and_labels_they_are_known_for() {
    let Some(data) = data("bpe") else { return };
    for (name, split, expected) in [
        ("mrpc", Split::Train, [1_323, 2_753]),
        ("mrpc", Split::Test, [578, 1_147]),
        ("mrpc-glue", Split::Train, [1_194, 2_474]),
        ("mrpc-glue", Split::Test, [129, 279]),
        ("qqp", Split::Train, [19_538, 15_528]),
        ("qqp", Split::Test, [2_500, 1_500]),
        ("sst2", Split::Train, [29_780, 37_569]),
    ] {
        let loaded = TextSet::named(name).unwrap().load(&data, split).unwrap();
        assert_eq!(loaded.pairs.label_counts(), expected, "{name} {}", split.name());
    }
    let message = read_mrpc(&data.join("mrpc/test.tsv")).unwrap_err().to_string();
    assert!(message.contains("there is no column 'Quality'"), "{message}");
    assert_eq!(TEXT_SETS.len(), 4);
}
