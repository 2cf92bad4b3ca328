//! Texts: tables of GLUE and of one's own, tokenisers.

use super::{file, file_reader, said, write};
use crate::case::Case;
use crate::mutate::Form;
use crate::target::{Memory, Target};
use pudica_data::Division;
use pudica_data::text::{
    Columns, FileTokeniser, OwnColumns, OwnTexts, PairEncoder, Pairs, Vocabulary, read_mrpc, read_qqp, read_sst2,
    read_table,
};
use std::path::Path;

const MRPC: &str =
    "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tA dog.\tThe dog.\n0\t3\t4\tOne\tTwo \"quoted\n";
const QQP: &str =
    "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWhy?\tHow?\t0\n2\t4\t5\tWho?\tWho?\t1\n";
const SST2: &str = "sentence\tlabel\nfine \t1\nbad \t0\n";
const CSV: &str = "text,label\n\"a, \"\"b\"\"\nc\",0\nplain,1\n";
const OWN_CSV: &str = "premise,hypothesis,label\na,b,yes\nc,d,no\n\"e\n\",f,yes\ng,h,no\n";

pub const TABLE: Target = Target {
    name: "text-table",
    about: "files of MRPC, QQP and SST-2 and any named columns, packed or not",
    form: Form::Plain,
    words: &[
        "\t",
        "\r\n",
        "\n",
        "\"",
        "label",
        "sentence",
        "question1",
        "is_duplicate",
        "Quality",
        "\u{feff}",
        "0",
        "1",
    ],
    memory: Memory { constant: 4, factor: 8000 },
    seeds: || {
        let texts = [MRPC, QQP, SST2, CSV];
        let cases = texts.into_iter().enumerate();
        cases.flat_map(|(part, text)| [Case::new(part, text), Case::packed(part, text)]).collect()
    },
    reader: |folder| {
        let (tsv, csv) = (folder.join("train.tsv"), folder.join("train.csv"));
        Box::new(move |part, bytes| {
            let path = if part == 3 { &csv } else { &tsv };
            write(path, bytes);
            match part {
                0 => said(read_mrpc(path)),
                1 => said(read_qqp(path)),
                2 => said(read_sst2(path)),
                _ => said(read_table(path, &Columns { first: "text", second: None, label: "label", classes: 2 })),
            }
        })
    },
    short: 2000,
};

pub const OWN: Target = Target {
    name: "own-texts",
    about: "a user's own tables of texts, with their labels, divided",
    form: Form::Plain,
    words: TABLE.words,
    memory: Memory { constant: 4, factor: 8000 },
    seeds: || {
        vec![
            Case::new(0, SST2.to_string() + "good \t1\nworse \t0\n"),
            Case::new(1, OWN_CSV),
            Case::packed(1, OWN_CSV),
            Case::new(2, "words\tclass\none\t1\ntwo\t2\nthree\t1\nfour\t2\n"),
        ]
    },
    reader: |folder| {
        let paths = [folder.join("own.tsv"), folder.join("own.csv"), folder.join("own.txt")];
        Box::new(move |part, bytes| {
            let path = &paths[part % 3];
            write(path, bytes);
            let own = OwnTexts::find(path).map_err(|error| error.to_string())?.ok_or("no file of texts")?;
            let columns = match part {
                2 => OwnColumns { text: "words", label: "class" },
                _ => OwnColumns::default(),
            };
            said(own.read(&columns, &Division { fraction: 0.2, seed: 0 }))
        })
    },
    short: 2000,
};

/// What tokenisers are asked.
const ASKED: [&str; 4] = ["A dog, and \u{1f600} naïve 12345 words.", "", "</s> <mask>", "ab  \n\tba"];

pub const TOKENIZER: Target = Target {
    name: "tokenizer",
    about: "tokenizer.json of Hugging Face, asked for the tokens of a few texts",
    form: Form::Json,
    words: &[
        "\"type\"",
        "\"BPE\"",
        "\"WordPiece\"",
        "\"Unigram\"",
        "\"WordLevel\"",
        "\"ByteLevel\"",
        "\"Whitespace\"",
        "\"Split\"",
        "\"Regex\"",
        "\"Sequence\"",
        "\"Metaspace\"",
        "\"Precompiled\"",
        "\"Replace\"",
        "\"TemplateProcessing\"",
        "\"RobertaProcessing\"",
        "\"BertProcessing\"",
        "\"vocab\"",
        "\"merges\"",
        "\"added_tokens\"",
        "\"special\"",
        "\"unk_token\"",
        "null",
        "true",
        "[]",
        "{}",
        "\"pattern\"",
        "\"String\"",
        "\"(a+)+$\"",
        "\"truncation\"",
        "\"padding\"",
        "\"max_length\"",
        "\"stride\"",
        "\"normalizer\"",
        "\"Lowercase\"",
        "\"NFD\"",
        "\"dropout\"",
    ],
    memory: Memory { constant: 64, factor: 4000 },
    seeds: || {
        vec![
            Case::new(0, file!("tests/golden/checkpoints/gpt2/tokenizer.json")),
            Case::new(0, file!("tests/golden/checkpoints/roberta/tokenizer.json")),
            Case::new(0, WORD_PIECE),
            Case::new(0, UNIGRAM),
        ]
    },
    reader: |folder| {
        file_reader(folder, "tokenizer.json", |path| {
            let tokeniser = FileTokeniser::open(path, 16).map_err(|error| error.to_string())?;
            _ = tokeniser.vocabulary();
            ASKED.iter().try_for_each(|text| tokeniser.encode(text, None).map(|_| ()))?;
            said(tokeniser.encode(ASKED[0], Some(ASKED[3])))
        })
    },
    short: 300,
};

const WORD_PIECE: &str = r###"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [{"id": 0, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false,
"normalized": false, "special": true}], "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
"pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}, "decoder": null,
"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "dog": 4, "##b": 5}}}"###;

const UNIGRAM: &str = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace",
"pattern": {"Regex": " {2,}"}, "content": " "}]}, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}, "post_processor": {"type": "TemplateProcessing",
"single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
"special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}}, "decoder": null, "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["</s>", 0.0], ["▁a", -1.5], ["b", -2.0]],
"byte_fallback": false}}"#;

/// A vocabulary of few pieces, with all that its kind needs.
fn vocabulary() -> String {
    let pieces =
        ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>", "a", "b", "d", "o", "g", "Ġ", "do", "dog"];
    let numbers: serde_json::Map<String, serde_json::Value> =
        pieces.iter().enumerate().map(|(number, piece)| (piece.to_string(), number.into())).collect();
    serde_json::Value::from(numbers).to_string()
}

const MERGES: &str = "#version: 0.2\nd o\ndo g\n";

pub const VOCABULARY: Target = Target {
    name: "vocabulary",
    about: "vocabularies and merges of RoBERTa and GPT-2, asked for the tokens of a few texts",
    form: Form::Json,
    words: &[
        "\"<s>\":",
        "\"</s>\":",
        "\"<|endoftext|>\":",
        "Ġ",
        "\n",
        " ",
        "d o",
        "do g",
        "#version",
        "4294967295",
        "{",
        "}",
    ],
    memory: Memory { constant: 16, factor: 4000 },
    seeds: || vec![Case::new(0, vocabulary()), Case::new(1, MERGES), Case::new(2, vocabulary()), Case::new(3, MERGES)],
    reader: |folder| {
        let (numbers, merges) = (folder.join("vocab.json"), folder.join("merges.txt"));
        let sound = vocabulary();
        Box::new(move |part, bytes| {
            let of_numbers = part % 2 == 0;
            write(&numbers, if of_numbers { bytes } else { sound.as_bytes() });
            write(&merges, if of_numbers { MERGES.as_bytes() } else { bytes });
            let kind = if part < 2 { Vocabulary::Roberta } else { Vocabulary::Gpt2 };
            let encoder = PairEncoder::open(Path::new(&numbers).parent().unwrap_or(&numbers), kind)
                .map_err(|error| error.to_string())?;
            let texts = ASKED.iter().map(|text| (text.to_string(), Some("dog".to_string()))).collect();
            said(encoder.encode(&Pairs { texts, labels: vec![0; ASKED.len()] }, 12))
        })
    },
    short: 500,
};
